"""run_process: exit codes, input and output, and the end of the process tree."""

import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import ask, script
from tests.support.paths import ROOT
from tests.support.sessions import lines, survives
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S, TIMEOUT_SCALES
from turngate.core.answers.report_types import Exited, HookFailed
from turngate.core.hooks.kinds import CallbackHook, CommandHook, Hook
from turngate.core.verdict.decisions import Block, Fault
from turngate.core.verdict.hook_run import outcome
from turngate.ports import (
    MAX_STDERR_BYTES,
    MAX_STDOUT_BYTES,
    OUTPUT_TAIL_BYTES,
    BoundedOutput,
    HookRunContext,
    NotStarted,
)
from turngate.shells import local as process
from turngate.shells import process_tree as tree
from turngate.shells.local import run_process

LOST = "ChildProcessError: its exit code is lost: other code in this process waited for the child process"


def sh(command: str, *, stdin: bytes = b"", **env: str) -> Exited:
    return asyncio.run(started("/bin/sh", "-c", command, stdin=stdin, **env))


def started(*argv: str, cwd: str = "/", stdin: bytes = b"", **env: str) -> Coroutine[Any, Any, Exited]:
    env = {"PATH": os.environ["PATH"], **env}
    return run_process(argv, cwd=cwd, env=env, stdin=stdin, live=HookRunContext())


# How it ended


@pytest.mark.parametrize("code", [0, 1, 2, 3, 126, 127, 128, 137, 254, 255])
def test_an_exit_code_is_the_childs_own(code: int) -> None:
    assert sh(f"exit {code}") == Exited(code)


@pytest.mark.parametrize("name", ["HUP", "INT", "ABRT", "KILL", "SEGV", "PIPE", "ALRM", "TERM", "USR1"])
def test_a_signal_shows_as_128_and_its_number(name: str) -> None:
    number = signal.Signals[f"SIG{name}"].value
    assert sh(f"ulimit -c 0; kill -{name} $$") == Exited(128 + number, signal=number)


def test_stdout_and_stderr_are_kept_apart() -> None:
    assert sh("echo one; echo two >&2; echo three; exit 3") == Exited(3, "one\nthree\n", "two\n")


def test_what_is_not_utf_8_is_replaced() -> None:
    assert sh(r"printf 'a\377b'; printf '\351' >&2") == Exited(0, "a\ufffdb", "\ufffd")


def test_many_at_once_each_get_their_own_answer() -> None:
    async def scenario() -> list[Exited]:
        return await asyncio.gather(
            *(started("/bin/sh", "-c", f"cat; exit {n}", stdin=b"%d" % n) for n in range(30))
        )

    assert asyncio.run(scenario()) == [Exited(n, str(n)) for n in range(30)]


@pytest.mark.parametrize(
    ("program", "number"),
    [
        ("./missing", errno.ENOENT),
        ("./folder", errno.EACCES),
        ("./plain", errno.EACCES),
        ("./text", errno.ENOEXEC),
    ],
)
def test_a_program_that_cannot_be_started_raises_with_the_reason(
    program: str, number: int, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    script(tmp_path / "plain", "#!/bin/sh\n", 0o644)
    script(tmp_path / "text", "exit 0\n")
    with pytest.raises(NotStarted) as raised:
        asyncio.run(started(program, cwd=str(tmp_path)))
    assert (raised.value.errno, raised.value.filename) == (number, program)


# Input, descriptors and session


def test_a_big_input_is_read_to_its_end() -> None:
    told = b"0123456789abcde\n" * 200_000
    assert sh("cat", stdin=told) == Exited(0, told.decode())


@pytest.mark.parametrize("command", ["exit 0", "exec <&-; sleep 0.1", "head -c 10 >/dev/null", "sleep 0.1"])
def test_a_big_input_that_is_not_read_is_not_an_error(command: str, caplog: pytest.LogCaptureFixture) -> None:
    assert sh(command, stdin=b"x" * 3_000_000) == Exited(0)
    assert caplog.messages == []  # the event loop logs an error of what it calls


def test_an_empty_input_ends_at_once() -> None:
    assert sh("cat; echo end") == Exited(0, "end\n")


def test_a_child_inherits_nothing_but_its_three_pipes(tmp_path: Path) -> None:
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        assert sh("for fd in /proc/$$/fd/*; do [ -L $fd ] && echo ${fd##*/}; done; :") == Exited(
            0, "0\n1\n2\n"
        )


def test_a_child_leads_a_session_of_its_own() -> None:
    assert sh("set -- $(cat /proc/$$/stat); [ $5 = $$ ] && [ $6 = $$ ] && echo leader") == Exited(
        0, "leader\n"
    )


# The marker by which a run finds its processes


def test_a_run_adds_a_marker_to_the_environment_of_its_processes() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}\n", sh("echo $TURNGATE_RUN").stdout)


