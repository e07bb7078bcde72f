"""`turngate init` as a person uses it: real processes, a real terminal where it asks."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.builders import rule, script, stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.gates import claude_input
from tests.support.git_projects import write
from tests.support.terminal import CTRL_C, CTRL_D, Terminal, wait_for
from turngate.cli.commands.gates.actions import GateEntry, GateResult
from turngate.cli.commands.init.command import describe_trial
from turngate.cli.commands.init.proposal import ProposedGate, settings_text
from turngate.hosts.install.json_text import JsonStyle

PACKAGE = json.dumps({"scripts": {"test": "node --test", "lint": "eslint ."}})
WRITTEN = """\
{
  "$schema": "https://raw.githubusercontent.com/turngate/turngate/main/schemas/settings.schema.json",
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "gate",
            "id": "tests",
            "gate": "tests",
            "timeout": 600
          },
          {
            "type": "gate",
            "id": "lint",
            "gate": "lint"
          }
        ]
      }
    ]
  }
}
"""
COMMANDS = """\
tests  runs `npm test` (package.json)
lint   runs `npm run lint` (package.json)
"""
NEXT = "→ `turngate gates run` runs them now, `turngate doctor --prove` shows that they block\n"
WHEN_APPROVED = (
    "→ once they are approved, `turngate gates run` runs them (before that, only with --trust), "
    "and `turngate doctor --prove` shows that they block\n"
)
APPROVE = "→ they run once a person has approved them: `turngate hooks approve --all`\n"
SKIPPED = "not approved, so Turngate skips it: {}\n→ `turngate hooks approve --all` shows it and asks you\n"
QUESTION = "write it, and let these 2 gates run on this machine? [y]es, [n]o "
TRIED = "each command is run once (Ctrl-C leaves one out):"
NOTHING_FOUND = """\
no checks were found: there is no script, target or configuration of a test runner, a linter or a type checker whose \
program is installed
→ name a command yourself, in .turngate/settings.json:
{"hooks": {"Stop": [{"hooks": [{"type": "gate", "command": "./check.sh"}]}]}}
"""

Init = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _programs(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every machine the same programs, and no others but git. Hints name the project only where they are read elsewhere."""
    monkeypatch.chdir(project)
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    for name in ("npm", "python3", "make"):
        script(tmp_path / "bin" / name, "#!/bin/sh\n")
    git = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "bin" / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def init(project: Path) -> Init:
    """Without a trial, of which the tests are at the end."""
    return lambda *words: turngate("init", "--no-try", *words, "--project", str(project))


@pytest.fixture
def package(project: Path) -> Path:
    (project / "package.json").write_text(PACKAGE)
    return project


def tree(project: Path) -> dict[str, str]:
    """Return all files of a project with their texts."""
    paths = (path for path in project.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(project)): path.read_text() for path in paths}


SUMMARY = f"2 gates for .turngate/settings.json:\n{COMMANDS}"
FILE = f"\n.turngate/settings.json:\n{WRITTEN}\n"
SHOWN = SUMMARY + FILE


# Write


def test_yes_writes_gates_for_the_checks_that_are_there(init: Init, package: Path) -> None:
    written = "written   .turngate/settings.json\n"
    assert init("--yes") == (0, f"{SHOWN}{written}{APPROVE}{WHEN_APPROVED}", "")
    assert tree(package) == {"package.json": PACKAGE, ".turngate/settings.json": WRITTEN}


def test_what_was_written_has_no_problems(init: Init, package: Path) -> None:
    init("--yes")
    assert turngate("check", "--project", str(package)) == (
        0,
        ".turngate/settings.json\n2 hooks, no problems\n" + SKIPPED.format("tests, lint"),
        "",
    )


def test_a_dry_run_writes_nothing(init: Init, package: Path) -> None:
    assert init("--dry-run") == (0, f"{SHOWN}nothing was written (--dry-run)\n", "")
    assert tree(package) == {"package.json": PACKAGE}


def test_without_a_terminal_it_says_how_to_write(init: Init, package: Path) -> None:
    said = "turngate: there is no terminal to ask at; add --yes to write what is printed above\n"
    assert init() == (64, SHOWN, said)
    assert tree(package) == {"package.json": PACKAGE}


def test_a_second_init_changes_nothing(init: Init, package: Path) -> None:
    init("--yes")
    before = tree(package)
    exists = ".turngate/settings.json exists, and is not changed\n"
    left_out = "".join(
        f"{name} is left out: a hook in .turngate/settings.json already runs it\n"
        for name in ("tests", "lint")
    )
    assert init("--yes") == (0, exists + left_out, "")
    assert tree(package) == before


def test_in_a_repository_git_ignores_the_local_settings(init: Init, package: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=package, check=True)
    (package / ".gitignore").write_text("node_modules")
    line = ".turngate/settings.local.json"
    written = f"written   .turngate/settings.json\nwritten   .gitignore: {line}\n"
    gets = f".gitignore gets the line {line}\n"
    assert init("--yes") == (0, f"{SUMMARY}{gets}{FILE}{written}{APPROVE}{WHEN_APPROVED}", "")
    assert (package / ".gitignore").read_text() == f"node_modules\n{line}\n"


