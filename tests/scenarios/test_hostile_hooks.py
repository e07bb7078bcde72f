"""Hooks that mean harm: the right verdict, and nothing left behind.

A hook that must be ended by its time limit never ends by itself, so the verdict shows that the limit worked. Where a
limit must not come before processes have started, the test is repeated with longer limits on a slow machine.
"""

import asyncio
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import randbelow
from typing import Any, TypeVar

import pytest

from tests.support.builders import ask, script, stop_hooks, write_settings
from tests.support.machines import Machine, SshMachine, ask_on, skip_without_sshd, workspace_on
from tests.support.sessions import wait_for_file
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from turngate.core.answers.report_types import Exited
from turngate.core.dialect import CLAUDE, TURNGATE, Dialect
from turngate.core.events.events import StopHookInput
from turngate.core.hooks.kinds import CallbackHook, CommandHook
from turngate.core.text import truncate_middle
from turngate.core.verdict.hook_run import HookOutcome, outcome, run_message
from turngate.core.verdict.verdict import Continue, Stop, Verdict
from turngate.ports import MAX_STDERR_BYTES, BoundedOutput
from turngate.shells import local as process
from turngate.shells.ssh import process as ssh_process
from turngate.stop_hooks import StopHooksResult, run_stop_hooks

T = TypeVar("T")

# In every command and script TOKEN stands for a number that no other process has in its arguments, and
# PYTHON for this interpreter. `sleep 600.TOKEN` is found even if it has thrown its environment away.
NAP = "sleep 600.TOKEN"
NEVER_S = 10 * HANG_TIMEOUT_S
BLOCK = '{"decision":"block","reason":"go on"}'
MEGABYTE = "x" * 1_000_000
IN_BACKGROUND: dict[str, Any] = {"async": True}


@dataclass(frozen=True, kw_only=True)
class Hostile:
    name: str
    command: str
    outcome: HookOutcome
    verdict: type[Verdict]
    said: str | None
    warnings: tuple[str, ...] = ()
    timeout: float = HANG_TIMEOUT_S
    output_grace: float = 0.5  # how long the output is read after the exit
    script: str | None = None  # the text of ./hook
    mode: int = 0o755
    message: str | None = None  # what it gets on stdin, beside the rest
    dialect: Dialect = TURNGATE
    crowd: int = 0  # so many of its processes were seen, or there was nothing to end
    stays: int = 0  # so many live on afterwards, as they may: it ended by itself
    needs_sshd: bool = (
        False  # the server of asyncssh closes an output that is held, and is slow with much of it
    )
    over_ssh: dict[str, Any] = field(default_factory=dict)  # the fields that are different there


def hangs(name: str, command: str, *, timeout: float = 0.5, crowd: int = 1, **fields: Any) -> Hostile:
    """Describe a hook that runs until its time limit."""
    return Hostile(
        name=name,
        command=command,
        outcome="timeout",
        verdict=Stop,
        said=f"timed out after {timeout:g} s",
        timeout=timeout,
        crowd=crowd,
        **fields,
    )


def blocks(name: str, command: str, reason: str, **fields: Any) -> Hostile:
    return Hostile(name=name, command=command, outcome="block", verdict=Continue, said=reason, **fields)


def fails(name: str, command: str, why: str, **fields: Any) -> Hostile:
    return Hostile(name=name, command=command, outcome="failed", verdict=Stop, said=why, **fields)


def allows(name: str, command: str, **fields: Any) -> Hostile:
    return Hostile(name=name, command=command, outcome="allow", verdict=Stop, said=None, **fields)


def fifty_megabytes_shortened() -> str:
    """What is left for the model of 50 MB that `yes` prints to stderr."""
    printed = BoundedOutput(MAX_STDERR_BYTES)
    for _ in range(50):
        printed.feed(b"y\n" * 500_000)
    return truncate_middle(printed.text().rstrip("\n"), 10_000, None)


