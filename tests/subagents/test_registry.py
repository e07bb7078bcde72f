import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.registry import (
    ADOPTER,
    FINAL,
    OUT_OF,
    REDIRECT,
    WAYS,
    a_run,
    brought,
    change,
    died,
    execute,
    for_workers,
    kept,
    let_go,
    opened,
    programs,
    registered,
    said,
)
from tests.support.servers.postgres import PostgresServer
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import RunState, SubagentRun
from turngate.subagents.registry import Registry
from turngate.subagents.registry.sqlite_store import SqliteStore
from turngate.subagents.registry.statements import TRANSITIONS
from turngate.subagents.registry.table import MAX_RESULT_CHARS, truncate_result


@pytest.fixture
def registry(state: Path, store: str) -> Iterator[Registry]:
    with opened(state) as registry:
        yield registry


# Transitions


@pytest.mark.req("X-21")
@pytest.mark.parametrize("name", OUT_OF)
@pytest.mark.parametrize("now", WAYS)
def test_a_transition_leads_out_of_its_own_states_alone(registry: Registry, name: str, now: RunState) -> None:
    before = brought(registry, now)
    changed = change(registry, name)
    if now in OUT_OF[name]:
        assert (bool(changed), kept(registry).state) == (True, OUT_OF[name][now])
    else:
        if isinstance(changed, list):  # a kill ends the chain, wherever in it one stands
            changed = "r" in [run.id for run in changed]
        assert (bool(changed), kept(registry)) == (False, before)


@pytest.mark.req("X-21")
@pytest.mark.parametrize("name", [name for name in OUT_OF if name != "attempt"])
def test_a_transition_that_comes_twice_changes_nothing_the_second_time(registry: Registry, name: str) -> None:
    brought(registry, next(iter(OUT_OF[name])))
    assert change(registry, name)
    after = registry.read("all")
    assert (bool(change(registry, name)), registry.read("all")) == (False, after)


@pytest.mark.req("X-21")
@pytest.mark.parametrize("first", ["killed", "timeout"])
def test_a_success_that_comes_late_does_not_undo_a_kill_or_a_time_out(registry: Registry, first: str) -> None:
    brought(registry, "running")
    if first == "killed":
        registry.kill("r", "enough")
    else:
        registry.transition("end", "r", "me", outcome="timeout", reason="timeout", error="too long")
    before = kept(registry)
    late = registry.transition(
        "end", "r", "me", outcome="ok", reason="complete", result="I am done after all"
    )
    assert (late, kept(registry), before.outcome) == (None, before, first)


def test_an_end_keeps_everything_that_is_known_about_the_run(registry: Registry) -> None:
    running = brought(registry, "running")
    ended = registry.transition(
        "end",
        "r",
        "me",
        outcome="error",
        reason="error",
        error="it broke",
        result="half",
        usage=Usage(input_tokens=7),
        tool_calls=2,
        tools=("Bash", "Read"),
    )
    assert ended is not None
    assert ended.ended is not None
    assert ended == replace(
        running,
        state="ended",
        ended=ended.ended,
        outcome="error",
        reason="error",
        error="it broke",
        result="half",
        usage=Usage(input_tokens=7),
        tool_calls=2,
        tools=("Bash", "Read"),
    )


@pytest.mark.parametrize("name", [*TRANSITIONS, "replace"])
def test_a_late_write_of_a_process_that_lost_the_run_is_refused(registry: Registry, name: str) -> None:
    now: RunState = next(iter(OUT_OF.get(name, {"running": "running"})))
    before = brought(registry, now)
    [adopted] = registry.take_over("heir", None)
    assert (change(registry, name, owner="me"), registry.read("all")) == (None, [adopted])
    assert adopted == replace(
        before, owner="heir", recoveries=adopted.recoveries, rapid=adopted.rapid, recovered=adopted.recovered
    )
    assert change(registry, name, owner="heir")


