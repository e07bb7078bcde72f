"""Observers of children: one `subagent_stop` and one `subagent_ended` for each, whatever became of it."""

import asyncio
import json
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.sessions import SAVE_INPUT, block_first, hang, lines, records, saved_inputs, wait_for_file
from tests.support.subagents import Gate, Parent, bash, parent, redirect, task, tasks
from turngate.core.conversation.messages import Usage
from turngate.core.events.plugin_events import StopPayload, SubagentEndedEvent, SubagentStopPayload
from turngate.core.events.stream_events import SubagentStarted
from turngate.plugins.handlers import PluginContext, Plugins

pytestmark = pytest.mark.usefixtures("store")


def used(transcript: str) -> Usage:
    """What the answers in a transcript have cost."""
    total = Usage()
    for record in records(transcript):
        if record["type"] == "assistant":
            total += Usage(**record["message"]["usage"])
    return total


@pytest.mark.req("S1-08", "S1-10", "S1-15", "S1-22", "S1-24", "S1-28")
def test_the_whole_payload_of_a_subagents_stop(project: Path) -> None:
    scene = parent(project, bash("true"), "counted", allow=["Bash"])
    scene.play()
    [stop] = scene.stops
    run = next(run for name, run in scene.steps if name == "final")
    assert stop == SubagentStopPayload(
        parent_session_id=scene.session.id,
        agent_id=run.agent_id,
        agent_type="general-purpose",
        result=run,
        usage=used(run.transcript),
        total_tool_calls=1,
        total_duration=stop.total_duration,
        model="scripted/script",
        transcript_path=run.transcript,
        continuations=0,
        outcome="ok",
    )
    assert (stop.result.result, stop.total_duration > 0, stop.usage.output_tokens > 0) == (
        "counted",
        True,
        True,
    )
    assert [name for name in scene.trace if name == "stop"] == ["stop"]  # the main agent's only


@pytest.mark.req("S1-16")
def test_what_a_payload_says_of_use_is_what_its_result_says(project: Path) -> None:
    scene = parent(project, bash("true"), "one", "two", gate=Gate(redirect("on"), None), allow=["Bash"])
    scene.play()
    [stop] = scene.stops
    said = (stop.result.usage, stop.result.totalToolCalls, stop.result.totalDuration)
    assert said == (stop.usage, stop.totalToolCalls, stop.totalDuration)
    assert said[:2] == (used(stop.transcript_path), 1)


@pytest.mark.req("S1-27")
@pytest.mark.parametrize(("answer", "success"), [("done", True), ({"error": "invalid"}, False)])
def test_a_result_says_whether_it_is_one(project: Path, answer: Any, success: bool) -> None:
    scene = parent(project, answer)
    scene.play()
    assert [stop.result.success for stop in scene.stops] == [success]


@pytest.mark.req("S1-15", "S1-16", "S1-28")
def test_the_total_duration_is_that_of_all_runs_and_equals_the_result(project: Path) -> None:
    """At least from the first request to the last answer, at most from the start of the turn to its end."""
    scene = parent(project, {"text": "one", "delay": 0.3}, "two", gate=Gate(redirect("on"), None))
    began = time.time()
    scene.play()
    took = time.time() - began
    [stop] = scene.stops
    first, last = scene.runs()
    assert first.started is not None
    assert last.ended is not None
    assert 0.3 <= stop.total_duration == last.ended - first.started <= took
    assert stop.total_duration == stop.result.total_seconds


