"""The engine with real processes and real callbacks."""

import asyncio
import contextlib
import functools
import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import (
    ask,
    rule,
    settings,
    stop_event,
    stop_hooks,
    subagent_stop,
    world,
    write_settings,
)
from tests.support.machines import Machine, ask_on, world_on
from tests.support.sessions import lines, survives
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S, TIMEOUT_SCALES
from turngate.agent.session import Session
from turngate.core.answers.report_types import Detached, Exited, HookFailed, Skipped, TimedOut
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.events import StopEvent, StopHookInput
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import AgentHook, CallbackHook, CommandHook, Hook, HttpHook, PromptHook
from turngate.core.settings import Settings
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault
from turngate.core.verdict.hook_run import outcome
from turngate.core.verdict.verdict import Continue, Stop, unenforced, warnings
from turngate.engine import ask_hooks
from turngate.models.scripted import ScriptedModel
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.state.journal import Journal
from turngate.stop_hooks import StopHooksResult, run_stop_hooks


def outcomes(verdict: Stop | Continue) -> list[str]:
    return [outcome(run) for run in verdict.runs]


@pytest.mark.req("S0-08")
def test_without_a_hook_nothing_is_started_and_no_file_is_touched(project: Path, state: Path) -> None:
    before = threading.enumerate()
    verdict = asyncio.run(ask_hooks(stop_event(), settings(), world(project, Journal(str(state)))))
    started = [thread for thread in threading.enumerate() if thread not in before]
    assert (verdict, state.exists(), started) == (Stop(), False, [])


STARTED = """
import asyncio, sys
started = []
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec")
sys.addaudithook(lambda name, _: started.append(name) if name in STARTS else None)
from turngate import Session, StopHookInput, run_stop_hooks
from turngate.cli.main import main
from turngate.models.scripted import ScriptedModel
from turngate.shells.local import LocalShell

project = sys.argv[1]

async def each() -> None:
    given = {"session_id": "s", "transcript_path": "/t", "cwd": project, "permission_mode": "default"}
    told = StopHookInput(**given, hook_event_name="Stop", stop_hook_active=False)
    await run_stop_hooks(LocalShell(), project, told)
    task = {"tool": "Task", "input": {"prompt": "count"}}
    async with Session(project, ScriptedModel({"main": [task, "done"], "sub": ["3"]})) as session:
        await session.send("go")

asyncio.run(each())
main(["fire", "Stop", "--project", project])
print(started)
"""