def test_a_run_waits_while_the_machine_is_full(registry: Registry) -> None:
    me = registry.join()

    def start(run: SubagentRun) -> SubagentRun | None:
        return registry.transition("start", run.id, me, depth=run.depth, max_running=1)

    first, second = (
        registry.register(a_run(name, owner=me), may_run=True, max_running=1) for name in ("one", "two")
    )
    assert (first.state, first.started, second.state, second.started) == ("running", 5.0, "waiting", None)
    assert start(second) is None
    registry.transition("end", "one", me, outcome="ok", reason="complete")
    assert start(second) is None  # it may be sent on, so it keeps its room
    registry.kill("one", "killed")
    started = start(second)
    assert started is not None
    assert (started.state, start(second)) == ("running", None)


def test_a_subagent_of_a_subagent_does_not_wait_for_the_room_of_its_own_parent(registry: Registry) -> None:
    above = registry.register(a_run("above", depth=1), may_run=True, max_running=1)
    below = registry.register(a_run("below", depth=2), may_run=True, max_running=1)
    assert (above.state, below.state) == ("running", "running")


def test_a_kill_ends_everything_below_and_nothing_beside(registry: Registry) -> None:
    registered(registry, "top", agent_id="top")
    registered(registry, "child", agent_id="child", parent_agent="top")
    registered(registry, "grandchild", agent_id="grandchild", parent_agent="child")
    registered(registry, "sibling", agent_id="sibling")
    killed = registry.kill("top", "enough")
    states = {run.id: (run.state, run.outcome, run.reason) for run in registry.read("all")}
    assert {run.id for run in killed} == {"top", "child", "grandchild"}
    assert states == {
        "top": ("killed", "killed", "enough"),
        "child": ("killed", "killed", "enough"),
        "grandchild": ("killed", "killed", "enough"),
        "sibling": ("waiting", None, ""),
    }


def test_a_reset_ends_what_a_session_has_started_and_no_other_session(registry: Registry) -> None:
    registered(registry, "child", agent_id="child")
    registered(registry, "grandchild", agent_id="g", parent_agent="child")
    registered(registry, "other", parent="another session")
    assert {run.id for run in registry.kill(("s", ""), "session-reset")} == {"child", "grandchild"}
    assert kept(registry, "other").state == "waiting"


# Redirects


@pytest.mark.req("X-22", "S4-23")
def test_the_count_is_on_disk_before_the_new_prompt_can_be_sent(state: Path, registry: Registry) -> None:
    ended = brought(registry, "ended")
    values = {**REDIRECT, "why": "no tests", "max_steers": 4}
    registry.transition("redirect", "r", "me", **values, guard={"count": 1})
    with opened(state) as another:  # as a process sees it that takes over now
        marked = kept(another)
    assert marked == replace(
        ended,
        state="steering",
        steer_count=1,
        max_steers=4,
        steer_why="no tests",
        guard={"count": 1},
        next_id=marked.next_id,
        next_prompt="more",
        next_by_hook=True,
    )
    assert marked.next_id not in ("", "r")


@pytest.mark.req("C-34")
def test_a_steer_by_hand_is_not_counted(registry: Registry) -> None:
    brought(registry, "running")
    change(registry, "steer")
    assert (kept(registry).state, kept(registry).steer_count, kept(registry).next_by_hook) == (
        "steering",
        0,
        False,
    )


@pytest.mark.req("S4-36")
def test_a_redirect_that_could_not_be_sent_leaves_no_mark_and_no_count(registry: Registry) -> None:
    ended = brought(registry, "ended")
    change(registry, "redirect")
    change(registry, "cancel_redirect")
    assert kept(registry) == replace(ended, steer_why="not done", next_by_hook=kept(registry).next_by_hook)