BOMB = """#!/bin/sh
if [ "$1" -gt 0 ]; then
    START "$0" $(($1 - 1)) TOKEN &
    START "$0" $(($1 - 1)) TOKEN &
fi
exec sleep 600.TOKEN
"""
STUBBORN = "trap '' TERM; while :; do sleep 600.TOKEN; done"
NO_REASON = "it exited with 2 but gave no reason on stderr, so it does not block"
TEXT_BEFORE_JSON = (
    "its decision was not read, because there is text before its JSON: "
    "print only the JSON on stdout, and everything else on stderr"
)
NOT_JSON = "its output looks like a JSON object but is not valid JSON ({}), so it was taken as plain text"

TABLE = (
    # It does not end
    hangs("never exits", NAP),
    hangs("ignores TERM", STUBBORN, crowd=2),
    hangs("its child ignores TERM", f'sh -c "{STUBBORN}" & wait', crowd=3),
    hangs("its child is stopped", f"{NAP} & kill -STOP $!; wait", crowd=2),
    hangs("stops itself", "kill -STOP $$"),
    hangs("changes its session", "setsid --wait sleep 600.TOKEN"),
    hangs("forks twice into a session of its own", f"(setsid {NAP} &); {NAP}", crowd=2),
    hangs(
        "forks twice and closes its pipes",
        f"(setsid {NAP} </dev/null >/dev/null 2>&1 &); {NAP}",
        crowd=2,
    ),
    hangs("its child leaves the session and the environment", f"env -i setsid {NAP} & {NAP}", crowd=2),
    hangs(
        "such a child ignores TERM and starts others",
        f'env -i setsid sh -c "{STUBBORN}" & {NAP}',
        crowd=3,
    ),
    hangs("starts a successor when it gets TERM", f"trap 'setsid {NAP} & exit 0' TERM; {NAP} & wait"),
    hangs("answers only when it gets TERM", f"trap 'echo late >&2; exit 2' TERM; {NAP} & wait"),
    hangs("starts thirty others", "./hook 4 TOKEN", script=BOMB.replace("START", ""), timeout=1, crowd=31),
    hangs(
        "starts thirty others, each in its own session",
        "./hook 4 TOKEN",
        script=BOMB.replace("START", "setsid"),
        timeout=1,
        crowd=31,
    ),
    hangs("prints for ever", "yes"),
    hangs("prints errors for ever", "exec yes >&2"),
    hangs("works in the background for ever", f"yes >/dev/null & {NAP}", crowd=2),
    hangs("prints its block and stays", f"printf '%s' '{BLOCK}'; {NAP}"),
    hangs("closes its pipes and stays", f"exec <&- >&- 2>&-; {NAP}"),
    hangs("never reads 1 MB of input", NAP, message=MEGABYTE),
    hangs("reads on after the end of its input", "while :; do read -r line; done"),
    hangs("deletes its folder and stays", f'rm -rf "$PWD"; {NAP}'),
    # It ends, and its children do not
    blocks(
        "a grandchild holds stdout",
        f"{NAP} & printf '%s' '{BLOCK}'",
        "go on",
        crowd=1,
        stays=1,
    ),
    blocks(
        "a grandchild holds stdout after exit 2",
        f"{NAP} & echo 'go on' >&2; exit 2",
        "go on",
        crowd=1,
        stays=1,
    ),
    fails(
        "a grandchild holds the pipes, where that voids an answer",
        f"{NAP} & printf '%s' '{BLOCK}'",
        "a child process still held its output when it exited, so its JSON was ignored",
        dialect=CLAUDE,
        stays=1,
        needs_sshd=True,
    ),
    blocks(
        "a grandchild writes on for ever",
        "yes & echo 'go on' >&2; exit 2",
        "go on",
        needs_sshd=True,
    ),
    blocks(
        "its child finishes the answer",
        """printf '{"decision":"block",'; (sleep 0.2; printf '"reason":"go on"}') &""",
        "go on",
        output_grace=HANG_TIMEOUT_S,
    ),
    allows("leaves work in the background", "yes >/dev/null 2>&1 & exit 0", stays=1),
    # It prints too much, or unreadable bytes
    allows("50 MB on stdout", "yes | head -c 50000000", needs_sshd=True),
    blocks("50 MB on stderr", "yes | head -c 50000000 >&2; exit 2", fifty_megabytes_shortened()),
    fails(
        "50 MB that begin like an answer",
        "echo '{'; yes | head -c 50000000",
        "its JSON output is longer than the limit, so it was not parsed",
    ),
    fails("closes its pipes and exits with 2 later", "exec >&- 2>&-; sleep 0.1; exit 2", NO_REASON),
    fails("not UTF-8 before the JSON", rf"printf '\377\376%s' '{BLOCK}'", TEXT_BEFORE_JSON),
    allows("not UTF-8 on stdout", r"printf 'caf\351 \377'"),
    blocks("not UTF-8 on stderr", r"printf 'caf\351 \377' >&2; exit 2", "caf\ufffd \ufffd"),
    allows("NUL on stdout", r"printf '\000\000\000'"),
    blocks("NUL on stderr", r"printf 'a\000b' >&2; exit 2", "a\0b"),
    allows(
        "JSON that is nested too deeply",
        """yes '{"a":' | head -n 100000""",
        warnings=(NOT_JSON.format("nested too deeply"),),
    ),
    blocks(
        "JSON with an integer of 5,000 digits",
        """printf '{"decision":"block","reason":"go on","n":'; head -c 5000 /dev/zero | tr '\\000' 1; echo '}'""",
        "go on",
    ),
    blocks(
        "JSON with a number beyond all floats",
        """printf '%s' '{"decision":"block","reason":"go on","n":1e999999}'""",
        "go on",
    ),
    blocks(
        "half a surrogate pair in its reason",
        r"""printf '%s' '{"decision":"block","reason":"half \ud83d"}'""",
        "half ?",
    ),
    blocks(
        "writes to the terminal",
        "(echo look >/dev/tty) 2>/dev/null || echo 'no terminal' >&2; exit 2",
        "no terminal",
    ),
    # It does not want its input
    blocks("exits before it reads 1 MB", "echo 'go on' >&2; exit 2", "go on", message=MEGABYTE),
    blocks("closes its input", "exec <&-; sleep 0.1; echo 'go on' >&2; exit 2", "go on", message=MEGABYTE),
    # It harms itself
    fails("kills itself", "kill -KILL $$", "killed by signal 9, nothing on stderr"),
    fails("violates its memory", "ulimit -c 0; kill -SEGV $$", "killed by signal 11, nothing on stderr"),
    fails("kills its group", "kill -KILL 0", "killed by signal 9, nothing on stderr"),
    fails("exits with 255", "exit 255", "exit code 255, nothing on stderr"),
    blocks("deletes its folder", 'rm -rf "$PWD"; echo gone >&2; exit 2', "gone"),
    blocks("changes its folder", 'cd /; echo "in $PWD" >&2; exit 2', "in /"),
    blocks("deletes itself", "./hook", "gone", script='#!/bin/sh\nrm "$0"\necho gone >&2\nexit 2\n'),
    # It cannot be started
    fails("vanished before it was started", "./hook TOKEN", "exit code 127: /bin/sh: 1: ./hook: not found"),
    fails(
        "is a folder",
        "/tmp/ TOKEN",
        "exit code 126: /bin/sh: 1: /tmp/: Permission denied",
    ),
    fails(
        "is not executable",
        "./hook",
        "exit code 126: /bin/sh: 1: ./hook: Permission denied",
        script="#!/bin/sh\n",
        mode=0o644,
    ),
    fails(
        "names an interpreter that is not there",
        "./hook",
        "exit code 127: /bin/sh: 1: ./hook: not found",
        script="#!/no/such/interpreter\n",
        warnings=("its first line names the interpreter /no/such/interpreter, which does not exist",),
        over_ssh={"warnings": ()},
    ),
    blocks("names no interpreter", "./hook", "go on", script="echo 'go on' >&2\nexit 2\n"),
    fails("a NUL in its command", "echo \0", "ValueError: embedded null byte"),
    fails(
        "a command longer than the kernel takes",
        ": " + "x" * 200_000,
        "could not be started: /bin/sh: Argument list too long",
        over_ssh={"said": "exit code 126: /bin/sh: 1: exec: /bin/sh: Argument list too long"},
    ),
    blocks(
        "leaves without a word to its interpreter",
        "PYTHON -I -S -c 'import os; os.write(2, b\"go on\"); os._exit(2)' TOKEN",
        "go on",
    ),
)