def test_a_folder_that_is_ignored_needs_no_line(init: Init, package: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=package, check=True)
    (package / ".gitignore").write_text("*.local.json\n")
    init("--yes")
    assert (package / ".gitignore").read_text() == "*.local.json\n"


# Ask


def test_what_is_confirmed_at_a_terminal_is_written_and_approved(package: Path) -> None:
    with Terminal("init", "--no-try", cwd=package, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect(QUESTION)
        terminal.say("y")
        code = terminal.end()
        terminal.expect(NEXT)
        said = "written   .turngate/settings.json\napproved  tests\napproved  lint\n"
        assert (code, terminal.text) == (0, f"{SHOWN}{QUESTION}yes\n{said}{NEXT}")
    assert turngate("hooks", "diff", "--project", str(package)) == (0, "nothing is pending\n", "")


@pytest.mark.parametrize(("answer", "code"), [("n\r", 1), ("\r", 1), (CTRL_D, 1), (CTRL_C, 130)])
def test_any_other_answer_writes_nothing(package: Path, answer: str, code: int) -> None:
    with Terminal("init", "--no-try", cwd=package, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect(QUESTION)
        terminal.type(answer)
        assert terminal.end() == code
    assert tree(package) == {"package.json": PACKAGE}


def test_a_line_of_stdin_writes_and_approves_nothing(package: Path) -> None:
    code, out, _ = turngate("init", "--no-try", stdin="y\n")
    assert (code, out) == (
        0,
        f"{SHOWN}write it? [y]es, [n]o \nwritten   .turngate/settings.json\n{APPROVE}{WHEN_APPROVED}",
    )


def test_an_agent_at_a_terminal_approves_nothing(package: Path) -> None:
    with Terminal(
        "init", "--no-try", cwd=package, env={"NO_COLOR": "1", "TURNGATE_IN_TOOL": "1"}
    ) as terminal:
        terminal.expect("write it? [y]es, [n]o ")
        terminal.say("y")
        assert terminal.end() == 0
        terminal.expect(APPROVE)
    listed = turngate("hooks", "--json", "--project", str(package))[1]
    assert [hook["trust"] for hook in json.loads(listed)["hooks"]] == ["new", "new"]


def test_a_gate_that_runs_a_file_of_the_project_is_not_approved_unseen(package: Path) -> None:
    """The command was shown, and the content of the file was not."""
    script(package / "gradlew", "#!/bin/sh\n")
    (package / "package.json").write_text('{"packageManager": "yarn@4", "scripts": {"test": "jest"}}')
    with Terminal("init", "--no-try", cwd=package, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("write it, and let this gate run on this machine? [y]es, [n]o ")
        terminal.say("y")
        assert terminal.end() == 0
        terminal.expect(
            "pending   tests: it runs gradlew of this project; `turngate hooks diff tests` shows it"
        )
    listed = turngate("hooks", "--json", "--project", str(package))[1]
    assert [hook["trust"] for hook in json.loads(listed)["hooks"]] == ["new"]


def test_settings_that_appear_meanwhile_are_kept(package: Path) -> None:
    with Terminal("init", "--no-try", cwd=package, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect(QUESTION)
        path = write_settings(package, "turngate", "mine")
        terminal.say("y")
        assert terminal.end() == 74
        terminal.expect(
            "turngate: .turngate/settings.json cannot be written: File exists; nothing was changed"
        )
    assert path.read_text() == "mine"


def test_approvals_that_cannot_be_stored_are_reported(package: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    env = {"NO_COLOR": "1", "TURNGATE_STATE": str(tmp_path / "state")}
    with Terminal("init", "--no-try", cwd=package, env=env) as terminal:
        terminal.expect(QUESTION)
        terminal.say("y")
        assert terminal.end() == 1
        terminal.expect("! the gates are not approved: ")
    assert tree(package)[".turngate/settings.json"] == WRITTEN


# What is found


def test_an_empty_folder_gets_nothing(init: Init, project: Path) -> None:
    assert init("--yes") == (1, NOTHING_FOUND, "")
    assert tree(project) == {}


def test_a_check_without_its_program_is_left_out_and_named(init: Init, project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.ruff]\n")
    said = "lint is left out: `ruff check --no-fix` (pyproject.toml) needs ruff, which was not found\n"
    assert init("--yes") == (1, said + NOTHING_FOUND, "")


def test_a_project_that_is_not_configured_yet_is_told_what_is_missing(init: Init, project: Path) -> None:
    (project / "configure.ac").touch()
    (project / "Makefile.am").touch()
    said = "tests is left out: `make check` (configure.ac) needs ./Makefile, which was not found\n"
    assert init("--yes") == (1, said + NOTHING_FOUND, "")


def gates(project: Path) -> list[dict[str, object]]:
    [group] = json.loads((project / ".turngate" / "settings.json").read_text())["hooks"]["Stop"]
    found: list[dict[str, object]] = group["hooks"]
    return found


def test_a_project_of_two_kinds_gets_a_gate_for_each(init: Init, package: Path) -> None:
    (package / "manage.py").touch()
    assert init("--yes")[0] == 0
    assert gates(package) == [
        {"type": "gate", "id": "tests", "command": "npm test", "timeout": 600},
        {"type": "gate", "id": "tests-python", "command": "python3 manage.py test", "timeout": 600},
        {"type": "gate", "id": "lint", "gate": "lint"},
    ]


def test_of_two_ways_to_run_a_check_the_one_that_is_there(init: Init, project: Path) -> None:
    (project / "pytest.ini").touch()
    (project / "manage.py").touch()
    assert init("--yes")[0] == 0
    assert gates(project) == [
        {"type": "gate", "id": "tests", "command": "python3 manage.py test", "timeout": 600}
    ]


def test_a_part_without_its_program_is_left_out_and_named(init: Init, project: Path) -> None:
    (project / "package.json").write_text('{"packageManager": "yarn@4", "scripts": {"test": "jest"}}')
    (project / "manage.py").touch()
    code, out, _ = init("--yes")
    left_out = "tests is left out: `yarn test` (package.json) needs yarn, which was not found"
    assert (code, out.splitlines()[-4]) == (0, left_out)
    assert gates(project) == [
        {"type": "gate", "id": "tests", "command": "python3 manage.py test", "timeout": 600}
    ]


def test_a_check_that_the_tests_run_is_not_a_second_gate(init: Init, project: Path) -> None:
    (project / "package.json").write_text('{"scripts": {"test": "eslint . && jest", "lint": "eslint ."}}')
    init("--yes")
    assert [gate["id"] for gate in gates(project)] == ["tests"]


def test_a_package_that_needs_another_one_is_checked_after_a_change_of_either(
    init: Init, project: Path
) -> None:
    write(
        project,
        {
            "package.json": '{"workspaces": ["packages/*"]}',
            "packages/lib/package.json": '{"name": "@x/lib", "scripts": {"test": "node --test"}}',
            "packages/app/package.json": '{"name": "@x/app", "scripts": {"test": "node --test"}, "dependencies": {"@x/lib": "*"}}',
        },
    )
    init("--yes")
    assert [(gate["id"], gate.get("options")) for gate in gates(project)] == [
        ("tests-packages-app", None),
        ("tests-packages-lib", {"ifChanged": ["packages/lib/**"]}),
    ]


def test_the_packages_of_a_workspace_get_a_gate_each(init: Init, project: Path) -> None:
    (project / "package.json").write_text('{"workspaces": ["packages/*", "!packages/old"]}')
    for name in ("web", "old"):
        (project / "packages" / name).mkdir(parents=True)
        (project / "packages" / name / "package.json").write_text('{"scripts": {"test": "jest"}}')
    init("--yes")
    assert gates(project) == [
        {
            "type": "gate",
            "id": "tests-packages-web",
            "command": "cd packages/web && npm test",
            "options": {"ifChanged": ["packages/web/**"]},
            "timeout": 600,
        }
    ]
    assert turngate("check", "--project", str(project))[0] == 0


WORKSPACES = {
    "pnpm": {
        "package.json": "{}",
        "pnpm-workspace.yaml": "packages:\n  # ours\n  - 'libs/*'\ncatalog:\n  - x\n",
    },
    "uv": {"pyproject.toml": '[tool.uv.workspace]\nmembers = ["libs/*"]\n'},
    "folders with projects": {"README.md": ""},
}


@pytest.mark.parametrize("kind", WORKSPACES)
def test_workspaces(init: Init, project: Path, kind: str) -> None:
    (project / "libs" / "core").mkdir(parents=True)
    (project / "libs" / "core" / "pyproject.toml").touch()
    (project / "libs" / "core" / "Makefile").write_text("test:\n\t./run\n")
    for name, text in WORKSPACES[kind].items():
        (project / name).write_text(text)
    init("--yes")
    assert [gate["command"] for gate in gates(project)] == ["cd libs/core && make test"]


# Each file of a formatter, and the third line of the settings.
STYLES = {
    "none": ({}, '  "hooks": {'),
    "biome": ({"biome.json": "{}"}, '\t"hooks": {'),
    "biome with spaces": (
        {"biome.json": '{"formatter": {"indentStyle": "space", "indentWidth": 4}}'},
        '    "hooks": {',
    ),
    "prettier": ({".prettierrc.yaml": "useTabs: true\n"}, '\t"hooks": {'),
    "editorconfig": (
        {".editorconfig": "[*]\nindent_style = tab\n[*.{js,json}]\nindent_style = space\nindent_size = 4\n"},
        '    "hooks": {',
    ),
}


@pytest.mark.parametrize("name", STYLES)
def test_the_settings_are_printed_as_the_projects_formatter_does(
    init: Init, package: Path, name: str
) -> None:
    files, expected = STYLES[name]
    for file, text in files.items():
        (package / file).write_text(text)
    init("--yes")
    assert (package / ".turngate" / "settings.json").read_text().splitlines()[2] == expected


def test_a_list_that_does_not_fit_is_printed_in_lines() -> None:
    gate = ProposedGate({"id": "tests", "options": {"ifChanged": ["a/**", "b/**"]}}, "", "")
    assert settings_text([gate], JsonStyle(width=40)).splitlines()[9:13] == [
        '              "ifChanged": [',
        '                "a/**",',
        '                "b/**"',
        "              ]",
    ]
    assert settings_text([gate]).splitlines()[9] == '              "ifChanged": ["a/**", "b/**"]'


def test_the_comma_behind_a_list_takes_room_too() -> None:
    """The list, without the comma, fits exactly; prettier and biome open it."""
    options = {"globs": ["a/**", "b/**"], "noWeakening": True}
    gate = ProposedGate({"id": "untouched", "options": options}, "", "")
    line = '              "globs": ["a/**", "b/**"],'
    assert settings_text([gate], JsonStyle(width=len(line))).splitlines()[9] == line
    assert settings_text([gate], JsonStyle(width=len(line) - 1)).splitlines()[9] == line.partition('"a')[0]


def test_a_target_of_make_stands_for_all_parts(init: Init, package: Path) -> None:
    (package / "Makefile").write_text("test:\n\tnpm test\n")
    assert init("--dry-run")[1].startswith(
        "2 gates for .turngate/settings.json:\n"
        "tests  runs `make test` (Makefile)\nlint   runs `npm run lint` (package.json)\n\n"
    )


def test_a_build_is_a_gate_only_where_there_is_nothing_else(init: Init, project: Path) -> None:
    (project / "package.json").write_text('{"scripts": {"build": "vite build"}}')
    assert init("--dry-run")[1].startswith(
        "1 gate for .turngate/settings.json:\nbuild  runs `npm run build` (package.json)\n\n"
    )


def test_a_check_that_a_hook_of_claude_code_runs_is_left_out(init: Init, package: Path) -> None:
    write_settings(package, "claude", stop_hooks("npm test >&2 || exit 2"))
    code, out, _ = init("--yes")
    left_out = "tests is left out: a hook in .claude/settings.json already runs it"
    assert (code, out.splitlines()[-4]) == (0, left_out)
    assert '"tests"' not in (package / ".turngate" / "settings.json").read_text()


def test_existing_settings_are_kept_and_what_could_be_added_is_shown(init: Init, package: Path) -> None:
    path = write_settings(package, "turngate", '{"hooks": {}} ')
    entries = [
        '{"type": "gate", "id": "tests", "gate": "tests", "timeout": 600},',
        '{"type": "gate", "id": "lint", "gate": "lint"}',
    ]
    assert init("--yes") == (
        0,
        '.turngate/settings.json exists, and is not changed\nthese gates can be added to its "Stop" hooks:\n'
        + "".join(f"  {line}\n" for line in entries)
        + COMMANDS,
        "",
    )
    assert path.read_text() == '{"hooks": {}} '


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            "{",
            "not JSON at line 1, column 2: expecting property name enclosed in double quotes; correct it there and run this again",
        ),
        ("[]", "it holds a list, expected an object"),
    ],
)
def test_settings_that_are_not_json_are_kept_and_named(
    init: Init, package: Path, content: str, why: str
) -> None:
    path = write_settings(package, "turngate", content)
    said = f"turngate: .turngate/settings.json: {why}; nothing was changed\n"
    assert (init("--yes"), path.read_text()) == ((64, "", said), content)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("package.json", '{"scripts": {', "it is not JSON (line 1)"),
        ("package.json", "[" * 100_000, "it is not JSON (line 1)"),
        ("pyproject.toml", "a = \x1b[31m", "it is not TOML (Invalid value (at line 1, column 5))"),
    ],
)
def test_a_broken_file_is_named_and_the_others_are_read(
    init: Init, project: Path, name: str, content: str, said: str
) -> None:
    (project / "Makefile").write_text("test:\n")
    (project / name).write_text(content)
    code, _, err = init("--dry-run")
    assert (code, err) == (0, f"! {name}: {said}, so the checks that it names are not known\n")