@pytest.mark.req("S1-02")
def test_a_plugin_counts_measures_and_works_after_the_end_of_each_run(project: Path) -> None:
    class Telemetry:
        def __init__(self) -> None:
            self.runs, self.tokens = list[str](), 0

        async def stop(self, payload: StopPayload) -> None:
            await self._note("stop", payload)

        async def subagent_stop(self, payload: SubagentStopPayload) -> None:
            await self._note("subagent_stop", payload)

        async def _note(self, name: str, payload: StopPayload | SubagentStopPayload) -> None:
            await asyncio.sleep(0.05)  # the run is not over for its caller before this has ended
            self.runs.append(f"{name}: {payload.result.result}")
            self.tokens += payload.usage.output_tokens

    plugins, telemetry = Plugins(), Telemetry()
    plugins.add(telemetry)
    scene = parent(project, "counted", main=[task(run_in_background=False), "one", "two"], plugins=plugins)
    result = scene.play("first", "second")
    [run] = scene.registered
    spent = used(result.transcript_path).output_tokens + used(run.transcript).output_tokens
    assert (telemetry.runs, telemetry.tokens) == (
        ["subagent_stop: counted", "stop: one", "stop: two"],
        spent,
    )


@pytest.mark.req("S1-01")
@pytest.mark.parametrize(
    ("methods", "told"),
    [
        ((), []),
        (("stop",), ["stop"]),
        (("subagent_stop",), ["subagent_stop"]),
        (("subagentStop",), ["subagentStop"]),
        (("stop", "subagentStop"), ["subagentStop", "stop"]),
    ],
    ids=["none", "stop", "subagent_stop", "subagentStop", "both"],
)
def test_a_plugin_object_handles_what_it_has_a_method_for(
    project: Path, methods: tuple[str, ...], told: list[str]
) -> None:
    called: list[str] = []
    handlers = {name: lambda _self, _payload, name=name: called.append(name) for name in methods}
    plugins = Plugins()
    plugins.add(type("Observer", (), handlers)())
    parent(project, plugins=plugins).play()
    assert called == told


@pytest.mark.req("S1-11")
def test_a_handler_cannot_change_what_the_parent_and_the_next_plugin_get(project: Path) -> None:
    def scribble(payload: SubagentStopPayload) -> None:
        payload.result.launch.clear()
        for changed, name in ((payload, "agent_id"), (payload.result, "result"), (payload.result, "outcome")):
            object.__setattr__(changed, name, "mine")

    def rewrite(event: SubagentEndedEvent, _context: object) -> None:
        object.__setattr__(event, "outcome", "mine")

    plugins = Plugins()
    plugins.on("subagent_stop", scribble, priority=1)
    plugins.on("subagent_ended", rewrite, priority=1)
    scene = parent(project, plugins=plugins)
    scene.play()
    [stop], [ended], [run] = scene.stops, scene.ended, scene.registered
    assert (stop.agent_id, stop.result.result, stop.result.outcome) == (run.agent_id, "done", "ok")
    assert stop.result.launch == run.launch != {}
    assert (ended.outcome, scene.heard("main")[-1], scene.notices) == ("ok", "tool: done", [])


@pytest.mark.req("S1-26", "C-04", "X-36", "S4-45")
def test_a_subagent_that_is_redirected_twice_is_reported_once_with_all_that_it_used(project: Path) -> None:
    gate = Gate(redirect("on"), redirect("on"), None)
    sub = (bash("true"), "one", bash("true"), "two", "three")
    rules = [rule(SAVE_INPUT, "SubagentStart")]
    scene = parent(project, *sub, gate=gate, rules=rules, allow=["Bash"])
    scene.play()
    [stop] = scene.stops
    [end] = scene.ended
    assert saved_inputs(project, "agent_id") == [stop.agent_id] == [end.agent_id]
    assert (stop.continuations, stop.usage, stop.result.id) == (2, used(stop.transcript_path), end.run_id)
    assert stop.total_tool_calls == 2