def test_a_run_within_a_run_has_both_markers_outermost_first() -> None:
    assert re.fullmatch(r"outer:[0-9a-f]{16}\n", sh("echo $TURNGATE_RUN", TURNGATE_RUN="outer").stdout)


def test_a_hook_that_itself_runs_hooks_passes_the_outer_marker_on(tmp_path: Path) -> None:
    inner = script(
        tmp_path / "inner.py",
        textwrap.dedent("""
            import asyncio, os
            from turngate.ports import HookRunContext
            from turngate.shells.local import run_process

            argv = ("/bin/sh", "-c", "echo $TURNGATE_RUN")
            print(os.environ["TURNGATE_RUN"])
            print(asyncio.run(run_process(argv, cwd="/", env=os.environ, stdin=b"", live=HookRunContext())).stdout)
        """),
    )
    outer, nested = asyncio.run(started(sys.executable, str(inner))).stdout.split()
    assert re.fullmatch(rf"{outer}:[0-9a-f]{{16}}", nested)


def test_a_marker_finds_a_process_that_left_its_session() -> None:
    mark = tree.new_run_marker()
    env = {"PATH": os.environ["PATH"], tree.VARIABLE: tree.add_marker({tree.VARIABLE: "outer"}, mark)}
    stray = subprocess.Popen(["/bin/sleep", "60"], env=env, start_new_session=True)
    try:
        while not Path(f"/proc/{stray.pid}/environ").read_bytes():  # it has only just begun to run
            time.sleep(0.01)
        assert {member.pid for member in tree.find_members(_no_process(), mark)} == {stray.pid}
    finally:
        stray.kill()
        stray.wait()


def _no_process() -> int:
    """Return the PID of a process that has just ended."""
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    return ended.pid


# A lost exit status


def test_an_exit_code_that_other_code_collected_is_a_fault_and_never_invented(project: Path) -> None:
    async def scenario() -> tuple[object, object]:
        asking = asyncio.ensure_future(
            ask(project, "echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done; echo 'go on' >&2; exit 2")
        )
        async with asyncio.timeout(HANG_TIMEOUT_S):
            while not (project / "pid").exists() or not (project / "pid").read_text():
                await asyncio.sleep(0.01)
        # While this waits, the loop is blocked and cannot collect the exit code first.
        (project / "go").touch()
        os.waitpid(int((project / "pid").read_text()), 0)  # noqa: ASYNC222 - on purpose
        (run,) = (await asking).runs
        return run.report, run.decision

    assert asyncio.run(scenario()) == (HookFailed(LOST), Fault(LOST))


def test_a_program_that_ignores_sigchld_gets_faults_and_no_invented_codes(tmp_path: Path) -> None:
    program = """
        import asyncio, signal, sys
        from pathlib import Path
        from tests.support.builders import ask
        from turngate.core.verdict.hook_run import run_message

        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        verdict = asyncio.run(ask(Path(sys.argv[1]), "exit 2", "sleep 0.2; exit 0", "/bin/true"))
        print(*(run_message(run) for run in verdict.runs), sep="\\n")
    """
    assert _in_python(program, str(tmp_path)) == f"{LOST}\n" * 3


# Scarce threads, and a loop that must not block