@pytest.mark.req("S4-08", "S4-23", "S4-24")
def test_the_replacement_carries_what_the_chain_is_and_nothing_of_how_the_run_ended(
    registry: Registry,
) -> None:
    registered(
        registry,
        agent_type="writer",
        parent_agent="p",
        label="the label",
        task="the task",
        prompt="the task",
        background=True,
        depth=2,
        transcript="/t.jsonl",
        max_steers=5,
        launch={"project": "/p", "model": "m"},
        spent=Usage(input_tokens=1),
        recoveries=2,
        rapid=1,
        recovered=9.0,
    )
    change(registry, "start")
    registry.transition(
        "end",
        "r",
        "me",
        outcome="error",
        reason="error",
        error="e",
        result="half",
        usage=Usage(input_tokens=10),
        tool_calls=4,
        tools=("Bash",),
    )
    marked = registry.transition(
        "redirect",
        "r",
        "me",
        **{**REDIRECT, "prompt": "go on", "why": "no tests", "max_steers": 6},
        guard={"count": 1, "repeats": 2},
    )
    assert marked is not None
    before = time.time()
    successor = registry.replace(marked)
    assert successor is not None
    assert successor.started is not None
    assert before <= successor.started <= time.time()
    assert successor == SubagentRun(
        id=marked.next_id,
        chain="r",
        agent_id="a-r",
        agent_type="writer",
        parent="s",
        parent_agent="p",
        label="the label",
        task="the task",
        prompt="go on",
        by_hook=True,
        background=True,
        depth=2,
        state="running",
        owner="me",
        created=successor.started,
        started=successor.started,
        ended=None,
        outcome=None,
        reason="",
        error="",
        result="",
        transcript="/t.jsonl",
        steer_count=1,
        max_steers=6,
        steer_why="no tests",
        replaces="r",
        usage=Usage(),
        spent=Usage(input_tokens=11),
        tool_calls=4,
        tools=(),
        earlier_tools=("Bash",),
        guard={"count": 1, "repeats": 2},
        launch={"project": "/p", "model": "m"},
    )
    assert kept(registry) == replace(marked, state="replaced")
    assert (registry.find("last", "r"), registry.read("chain", "r")) == (
        successor,
        [kept(registry), successor],
    )


def test_replacing_a_run_twice_makes_one_replacement(registry: Registry) -> None:
    marked = brought(registry, "steering")
    first, second = registry.replace(marked), registry.replace(marked)
    assert (second, [run.id for run in registry.read("chain", "r")]) == (
        None,
        ["r", first.id if first else ""],
    )


# Handing over


def attempts(registry: Registry) -> int:
    changed = registry.transition("attempt", "r", "me")
    return changed.attempts if changed else 0


@pytest.mark.req("X-26")
def test_an_announcement_waits_in_the_inbox_until_it_is_taken_once(registry: Registry) -> None:
    brought(registry, "final")
    assert registry.inbox("s") == []
    announced = registry.transition("announce", "r", "me")
    assert announced is not None
    assert [registry.inbox("s"), registry.inbox("s", "a child"), registry.inbox("another")] == [
        [announced],
        [],
        [],
    ]
    change(registry, "done")
    assert [run.id for run in registry.inbox("s")] == ["r"]
    taken, again = registry.mark_delivered("r"), registry.mark_delivered("r")
    assert (taken is not None, again, registry.inbox("s")) == (True, None, [])


def test_what_is_not_announced_cannot_be_taken(registry: Registry) -> None:
    before = brought(registry, "final")
    assert (registry.mark_delivered("r"), kept(registry)) == (None, before)


def test_the_inbox_gives_the_oldest_first(registry: Registry) -> None:
    for name in ("b", "a", "c"):
        brought(registry, "announced", name)
    assert [run.id for run in registry.inbox("s")] == ["b", "a", "c"]


def test_a_tools_result_was_taken_when_it_was_announced(registry: Registry) -> None:
    brought(registry, "final")
    announced = registry.transition("announce", "r", "me", taken=True)
    assert announced is not None
    assert (announced.taken == announced.announced, registry.inbox("s")) == (True, [])


def test_a_report_for_a_subagent_that_is_gone_goes_to_the_main_agent(registry: Registry) -> None:
    brought(registry, "running", "starter")
    brought(registry, "announced", parent_agent="a-starter")

    def inboxes() -> list[list[str]]:
        return [[run.id for run in registry.inbox("s", agent)] for agent in ("a-starter", "")]

    assert inboxes() == [["r"], []]
    for name, main in (
        ("end", []),
        ("finish", ["r"]),
        ("announce", ["r", "starter"]),
        ("done", ["r", "starter"]),
    ):
        change(registry, name, "starter")
        assert inboxes() == [["r"], main]


