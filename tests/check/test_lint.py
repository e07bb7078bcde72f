"""What `turngate check` says beyond plain mistakes, and, as important, what it keeps quiet about."""

import os
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.builders import script, settings
from tests.support.measures import cpu_limit
from turngate.check.command_steps import MAX_COMMAND_CHARS
from turngate.check.commands import MAX_SCRIPT_BYTES, quote_path
from turngate.check.lint import MAX_LINT_PROBLEMS, lint
from turngate.core.dialect import CLAUDE, DIALECTS, MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import AgentHook, CommandHook, GateHook, Hook, HttpHook, PromptHook
from turngate.core.settings import Problem, Rule, Settings
from turngate.extra_install import install_command

FILE, INDEX = ".claude/settings.json", "[0].hooks[0]"

PROGRAMS = "bash cat curl date diff docker eslint find git grep jq ls make node npm npx pytest python python3 sed sh tail tee uv"


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every machine the same programs."""
    for name in PROGRAMS.split():
        script(tmp_path / "bin" / name, "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


BASH = "uses bash syntax, but /bin/sh runs it"
BASH_HINT = 'add "shell": "bash", or move it into a script that begins with #!/usr/bin/env bash'


@pytest.fixture(autouse=True)
def _usual_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put programs into the PATH that the hooks in these tests use and this machine may not have."""
    for name in ("curl", "git", "make", "npm", "npx", "pytest", "python3"):
        script(tmp_path / "bin" / name, "")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def problem(message: str, field: str = "command", event: str = "Stop", **fields: Any) -> Problem:
    return Problem(
        **{"severity": "warning", **fields}, file=FILE, event=event, index=INDEX, field=field, message=message
    )


def look(
    hook: Hook | str, project: Path, *, event: str = "Stop", dialect: Dialect = TURNGATE, **fields: Any
) -> list[Problem]:
    hook = CommandHook(hook, **fields) if isinstance(hook, str) else hook
    rule = Rule(event, hook, None, "project", FILE, "claude", INDEX)
    return list(lint(Settings(rules=(rule,), dialect=dialect), str(project)))


def relative(path: str, project_path: str) -> Problem:
    hint = f'write "$CLAUDE_PROJECT_DIR"/{project_path}'
    message = f"{path} is a relative path: Turngate runs hooks in the project's folder, Claude Code in its current one"
    return problem(message, hint=hint, severity="note")


def missing(path: str, consequence: str = "fails", event: str = "Stop") -> Problem:
    said = f"{path} does not exist, so the hook {consequence} at every run"
    return problem(said, severity="error", event=event)


def unquoted(name: str) -> Problem:
    more = "" if name.endswith("_PATH") else "/…"
    hint = f'write "${name}"{more} with the double quotes (in JSON: \\"${name}\\"{more})'
    return problem(f"${name} is not quoted: a space in the path would break it", hint=hint, severity="note")


# Bash in sh


@pytest.mark.parametrize(
    "command",
    [
        "[[ -f x ]] && make",
        "test -d src && [[ -f x ]]",
        "if [[ -f x ]]; then make; fi",
        "diff <(ls a) <(ls b)",
        "make | tee >(cat)",
        "make &> log",
        "make &>> log",
        "grep x <<< text",
        "set -o pipefail; make | tail",
        "set -euo pipefail; make",
        "source env.sh; make",
        "cd x && source env.sh",
        "function f { make; }",
        "cd src\nsource env.sh",
        "make\nset -o pipefail",
        "shopt -s globstar; ls",
        "declare -A x",
        "pushd src && make",
        "echo ${x^^}",
        "echo ${x,,}",
        "echo ${x//a/b}",
        "files=(a b)",
        "make; files=(a b)",
    ],
)
def test_bash_syntax_that_sh_would_read_is_warned_of(project: Path, command: str) -> None:
    for folder in ("x", "src"):
        (project / folder).mkdir()
    expected = [problem(BASH, hint=BASH_HINT)]
    assert look(command, project) == expected
    assert look(command, project, shell="sh") == expected


@pytest.mark.parametrize("command", ["[[ -f x ]] && make", "source env.sh; make", "diff <(ls a) <(ls b)"])
def test_bash_may_read_bash_syntax(project: Path, command: str) -> None:
    assert look(command, project, shell="bash") == []


@pytest.mark.parametrize(
    "command",
    [
        "bash -c '[[ -f x ]]'",
        'bash -c "source env.sh && make"',
        "docker run img bash -c 'set -o pipefail'",
        "echo '[[ x ]]'",
        'echo "a &> b"',
        r'echo "\"[[ x ]]\""',
        "[ -f x ] && make",
        "make > log 2>&1",
        "make >log 2>&1 &",
        "cat <<EOF\nx\nEOF",
        ". ./env.sh",
        "f() { make; }; f",
        "echo ${x:-a} ${x%/*} ${#x}",
        "grep [[:space:]] x",
        'grep "[[:space:]]" x',
        "set -eu; make",
        "echo $((1 + 2))",
        "(make; make test)",
        "echo resource allocation",
        "make functional tests",
        "X=1 make",
    ],
)
def test_what_every_shell_reads_is_no_bash_syntax(project: Path, command: str) -> None:
    assert look(command, project) == []


@pytest.mark.parametrize(
    "command",
    [
        "grep -rn function src",
        "find source -name x",
        "git log --source --all",
        "jq -e .source package.json",
        "echo the source was checked",
    ],
)
def test_a_word_that_means_something_to_bash_is_no_syntax_in_the_place_of_an_argument(
    project: Path, command: str
) -> None:
    assert look(command, project) == []


# Variables


