"""Children in the background: they report once, as a message that no human wrote, and their parent waits for them."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.registry import FINAL
from tests.support.sessions import SAVE_INPUT, block_first, hang, lines, saved_inputs, survives, wait_for_file
from tests.support.subagents import Gate, Parent, bash, parent, redirect, task, tasks
from tests.support.timeouts import NEVER_S
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.dialect import CLAUDE
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.registry import Registry

pytestmark = pytest.mark.usefixtures("store")

BACK = task(description="lines", run_in_background=True)
UNTIL = "while [ ! -e go ]; do sleep 0.01; done"


def reports(scene: Parent) -> list[tuple[bool, str, str]]:
    """The messages in the parent's transcript that no human wrote."""
    return [
        (each["isMeta"], each["origin"], each["message"]["content"].partition("\n\n")[2])
        for each in scene.spoken()
        if "origin" in each
    ]


@pytest.mark.req("S4-29", "S4-04")
def test_the_call_returns_at_once_and_the_report_comes_as_one_message_that_is_marked(project: Path) -> None:
    scene = parent(project, "counted", main=[BACK, "waiting", "home"])
    result = scene.play()
    [run] = scene.registered
    said = scene.heard("main")
    assert (
        said[2]
        == f"tool: The subagent {run.agent_id} works in the background; its result arrives as a message."
    )
    assert reports(scene) == [(True, "subagent", "counted")]
    assert (result.result, len(said)) == ("home", 5)
    assert scene.trace[-2:] == ["stop", "on_end"]


@pytest.mark.req("S4-11")
@pytest.mark.parametrize(
    ("sub", "limit", "how"),
    [
        ({"error": "invalid", "message": "no"}, NEVER_S, "has failed (the model failed (invalid): no)"),
        ({"text": "late", "delay": NEVER_S}, 0.3, "was ended at its time limit (it took longer than 0.3 s)"),
    ],
)
def test_a_failure_is_reported_too(project: Path, sub: Any, limit: float, how: str) -> None:
    scene = parent(project, sub, main=[BACK, "waiting", "home"], children=SubagentLimits(seconds=limit))
    scene.play()
    [run] = scene.registered
    assert scene.heard("main")[-1].startswith(
        f'[Subagent result] The subagent "lines" (general-purpose, {run.agent_id}) {how}. '
    )
    assert reports(scene) == [(True, "subagent", "(it gave no answer)")]


@pytest.mark.req("X-17")
def test_the_gates_are_not_asked_while_subagents_work_and_are_asked_afterwards(project: Path) -> None:
    async def let_go(scene: Parent) -> None:
        while len([r for r in scene.model.requests if r.agent == "main"]) < 2:
            await asyncio.sleep(0.005)
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert lines(project / "seen") == []
        (project / "go").touch()

    scene = parent(
        project,
        bash(UNTIL),
        "counted",
        main=[BACK, "waiting", "home"],
        allow=["Bash"],
        rules=[rule(SAVE_INPUT)],
    )
    scene.during(let_go)
    assert [each.get("background_tasks") for each in saved_inputs(project)] == [None]
    assert saved_inputs(project, "last_assistant_message") == ["home"]


@pytest.mark.req("X-17")
def test_in_the_claude_dialect_hooks_are_asked_and_get_the_running_subagents(project: Path) -> None:
    gate = f"{SAVE_INPUT}; touch go"
    scene = parent(
        project,
        bash(UNTIL),
        "counted",
        main=[task(), "waiting", "home"],
        allow=["Bash"],
        rules=[rule(gate)],
        dialect=CLAUDE,
    )
    scene.play()
    [run] = scene.registered
    told = saved_inputs(project, "last_assistant_message", "background_tasks")
    assert [text for text, _ in told] == ["waiting", "home"]
    assert [[task["id"] for task in tasks] for _, tasks in told] == [[run.agent_id], []]


@pytest.mark.req("X-17")
def test_a_subagent_that_never_ends_does_not_hold_its_parent_for_ever(project: Path) -> None:
    scene = parent(
        project,
        bash(hang()),
        main=[BACK, "waiting", "home"],
        allow=["Bash"],
        rules=[rule(SAVE_INPUT)],
        children=SubagentLimits(wait=0.2),
    )
    result = scene.play()
    assert (result.result, result.outcome) == ("waiting", "completed")
    assert "stopped waiting for subagents in the background" in scene.notices
    assert saved_inputs(project, "last_assistant_message") == ["waiting"]
    assert not survives((project / "pid").read_text().strip())


@pytest.mark.req("X-17")
def test_a_subagent_that_never_ends_is_waited_for_once(project: Path) -> None:
    scene = parent(
        project, {"text": "late", "delay": 60}, main=[BACK, "waiting"], children=SubagentLimits(wait=0.2)
    )
    scene.play()
    again = f"continue with `turngate run --resume --session {scene.session.id}`"
    assert scene.notices == [
        "stopped waiting for subagents in the background",
        f"1 subagent has not finished: lines; {again}",
    ]


@pytest.mark.req("X-17")
def test_a_gate_that_blocks_after_the_report_gets_its_continuation(project: Path) -> None:
    scene = parent(project, "counted", main=[BACK, "waiting", "home", "tested"], rules=[rule(block_first(1))])
    result = scene.play()
    assert (result.result, result.continuations) == ("tested", 1)