@pytest.mark.req("X-26")
def test_tries_are_counted_on_disk_until_they_are_given_up(state: Path, registry: Registry) -> None:
    brought(registry, "final")
    assert [attempts(registry), attempts(registry)] == [1, 2]
    with opened(state) as another:
        assert attempts(another) == 3
    change(registry, "give_up")
    given_up = kept(registry)
    assert (given_up.state, given_up.error, given_up.attempts, attempts(registry)) == (
        "given_up",
        "connection refused",
        3,
        0,
    )


@pytest.mark.req("X-26")
def test_a_long_result_is_frozen_with_a_word_about_what_is_missing(registry: Registry) -> None:
    long = "é" * (MAX_RESULT_CHARS + 5)
    cut = "é" * MAX_RESULT_CHARS + "\n[… 5 more characters; the subagent's transcript has the whole text]"
    brought(registry, "running")
    registry.transition("end", "r", "me", outcome="ok", reason="complete", result=long)
    registry.transition("finish", "r", "me", **{**FINAL, "result": long, "announcement": long})
    final = kept(registry)
    assert [final.result == cut, final.announcement == cut, truncate_result("x" * MAX_RESULT_CHARS)] == [
        True,
        True,
        "x" * MAX_RESULT_CHARS,
    ]


def test_a_result_that_is_no_text_can_still_be_kept(registry: Registry, store: str) -> None:
    brought(registry, "running")
    ended = registry.transition(
        "end", "r", "me", outcome="ok", reason="complete", result="half a pair \ud800 \0 and more"
    )
    nul = "\0" if store == "sqlite" else "\ufffd"  # which PostgreSQL cannot store
    assert (kept(registry), ended.result if ended else "") == (ended, f"half a pair ? {nul} and more")


@pytest.mark.req("X-25")
def test_a_run_that_is_buried_says_so_to_its_parent(registry: Registry) -> None:
    before = brought(registry, "steering")
    registry.transition("lost", "r", "me", error="died 4 times", announcement="it is lost")
    assert kept(registry) == replace(
        before,
        state="final",
        outcome="error",
        reason="lost",
        error="died 4 times",
        result="",
        announcement="it is lost",
    )


# Sweeping


@pytest.mark.req("X-28")
def test_only_what_is_finished_taken_and_old_is_forgotten(registry: Registry) -> None:
    for state in WAYS:
        brought(registry, state, state)
    brought(registry, "done", "taken")
    registry.mark_delivered("taken")
    brought(registry, "running", "steered by hand")
    for name in ("steer", "replace"):
        change(registry, name, "steered by hand")
    registry.kill("killed", "killed")
    change(registry, "done", "killed")
    assert registry.delete_finished() == 0
    everything = {run.id for run in registry.read("all")}
    gone = {"taken", "killed"}  # what was replaced stays as long as its chain is open
    assert (registry.delete_finished(retention=-1.0), {run.id for run in registry.read("all")}) == (
        len(gone),
        everything - gone,
    )


# Owners


def test_what_a_living_owner_has_is_not_taken_over(registry: Registry) -> None:
    owner = registry.join()
    before = brought(registry, "running", owner=owner)
    assert (registry.dead_owners("me"), registry.take_over("me", None)) == ([], [])
    assert (registry.leave(owner), registry.leave(owner)) == (1, 0)
    [adopted] = registry.take_over("me", None)
    assert adopted == replace(before, owner="me")  # it let go in order: that is no death
    assert (registry.dead_owners("me"), registry.take_over("me", None)) == ([], [])


def test_everything_open_is_taken_over_and_nothing_that_is_finished(registry: Registry) -> None:
    for state in WAYS:
        brought(registry, state, state, owner="dead")
    adopted = {run.id for run in registry.take_over("me", None)}
    assert adopted - {run.id for run in registry.read("all") if run.replaces} == {
        "waiting",
        "running",
        "ended",
        "steering",
        "final",
        "announced",
        "killed",
    }