@pytest.mark.parametrize("family", ["CLAUDE", "MUX", "TURNGATE"])
@pytest.mark.parametrize("variable", ["PROJECT_DIR", "TRANSCRIPT_PATH"])
def test_a_path_in_a_variable_needs_quotes(project: Path, family: str, variable: str) -> None:
    name = f"{family}_{variable}"
    script(project / "hooks" / "x.sh", "")
    for command in (
        f"${name}/hooks/x.sh",
        f"${{{name}}}/hooks/x.sh",
        f"bash ${name}/hooks/x.sh",
        f'echo "x" ${name}',
        f"cd ${name} && make",
    ):
        assert look(command, project, env={name: str(project)}) == [unquoted(name)]


@pytest.mark.parametrize("name", ["CLAUDE_PROJECT_DIR", "MUX_TRANSCRIPT_PATH", "TURNGATE_PROJECT_DIR"])
def test_a_variable_in_quotes_is_fine(project: Path, name: str) -> None:
    for place in ("x.sh", "hooks/x.sh"):
        script(project / place, "")
    for command in (
        f'"${name}"/hooks/x.sh',
        f'"${name}/hooks/x.sh"',
        f'bash "${{{name}}}/x.sh" --all',
        f'cd "${name}" && make',
        f"echo '${name}'",
    ):
        assert look(command, project) == []


def test_an_unquoted_variable_with_a_space_in_it_is_an_error(tmp_path: Path) -> None:
    project = tmp_path / "my project"
    script(project / "x.sh", "")
    hint = 'write "$CLAUDE_PROJECT_DIR"/… with the double quotes (in JSON: \\"$CLAUDE_PROJECT_DIR\\"/…)'
    message = f"$CLAUDE_PROJECT_DIR is not quoted, and there is a space in {project}, so the hook fails at every run"
    assert look("$CLAUDE_PROJECT_DIR/x.sh", project) == [problem(message, hint=hint, severity="error")]
    assert look('"$CLAUDE_PROJECT_DIR"/x.sh', project) == []


@pytest.mark.parametrize(
    "command", ["$CLAUDE_SOMETHING_NEW/x", "$(pwd)/x", "${A:-$B}/x", "~other/x", "x/*.sh", "$1/x"]
)
def test_what_only_a_run_knows_is_not_guessed(project: Path, command: str) -> None:
    assert look(command, project) == []


def test_the_shell_does_not_split_what_is_assigned(project: Path) -> None:
    assert look("PATH=$CLAUDE_PROJECT_DIR/node_modules/.bin:$PATH build .", project) == []


# Paths

RELATIVE: Mapping[str, tuple[str, str]] = {  # command: the path in it, and the same from the project's folder
    "./check.sh": ("./check.sh", "check.sh"),
    "./check.sh --all": ("./check.sh", "check.sh"),
    "scripts/check.sh": ("scripts/check.sh", "scripts/check.sh"),
    ".claude/hooks/check.sh": (".claude/hooks/check.sh", ".claude/hooks/check.sh"),
    "bash scripts/check.sh": ("scripts/check.sh", "scripts/check.sh"),
    "sh ./check.sh": ("./check.sh", "check.sh"),
    "python3 scripts/check.py --fast": ("scripts/check.py", "scripts/check.py"),
    "python scripts/check.py": ("scripts/check.py", "scripts/check.py"),
    "node scripts/check.js": ("scripts/check.js", "scripts/check.js"),
    "uv run scripts/check.py": ("scripts/check.py", "scripts/check.py"),
    "scripts/check.sh && make": ("scripts/check.sh", "scripts/check.sh"),
}


@pytest.mark.parametrize(("command", "paths"), RELATIVE.items(), ids=RELATIVE)
def test_a_relative_path_works_from_one_folder_only(
    project: Path, command: str, paths: tuple[str, str]
) -> None:
    path, from_project = paths
    assert look(command, project, event="PostToolUse") == [missing(path, event="PostToolUse")]
    script(project / path, "#!/bin/sh\n")
    assert look(command, project) == [relative(path, from_project)]


@pytest.mark.parametrize(
    ("command", "consequence"),
    [
        ("python3 gone", "blocks"),
        ("env python gone", "blocks"),
        ("perl gone", "blocks"),
        ("cd . && python3 gone", "blocks"),
        ("sh gone", "fails or blocks"),
        ("uv run --script gone", "fails or blocks"),
        ("bash gone", "fails"),
        ("ruby gone", "fails"),
        ("python3 gone 2>/dev/null", "fails"),
        ("python3 gone; true", "fails"),
        ("./gone", "fails"),
    ],
)
def test_an_interpreter_that_ends_with_2_without_its_script_blocks_but_not_at_a_stop(
    project: Path, tmp_path: Path, command: str, consequence: str
) -> None:
    for name in ("perl", "ruby"):
        script(tmp_path / "bin" / name, "")
    path = "./gone" if command.startswith("./") else "gone"
    event = "PreToolUse"
    assert look(command, project, event=event) == [missing(path, consequence, event=event)]
    assert look(command, project, event=event, blocking=True) == [missing(path, event=event)]
    for dialect in (TURNGATE, CLAUDE):
        assert look(command, project, dialect=dialect) == [missing(path)]


def test_a_hook_with_arguments_denies_without_its_script(project: Path) -> None:
    found = look("python3", project, args=("gone",), event="PreToolUse")
    assert found == [missing("gone", "blocks", event="PreToolUse")]


EMPTY = "so what the hook reads from it is empty at every run"


