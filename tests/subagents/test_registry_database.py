"""The registry's files in the hands of others: held, of another version, damaged, deleted."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli import start_turngate, turngate
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.errors import RegistryError
from turngate.subagents.registry import Owner, Registry, database
from turngate.subagents.registry.table import SCHEMA_VERSION


@contextlib.contextmanager
def opened(state: Path) -> Iterator[Registry]:
    registry = Registry(str(state))
    try:
        yield registry
    finally:
        registry.close()


def registered(registry: Registry, owner: str, name: str = "r") -> SubagentRun:
    run = SubagentRun(id=name, chain=name, agent_id=f"a-{name}", owner=owner, parent="s", created=5.0)
    return registry.register(run, may_run=True, max_running=100)


# A lock that another process holds

HOLDER = """
import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(3600)
"""


@contextlib.contextmanager
def held(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds a lock."""
    path.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-c", HOLDER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def sentence(path: Path) -> str:
    return (
        f"the registry {path} cannot be opened: another process has held {path}.lock for 10 s; "
        f"end that process (`fuser {path}.lock` prints its PID), or set TURNGATE_STATE to another folder"
    )


def test_a_lock_that_is_held_for_ever_ends_in_a_sentence(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.5)
    waits: list[str] = []
    with held(state / "registry.db.lock"), pytest.raises(RegistryError) as raised:
        Registry(str(state), on_wait=waits.append)
    path = state / "registry.db"
    assert (str(raised.value), waits) == (sentence(path).replace("10 s", "0.5 s"), [])


def test_a_wait_for_the_lock_is_reported_once_and_ends_when_the_lock_is_free(state: Path) -> None:
    reported: list[str] = []
    with held(state / "registry.db.lock") as holder:

        def report(text: str) -> None:
            reported.append(text)
            holder.kill()

        Registry(str(state), on_wait=report).close()
    assert reported == [f"waiting for the registry: another process holds {state}/registry.db.lock"]


def test_a_command_says_that_it_waits_for_the_registry_and_then_why_it_stopped(state: Path) -> None:
    with opened(state):
        pass
    path = state / "registry.db"
    with held(Path(f"{path}.lock")):
        assert turngate("runs", "kill", "--all") == (
            64,
            "",
            f"waiting for the registry: another process holds {path}.lock\nturngate: {sentence(path)}\n",
        )


def test_a_session_says_that_it_waits_for_the_registry_and_works_without_it(
    state: Path, project: Path
) -> None:
    script = project.parent / "script.json"
    script.write_text('{"main": ["hello"]}')
    with opened(state):
        pass
    path = state / "registry.db"
    with held(Path(f"{path}.lock")):
        words = ("--project", str(project), "--model", f"scripted:{script}")
        assert turngate("run", "-p", "hi", *words) == (
            0,
            "hello\n",
            f"! waiting for the registry: another process holds {path}.lock\n! {sentence(path)}\n",
        )


def test_a_command_that_waits_for_the_registry_can_be_interrupted(state: Path) -> None:
    with opened(state):
        pass
    with held(state / "registry.db.lock"), start_turngate("runs") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("waiting for the registry")
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_TIMEOUT_S) == 130


# Statements that change nothing