@pytest.mark.parametrize("seconds", [121, -3600], ids=["later", "after the clock was set back"])
def test_recoveries_in_quick_succession_are_counted_apart(
    state: Path, registry: Registry, seconds: int
) -> None:
    registered(registry, owner="one")
    for dead, heir in (("one", "two"), ("two", "three")):
        died(state, dead)
        registry.take_over(heir, None)
    assert (kept(registry).recoveries, kept(registry).rapid) == (2, 2)
    execute(registry, f"UPDATE $runs SET recovered = recovered - {seconds} RETURNING id")
    died(state, "three")
    registry.take_over("four", None)
    assert (kept(registry).recoveries, kept(registry).rapid) == (3, 1)


def test_a_chain_that_is_over_is_forgotten_with_all_of_its_runs(registry: Registry) -> None:
    brought(registry, "replaced", "r")
    [successor] = [run for run in registry.read("all") if run.replaces]
    registry.kill(successor.id, "killed")
    change(registry, "done", successor.id)
    assert (registry.delete_finished(retention=-1.0), registry.read("all")) == (2, [])


def test_the_runs_of_another_project_are_left_to_others(registry: Registry) -> None:
    for name in ("here", "there"):
        registered(registry, name, owner="dead", launch={"project": f"/{name}"})
    assert [run.id for run in registry.take_over("me", "/here")] == ["here"]
    assert [registry.dead_owners("me", each) for each in ("/here", "/there", None)] == [
        [],
        ["dead"],
        ["dead"],
    ]
    assert [run.id for run in registry.take_over("me", None)] == ["there"]