@pytest.mark.req("X-36", "S1-15")
@pytest.mark.parametrize("how", ["killed", "steered"])
def test_what_a_run_used_before_it_was_ended_from_outside_counts(project: Path, how: str) -> None:
    async def end(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        if how == "killed":
            await scene.kill()
        else:
            await scene.steer("leave that")

    scene = parent(project, bash(hang()), "left", allow=["Bash"])
    scene.during(end)
    [stop] = scene.stops
    assert (stop.usage, stop.total_tool_calls) == (used(stop.transcript_path), 1)


@pytest.mark.req("S1-26", "X-36")
def test_three_subagents_at_once_are_three_starts_three_stops_and_three_ends(project: Path) -> None:
    main = [tasks({"description": "a"}, {"description": "b"}, {"description": "c"}), "home"]
    scene = parent(project, main=main, rules=[rule(SAVE_INPUT, "SubagentStart")], gate=Gate())
    scene.play()
    started = sorted(saved_inputs(project, "agent_id"))
    assert len(set(started)) == 3
    assert sorted(stop.agent_id for stop in scene.stops) == started
    assert sorted(event.agent_id for event in scene.ended) == started
    assert scene.trace[-2:] == ["stop", "on_end"]


@pytest.mark.req("S1-26")
def test_the_main_agents_stop_is_reported_once_also_when_hooks_blocked_both(project: Path) -> None:
    rules = [rule(block_first(2)), rule(block_first(2).replace("asked", "child"), "SubagentStop")]
    scene = parent(project, rules=rules)
    scene.play()
    told = [name for name in scene.trace if name in ("stop", "subagent_stop", "subagent_ended")]
    assert told == ["subagent_stop", "subagent_ended", "stop"]
    assert ([s.continuations for s in scene.stops], [t.continuations for t in scene.turns]) == ([2], [2])


@pytest.mark.req("S1-09", "S1-18", "S1-23")
@pytest.mark.parametrize("parent_id", ["", "s-parent"])
def test_a_subagent_that_is_started_without_the_tool_is_reported_too_and_may_have_no_parent(
    project: Path, parent_id: str
) -> None:
    async def start() -> None:
        async with scene.session:
            await scene.session.open()
            supervisor = await scene.supervisor()
            run = await supervisor.spawn("general-purpose", "alone", parent=parent_id)
            ended = await supervisor.result(run.chain)
            supervisor.result_delivered(run.chain)
            await supervisor.wait_until_idle()
            assert ended.result == "done"

    scene = parent(project)
    asyncio.run(start())
    assert [(stop.parent_session_id, stop.outcome) for stop in scene.stops] == [(parent_id, "ok")]
    assert [event.requester_session_key for event in scene.ended] == [parent_id]


@pytest.mark.req("S1-19", "S4-44")
def test_handlers_may_be_async_or_not_and_one_that_throws_is_only_a_notice(project: Path) -> None:
    plugins, told = Plugins(), list[str]()

    async def later(payload: SubagentStopPayload) -> None:
        await asyncio.sleep(0)
        told.append(f"async {payload.outcome}")

    async def later_ended(event: SubagentEndedEvent, _context: object) -> None:
        await asyncio.sleep(0)
        told.append(f"async ended {event.outcome}")

    def broken(*_: object) -> None:
        raise ValueError("broken")

    plugins.on("subagent_stop", broken, plugin="broken")
    plugins.on("subagent_ended", broken, plugin="broken")
    plugins.on("subagent_stop", later)
    plugins.on("subagentStop", lambda payload: told.append(f"sync {payload.outcome}"))
    plugins.on("subagent_ended", later_ended)
    plugins.on("subagent_ended", lambda event, _: told.append(f"sync ended {event.outcome}"))
    scene = parent(project, plugins=plugins)
    result = scene.play()
    assert told == ["async ok", "sync ok", "async ended ok", "sync ended ok"]
    assert scene.notices == [
        "plugin broken failed at subagent_stop: ValueError: broken",
        "plugin broken failed at subagent_ended: ValueError: broken",
    ]
    assert (result.result, scene.heard("main")[-1]) == ("home", "tool: done")


@pytest.mark.req("S4-44", "C-03")
def test_the_return_value_of_a_plugin_redirects_no_subagent(project: Path) -> None:
    plugins = Plugins()
    plugins.on("subagent_stop", lambda _: redirect("on"))
    plugins.on("subagent_ended", lambda *_: redirect("on"))
    scene = parent(project, plugins=plugins)
    scene.play()
    assert [request.agent for request in scene.model.requests] == ["main", "sub", "main"]


@pytest.mark.req("S1-20", "S1-28", "S1-15")
def test_a_plugin_writes_one_line_with_everything_where_its_context_says(project: Path, state: Path) -> None:
    class Telemetry:
        ctx: PluginContext

        def subagent_stop(self, payload: SubagentStopPayload) -> None:
            said = {field.name: getattr(payload, field.name) for field in fields(payload)}
            said["usage"], said["result"] = asdict(payload.usage), payload.result.result
            with open(Path(self.ctx.project, "telemetry"), "a") as file:
                file.write(json.dumps({**said, "session": self.ctx.session_id}) + "\n")

    plugins = Plugins()
    plugins.add(Telemetry())
    scene = parent(project, plugins=plugins)
    scene.play()
    [line] = [json.loads(text) for text in lines(project / "telemetry")]
    [stop] = scene.stops
    assert line == {
        "parent_session_id": scene.session.id,
        "agent_id": stop.agent_id,
        "agent_type": "general-purpose",
        "result": "done",
        "usage": asdict(stop.usage),
        "total_tool_calls": 0,
        "total_duration": stop.total_duration,
        "model": "scripted/script",
        "transcript_path": stop.transcript_path,
        "continuations": 0,
        "outcome": "ok",
        "session": scene.session.id,
    }


@pytest.mark.req("S1-17", "X-36")
@pytest.mark.parametrize("named", [{}, {"subagent_type": "reviewer"}], ids=["not named", "named again"])
def test_a_resumed_subagent_keeps_its_id_its_type_and_its_conversation(
    project: Path, named: dict[str, str]
) -> None:
    types = project / ".turngate" / "agents"
    types.mkdir(parents=True)
    (types / "reviewer.md").write_text("---\nname: reviewer\ndescription: reads\n---\nRead.\n")
    resumed = task("and now the words", resume="AGENT", description="words", **named)
    main = [task(subagent_type="reviewer", description="lines"), "first", resumed, "second"]
    scene = parent(project, "lines", "words", main=main, gate=Gate())
    scene.play("one", "two")
    first, second = scene.stops
    started = [event.agent_id for event in scene.of(SubagentStarted)]
    assert [(stop.agentId, stop.agentType) for stop in scene.stops] == [(started[0], "reviewer")] * 2
    assert first.result.id != second.result.id
    assert scene.heard("sub") == ["count the lines", "agent: lines", "and now the words"]
    assert scene.heard("main")[-1] == "tool: words"
    assert [(event.agent_id, event.agent_type) for event in scene.ended] == [(first.agent_id, "reviewer")] * 2


@pytest.mark.req("X-36")
def test_for_every_stop_there_is_a_start_also_when_a_subagent_is_resumed(project: Path) -> None:
    main = [task(), "first", task("and now the words", resume="AGENT"), "second"]
    rules = [rule("cat >> starts", "SubagentStart"), rule("cat >> stops", "SubagentStop")]
    scene = parent(project, "lines", "words", main=main, rules=rules)
    scene.play("one", "two")
    starts, stops = (
        [json.loads(line)["agent_id"] for line in lines(project / name)] for name in ("starts", "stops")
    )
    assert starts == stops == [stop.agent_id for stop in scene.stops]


@pytest.mark.req("S1-10")
def test_the_parent_of_a_subagents_subagent_is_that_subagent(project: Path) -> None:
    scene = parent(project, task("deeper"), "deep", "top")
    scene.play()
    deep, top = scene.stops
    assert (deep.parent_session_id, top.parent_session_id) == (top.agent_id, scene.session.id)
    assert (deep.parentSessionId, deep.totalToolCalls, top.usage.inputTokens > 0) == (top.agent_id, 0, True)