# A slow machine may need longer than the limit to start the processes.
SCALES = (1, 8, 64, 512)


def scaled(row: Hostile, scale: int) -> Hostile:
    if row.outcome != "timeout":
        return row
    timeout = row.timeout * scale
    return replace(row, timeout=timeout, said=f"timed out after {timeout:g} s")


@pytest.mark.req("S0-104", "S0-105", "X-11", "X-12")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_hostile_hook_gets_the_right_verdict_and_leaves_nothing_behind(
    row: Hostile, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_on_for(row.output_grace, monkeypatch)
    if row.needs_sshd:
        skip_without_sshd(machine)
    if isinstance(machine, SshMachine):
        row = replace(row, **row.over_ssh)
    for scale in SCALES:
        case = scaled(row, scale)
        project = tmp_path / f"project{scale}"
        project.mkdir()
        with token() as mark:
            verdict, crowd, left = machine.run(asked(case, machine, project, mark))
        (run,) = verdict.runs
        assert (outcome(run), type(verdict), run_message(run), run.decision.warnings, left) == (
            case.outcome,
            case.verdict,
            case.said,
            case.warnings,
            case.stays,
        )
        if crowd >= row.crowd:
            return
    pytest.fail(f"only {crowd} of {row.crowd} processes were seen")


async def asked(row: Hostile, machine: Machine, project: Path, mark: str) -> tuple[Verdict, int, int]:
    """The verdict, how many of the hook's processes were seen at most, and how many were left."""
    if row.script is not None:
        script(project / "hook", filled(row.script, mark), row.mode)
    hook = CommandHook(filled(row.command, mark), timeout=row.timeout, env={"HOSTILE": mark})
    with no_file_left_open(await warmed_up(machine, project)):
        asking = asyncio.ensure_future(
            ask_on(machine, project, hook, dialect=row.dialect, last_assistant_message=row.message)
        )
        crowd = 0
        while not asking.done():
            await asyncio.wait({asking}, timeout=0.1)
            crowd = max(crowd, len(processes(mark)))
        return asking.result(), crowd, len(await settled(mark, row.stays))


LATE = "(sleep 0.1; echo late; sleep 600.TOKEN) & echo early"
EARLY_AND_LATE = Exited(0, "early\nlate\n", held=True)


def reports_at_scales(
    machine: Machine, project: Path, monkeypatch: pytest.MonkeyPatch, command: str, timeout: float
) -> Iterator[tuple[Verdict, int]]:
    """Ask with longer and longer limits; yield the verdict and how many of its processes are left."""
    for scale in SCALES:
        read_on_for(0.5 * scale, monkeypatch)
        with token() as mark:
            verdict = machine.run(
                ask_on(machine, project, CommandHook(filled(command, mark), timeout=timeout * scale))
            )
            yield verdict, len(processes(mark))


@pytest.mark.req("X-11", "S0-104")
@pytest.mark.parametrize(
    "timeout", [HANG_TIMEOUT_S, 0.45], ids=["in time", "its time runs out while we read on"]
)
def test_everything_printed_until_we_stop_reading_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch, timeout: float, machine: Machine
) -> None:
    skip_without_sshd(machine)
    answers = reports_at_scales(machine, project, monkeypatch, LATE, timeout)
    assert any([run.report for run in verdict.runs] == [EARLY_AND_LATE] for verdict, _ in answers)