@pytest.mark.req("S0-08")
@pytest.mark.parametrize(("commands", "started"), [((), []), (("true",), ["subprocess.Popen"] * 4)])
def test_a_stop_without_hooks_starts_no_process(
    project: Path, commands: tuple[str, ...], started: list[str]
) -> None:
    """The interpreter itself reports each process that a stop of each kind starts, and the one that watches this process."""
    write_settings(project, "turngate", stop_hooks(*commands))
    done = subprocess.run(
        [sys.executable, "-c", STARTED, str(project)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == str(started)


@pytest.mark.req("S0-27", "S0-32", "S0-33")
def test_a_relative_project_is_absolute_for_its_hooks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(project, "turngate", stop_hooks("echo $MUX_PROJECT_DIR $CLAUDE_PROJECT_DIR $PWD > where"))
    monkeypatch.chdir(project.parent)
    asyncio.run(run_stop_hooks(LocalShell(), project.name, GIVEN))
    assert (project / "where").read_text() == f"{project} {project} {project}\n"


@pytest.mark.req("S0-02", "S0-14", "S0-39", "S3-20")
def test_a_command_that_exits_with_two_sends_the_agent_back(project: Path, machine: Machine) -> None:
    verdict = machine.run(ask_on(machine, project, r"printf 'run the tests\nof the parser\n' >&2; exit 2"))
    assert isinstance(verdict, Continue)
    assert verdict.prompt == "[Stop hook requested continuation]\nrun the tests\nof the parser"


@pytest.mark.req("S3-19")
def test_a_command_that_exits_with_zero_lets_it_go_and_its_words_are_kept(
    project: Path, machine: Machine
) -> None:
    verdict = machine.run(ask_on(machine, project, "echo all well"))
    assert (type(verdict), verdict.runs[0].report, verdict.runs[0].decision) == (
        Stop,
        Exited(0, "all well\n"),
        Allow(),
    )


@pytest.mark.req("S0-24", "S0-31", "S3-18")
def test_a_hook_reads_the_event_to_its_end_in_the_projects_folder(project: Path, machine: Machine) -> None:
    machine.run(ask_on(machine, project, "cat > seen.json; pwd > where", last_assistant_message="done"))
    told = json.loads((project / "seen.json").read_text())
    assert (told["session_id"], told["cwd"], told["last_assistant_message"]) == ("s-1", str(project), "done")
    assert (project / "where").read_text().strip() == str(project.resolve())


def sleepers(*seconds: float) -> tuple[CommandHook, ...]:
    """Each writes down when it starts and ends, and refuses."""
    line = "echo {0} starts >> log; sleep {1}; echo {0} ends >> log; echo no {0} >&2; exit 2"
    return tuple(CommandHook(line.format(number, nap)) for number, nap in enumerate(seconds))


def order_of_events(project: Path) -> list[str]:
    return (project / "log").read_text().splitlines()


@pytest.mark.req("C-05")
def test_in_parallel_all_start_together_and_results_keep_the_configured_order(
    project: Path, machine: Machine
) -> None:
    # The first ends only when the second has been collected.
    first = "until [ -s pid ]; do sleep 0.02; done; while kill -0 $(cat pid); do sleep 0.02; done 2>&-; echo no 0 >&2; exit 2"
    second = "echo $$ > pid; echo no 1 >&2; exit 2"
    verdict = machine.run(ask_hooks(stop_event(), settings(first, second), world_on(machine, project)))
    assert [run.decision for run in verdict.runs] == [Block("no 0"), Block("no 1")]
    assert [run.finished for run in verdict.runs] == [1, 0]


@pytest.mark.req("C-05")
@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
def test_three_hooks_run_at_the_same_time(project: Path, dialect: Dialect, machine: Machine) -> None:
    """Each passes only when the other two have started; one after another, the first gives up."""
    wait = "n=0; until [ -e 0 -a -e 1 -a -e 2 ]; do n=$((n+1)); [ $n -lt 400 ] || exit 9; sleep 0.05; done"
    hooks = [CommandHook(f"touch {number}; {wait}", timeout=HANG_TIMEOUT_S) for number in range(3)]
    verdict = machine.run(
        ask_hooks(stop_event(), settings(*hooks, dialect=dialect), world_on(machine, project))
    )
    assert (type(verdict), outcomes(verdict)) == (Stop, ["allow"] * 3)


@pytest.mark.req("C-05")
def test_in_sequence_one_follows_the_other_and_every_output_is_kept(project: Path, machine: Machine) -> None:
    said = settings(*sleepers(0.2, 0.0), order={"Stop": "sequential"})
    verdict = machine.run(ask_hooks(stop_event(), said, world_on(machine, project)))
    assert outcomes(verdict) == ["block", "block"]
    assert order_of_events(project) == ["0 starts", "0 ends", "1 starts", "1 ends"]


@pytest.mark.req("C-05")
def test_first_block_ends_the_asking(project: Path, machine: Machine) -> None:
    said = settings("true", *sleepers(0.0, 0.0), order={"*": "first_block"})
    verdict = machine.run(ask_hooks(stop_event(), said, world_on(machine, project)))
    assert (outcomes(verdict), order_of_events(project)) == (
        ["allow", "block", "skipped"],
        ["0 starts", "0 ends"],
    )
    assert isinstance(verdict, Continue)
    assert verdict.prompt == "[Stop hook requested continuation]\nno 0"


def test_first_block_continues_after_a_hook_that_only_observes(project: Path) -> None:
    observer = CommandHook("echo no >&2; exit 2", mode="observe")
    verdict = asyncio.run(
        ask_hooks(stop_event(), settings(observer, "true", order={"*": "first_block"}), world(project))
    )
    assert outcomes(verdict) == ["would_block", "allow"]


def test_first_block_continues_after_advice(project: Path) -> None:
    said = settings(CallbackHook(lambda _: Advise("hm")), "echo no >&2; exit 2", order={"*": "first_block"})
    verdict = asyncio.run(ask_hooks(stop_event(), said, world(project)))
    assert outcomes(verdict) == ["advise", "block"]


def test_one_budget_for_all_hooks_of_a_stop(project: Path, machine: Machine) -> None:
    said = settings("sleep 20", "sleep 21", stop_budget=0.3)
    verdict = machine.run(ask_hooks(stop_event(), said, world_on(machine, project)))
    assert outcomes(verdict) == ["timeout", "timeout"]


def test_in_sequence_a_used_up_budget_leaves_the_rest_out_and_says_so(
    project: Path, machine: Machine
) -> None:
    said = settings("sleep 20", "true", stop_budget=0.3, order={"*": "sequential"})
    verdict = machine.run(ask_hooks(stop_event(), said, world_on(machine, project)))
    assert (outcomes(verdict), verdict.runs[1].decision) == (
        ["timeout", "skipped"],
        Fault("the stop budget was used up by earlier hooks", "skipped"),
    )


@pytest.mark.req("S0-16", "C-01", "U-16", "S0-104")
def test_a_hook_that_hangs_is_ended_and_what_it_printed_is_kept(project: Path, machine: Machine) -> None:
    for limit in (0.5 * scale for scale in TIMEOUT_SCALES):
        hook = CommandHook("echo about to hang; echo why >&2; sleep 3600", timeout=limit)
        verdict = machine.run(ask_on(machine, project, hook))
        [run] = verdict.runs
        assert (run.decision, type(verdict)) == (Fault(f"timed out after {limit:g} s", "timeout"), Stop)
        if run.report == TimedOut(limit, "about to hang\n", "why\n"):
            return
    pytest.fail(f"{run.report}")


def test_a_hook_that_ends_in_time_counts_although_a_child_process_holds_the_pipes_past_the_limit(
    project: Path, machine: Machine
) -> None:
    def decision(limit: float) -> Decision:
        hook = CommandHook("echo stay >&2; sleep 3600 & sleep 0.3; exit 2", timeout=limit)
        return machine.run(ask_on(machine, project, hook)).runs[0].decision

    assert any(decision(0.6 * scale) == Block("stay") for scale in TIMEOUT_SCALES)


@pytest.mark.req("C-03")
def test_a_gate_in_observe_mode_runs_and_blocks_nothing(project: Path, machine: Machine) -> None:
    verdicts = [
        machine.run(ask_hooks(stop_event(), said, world_on(machine, project)))
        for said in (
            settings(CommandHook("echo no >&2; exit 2", mode="observe")),
            settings("echo no >&2; exit 2", mode={"Stop": "observe"}),
            settings("echo no >&2; exit 2", mode={"*": "observe"}),
        )
    ]
    assert [(type(v), outcomes(v)) for v in verdicts] == [(Stop, ["would_block"])] * 3


def test_a_hooks_own_mode_wins_over_the_settings(project: Path) -> None:
    said = settings(CommandHook("echo no >&2; exit 2", mode="gate"), mode={"*": "observe"})
    assert isinstance(asyncio.run(ask_hooks(stop_event(), said, world(project))), Continue)


@pytest.mark.req("C-10", "C-29", "S3-28")
@pytest.mark.parametrize(
    ("hook", "error"),
    [
        (CommandHook("echo boom >&2; exit 1"), "exit code 1: boom"),
        (CommandHook(f"sleep {NEVER_S}", timeout=0.2), "timed out after 0.2 s"),
        (CommandHook("kill -KILL $$"), "killed by signal 9, nothing on stderr"),
        (CallbackHook(lambda _: 1 / 0), "ZeroDivisionError: division by zero"),
    ],
    ids=["exit code", "timeout", "crash", "exception"],
)
def test_a_failure_blocks_where_the_hook_is_blocking(
    project: Path, machine: Machine, hook: Hook, error: str
) -> None:
    hooks = [hook, replace(hook, blocking=True)]
    verdicts = [machine.run(ask_on(machine, project, each)) for each in hooks]
    prompt = (
        f"[Stop hook requested continuation]\nthis check failed and must pass before you may stop: {error}"
    )
    assert verdicts == [Stop(verdicts[0].runs), Continue(verdicts[1].runs, prompt)]


@pytest.mark.req("S0-19")
def test_a_bare_path_runs_when_it_is_executable_and_fails_visibly_when_not(
    project: Path, machine: Machine
) -> None:
    path = project / "hook.py"
    path.write_text("#!/usr/bin/env python3\nimport sys\nsys.exit('no')\n")
    seen = []
    for mode in (0o755, 0o644):
        path.chmod(mode)
        verdict = machine.run(ask_on(machine, project, str(path)))
        report = verdict.runs[0].report
        assert isinstance(report, Exited)
        [warning] = warnings(verdict.runs, MUX)
        seen.append((type(verdict), report.code, warning.rpartition(": ")[2]))
    assert seen == [(Stop, 1, "no"), (Stop, 126, "Permission denied")]


def test_hooks_in_the_background_are_not_waited_for_and_their_decision_is_ignored(
    project: Path, machine: Machine
) -> None:
    async def stop() -> tuple[Any, bool, int]:
        outside = world_on(machine, project)
        hook = CommandHook("sleep 0.3; echo done > done; exit 2", detached=True)
        verdict = await ask_hooks(stop_event(), settings(hook), outside)
        return verdict, (project / "done").exists(), await outside.close(grace=5)

    verdict, too_early, ended = machine.run(stop())
    assert (type(verdict), verdict.runs[0].report, too_early, ended) == (Stop, Detached(), False, 0)
    assert (project / "done").exists()


def test_a_hook_in_the_background_that_does_not_end_is_ended(project: Path, machine: Machine) -> None:
    async def stop() -> int:
        outside = world_on(machine, project)
        await ask_hooks(stop_event(), settings(CommandHook("sleep 60", detached=True)), outside)
        return await outside.close(grace=0.2)

    assert machine.run(stop()) == 1


@pytest.mark.req("X-12")
def test_a_long_reason_is_cut_in_the_middle_and_kept_whole_in_a_file(
    project: Path, state: Path, machine: Machine
) -> None:
    hook = CommandHook("printf 'begin%020000dend' 0 >&2; exit 2")
    journal = Journal(str(state))
    verdict = machine.run(ask_hooks(stop_event(), settings(hook), world_on(machine, project, journal)))
    [kept] = (state / "sessions" / "s-1" / "texts").iterdir()
    assert isinstance(verdict, Continue)
    reason = verdict.prompt.removeprefix("[Stop hook requested continuation]\n")
    assert (len(reason), reason[:5], reason[-3:], str(kept) in reason) == (10_000, "begin", "end", True)
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == (f"begin{0:020000d}end", 0o600)


def test_kinds_that_cannot_run_yet_say_so_and_allow(project: Path) -> None:
    for hook in (PromptHook("done?"), AgentHook("done?"), HttpHook("http://127.0.0.1/x")):
        verdict = asyncio.run(ask_hooks(stop_event(), settings(hook), world(project)))
        assert (type(verdict), outcomes(verdict), len(unenforced(verdict.runs, MUX))) == (Stop, ["failed"], 1)


# Callbacks


def callback_decision(function: Any, **fields: Any) -> Any:
    async def stop() -> Any:
        verdict = await ask_hooks(stop_event(), settings(CallbackHook(function, **fields)), world(Path("/")))
        return verdict.runs[0]

    return asyncio.run(stop())


async def refuses(event: StopEvent) -> Block:
    await asyncio.sleep(0)
    return Block(f"not yet, {event.session_id}")


def give(function: Any, event: StopEvent) -> Any:
    """A sync function that gives something to await."""
    return function(event)


class Refuser:
    async def __call__(self, event: StopEvent) -> dict[str, str]:
        return {"decision": "block", "reason": event.name}


@pytest.mark.parametrize(
    ("function", "decision"),
    [
        (refuses, Block("not yet, s-1")),
        (lambda event: Block(event.session_id), Block("s-1")),
        (functools.partial(give, refuses), Block("not yet, s-1")),
        (Refuser(), Block("Stop")),
        (lambda _: None, Allow()),
    ],
)
def test_a_callback_may_be_sync_or_async(function: Any, decision: Any) -> None:
    assert callback_decision(function).decision == decision


async def raises(_: StopEvent) -> None:
    raise KeyError("x")


async def exits(_: StopEvent) -> None:
    raise SystemExit(3)


class Odd(BaseException):
    pass


async def raises_what_nobody_catches(_: StopEvent) -> None:
    raise Odd("x" * 5000)


async def cancels_itself(_: StopEvent) -> None:
    task = asyncio.create_task(asyncio.sleep(5))
    task.cancel()
    await task


async def times_itself_out(_: StopEvent) -> None:
    async with asyncio.timeout(0.01):
        await asyncio.sleep(5)


def stops_iterating(_: StopEvent) -> None:
    raise StopIteration("odd")


@pytest.mark.req("X-09")
@pytest.mark.parametrize(
    ("function", "error"),
    [
        (raises, "KeyError: 'x'"),
        (exits, "SystemExit: 3"),
        (cancels_itself, "it cancelled itself"),
        (raises_what_nobody_catches, "Odd: " + "x" * 1000),
        (times_itself_out, "TimeoutError"),
        (stops_iterating, "RuntimeError: StopIteration: odd"),
        (lambda _: int("x"), "ValueError: invalid literal for int() with base 10: 'x'"),
    ],
)
def test_whatever_a_callback_raises_is_its_fault_and_never_ours(function: Any, error: str) -> None:
    assert callback_decision(function).report == HookFailed(error)


async def ignores_its_cancellation(_: StopEvent) -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.2)


async def cleans_up_slowly(_: StopEvent) -> None:
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.05)
        CLEANED.append(True)