def test_several_reports_come_each_once(project: Path) -> None:
    main = [tasks(*[{"run_in_background": True, "description": name} for name in "abc"]), "waiting"]
    scene = parent(project, "counted", main=main)
    scene.play("go", "again")
    assert reports(scene) == [(True, "subagent", "counted")] * 3
    assert len(scene.stops) == len(scene.ended) == 3


@pytest.mark.req("S4-43", "S4-44", "X-29")
def test_a_reset_ends_subagents_with_its_reason_and_reports_no_result(project: Path) -> None:
    gate = Gate(redirect("on"))
    scene = parent(
        project,
        bash(hang()),
        "late",
        main=[BACK, "waiting", "new"],
        gate=gate,
        allow=["Bash"],
        children=SubagentLimits(wait=0.2),
        rules=[rule(SAVE_INPUT, "SubagentStop")],
    )

    async def reset() -> None:
        async with scene.session:
            await scene.session.send("go")
            await wait_for_file(project / "pid")
            await scene.session.reset()
            assert [(event.outcome, event.reason) for event in scene.ended] == [("killed", "session-reset")]
            await scene.session.send("anew")

    asyncio.run(reset())
    assert not survives((project / "pid").read_text().strip())
    assert (gate.events, lines(project / "seen"), reports(scene)) == ([], [], [])
    assert (len(scene.ended), len(scene.stops)) == (1, 1)
    assert scene.heard("main") == ["anew"]


def test_what_a_subagent_of_the_old_conversation_reported_does_not_reach_the_new_one(project: Path) -> None:
    scene = parent(
        project,
        bash(UNTIL),
        "of the old one",
        main=[BACK, "waiting", "new"],
        allow=["Bash"],
        children=SubagentLimits(wait=0.2),
    )

    async def reset() -> None:
        async with scene.session:
            await scene.session.send("go")
            (project / "go").touch()
            await scene.until("done")
            await scene.session.reset()
            await scene.session.send("anew")

    asyncio.run(reset())
    assert scene.heard("main") == ["anew"]


def test_what_was_reported_between_two_turns_comes_with_the_next_one(project: Path) -> None:
    scene = parent(
        project,
        bash(UNTIL),
        "counted",
        main=[BACK, "waiting", "thanks", "hello"],
        allow=["Bash"],
        children=SubagentLimits(wait=0.2),
    )

    async def later() -> None:
        async with scene.session:
            await scene.session.send("go")
            (project / "go").touch()
            await scene.until("done")
            await scene.session.send("and?")

    asyncio.run(later())
    assert reports(scene) == [(True, "subagent", "counted")]
    assert [text.rpartition("\n")[2] for text in scene.heard("main")[-3:]] == [
        "counted",
        "agent: thanks",
        "and?",
    ]


def test_a_report_that_outlives_the_subagent_that_asked_for_it_goes_to_the_main_agent(project: Path) -> None:
    sub = [task("deeper", run_in_background=True), "child is waiting", bash(UNTIL), "deep"]
    main = [task(), "first", "second", "third"]
    scene = parent(project, *sub, main=main, allow=["Bash"], children=SubagentLimits(wait=0.2))

    async def later() -> None:
        async with scene.session:
            await scene.session.send("go")
            (project / "go").touch()
            await scene.until("done", 2)
            await scene.session.send("and?")

    asyncio.run(later())
    assert [origin for _, origin, _ in reports(scene)] == ["subagent"]
    assert len(scene.ended) == len(scene.stops) == 2


@pytest.mark.req("C-20")
def test_the_announcement_is_there_before_the_end_is_reported(project: Path, state: Path) -> None:
    waiting: list[tuple[str, int]] = []

    def look(name: str, run: SubagentRun) -> None:
        if name in ("stop_notified", "announced", "end_notified"):
            with contextlib.closing(Registry(str(state))) as registry:
                waiting.append((name, len(registry.inbox(run.parent))))

    scene = parent(project, "counted", main=[BACK, {"text": "waiting", "delay": 0.5}, "home"], on_step=look)
    scene.play()
    assert waiting == [("stop_notified", 0), ("announced", 1), ("end_notified", 1)]


@pytest.mark.req("X-21")
def test_an_end_that_comes_a_second_time_changes_nothing(project: Path, state: Path) -> None:
    again: list[Any] = []

    def twice(name: str, run: SubagentRun) -> None:
        register, late = Registry(str(state)), (run.id, run.owner)
        if name in ("ended", "final", "announced", "done"):
            again.append(register.transition("end", *late, outcome="error", reason="late"))
        if name in ("announced", "done"):
            again.append(register.transition("finish", *late, **FINAL))
            again.append(register.transition("announce", *late))
        if name == "done":
            again.append(register.transition("done", *late))
            again.extend(register.kill(run.id, "late"))
        register.close()

    scene = parent(project, "counted", main=[BACK, "waiting", "home"], on_step=twice)
    scene.play()
    assert again == [None] * 9
    assert (reports(scene), [event.outcome for event in scene.ended]) == (
        [(True, "subagent", "counted")],
        ["ok"],
    )


def test_a_subagents_transcript_is_a_side_chain_of_its_parents_session(project: Path) -> None:
    scene = parent(project)
    scene.play()
    [run] = scene.registered
    first = json.loads(Path(run.transcript).read_text().splitlines()[0])
    assert (first["isSidechain"], first["sessionId"]) == (True, scene.session.id)
    assert run.transcript == str(
        Path(scene.session.transcript_path).parent / "subagents" / f"{run.agent_id}.jsonl"
    )
