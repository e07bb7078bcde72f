"""Every shell, here and on another machine: exit codes, output, input, environment, and the end of all processes."""

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script
from tests.support.servers.ssh import SSHD
from tests.support.sessions import lines, survives
from tests.support.shells import MakeShell, ask_with, opened, run, start
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S, POLL_INTERVAL_S, TIMEOUT_SCALES
from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.hook_run import outcome, run_message
from turngate.core.verdict.verdict import Continue, Stop
from turngate.ports import MAX_STDOUT_BYTES, OUTPUT_TAIL_BYTES, NotStarted
from turngate.shells.local import LocalShell

needs_sshd = pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server")


# How it ended


@pytest.mark.parametrize("code", [0, 1, 2, 127, 255])
def test_an_exit_code_is_the_commands_own(make_shell: MakeShell, code: int) -> None:
    assert run(make_shell, f"exit {code}") == Exited(code)


@pytest.mark.parametrize("name", ["HUP", "ABRT", "KILL", "SEGV", "PIPE", "TERM"])
def test_a_signal_shows_as_128_and_its_number(make_shell: MakeShell, name: str) -> None:
    number = signal.Signals[f"SIG{name}"].value
    assert run(make_shell, f"ulimit -c 0; kill -{name} $$") == Exited(128 + number, signal=number)


@pytest.mark.parametrize(
    ("command", "verdict", "words"),
    [
        ("exit 0", Stop, None),
        ("echo 'go on' >&2; exit 2", Continue, "go on"),
        ("exit 2", Stop, "it exited with 2 but gave no reason on stderr, so it does not block"),
        ("exit 1", Stop, "exit code 1, nothing on stderr"),
        ("kill -KILL $$", Stop, "killed by signal 9, nothing on stderr"),
        ("""echo '{"decision":"block","reason":"go on"}'""", Continue, "go on"),
    ],
)
@pytest.mark.req("S0-14", "S0-105")
def test_a_hook_gives_the_same_verdict(
    make_shell: MakeShell, command: str, verdict: type[Stop | Continue], words: str | None, project: Path
) -> None:
    given = ask_with(make_shell, project, command)
    assert (type(given), [run_message(r) for r in given.runs]) == (verdict, [words])


# Input and output


def test_stdout_and_stderr_are_kept_apart(make_shell: MakeShell) -> None:
    command = "echo one; echo two >&2; echo three; exit 3"
    assert run(make_shell, command) == Exited(3, "one\nthree\n", "two\n")


def test_what_is_not_utf_8_is_replaced(make_shell: MakeShell) -> None:
    assert run(make_shell, r"printf 'a\377b'; printf '\351' >&2") == Exited(0, "a\ufffdb", "\ufffd")


def test_many_at_once_each_get_their_own_answer(make_shell: MakeShell) -> None:
    async def scenario() -> list[Exited]:
        async with opened(make_shell) as shell:
            return await asyncio.gather(*(start(shell, f"cat; exit {n}", stdin=b"%d" % n) for n in range(30)))

    assert asyncio.run(scenario()) == [Exited(n, str(n)) for n in range(30)]


def test_a_big_input_is_read_to_its_end(make_shell: MakeShell) -> None:
    told = b"0123456789abcde\n" * 200_000
    assert run(make_shell, "cat", stdin=told) == Exited(0, told.decode())