CLEANED: list[bool] = []


@pytest.mark.req("S0-104")
@pytest.mark.parametrize("function", [ignores_its_cancellation, cleans_up_slowly, lambda _: time.sleep(60)])
def test_a_callback_never_outlives_its_limit_by_much(function: Any) -> None:
    run = callback_decision(function, timeout=0.2)
    assert run.report == TimedOut(0.2)


def test_a_callback_that_is_ended_may_clean_up() -> None:
    CLEANED.clear()
    callback_decision(cleans_up_slowly, timeout=0.1)
    assert CLEANED == [True]


def test_a_cancelled_caller_is_cancelled_whatever_the_callback_does() -> None:
    async def stop() -> str:
        hook = CallbackHook(ignores_its_cancellation)
        task = asyncio.create_task(ask_hooks(stop_event(), settings(hook), world(Path("/"))))
        await asyncio.sleep(0.05)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "swallowed"

    assert asyncio.run(stop()) == "cancelled"


# The journal


def journal_lines(state: Path, session: str = "s-1") -> list[dict[str, Any]]:
    path = state / "sessions" / session / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_run_and_every_verdict_is_one_line_of_the_journal(
    project: Path, state: Path, machine: Machine
) -> None:
    journal = Journal(str(state))
    said = settings("true", "echo no >&2; exit 2")
    machine.run(ask_hooks(stop_event(), said, world_on(machine, project, journal)))
    journal.close()
    lines = journal_lines(state)
    shown = [
        {key: line.get(key) for key in ("kind", "event", "outcome", "verdict", "exit_code")} for line in lines
    ]
    runs = sorted(shown[:2], key=lambda line: str(line["outcome"]))
    assert [*runs, shown[2]] == [
        {"kind": "hook", "event": "Stop", "outcome": "allow", "verdict": None, "exit_code": 0},
        {"kind": "hook", "event": "Stop", "outcome": "block", "verdict": None, "exit_code": 2},
        {"kind": "verdict", "event": "Stop", "outcome": None, "verdict": "continue", "exit_code": None},
    ]


