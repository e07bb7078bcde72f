"""What once went wrong: reports that could get lost, children that were too many, too strong or too patient."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.registry import FINAL, died
from tests.support.sessions import hang, records, wait_for_file
from tests.support.subagents import PROMPT, Parent, bash, parent, task, tasks
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events.stream_events import TurnResult
from turngate.errors import UsageError
from turngate.plugins.handlers import Plugins
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.registry import Registry

pytestmark = pytest.mark.usefixtures("store")

BACK = task(run_in_background=True)


@contextmanager
def register(state: Path) -> Iterator[Registry]:
    opened = Registry(str(state))
    try:
        yield opened
    finally:
        opened.close()


def left(state: Path, *runs: SubagentRun) -> None:
    """Runs of a process that died."""
    with register(state) as registry:
        for run in runs:
            registry.register(run, may_run=True, max_running=100)
        for run in runs:
            died(state, run.owner)


def a_run(name: str, project: Path, **fields: Any) -> SubagentRun:
    known = {
        "agent_type": "general-purpose",
        "owner": "dead",
        "background": True,
        "prompt": PROMPT,
        "parent": "other",
    }
    launch = {"project": str(project), "kind": "general-purpose"}
    return SubagentRun(id=name, chain=name, **{"agent_id": f"a-{name}", **known, "launch": launch, **fields})


# The file


@pytest.mark.sqlite
def test_a_second_connection_of_one_process_takes_no_lock_from_the_first(state: Path, project: Path) -> None:
    """POSIX drops a process's locks on a file when any descriptor of it is closed."""
    look = "import sys; from turngate.subagents.registry import Registry; r = Registry(sys.argv[1]); print(len(r.read('all'))); r.close()"
    with register(state) as first, register(state):
        for number in range(20):
            first.register(a_run(f"r{number}", project), may_run=True, max_running=100)
        seen = subprocess.run(
            [sys.executable, "-c", look, str(state)], capture_output=True, text=True, check=True
        )
        assert (seen.stdout, len(first.read("all"))) == ("20\n", 20)
    with register(state) as again:
        assert len(again.read("all")) == 20


# One child, one thing at a time


def test_a_subagent_is_resumed_by_one_call_of_two(project: Path) -> None:
    first = task(description="look")
    again = tasks({"resume": "AGENT"}, {"resume": "AGENT"})
    scene = parent(project, {"text": "found", "delay": 0.1}, main=[first, "one", again, "two"])
    scene.play("go", "again")
    answers = scene.heard("main")[-1].removeprefix("tool: ").split(" + ")
    assert sorted(answers) == [
        "found",
        "the subagent was not started: this subagent is still running; wait for its report",
    ]


def test_a_subagent_that_works_elsewhere_is_not_started_here(state: Path, project: Path) -> None:
    with register(state) as registry:
        registry.register(a_run("r", project), may_run=True, max_running=9)
        with pytest.raises(UsageError, match="this subagent is still running; wait for its report"):
            registry.register(a_run("s", project, agent_id="a-r"), may_run=True, max_running=9)


def test_a_resumed_subagent_stays_what_it_is(project: Path) -> None:
    main = [task(subagent_type="Explore"), "one", task("and now", resume="AGENT"), "two"]
    scene = parent(project, "found", main=main, allow=["Bash"])
    scene.play("go", "again")
    assert [run.agent_type for run in scene.registered] == ["Explore", "Explore"]
    asked = [request for request in scene.model.requests if request.agent == "sub"]
    assert [[tool.name for tool in request.tools] for request in asked] == [["Read", "Glob", "Grep"]] * 2


def test_a_resumed_subagent_keeps_its_agent_type(project: Path) -> None:
    main = [
        task(subagent_type="Explore"),
        "one",
        task(resume="AGENT", subagent_type="general-purpose"),
        "two",
    ]
    scene = parent(project, "found", main=main)
    scene.play("go", "again")
    [child] = scene.registered
    assert scene.heard("main")[-1] == (
        f"tool: subagent {child.agent_id} has the agent type Explore, not general-purpose"
    )