@pytest.mark.parametrize("command", ["exit 0", "exec <&-; sleep 0.1", "head -c 10 >/dev/null", "sleep 0.1"])
def test_a_big_input_that_is_not_read_is_not_an_error(
    make_shell: MakeShell, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert run(make_shell, command, stdin=b"x" * 5_000_000) == Exited(0)
    assert caplog.messages == []  # the event loop logs an error of what it calls


def test_an_empty_input_ends_at_once(make_shell: MakeShell) -> None:
    assert run(make_shell, "cat; echo end") == Exited(0, "end\n")


def test_output_that_is_closed_early_is_not_the_end(make_shell: MakeShell) -> None:
    assert run(make_shell, "echo one; exec >&- 2>&-; sleep 0.2; exit 2") == Exited(2, "one\n")


@pytest.mark.req("X-12")
def test_what_is_printed_beyond_the_limit_is_counted_and_its_end_is_kept(make_shell: MakeShell) -> None:
    ended = run(make_shell, "yes | head -c 20000000; echo END; yes | head -c 5000000 >&2")
    left_out = 20_000_004 - MAX_STDOUT_BYTES - OUTPUT_TAIL_BYTES
    assert (ended.truncated, ended.stdout[MAX_STDOUT_BYTES:], len(ended.stderr)) == (
        True,
        f"\n… [{left_out:,} bytes left out] …\n" + "y\n" * (OUTPUT_TAIL_BYTES // 2 - 2) + "END\n",
        5_000_000,
    )


def test_a_process_that_holds_the_output_does_not_delay_the_end(make_shell: MakeShell) -> None:
    if SSHD is None and make_shell is not LocalShell:
        pytest.skip("no sshd: install openssh-server")  # asyncssh's server closes such an output
    ended = run(make_shell, f"sleep {NEVER_S} & echo $!; exit 3")
    os.kill(int(ended.stdout), signal.SIGKILL)
    assert ended == Exited(3, ended.stdout, held=True)


# Shell, program and folder


@pytest.mark.req("S0-14")
@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("echo ~/x", "/nowhere/x\n"),
        ("/bin/echo *.txt", "a.txt b.txt\n"),
        ("/bin/echo 'one  two' \"three  four\"", "one  two three  four\n"),
        (r"/bin/echo one\ \ two", "one  two\n"),
        ("/bin/echo $(echo sub) `echo sub`", "sub sub\n"),
        ("/bin/echo one\n/bin/echo two", "one\ntwo\n"),
        ("cat <<'E'\n$HOME 'it'\\\nE\n", "$HOME 'it'\\\n"),
        ("/bin/echo one # two", "one\n"),
        ("/bin/echo é \N{GRINNING FACE}", "é \N{GRINNING FACE}\n"),
        ("cat", "told\n"),
        ("-x 2>/dev/null; echo $?", "127\n"),
    ],
)
def test_a_shell_reads_the_command(make_shell: MakeShell, command: str, stdout: str, project: Path) -> None:
    (project / "a.txt").touch()
    (project / "b.txt").touch()
    env = {"HOME": "/nowhere"}
    assert run(make_shell, command, cwd=project, stdin=b"told\n", env=env) == Exited(0, stdout)


def test_a_named_shell_reads_the_command(make_shell: MakeShell) -> None:
    assert run(make_shell, "[[ abc == a* ]] && echo bash", shell="bash") == Exited(0, "bash\n")


def test_args_are_passed_on_as_they_are(make_shell: MakeShell, project: Path) -> None:
    args = ("$HOME", "*", "~", "a  b", "", "'", "`id`", "$(id)", "x;y", "|", "a\nb\n", "-n", "é", "\\n")
    script(project / "each.sh", '#!/bin/sh\nfor word; do printf "<%s>" "$word"; done\n')
    ended = run(make_shell, "./each.sh", cwd=project, args=args)
    assert ended == Exited(0, "".join(f"<{word}>" for word in args))


@pytest.mark.req("S0-105")
def test_a_script_without_an_interpreter_line_is_read_by_bash(make_shell: MakeShell, project: Path) -> None:
    script(project / "each.sh", 'for word; do [[ $word == a* ]] && printf "<%s>" "$0 $word"; done\n')
    ended = run(make_shell, "./each.sh", cwd=project, args=("a  b", "c", "a\nd"))
    assert ended == Exited(0, "<./each.sh a  b><./each.sh a\nd>")


def test_args_find_their_program_on_the_path(make_shell: MakeShell, project: Path) -> None:
    script(project / "mine", "#!/bin/sh\necho mine\n")
    ended = run(make_shell, "mine", args=(), env={"PATH": f"{project}:/usr/bin:/bin"})
    assert ended == Exited(0, "mine\n")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("./missing.sh", "could not be started: ./missing.sh: No such file or directory"),
        ("./plain.sh", "could not be started: ./plain.sh: Permission denied"),
        (
            "./crlf.sh",
            "could not be started: ./crlf.sh: its first line ends with CR LF: save the file with LF line endings",
        ),
        (
            "./typo.sh",
            "could not be started: ./typo.sh: its first line names the interpreter /bin/bsah, which does not exist",
        ),
        ("./folder", "could not be started: ./folder: Permission denied"),
        ("pytets", "could not be started: pytets: No such file or directory"),
    ],
)
def test_args_whose_program_cannot_be_started_fail(
    make_shell: MakeShell, command: str, why: str, project: Path
) -> None:
    script(project / "plain.sh", "#!/bin/sh\n", 0o644)
    script(project / "crlf.sh", "#!/bin/sh\r\nexit 2\n")
    script(project / "typo.sh", "#!/bin/bsah -e\nexit 2\n")
    (project / "folder").mkdir()
    verdict = ask_with(make_shell, project, CommandHook(command, args=()))
    assert (type(verdict), [run_message(r) for r in verdict.runs]) == (Stop, [why])


