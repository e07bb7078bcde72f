"""LocalShell: commands with and without a shell, their folder and their environment."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import ask, script
from turngate.core.answers.report_types import Exited
from turngate.core.dialect import CLAUDE, DIALECTS, MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.hook_run import outcome
from turngate.core.verdict.verdict import Continue, Stop
from turngate.ports import HookRunContext
from turngate.shells.local import LocalShell

SAYS_ITS_PARENT = "#!/bin/sh\necho $PPID\n"


def run(command: str, project: Path, **fields: Any) -> Exited:
    return asyncio.run(
        LocalShell().run(
            CommandHook(command, **fields),
            cwd=str(project),
            env=environment(project),
            stdin=b"told\n",
            live=HookRunContext(),
        )
    )


def environment(project: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nowhere", "TURNGATE_PROJECT_DIR": str(project)}


# A plain command needs no shell


@pytest.mark.req("S0-14", "S0-19")
@pytest.mark.parametrize(
    "command",
    [
        "/bin/echo",
        "/bin/echo one two-three --four=4 /five @6 7%",
        "/bin/cat",
        "/bin/false",
        "  /bin/echo   one    two  ",
        "./says.sh one two",
        "folder/../says.sh one",
        "{project}/says.sh one",
        "./missing.sh",
        "/no/such/program --with arguments",
        "./says.sh/below",
        "./plain.sh",
        "./folder",
        "./folder/",
        "./no_shebang.sh one two",
        "./bad_interpreter.sh",
        "./empty.sh",
        "./two.sh",
        "./binary",
        "./loop",
        "/usr/bin/env -u HOME ./says.sh",
        "/usr/bin/setsid ./two.sh",
    ],
)
def test_a_plain_command_behaves_as_with_a_shell(command: str, project: Path) -> None:
    scripts(project)
    command = command.replace("{project}", str(project))
    direct = run(command, project)
    shell = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=project,
        env=environment(project),
        input=b"told\n",
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    code = shell.returncode if shell.returncode >= 0 else 128 - shell.returncode
    assert (direct.code, direct.stdout, direct.stderr) == (code, shell.stdout.decode(), shell.stderr.decode())


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        " env  -u HOME says.sh one --two=2 ",
        "says.sh one two",
        "missing.sh one",
        "plain.sh",
        "folder",
        "no_shebang.sh one two",
        "bad_interpreter.sh",
        "empty.sh",
        "two.sh",
        "binary",
        "loop",
        "setsid two.sh",
        "echo -n one",
        "printf %s one",
        "test -d folder",
        "cd folder",
        "exit 3",
        "exec two.sh",
        "command two.sh",
        "if",
        "done",
        "time",
        "A=1 two.sh",
    ],
)
@pytest.mark.parametrize(
    "path", ["{project}:{path}", "{path}:{project}", "folder:{project}:{path}", ":{path}"]
)
def test_a_program_that_is_found_on_the_path_behaves_as_with_a_shell(
    command: str, path: str, project: Path
) -> None:
    scripts(project)
    env = {**environment(project), "PATH": path.format(project=project, path=os.environ["PATH"])}
    hook = CommandHook(command)
    direct = asyncio.run(
        LocalShell().run(hook, cwd=str(project), env=env, stdin=b"told\n", live=HookRunContext())
    )
    shell = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=project,
        env=env,
        input=b"told\n",
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    code = shell.returncode if shell.returncode >= 0 else 128 - shell.returncode
    assert (direct.code, direct.stdout, direct.stderr) == (code, shell.stdout.decode(), shell.stderr.decode())


# dash drops the first variable, and bash counts the second.
TRACES = {"a.b": "1", "SHLVL": "5"}


@pytest.mark.parametrize(("dialect", "is_direct"), [(TURNGATE, True), (MUX, True), (CLAUDE, False)])
def test_a_program_on_the_path_needs_no_shell_except_in_the_claude_dialect(
    dialect: Dialect, is_direct: bool, project: Path
) -> None:
    hook = CommandHook("printenv a.b SHLVL", env=TRACES)
    verdict = asyncio.run(ask(project, hook, dialect=dialect))
    report = verdict.runs[0].report
    assert isinstance(report, Exited)
    assert (report.stdout == "1\n5\n") is is_direct


def test_a_function_that_a_shell_would_import_is_left_to_the_shell(project: Path) -> None:
    env = {**environment(project), **TRACES, "BASH_FUNC_printenv%%": "() { echo mine\n}"}
    hook = CommandHook("printenv a.b SHLVL")
    ended = asyncio.run(LocalShell().run(hook, cwd=str(project), env=env, stdin=b"", live=HookRunContext()))
    assert ended.stdout != "1\n5\n"


def scripts(project: Path) -> None:
    (project / "folder").mkdir()
    script(project / "says.sh", '#!/bin/sh\necho "$0" $# "$@"\ncat\n')
    script(project / "plain.sh", "#!/bin/sh\necho never\n", 0o644)
    script(project / "no_shebang.sh", 'echo "$0" $# "$@"\nexit 5\n')
    script(project / "bad_interpreter.sh", "#!/no/such/interpreter\n")
    script(project / "empty.sh", "")
    script(project / "echo", "#!/bin/sh\nprintf 'not the builtin'\n")
    script(project / "two.sh", "#!/bin/sh\necho 'go on' >&2\nexit 2\n")
    script(project / "killed.sh", "#!/bin/sh\nkill -KILL $$\n")
    script(project / "terminated.sh", "#!/bin/sh\nkill -TERM $$\n")
    (project / "binary").write_bytes(b"\x7fELF\0\0\0\0")
    (project / "binary").chmod(0o755)
    (project / "loop").symlink_to("loop")


@pytest.mark.parametrize(("command", "number"), [("./killed.sh", 9), ("./terminated.sh", 15)])
def test_a_plain_command_that_was_killed_has_the_shells_code_and_tells_its_signal(
    command: str, number: int, project: Path
) -> None:
    """dash would print `Killed`; the report has the signal in a field."""
    scripts(project)
    shell = run(f"{command};", project)
    assert (shell.code, shell.signal) == (128 + number, None)
    assert run(command, project) == Exited(shell.code, signal=number)


@pytest.mark.parametrize(
    ("command", "code", "stderr"),
    [
        ("./missing.sh", 127, "/bin/sh: 1: ./missing.sh: not found\n"),
        ("./plain.sh", 126, "/bin/sh: 1: ./plain.sh: Permission denied\n"),
        ("./folder", 126, "/bin/sh: 1: ./folder: Permission denied\n"),
        ("./bad_interpreter.sh", 127, "/bin/sh: 1: ./bad_interpreter.sh: not found\n"),
    ],
)
def test_the_shell_reports_why_a_plain_command_cannot_be_started(
    command: str, code: int, stderr: str, project: Path
) -> None:
    scripts(project)
    assert run(command, project) == Exited(code, stderr=stderr)


@pytest.mark.parametrize("command", ["./parent.sh", "  ./parent.sh  one", "{project}/parent.sh --a=b"])
def test_a_plain_command_is_our_own_child_process(command: str, project: Path) -> None:
    script(project / "parent.sh", SAYS_ITS_PARENT)
    assert run(command.replace("{project}", str(project)), project) == Exited(0, f"{os.getpid()}\n")


@pytest.mark.parametrize("command", ["./parent.sh; true", "true && ./parent.sh; true", "(./parent.sh); true"])
def test_any_other_command_is_a_child_process_of_a_shell(command: str, project: Path) -> None:
    script(project / "parent.sh", SAYS_ITS_PARENT)
    assert run(command, project).stdout.strip() not in ("", str(os.getpid()))


def test_a_named_shell_reads_even_a_plain_command(project: Path) -> None:
    script(project / "parent.sh", SAYS_ITS_PARENT)
    log = script(project / "log.sh", '#!/bin/sh\necho "$@" >>log\nexec /bin/sh "$@"\n')
    ended = run("./parent.sh", project, shell=str(log))
    assert (ended.code, (project / "log").read_text()) == (0, "-c -- ./parent.sh\n")


# Every other command goes through a shell


@pytest.mark.req("S0-14")
@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("echo ~/x", "/nowhere/x\n"),
        ("/bin/echo ~/x", "/nowhere/x\n"),
        ("/bin/echo *.txt", "a.txt b.txt\n"),
        ("/bin/echo ?.txt", "a.txt b.txt\n"),
        ("/bin/echo [a].txt", "a.txt\n"),
        ("/bin/echo 'one  two' \"three  four\"", "one  two three  four\n"),
        (r"/bin/echo one\ \ two", "one  two\n"),
        ("/bin/echo $HOME", "/nowhere\n"),
        ("/bin/echo ${HOME}", "/nowhere\n"),
        ("/bin/echo $(echo sub)", "sub\n"),
        ("/bin/echo `echo sub`", "sub\n"),
        ("HOME=x /usr/bin/env printenv HOME", "x\n"),
        ("A=/x /usr/bin/printenv A", "/x\n"),
        ("/bin/true && echo and", "and\n"),
        ("/bin/false || echo or", "or\n"),
        ("/bin/echo piped | /bin/cat", "piped\n"),
        ("/bin/echo one; /bin/echo two", "one\ntwo\n"),
        ("/bin/echo one\n/bin/echo two", "one\ntwo\n"),
        ("/bin/echo one\ttwo", "one two\n"),
        ("/bin/echo one # two", "one\n"),
        ("/bin/echo one >/dev/null", ""),
        ("/bin/cat <a.txt", "A\n"),
        ("/bin/echo é", "é\n"),
        ("! /bin/false", ""),
        ("cat", "told\n"),
    ],
)
def test_a_shell_reads_what_only_it_understands(command: str, stdout: str, project: Path) -> None:
    (project / "a.txt").write_text("A\n")
    (project / "b.txt").write_text("B\n")
    assert run(command, project) == Exited(0, stdout)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_powershell_gets_the_command_and_without_it_the_hook_fails(
    project: Path, dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = CommandHook("Write-Error no; exit 2", shell="powershell")
    monkeypatch.setenv("PATH", str(project))
    missing = asyncio.run(ask(project, hook, dialect=dialect))
    script(project / "pwsh", '#!/bin/sh\necho "$@" >&2\nexit 2\n')
    there = asyncio.run(ask(project, hook, dialect=dialect))
    asked = "-NoProfile -NonInteractive -Command Write-Error no; exit 2"
    assert [run.report for verdict in (missing, there) for run in verdict.runs] == [
        Exited(127, stderr='"shell" is "powershell", but pwsh is not in the PATH'),
        Exited(2, stderr=f"{asked}\n"),
    ]
    assert (type(missing), type(there)) == (Stop, Continue)


@pytest.mark.parametrize(
    ("dialect", "verdict"),
    [(TURNGATE, Continue), (MUX, Continue), (CLAUDE, Stop)],
    ids=["turngate", "mux", "claude"],
)
def test_a_named_shell_is_honoured_where_the_dialect_says_so(
    dialect: Dialect, verdict: type[Stop | Continue], project: Path
) -> None:
    only_bash = CommandHook("[[ abc == a* ]] && { echo 'go on' >&2; exit 2; }", shell="bash")
    assert type(asyncio.run(ask(project, only_bash, dialect=dialect))) is verdict


# With `args` there is no shell


def test_args_are_passed_on_as_they_are(project: Path) -> None:
    args = ("$HOME", "*", "~", "a  b", "", "'", "`id`", "$(id)", "x;y", "|", "${HOME}", "$CLAUDE_PROJECT_DIR")
    script(project / "each.sh", '#!/bin/sh\nfor word; do echo "$word"; done\n')
    assert run("./each.sh", project, args=args) == Exited(0, "".join(f"{word}\n" for word in args))


def test_args_find_their_program_on_the_path(project: Path) -> None:
    assert run("printf", project, args=("%s-%s", "a b", "c")) == Exited(0, "a b-c")


def test_args_start_a_script_that_names_no_interpreter(project: Path) -> None:
    scripts(project)
    assert run("./no_shebang.sh", project, args=("one two",)) == Exited(5, "./no_shebang.sh 1 one two\n")


CRLF = "its first line ends with CR LF: save the file with LF line endings"
NO_INTERPRETER = "its first line names the interpreter /bin/bsah, which does not exist"


def write_scripts_without_interpreter(project: Path) -> None:
    for name, first in (("crlf.sh", b"#!/bin/sh\r\n"), ("typo.sh", b"#!/bin/bsah -e\n")):
        (project / name).write_bytes(first + b"exit 2\n")
        (project / name).chmod(0o755)


@pytest.mark.req("S0-19")
@pytest.mark.parametrize(("command", "why"), [("./crlf.sh", CRLF), ("./typo.sh", NO_INTERPRETER)])
def test_a_shell_that_does_not_find_the_interpreter_is_explained(
    command: str, why: str, project: Path
) -> None:
    write_scripts_without_interpreter(project)
    verdict = asyncio.run(ask(project, command))
    assert [(outcome(r), r.decision.warnings) for r in verdict.runs] == [("failed", (why,))]