def test_hostile_files_are_not_waited_for(init: Init, project: Path) -> None:
    os.mkfifo(project / "package.json")
    (project / "Makefile").mkdir()
    (project / "pyproject.toml").symlink_to("/dev/zero")
    with open(project / "setup.cfg", "wb") as large:
        large.truncate(10 * 1024**3)
    (project / "tests").mkdir()
    (project / "tests" / "test_a\n\x1b[35m b.py").touch()
    code, out, err = init("--dry-run")
    assert (code, err) == (0, "")
    assert out.startswith(
        "1 gate for .turngate/settings.json:\n"
        "tests  runs `python3 -m unittest discover -s tests` (tests/test_a  b.py)\n\n"
    )


# Gates by their names


PLAIN = ("suppressions", "debug", "dependencies", "secrets", "clean", "todos", "evidence", "no-stubs")
WITH_SIZE = {"maxLines": 1000, "maxFiles": 50}


def named(name: str, **options: object) -> dict[str, object]:
    return {"type": "gate", "id": name, "gate": name, **({"options": options} if options else {})}


def test_gates_are_added_by_their_names(init: Init, package: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=package, check=True)
    (package / "tests").mkdir()
    (package / "src").mkdir()
    (package / "CHANGELOG.md").touch()
    (package / "lcov.info").touch()
    code, out, err = init("--yes", "--with", ", ".join(PLAIN), "--with", "untouched,touched,size,coverage")
    assert (code, err) == (0, "")
    assert gates(package)[2:] == [
        *map(named, PLAIN),
        named("untouched", globs=["tests/**", "**/*.test.*", "**/*.spec.*"], noWeakening=True),
        named("touched", **{"if": ["src/**"], "then": ["CHANGELOG.md"]}),
        named("size", **WITH_SIZE),
        named("coverage", min=80),
    ]
    assert "\ndebug         the added lines contain no breakpoint or debug print\n" in out
    assert turngate("check", "--project", str(package)) == (
        0,
        ".turngate/settings.json\n14 hooks, no problems\n" + SKIPPED.format("tests, lint, suppressions …"),
        "",
    )


