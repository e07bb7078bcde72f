"""Workers that run subagents are killed, at every named step and at random moments, as in `make chaos`."""

import ast
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.crash.parents import ParentSpec
from tests.support.crash.scenes import SCENE_STEPS, SCENES, SceneResult
from tests.support.crash.steps import PARENT_STEPS, STEPS, kill_sequences
from tests.support.crash.totals import Totals
from tests.support.crash.two_processes import Takeover
from tests.support.crash.workers import resume_parent, run_subagents
from tests.support.paths import ROOT
from tests.support.registry import execute
from tests.support.sessions import records, say
from tests.support.subagents import Parent, parent, redirect, task
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.notifications import announcement
from turngate.subagents.registry import Registry
from turngate.subagents.registry.sqlite_store import SqliteStore
from turngate.subagents.registry.statements import RAPID_RECOVERY_S

CRASH = "tests.support.crash"
TIMEOUT_S = 4 * HANG_TIMEOUT_S  # an experiment has several workers, each with a limit of its own


def experiment(*arguments: str) -> Any:
    """Run one experiment of `tests.support.crash` and return its JSON."""
    program = Program(arguments, ROOT, module=CRASH)
    out, err = program.communicate(TIMEOUT_S)
    assert err == ""
    return json.loads(out)


def assert_announced_once(result: dict[str, Any], runs: int) -> Totals:
    """Compare everything but what depends on the moment of a kill."""
    totals = Totals(**result)
    assert totals == Totals(
        runs=runs,
        announced_once=runs,
        kills=totals.kills,
        recoveries=totals.recoveries,
        seconds=totals.seconds,
    )
    return totals


# At every step


@pytest.mark.req("X-22", "X-25", "X-26", "S4-29")
@pytest.mark.parametrize("step", STEPS)
def test_a_worker_that_is_killed_at_a_step_loses_nothing_and_doubles_nothing(step: str) -> None:
    sequences = kill_sequences(step)
    totals = assert_announced_once(experiment("steps", step), runs=5 * len(sequences))
    assert totals.kills == sum(map(len, sequences))


@pytest.mark.req("X-22", "C-19")
@pytest.mark.parametrize("step", ["checking", "checked", "redirect_requested", "sent", "replaced"])
def test_the_same_holds_where_a_command_redirects_the_subagents(step: str) -> None:
    sequences = kill_sequences(step)
    totals = assert_announced_once(experiment("steps", step, "--command-gate"), runs=5 * len(sequences))
    assert totals.kills == sum(map(len, sequences))


def named_steps(path: Path) -> set[str]:
    """Return the first argument of every call of `_trace`, `on_step` and `_transition` in the source."""
    calls = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and node.args
    ]
    return {
        argument.value
        for call in calls
        if isinstance(argument := call.args[0], ast.Constant)
        and isinstance(argument.value, str)
        and getattr(call.func, "attr", getattr(call.func, "id", "")) in ("_trace", "on_step", "_transition")
    }


def test_a_worker_is_killed_at_every_step_that_the_code_names() -> None:
    folder = ROOT / "src" / "turngate" / "subagents"
    named = set[str]().union(*map(named_steps, folder.glob("*.py")))
    assert named == {*STEPS, "lost", "given_up"} - {*PARENT_STEPS}
    assert named - {*STEPS} <= SCENE_STEPS


def test_redirected_subagents_pass_every_step_of_the_main_path(tmp_path: Path) -> None:
    seen: set[str] = set()
    spec = ParentSpec(str(tmp_path), "parent", 3).create()
    asyncio.run(run_subagents(spec, lambda name, _: seen.add(name), SubagentLimits(at_once=1)))
    assert seen == set(STEPS) - {"recovered", "redirect_cancelled", *PARENT_STEPS}


# Away from the main path

DIED, FINE = -signal.SIGKILL, 0
OK = SceneResult(
    exits=[DIED, FINE, FINE],
    runs=[["done", "ok", "complete"]],
    announced=[1],
    stops=[["ok"]],
    ends=[["ok"]],
    keys=[1],
    answers=[1],
    losses=[0],
    waiting=0,
)
KILLED = replace(
    OK,
    runs=[["done", "killed", "killed"]],
    announced=[0],
    stops=[["killed"]],
    ends=[["killed"]],
    keys=[0],
    answers=[0],
)