KEEPER = """
import sys, time
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry import Registry
registry = Registry(sys.argv[1])
owner = registry.join()
for n in range(50):
    registry.register(SubagentRun(id=f"r{n:02}", chain=f"r{n:02}", agent_id=f"a{n:02}", owner=owner), may_run=True, max_running=100)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.req("X-24", "X-25")
def test_many_processes_want_a_dead_ones_runs_and_each_run_goes_to_one(state: Path) -> None:
    with programs(KEEPER, state, 1) as [keeper], programs(ADOPTER, state, 6) as heirs:
        let_go(heirs[0])
        assert len(said(heirs[0]).split()) == 1  # its owner lives
        keeper.send_signal(signal.SIGKILL)
        keeper.wait()
        for heir in heirs[1:]:
            let_go(heir)
        answers = [said(heir).split() for heir in heirs[1:]]
        with opened(state) as registry:
            kept = [(run.id, run.owner, run.recoveries) for run in registry.read("all")]
        [(winner, *runs)] = [answer for answer in answers if len(answer) > 1]
        assert sorted(runs) == [f"r{n:02}" for n in range(50)]
        assert kept == [(f"r{n:02}", winner, 1) for n in range(50)]


# Workers


def test_a_worker_claims_what_is_for_workers_with_its_labels_the_oldest_first(registry: Registry) -> None:
    registered(registry, "here", owner="", created=1.0)
    for_workers(registry, "gpu", "gpu", created=2.0)
    for_workers(registry, "both", "gpu", "big", created=3.0)
    before = for_workers(registry, "any", created=4.0)
    plain, gpu = registry.join(slots=9), registry.join(slots=9, labels=["gpu"])
    claimed = registry.claim(plain, [], max_running=9)
    assert claimed is not None
    assert claimed.started is not None
    assert claimed == replace(before, owner=plain, state="running", started=claimed.started)
    others = [registry.claim(gpu, ["gpu"], max_running=9), registry.claim(gpu, ["gpu"], max_running=9)]
    assert [run and (run.id, run.owner) for run in others] == [("gpu", gpu), None]


def test_a_worker_claims_no_more_than_its_slots_and_than_the_session_may_run_at_once(
    registry: Registry,
) -> None:
    for number in range(3):
        for_workers(registry, f"a{number}", at_once=2, parent="a", created=number)
        for_workers(registry, f"b{number}", parent="b", created=5.0 + number)
    one, two = registry.join(slots=3), registry.join(slots=3)
    claimed = [registry.claim(owner, [], max_running=3) for owner in (one, one, one, one, two, two)]
    assert [run and run.id for run in claimed] == ["a0", "a1", "b0", None, "b1", "b2"]
    registry.transition("end", "a0", one, outcome="ok", reason="complete")
    registry.transition("finish", "a0", one, **FINAL)
    last = registry.claim(two, [], max_running=3)
    assert (last and last.id, registry.claim(two, [], max_running=3)) == ("a2", None)


def test_a_claim_says_whether_runs_that_fit_wait_also_those_above_a_limit(registry: Registry) -> None:
    for number in range(3):
        for_workers(registry, f"r{number}", at_once=1, parent="p" if number else "q", created=number)
    for_workers(registry, "other", "gpu")
    worker = registry.join(slots=9)

    def claim(*left: str) -> tuple[str | None, bool]:
        run = registry.claim(worker, [], max_running=9, left=left)
        return run.id if run else None, registry.more_wait

    assert [claim(), claim(), claim()] == [("r0", True), ("r1", True), (None, True)]
    registry.transition("end", "r1", worker, outcome="ok", reason="complete")
    registry.transition("finish", "r1", worker, **FINAL)
    for_workers(registry, "last", created=9.0)
    assert [claim("last"), claim(), claim()] == [("r2", False), ("last", False), (None, True)]


@pytest.mark.parametrize("now", ["running", "ended", "steering", "final", "announced", "killed"])
def test_a_run_that_a_worker_gives_up_goes_on_where_it_was_at_another_one(
    registry: Registry, now: RunState
) -> None:
    worker, heir = registry.join(slots=1), registry.join(slots=1)
    for_workers(registry, "r")
    assert registry.claim(worker, [], max_running=1) is not None
    for name in WAYS[now][1:] if now != "killed" else ("kill",):
        assert change(registry, name, "r", worker)
    before = kept(registry)
    assert registry.take_over("a session", "/p") == []
    assert registry.claim(heir, [], max_running=1) is None
    assert (registry.leave(worker), registry.claim(heir, [], max_running=1, left=["r"])) == (1, None)
    assert registry.claim(heir, [], max_running=1) == replace(before, owner=heir)
    assert registry.take_over("a session", "/p") == []


def test_many_workers_claim_each_run_once(state: Path, registry: Registry) -> None:
    for number in range(60):
        for_workers(registry, f"r{number}", at_once=99)
    claimed: list[list[str]] = []

    def work() -> None:
        with opened(state) as own:
            owner, mine = own.join(slots=99), list[str]()
            while run := own.claim(owner, [], max_running=99):
                mine.append(run.id)
            claimed.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(run for mine in claimed for run in mine) == sorted(f"r{number}" for number in range(60))


# At once


def test_a_limit_of_two_holds_for_eight_that_start_at_once(state: Path, registry: Registry) -> None:
    over = list[int]()

    def start(names: Sequence[str]) -> None:
        with opened(state) as own:
            owner = own.join()
            for name in names:
                barrier.wait()
                own.register(a_run(name, owner=owner), may_run=True, max_running=2)
                barrier.wait()
                if name.startswith("0"):
                    running = [run.id for run in own.read("all") if run.state == "running"]
                    over.append(len(running))
                    for run in own.read("all"):
                        own.kill(run.id, "killed")
                barrier.wait()

    barrier = threading.Barrier(8)
    threads = [
        threading.Thread(target=start, args=([f"{thread}-{number}" for number in range(10)],))
        for thread in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert over == [2] * 10


def test_a_write_of_another_process_ends_a_wait_and_one_that_changes_nothing_does_not(
    state: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.subagents.registry.postgres_store.POLL_S", 10**6)
    with opened(state) as other:
        seen = registry.wait_for_change(-1, 0)
        seen = registry.wait_for_change(seen, 0.5)  # the first wait begins to listen
        worker = other.join(slots=1)
        assert other.claim(worker, [], max_running=1) is None
        assert registry.wait_for_change(seen, 0.5) == seen
        registered(other)
        changed = registry.wait_for_change(seen, HANG_TIMEOUT_S)
        assert changed != seen
        registered(registry, "own")
        assert registry.wait_for_change(changed, 0.5) == changed


def test_two_threads_use_one_registry_at_once(registry: Registry) -> None:
    wrong: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for n in range(40):
                brought(registry, "done", f"{name}{n}")
        except BaseException as error:  # noqa: BLE001 - it is shown below
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (wrong, Counter(run.state for run in registry.read("all"))) == ([], {"done": 80})


RACER = """
import sys
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry import Registry
registry = Registry(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(*(f"r{n}" for n in range(100) if registry.transition("announce", f"r{n}", "me")), flush=True)
"""


@pytest.mark.req("X-26")
def test_two_processes_announce_the_same_runs_and_each_is_announced_once(
    state: Path, registry: Registry
) -> None:
    for n in range(100):
        brought(registry, "final", f"r{n}")
    with programs(RACER, state, 3) as racers:
        for racer in racers:
            let_go(racer)
        announced = [run for racer in racers for run in said(racer).split()]
    assert sorted(announced) == sorted(f"r{n}" for n in range(100))


# Whatever happens in whatever order

TERMINAL: Sequence[RunState] = ("done", "given_up", "replaced")


class Transitions(RuleBasedStateMachine):
    """Two owners do whatever comes to their minds to two chains; one of them dies now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.registries = [Registry(self.folder.name) for _ in range(2)]
        for registry in self.registries:
            if isinstance(registry.store, SqliteStore):
                registry.store.execute("PRAGMA synchronous = OFF", {})
        self.announced: Counter[str] = Counter()
        self.granted: Counter[str] = Counter()
        self.left: dict[str, SubagentRun] = {}

    @initialize()
    def register(self) -> None:
        for number, chain in enumerate("xy"):
            registered(self.registries[number], chain, owner=f"owner{number}")

    @rule(
        name=st.sampled_from([*OUT_OF, "mark_delivered"]),
        chain=st.sampled_from("xy"),
        who=st.integers(0, 1),
        old=st.booleans(),
    )
    def change(self, name: str, chain: str, who: int, old: bool) -> None:
        registry = self.registries[who]
        now = registry.read("chain", chain)[0] if old else registry.find("last", chain)
        assert now is not None
        changed = change(registry, name, now.id, f"owner{who}")
        if name == "announce" and changed:
            self.announced[chain] += 1
        if name == "redirect" and changed:
            self.granted[chain] += 1

    @rule(dead=st.integers(0, 1))
    def adopt(self, dead: int) -> None:
        self.registries[1 - dead].take_over(f"owner{1 - dead}", None)

    @invariant()
    def each_chain_is_announced_at_most_once(self) -> None:
        runs = self.registries[0].read("all")
        on_disk = Counter(run.chain for run in runs if run.announced is not None)
        assert (on_disk, max(on_disk.values(), default=0) <= 1) == (self.announced, True)

    @invariant()
    def no_count_is_above_what_was_granted(self) -> None:
        for run in self.registries[0].read("all"):
            assert 0 <= run.steer_count <= self.granted[run.chain]

    @invariant()
    def what_is_over_stays_over(self) -> None:
        now = {run.id: run for run in self.registries[1].read("all")}
        for identity, run in self.left.items():
            assert now[identity] == replace(run, taken=now[identity].taken)
        self.left.update({identity: run for identity, run in now.items() if run.state in TERMINAL})

    @invariant()
    def a_chain_has_one_run_that_is_not_replaced(self) -> None:
        runs = self.registries[0].read("all")
        assert Counter(run.chain for run in runs if run.state != "replaced") == Counter(
            {run.chain for run in runs}
        )

    def teardown(self) -> None:
        for registry in self.registries:
            registry.close()
        self.folder.cleanup()


class TransitionsOnPostgres(Transitions):
    """The server's registry is emptied for each example."""

    server: ClassVar[PostgresServer]

    def __init__(self) -> None:
        self.server.clear()
        super().__init__()


STEPS = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck))
Transitions.TestCase.settings = TransitionsOnPostgres.TestCase.settings = STEPS
TestWhateverHappens = pytest.mark.req("X-21", "X-22")(Transitions.TestCase)


class TestWhateverHappensOnPostgres(TransitionsOnPostgres.TestCase):  # type: ignore[valid-type, misc]
    @pytest.fixture(autouse=True)
    def _server(self, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
        TransitionsOnPostgres.server = postgres
        monkeypatch.setenv("TURNGATE_REGISTRY", postgres.url())