@pytest.mark.parametrize(
    ("files", "globs"),
    [
        (["tests/a.py", "testing/a.py", "test.py"], ["tests/**", "testing/**", "test.py"]),
        (["tests/data.json", "tests.c"], ["tests/**", "tests.c"]),
        (["test.py", "tests.toml", "pyproject.toml"], ["test.py", "tests.toml"]),
        (["pyproject.toml", "shop/tests/test_a.py"], ["**/test_*.py", "**/*_test.py"]),
        (["package.json", "test.js"], ["test.js", "**/*.test.*", "**/*.spec.*"]),
        (["Cargo.toml", "src/lib.rs"], ["**/*.rs"]),
        (["Makefile.PL", "t/a.t"], ["t/**"]),
    ],
)
def test_untouched_is_for_the_tests_of_the_project(
    init: Init, project: Path, files: list[str], globs: list[str]
) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    for name in files:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("{}" if name == "package.json" else "")
    init("--yes", "--with", "untouched")
    assert gates(project)[-1] == named("untouched", globs=globs, noWeakening=True)


def test_format_by_its_name_is_the_check_of_what_a_script_formats(
    init: Init, project: Path, tmp_path: Path
) -> None:
    script(tmp_path / "bin" / "npx", "#!/bin/sh\n")
    (project / "package.json").write_text(
        '{"scripts": {"test": "jest", "format": "prettier --write src"}, "devDependencies": {"prettier": "3"}}'
    )
    assert "prettier" not in init("--dry-run")[1]
    code, out, _ = init("--yes", "--with", "format")
    assert (code, gates(project)[1]) == (0, {"type": "gate", "id": "format", "gate": "format"})
    assert "\nformat  runs `npx --no-install prettier --check src` (package.json)\n" in out