def test_a_missing_folder_is_not_the_failure_of_the_command(make_shell: MakeShell, project: Path) -> None:
    with pytest.raises(NotStarted) as raised:
        run(make_shell, "exit 2", cwd=project / "missing")
    assert raised.value.filename == str(project / "missing")


@pytest.mark.req("S0-31")
@pytest.mark.parametrize("name", ["project", "my 'project'\n$HOME", "é"])
def test_a_command_runs_in_its_folder(make_shell: MakeShell, name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    assert run(make_shell, "pwd -P", cwd=folder) == Exited(0, f"{folder}\n")


def test_a_command_leads_a_session_of_its_own(make_shell: MakeShell) -> None:
    command = "set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ] && echo leader"
    assert run(make_shell, command) == Exited(0, "leader\n")


# Environment


def test_a_command_has_the_given_environment_and_no_other(make_shell: MakeShell) -> None:
    env = {"A": "one\n'two'", "B": "", "C": "é\\n", "HOME": "/nowhere", "LC_X": "$A"}
    ended = run(make_shell, "env", args=("-0",), env=env)
    seen = dict(entry.split("=", 1) for entry in ended.stdout.split("\0")[:-1])
    marker = seen.pop("TURNGATE_RUN")
    own = {"PWD", "SHLVL", "_"}  # of the shells in between
    assert {name: value for name, value in seen.items() if name not in own} == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        **env,
    }
    assert re.fullmatch("[0-9a-f]{16}", marker)


# The end of a command that is cancelled

STRAYS = {
    "plain": f"echo $$ >>pids; sleep {NEVER_S}",
    "child": f"sleep {NEVER_S} & echo $$ $! >>pids; wait",
    "ignores TERM": f"trap '' TERM; echo $$ >>pids; while :; do sleep {NEVER_S}; done",
    "left its session": f"setsid sleep {NEVER_S} & echo $$ $! >>pids; wait",
    "daemon": f"setsid sh -c 'echo $$ >>pids; exec sleep {NEVER_S}' </dev/null >/dev/null 2>&1 & wait; echo $$ >>pids; sleep {NEVER_S}",
    "reads nothing, prints much": f"echo $$ >>pids; yes; sleep {NEVER_S}",
}


@pytest.mark.req("X-11", "S0-104")
@pytest.mark.parametrize("command", STRAYS.values(), ids=STRAYS)
def test_a_cancelled_command_leaves_nothing_running(
    make_shell: MakeShell, command: str, project: Path
) -> None:
    async def scenario() -> None:
        async with opened(make_shell) as shell:
            task = asyncio.ensure_future(start(shell, command, cwd=project, stdin=b"x" * 3_000_000))
            await wait_for(project / "pids")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [pid for pid in pids(project) if is_alive(pid)] == []

    asyncio.run(scenario())


async def wait_for(path: Path, count: int = 1) -> None:
    """Wait until a file has so many lines."""
    async with asyncio.timeout(HANG_TIMEOUT_S):
        while len(lines(path)) < count:
            await asyncio.sleep(POLL_INTERVAL_S)


def pids(project: Path) -> list[str]:
    return (project / "pids").read_text().split()


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.req("X-11", "S0-104")
def test_a_hook_that_hangs_ends_at_its_timeout(make_shell: MakeShell, project: Path) -> None:
    command = f"sleep {NEVER_S} & echo $$ $! >>pids; echo begun; wait"

    def timed_out(scale: int) -> Any:
        (only,) = ask_with(make_shell, project, CommandHook(command, timeout=0.5 * scale)).runs
        return outcome(only), getattr(only.report, "stdout", "")

    assert any(timed_out(scale) == ("timeout", "begun\n") for scale in TIMEOUT_SCALES)
    assert [pid for pid in pids(project) if survives(pid)] == []


@pytest.mark.req("X-11")
def test_a_process_that_prints_while_it_cleans_up_can_finish(make_shell: MakeShell, project: Path) -> None:
    command = f"trap 'echo cleaning; echo done >cleaned; exit' TERM; echo $$ >>pids; sleep {NEVER_S} & wait"

    async def scenario() -> None:
        async with opened(make_shell) as shell:
            task = asyncio.ensure_future(start(shell, command, cwd=project))
            await wait_for(project / "pids")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(scenario())
    assert (project / "cleaned").read_text() == "done\n"