@pytest.mark.req("X-11")
def test_a_normal_exit_kills_nothing_although_its_time_runs_out_while_we_read_on(
    project: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    answers = reports_at_scales(machine, project, monkeypatch, f"{NAP} & echo 'go on' >&2; exit 2", 0.3)
    assert any(([outcome(run) for run in verdict.runs], left) == (["block"], 1) for verdict, left in answers)


@pytest.mark.req("S0-104")
def test_a_project_that_is_gone_fails_its_hooks_and_stops_the_agent(tmp_path: Path, machine: Machine) -> None:
    gone = tmp_path / "gone"
    verdict = machine.run(ask_on(machine, gone, CommandHook("/bin/true"), CommandHook("exit 0")))
    cause = (
        "no such folder, or no access to it"
        if isinstance(machine, SshMachine)
        else "No such file or directory"
    )
    why = f"could not be started: {gone}: {cause}"
    assert (type(verdict), [run_message(run) for run in verdict.runs]) == (Stop, [why, why])


@pytest.mark.req("S0-104")
def test_a_hostile_hook_does_not_hold_up_the_verdict_of_its_sibling(project: Path, machine: Machine) -> None:
    with token() as mark:
        hostile = CommandHook(filled(STUBBORN, mark), timeout=0.5)
        verdict = machine.run(ask_on(machine, project, hostile, "echo 'go on' >&2; exit 2"))
        assert [outcome(run) for run in verdict.runs] == ["timeout", "block"]
        assert (type(verdict), processes(mark)) == (Continue, set())


@pytest.mark.req("S0-104", "X-11")
def test_a_timeout_is_kept_although_every_thread_of_the_loop_is_busy(project: Path, machine: Machine) -> None:
    release = threading.Event()

    async def scenario(mark: str) -> Verdict:
        loop = asyncio.get_running_loop()
        busy = [loop.run_in_executor(None, release.wait) for _ in range((os.cpu_count() or 1) + 4)]
        try:
            return await ask_on(machine, project, CommandHook(filled(NAP, mark), timeout=0.5))
        finally:
            release.set()
            await asyncio.gather(*busy)

    with token() as mark:
        verdict = machine.run(asyncio.wait_for(scenario(mark), HANG_TIMEOUT_S))
    assert [outcome(run) for run in verdict.runs] == ["timeout"]


# Cancel and abort

CANCELLED = (
    ("never exits", NAP, 2),
    ("ignores TERM", STUBBORN, 2),
    ("its child left the session", f"(setsid {NAP} &); {NAP}", 3),
    ("its child left the session and the environment", f"env -i setsid {NAP} & {NAP}", 3),
    ("stopped itself", "kill -STOP $$; : TOKEN", 1),
    ("prints for ever", "yes TOKEN", 1),
    ("has ended, and a grandchild holds its pipes", f"{NAP} & exit 0", 1),
)
each_cancelled = pytest.mark.parametrize(
    ("command", "crowd"), [pytest.param(command, crowd, id=name) for name, command, crowd in CANCELLED]
)


@pytest.mark.req("X-11")
@each_cancelled
def test_cancelled_it_leaves_nothing_behind_and_the_cancellation_passes(
    command: str, crowd: int, project: Path, machine: Machine
) -> None:
    async def scenario(mark: str) -> None:
        with no_file_left_open(await warmed_up(machine, project)):
            asking = asyncio.ensure_future(
                ask_on(machine, project, CommandHook(filled(command, mark), timeout=NEVER_S))
            )
            await up(mark, crowd)
            await cancelled(asking)
            assert await settled(mark, 0) == set()

    with token() as mark:
        machine.run(scenario(mark))


@pytest.mark.req("X-11")
@pytest.mark.parametrize("times", [2, 5])
def test_cancelled_again_while_it_cleans_up_it_leaves_nothing_behind(
    times: int, project: Path, machine: Machine
) -> None:
    async def scenario(mark: str) -> None:
        with no_file_left_open(await warmed_up(machine, project)):
            asking = asyncio.ensure_future(
                ask_on(machine, project, CommandHook(filled(STUBBORN, mark), timeout=NEVER_S))
            )
            await up(mark, 2)
            for _ in range(times - 1):
                asking.cancel()
                await asyncio.sleep(0.05)
            await cancelled(asking)
            assert await settled(mark, 0) == set()

    with token() as mark:
        machine.run(scenario(mark))


@pytest.mark.req("X-11")
def test_cancelled_while_it_cleans_up_after_a_timeout_the_cancellation_passes(
    project: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setattr(process, "KILL_GRACE_S", HANG_TIMEOUT_S)
    command = "trap 'echo yes > termed' TERM; echo yes > started; while [ ! -e released ]; do sleep 0.02; done; : TOKEN"

    async def scenario(mark: str, limit: float) -> bool:
        """Return False if the time limit came before the hook had started."""
        with no_file_left_open(await warmed_up(machine, project)):
            asking = asyncio.ensure_future(
                ask_on(machine, project, CommandHook(filled(command, mark), timeout=limit))
            )
            termed = asyncio.ensure_future(wait_for_file(project / "termed"))
            await asyncio.wait({asking, termed}, return_when=asyncio.FIRST_COMPLETED)
            if not termed.done():
                termed.cancel()
                return False
            asking.cancel()
            (project / "released").touch()
            await cancelled(asking)
            assert processes(mark) == set()
        return True

    with token() as mark:
        assert any(machine.run(scenario(mark, 0.5 * scale)) for scale in SCALES)


@pytest.mark.req("X-11")
def test_cancelled_two_hooks_side_by_side_leave_nothing_behind(project: Path, machine: Machine) -> None:
    async def scenario(mark: str) -> None:
        hooks = (CommandHook(filled(STUBBORN, mark)), CommandHook(filled(f"setsid {NAP}", mark)))
        with no_file_left_open(await warmed_up(machine, project)):
            asking = asyncio.ensure_future(ask_on(machine, project, *hooks))
            await up(mark, 4)
            await cancelled(asking)
            assert processes(mark) == set()

    with token() as mark:
        machine.run(scenario(mark))


@pytest.mark.req("S0-63", "S0-64", "X-11")
@each_cancelled
def test_aborted_the_agent_stops_and_nothing_is_left_behind(
    command: str, crowd: int, project: Path, machine: Machine
) -> None:
    place = workspace_on(machine, project)

    async def scenario(mark: str) -> None:
        write_settings(project, "turngate", stop_hooks(filled(command, mark)))
        abort = asyncio.Event()
        with no_file_left_open(await warmed_up(machine, project)):
            asking = asyncio.ensure_future(run_stop_hooks(place, str(project), told(), abort=abort))
            await up(mark, crowd)
            abort.set()
            result = await asking
            assert result == StopHooksResult(should_stop=True, warnings=["the stop hooks were aborted"])
            assert await settled(mark, 0) == set()

    with token() as mark:
        machine.run(scenario(mark))


@pytest.mark.req("S0-64", "X-11")
def test_cancelled_twice_run_stop_hooks_leaves_nothing_behind(project: Path, machine: Machine) -> None:
    place = workspace_on(machine, project)

    async def scenario(mark: str) -> None:
        write_settings(project, "turngate", stop_hooks(filled(STUBBORN, mark)))
        with no_file_left_open(await warmed_up(machine, project)):
            asking = asyncio.ensure_future(run_stop_hooks(place, str(project), told()))
            await up(mark, 2)
            asking.cancel()
            await asyncio.sleep(0.1)
            await cancelled(asking)
            assert processes(mark) == set()

    with token() as mark:
        machine.run(scenario(mark))


@pytest.mark.req("S0-64", "X-11")
def test_aborted_a_hook_in_the_background_ends_as_well(project: Path, machine: Machine) -> None:
    place = workspace_on(machine, project)

    async def scenario(mark: str) -> None:
        write_settings(project, "turngate", stop_hooks(filled(NAP, mark), **IN_BACKGROUND))
        abort = asyncio.Event()
        asking = asyncio.ensure_future(run_stop_hooks(place, str(project), told(), abort=abort))
        await up(mark, 2)
        abort.set()
        await asyncio.wait({asking}, timeout=HANG_TIMEOUT_S)
        assert (asking.done(), await settled(mark, 0)) == (True, set())

    with token() as mark:
        machine.run(scenario(mark))


@pytest.mark.req("X-11")
def test_cancelled_twice_a_hook_in_the_background_ends_as_well(project: Path, machine: Machine) -> None:
    place = workspace_on(machine, project)

    async def scenario(mark: str) -> None:
        write_settings(project, "turngate", stop_hooks(filled(NAP, mark), **IN_BACKGROUND))
        asking = asyncio.ensure_future(run_stop_hooks(place, str(project), told()))
        await up(mark, 2)
        asking.cancel()
        await asyncio.sleep(0.1)
        await cancelled(asking)
        assert await settled(mark, 0) == set()

    with token() as mark:
        machine.run(scenario(mark))


@pytest.mark.req("S0-104")
@pytest.mark.parametrize(
    "callback",
    [
        pytest.param(lambda _: time.sleep(NEVER_S), id="blocks its thread"),
        pytest.param(lambda _: sys.exit(2), id="exits"),
        pytest.param(lambda _: next(iter(())), id="raises StopIteration"),
    ],
)
def test_a_hostile_callback_never_hangs_or_breaks_the_verdict(
    callback: Callable[[object], object], project: Path
) -> None:
    verdict = asyncio.run(ask(project, CallbackHook(callback, timeout=0.5)))
    assert (type(verdict), len(verdict.runs)) == (Stop, 1)
    assert outcome(verdict.runs[0]) in ("timeout", "failed")


# What the tests above need


def told() -> StopHookInput:
    return StopHookInput(
        session_id="s-1",
        transcript_path="/t/chat.jsonl",
        cwd="/p",
        permission_mode="default",
        hook_event_name="Stop",
        stop_hook_active=False,
    )


def read_on_for(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set how long the output is read after the exit."""
    for module in (process, ssh_process):
        monkeypatch.setattr(module, "OUTPUT_GRACE_S", seconds)


def filled(text: str, mark: str) -> str:
    return text.replace("TOKEN", mark).replace("PYTHON", shlex.quote(sys.executable))


@contextmanager
def token() -> Iterator[str]:
    """A number that marks the processes of one attempt; whatever is left of them ends with it."""
    mark = f"{randbelow(10**12):012}"
    try:
        yield mark
    finally:
        for pid in processes(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def warmed_up(machine: Machine, project: Path) -> dict[str, str]:
    """The open files once the loop and its threads have what they keep."""
    await asyncio.to_thread(int)
    await ask_on(machine, project, "true")
    return open_files()


@contextmanager
def no_file_left_open(before: dict[str, str]) -> Iterator[None]:
    yield
    assert open_files() == before


def open_files() -> dict[str, str]:
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def processes(mark: str) -> set[int]:
    """Those that have the mark in their arguments or their environment; the dead have neither."""
    needle = mark.encode()
    return {int(name) for name in os.listdir("/proc") if name.isdigit() and needle in shown(name)}


def shown(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


async def up(mark: str, crowd: int) -> None:
    """Waits until so many processes run."""
    async with asyncio.timeout(HANG_TIMEOUT_S):
        while len(processes(mark)) < crowd:
            await asyncio.sleep(0.02)


async def settled(mark: str, expected: int) -> set[int]:
    """Wait until so many processes are left; one that was killed may take a moment to go."""
    end = time.monotonic() + HANG_TIMEOUT_S
    while len(left := processes(mark)) != expected and time.monotonic() < end:
        await asyncio.sleep(POLL_INTERVAL_S)
    return left


async def cancelled(asking: "asyncio.Future[T]") -> None:
    """Cancel and wait for the end."""
    asking.cancel()
    await asyncio.wait({asking})
    assert asking.cancelled()