# What is named, and the line about it.
LEFT_OUT = {
    "ran": "its options cannot be guessed; write "
    '{"type": "gate", "id": "ran", "gate": "ran", "options": {"if": ["GLOB"], "then": "COMMAND"}}',
    "plan": "its options cannot be guessed; write "
    '{"type": "gate", "id": "plan", "gate": "plan", "options": {"files": ["PLAN.md"]}}',
    "budget": "its options cannot be guessed; write "
    '{"type": "gate", "id": "budget", "gate": "budget", "options": {"minutes": 60}}',
    "command": 'name its command: {"type": "gate", "id": "command", "command": "COMMAND"}',
    "size": "it compares with git; run `git init`, and then `turngate init --with size`",
    "checks": "it needs gh, the command line of GitHub; install it, and run `turngate init --with checks`",
    "format": "looked for a target `format-check` in a Makefile, a script `format:check` in package.json, ruff format, "
    "black, prettier, biome, cargo fmt, gofmt and others; name the command: "
    '{"type": "gate", "id": "format", "gate": "format", "command": "COMMAND"}',
    "lint": "a hook in .turngate/settings.json already runs it",
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_a_gate_needs_is_said_in_one_sentence(init: Init, package: Path, name: str) -> None:
    init("--yes")
    before = tree(package)
    code, out, err = init("--yes", "--with", name)
    assert (code, err, f"{name} is left out: {LEFT_OUT[name]}" in out.splitlines()) == (0, "", True)
    assert tree(package) == before


def test_a_gate_that_asks_a_model_needs_one(
    init: Init, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=package, check=True)
    write = '{"type": "gate", "id": "review", "gate": "review", "options": {"model": "PROVIDER:NAME"}}'
    said = f"review is left out: it asks a model, and none is configured; write {write}"
    assert said in init("--dry-run", "--with", "review")[1].splitlines()
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    assert init("--yes", "--with", "review")[0] == 0
    assert gates(package)[2:] == [named("review")]


def test_a_gate_with_what_else_it_could_use(init: Init, package: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=package, check=True)
    _, out, _ = init("--yes", "--with", "coverage,secrets")
    assert out.splitlines()[-6:-4] == [
        "coverage: let the tests write coverage.xml or lcov.info, as `c8 --reporter=lcov node --test` does; without a report it cannot run",
        "secrets: it knows the usual formats of keys; if gitleaks is installed, it runs that too",
    ]
    assert [gate["id"] for gate in gates(package)] == ["tests", "lint", "coverage", "secrets"]


def test_an_unknown_gate_is_wrong_usage_with_the_nearest_name_and_the_list(init: Init, package: Path) -> None:
    code, out, err = init("--yes", "--with", "debug,formt")
    start = 'turngate: --with: there is no gate "formt"; did you mean "format"? The gates are archive, budget, build, '
    assert (code, out, err.startswith(start), err.endswith(", until, untouched\n")) == (64, "", True, True)
    assert tree(package) == {"package.json": PACKAGE}


MINE = """\
{
    // mine
    "turngate": {"showPass": true},
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    {"type": "gate", "command": "make  it"} // the last one
                ]
            }
        ]
    }
}
"""


def test_existing_settings_keep_every_character_when_gates_are_added(init: Init, package: Path) -> None:
    path = write_settings(package, "turngate", MINE)
    code, out, _ = init("--yes", "--with", "debug,untouched", "--with", "todos")
    added = """,
                    {
                        "type": "gate",
                        "id": "debug",
                        "gate": "debug"
                    },
                    {
                        "type": "gate",
                        "id": "todos",
                        "gate": "todos"
                    }"""
    one, comment, rest = MINE.partition(" // the last one")
    assert (code, path.read_text()) == (0, f"{one}{added[0]}{comment}{added[1:]}{rest}")
    assert out.splitlines()[-11:] == [
        "2 gates for .turngate/settings.json:",
        "debug  the added lines contain no breakpoint or debug print",
        "todos  the agent's own task list is done",
        "",
        'added to the "Stop" hooks in .turngate/settings.json:',
        '  {"type": "gate", "id": "debug", "gate": "debug"},',
        '  {"type": "gate", "id": "todos", "gate": "todos"}',
        "untouched is left out: it compares with git; run `git init`, and then `turngate init --with untouched`",
        "written   .turngate/settings.json",
        APPROVE.rstrip("\n"),
        WHEN_APPROVED.rstrip("\n"),
    ]


# Settings before, and after `--with debug`.
ADDED = {
    "one line": (
        '{"hooks": {"Stop": [{"hooks": []}]}}',
        '{"hooks": {"Stop": [{"hooks": [{"type": "gate", "id": "debug", "gate": "debug"}]}]}}',
    ),
    "another event": (
        '{"hooks":{"SessionStart":[]}}',
        '{"hooks":{"SessionStart":[],"Stop":[{"hooks":[{"type":"gate","id":"debug","gate":"debug"}]}]}}',
    ),
    "a group with a matcher": (
        '{"hooks": {"Stop": [{"matcher": "a", "hooks": []}]}}',
        '{"hooks": {"Stop": [{"matcher": "a", "hooks": []}, {"hooks": [{"type": "gate", "id": "debug", "gate": "debug"}]}]}}',
    ),
}


@pytest.mark.parametrize("name", ADDED)
def test_where_a_gate_is_added(init: Init, package: Path, name: str) -> None:
    before, after = ADDED[name]
    path = write_settings(package, "turngate", before)
    assert (init("--yes", "--with", "debug")[0], path.read_text()) == (0, after)


@pytest.mark.parametrize("content", ["{", "[]", '{"hooks": {"Stop": {}}}'])
def test_settings_that_cannot_be_read_get_nothing_added(init: Init, package: Path, content: str) -> None:
    path = write_settings(package, "turngate", content)
    code, _, err = init("--yes", "--with", "debug")
    start = "turngate: .turngate/settings.json"
    assert (code, err.startswith(start), err.endswith("; nothing was changed\n")) == (64, True, True)
    assert path.read_text() == content


def test_only_what_was_added_and_confirmed_is_approved(package: Path) -> None:
    write_settings(package, "turngate", stop_hooks("./mine"))
    with Terminal("init", "--no-try", "--with", "debug", cwd=package, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("write it, and let this gate run on this machine? [y]es, [n]o ")
        terminal.say("y")
        assert terminal.end() == 0
        terminal.expect("approved  debug")
    listed = json.loads(turngate("hooks", "--json", "--project", str(package))[1])["hooks"]
    assert [hook["trust"] for hook in listed] == ["new", "approved"]


# Places


def test_the_home_folder_is_not_a_project(home: Path) -> None:
    (home / "package.json").write_text(PACKAGE)
    said = (
        "turngate: this is your home folder, and ~/.turngate/settings.json holds your own settings for all projects; "
        "change to a project, or name one with --project\n"
    )
    assert turngate("init", "--yes", "--project", str(home)) == (64, "", said)
    assert not (home / ".turngate").exists()


def test_a_linked_settings_folder_is_not_written_to(init: Init, package: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (package / ".turngate").symlink_to(tmp_path / "elsewhere")
    said = (
        f"turngate: .turngate is a link to {tmp_path / 'elsewhere'}, and what is written there may not be this project's; "
        "replace the link by a folder, or write .turngate/settings.json yourself\n"
    )
    assert init("--yes") == (64, "", said)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_in_the_place_of_the_settings_folder_is_kept(init: Init, package: Path) -> None:
    (package / ".turngate").write_text("mine")
    assert init("--yes") == (64, "", "turngate: .turngate is a file, expected a folder; rename it\n")
    assert (package / ".turngate").read_text() == "mine"


def test_a_dangling_link_in_the_place_of_the_settings_is_kept(init: Init, package: Path) -> None:
    (package / ".turngate").mkdir()
    (package / ".turngate" / "settings.json").symlink_to("gone.json")
    assert init("--yes")[0] == 64
    assert os.listdir(package / ".turngate") == ["settings.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write to a read-only folder")
def test_a_folder_that_cannot_be_written_to(init: Init, package: Path) -> None:
    package.chmod(0o500)
    said = "turngate: .turngate/settings.json cannot be written: Permission denied; nothing was changed\n"
    assert (init("--yes")[0], init("--yes")[2]) == (74, said)


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_full_disk_leaves_nothing_behind(package: Path, has_folder: bool) -> None:
    """A limit of the size of files is what a full disk is: bytes are not accepted."""
    if has_folder:
        (package / ".turngate").mkdir()
    command = f'ulimit -f 0; exec {sys.executable} -m turngate init --no-try --yes --project "$1"'
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", package], capture_output=True, text=True, check=False
    )
    said = "turngate: .turngate/settings.json cannot be written: File too large; nothing was changed\n"
    assert (done.returncode, done.stderr) == (74, said)
    assert (tree(package), (package / ".turngate").exists()) == ({"package.json": PACKAGE}, has_folder)


def test_a_gitignore_that_is_a_link_is_not_changed(init: Init, package: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=package, check=True)
    (tmp_path / "shared").write_text("*.o\n")
    (package / ".gitignore").symlink_to(tmp_path / "shared")
    code, _, err = init("--yes")
    hint = "add the line .turngate/settings.local.json yourself"
    said = f"! .gitignore cannot be changed: Too many levels of symbolic links; {hint}\n"
    assert (code, err, (tmp_path / "shared").read_text()) == (0, said, "*.o\n")


def test_a_path_with_spaces_and_newlines(tmp_path: Path) -> None:
    odd = tmp_path / "a b\nc\x1b[35m"
    odd.mkdir()
    (odd / "package.json").write_text(PACKAGE)
    code, out, err = turngate("init", "--no-try", "--yes", "--project", str(odd))
    assert (code, err, out.count("\n")) == (0, "", 31)
    assert (odd / ".turngate" / "settings.json").read_text() == WRITTEN


def test_without_a_home_folder_it_works(init: Init, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    assert (init("--yes")[0], tree(package)[".turngate/settings.json"]) == (0, WRITTEN)


@pytest.mark.parametrize("has_toolchain", [False, True])
def test_a_tool_of_rustup_is_there_only_with_a_toolchain(
    init: Init, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_toolchain: bool
) -> None:
    (project / "Cargo.toml").write_text("[package]\n")
    script(tmp_path / "bin" / "rustup", "#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "cargo").symlink_to("rustup")
    monkeypatch.setenv("RUSTUP_HOME", str(tmp_path / "rustup"))
    (tmp_path / "rustup" / "toolchains").mkdir(parents=True)
    if has_toolchain:
        (tmp_path / "rustup" / "toolchains" / "stable").mkdir()
    code, out, _ = init("--dry-run")
    missing = "tests is left out: `cargo test` (Cargo.toml) needs cargo, which was not found"
    assert (code, missing in out.splitlines()) == ((0, False) if has_toolchain else (1, True))


# The trial


@pytest.fixture
def trial(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Init:
    """Run `init --yes` in a repository with a Makefile that has these targets, with the machine's own programs."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin" / "make").unlink()

    def run(**targets: str) -> tuple[int, str, str]:
        rules = "".join(f"{name}:\n\t{recipe}\n" for name, recipe in targets.items())
        (project / "Makefile").write_text(f".PHONY: {' '.join(targets)}\n{rules}")
        (project / "a.txt").write_text("a\n")
        subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
        subprocess.run(["git", "add", "."], cwd=project, check=True)
        return turngate("init", "--yes", "--project", str(project))

    return run


def tried(out: str) -> list[str]:
    """Return what the trial said, without times."""
    lines = out.partition("\n\n")[0].splitlines()
    return [re.sub(r", [\d.]+ s", "", line) for line in lines]


def test_a_green_command_is_written(trial: Init, project: Path) -> None:
    code, out, _ = trial(test="true")
    assert (code, tried(out)) == (0, [TRIED, "tests  runs `make test`", "tests  green"])
    assert [gate["id"] for gate in gates(project)] == ["tests"]


def test_a_red_command_is_written_and_old_failures_do_not_block(trial: Init, project: Path) -> None:
    code, out, _ = trial(test="@echo '1 failed'; false")
    said = "tests  red; only what a session breaks will block, not what fails now"
    assert (code, tried(out)) == (0, [TRIED, "tests  runs `make test`", said])
    assert [gate["id"] for gate in gates(project)] == ["tests"]


FAILING = "@echo x >> ../runs; cat output; test ! -s output"


def test_what_the_trial_saw_is_the_baseline_of_the_first_session(
    trial: Init, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check does not run on the files of the session's start: that the trial has done."""
    old, new = (f"FAILED tests/test_a.py::{name} - assert 1 == 2\n" for name in ("test_old", "test_new"))
    (project / "output").write_text(old)
    trial(test=FAILING)
    monkeypatch.setenv("TURNGATE_TRUST", "1")
    answers = [ask(project, "SessionStart")]
    (project / "src.py").write_text("1\n")
    answers.append(ask(project, "Stop"))
    assert (project.parent / "runs").read_text() == "x\nx\n"  # of the trial, and of the stop
    (project / "output").write_text(old + new)
    answers.append(ask(project, "Stop"))
    assert (project.parent / "runs").read_text() == "x\nx\nx\n"
    only_old = 'gate "tests": it fails only as it did at the session\'s start'
    reason = (
        "`make test`: exit code 2\ntests/test_a.py::test_new\nassert 1 == 2\n\nmake: *** [Makefile:3: test] Error 1\n\n"
        "1 failure that was there at the session's start is left out."
    )
    assert answers == [{}, {"systemMessage": only_old}, {"decision": "block", "reason": reason}]


def ask(project: Path, event: str) -> object:
    """Return what Claude Code is told at an event of its session."""
    fields = claude_input(project, session_id="s", hook_event_name=event)
    code, out, err = turngate("hook", "--project", str(project), stdin=json.dumps(fields))
    assert (code, err) == (0, "")
    return json.loads(out or "{}")


def test_a_command_that_cannot_run_is_left_out_with_the_reason(trial: Init, project: Path) -> None:
    code, out, _ = trial(test="no-such-program-here", lint="true")
    missing = "make: *** [Makefile:3: test] Error 127"
    assert (code, tried(out)) == (
        0,
        [
            TRIED,
            "tests  runs `make test`",
            f"tests  left out: it could not run: `make test`: exit code 2: {missing}",
            "lint  runs `make lint`",
            "lint  green",
        ],
    )
    assert [gate["id"] for gate in gates(project)] == ["lint"]


def test_a_command_that_changes_files_is_left_out_and_the_file_is_named(trial: Init, project: Path) -> None:
    code, out, _ = trial(test="true", lint="@echo b > a.txt", types="@echo c > new.txt")
    assert (code, tried(out)) == (
        0,
        [
            TRIED,
            "tests  runs `make test`",
            "tests  green",
            "lint  runs `make lint`",
            "lint  left out: it changed a.txt",
            "types  runs `make types`",
            "types  green",
        ],
    )
    assert [gate["id"] for gate in gates(project)] == ["tests", "types"]


def test_a_slow_command_is_named_with_a_quicker_one_of_the_project() -> None:
    entry = GateEntry("tests", rule())
    runs = (
        GateResult(entry, "passed", seconds=59),
        GateResult(entry, "passed", seconds=61),
        GateResult(entry, "could not run", "its time is up", seconds=299),
    )
    seen = [describe_trial(each, (), "npm run test:unit") for each in runs]
    assert [note for note, is_kept in seen if is_kept] == [
        "green, 59.0 s",
        "green, 61.0 s (slow); a part of the tests: `npm run test:unit`",
        "slow, it did not end within 300 s; a part of the tests: `npm run test:unit`",
    ]


def test_a_file_that_git_does_not_know_counts_if_it_knows_others_of_its_kind(
    trial: Init, project: Path
) -> None:
    """What an earlier run has built or reported is written again by each run."""
    trial(test="no-such-program-here")  # it adds all files to git, and the next one should not
    (project / ".git/info/exclude").write_text("built\nresults.cache\nnew.txt\n")
    for name in ("built", "results.cache", "new.txt"):
        (project / name).write_text("of an earlier run")
    code, out, _ = trial(
        test="@: > .git/info/exclude",
        lint="@echo a > built; echo b > results.cache",
        types="@echo c > new.txt",
    )
    assert (code, tried(out)) == (
        0,
        [
            TRIED,
            "tests  runs `make test`",
            "tests  green",
            "lint  runs `make lint`",
            "lint  green",
            "types  runs `make types`",
            "types  left out: it changed new.txt",
        ],
    )


def test_if_nothing_can_run_nothing_is_written(trial: Init, project: Path) -> None:
    code, out, _ = trial(test="no-such-program-here")
    assert (code, out.endswith(NOTHING_FOUND), (project / ".turngate").exists()) == (1, True, False)


def test_at_a_terminal_a_person_decides_whether_commands_run(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    with Terminal("init", cwd=package, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("run each of them once now, to see whether it can run? [y]es, [n]o ")
        terminal.say("y")
        terminal.expect(QUESTION)
        terminal.say("n")
        assert terminal.end() == 1
        assert re.findall(r"^\w+  \w+(?=, [\d.]+ s$)", terminal.text, re.MULTILINE) == [
            "tests  green",
            "lint  green",
        ]


def test_ctrl_c_leaves_out_the_command_that_runs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    (tmp_path / "bin" / "make").unlink()
    (project / "Makefile").write_text("test:\n\t@echo started > started; sleep 600\nlint:\n\ttrue\n")
    with Terminal("init", cwd=project, env={"NO_COLOR": "1"}) as terminal:
        terminal.expect("run each of them once now")
        terminal.say("y")
        wait_for(project / "started")
        terminal.type(CTRL_C)
        terminal.expect("tests  left out: it was ended by Ctrl-C")
        terminal.expect("lint  green")
        terminal.expect("write it, and let this gate run on this machine? [y]es, [n]o ")
        terminal.say("n")
        assert terminal.end() == 1
