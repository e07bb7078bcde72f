import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import RunState, SubagentRun
from turngate.errors import RegistryError
from turngate.state.files import make_private_dir
from turngate.subagents.registry import Owner, Registry
from turngate.subagents.registry.table import MAX_RESULT_CHARS, truncate_result

NONE = 10**6  # more room than anybody takes

# One run on its way to each state, by the transitions alone

WAYS: dict[RunState, tuple[str, ...]] = {
    "waiting": (),
    "running": ("start",),
    "ended": ("start", "end"),
    "steering": ("start", "end", "request_redirect"),
    "replaced": ("start", "end", "request_redirect", "replace"),
    "final": ("start", "end", "finish"),
    "announced": ("start", "end", "finish", "announce"),
    "done": ("start", "end", "finish", "announce", "mark_done"),
    "killed": ("kill",),
    "given_up": ("start", "end", "finish", "give_up"),
}
OUT_OF: dict[str, dict[RunState, RunState]] = {
    "start": {"waiting": "running"},
    "end": {"running": "ended"},
    "request_redirect": {"ended": "steering"},
    "steer": {"waiting": "steering", "running": "steering", "ended": "steering"},
    "cancel_redirect": {"steering": "ended"},
    "replace": {"steering": "replaced"},
    "finish": {"ended": "final"},
    "finish_lost": {"waiting": "final", "running": "final", "ended": "final", "steering": "final"},
    "announce": {"final": "announced"},
    "count_attempt": {"final": "final"},
    "give_up": {"final": "given_up"},
    "mark_done": {"announced": "done", "killed": "done"},
    "kill": {"waiting": "killed", "running": "killed", "ended": "killed", "steering": "killed"},
    "kill_all": {"waiting": "killed", "running": "killed", "ended": "killed", "steering": "killed"},
}


@pytest.fixture
def registry(state: Path) -> Iterator[Registry]:
    with opened(state) as registry:
        yield registry


@contextlib.contextmanager
def opened(state: Path) -> Iterator[Registry]:
    registry = Registry(str(state))
    make_private_dir(registry.owners)
    try:
        yield registry
    finally:
        registry.close()


def a_run(identity: str = "r", **fields: Any) -> SubagentRun:
    return SubagentRun(
        **{
            "id": identity,
            "chain": identity,
            "agent_id": f"a-{identity}",
            "owner": "me",
            "parent": "s",
            "created": 5.0,
            "max_steers": 3,
            **fields,
        }
    )


def registered(registry: Registry, identity: str = "r", **fields: Any) -> SubagentRun:
    return registry.register(a_run(identity, **fields), may_run=False, max_running=NONE)


def change(registry: Registry, name: str, run: str = "r", owner: str = "me") -> object:
    """One transition by its name; falsy: nothing has changed."""
    now = registry.get(run)
    assert now is not None
    does: dict[str, Callable[[], object]] = {
        "start": lambda: registry.start(now, owner, max_running=NONE),
        "end": lambda: registry.end(run, owner, "ok", reason="complete", answer="the answer"),
        "request_redirect": lambda: registry.request_redirect(
            run, "more", why="not done", counts=True, max_steers=3
        ),
        "steer": lambda: registry.request_redirect(
            run, "more", why="by hand", counts=False, max_steers=3, states=("waiting", "running", "ended")
        ),
        "cancel_redirect": lambda: registry.cancel_redirect(run, counted=now.next_by_hook),
        "replace": lambda: registry.replace(now),
        "finish": lambda: registry.finish(run, result="r", reason="complete", announcement="a", max_steers=3),
        "finish_lost": lambda: registry.finish_lost(run, owner, error="lost", announcement="it is lost"),
        "announce": lambda: registry.announce(run),
        "count_attempt": lambda: registry.count_attempt(run),
        "give_up": lambda: registry.give_up(run, "connection refused"),
        "mark_done": lambda: registry.mark_done(run),
        "kill": lambda: registry.kill(run, "killed"),
        "kill_all": lambda: registry.kill_all("s", "", "session-reset"),
        "mark_delivered": lambda: registry.mark_delivered(run),
    }
    return does[name]()


