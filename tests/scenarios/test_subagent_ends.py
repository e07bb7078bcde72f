"""The ends of a child: killed, out of time, failed, not to be sent on; each is told once and leaves nothing behind."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, script
from tests.support.sessions import hang, survives, wait_for_file
from tests.support.subagents import PROMPT, Gate, Parent, bash, parent, redirect, task
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S, TIMEOUT_SCALES
from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events.plugin_events import SubagentEndedEvent, SubagentStoppingContext
from turngate.core.events.stream_events import SubagentFinished
from turngate.errors import UsageError
from turngate.models.scripted import ScriptedModel
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.registry import Registry
from turngate.subagents.steering import steer as steer_by_hand

pytestmark = pytest.mark.usefixtures("store")

ENDED_ONCE = ["subagent_stop", "subagent_ended"]


def told(scene: Parent) -> list[str]:
    return [name for name in scene.trace if name in ENDED_ONCE]


# Kill


@pytest.mark.req("S4-34", "S4-43", "S4-44", "X-29", "X-36", "S1-26")
def test_a_subagent_that_is_killed_while_it_works_is_not_checked_and_its_end_is_reported_once(
    project: Path,
) -> None:
    gate = Gate(redirect("on"))

    async def kill(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        await scene.kill("enough")

    scene = parent(project, bash(hang()), gate=gate, allow=["Bash"])
    scene.during(kill)
    [run] = scene.registered
    assert not survives((project / "pid").read_text().strip())
    assert gate.events == []
    assert told(scene) == ENDED_ONCE
    assert scene.endings == [
        (
            SubagentEndedEvent(
                run_id=run.id,
                child_session_key=run.agent_id,
                requester_session_key=scene.session.id,
                agent_id=run.agent_id,
                agent_type="general-purpose",
                outcome="killed",
                reason="enough",
                transcript_path=run.transcript,
            ),
            SubagentStoppingContext(
                agent_id=run.agent_id,
                run_id=run.id,
                child_session_key=run.agent_id,
                requester_session_key=scene.session.id,
            ),
        )
    ]
    assert [(stop.outcome, stop.agent_id) for stop in scene.stops] == [("killed", run.agent_id)]
    assert scene.heard("main")[-1] == "tool: The subagent was killed: enough."


@pytest.mark.req("S4-34", "X-29")
def test_a_kill_ends_the_hook_that_is_being_asked(project: Path) -> None:
    async def kill(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        await scene.kill()

    gate = Gate(redirect("on"))
    scene = parent(project, "one", rules=[rule(hang(), "SubagentStop")], gate=gate)
    scene.during(kill)
    assert not survives((project / "pid").read_text().strip())
    assert (gate.events, told(scene)) == ([], ENDED_ONCE)
    assert [(event.outcome, event.steer_count) for event in scene.ended] == [("killed", 0)]
    assert scene.heard("main")[-1] == "tool: The subagent was killed: killed."


@pytest.mark.req("S4-34", "X-29")
def test_a_kill_ends_a_handler_that_is_being_asked(project: Path) -> None:
    asked, cancelled = asyncio.Event(), list[str]()

    async def handler(_event: object, _context: object) -> object:
        asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("handler")
            raise
        return redirect("on")

    async def kill(scene: Parent) -> None:
        await asked.wait()
        await scene.kill()

    scene = parent(project, "one", "two", gate=handler)
    scene.during(kill)
    assert (cancelled, told(scene)) == (["handler"], ENDED_ONCE)
    assert [event.outcome for event in scene.ended] == ["killed"]
    assert len(scene.model.requests) == 3  # two of the main agent


@pytest.mark.req("S4-34", "X-21", "X-29")
def test_what_a_handler_says_after_the_kill_revives_nothing(project: Path) -> None:
    asked, go, gone = threading.Event(), threading.Event(), threading.Event()

    def handler(_event: object, _context: object) -> object:
        asked.set()
        go.wait(HANG_TIMEOUT_S)
        gone.set()
        return redirect("on")

    async def kill(scene: Parent) -> None:
        while not asked.is_set():
            await asyncio.sleep(0.005)
        await scene.kill()
        await scene.until("done")
        go.set()
        while not gone.is_set():
            await asyncio.sleep(0.005)

    scene = parent(project, "one", "two", gate=handler)
    scene.during(kill)
    assert (told(scene), [event.outcome for event in scene.ended]) == (ENDED_ONCE, ["killed"])
    assert [request.agent for request in scene.model.requests] == ["main", "sub", "main"]


@pytest.mark.req("X-29", "S4-37")
def test_a_kill_takes_a_pending_redirect_away(project: Path, state: Path) -> None:
    def kill(name: str, run: SubagentRun) -> None:
        if name == "synced":
            with contextlib.closing(Registry(str(state))) as registry:
                registry.kill(run.id, "by another process")

    scene = parent(project, "one", "two", gate=Gate(redirect("on")), on_step=kill)
    scene.play()
    assert [(event.outcome, event.reason) for event in scene.ended] == [("killed", "by another process")]
    assert told(scene) == ENDED_ONCE
    assert [request.agent for request in scene.model.requests] == ["main", "sub", "main"]


@pytest.mark.req("X-21")
def test_a_second_kill_and_one_that_comes_too_late_do_nothing(project: Path) -> None:
    killed: list[list[str]] = []

    async def kill(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        first, second = await scene.kill(), await scene.kill()
        await scene.until("done")
        killed.extend([run.state for run in runs] for runs in (first, second, await scene.kill()))

    scene = parent(project, bash(hang()), allow=["Bash"])
    scene.during(kill)
    assert (killed, told(scene)) == ([["killed"], [], []], ENDED_ONCE)


# Out of time, and failures


@pytest.mark.req("S4-11", "S4-35", "X-36")
def test_a_subagent_that_took_too_long_is_asked_about_and_may_get_a_shorter_task(project: Path) -> None:
    slow = {"text": "too long", "delay": NEVER_S}
    for limit in (0.4 * scale for scale in TIMEOUT_SCALES):
        gate = Gate(redirect("only the first file"), None)
        scene = parent(project, slow, "short", gate=gate, children=SubagentLimits(seconds=limit))
        scene.play()
        if gate.events[-1].outcome == "ok":
            break
    seen = [(e.outcome, e.reason, e.error, e.last_assistant_message, e.steer_count) for e in gate.events]
    assert seen == [
        ("timeout", "timeout", f"it took longer than {limit:g} s", None, 0),
        ("ok", "complete", None, "short", 1),
    ]
    assert (told(scene), scene.heard("main")[-1]) == (ENDED_ONCE, "tool: short")


@pytest.mark.req("S4-11", "X-02", "X-36")
def test_a_timeout_without_a_redirect_is_the_subagents_outcome(project: Path) -> None:
    for limit in (0.4 * scale for scale in TIMEOUT_SCALES):
        scene = parent(project, bash(hang()), allow=["Bash"], children=SubagentLimits(seconds=limit))
        scene.play()
        if (project / "pid").exists():
            break
    why = f"it took longer than {limit:g} s"
    assert not survives((project / "pid").read_text().strip())
    assert [(event.outcome, event.error) for event in scene.ended] == [("timeout", why)]
    assert [(stop.outcome, stop.total_tool_calls) for stop in scene.stops] == [("timeout", 1)]
    assert scene.heard("main")[-1] == f"tool: The subagent failed (timeout): {why}"
    assert [finished.outcome for finished in scene.of(SubagentFinished)] == ["timeout"]


def _with_model(project: Path) -> None:
    script(project / ".turngate/agents/other.md", "---\nname: other\nmodel: x:elsewhere\n---\nWork.\n")


def _no_model(error: Exception) -> Callable[[str], ScriptedModel]:
    def make(_name: str) -> ScriptedModel:
        raise error

    return make


@pytest.mark.req("X-02", "X-36", "S1-27")
@pytest.mark.parametrize("error", [UsageError("no such model"), ValueError("no such model")])
def test_a_subagent_that_fails_before_its_first_request_is_reported_once(
    project: Path, error: Exception
) -> None:
    _with_model(project)
    scene = parent(project, main=[task(subagent_type="other"), "home"], models=_no_model(error))
    scene.play()
    [run] = scene.registered
    assert told(scene) == ENDED_ONCE
    assert [(e.agent_id, e.outcome, e.error) for e in scene.ended] == [
        (run.agent_id, "error", "no such model")
    ]
    assert [(s.agent_id, s.agent_type, s.outcome, s.usage) for s in scene.stops] == [
        (run.agent_id, "other", "error", Usage())
    ]
    assert scene.heard("main")[-1] == "tool: The subagent failed (error): no such model"


@pytest.mark.req("X-02")
def test_a_time_out_that_is_not_ours_is_a_failure_as_any_other(project: Path) -> None:
    _with_model(project)
    main = [task(subagent_type="other"), "home"]
    scene = parent(project, main=main, models=_no_model(TimeoutError("the provider is slow")))
    scene.play()
    assert told(scene) == ENDED_ONCE
    assert scene.heard("main")[-1] == "tool: The subagent failed (error): the provider is slow"


@pytest.mark.req("X-02", "X-36")
def test_a_subagent_whose_conversation_cannot_be_kept_is_reported_once(project: Path, state: Path) -> None:
    def block(name: str, run: SubagentRun) -> None:
        if name == "registered":
            Path(run.transcript).parent.parent.mkdir(parents=True, exist_ok=True)
            Path(run.transcript).parent.write_text("no folder")

    scene = parent(project, on_step=block)
    scene.play()
    assert told(scene) == ENDED_ONCE
    assert [(e.outcome, "cannot be used" in (e.error or "")) for e in scene.ended] == [("error", True)]


# A steer-restart that fails


def _fill_disk(path: str) -> None:
    """What is written to this file from now on meets a full disk, also if the file is opened again."""
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{fd}") == path:
                full = os.open("/dev/full", os.O_WRONLY)
                os.dup2(full, int(fd))
                os.close(full)
    os.rename(path, f"{path}.full")
    os.symlink("/dev/full", path)


@pytest.mark.req("S4-36")
@pytest.mark.parametrize("step", ["aborted", "cleared", "synced", "sent"])
def test_a_steer_restart_that_fails_at_a_step_ends_as_without_the_steer(project: Path, step: str) -> None:
    def fail(name: str, _run: SubagentRun) -> None:
        if name == step:
            raise OSError(f"broken at {step}")

    gate = Gate(redirect("on"))
    scene = parent(project, "one", "two", gate=gate, on_step=fail)
    scene.play()
    assert gate.counts == [0]
    assert told(scene) == ENDED_ONCE
    assert [(e.outcome, e.steer_count, e.error) for e in scene.ended] == [("ok", 0, None)]
    assert scene.notices == [
        (
            "subagent general-purpose stops with its last answer: "
            f"the new prompt could not be delivered: broken at {step}"
        )
    ]
    assert scene.heard("main")[-1] == "tool: one"


@pytest.mark.req("S4-36")
@pytest.mark.parametrize("step", ["cleared", "synced"])
def test_a_prompt_that_cannot_be_written_down_is_not_sent(project: Path, step: str) -> None:
    def fill(name: str, run: SubagentRun) -> None:
        if name == step:
            _fill_disk(run.transcript)

    scene = parent(project, "one", "two", gate=Gate(redirect("on")), on_step=fill)
    scene.play()
    assert (told(scene), scene.heard("main")[-1]) == (ENDED_ONCE, "tool: one")
    assert [(e.outcome, e.steer_count) for e in scene.ended] == [("ok", 0)]
    assert [notice.partition(":")[0] for notice in scene.notices] == [
        "subagent general-purpose stops with its last answer"
    ]


@pytest.mark.req("S4-36")
@pytest.mark.parametrize("error", [UsageError("no model"), ValueError("no model")])
def test_a_subagent_that_cannot_be_made_again_ends_as_it_is(project: Path, error: Exception) -> None:
    _with_model(project)
    gate = Gate(redirect("try again"))
    scene = parent(project, main=[task(subagent_type="other"), "home"], models=_no_model(error), gate=gate)
    scene.play()
    assert gate.counts == [0]
    assert told(scene) == ENDED_ONCE
    assert [(e.outcome, e.steer_count, e.error) for e in scene.ended] == [("error", 0, "no model")]
    assert scene.heard("main")[-1] == "tool: The subagent failed (error): no model"


# A steer by hand that races with the completion


@pytest.mark.req("S4-07", "S4-37", "C-34")
def test_a_steer_by_hand_ends_what_runs_asks_no_hook_and_does_not_count(project: Path) -> None:
    gate = Gate()

    async def steer(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        await scene.steer("leave that")

    scene = parent(project, bash(hang()), "left", gate=gate, allow=["Bash"])
    scene.during(steer)
    assert not survives((project / "pid").read_text().strip())
    assert [(e.task, e.steer_count, e.last_assistant_message) for e in gate.events] == [(PROMPT, 0, "left")]
    assert scene.heard("sub")[-1] == "leave that"
    restart = ["aborted", "cleared", "synced", "sent", "replaced"]  # `steer` made the request
    assert scene.names == [
        "registered",
        *restart,
        "worked",
        "ended",
        "checking",
        "checked",
        "final",
        "stop_notified",
        "announced",
        "end_notified",
        "done",
    ]
    assert (told(scene), scene.heard("main")[-1]) == (ENDED_ONCE, "tool: left")


@pytest.mark.req("S4-37")
def test_a_steer_while_a_handler_is_asked_comes_first(project: Path) -> None:
    scenes: list[Parent] = []
    counts: list[int] = []

    async def handler(event: Any, _context: object) -> object:
        counts.append(event.steer_count)
        if len(counts) == 1:
            await scenes[0].steer("by hand", event.run_id)
            await asyncio.sleep(60)
        return redirect("by the handler") if len(counts) == 2 else None

    scenes.append(parent(project, "one", "two", "three", gate=handler))
    scenes[0].play()
    assert scenes[0].heard("sub") == [PROMPT, "agent: one", "by hand", "agent: two", "by the handler"]
    assert counts == [0, 0, 1]


@pytest.mark.req("S4-02", "S4-37")
@pytest.mark.parametrize("step", ["worked", "ended"])
def test_a_steer_that_is_under_way_when_the_subagent_completes_keeps_the_hook_from_being_asked(
    project: Path, state: Path, step: str
) -> None:
    gate, marked = Gate(), list[str]()

    def steer(name: str, run: SubagentRun) -> None:
        if name == step and not marked:
            marked.append(run.id)
            with contextlib.closing(Registry(str(state))) as registry:
                steer_by_hand(registry, run, "by hand")

    scene = parent(project, "one", "two", gate=gate, on_step=steer)
    scene.play()
    assert [(e.last_assistant_message, e.steer_count) for e in gate.events] == [("two", 0)]
    assert scene.heard("sub") == [PROMPT, "agent: one", "by hand"]
    assert told(scene) == ENDED_ONCE