@pytest.mark.parametrize(
    "change",
    [
        lambda registry: registry.kill("done", "killed"),
        lambda registry: registry.mark_delivered("done"),
        lambda registry: registry.adopt("dead", "me", None),
        lambda registry: registry.release_slots_of_dead(),
        lambda registry: registry.delete_finished(),
        lambda registry: registry.reassign_to_root("a"),
        lambda registry: registry.discard_results("s", ""),
    ],
    ids=["kill", "deliver", "adopt", "release", "delete", "reassign", "discard"],
)
def test_what_changes_nothing_does_not_wait_for_another_writer(
    state: Path, change: Callable[[Registry], object]
) -> None:
    with opened(state) as registry, contextlib.closing(sqlite3.connect(registry.path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert not change(registry)
        assert registry.commits == 0
        writer.rollback()


def test_what_changes_something_waits_for_the_other_writer(state: Path) -> None:
    with opened(state) as registry:
        registered(registry, "me")
        writer = sqlite3.connect(registry.path, check_same_thread=False)
        writer.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.5, writer.close)
        release.start()
        assert [run.state for run in registry.kill("r", "killed")] == ["killed"]
        release.join()


def test_a_writer_that_never_ends_is_an_error(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.subagents.registry.registry.BUSY_TIMEOUT_S", 0.3)
    with opened(state) as registry, contextlib.closing(sqlite3.connect(registry.path)) as writer:
        registered(registry, "me")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(RegistryError, match=r"cannot be used: database is locked$"):
            registry.kill("r", "killed")


# The version of the schema


def user_version(path: Path, version: int | None = None) -> int:
    with contextlib.closing(sqlite3.connect(path)) as db:
        if version is not None:
            db.execute(f"PRAGMA user_version = {version}")
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_a_new_registry_has_the_version_of_its_schema(state: Path) -> None:
    with opened(state):
        pass
    assert user_version(state / "registry.db") == SCHEMA_VERSION


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 2**31 - 1, -1])
def test_a_registry_of_a_later_version_is_refused_and_left_as_it_is(state: Path, version: int) -> None:
    with opened(state) as registry:
        registered(registry, "me")
    path = state / "registry.db"
    user_version(path, version)
    before = path.read_bytes()
    why = (
        f"the registry {path} has schema version {version}, and this version of Turngate knows {SCHEMA_VERSION}: "
        "a later version wrote it; update Turngate, or set TURNGATE_STATE to another folder"
    )
    with pytest.raises(RegistryError) as raised:
        Registry(str(state))
    assert (str(raised.value), path.read_bytes() == before) == (why, True)
    assert turngate("runs") == (64, "", f"turngate: {why}\n")
    assert database.owners_with_open_runs(str(state), "/project") == []


def test_a_registry_without_a_version_is_migrated(state: Path) -> None:
    with opened(state) as registry:
        before = registered(registry, "me")
        registry._db.execute("ALTER TABLE runs DROP COLUMN rapid")
    user_version(state / "registry.db", 0)
    with opened(state) as registry:
        assert (registry.notice, registry.all()) == (None, [before])
    assert user_version(state / "registry.db") == SCHEMA_VERSION


def test_a_state_that_no_version_writes_is_reported_as_damage(state: Path) -> None:
    with opened(state) as registry:
        registered(registry, "me")
        registry._db.execute("UPDATE runs SET state = 'dancing'")
        with pytest.raises(
            RegistryError, match=f"^the registry {registry.path} is damaged: state is 'dancing'$"
        ):
            registry.get("r")


# Owners


OWNER = """
import sys, time
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.registry import Owner, Registry
registry = Registry(sys.argv[1])
owner = Owner(registry.owners)
owner.acquire()
registry.register(SubagentRun(id="r", chain="r", agent_id="a", owner=owner.id), may_run=True, max_running=9)
print(owner.id, flush=True)
time.sleep(3600)
"""


def test_a_live_owner_keeps_its_runs_although_its_file_is_deleted(state: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(state)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        opened(state) as registry,
    ):
        assert process.stdout is not None
        owner = process.stdout.readline().strip()
        os.unlink(state / "owners" / owner)
        kept = registry.adopt(owner, "me", None)
        registry.release_slots_of_dead()
        state_of_run = registry.all()[0].state
        process.kill()
        process.wait()
        [adopted] = registry.adopt(owner, "me", None)
    assert (kept, state_of_run, adopted.owner, adopted.recoveries) == ([], "running", "me", 1)


def test_what_an_owner_leaves_in_order_is_adopted_while_its_process_lives_on(state: Path) -> None:
    with opened(state) as registry:
        owner = Owner(registry.owners)
        owner.acquire()
        registered(registry, owner.id)
        assert registry.leave(owner.id) == 1
        owner.release()
        registry.release_slots_of_dead()
        assert registry.all()[0].state == "waiting"
        [adopted] = [run for each in registry.other_owners("me") for run in registry.adopt(each, "me", None)]
        assert (adopted.owner, adopted.recoveries, registry.leave("nothing")) == ("me", 0, 0)
        assert list((state / "owners").iterdir()) == []