@pytest.mark.parametrize(
    "command",
    [
        "test -z $(gti status)",
        'test -z "$(gti status --short "src dir")" || exit 1',
        "echo `gti status` >&2",
        'cat >"`gti path`"',
        "X=$(gti status)",
        "X=$(cat x | gti status) make",
        'if [ -n "$(gti status)" ]; then echo dirty >&2; exit 2; fi',
        "exit $(gti status)",
    ],
)
def test_a_missing_program_in_a_substitution_is_reported(project: Path, command: str) -> None:
    said = f"the program gti is not in the PATH, {EMPTY}"
    hint = "install gti, or correct the name"
    path = script(project / "gate.sh", f"#!/bin/sh\n{command}\n")
    for text, where in ((command, ""), (str(path), f"{path}: ")):
        expected = problem(where + said, hint=hint, severity="error")
        assert [p for p in look(text, project) if p.severity == "error"] == [expected]


def test_a_missing_script_in_a_substitution_is_reported(project: Path) -> None:
    expected = problem(f"./gone.sh does not exist, {EMPTY}", severity="error")
    assert look("echo $(./gone.sh --all) >&2", project) == [expected]


@pytest.mark.parametrize(
    "command",
    [
        "echo '$(gti)' \"\\$(gti)\"",
        "echo $(git status) `git diff`",
        "X=$(gti status) || true",
        "X=$(gti status || true)",
        "X=$(gti status 2>/dev/null)",
        "command -v gti && X=$(gti status)",
        "X=$(command -v gti)",
        "f() { :; }; X=$(f)",
        "echo $((1 + 2)) $(cd src && ./x) $(<file)",
        'if command -v gti; then X="$(gti)"; fi',
    ],
)
def test_a_substitution_that_may_be_empty_is_not_reported(project: Path, command: str) -> None:
    assert [p for p in look(command, project) if p.severity == "error"] == []


def test_a_command_of_powershell_is_not_read_and_needs_powershell(project: Path, tmp_path: Path) -> None:
    command = "if (Test-Path $env:X) { & ./gone.ps1 } else { [[ }"
    message = "the program pwsh, which `shell` needs, is not in the PATH, so the hook fails at every run"
    expected = [problem(message, "shell", hint="install PowerShell", severity="error")]
    assert look(command, project, shell="powershell") == expected
    script(tmp_path / "bin" / "pwsh", "")
    assert look(command, project, shell="powershell") == []


def test_a_relative_path_after_a_cd_is_anchored(project: Path) -> None:
    script(project / "check.sh", "#!/bin/sh\n")
    assert look('cd "$CLAUDE_PROJECT_DIR" && ./check.sh', project) == []


@pytest.mark.parametrize(
    ("extra", "hint"),
    [(None, install_command("http")), (ModuleType("h11"), None)],
    ids=["without", "with"],
)
def test_an_http_hook_needs_its_library(
    project: Path, monkeypatch: pytest.MonkeyPatch, extra: ModuleType | None, hint: str | None
) -> None:
    monkeypatch.setitem(sys.modules, "h11", extra)
    if extra is not None:
        extra.__spec__ = ModuleSpec("h11", None)
    message = "needs a library that is not installed, so the hook fails at every run"
    expected = [problem(message, "type", hint=hint, severity="error")] if hint else []
    assert look(HttpHook("https://a.example/x"), project) == expected


def test_a_script_that_is_not_there_fails_at_every_run(project: Path) -> None:
    path = project / "check.sh"
    assert look(str(path), project) == [missing(str(path))]
    assert look(f"bash {path} --all", project) == [missing(str(path))]
    script(path, "")
    assert look(str(path), project) == look(f"bash {path} --all", project) == []


def test_a_script_in_the_projects_folder_must_be_there(project: Path) -> None:
    command = 'bash "$CLAUDE_PROJECT_DIR"/hooks/gone.sh'
    assert look(command, project) == [missing("hooks/gone.sh")]
    script(project / "hooks" / "gone.sh", "")
    assert look(command, project) == []


@pytest.mark.parametrize("enabled", [True, False])
def test_a_disabled_hook_is_not_linted(project: Path, enabled: bool) -> None:
    expected = [missing("/no/such/script")] if enabled else []
    assert look("/no/such/script", project, enabled=enabled) == expected


def test_a_program_without_a_shell_must_be_there_too(project: Path) -> None:
    for path in ("scripts/check", str(project / "check")):
        assert look(path, project, args=("--all",)) == [missing(path)]
        script(project / path, "")
        assert look(path, project, args=("--all",)) == []


@pytest.mark.parametrize("command", ["make", "${CLAUDE_PROJECT_DIR}/check"])
def test_without_a_shell_syntax_means_nothing(project: Path, command: str) -> None:
    script(project / "check", "")
    assert look(command, project, args=("&>", "$CLAUDE_PROJECT_DIR", "a/b")) == []


def test_a_program_that_is_known_and_not_installed_has_the_right_name(project: Path) -> None:
    message = "the program mvn is not in the PATH, so the hook fails at every run"
    assert look("mvn", project, args=("test",)) == [problem(message, hint="install mvn", severity="error")]


@pytest.mark.parametrize("command", ["[[", "source"])
def test_without_a_shell_there_are_no_builtins(project: Path, command: str) -> None:
    message = f"the program {command} is not in the PATH, so the hook fails at every run"
    expected = problem(message, hint=f"install {command}, or correct the name", severity="error")
    assert look(command, project, args=("x",)) == [expected]


