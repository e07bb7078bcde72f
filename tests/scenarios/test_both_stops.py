"""Stop and SubagentStop side by side in one turn: who is asked, what each is sent, and how both end."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.sessions import (
    BLOCK_COMMAND,
    SAVE_INPUT,
    hang,
    lines,
    saved_inputs,
    survives,
    wait_for_file,
)
from tests.support.subagents import Parent, bash, parent, task, tasks, write
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import (
    SessionEvent,
    StreamEnd,
    SubagentFinished,
    ToolFinished,
    TurnEnd,
)
from turngate.core.hooks.kinds import CallbackHook
from turngate.plugins.handlers import Plugins

by_dialect = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
WAITED = task(run_in_background=False)
SIX = ("session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "stop_hook_active")


def both(command: str) -> list[Any]:
    return [rule(command), rule(command, "SubagentStop")]


# Who is asked


@by_dialect
@pytest.mark.req("S0-01", "S0-23", "S0-29", "S1-07")
def test_two_subagents_and_their_parent_are_asked_about_once_each_by_their_own_event(
    project: Path, dialect: Dialect
) -> None:
    two = tasks(*({"prompt": name, "run_in_background": False} for name in "ab"))
    scene = parent(project, "report", main=[two, "home"], rules=both(SAVE_INPUT), dialect=dialect)
    scene.play()
    asked = saved_inputs(project, "hook_event_name", "last_assistant_message")
    assert asked == [("SubagentStop", "report"), ("SubagentStop", "report"), ("Stop", "home")]
    subagents = Counter(told["agent_id"] for told in saved_inputs(project) if "agent_id" in told)
    assert subagents == Counter(run.agent_id for run in scene.registered)
    assert Counter(name for name in scene.trace if "stop" in name) == {
        "subagent_stop": 2,
        "stop_notified": 2,
        "stop": 1,
    }


@pytest.mark.req("S0-01", "S0-23")
@pytest.mark.parametrize("configured", ["Stop", "SubagentStop"])
def test_a_hook_of_one_event_is_never_asked_about_the_other(project: Path, configured: str) -> None:
    write_settings(project, "mux", stop_hooks("echo $TURNGATE_EVENT >> asked", event=configured))
    parent(project, main=[WAITED, task("again", run_in_background=False), "home"], files=True).play()
    assert lines(project / "asked") == [configured] * (1 if configured == "Stop" else 2)


@pytest.mark.req("S1-07", "S1-22")
def test_the_stop_handler_is_called_once_in_a_turn_with_three_subagents(project: Path) -> None:
    scene = parent(project, main=[tasks({}, {}, {}), "home"])
    scene.play()
    assert [payload.session_id for payload in scene.turns] == [scene.session.id]
    assert len(scene.stops) == 3


# What each is sent


@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=["turngate", "mux"])
@pytest.mark.req("S0-05", "S0-24", "S0-25", "S0-27", "S0-28", "S0-29", "S0-75")
def test_both_events_are_sent_the_six_fields_of_the_agent_that_stops(project: Path, dialect: Dialect) -> None:
    scene = parent(
        project,
        main=[WAITED, "home"],
        rules=both(SAVE_INPUT),
        dialect=dialect,
        said={"payload": "strict"},
        session_id="workspace-abc123",
        permission_mode="acceptEdits",
    )
    result = scene.play()
    [run] = scene.registered
    session = {"turngate": "workspace-abc123", "mux": run.agent_id}[dialect.name]
    child = (session, run.transcript, str(project), "default", "SubagentStop", False)
    main = ("workspace-abc123", result.transcript_path, str(project), "acceptEdits", "Stop", False)
    told = [list(each.items()) for each in saved_inputs(project)]
    assert told == [list(zip(SIX, values, strict=True)) for values in (child, main)]


@pytest.mark.req("S0-28")
def test_in_claude_a_subagents_hook_is_sent_the_mode_of_the_subagent(project: Path) -> None:
    main = [WAITED, "home"]
    rules = both(SAVE_INPUT)
    parent(project, main=main, rules=rules, dialect=CLAUDE, permission_mode="acceptEdits").play()
    assert saved_inputs(project, "hook_event_name", "permission_mode") == [
        ("SubagentStop", "acceptEdits"),
        ("Stop", "acceptEdits"),
    ]


@pytest.mark.req("S0-30", "S0-34", "S0-81")
def test_the_flag_is_true_only_at_a_continuation_whatever_was_inherited(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUX_STOP_HOOK_ACTIVE", "true")
    once = (
        f"{SAVE_INPUT}; echo $TURNGATE_EVENT $MUX_STOP_HOOK_ACTIVE >> env; "
        f'[ "$MUX_STOP_HOOK_ACTIVE" = true ] || {{ {BLOCK_COMMAND}; }}'
    )
    scene = parent(project, "report", main=[WAITED, "one", "two"], rules=both(once), dialect=MUX)
    scene.play()
    assert lines(project / "env") == [
        "SubagentStop false",
        "SubagentStop true",
        "Stop false",
        "Stop true",
    ]
    assert saved_inputs(project, "hook_event_name", "stop_hook_active") == [
        ("SubagentStop", False),
        ("SubagentStop", True),
        ("Stop", False),
        ("Stop", True),
    ]


# End to end


def gate(file: str) -> str:
    return f"test -e {file} || {{ echo 'write {file}' >&2; exit 2; }}"


@by_dialect
@pytest.mark.req("S0-106", "S0-45", "S0-76")
def test_both_agents_continue_until_their_gate_agrees(project: Path, dialect: Dialect) -> None:
    hooks = [rule(gate("child"), "SubagentStop"), rule(gate("main"))]
    sub = ["counted", write("child"), "written"]
    main = [WAITED, "home", write("main"), "all done"]
    scene = parent(
        project, *sub, main=main, rules=hooks, dialect=dialect, permission_mode="bypassPermissions"
    )
    result = scene.play()
    reasons = [
        message.rpartition("write ")[2].strip() for message in (scene.heard("sub")[2], scene.heard("main")[4])
    ]
    assert (reasons, handed(scene)) == (["child", "main"], "tool: written")
    assert (result.result, result.ended_by, result.continuations) == ("all done", "allowed", 1)
    assert [(each.outcome, each.redirects) for each in scene.of(SubagentFinished)] == [("ok", 1)]


def handed(scene: Parent) -> str:
    """Return what the Task tool gave to the parent."""
    return scene.heard("main")[2]


@pytest.mark.req("S0-106", "S0-77", "S0-100", "S3-02")
def test_gates_that_never_agree_end_both_loops_at_the_limit(project: Path) -> None:
    scene = parent(project, "report {n}", main=[WAITED, "answer {n}"], rules=both(BLOCK_COMMAND))
    result = scene.play()
    assert Counter(request.agent for request in scene.model.requests) == {"sub": 4, "main": 5}
    assert [(each.redirects, each.reason) for each in scene.of(SubagentFinished)] == [(3, "capped")]
    assert (result.ended_by, result.continuations, handed(scene)) == ("capped", 3, "tool: report 4")


@pytest.mark.req("S0-102", "S0-106", "C-26")
@pytest.mark.parametrize("phase", ["the tool of a subagent", "its hook", "the hook of its parent"])
def test_an_interrupt_ends_both_and_asks_no_further_gate(project: Path, phase: str) -> None:
    """Each gate writes its event before anything else, so the file names all gates that were asked."""
    child = hang() if phase == "its hook" else "true"
    main = hang() if phase == "the hook of its parent" else "true"
    hooks = [
        rule(f"echo SubagentStop >> asked; {child}", "SubagentStop"),
        rule(f"echo Stop >> asked; {main}"),
    ]
    sub = [bash(hang()) if phase == "the tool of a subagent" else "report", "report"]

    async def interrupt(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        scene.session.interrupt()

    scene = parent(project, *sub, main=[WAITED, "home"], rules=hooks, allow=["Bash"])
    result = scene.during(interrupt)
    expected = {
        "the tool of a subagent": [],
        "its hook": ["SubagentStop"],
        "the hook of its parent": ["SubagentStop", "Stop"],
    }
    assert lines(project / "asked") == expected[phase]
    assert (result.outcome, result.ended_by, result.success) == ("interrupted", "interrupt", False)
    [told] = scene.turns
    assert (told.ended_by, told.result.success) == ("interrupt", False)
    assert not survives((project / "pid").read_text().strip())


# The order: hooks, plugin gate, observers, result, end


class Steps:
    """Writes down who starts and ends. Each step takes so long that a later one could overtake it."""

    def __init__(self) -> None:
        self.trace: list[str] = []

    def taken_by(self, name: str) -> Callable[..., Awaitable[None]]:
        async def take(*_: object) -> None:
            self.trace.append(f"{name} starts")
            await asyncio.sleep(0.5)
            self.trace.append(f"{name} ends")

        return take

    def listen(self, event: SessionEvent, _scene: Parent) -> None:
        if isinstance(event, ToolFinished):
            self.trace.append(f"the parent has: {event.result.content}")
        if isinstance(event, StreamEnd) and event.reply.text == "home":
            self.trace.append("the parent answers")
        if isinstance(event, TurnEnd):
            self.trace.append("on_end")

    def parent(self, project: Path, *sub: Any, main: list[Any], **options: Any) -> Parent:
        plugins = Plugins()
        for name in ("subagent_stopping", "subagent_stop", "subagent_ended", "stop"):
            plugins.on(name, self.taken_by(name))
        hook = CallbackHook(self.taken_by("SubagentStop hook"), outcomes=("ok", "error", "timeout"))
        rules = [rule(hook, "SubagentStop")]
        return parent(project, *sub, main=main, rules=rules, plugins=plugins, listen=self.listen, **options)


def one_by_one(*names: str) -> list[str]:
    return [f"{name} {what}" for name in names for what in ("starts", "ends")]


CHECKS = one_by_one("SubagentStop hook", "subagent_stopping", "subagent_stop")


@pytest.mark.req("C-19", "C-20", "S0-22", "S0-74", "S1-05", "S1-08", "S1-25")
@pytest.mark.parametrize(
    ("sub", "result"),
    [
        ("counted", "counted"),
        ({"error": "auth"}, "The subagent failed (error): the model failed (auth): auth"),
    ],
    ids=["ok", "failed"],
)
def test_a_parent_has_the_result_only_after_hooks_gate_and_observers(
    project: Path, sub: Any, result: str
) -> None:
    steps = Steps()
    steps.parent(project, sub, main=[WAITED, "home"], retries=()).play()
    ending = [*CHECKS, f"the parent has: {result}", *one_by_one("subagent_ended", "stop"), "on_end"]
    assert [step for step in steps.trace if step != "the parent answers"] == ending


@pytest.mark.req("C-19", "S1-08")
def test_the_result_of_a_subagent_in_the_background_is_announced_after_its_observers(project: Path) -> None:
    steps = Steps()
    scene = steps.parent(project, "counted", main=[task(run_in_background=True), "waiting", "home"])
    scene.play()
    [run] = scene.registered
    started = f"the parent has: The subagent {run.agent_id} works in the background; its result arrives as a message."
    assert steps.trace[:8] == [started, *CHECKS, steps.trace[7]]
    assert {*steps.trace[7:10]} == {"the parent answers", *one_by_one("subagent_ended")}
    assert steps.trace[10:] == [*one_by_one("stop"), "on_end"]


@pytest.mark.req("C-19", "S1-08", "S1-27", "S4-34")
def test_the_parent_of_a_killed_subagent_hears_of_it_after_the_observers(project: Path) -> None:
    async def kill(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        await scene.kill("too expensive")

    steps = Steps()
    steps.parent(project, bash(hang()), main=[WAITED, "home"], allow=["Bash"]).during(kill)
    told = "the parent has: The subagent was killed: too expensive."
    kept = [step for step in steps.trace if step == told or step.startswith(("sub", "Sub"))]
    assert sorted(kept) == sorted([told, *one_by_one("subagent_stop", "subagent_ended")])
    assert kept[:2] == one_by_one("subagent_stop")