def brought(registry: Registry, state: RunState, identity: str = "r", **fields: Any) -> SubagentRun:
    registered(registry, identity, **fields)
    for name in WAYS[state]:
        assert change(registry, name, identity, fields.get("owner", "me")), name
    return kept(registry, identity)


def kept(registry: Registry, identity: str = "r") -> SubagentRun:
    found = registry.get(identity)
    assert found is not None
    return found


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
@pytest.mark.parametrize("name", [name for name in OUT_OF if name != "count_attempt"])
def test_a_transition_that_comes_twice_changes_nothing_the_second_time(registry: Registry, name: str) -> None:
    brought(registry, next(iter(OUT_OF[name])))
    assert change(registry, name)
    after = registry.all()
    assert (bool(change(registry, name)), registry.all()) == (False, after)


@pytest.mark.req("X-21")
@pytest.mark.parametrize("first", ["killed", "timeout"])
def test_a_success_that_comes_late_does_not_undo_a_kill_or_a_time_out(registry: Registry, first: str) -> None:
    brought(registry, "running")
    if first == "killed":
        registry.kill("r", "enough")
    else:
        registry.end("r", "me", "timeout", reason="timeout", error="too long")
    before = kept(registry)
    late = registry.end("r", "me", "ok", reason="complete", answer="I am done after all")
    assert (late, kept(registry), before.outcome) == (None, before, first)