@pytest.mark.parametrize(
    "command",
    [
        "python3 ~/.claude/hooks/x.py",
        "make test",
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/x.sh',
        '"$CLAUDE_PROJECT_DIR/.claude/hooks/x.sh" --all',
        "echo a/b",
        "git diff origin/main --stat",
        "curl https://example.com/x -d @-",
        "cd sub/dir && make",
        "make -C sub/dir all",
        "~/.claude/hooks/x.sh",
        "$HOME/.claude/hooks/x.sh",
        'python3 "$HOME"/x.py',
        "/bin/sh -c 'make test'",
        "/usr/bin/env true",
        "sh -c 'cd a/b && make'",
        "python3 -c 'print(\"a/b\")'",
        "test -f a/b || exit 0",
        "date +%Y/%m/%d",
        "true # see docs/hooks",
        "X=a/b make",
        "X+=a/b Y[1]=c make",
        'X=/a; X+=/b; "$X/c.sh"',
        "X=/a; X[1]=/b; $X/c.sh",
        "ma\\\nke test",
        "echo ok > out/log",
        "sed s/a/b/ file",
        "exit 0",
        "npm ci",
        "npm run dev-report",
        "pytest -q >&2 || exit 2",
    ],
)
def test_ordinary_commands_have_no_problems(project: Path, command: str) -> None:
    for folder in (project, Path.home()):
        script(folder / ".claude" / "hooks" / "x.sh", "")
        script(folder / ".claude" / "hooks" / "x.py", "")
        script(folder / "x.py", "")
    for name in ("a/b", "sub/dir"):
        (project / name).mkdir(parents=True)
    assert look(command, project) == []


def test_an_absolute_script_that_exists_has_no_problem(project: Path) -> None:
    path = script(project / "x.py", "")
    assert look(f"python3 -B {path}", project) == look(f"python3 {path}", project) == []


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("gate.sh", "did you mean .turngate/gate.sh?"),
        ("cd .turngate && gate.sh", "did you mean ./gate.sh?"),
        ("pytets -q", 'install pytets, or correct the name; did you mean "pytest"?'),
        ("zzqqxx", "install zzqqxx, or correct the name"),
        ("cd .turngate && ./gate.sh", "chmod +x .turngate/gate.sh"),
    ],
)
def test_a_program_that_cannot_be_started_has_a_hint_that_helps(
    command: str, hint: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(project / ".turngate" / "gate.sh", "#!/bin/sh\nexit 0\n", 0o644)
    monkeypatch.setenv("PATH", "")
    assert [found.hint for found in look(command, project)] == [hint]


@pytest.mark.parametrize("form", ['"$CLAUDE_PROJECT_DIR"/{name}', "{path}"])
def test_a_script_that_is_not_executable_is_reported(form: str, project: Path) -> None:
    (project / "gate.sh").write_text("grep x y >&2 || exit 2\n")
    name = "gate.sh" if "name" in form else str(project / "gate.sh")
    command = form.format(name="gate.sh", path=project / "gate.sh")
    (found,) = look(command, project)
    assert (found.severity, found.message, found.hint) == (
        "error",
        f"{name} is not executable, so the hook fails at every run",
        f"chmod +x {name}",
    )
    assert look(f"sh {command}", project) == []
    (project / "gate.sh").chmod(0o755)
    assert look(command, project) == []


def test_a_relative_path_is_reported_only_where_the_folder_may_differ(project: Path) -> None:
    script(project / "check.sh", "")
    rules = tuple(
        Rule("Stop", CommandHook("./check.sh"), file=name, family=name) for name in ("claude", "turngate")
    )
    assert [problem.file for problem in lint(Settings(rules=rules), str(project))] == ["claude"]


@pytest.mark.parametrize(
    ("command", "noted"),
    [
        ("pyttest -q", True),
        ("pyttest -q >&2 || exit 2", True),
        ("cd sub && pyttest -q", True),
        ("timeout 30 pyttest", True),
        ("env A=b pyttest", True),
        ("sh -c pyttest", True),
        ("sh -c 'cd sub; pyttest'", True),
        ("sh -c make", False),
        ("exit 0", False),
        ("pyttest -q || true", False),
        ("command -v pyttest && pyttest", False),
        ("[ -x /usr/bin/pyttest ] && pyttest", False),
        ("PATH=/opt/bin:$PATH pyttest", False),
        ("export PATH=/opt/bin:$(cat x); pyttest", False),
        (". ./env.sh; pyttest", False),
        ("if true; then pyttest; fi", False),
    ],
)
def test_a_program_that_is_not_there_is_reported(command: str, noted: bool, project: Path) -> None:
    (project / "sub").mkdir()
    fails = "blocks" if command.endswith("|| exit 2") else "fails"
    message = f"the program pyttest is not in the PATH, so the hook {fails} at every run"
    hint = 'install pyttest, or correct the name; did you mean "pytest"?'
    expected = [problem(message, hint=hint, severity="error")]
    assert look(command, project) == (expected if noted else [])


# Options without a meaning


def as_gate(check: str, words: str | None = None) -> str:
    blocks = "which blocks with the output as the reason"
    entry = f'{{"type": "gate", "command": "{check}"}}'
    return f"write turngate gate -- {words or check}, {blocks}; in .turngate/settings.json: {entry}"


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("pytest -q", as_gate("pytest -q")),
        ("pytest -q >&2", as_gate("pytest -q")),
        ("npm test >&2 || exit 1", as_gate("npm test")),
        ("npm test || exit 1", as_gate("npm test")),
        ("npm test || exit 2", None),
        ("make lint; exit 1", as_gate("make lint")),
        ("cd web && npm test; exit 1", as_gate("cd web && npm test", "'cd web && npm test'")),
        ("make lint; exit $?", None),
        ("make lint; exit 0", None),
        ("pytest -q 2>&1 | tail -5", as_gate("pytest -q")),
        ("npm test && npm run lint", as_gate("npm test && npm run lint", "'npm test && npm run lint'")),
        ("CI=1 npm test", as_gate("CI=1 npm test", "'CI=1 npm test'")),
        ("cd web && pytest || exit 2", as_gate("cd web && pytest", "'cd web && pytest'")),
        ("test -s X", "write test -s X || { echo 'REASON' >&2; exit 2; }"),
        ("grep -q a b >&2 || exit 2", "write grep -q a b || { echo 'REASON' >&2; exit 2; }"),
        ("git diff --quiet || exit 1", "write git diff --quiet || { echo 'REASON' >&2; exit 2; }"),
        ("echo 'no changelog'; exit 2", "write echo 'no changelog' >&2"),
        ("test -s X || { echo 'not yet'; exit 2; }", "write echo 'not yet' >&2"),
        ("exit 2", "print the reason first: echo 'REASON' >&2; exit 2"),
        ("echo no >&2; exit 2", "block on a condition: CHECK || { echo 'REASON' >&2; exit 2; }"),
    ],
)
def test_the_hint_is_a_gate_that_blocks_with_a_reason(project: Path, command: str, hint: str | None) -> None:
    (project / "web").mkdir()
    assert [problem.hint for problem in look(command, project)] == ([hint] if hint else [])