def both(one: SceneResult, two: SceneResult) -> SceneResult:
    """Return the result of two subagents of one parent."""
    lists: dict[str, Any] = {
        name: [*value, *getattr(two, name)]
        for name, value in vars(one).items()
        if name not in ("exits", "waiting")
    }
    return replace(one, **lists)


def at_each_step(scene: str, result: SceneResult) -> dict[str, Any]:
    return dict.fromkeys(SCENES[scene], asdict(result))


@pytest.mark.req("X-21", "X-25")
def test_a_kill_is_reported_to_plugins_and_never_announced_wherever_the_worker_dies() -> None:
    assert experiment("scene", "killed") == at_each_step("killed", KILLED)


@pytest.mark.req("X-21", "X-25")
def test_a_queued_subagent_that_is_killed_ends_without_a_stop_wherever_the_worker_dies() -> None:
    in_line = both(OK, replace(KILLED, stops=[[]]))
    assert experiment("scene", "killed in queue") == at_each_step("killed in queue", in_line)


@pytest.mark.req("X-25")
def test_a_subagent_that_is_lost_again_while_it_is_given_up_is_reported_once() -> None:
    lost = replace(
        OK, runs=[["done", "error", "lost"]], stops=[["error"]], ends=[["error"]], answers=[0], losses=[1]
    )
    assert experiment("scene", "lost") == at_each_step("lost", lost)


@pytest.mark.req("X-26")
def test_a_result_that_cannot_be_announced_is_given_up_wherever_the_worker_dies() -> None:
    given_up = replace(OK, runs=[["given_up", "ok", "complete"]], announced=[0], keys=[0], answers=[0])
    assert experiment("scene", "given_up") == at_each_step("given_up", given_up)


@pytest.mark.req("X-22", "X-25", "X-26")
def test_a_result_that_its_parent_waited_for_reaches_the_conversation_once_wherever_the_parent_dies() -> None:
    waited_for = replace(both(OK, OK), exits=[DIED, FINE, FINE, FINE])
    assert experiment("scene", "foreground") == at_each_step("foreground", waited_for)


# At random moments


@pytest.mark.req("X-21", "X-22", "X-25", "X-26")
def test_every_subagent_is_announced_once_whenever_workers_are_killed() -> None:
    totals = assert_announced_once(experiment("random", "60"), runs=60)
    assert totals.kills > 0


# Two processes


@pytest.mark.req("X-24", "X-25")
def test_two_processes_share_a_registry_and_one_finishes_what_the_other_leaves() -> None:
    takeover, totals = experiment("takeover", "5")
    assert_announced_once(totals, runs=10)
    assert takeover == asdict(
        Takeover(by_both=0, taken_over=takeover["taken_over"], seconds=takeover["seconds"])
    )
    assert takeover["taken_over"] > 0


# Lost too often


def die_at(folder: Path, step: str) -> None:
    """Let a worker with the default limits work until the step, and be killed there."""
    program = Program(["die", str(folder), step], ROOT, module=CRASH)
    _, err = program.communicate(TIMEOUT_S)
    assert (program.wait(), err) == (-signal.SIGKILL, "")


def reports(spec: ParentSpec) -> list[str]:
    """Return the reports of subagents in the parent's transcript."""
    transcript = records(os.path.join(spec.state, "sessions", spec.session, "chat.jsonl"))
    return [record["message"]["content"] for record in transcript if "key" in record]


@pytest.mark.req("X-25")
def test_a_run_whose_owners_die_in_quick_succession_is_given_up_and_its_parent_is_notified_once(
    tmp_path: Path,
) -> None:
    spec = ParentSpec(str(tmp_path), "parent", 1).create()
    for _ in range(3):
        die_at(tmp_path, "worked")
        registry = Registry(spec.state)  # however slow the machine is, the next recovery is a quick one
        late = time.time() + RAPID_RECOVERY_S / 2
        execute(registry, f"UPDATE runs SET recovered = {late} WHERE recovered IS NOT NULL RETURNING id")
        registry.close()
    for _ in range(2):  # the second time there is nothing left to do
        asyncio.run(run_subagents(spec, lambda *_: None, SubagentLimits()))
        asyncio.run(resume_parent(spec, lambda *_: None))
    [run] = spec.read_runs()
    why = "it was lost: its process died 3 times"
    assert (run.state, run.outcome, run.reason, run.error, run.recoveries, run.rapid) == (
        "done",
        "error",
        "lost",
        why,
        3,
        3,
    )
    assert reports(spec) == [announcement(run)]
    assert why in announcement(run)