def test_an_end_keeps_everything_that_is_known_about_the_run(registry: Registry) -> None:
    running = brought(registry, "running")
    ended = registry.end(
        "r",
        "me",
        "error",
        reason="error",
        error="it broke",
        answer="half",
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


@pytest.mark.parametrize("name", ["start", "end", "finish_lost"])
def test_only_the_owner_works_on_a_run(registry: Registry, name: str) -> None:
    before = brought(registry, next(iter(OUT_OF[name])))
    assert (change(registry, name, owner="another"), kept(registry)) == (None, before)


def test_a_run_waits_while_the_machine_is_full(registry: Registry) -> None:
    first, second = (
        registry.register(a_run(name, owner="me"), may_run=True, max_running=1) for name in ("one", "two")
    )
    assert (first.state, first.started, second.state, second.started) == ("running", 5.0, "waiting", None)
    assert registry.start(second, "me", max_running=1) is None
    registry.end("one", "me", "ok", reason="complete")
    assert registry.start(second, "me", max_running=1) is None  # it may be sent on, so it keeps its room
    registry.kill("one", "killed")
    started = registry.start(second, "me", max_running=1)
    assert started is not None
    assert (started.state, registry.start(second, "me", max_running=1)) == ("running", None)


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
    states = {run.id: (run.state, run.outcome, run.reason) for run in registry.all()}
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
    assert {run.id for run in registry.kill_all("s", "", "session-reset")} == {"child", "grandchild"}
    assert kept(registry, "other").state == "waiting"


# Redirects


@pytest.mark.req("X-22", "S4-23")
def test_the_count_is_on_disk_before_the_new_prompt_can_be_sent(state: Path, registry: Registry) -> None:
    ended = brought(registry, "ended")
    registry.request_redirect("r", "more", why="no tests", counts=True, max_steers=4, guard={"count": 1})
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
    change(registry, "request_redirect")
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
    registry.end(
        "r",
        "me",
        "error",
        reason="error",
        error="e",
        answer="half",
        usage=Usage(input_tokens=10),
        tool_calls=4,
        tools=("Bash",),
    )
    marked = registry.request_redirect(
        "r", "go on", why="no tests", counts=True, max_steers=6, guard={"count": 1, "repeats": 2}
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
    assert (registry.last("r"), registry.chain("r")) == (successor, [kept(registry), successor])


def test_replacing_a_run_twice_makes_one_replacement(registry: Registry) -> None:
    marked = brought(registry, "steering")
    first, second = registry.replace(marked), registry.replace(marked)
    assert (second, [run.id for run in registry.chain("r")]) == (None, ["r", first.id if first else ""])


# Handing over


@pytest.mark.req("X-26")
def test_an_announcement_waits_in_the_inbox_until_it_is_taken_once(registry: Registry) -> None:
    brought(registry, "final")
    assert registry.inbox("s") == []
    announced = registry.announce("r")
    assert announced is not None
    assert [registry.inbox("s"), registry.inbox("s", "a child"), registry.inbox("another")] == [
        [announced],
        [],
        [],
    ]
    change(registry, "mark_done")
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
    announced = registry.announce("r", taken=True)
    assert announced is not None
    assert (announced.taken == announced.announced, registry.inbox("s")) == (True, [])


def test_a_report_for_a_subagent_that_is_gone_goes_to_the_main_agent(registry: Registry) -> None:
    brought(registry, "final", parent_agent="gone")
    registry.announce("r", to_root=True)
    assert [[run.id for run in registry.inbox("s", agent)] for agent in ("gone", "")] == [[], ["r"]]


@pytest.mark.req("X-26")
def test_tries_are_counted_on_disk_until_they_are_given_up(state: Path, registry: Registry) -> None:
    brought(registry, "final")
    assert [registry.count_attempt("r"), registry.count_attempt("r")] == [1, 2]
    with opened(state) as another:
        assert another.count_attempt("r") == 3
    registry.give_up("r", "connection refused")
    given_up = kept(registry)
    assert (given_up.state, given_up.error, given_up.attempts, registry.count_attempt("r")) == (
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
    registry.end("r", "me", "ok", reason="complete", answer=long)
    registry.finish("r", result=long, reason="complete", announcement=long, max_steers=3)
    final = kept(registry)
    assert [final.result == cut, final.announcement == cut, truncate_result("x" * MAX_RESULT_CHARS)] == [
        True,
        True,
        "x" * MAX_RESULT_CHARS,
    ]


def test_a_result_that_is_no_text_can_still_be_kept(registry: Registry) -> None:
    brought(registry, "running")
    ended = registry.end("r", "me", "ok", reason="complete", answer="half a pair \ud800 \0 and more")
    assert (kept(registry), ended.result if ended else "") == (ended, "half a pair ? \0 and more")


@pytest.mark.req("X-25")
def test_a_run_that_is_buried_says_so_to_its_parent(registry: Registry) -> None:
    before = brought(registry, "steering")
    registry.finish_lost("r", "me", error="died 4 times", announcement="it is lost")
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
    registry.mark_done("killed")
    assert registry.delete_finished() == 0
    everything = {run.id for run in registry.all()}
    gone = {"taken", "killed"}  # what was replaced stays as long as its chain is open
    assert (registry.delete_finished(retention=-1.0), {run.id for run in registry.all()}) == (
        len(gone),
        everything - gone,
    )


# Owners


def test_what_a_living_owner_has_is_not_taken_over(registry: Registry) -> None:
    owner = Owner(registry.owners)
    owner.acquire()
    before = brought(registry, "running", owner=owner.id)
    assert (registry.other_owners("me"), registry.adopt(owner.id, "me", None)) == ([owner.id], [])
    registry.leave(owner.id)
    owner.release()
    [adopted] = registry.adopt("", "me", None)
    assert adopted == replace(before, owner="me")  # it let go in order: that is no death
    assert (registry.other_owners("me"), registry.adopt(owner.id, "me", None)) == ([], [])


def test_everything_open_is_taken_over_and_nothing_that_is_finished(registry: Registry) -> None:
    for state in WAYS:
        brought(registry, state, state, owner="dead")
    adopted = {run.id for run in registry.adopt("dead", "me", None)}
    assert adopted - {run.id for run in registry.all() if run.replaces} == {
        "waiting",
        "running",
        "ended",
        "steering",
        "final",
        "announced",
        "killed",
    }


@pytest.mark.parametrize("seconds", [121, -3600], ids=["later", "after the clock was set back"])
def test_recoveries_in_quick_succession_are_counted_apart(registry: Registry, seconds: int) -> None:
    registered(registry, owner="one")
    for dead, heir in (("one", "two"), ("two", "three")):
        died(registry, dead)
        registry.adopt(dead, heir, None)
    assert (kept(registry).recoveries, kept(registry).rapid) == (2, 2)
    registry._db.execute("UPDATE runs SET recovered = recovered - ?", (seconds,))
    died(registry, "three")
    registry.adopt("three", "four", None)
    assert (kept(registry).recoveries, kept(registry).rapid) == (3, 1)


def died(registry: Registry, owner: str) -> None:
    """Who dies leaves its lock file behind."""
    os.makedirs(registry.owners, exist_ok=True)
    Path(registry.owners, owner).touch()


def test_a_chain_that_is_over_is_forgotten_with_all_of_its_runs(registry: Registry) -> None:
    brought(registry, "replaced", "r")
    [successor] = [run for run in registry.all() if run.replaces]
    registry.kill(successor.id, "killed")
    registry.mark_done(successor.id)
    assert (registry.delete_finished(retention=-1.0), registry.all()) == (2, [])


def test_the_runs_of_another_project_are_left_to_others(registry: Registry) -> None:
    for name in ("here", "there"):
        registered(registry, name, owner="dead", launch={"project": f"/{name}"})
    assert [run.id for run in registry.adopt("dead", "me", "/here")] == ["here"]
    assert registry.other_owners("me") == ["dead"]
    assert [run.id for run in registry.adopt("dead", "you", None)] == ["there"]


ADOPTER = """
import sys
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry import Owner, Registry
registry = Registry(sys.argv[1])
owner = Owner(registry.owners)
owner.acquire()
print("ready", flush=True)
sys.stdin.readline()
print(owner.id, *(run.id for dead in registry.other_owners(owner.id) for run in registry.adopt(dead, owner.id, None)), flush=True)
sys.stdin.readline()
"""
KEEPER = """
import sys, time
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry import Owner, Registry
registry = Registry(sys.argv[1])
owner = Owner(registry.owners)
owner.acquire()
for n in range(50):
    registry.register(SubagentRun(id=f"r{n:02}", chain=f"r{n:02}", agent_id=f"a{n:02}", owner=owner.id), may_run=True, max_running=100)
print("ready", flush=True)
time.sleep(60)
"""


@contextlib.contextmanager
def programs(source: str, state: Path, count: int) -> Iterator[list["subprocess.Popen[str]"]]:
    command = [sys.executable, "-c", source, str(state)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        for program in started:
            assert said(program) == "ready"
        yield started
    finally:
        for program in started:
            program.kill()
            program.communicate()


def said(program: "subprocess.Popen[str]") -> str:
    assert program.stdout is not None
    return program.stdout.readline().strip()


def let_go(program: "subprocess.Popen[str]") -> None:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()


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
            kept = [(run.id, run.owner, run.recoveries) for run in registry.all()]
        [(winner, *runs)] = [answer for answer in answers if len(answer) > 1]
        assert sorted(runs) == [f"r{n:02}" for n in range(50)]
        assert kept == [(f"r{n:02}", winner, 1) for n in range(50)]


# Files


@pytest.mark.req("X-24")
def test_all_files_are_private(state: Path, registry: Registry) -> None:
    owner = Owner(registry.owners)
    owner.acquire()
    registered(registry)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (state, *state.rglob("*"))}
    assert modes == {
        state.name: 0o700,
        "registry.db": 0o600,
        "registry.db-wal": 0o600,
        "registry.db-shm": 0o600,
        "registry.db.lock": 0o600,
        "owners": 0o700,
        owner.id: 0o600,
    }
    owner.release()


@pytest.mark.req("X-24", "S4-23")
def test_a_file_of_an_older_version_loads_with_defaults(state: Path) -> None:
    state.mkdir()
    with contextlib.closing(sqlite3.connect(state / "registry.db")) as old:
        old.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, agent_id, state, owner, task) WITHOUT ROWID")
        old.execute("INSERT INTO runs VALUES ('r', 'a', 'ended', 'me', 'the task')")
        old.commit()
    with opened(state) as registry:
        assert (registry.notice, kept(registry)) == (
            None,
            SubagentRun(id="r", chain="r", agent_id="a", state="ended", owner="me", task="the task"),
        )
        marked = registry.request_redirect("r", "more", why="w", counts=True, max_steers=3)
        assert marked is not None
        assert marked.steer_count == 1
        assert registry.replace(marked) is not None


@pytest.mark.req("X-24")
def test_a_file_of_a_newer_version_loads_and_keeps_what_we_do_not_know(state: Path) -> None:
    with opened(state) as registry:
        before = brought(registry, "running")
        registry._db.execute("ALTER TABLE runs ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")
        registry._db.execute("UPDATE runs SET mood = 'good'")
    with opened(state) as registry:
        assert kept(registry) == before
        change(registry, "end")
        registered(registry, "another")
        moods = registry._db.execute("SELECT id, mood FROM runs ORDER BY id").fetchall()
        assert [tuple(row) for row in moods] == [("another", "calm"), ("r", "good")]


@pytest.mark.req("X-24")
@pytest.mark.parametrize(
    "damage", ["usage = '[1]'", "tools = 'not JSON'", "spent = '5'"], ids=["type", "syntax", "number"]
)
def test_a_row_that_no_version_writes_is_reported_as_damage(registry: Registry, damage: str) -> None:
    registered(registry)
    registry._db.execute(f"UPDATE runs SET {damage}")
    with pytest.raises(RegistryError, match=f"^the registry {registry.path} is damaged: "):
        registry.get("r")


@pytest.mark.req("X-24")
def test_a_count_that_a_newer_version_added_to_the_usage_is_ignored(registry: Registry) -> None:
    registered(registry)
    registry._db.execute("""UPDATE runs SET usage = '{"input_tokens": 7, "thoughts": 5}'""")
    assert kept(registry).usage == Usage(input_tokens=7)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "its header is garbage": lambda whole: b"\xff" * 100 + whole[100:],
    "it is a text": lambda _: b"these are not the runs you are looking for\n" * 50,
    "it is a word": lambda _: b"no",
    "it ends in the middle": lambda whole: whole[: len(whole) // 2 + 100],
    "its middle is garbage": lambda whole: whole[:4096] + os.urandom(len(whole) - 8192) + whole[-4096:],
}


@pytest.mark.req("X-24")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_set_aside_and_reported_and_never_deleted(state: Path, damage: str) -> None:
    with opened(state) as registry:
        for n in range(200):
            registered(registry, f"r{n}", task="x" * 500)
    path = state / "registry.db"
    damaged = DAMAGES[damage](path.read_bytes())
    path.write_bytes(damaged)
    with opened(state) as registry:
        [aside] = [each for each in state.iterdir() if ".damaged-" in each.name]
        assert aside.read_bytes() == damaged
        assert registry.notice is not None
        assert registry.notice.startswith(f"the registry {path} was damaged (")
        assert registry.notice.endswith(f"); it was set aside as {aside}")
        registered(registry, "new")
        assert [run.id for run in registry.all()] == ["new"]
    with opened(state) as again:
        assert (again.notice, [run.id for run in again.all()]) == (None, ["new"])


@pytest.mark.req("X-24")
def test_what_is_damaged_is_set_aside_by_one_of_many_processes(state: Path) -> None:
    state.mkdir()
    (state / "registry.db").write_text("no register at all")
    with programs(ADOPTER, state, 4):
        aside = [path.read_text() for path in state.iterdir() if ".damaged-" in path.name]
    assert aside == ["no register at all"]


def test_an_empty_file_is_an_empty_registry(state: Path) -> None:
    state.mkdir()
    (state / "registry.db").touch()
    with opened(state) as registry:
        assert (registry.notice, registry.all()) == (None, [])


@pytest.mark.req("X-23", "X-24")
@pytest.mark.parametrize("place", ["a file", "/proc/no/such"])
def test_a_place_that_cannot_be_written_is_an_error_of_ours_and_nothing_is_set_aside(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "a file").write_text("here")
    with pytest.raises(RegistryError, match="cannot be opened"):
        Registry(str(tmp_path / place))
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


FULL = """
import asyncio, json, os, resource, sys
from turngate.agent.session import Session
from turngate.errors import RegistryError, TurngateError
from turngate.models.scripted import ScriptedModel
from turngate.subagents.limits import SubagentOptions

async def main(project, state):
    model, steps, said = ScriptedModel({"sub": ["never asked"]}), [], []
    seams = SubagentOptions(on_step=lambda name, run: steps.append(name))
    session = Session(project, model, state=state, children=seams, session_id="s")
    async with session:
        await session.open()
        supervisor = session._agent.subagents
        registry = (await supervisor.connect()).registry
        order = {"agent_type": "general-purpose", "prompt": "go", "parent": "s", "background": True}
        registry._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        try:
            await supervisor.spawn(**order)
        except TurngateError as error:
            said.append(type(error).__name__)
        await asyncio.sleep(0.3)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        known = len(registry.all())
        asked = len(model.requests)
        again = await supervisor.spawn(**order)
        ended = await supervisor.result(again.chain)
        supervisor.result_delivered(again.chain)
        print(json.dumps([said, known, asked, ended.outcome, steps.count("registered")]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.req("X-23")
def test_on_a_full_disk_no_subagent_is_started_and_afterwards_one_is(state: Path, project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(project), str(state)],
        capture_output=True,
        text=True,
        timeout=HANG_TIMEOUT_S,
        check=False,
    )
    assert (done.stderr, json.loads(done.stdout or "0")) == ("", [["RegistryError"], 0, 0, "ok", 1])


# At once


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
    assert (wrong, Counter(run.state for run in registry.all())) == ([], {"done": 80})


RACER = """
import sys
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry import Registry
registry = Registry(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(*(f"r{n}" for n in range(100) if registry.announce(f"r{n}")), flush=True)
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
            registry._db.execute("PRAGMA synchronous = OFF")
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
        now = registry.chain(chain)[0] if old else registry.last(chain)
        assert now is not None
        changed = change(registry, name, now.id, f"owner{who}")
        if name == "announce" and changed:
            self.announced[chain] += 1
        if name == "request_redirect" and changed:
            self.granted[chain] += 1

    @rule(dead=st.integers(0, 1))
    def adopt(self, dead: int) -> None:
        self.registries[1 - dead].adopt(f"owner{dead}", f"owner{1 - dead}", None)

    @invariant()
    def each_chain_is_announced_at_most_once(self) -> None:
        runs = self.registries[0].all()
        on_disk = Counter(run.chain for run in runs if run.announced is not None)
        assert (on_disk, max(on_disk.values(), default=0) <= 1) == (self.announced, True)

    @invariant()
    def no_count_is_above_what_was_granted(self) -> None:
        for run in self.registries[0].all():
            assert 0 <= run.steer_count <= self.granted[run.chain]

    @invariant()
    def what_is_over_stays_over(self) -> None:
        now = {run.id: run for run in self.registries[1].all()}
        for identity, run in self.left.items():
            assert now[identity] == replace(run, taken=now[identity].taken)
        self.left.update({identity: run for identity, run in now.items() if run.state in TERMINAL})

    @invariant()
    def a_chain_has_one_run_that_is_not_replaced(self) -> None:
        runs = self.registries[0].all()
        assert Counter(run.chain for run in runs if run.state != "replaced") == Counter(
            {run.chain for run in runs}
        )

    def teardown(self) -> None:
        for registry in self.registries:
            registry.close()
        self.folder.cleanup()


Transitions.TestCase.settings = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck))
TestWhateverHappens = pytest.mark.req("X-21", "X-22")(Transitions.TestCase)