def test_in_a_file_of_turngate_the_hint_is_an_entry(project: Path) -> None:
    rule = Rule("Stop", CommandHook("npm test && npm run lint"), file="x", family="turngate")
    assert [problem.hint for problem in lint(Settings(rules=(rule,)), str(project))] == [
        'write {"type": "gate", "command": "npm test && npm run lint"}, which blocks with the output as the reason'
    ]


def test_before_a_tool_and_in_a_script_the_hint_is_a_command(project: Path) -> None:
    path = script(project / "check.sh", "#!/bin/sh\npytest -q\n")
    blocks = "which blocks with the output as the reason"
    found = [*look("pytest && npm test", project, event="PreToolUse"), *look(str(path), project)]
    assert [problem.hint for problem in found] == [
        f"write (pytest && npm test) >&2 || exit 2, {blocks}",
        f"write COMMAND >&2 || exit 2, {blocks}",
    ]


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("pytest -q", None, None),
        ("npm test && npm run lint", None, None),
        ("pytest -q >&2 || exit 2", None, None),
        ("make", None, None),
        ("cargo test", "the program cargo is not in the PATH, so the gate cannot run", "install cargo"),
        ("npm run dev", "npm run dev never ends, so the gate times out at every run", None),
        (
            "pytest -q | tail -5",
            "the exit code is that of tail, not of pytest -q: this hook can never block",
            'write {"type": "gate", "command": "pytest -q"}, which blocks with the output as the reason',
        ),
        (
            "pytest -q || true",
            "`|| true` hides the result of pytest -q: this hook can never block",
            "remove `|| true`",
        ),
        (
            "make lint; exit 1",
            "`exit 1` at the end hides the result of make lint: this gate blocks every time",
            "remove `exit 1`",
        ),
        (
            "pytest -q; exit 0",
            "`exit 0` at the end hides the result of pytest -q: this hook can never block",
            "remove `exit 0`",
        ),
    ],
)
def test_the_command_of_a_gate_is_read(
    project: Path, command: str, message: str | None, hint: str | None
) -> None:
    rule = Rule("Stop", GateHook(command=command), file="x", family="turngate")
    found = [(each.message, each.hint) for each in lint(Settings(rules=(rule,)), str(project))]
    assert found == ([(message, hint)] if message else [])


@pytest.mark.parametrize(
    ("files", "message", "hint"),
    [
        ({"package.json": '{"scripts": {"test": "jest"}}'}, None, None),
        (
            {},
            "finds no command for tests in this project, so the gate cannot run",
            'name it: {"type": "gate", "gate": "tests", "command": "COMMAND"}',
        ),
        (
            {"Cargo.toml": ""},
            "runs `cargo test` (Cargo.toml), and cargo is not there, so the gate cannot run",
            "install cargo",
        ),
    ],
)
def test_a_project_check_without_its_command_or_its_program_is_reported(
    project: Path, files: dict[str, str], message: str | None, hint: str | None
) -> None:
    for name, text in files.items():
        (project / name).write_text(text)
    rule = Rule("Stop", GateHook(gate="tests"), file="x", family="turngate")
    found = [(each.message, each.hint, each.severity) for each in lint(Settings(rules=(rule,)), str(project))]
    assert found == ([(message, hint, "error")] if message else [])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("turngate gate todos", None),
        ("turngate gate -- pytest -q", None),
        ("python3 -m turngate gate clean", None),
        ("turngate gate tods", "'tods' is not a gate; did you mean todos?"),
        ("turngate gate todos --strickt", "the gate todos has no option --strickt; did you mean --strict?"),
        ("turngate gate --", "there is no command after --"),
    ],
)
def test_wrong_words_after_turngate_gate_are_reported(
    project: Path, tmp_path: Path, command: str, message: str | None
) -> None:
    script(tmp_path / "bin" / "turngate", "")
    said = f"cannot be read by `turngate gate`, so the gate cannot run: {message}"
    assert look(command, project) == ([problem(said, severity="error")] if message else [])


def test_the_program_of_a_gate_with_arguments_is_looked_for(project: Path) -> None:
    hooks = (GateHook(command="cargo", args=("test",)), GateHook(command="pytest", args=("-q",)))
    rules = tuple(Rule("Stop", hook, file="x", family="turngate") for hook in hooks)
    assert [each.message for each in lint(Settings(rules=rules), str(project))] == [
        "the program cargo is not in the PATH, so the gate cannot run"
    ]