def test_a_subagent_has_no_more_tools_than_its_parent(project: Path) -> None:
    kinds = project / ".turngate" / "agents"
    kinds.mkdir(parents=True)
    (kinds / "reader.md").write_text("---\nname: reader\ntools: Read, Task\n---\nRead.")
    scene = parent(project, task("deeper"), "deep", "read", main=[task(subagent_type="reader"), "home"])
    scene.play()
    asked = [request for request in scene.model.requests if request.agent == "sub"]
    assert [[tool.name for tool in request.tools] for request in asked] == [["Read", "Task"]] * 3


# Kill


def test_a_kill_of_a_chain_that_is_over_ends_no_later_one(state: Path, project: Path) -> None:
    with register(state) as registry:
        registry.register(a_run("one", project), may_run=True, max_running=9)
        registry.transition("end", "one", "dead", outcome="ok", reason="complete")
        registry.transition("finish", "one", "dead", **{**FINAL, "result": "", "announcement": ""})
        registry.register(a_run("two", project, agent_id="a-one"), may_run=True, max_running=9)
        killed, later = registry.kill("one", "killed"), registry.find("last", "two")
        assert later is not None
        assert (killed, later.state) == ([], "running")


def test_a_subagent_that_never_started_is_not_reported_as_stopped(project: Path) -> None:
    async def kill_the_second(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        await scene.until("registered", times=2)
        await scene.kill(number=1)
        await scene.kill(number=0)

    scene = parent(
        project,
        bash(hang()),
        main=[tasks({}, {}), "home"],
        allow=["Bash"],
        children=SubagentLimits(at_once=1),
    )
    scene.during(kill_the_second)
    first, second = scene.registered
    assert [stop.agent_id for stop in scene.stops] == [first.agent_id]
    assert sorted(event.agent_id for event in scene.ended) == sorted([first.agent_id, second.agent_id])


# Room


def test_a_subagent_that_is_redirected_keeps_its_room_on_the_machine(project: Path) -> None:
    at_work: list[str] = []
    most: list[int] = []

    def count(name: str, run: SubagentRun) -> None:
        if name in ("started", "replaced") or (name == "registered" and run.state == "running"):
            at_work.append(run.chain)
        if name == "ended":
            at_work.remove(run.chain)
        most.append(len(at_work))

    slow = "sleep 0.2; n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; [ $n -ge 1 ] || { echo on >&2; exit 2; }"
    scene = parent(
        project,
        "x",
        main=[tasks({}, {}), "home"],
        rules=[rule(slow, "SubagentStop")],
        children=SubagentLimits(on_machine=1),
        on_step=count,
    )
    result = scene.play()
    assert (result.outcome, max(most), len(scene.ended)) == ("completed", 1, 2)


def test_runs_of_dead_owners_take_no_slots(project: Path, state: Path, tmp_path: Path) -> None:
    left(state, *(a_run(f"r{n}", tmp_path / "elsewhere") for n in range(3)))
    scene = parent(project, "done", children=SubagentLimits(on_machine=3))
    result = scene.play()
    assert (result.outcome, scene.heard("main")[-1]) == ("completed", "tool: done")


def test_who_looks_at_the_dead_of_another_project_hides_no_death(
    project: Path, state: Path, tmp_path: Path, store: str
) -> None:
    left(state, a_run("r", tmp_path))
    with register(state) as registry:
        assert registry.take_over("me", str(project)) == []
        [adopted] = registry.take_over("me", str(tmp_path))
        left_locks = list((state / "owners").iterdir()) if store == "sqlite" else []
        assert (adopted.recoveries, left_locks) == (1, [])


# Reports


def test_a_report_for_a_subagent_that_takes_no_more_turns_reaches_the_main_agent(project: Path) -> None:
    """The child is done and its observer slow, when its own child reports."""

    async def slow(payload: Any) -> None:
        if payload.agent_type == "general-purpose" and not seen:
            seen.append(payload)
            await asyncio.sleep(0.5)

    seen: list[Any] = []
    plugins = Plugins()
    plugins.on("subagent_stop", slow)
    scene = parent(
        project,
        task("deeper", run_in_background=True),
        "above",
        {"text": "below", "delay": 0.1},
        main=[BACK, "waiting", "home"],
        plugins=plugins,
        children=SubagentLimits(wait=0.01),
    )

    async def both() -> TurnResult:
        async with scene.session:
            await scene.session.send("go")
            supervisor = await scene.supervisor()
            await supervisor.wait_until_idle()
            return await scene.session.send("and?")

    asyncio.run(both())
    reports = [
        each["message"]["content"] for each in records(scene.session.transcript_path) if each.get("key")
    ]
    assert sorted(text.rpartition("\n\n")[2] for text in reports) == ["above", "below"]


def test_a_report_that_is_on_its_way_at_a_reset_reaches_no_new_conversation(project: Path) -> None:
    reset = asyncio.Event()

    async def slow(_: Any) -> None:
        await reset.wait()

    plugins = Plugins()
    plugins.on("subagent_stop", slow)
    scene = parent(
        project, "old", main=[BACK, "waiting", "new"], plugins=plugins, children=SubagentLimits(wait=0.01)
    )

    async def both() -> None:
        async with scene.session:
            await scene.session.send("go")
            await scene.until("final")
            await scene.session.reset()
            reset.set()
            await (await scene.supervisor()).wait_until_idle()
            await scene.session.send("new talk")

    asyncio.run(both())
    assert scene.heard("main") == ["new talk"]


@pytest.mark.sqlite
def test_a_registry_that_is_locked_while_a_report_is_taken_ends_no_turn(project: Path, state: Path) -> None:
    def lock(name: str, _: SubagentRun) -> None:
        if name == "done" and not held:
            db = sqlite3.connect(state / "registry.db", timeout=1, check_same_thread=False)
            db.execute("BEGIN IMMEDIATE")
            held.append(db)
            asyncio.get_running_loop().call_later(0.5, db.close)

    held: list[sqlite3.Connection] = []
    scene = parent(project, "counted", main=[BACK, "waiting", "home"], on_step=lock)
    result = scene.play()
    assert (result.outcome, result.result, len(held)) == ("completed", "home", 1)


# Plugins and words


def test_a_redirect_whose_prompt_is_not_a_valid_text_counts_as_allow(project: Path) -> None:
    scene = parent(project, "found", gate=lambda *_: {"allow": False, "prompt": "\ud800bad"})
    result = scene.play()
    assert (result.outcome, scene.heard("main")[-1], len(scene.notices)) == ("completed", "tool: found", 1)


def test_a_steer_that_cannot_be_sent_is_no_success(state: Path, project: Path) -> None:
    with register(state) as registry:
        run = registry.register(a_run("r", project, owner="me"), may_run=True, max_running=9)
        registry.steer(run, "leave that")
        why = "the new prompt could not be delivered: full"
        cancelled = registry.transition("cancel_redirect", "r", "me", counted=False, guard=None, error=why)
        assert cancelled is not None
        assert (cancelled.state, cancelled.outcome, cancelled.reason, cancelled.error) == (
            "ended",
            "error",
            "error",
            "the new prompt could not be delivered: full",
        )


# Other processes


@pytest.mark.req("X-28")
@pytest.mark.parametrize("main", [["hi"], [task(), "hi"]], ids=["no subagents", "a subagent that finished"])
def test_a_session_finds_and_takes_over_what_another_process_leaves(
    project: Path, state: Path, main: list[Any]
) -> None:
    async def idle() -> None:
        async with scene.session, asyncio.timeout(HANG_TIMEOUT_S):
            await scene.session.send("hello")
            left(state, a_run("r", project, parent="other"))
            await scene.until("done", times=len(main))

    scene = parent(project, "done", main=main)
    asyncio.run(idle())
    with register(state) as registry:
        [run] = registry.inbox("other")
        assert (run.state, run.result, scene.notices) == (
            "done",
            "done",
            ["continuing 1 subagent of a process that died: general-purpose"],
        )


def test_a_session_below_a_hook_leaves_subagents_of_others_to_those_who_ask_their_gates(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    left(state, a_run("r", project, parent="other"))
    result = parent(project, "done", main=["hi"]).play()
    with register(state) as registry:
        assert (result.outcome, [(run.owner, run.state) for run in registry.read("all")]) == (
            "completed",
            [("dead", "running")],
        )
