"""The Task tool: a child works while the call waits, and its last answer is all that the parent gets."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, write_settings
from tests.support.registry import brought, kept, opened
from tests.support.sessions import (
    SAVE_INPUT,
    block_first,
    hang,
    lines,
    records,
    saved_inputs,
    survives,
    wait_for_file,
)
from tests.support.subagents import PROMPT, Gate, Parent, bash, parent, redirect, task, tasks, write
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.subagent_run import RunState
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import SubagentFinished, SubagentStarted
from turngate.errors import UsageError
from turngate.subagents import steering
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.steering import steer

# What the parent gets


pytestmark = pytest.mark.usefixtures("store")


@pytest.mark.req("S0-78", "X-20")
def test_the_parent_gets_the_last_answer_and_no_word_of_what_went_before(project: Path) -> None:
    gate = Gate(redirect("the plugin objects", reason="the plugins reason"), None)
    asked = rule(block_first(1, "the command objects"), "SubagentStop")
    scene = parent(project, "rejected", "rejected too", "good", gate=gate, rules=[asked])
    result = scene.play()
    assert scene.heard("main") == ["go", "agent: Task", "tool: good"]
    assert [
        word for word in ("rejected", "objects", "plugins reason", PROMPT) if word in scene.transcript
    ] == [PROMPT]
    assert [text for text in records(scene.runs()[0].transcript) if "rejected" in str(text)] != []
    assert [s.outcome for s in result.subagents] == ["ok"]


@pytest.mark.req("X-20")
@pytest.mark.parametrize(
    ("sub", "gets"),
    [
        (["one", {"text": " \n"}], "[an earlier answer; the last one was empty]\none"),
        ([{"text": ""}], "(the subagent gave no answer)"),
    ],
)
def test_when_the_last_answer_is_blank_the_parent_gets_an_earlier_one_that_is_marked(
    project: Path, sub: list[Any], gets: str
) -> None:
    scene = parent(project, *sub, gate=Gate(redirect("on"), None))
    scene.play()
    assert scene.heard("main")[-1] == f"tool: {gets}"


def test_a_subagent_knows_its_own_task_and_nothing_of_its_parents_conversation(project: Path) -> None:
    scene = parent(project)
    scene.play("a secret")
    assert scene.heard("sub") == [PROMPT]


def test_the_tool_may_be_called_by_its_other_name(project: Path) -> None:
    scene = parent(project, main=[{"tool": "Agent", "input": {"prompt": PROMPT}}, "home"])
    scene.play()
    assert scene.heard("main")[-1] == "tool: done"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"subagent_type": "nobody"},
            "unknown agent type 'nobody', expected one of general-purpose, Explore",
        ),
        ({"resume": "a0123"}, "there is no subagent a0123 of this session to resume"),
        ({"resume": "../chat"}, "there is no subagent ../chat of this session to resume"),
    ],
)
def test_what_cannot_be_started_is_reported_and_nothing_is_registered(
    project: Path, given: dict[str, str], said: str
) -> None:
    scene = parent(project, main=[task(**given), "home"])
    scene.play()
    assert (scene.heard("main")[-1], scene.steps) == (f"tool: {said}", [])


@pytest.mark.req("X-21")
def test_a_running_subagent_is_not_resumed_by_a_second_one(project: Path) -> None:
    async def let_it_end(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        while len([r for r in scene.model.requests if r.agent == "main"]) < 3:
            await asyncio.sleep(0.005)
        await scene.kill()

    main = [task(run_in_background=True), task("and now", resume="AGENT"), "home"]
    scene = parent(project, bash(hang()), "words", main=main, allow=["Bash"])
    scene.during(let_it_end)
    assert [run.prompt for run in scene.registered] == [PROMPT]


def test_subagents_that_are_asked_for_together_work_at_the_same_time(project: Path) -> None:
    """Each waits for all of the others."""
    meet = 'touch "$$.here"; while [ $(ls *.here | wc -l) -lt 3 ]; do sleep 0.01; done'
    sub = [bash(meet)] * 3 + ["done"]
    scene = parent(project, *sub, main=[tasks({}, {}, {}), "home"], allow=["Bash"])
    scene.play()
    assert scene.heard("main")[-1] == "tool: done + done + done"


def test_no_more_of_them_work_at_once_than_may(project: Path) -> None:
    alone = "mkdir busy || echo clash >> clashes; sleep 0.05; rmdir busy"
    sub = [item for _ in range(3) for item in (bash(alone), "done")]
    main = [tasks({}, {}, {}), "home"]
    scene = parent(project, *sub, main=main, allow=["Bash"], children=SubagentLimits(at_once=1))
    scene.play()
    assert (lines(project / "clashes"), scene.heard("main")[-1]) == ([], "tool: done + done + done")
    assert [name for name in scene.names if name in ("started", "worked", "done")].count("started") == 2


def test_the_settings_say_how_many_and_how_deep(project: Path) -> None:
    said = {"turngate": {"childrenAtOnce": 2, "childrenDepth": 1, "childSeconds": 7}}
    write_settings(project, "turngate", said)
    limits = parent(project, files=True).session._agent.subagents.limits
    assert (limits.at_once, limits.depth, limits.seconds) == (2, 1, 7.0)


# Children of children


def test_a_subagents_subagent_reports_to_the_subagent(project: Path) -> None:
    scene = parent(project, task("deeper"), "from the deep", "from the child", gate=Gate())
    scene.play()
    child, deeper = scene.registered
    assert (deeper.parent_agent, deeper.depth, deeper.parent) == (child.agent_id, 2, scene.session.id)
    assert scene.heard("sub") == [PROMPT, "agent: Task", "tool: from the deep"]
    assert scene.heard("main")[-1] == "tool: from the child"
    assert [event.requester_session_key for event in scene.ended] == [child.agent_id, scene.session.id]


def test_a_subagents_subagent_in_the_background_reports_to_the_subagent(project: Path) -> None:
    sub = [task("deeper", run_in_background=True), "waiting", "deep", "child"]
    scene = parent(project, *sub)
    scene.play()
    deeper = scene.registered[1]
    heard = scene.heard("sub")
    assert (heard[0], heard[-1].partition("\n\n")[2]) == (PROMPT, "deep")
    assert f"general-purpose, {deeper.agent_id}) has finished" in heard[-1]
    assert scene.heard("main") == ["go", "agent: Task", "tool: child"]
    assert scene.transcript.count("deep") == 0


@pytest.mark.parametrize(("depth", "children"), [(0, 0), (1, 1), (2, 2)])
def test_too_deep_there_is_no_such_tool(project: Path, depth: int, children: int) -> None:
    sub = [task("deeper"), task("deeper"), "bottom"]
    scene = parent(project, *sub, children=SubagentLimits(depth=depth))
    scene.play()
    assert len(scene.registered) == children
    asked = scene.model.requests[children]
    assert "Task" not in [tool.name for tool in asked.tools]


# From outside


@pytest.mark.req("X-29")
@pytest.mark.parametrize("background", [False, True])
def test_an_interrupt_ends_subagents_and_their_processes_for_good(project: Path, background: bool) -> None:
    async def interrupt(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        scene.session.interrupt()

    gate = Gate(redirect("on"))
    main = [task(run_in_background=background), "waiting", "late"]
    scene = parent(project, bash(hang()), "late", main=main, gate=gate, allow=["Bash"])
    result = scene.during(interrupt)
    assert (result.outcome, survives((project / "pid").read_text().strip())) == ("interrupted", False)
    assert gate.events == []
    assert [(event.outcome, event.reason) for event in scene.ended] == [("killed", "interrupted")]
    assert [stop.outcome for stop in scene.stops] == ["killed"]
    assert [request.agent for request in scene.model.requests].count("sub") == 1
    assert "late" not in scene.transcript
    assert [s.outcome for s in result.subagents] == ["killed"]


@pytest.mark.req("X-29")
def test_an_interrupt_ends_a_subagents_subagents_too(project: Path) -> None:
    async def interrupt(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        scene.session.interrupt()

    scene = parent(project, task("deeper"), bash(hang()), allow=["Bash"])
    scene.during(interrupt)
    assert not survives((project / "pid").read_text().strip())
    assert [event.outcome for event in scene.ended] == ["killed", "killed"]
    assert [finished.outcome for finished in scene.of(SubagentFinished)] == ["killed", "killed"]


@pytest.mark.req("X-29")
@pytest.mark.parametrize("background", [False, True])
def test_a_kill_reaches_the_subagents_subagents(project: Path, background: bool) -> None:
    async def kill(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        killed = await scene.kill("enough")
        assert {run.id for run in killed} == {run.id for run in scene.registered}

    gate = Gate(redirect("on"))
    sub = [task("deeper", run_in_background=background), bash(hang())]
    if background:
        sub = [sub[0], bash(f"while [ ! -e pid ]; do {hang()}; done"), bash("while :; do sleep 1; done")]
    scene = parent(project, *sub, gate=gate, allow=["Bash"])
    scene.during(kill)
    assert not survives((project / "pid").read_text().strip())
    assert gate.events == []
    assert [(event.outcome, event.reason) for event in scene.ended] == [("killed", "enough")] * 2
    assert scene.heard("main")[-1] == "tool: The subagent was killed: enough."


def test_an_interrupt_keeps_the_results_that_were_there(project: Path) -> None:
    def listen(event: Any, scene: Parent) -> None:
        if isinstance(event, SubagentFinished):
            scene.session.interrupt()

    main = [tasks({}, {}), "never"]
    scene = parent(project, "quick", bash(hang()), "slow", main=main, allow=["Bash"], listen=listen)
    assert scene.play().outcome == "interrupted"
    results = [
        each["message"]["content"] for each in scene.spoken() if isinstance(each["message"]["content"], list)
    ]
    texts = [block["content"] for content in results for block in content if block["type"] == "tool_result"]
    assert texts[0] == "quick"
    assert len(texts) == 2


# Guard rails of a steer by hand


@pytest.mark.req("X-31")
@pytest.mark.parametrize(
    ("now", "prompt", "said"),
    [
        ("running", " ", "a steer needs a prompt"),
        ("running", "x" * 4001, "the prompt has 4001 characters; a steer may have 4000"),
        ("waiting", "on", "run r has not started yet; kill it, or steer it once it runs"),
        ("steering", "on", "run r is already being restarted; wait until it runs again"),
        ("done", "on", "run r is already finished, or another steer is under way"),
        ("killed", "on", "run r is already finished, or another steer is under way"),
    ],
)
def test_a_steer_that_is_not_allowed(state: Path, now: RunState, prompt: str, said: str) -> None:
    with opened(state) as registry:
        run = brought(registry, now)
        with pytest.raises(UsageError) as raised:
            steer(registry, run, prompt)
        assert (str(raised.value), kept(registry)) == (said, run)


@pytest.mark.req("X-31")
@pytest.mark.parametrize(
    "fields",
    [
        {"created": 9.0},
        {"replaces": "q", "by_hook": True},
        {"replaces": "q", "created": 9.0},
        {"replaces": "q", "created": 9e9},
    ],
    ids=["first", "redirected just now", "steered long ago", "clock set back"],
)
def test_a_steer_that_is_allowed(state: Path, fields: dict[str, Any]) -> None:
    with opened(state) as registry:
        working = replace(brought(registry, "running"), **{"created": time.time(), **fields})
        steering = steer(registry, working, "x" * 4000)
    assert (steering.state, steering.next_prompt) == ("steering", "x" * 4000)


@pytest.mark.req("X-31", "C-34")
def test_two_steers_in_quick_succession_and_one_after_the_end_are_rejected(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    async def steer(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        marked = await scene.steer("one")
        assert (marked.state, marked.steer_count) == ("steering", 0)
        again = await scene.until("replaced")
        for step, interval in (("replaced", HANG_TIMEOUT_S), ("done", 0.0)):  # also on a slow machine
            await scene.until(step)
            monkeypatch.setattr(steering, "STEER_INTERVAL_S", interval)
            with pytest.raises(UsageError) as raised:
                await scene.steer("two", again.id)
            said.append(str(raised.value).replace(again.id, "RUN").partition(" was ")[0])
            (project / "go").touch()

    waits = bash("until [ -e go ]; do sleep 0.05; done")
    scene = parent(project, bash(hang()), waits, "done", allow=["Bash"])
    scene.during(steer)
    assert said == ["this subagent", "run RUN is already finished, or another steer is under way"]


# Nothing is revised once it has had effects, where the operator says so


@pytest.mark.req("X-30")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("who", ["command", "plugin"])
def test_after_a_change_the_subagent_is_not_redirected_if_the_operator_says_so(
    project: Path, strict: bool, who: str
) -> None:
    gate = Gate(redirect("undo it"), None) if who == "plugin" else None
    rules = [rule(block_first(1, "undo it"), "SubagentStop")] if who == "command" else []
    scene = parent(
        project,
        write("x"),
        "one",
        "two",
        gate=gate,
        rules=rules,
        allow=["Write"],
        said={"no_revise_after_side_effects": strict},
    )
    scene.play()
    refused = "subagent general-purpose has already changed something, so it is not redirected: undo it"
    assert scene.heard("main")[-1] == ("tool: one" if strict else "tool: two")
    assert scene.notices == ([refused] if strict else [])


@pytest.mark.req("X-30")
def test_what_an_earlier_run_changed_is_remembered_after_a_steer(project: Path) -> None:
    async def steer(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        await scene.steer("only look")

    look = {"tool": "Glob", "input": {"pattern": "*"}}
    scene = parent(
        project,
        bash(hang()),
        look,
        "looked",
        "again",
        gate=Gate(redirect("undo it"), None),
        allow=["Bash"],
        said={"no_revise_after_side_effects": True},
    )
    scene.during(steer)
    assert [run.tools for name, run in scene.steps if name == "ended"] == [("Glob",)]
    assert (scene.heard("main")[-1], scene.notices) == (
        "tool: looked",
        ["subagent general-purpose has already changed something, so it is not redirected: undo it"],
    )


@pytest.mark.req("X-30")
def test_after_looking_only_it_may_be_redirected(project: Path) -> None:
    look = {"tool": "Glob", "input": {"pattern": "*"}}
    gate = Gate(redirect("on"), None)
    scene = parent(project, look, "one", "two", gate=gate, said={"no_revise_after_side_effects": True})
    scene.play()
    assert (scene.heard("main")[-1], scene.notices) == ("tool: two", [])


# What hooks are told


@pytest.mark.req("X-15", "X-36")
def test_a_matcher_by_agent_type_skips_the_others(project: Path) -> None:
    main = [tasks({"subagent_type": "Explore"}, {}), "home"]
    rules = [rule(SAVE_INPUT, event, matcher="Explore") for event in ("SubagentStart", "SubagentStop")]
    scene = parent(project, main=main, rules=rules)
    scene.play()
    [explorer] = [run.agent_id for run in scene.registered if run.agent_type == "Explore"]
    started = [each.agent_type for each in scene.of(SubagentStarted)]  # both work at once
    assert sorted(started) == ["Explore", "general-purpose"]
    told = saved_inputs(project, "hook_event_name", "agent_type", "agent_id", "session_id")
    assert told == [
        (name, "Explore", explorer, scene.session.id) for name in ("SubagentStart", "SubagentStop")
    ]


@pytest.mark.req("C-21")
@pytest.mark.parametrize(("dialect", "whose"), [(TURNGATE, "parent"), (MUX, "child"), (CLAUDE, "parent")])
def test_whose_id_a_hook_reads_is_the_dialects_and_both_are_always_there(
    project: Path, dialect: Dialect, whose: str
) -> None:
    main = [task(run_in_background=False), "home"]
    scene = parent(project, main=main, rules=[rule(SAVE_INPUT, "SubagentStop")], dialect=dialect)
    scene.play()
    [run] = scene.registered
    ids = {"parent": scene.session.id, "child": run.agent_id}
    told = saved_inputs(project, "session_id", "agent_id", "parent_session_id")
    assert told == [(ids[whose], run.agent_id, scene.session.id)]
