"""The usual places of hooks: which edits end an approval, and which are the ordinary work of an agent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.builders import write_settings
from tests.trust.support import approve_all, command, stop_settings, write
from turngate.project.files import LOCAL
from turngate.trust.review import review_project

ENTRY = "src/app.py"
# What every project here has.
CODE = {
    ENTRY: "import json",
    "tests/test_app.py": "",
    "README.md": "",
    "Makefile": "test:\n",
    "package.json": "{}",
    "scripts/deploy.sh": "",
    ".claude/hooks/format.sh": "",
    ".turngate/agents/reviewer.md": "",
}
# What agents do in it: none of this ends an approval, unless a row says so.
WORK = (
    ENTRY,
    "src/new.py",
    "tests/test_app.py",
    "tests/test_new.py",
    "README.md",
    "Makefile",
    "package.json",
    "new.txt",
    "scripts/deploy.sh",
    "scripts/new.py",
    "scripts/build.js",
    "scripts/test/data.json",
    "scripts/lint",
    "scripts/target/deps/x.o",
    "test.js",
    "tests/test_cli.sh",
    "build/out.js",
    "node_modules/a/index.js",
    ".claude/settings.local.json",
    ".claude/agent-log.jsonl",
    ".claude/commands/new.md",
    ".claude/worktrees/a/x.sh",
    ".claude/hooks/stop.log",
    ".claude/hooks/logs/today.txt",
    ".claude/hooks/state/last.json",
    ".claude/hooks/__pycache__/x.pyc",
    ".claude/hooks/README.md",
    ".claude/hooks/format.sh~",
    ".claude/hooks/format.sh.orig",
    ".claude/hooks/format.sh.rej",
    ".turngate/agents/reviewer.md",
    ".turngate/commands/new.md",
    ".turngate/archive/1.md",
)


class Layout(NamedTuple):
    text: str
    script: str  # that it runs
    ends: tuple[str, ...] = ()  # edits besides that of the script
    content: str = "#!/bin/sh\n"
    others: Mapping[str, str] = {}


LAYOUTS = {
    "a script of Claude Code": Layout(".claude/hooks/x.sh", ".claude/hooks/x.sh"),
    "with the variable of the project": Layout(
        'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/x.py', ".claude/hooks/x.py", (".claude/hooks/re.py",)
    ),
    "with a default value": Layout('"${CLAUDE_PROJECT_DIR:-.}/.claude/hooks/x.sh"', ".claude/hooks/x.sh"),
    "with the folder that git knows": Layout(
        '"$(git rev-parse --show-toplevel)/.claude/hooks/x.sh"', ".claude/hooks/x.sh"
    ),
    "uv run": Layout(
        "uv run --script .claude/hooks/x.py --chat", ".claude/hooks/x.py", (".claude/hooks/utils/x.py",)
    ),
    "bun": Layout("bun hooks/x.ts", "hooks/x.ts", ("hooks/lib/y.ts", "hooks/package.json")),
    "npx tsx": Layout("npx tsx .claude/hooks/x.ts", ".claude/hooks/x.ts", (".claude/hooks/package.json",)),
    "node": Layout("node .claude/hooks/x", ".claude/hooks/x.js", (".claude/hooks/x/index.js",)),
    "bash -c": Layout('bash -c "cd hooks && ./x.sh"', "hooks/x.sh", ("hooks/y.sh",)),
    "make -f": Layout("make -f hooks/Makefile", "hooks/Makefile", ("hooks/more.mk",)),
    "make -C": Layout("make -C hooks check", "hooks/Makefile", ("hooks/x.sh",)),
    "a script hook": Layout("true", ".turngate/stop"),
    "several commands": Layout(
        "cd web && npm run lint || exit 2; [ -x hooks/x.sh ] && exec hooks/x.sh", "hooks/x.sh", ("hooks/y",)
    ),
    "another folder of settings": Layout(
        "sh .claude/scripts/x.sh", ".claude/scripts/x.sh", (".claude/scripts/y.sh",)
    ),
    "a folder of git hooks": Layout("sh .husky/x", ".husky/x", (".husky/_/h",)),
    "a git hook with the name of a tool": Layout(
        "sh .githooks/pre-commit", ".githooks/pre-commit", (".githooks/lib.sh",)
    ),
    "a script with the name of a tool": Layout(
        "scripts/ruff check src",
        "scripts/ruff",
        ("scripts/lib.sh",),
        ". scripts/lib.sh\n",
        {"scripts/lib.sh": ""},
    ),
    "scripts that another program lists": Layout(
        "ls hooks/*.sh | while read x; do sh $x; done", "hooks/x.sh", ("hooks/y.sh",)
    ),
    "a script of the project": Layout(
        "bash scripts/check.sh --fast",
        "scripts/check.sh",
        ("scripts/lib.sh", "scripts/checks.d/new"),
        ". scripts/lib.sh\nfor x in checks.d; do :; done\n",
        {"scripts/lib.sh": ""},
    ),
    "a Python script of the project": Layout(
        "python3 tools/verify.py",
        "tools/verify.py",
        ("tools/helper.py", "tools/selectors.py", "tools/package/part.py"),
        "import helper, package.part, subprocess\n",
        {"tools/helper.py": "", "tools/package/part.py": ""},
    ),
    "a script that runs all of its folder": Layout(
        "sh ci/all.sh", "ci/all.sh", ("ci/new.sh",), 'for x in "$(dirname "$0")"/*.sh; do sh "$x"; done\n'
    ),
    "a script with a pattern of its folder": Layout(
        "sh ci/all.sh", "ci/all.sh", ("ci/new.sh",), 'for x in ci/n*.sh; do test ! -f "$x" || sh "$x"; done\n'
    ),
    "all scripts of a folder": Layout(
        'for x in checks/*.sh; do sh "$x"; done', "checks/x.sh", ("checks/y.sh",)
    ),
    "a script that names tasks of other tools": Layout(
        "sh scripts/x.sh", "scripts/x.sh", content="npm run lint || npm run build || npm test\n"
    ),
    "a script that lists the code": Layout(
        "python3 tools/x.py", "tools/x.py", content='import pathlib\npathlib.Path("src").glob("*.py")\n'
    ),
    "a script that lists its folder": Layout(
        "python3 tools/x.py",
        "tools/x.py",
        ("tools/new.sh",),
        "import os\nos.listdir(os.path.dirname(__file__))\n",
    ),
    "a script that loads modules by their names": Layout(
        "node ci/x.js",
        "ci/x.js",
        ("ci/build.js", "ci/data.json", "ci/lib/y.js"),
        'const build = require("./build"), data = require("./data")\nimport { y } from "./lib/y"\n',
    ),
    "a script that runs another without a suffix": Layout(
        "sh ci/x.sh", "ci/x.sh", ("ci/lint", "ci/more"), "ci/lint\n. more\n"
    ),
    "a script in the root": Layout("./check.sh", "check.sh"),
    "a script among the tests": Layout("sh tests/run.sh", "tests/run.sh"),
    "a turngate gate": Layout("turngate gate until --promise x -- hooks/x.sh", "hooks/x.sh", ("hooks/y.sh",)),
}
TOOLS = {
    "pytest": "pytest -q tests/test_app.py",
    "pytest in uv": "cd . && CI=1 timeout 60 uv run pytest tests/test_app.py -x",
    "pytest in python": f"python3 -m pytest tests {ENTRY}",
    "ruff": f"ruff check src {ENTRY} && ruff format --check {ENTRY}",
    "eslint": "npx eslint --max-warnings 0 src/app.py src",
    "make": "make test",
    "npm": "npm test -- tests/test_app.py",
    "grep": f"! grep -rn TODO {ENTRY} README.md",
    "jq": "jq -e .ok package.json",
    "a document": "my-check README.md package.json",
    "tests": "python3 tests/test_app.py && bash tests/test_cli.sh && node test.js",
    "tasks of Deno and Bun": "deno task test && bun run test && bun run build",
    "a program that was built": "node build/out.js && ./build/app --check",
    "code of the project": f"python3 {ENTRY} --self-check",
}


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def make(project: Path, files: Mapping[str, str], text: str) -> None:
    write(project, dict(files))
    for name in CODE:
        (project / name).chmod(0o644)
    write_settings(project, "turngate", stop_settings(command(text, id="x")))
    approve_all(project)


def pending(project: Path) -> str | None:
    whys = [hook.why for hook in review_project(str(project), files=LOCAL).hooks]
    return next(filter(None, whys), None)


@contextmanager
def edited(project: Path, *names: str) -> Iterator[None]:
    paths = [project / name for name in names]
    before = {path: path.read_text() for path in paths if path.exists()}
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# edited\n")
    yield
    for path in paths:
        path.unlink()
    for path, text in before.items():
        path.write_text(text)


def effects(edits: tuple[str, ...], project: Path) -> dict[str, str | None]:
    """Return why the hook is pending after each edit."""
    found = {}
    for edit in edits:
        with edited(project, edit):
            found[edit] = pending(project)
    return found


def ended(edits: tuple[str, ...], project: Path) -> dict[str, str]:
    verbs = {edit: "changed" if (project / edit).exists() else "added" for edit in edits}
    return {edit: f"{edit} was {verb} after it was approved" for edit, verb in verbs.items()}


@pytest.mark.req("X-13")
@pytest.mark.parametrize("name", LAYOUTS)
def test_an_approval_ends_with_an_edit_of_the_hook_and_with_no_other(name: str, project: Path) -> None:
    layout = LAYOUTS[name]
    make(project, {**CODE, **layout.others, layout.script: layout.content}, layout.text)
    beside = () if layout.text == "true" else (".claude/hooks/format.sh",)
    edits = (layout.script, *layout.ends, *beside)
    assert effects(edits, project) == ended(edits, project)
    with edited(project, *WORK):
        assert pending(project) is None


@pytest.mark.req("X-13")
def test_every_file_of_the_folders_of_hooks_is_part_of_each_approval(project: Path) -> None:
    make(project, {**CODE, "check.sh": ""}, "sh check.sh")
    edits = (
        *(
            ".claude/hooks/format.sh",
            ".claude/hooks/new.py",
            ".claude/hooks/lib/x.sh",
            ".claude/hooks/package.json",
        ),
        *(".turngate/x.sh", ".turngate/config.yml", ".mux/x", ".claude/hooks/state/__init__.py"),
    )
    assert effects(edits, project) == ended(edits, project)


def test_the_hooks_of_another_program_are_not_part_of_a_command_that_names_no_file(project: Path) -> None:
    make(project, CODE, "npm test")
    edits = (".claude/hooks/format.sh", ".claude/hooks/new.py", ".turngate/x.sh")
    changed = {".turngate/x.sh": ".turngate/x.sh was added after it was approved"}
    assert effects(edits, project) == {**dict.fromkeys(edits), **changed}


def test_a_module_beside_a_script_in_the_root_does_not_take_the_place_of_the_standard_library(
    project: Path,
) -> None:
    make(project, {**CODE, "done.py": "import json"}, "python3 done.py")
    edits = ("done.py", "json.py", "json/__init__.py")
    assert effects(edits, project) == ended(edits, project)
    assert effects(("helper.py",), project) == {"helper.py": None}


@pytest.mark.req("X-13")
@pytest.mark.parametrize("text", TOOLS.values(), ids=TOOLS)
def test_what_a_tool_checks_does_not_end_its_approval(text: str, project: Path) -> None:
    make(project, CODE, text)
    with edited(project, *WORK):
        assert pending(project) is None


def test_the_configuration_that_a_tool_is_given_is_part_of_its_approval(project: Path) -> None:
    files = {**CODE, "config/ruff.toml": "", "config/other.toml": ""}
    make(project, files, "ruff check --config=config/ruff.toml src")
    assert effects(("config/ruff.toml", "config/other.toml"), project) == {
        "config/ruff.toml": "config/ruff.toml was changed after it was approved",
        "config/other.toml": None,
    }


@pytest.mark.req("X-13")
def test_a_plugin_in_the_project_and_one_elsewhere(project: Path, tmp_path: Path, home: Path) -> None:
    hooks = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/NAME/x.sh"}]}]}}'
    for root, name in ((project / "plugin", "hooks"), (tmp_path / "plugin", "scripts")):
        write(
            root,
            {
                "hooks/hooks.json": hooks.replace("NAME", name),
                f"{name}/x.sh": ". lib.sh\n",
                f"{name}/lib.sh": "",
            },
        )
    folders = ["plugin", str(tmp_path / "plugin")]
    write_settings(project, "turngate", {"turngate": {"pluginDirs": folders}})
    approve_all(project)
    outside = f"{tmp_path}/plugin/scripts"
    edits = ("plugin/hooks/x.sh", "plugin/hooks/new.py", f"{outside}/x.sh", f"{outside}/lib.sh")
    assert effects(edits, project) == ended(edits, project)
    assert effects(("plugin/README.md", f"{outside}/other.sh"), project) == {
        "plugin/README.md": None,
        f"{outside}/other.sh": None,
    }