@pytest.mark.req("X-11", "S0-104")
def test_the_process_tree_is_killed_when_no_thread_can_be_started(tmp_path: Path) -> None:
    """As after a fork bomb that reached the process limit; here the memory limit leaves no room for a thread's stack."""
    program = """
        import asyncio, resource, sys
        from pathlib import Path
        from tests.support.builders import ask
        from turngate.core.hooks.kinds import CommandHook
        from turngate.core.verdict.hook_run import outcome

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        room = pages * resource.getpagesize() + 6 * 1024 * 1024
        before = resource.getrlimit(resource.RLIMIT_AS)
        napping = "setsid sleep 5.4321 </dev/null >/dev/null 2>&1 & echo $! >pid; wait"

        async def scenario(project):
            resource.setrlimit(resource.RLIMIT_AS, (room, before[1]))
            try:
                verdict = await ask(project, CommandHook(napping, timeout=0.5))
            finally:
                resource.setrlimit(resource.RLIMIT_AS, before)
            stray = Path("/proc", (project / "pid").read_text().strip(), "cmdline")
            print(*map(outcome, verdict.runs), stray.exists() and stray.read_bytes())

        asyncio.run(scenario(Path(sys.argv[1])))
    """
    assert _in_python(program, str(tmp_path)) in ("timeout False\n", "timeout b''\n")  # gone, or a zombie


def _in_python(program: str, *args: str) -> str:
    """Run a program in a process of its own, because it changes its whole process, and return its output."""
    root = ROOT
    command = [sys.executable, "-c", textwrap.dedent(program), *args]
    ended = subprocess.run(
        command, cwd=root, capture_output=True, text=True, timeout=HANG_TIMEOUT_S, check=False
    )
    unexpected = [line for line in ended.stderr.splitlines() if "NOT enforced" not in line]  # that is logged
    assert (ended.returncode, unexpected) == (0, [])
    return ended.stdout


@pytest.mark.req("S0-103")
@pytest.mark.parametrize("before", ["", "yes | head -c 30000000;"], ids=["quiet", "prints much"])
def test_the_loop_ticks_on_while_a_command_runs(before: str, project: Path) -> None:
    """The hook ends only after the loop has ticked."""
    hook = CommandHook(f"{before} while [ ! -e ticked ]; do sleep 0.02; done", timeout=HANG_TIMEOUT_S)
    assert asyncio.run(ticks_during(project, hook, (project / "ticked").touch)) == "allow"


@pytest.mark.req("S0-103")
def test_the_loop_ticks_on_while_a_callback_runs(project: Path) -> None:
    ticked = threading.Event()
    hook = CallbackHook(lambda _: None if ticked.wait(HANG_TIMEOUT_S) else Block("blocked"))
    assert asyncio.run(ticks_during(project, hook, ticked.set)) == "allow"


@pytest.mark.req("S0-103")
def test_the_loop_ticks_on_while_a_command_is_ended(project: Path) -> None:
    hook = CommandHook("trap '' TERM; while :; do sleep 1; done", timeout=0.5)
    assert asyncio.run(ticks_during(project, hook, lambda: None)) == "timeout"


async def ticks_during(project: Path, hook: Hook, ticked: Callable[[], None]) -> str:
    """Return the outcome of a hook that runs while the loop ticks at least three times."""
    asking = asyncio.ensure_future(ask(project, hook))
    for _ in range(3):
        await asyncio.sleep(0.05)
        assert not asking.done()
    ticked()
    [run] = (await asking).runs
    return outcome(run)


# Bounded output


def printed(limit: int, *parts: bytes) -> BoundedOutput:
    output = BoundedOutput(limit)
    for part in parts:
        output.feed(part)
    return output


@pytest.mark.req("X-12")
@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((), ""),
        ((b"",), ""),
        ((b"0123456789",), "0123456789"),
        ((b"01234", b"56789"), "0123456789"),
        ((b"0123456789", b"t" * OUTPUT_TAIL_BYTES), "0123456789" + "t" * OUTPUT_TAIL_BYTES),
        ((b"0123456789" + b"t" * OUTPUT_TAIL_BYTES,), "0123456789" + "t" * OUTPUT_TAIL_BYTES),
        ((b"caf\xc3", b"\xa9"), "café"),
    ],
)
def test_output_within_its_limit_and_tail_is_whole(parts: tuple[bytes, ...], text: str) -> None:
    output = printed(10, *parts)
    assert (output.text(), output.truncated, output.size) == (text, False, sum(map(len, parts)))