def test_the_journal_has_the_answer_of_the_agent_without_secrets_and_names_a_subagent(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", "s3cr3t-v4lu3")
    settings_of_both = replace(settings("true"), rules=(rule("true"), rule("true", "SubagentStop")))
    world = World(LocalShell(), str(project), journal := Journal(str(state)))
    said = f"Done, with s3cr3t-v4lu3. {'x' * 1000}"
    for event in (stop_event(last_assistant_message=said), subagent_stop("explore")):
        asyncio.run(ask_hooks(event, settings_of_both, world))
    journal.close()
    keys = ("kind", "answer", "agent_id", "agent_type")
    assert [{key: line[key] for key in keys if key in line} for line in journal_lines(state)] == [
        {"kind": "hook"},
        {"kind": "verdict", "answer": f"Done, with …. {'x' * 474}…"},
        {"kind": "hook", "agent_id": "a-1", "agent_type": "explore"},
        {"kind": "verdict", "agent_id": "a-1", "agent_type": "explore"},
    ]


@pytest.mark.req("S0-88", "S0-104")
@pytest.mark.parametrize(
    "body",
    [
        "echo '{}'",
        """echo '{"decision": "block", "reason": "no"}'""",
        "echo no >&2",
        "trap 'echo no >&2; exit 2' TERM",
        """trap 'echo "{\\"decision\\": \\"block\\", \\"reason\\": \\"no\\"}"; exit 0' TERM""",
    ],
    ids=["silent", "block before", "stderr before", "exit 2 when ended", "block when ended"],
)
@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
def test_whatever_a_hook_says_before_or_after_its_timeout_it_does_not_block(
    project: Path, state: Path, dialect: Dialect, body: str, machine: Machine
) -> None:
    journal = Journal(str(state))
    hook = CommandHook(f"{body}; echo $$ > pid; while :; do sleep 0.05; done", timeout=0.5, id="slow")
    said = settings(hook, dialect=dialect)
    verdict = machine.run(ask_hooks(stop_event(), said, world_on(machine, project, journal)))
    journal.close()
    assert (type(verdict), outcomes(verdict)) == (Stop, ["timeout"])
    assert warnings(verdict.runs, TURNGATE) == ('hook "slow" timed out after 0.5 s and was NOT enforced',)
    assert [line.get("outcome") for line in journal_lines(state) if line["kind"] == "hook"] == ["timeout"]
    assert [survives(pid) for pid in lines(project / "pid")] in ([], [False])


@pytest.mark.req("C-02", "S0-17", "S2-16")
@pytest.mark.parametrize("kind", ["command", "callback", "prompt", "agent"])
@pytest.mark.parametrize("key", [("*", "KIND"), ("Stop", "KIND"), ("Stop", "*"), ("*", "*")], ids=str)
def test_a_hook_without_a_timeout_of_its_own_is_ended_at_the_default(
    project: Path, kind: str, key: tuple[str, str]
) -> None:
    async def forever(_: object) -> None:
        await asyncio.sleep(NEVER_S)

    hooks: dict[str, Hook] = {
        "command": CommandHook(f"exec sleep {NEVER_S}"),
        "callback": CallbackHook(forever),
        "prompt": PromptHook("done?"),
        "agent": AgentHook("done?"),
    }
    timeouts = {(key[0], key[1].replace("KIND", kind)): 0.3}
    model = ScriptedModel({"main": ["done"], "judge": [{"text": "{}", "delay": NEVER_S}]})
    said = settings(hooks[kind], timeouts=timeouts)

    async def turn() -> TurnResult:
        async with Session(str(project), model, said) as session:
            return await session.send("go")

    result = asyncio.run(turn())
    assert [(outcome(run), run.timeout) for run in result.hook_runs] == [("timeout", 0.3)]
    assert result.ended_by == "allowed"


@pytest.mark.req("S0-48")
@pytest.mark.parametrize("suppress", [False, True])
def test_suppressed_output_is_in_the_journal(
    project: Path, state: Path, suppress: bool, machine: Machine
) -> None:
    said = json.dumps({"suppressOutput": suppress, "reason": "fine"})
    journal = Journal(str(state))
    machine.run(ask_hooks(stop_event(), settings(f"echo '{said}'"), world_on(machine, project, journal)))
    journal.close()
    kept = [(line["kind"], line.get("outcome"), line.get("stdout")) for line in journal_lines(state)]
    assert kept == [("hook", "allow", f"{said}\n"), ("verdict", None, None)]


def test_a_full_or_forbidden_disk_never_changes_a_verdict(project: Path, tmp_path: Path) -> None:
    in_the_way = tmp_path / "state"
    in_the_way.write_text("a file where the folder should be")
    journal = Journal(str(in_the_way))
    hook = CommandHook("printf '%020000d' 0 >&2; exit 2")
    verdict = asyncio.run(ask_hooks(stop_event(), settings(hook), world(project, journal)))
    journal.close()
    assert isinstance(verdict, Continue)
    assert "the whole text could not be kept" in verdict.prompt
    assert journal.fault is not None
    assert journal.fault.endswith("Not a directory); set TURNGATE_STATE to another folder")


# run_stop_hooks

GIVEN = StopHookInput(
    session_id="s-1",
    transcript_path="/t",
    cwd="/p",
    permission_mode="default",
    hook_event_name="Stop",
    stop_hook_active=False,
)


def test_many_hooks_that_hang_end_together(project: Path, machine: Machine) -> None:
    hooks = [CommandHook(f"sleep 60; : {number}", timeout=0.5) for number in range(40)]
    verdict = machine.run(ask_on(machine, project, *hooks))
    assert outcomes(verdict) == ["timeout"] * 40


@pytest.mark.req("S0-63", "S0-61", "S0-65")
def test_run_stop_hooks_reads_the_settings_and_tells_reason_and_warnings(project: Path) -> None:
    write_settings(
        project, "mux", stop_hooks("echo 'run the tests' >&2; exit 2", "echo boom >&2; exit 1", "exit 3")
    )
    result = asyncio.run(run_stop_hooks(LocalShell(), str(project), GIVEN))
    assert result == StopHooksResult(
        should_stop=False,
        continue_reason="run the tests",
        warnings=[
            'hook "echo boom >&2; exit 1" failed and was NOT enforced: exit code 1: boom',
            'hook "exit 3" failed and was NOT enforced: exit code 3, nothing on stderr',
        ],
    )


@pytest.mark.req("S0-63")
def test_a_broken_settings_file_is_one_of_the_warnings(project: Path) -> None:
    write_settings(project, "mux", "{")
    result = asyncio.run(run_stop_hooks(LocalShell(), str(project), GIVEN))
    assert (result.should_stop, len(result.warnings)) == (True, 1)
    assert result.warnings[0].startswith(".mux/settings.json: not JSON at line 1, column 2")


@pytest.mark.req("S0-03")
def test_an_unknown_event_is_one_of_the_warnings_and_the_others_run(project: Path) -> None:
    hooks = stop_hooks("echo no >&2; exit 2")["hooks"]
    write_settings(project, "mux", {"hooks": {**hooks, "Foo": hooks["Stop"]}})
    result = asyncio.run(run_stop_hooks(LocalShell(), str(project), GIVEN))
    said = ".mux/settings.json: Foo: is not a known event, so its hooks never run"
    assert result == StopHooksResult(should_stop=False, continue_reason="no", warnings=[said])


@pytest.mark.req("S0-60")
@pytest.mark.parametrize(
    ("field", "value"),
    [("hook_event_name", "PreToolUse"), ("session_id", None), ("stop_hook_active", "true")],
)
def test_the_input_of_a_stop_hook_is_checked(field: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=field):
        StopHookInput(**{**vars(GIVEN), field: value})


def test_a_hook_of_a_subagent_is_given_the_subagents_transcript(project: Path) -> None:
    write_settings(project, "mux", stop_hooks("echo $MUX_TRANSCRIPT_PATH >&2; exit 2", event="SubagentStop"))
    given = StopHookInput(**{**vars(GIVEN), "hook_event_name": "SubagentStop", "transcript_path": "/t/child"})
    result = asyncio.run(run_stop_hooks(LocalShell(), str(project), given, dialect="mux"))
    assert result == StopHooksResult(should_stop=False, continue_reason="/t/child")


def test_a_matcher_keeps_a_hook_off_other_subagents(project: Path) -> None:
    said = Settings(rules=(rule("exit 1", "SubagentStop", matcher="Explore"),), dialect=CLAUDE)
    verdict = asyncio.run(ask_hooks(subagent_stop("coder"), said, world(project)))
    assert (outcomes(verdict), unenforced(verdict.runs, CLAUDE)) == (["skipped"], ())
    assert isinstance(verdict.runs[0].report, Skipped)


def test_a_callback_may_have_a_time_limit_of_its_own_and_continue(project: Path) -> None:
    async def callback(_: StopEvent) -> Block:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await asyncio.sleep(10)
        await asyncio.sleep(0.8)
        return Block("after all")

    assert callback_decision(callback).decision == Block("after all")


def test_a_project_folder_that_is_not_there_is_one_of_the_warnings(tmp_path: Path) -> None:
    told = StopHookInput(
        session_id="s",
        transcript_path="",
        cwd="/",
        permission_mode="default",
        hook_event_name="Stop",
        stop_hook_active=False,
    )
    gone = str(tmp_path / "gone")
    said = f"the project folder {gone} does not exist, so only your user settings were read"
    assert asyncio.run(run_stop_hooks(LocalShell(), gone, told)) == StopHooksResult(True, None, [said])


BROKEN_CALLBACK = """
import asyncio
from turngate import CallbackHook, LocalShell, Options, StopEvent, World, ask_hooks

def gate():
    return None

settings = Options({"Stop": [CallbackHook(gate)]}).settings()
event = StopEvent(session_id="s", cwd=".")
verdict = asyncio.run(ask_hooks(event, settings, World(LocalShell(), ".")))
print([(hook.hook, hook.outcome) for hook in verdict.unenforced])
"""


def test_a_broken_callback_is_visible_without_any_configuration(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_CALLBACK], cwd=project, capture_output=True, text=True, check=True
    )
    why = "TypeError: gate() takes 0 positional arguments but 1 was given"
    assert (done.stdout, done.stderr) == (
        "[('gate', 'failed')]\n",
        f'hook "gate" failed and was NOT enforced: {why}\n',
    )


def test_the_log_holds_each_gate_that_was_not_enforced_and_the_traceback_at_debug(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def gate(_: StopEvent) -> None:
        raise KeyError("x")

    caplog.set_level("DEBUG", logger="turngate")
    asyncio.run(ask(project, CallbackHook(gate, id="gate"), "exit 1", "true"))
    assert [(each.levelname, each.getMessage(), bool(each.exc_info)) for each in caplog.records] == [
        ("DEBUG", "hook gate raised", True),
        ("WARNING", "hook \"gate\" failed and was NOT enforced: KeyError: 'x'", False),
        ("WARNING", 'hook "exit 1" failed and was NOT enforced: exit code 1, nothing on stderr', False),
    ]


def test_run_stop_hooks_names_the_gates_that_were_not_enforced(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1", "true"))
    hook_input = StopHookInput(
        session_id="s",
        transcript_path="",
        cwd=str(project),
        permission_mode="default",
        hook_event_name="Stop",
        stop_hook_active=False,
    )
    result = asyncio.run(run_stop_hooks(LocalShell(), str(project), hook_input))
    assert [(each.hook, each.outcome) for each in result.unenforced] == [("exit 1", "failed")]