@pytest.mark.parametrize(
    ("command", "check"),
    [
        ("cargo test >&2 || exit 2", "cargo test"),
        ("cargo test || { echo 'cargo test fails' >&2; exit 2; }", "cargo test"),
        ("npm test && cargo test >&2 || exit 2", "npm test && cargo test"),
        ("cargo test >&2", None),
        ("if ! cargo test; then echo no >&2; exit 2; fi", None),
    ],
)
def test_a_gate_is_suggested_where_a_missing_program_blocks(
    project: Path, command: str, check: str | None
) -> None:
    rule = Rule("Stop", CommandHook(command), file="x", family="turngate")
    [found] = [each for each in lint(Settings(rules=(rule,)), str(project)) if each.severity == "error"]
    entry = f'{{"type": "gate", "command": "{check}"}}, which never blocks for a missing program'
    assert found.hint == (f"install cargo; or write {entry}" if check else "install cargo")


@pytest.mark.parametrize("event", ["Stop", "SubagentStop"])
@pytest.mark.parametrize(
    ("dialect", "does"),
    [
        (TURNGATE, "runs at every stop"),
        (MUX, "runs at every stop"),
        (CLAUDE, "never runs at a stop"),
    ],
    ids=[*DIALECTS],
)
@pytest.mark.parametrize("kind", [CommandHook, PromptHook, AgentHook, HttpHook])
def test_a_condition_has_no_effect_at_a_stop(
    project: Path, kind: Any, dialect: Dialect, does: str, event: str
) -> None:
    expected = problem(
        f"has no effect on {event}: the hook {does}", field="if", event=event, hint="remove it"
    )
    assert look(kind("https://x", condition="Bash(*)"), project, event=event, dialect=dialect) == [expected]


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        (
            "Bash(a *)|Bash(b *)",
            "is not one permission rule such as 'Bash(git *)', so the hook fails at every call",
            "write one hook for each rule",
        ),
        (
            "Edit($X/**)",
            "never matches: `$`, a backslash and a leading `!` have no meaning in a path",
            None,
        ),
        ("WebFetch(a.com)", "never matches: it must be domain:HOST", None),
    ],
)
def test_a_condition_that_is_not_one_rule_or_never_matches_is_named(
    project: Path, condition: str, message: str, hint: str | None
) -> None:
    expected = problem(
        f"is {condition!r}, which {message}", field="if", event="PreToolUse", hint=hint, severity="error"
    )
    assert look("make", project, event="PreToolUse", condition=condition) == [expected]


def test_a_condition_before_a_tool_is_fine(project: Path) -> None:
    assert look("make", project, event="PreToolUse", condition="Bash(*)") == []


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_outcomes_have_an_effect_on_subagent_stop_only(project: Path, event: str) -> None:
    expected = problem(f"has no effect on {event}", field="outcomes", event=event, hint="remove it")
    assert look("make", project, event=event, outcomes=("ok", "error")) == [expected]
    assert look(PromptHook("done?", outcomes=("error",)), project, event=event) == [expected]
    assert look("make", project, event=event, outcomes=("ok",)) == []
    assert look("make", project, event="SubagentStop", outcomes=("ok", "error")) == []


# All together


def test_all_problems_are_reported_in_the_order_of_the_hooks(project: Path) -> None:
    first = Rule(
        "Stop", CommandHook("[[ -f $MUX_PROJECT_DIR/x ]]", condition="x"), file="a", index="[0].hooks[0]"
    )
    second = Rule("SubagentStop", CommandHook("./check.sh"), file="b", family="claude", index="[1].hooks[2]")
    found = lint(Settings(rules=(first, second)), str(project))
    assert [(p.severity, str(p)) for p in found] == [
        (
            "warning",
            "a: Stop[0].hooks[0].if: has no effect on Stop: the hook runs at every stop",
        ),
        ("warning", f"a: Stop[0].hooks[0].command: {BASH}"),
        (
            "note",
            "a: Stop[0].hooks[0].command: $MUX_PROJECT_DIR is not quoted: a space in the path would break it",
        ),
        (
            "error",
            "b: SubagentStop[1].hooks[2].command: ./check.sh does not exist, so the hook fails at every run",
        ),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("#!/bin/sh\ngrep x y >&2 || exit 2\n", []),
        (
            "#!/bin/shh\n",
            ["error: .mux/stop begins with #!/bin/shh, which does not exist, so the hook fails at every run"],
        ),
        (
            "#!/bin/sh\ngrep -q x y || exit 1\n",
            [
                "warning: .mux/stop: ends with exit code 1 when grep -q x y fails, and only exit code 2 blocks: this hook can never block"
            ],
        ),
    ],
    ids=["good", "interpreter", "exit 1"],
)
def test_a_script_hook_is_read(project: Path, text: str, found: list[str]) -> None:
    path = script(project / ".mux" / "stop", text)
    rule = Rule("Stop", CommandHook(str(path), args=()), source="script", file=".mux/stop")
    assert [f"{p.severity}: {p.message}" for p in lint(Settings(rules=(rule,)), str(project))] == found


def test_prompts_and_addresses_are_no_commands(project: Path) -> None:
    hooks = (
        PromptHook("[[ $CLAUDE_PROJECT_DIR/x ]]"),
        AgentHook("./check.sh"),
        HttpHook("http://localhost/a/b"),
    )
    assert lint(settings(*hooks), str(project)) == ()


def test_a_url_that_is_not_allowed_is_reported(project: Path) -> None:
    said = (
        "http://a.example/x is not encrypted: use https, or allow it in `turngate.allowedUrls` of your user settings; "
        "so the hook fails at every run"
    )
    assert look(HttpHook("http://a.example/x"), project) == [problem(said, "url", severity="error")]
    assert look(HttpHook("https://a.example/x"), project) == []