@pytest.mark.req("X-25")
@pytest.mark.parametrize(("before", "outcome", "reason"), [(2, "ok", "complete"), (3, "error", "lost")])
def test_a_run_is_taken_over_three_times_and_then_given_up_however_long_it_took(
    tmp_path: Path, before: int, outcome: str, reason: str
) -> None:
    spec = ParentSpec(str(tmp_path), "parent", 1).create()
    die_at(tmp_path, "worked")
    registry = Registry(spec.state)  # its owners died so often before, each after a long time
    execute(registry, f"UPDATE runs SET recoveries = {before}, rapid = 1, recovered = 5.0 RETURNING id")
    registry.close()
    asyncio.run(run_subagents(spec, lambda *_: None, SubagentLimits()))
    asyncio.run(resume_parent(spec, lambda *_: None))
    last = spec.read_runs()[-1]
    assert (last.state, last.outcome, last.reason) == ("done", outcome, reason)
    assert reports(spec) == [announcement(last)]


@pytest.mark.req("X-25")
def test_a_subagent_that_is_given_up_is_reported_to_the_user_and_to_plugins_once(
    project: Path, state: Path
) -> None:
    registry = Registry(str(state))
    lost = SubagentRun(
        id="r",
        chain="r",
        agent_id="a",
        agent_type="general-purpose",
        label="look",
        parent="s",
        background=True,
        owner="dead",
        recoveries=3,
        launch={"project": str(project)},
        created=5.0,
    )
    registry.register(lost, may_run=True, max_running=8)
    registry.close()
    (state / "owners").mkdir()
    (state / "owners" / "dead").touch()  # who dies leaves its lock file behind
    scene = parent(project, main=["heard", "home"], session_id="s")
    scene.play("go on")
    why = "it was lost: its process died 4 times"
    assert [notice for notice in scene.notices if "lost" in notice] == [f"subagent look is given up: {why}"]
    assert [(event.run_id, event.outcome, event.reason, event.error) for event in scene.ended] == [
        ("r", "error", "lost", why)
    ]
    assert [stop.outcome for stop in scene.stops] == ["error"]


# Announcing


def announcing(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, failures: int, **limits: Any
) -> tuple[Parent, list[SubagentRun], list[float]]:
    """Run a background subagent with an announcer that fails so many times at first."""
    told: list[SubagentRun] = []
    pauses: list[float] = []

    async def announcer(run: SubagentRun) -> None:
        told.append(run)
        if len(told) <= failures:
            raise ConnectionError("connection refused")

    def at_once(least: float, most: float) -> float:
        pauses.append(most - least)
        return 0.0

    monkeypatch.setattr("random.uniform", at_once)
    scene = parent(
        project,
        "done",
        main=[task(run_in_background=True), "home"],
        announcer=announcer,
        children=SubagentLimits(**limits),
    )
    scene.play()
    return scene, told, pauses


def row(state: Path) -> SubagentRun:
    registry = Registry(str(state))
    [run] = registry.read("all")
    registry.close()
    return run