@pytest.mark.req("X-12")
@pytest.mark.parametrize(
    "chunk", [1, 7, 4096, OUTPUT_TAIL_BYTES - 1, OUTPUT_TAIL_BYTES, OUTPUT_TAIL_BYTES + 1, 10**6]
)
def test_output_beyond_keeps_head_and_tail_and_says_how_much_is_left_out(chunk: int) -> None:
    data = b"0123456789" + b"-" * 1_234 + b"t" * (OUTPUT_TAIL_BYTES - 3) + b"END"
    output = printed(10, *(data[at : at + chunk] for at in range(0, len(data), chunk)))
    text = "0123456789\n… [1,234 bytes left out] …\n" + "t" * (OUTPUT_TAIL_BYTES - 3) + "END"
    assert (output.text(), output.truncated, output.size) == (text, True, len(data))


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ((), b""),
        ((b"one\ntwo\n",), b"two"),
        ((b"one\ntw", b"o\n \n\n"), b"two"),
        ((b"10%\r20%\r",), b"20%"),
        ((b"0123456789", b"after the limit\nlast"), b"last"),
        ((b"x" * 5000,), "…".encode() + b"x" * 4096),
    ],
)
def test_the_last_line_is_the_newest_one_that_is_not_blank(parts: tuple[bytes, ...], line: bytes) -> None:
    assert (printed(10_000, *parts).last_line(), printed(10, *parts).last_line()) == (line, line)


@pytest.mark.req("X-12")
def test_a_character_at_the_truncation_is_replaced() -> None:
    output = printed(4, b"caf\xc3", b"\xa9" + b"-" * OUTPUT_TAIL_BYTES)
    assert output.text() == "caf\ufffd\n… [1 bytes left out] …\n" + "-" * OUTPUT_TAIL_BYTES


@pytest.mark.req("X-12")
def test_stdout_is_read_whole_to_16_mib_and_stderr_to_8() -> None:
    assert (MAX_STDOUT_BYTES, MAX_STDERR_BYTES) == (16 * 1024 * 1024, 8 * 1024 * 1024)
    ended = sh("yes | head -c 16777216; yes | head -c 8388608 >&2")
    assert (len(ended.stdout), len(ended.stderr), ended.truncated) == (16_777_216, 8_388_608, False)


@pytest.mark.req("X-12")
def test_what_is_printed_beyond_is_counted_and_its_end_is_kept() -> None:
    ended = sh("yes | head -c 20000000; echo END")
    left_out = 20_000_004 - MAX_STDOUT_BYTES - OUTPUT_TAIL_BYTES
    assert (ended.truncated, ended.stdout[MAX_STDOUT_BYTES:]) == (
        True,
        f"\n… [{left_out:,} bytes left out] …\n" + "y\n" * (OUTPUT_TAIL_BYTES // 2 - 2) + "END\n",
    )


@pytest.mark.req("X-11", "S0-104")
def test_a_block_in_time_counts_although_the_loop_was_blocked(project: Path) -> None:
    async def scenario(scale: int) -> object:
        hook = CommandHook("sleep 0.3; echo no >&2; exit 2", timeout=scale)
        asking = asyncio.ensure_future(ask(project, hook))
        await asyncio.sleep(0.1)
        time.sleep(1.5 * scale)  # noqa: ASYNC251 - another callback blocks the loop
        return (await asking).runs[0].decision

    assert any(asyncio.run(scenario(scale)) == Block("no") for scale in TIMEOUT_SCALES[:3])


@pytest.mark.req("S0-104")
def test_the_end_of_a_hook_delays_the_verdict_by_a_second_at_most() -> None:
    """What is waited for after an exit, or between TERM and KILL. Tests that need more time set their own limits."""
    assert process.OUTPUT_GRACE_S + tree.KILL_GRACE_S <= 1


@pytest.mark.req("X-11")
def test_a_hook_that_ignores_term_dies_also_when_the_loop_ends_during_the_grace(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "KILL_GRACE_S", HANG_TIMEOUT_S)
    command = "trap 'echo yes > termed' TERM; echo $$ > pid; while :; do sleep 1; done"

    async def scenario(limit: float) -> bool:
        """Return whether TERM arrived after the hook had set its trap."""
        await ask(project, CommandHook(command, timeout=limit, detached=True))
        while not lines(project / "termed") and len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(POLL_INTERVAL_S)
        return bool(lines(project / "termed"))

    assert any(asyncio.run(scenario(0.4 * scale)) for scale in TIMEOUT_SCALES)
    assert not survives((project / "pid").read_text().strip())