def test_a_variable_in_a_header_must_be_allowed(project: Path) -> None:
    headers = {"Authorization": "Bearer ${TOKEN} $OTHER", "X-Again": "$TOKEN"}
    hook = HttpHook("https://a.example/x", headers=headers, allowed_env_vars=("OTHER",))
    said = "$TOKEN is not among `allowedEnvVars`, so it is replaced by an empty string"
    assert look(hook, project) == [problem(said, "headers", hint='add "TOKEN" to `allowedEnvVars`')]


def test_a_hook_from_python_has_no_file(project: Path) -> None:
    assert [p.file for p in lint(settings("[[ x ]]"), str(project))] == ["Python"]


@pytest.mark.parametrize("part", ['\\"', "a=b ", "a/", "; ", "$((", "'\"", "{1..", "x=(", "\t", "do "])
@pytest.mark.parametrize("start", ["", '"', "bash "])
def test_a_very_long_command_is_linted_in_bounded_time(project: Path, start: str, part: str) -> None:
    with cpu_limit(10):
        look(start + part * (60_000 // len(part)), project)


@pytest.mark.parametrize("part", ["a;", "a && ", "a | ", " ", "echo ", "if a;then fi;"])
@pytest.mark.parametrize("start", ["", "echo x\n", "if "])
def test_a_very_long_script_is_linted_in_bounded_time(project: Path, start: str, part: str) -> None:
    path = script(project / "gate.sh", f"#!/bin/sh\n{start}" + part * (125_000 // len(part)))
    with cpu_limit(20):
        look(str(path), project)


@pytest.mark.parametrize(
    "text", ["n" * 100_000, "./" + "n" * 100_000, "exit " + "9" * 100_000, "cd " + "n" * 100_000]
)
def test_a_very_long_word_is_truncated(project: Path, text: str) -> None:
    path = script(project / "gate.sh", f"#!/bin/sh\n{text}\n")
    found = [*look(str(path), project), *look(text[:15_000], project)]
    assert [p for p in found if len(p.message) > 1000 or len(p.hint or "") > 1000] == []


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
@pytest.mark.parametrize(
    "part", ["\n", ";if a;then b;fi", "|| {\n", "grep -qqqqqqqqqqqq ", "npm run -test\n", '\\"']
)
def test_many_long_commands_are_linted_in_bounded_time(project: Path, part: str, event: str) -> None:
    texts = [f"echo {number}{part * (3_980 // len(part))}!" for number in range(1_000)]
    rules = [Rule(event, CommandHook(text), None, "project", FILE, "claude", INDEX) for text in texts]
    with cpu_limit(30):
        lint(Settings(rules=tuple(rules)), str(project))


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
@pytest.mark.parametrize(
    ("shebang", "part"),
    [
        ("#!/bin/sh\n", '\\"'),
        ("#!/bin/sh\n", "'"),
        ("#!/usr/bin/env python3\n", "a" + "()" * 150 + "\n"),
        ("#!/usr/bin/env python3\ndef f():\n" + "    a()\n" * 7_000, "exit(f())\n"),
    ],
)
def test_a_hostile_script_is_linted_in_bounded_time(
    project: Path, shebang: str, part: str, event: str
) -> None:
    path = script(project / "gate", shebang + part * ((125_000 - len(shebang)) // len(part)))
    with cpu_limit(10):
        look(str(path), project, event=event)


def test_variables_that_double_in_each_command_do_not_take_all_memory(project: Path) -> None:
    doubling = ";".join(f"{name}=${before}${before}" for before, name in pairwise("abcdefghijklmnopqrstu"))
    assert look(f"a=xxxxxxxxxxxxxxxx;{doubling};$u", project) == []


def test_a_command_over_the_limit_is_not_checked_and_a_note_says_so(project: Path) -> None:
    long = "[[ " + "x" * MAX_COMMAND_CHARS
    said = "is longer than 10,000 characters, so it is not checked"
    note = problem(said, severity="note", hint="move it into a script")
    assert look(long, project) == look("make", project, args=(long,)) == [note]


def test_a_script_over_the_limit_is_not_checked_and_a_note_says_so(project: Path) -> None:
    large = script(project / "large.sh", "exit 1\n" + "#" * MAX_SCRIPT_BYTES)
    binary = script(project / "program", "\0" * (MAX_SCRIPT_BYTES + 1))
    said = f"{large} is larger than 128 KiB, so it is not checked"
    assert (look(str(large), project), look(str(binary), project)) == ([problem(said, severity="note")], [])


def test_the_hooks_beyond_a_limit_are_not_checked_and_one_note_says_so(project: Path) -> None:
    rules = [
        Rule("Stop", CommandHook("exit 1"), None, "project", FILE, "claude", f"[{number}].hooks[0]")
        for number in range(MAX_LINT_PROBLEMS + 2)
    ]
    found = lint(Settings(rules=tuple(rules)), str(project))
    said = "is not checked, nor are the hooks after it: there are over 500,000 characters of commands, or 200 problems before it"
    assert {p.message for p in found[:-1]} == {EXIT_1.message}
    assert [(p.index, p.severity, p.message) for p in found[MAX_LINT_PROBLEMS:]] == [
        ("[200].hooks[0]", "note", said)
    ]


# Failures that block


ONLY_2 = "and only exit code 2 blocks: this hook can never block"
EXIT_1 = problem(f"ends with exit code 1, {ONLY_2}", hint="write exit 2")


def ignored(field: str, hint: str = "exit with 2 and print the reason on stderr", **fields: Any) -> Problem:
    return problem(
        "has no effect in the dialect claude: a failure of this hook does not block",
        field,
        hint=hint,
        **fields,
    )


@pytest.mark.parametrize("dialect", [TURNGATE, MUX])
@pytest.mark.parametrize("option", [{"on_failure": "block"}, {"blocking": True}])
def test_a_failure_that_blocks_needs_no_exit_code_2(
    project: Path, dialect: Dialect, option: dict[str, Any]
) -> None:
    assert look("exit 1", project, dialect=dialect, **option) == []


def test_the_claude_dialect_ignores_a_failure_that_should_block_a_stop(project: Path) -> None:
    assert look("exit 1", project, dialect=CLAUDE, on_failure="block") == [ignored("onFailure"), EXIT_1]
    assert look("exit 1", project, dialect=CLAUDE, blocking=True) == [ignored("blocking"), EXIT_1]


def test_the_claude_dialect_has_on_failure_for_other_events(project: Path) -> None:
    found = look("make", project, dialect=CLAUDE, event="PreToolUse", blocking=True)
    assert found == [ignored("blocking", 'write "onFailure": "block"', event="PreToolUse")]
    assert look("make", project, dialect=CLAUDE, event="PreToolUse", on_failure="block") == []
    both = look("make", project, dialect=CLAUDE, event="PreToolUse", on_failure="block", blocking=True)
    assert both == []


# Events that cannot block


def in_vain(what: str, event: str, meant: str = "Stop", field: str = "command") -> Problem:
    message = f"{what}, but hooks of {event} cannot block"
    return problem(message, field, event, hint=f'did you mean "{meant}"?')


@pytest.mark.parametrize(
    ("event", "meant"),
    [
        ("SessionEnd", "Stop"),
        ("SessionStart", "Stop"),
        ("StopFailure", "Stop"),
        ("SubagentStart", "SubagentStop"),
    ],
)
def test_a_gate_on_an_event_that_cannot_block_is_named(project: Path, event: str, meant: str) -> None:
    exits = [in_vain("exits with 2", event, meant)]
    assert look("make >&2 || exit 2", project, event=event) == exits
    assert look("make >&2 || { echo no >&2; exit 2; }", project, event=event) == exits
    assert look("if ! make; then echo no >&2; exit 2; fi", project, event=event) == exits
    assert look("bash -c 'make || exit 2'", project, event=event) == exits
    prints = [in_vain("prints a block", event, meant)]
    assert look("""make || echo '{"decision": "block", "reason": "no"}'""", project, event=event) == prints
    assert look("make", project, event=event, blocking=True) == [in_vain("is true", event, meant, "blocking")]
    assert look("make", project, event=event, on_failure="block") == [
        in_vain('is "block"', event, meant, "onFailure")
    ]
    assert look("make", project, event=event, mode="gate") == [in_vain('is "gate"', event, meant, "mode")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gate.sh", "#!/bin/sh\nif [ -f TODO ]; then echo no >&2; exit 2; fi\n"),
        ("gate.py", "#!/usr/bin/env python3\nimport sys\nsys.exit(2 if open('x').read() else 0)\n"),
        ("gate.py", "#!/usr/bin/env python3\nimport sys\nsys.exit(2)\n"),
        ("gate.js", "#!/usr/bin/env node\nprocess.exit(2)\n"),
    ],
)
def test_a_script_that_blocks_at_an_event_that_cannot_block_is_named(
    project: Path, name: str, text: str
) -> None:
    script(project / name, text)
    found = look(f'"$CLAUDE_PROJECT_DIR"/{name}', project, event="SessionEnd")
    assert found == [in_vain(f"{name} exits with 2", "SessionEnd")]


def test_hooks_of_such_an_event_that_do_not_block_are_fine(project: Path) -> None:
    assert look("make test", project, event="SessionEnd") == []
    assert look("echo exit 2", project, event="SessionStart") == []
    assert look("true # exit 2", project, event="SessionStart") == []
    assert look("make || exit 2", project, event="SessionEnd", mode="observe") == []
    assert look("make || exit 2", project, event="SessionEnd", detached=True) == []


def test_a_script_of_several_events_may_block_at_some_of_them(project: Path) -> None:
    knows_event = '#!/bin/sh\nif [ "$(jq -r .hook_event_name)" = Stop ]; then echo no >&2; exit 2; fi\n'
    script(project / "each.sh", knows_event)
    assert look('"$CLAUDE_PROJECT_DIR"/each.sh', project, event="SessionEnd") == []
    by_argument = '#!/bin/sh\nif [ "$1" = stop ]; then echo no >&2; exit 2; fi\n'
    script(project / "by_argument.sh", by_argument)
    assert look('"$CLAUDE_PROJECT_DIR"/by_argument.sh end', project, event="SessionEnd") == []


@pytest.mark.parametrize("command", ["|| { echo; }", "if ! ; then echo; fi", "a || { ; }"])
def test_a_branch_without_a_check_is_not_judged(project: Path, command: str) -> None:
    script(project.parent / "bin" / "a", "")
    assert look(command, project) == []


def test_a_branch_with_an_exit_but_without_a_check_has_no_missing_program(project: Path) -> None:
    found = [
        each.message for text in ("|| { exit 2; }", "if ! ; then exit 2; fi") for each in look(text, project)
    ]
    assert found == ["exits with 2 without a reason on stderr: this hook can never block"] * 2


@pytest.mark.parametrize(
    ("path", "quoted"), [("a/b.sh", "a/b.sh"), ("a b.sh", "'a b.sh'"), ("~/a b.sh", "~/'a b.sh'")]
)
def test_a_path_in_a_hint_can_be_copied(path: str, quoted: str) -> None:
    assert quote_path(path) == quoted