@pytest.mark.req("U-06", "X-26")
def test_an_announcement_that_fails_twice_is_made_once(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, told, pauses = announcing(project, monkeypatch, failures=2)
    run = row(state)
    assert (run.state, run.attempts, len(told), len(pauses)) == ("done", 2, 3, 2)
    assert {(each.id, each.announcement) for each in told} == {(run.id, run.announcement)}
    assert [event.outcome for event in scene.ended] == ["ok"]
    assert [said["message"]["content"] for said in scene.spoken() if said.get("key") == run.chain] == [
        run.announcement
    ]


@pytest.mark.req("U-06", "X-26")
def test_an_announcement_that_always_fails_is_given_up_after_five_tries_and_the_user_is_notified(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, told, pauses = announcing(project, monkeypatch, failures=100)
    run = row(state)
    why = "its result could not be announced: ConnectionError: connection refused"
    assert (run.state, run.attempts, run.error, run.result, len(told), len(pauses)) == (
        "given_up",
        5,
        why,
        "done",
        5,
        4,
    )
    notice = f"subagent general-purpose has finished, but {why}; `turngate runs show {run.id[:8]}` prints it"
    assert (scene.notices, len(scene.ended), len(scene.stops)) == ([notice], 1, 1)
    assert [said for said in scene.spoken() if said.get("key") == run.chain] == []


@pytest.mark.req("X-26")
def test_an_announcement_that_is_too_old_is_given_up_before_its_last_try(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, told, _ = announcing(project, monkeypatch, failures=100, announce_expiry=0.0)
    assert (row(state).state, len(told)) == ("given_up", 1)


@pytest.mark.req("X-26", "X-20")
def test_what_is_announced_was_frozen_before_and_is_the_last_answer(project: Path) -> None:
    told: list[SubagentRun] = []

    async def announcer(run: SubagentRun) -> None:
        told.append(run)

    async def gate(event: Any, _: Any) -> Any:
        return redirect("more") if event.steer_count == 0 else None

    main = [task(run_in_background=True), "home"]
    scene = parent(project, "first", "second", main=main, gate=gate, announcer=announcer)
    scene.play()
    assert [(run.state, run.result, run.steer_count) for run in told] == [("final", "second", 1)]


# The registry cannot be used


@pytest.mark.req("X-23")
def test_a_registry_that_cannot_be_opened_fails_the_tool_and_starts_no_subagent(
    project: Path, state: Path
) -> None:
    scene = parent(project)
    (state / "owners").parent.mkdir(parents=True, exist_ok=True)
    (state / "owners").write_text("in the way")  # so there is no lock to be had
    closed = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteStore, "close", closing(closed, SqliteStore.close))
        result = scene.play()
    assert (result.outcome, result.result, closed) == (
        "completed",
        "home",
        [f"the registry {state}/registry.db"],
    )
    assert scene.heard("main")[-1].startswith("tool: the subagent was not started: ")
    assert [request.agent for request in scene.model.requests] == ["main", "main"]


def closing(closed: list[str], close: Callable[[SqliteStore], None]) -> Callable[[SqliteStore], None]:
    """Record which registries are closed: only Python 3.13 reports one that is not."""

    def record(store: SqliteStore) -> None:
        closed.append(store.name)
        close(store)

    return record


@pytest.mark.req("X-24")
def test_a_session_works_on_without_a_registry_and_says_so(project: Path, state: Path) -> None:
    (state / "registry.db").mkdir(parents=True)
    scene = parent(project, main=["home"])
    result = scene.play()
    assert (result.outcome, result.result) == ("completed", "home")
    assert [notice.startswith("the registry ") for notice in scene.notices] == [True]


# Another process is faster


HALTED = """
import os, sys
from pathlib import Path
from tests.support.builders import rule
from tests.support.sessions import say
from tests.support.subagents import bash, parent

def die(step: str, _run: object) -> None:
    if step == "ended":
        os._exit(9)

halt = rule(say({"continue": False}), "PreToolUse", matcher="Bash")
parent(Path(sys.argv[1]), bash("true"), rules=[halt], allow=["Bash"], session_id="s", on_step=die).play()
"""


@pytest.mark.req("C-06", "X-22")
def test_a_halted_subagent_stays_halted_although_its_process_dies_before_the_stop_check(
    project: Path,
) -> None:
    died = subprocess.run([sys.executable, "-c", HALTED, str(project)], cwd=ROOT, check=False)
    again = rule("touch asked; echo again >&2; exit 2", "SubagentStop")
    halt = rule(say({"continue": False}), "PreToolUse", matcher="Bash")  # its gate: others leave it alone
    scene = parent(project, "more", main=["home"], rules=[halt, again], session_id="s")

    async def end(scene: Parent) -> None:
        await scene.until("done")

    scene.during(end)
    assert (died.returncode, {request.agent for request in scene.model.requests}) == (9, {"main"})
    assert ([(event.outcome, event.reason) for event in scene.ended], (project / "asked").exists()) == (
        [("ok", "halted")],
        False,
    )


@pytest.mark.req("X-21")
def test_a_kill_from_another_process_in_the_very_moment_of_a_restart_ends_the_chain(
    project: Path, state: Path
) -> None:
    """The successor is killed before the process that registered it knows that it exists."""
    scene = parent(project, "first", "second", gate=lambda *_: redirect("more"))
    plain = Registry.replace

    def slow(self: Registry, marked: SubagentRun) -> SubagentRun | None:
        successor = plain(self, marked)
        other = Registry(str(state))
        other.kill(marked.id, "killed")
        other.close()
        time.sleep(1.0)  # the disk is busy; meanwhile the kill is noticed
        return successor

    async def both() -> None:
        async with asyncio.timeout(HANG_TIMEOUT_S), scene.session:
            await scene.session.send("go")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Registry, "replace", slow)
        asyncio.run(both())
    assert [(event.outcome, event.reason) for event in scene.ended] == [("killed", "killed")]
