"""The registry's files in the hands of others: held, of another version, damaged, deleted."""

import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli import start_turngate, turngate
from tests.support.registry import (
    ADOPTER,
    REDIRECT,
    brought,
    change,
    execute,
    kept,
    opened,
    programs,
    registered,
    running,
)
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.errors import RegistryError
from turngate.subagents.registry import Registry, database
from turngate.subagents.registry.sqlite_store import SqliteStore
from turngate.subagents.registry.table import SCHEMA_VERSION


def path_of(registry: Registry) -> str:
    assert isinstance(registry.store, SqliteStore)
    return registry.store.path


@pytest.fixture
def registry(state: Path) -> Iterator[Registry]:
    with opened(state) as registry:
        yield registry


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
    monkeypatch.setattr(database, "LOCK_NOTICE_S", 0.1)
    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.5)
    waits: list[str] = []
    with held(state / "registry.db.lock"), pytest.raises(RegistryError) as raised:
        Registry(str(state), on_wait=waits.append)
    path = state / "registry.db"
    waiting = f"waiting for the registry: another process holds {path}.lock"
    assert (str(raised.value), waits) == (sentence(path).replace("10 s", "0.5 s"), [waiting])


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
        lambda registry: registry.take_over("me", None),
        lambda registry: registry.transition("start", "none", "me", depth=1, max_running=0),
        lambda registry: registry.delete_finished(),
        lambda registry: registry.discard_results("s"),
    ],
    ids=["kill", "deliver", "adopt", "release", "delete", "discard"],
)
def test_what_changes_nothing_does_not_wait_for_another_writer(
    state: Path, change: Callable[[Registry], object]
) -> None:
    with opened(state) as registry, contextlib.closing(sqlite3.connect(path_of(registry))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert not change(registry)
        assert registry.commits == 0
        writer.rollback()


def test_what_changes_something_waits_for_the_other_writer(state: Path) -> None:
    with opened(state) as registry:
        running(registry)
        writer = sqlite3.connect(path_of(registry), check_same_thread=False)
        writer.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.5, writer.close)
        release.start()
        assert [run.state for run in registry.kill("r", "killed")] == ["killed"]
        release.join()


def test_a_writer_that_never_ends_is_an_error(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.subagents.registry.sqlite_store.BUSY_TIMEOUT_S", 0.3)
    with opened(state) as registry, contextlib.closing(sqlite3.connect(path_of(registry))) as writer:
        running(registry)
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
        running(registry)
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


def test_a_registry_without_a_version_is_migrated(state: Path) -> None:
    with opened(state) as registry:
        before = running(registry)
        execute(registry, "ALTER TABLE runs DROP COLUMN rapid")
    user_version(state / "registry.db", 0)
    with opened(state) as registry:
        assert (registry.store.notice, registry.read("all")) == (None, [before])
    assert user_version(state / "registry.db") == SCHEMA_VERSION


def test_a_state_that_no_version_writes_is_reported_as_damage(state: Path) -> None:
    with opened(state) as registry:
        running(registry)
        execute(registry, "UPDATE runs SET state = 'dancing'")
        with pytest.raises(
            RegistryError, match=f"^the registry {path_of(registry)} is damaged: state is 'dancing'$"
        ):
            registry.find("run", "r")


# Content


@pytest.mark.req("X-24")
def test_all_files_are_private(state: Path, registry: Registry) -> None:
    owner = registry.join()
    registered(registry)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (state, *state.rglob("*"))}
    assert modes == {
        state.name: 0o700,
        "registry.db": 0o600,
        "registry.db-wal": 0o600,
        "registry.db-shm": 0o600,
        "registry.db.lock": 0o600,
        "owners": 0o700,
        owner: 0o600,
    }


@pytest.mark.req("X-24", "S4-23")
def test_a_file_of_an_older_version_loads_with_defaults(state: Path) -> None:
    state.mkdir()
    with contextlib.closing(sqlite3.connect(state / "registry.db")) as old:
        old.execute("CREATE TABLE runs (id TEXT PRIMARY KEY, agent_id, state, owner, task) WITHOUT ROWID")
        old.execute("INSERT INTO runs VALUES ('r', 'a', 'ended', 'me', 'the task')")
        old.commit()
    with opened(state) as registry:
        assert (registry.store.notice, kept(registry)) == (
            None,
            SubagentRun(id="r", chain="r", agent_id="a", state="ended", owner="me", task="the task"),
        )
        marked = registry.transition("redirect", "r", "me", **REDIRECT)
        assert marked is not None
        assert marked.steer_count == 1
        assert registry.replace(marked) is not None


@pytest.mark.req("X-24")
def test_a_file_of_a_newer_version_loads_and_keeps_what_we_do_not_know(state: Path) -> None:
    with opened(state) as registry:
        before = brought(registry, "running")
        execute(registry, "ALTER TABLE runs ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'")
        execute(registry, "UPDATE runs SET mood = 'good'")
    with opened(state) as registry:
        assert kept(registry) == before
        change(registry, "end")
        registered(registry, "another")
        moods = execute(registry, "SELECT id, mood FROM runs ORDER BY id")
        assert moods == [("another", "calm"), ("r", "good")]


@pytest.mark.req("X-24")
@pytest.mark.parametrize(
    "damage", ["usage = '[1]'", "tools = 'not JSON'", "spent = '5'"], ids=["type", "syntax", "number"]
)
def test_a_row_that_no_version_writes_is_reported_as_damage(registry: Registry, damage: str) -> None:
    registered(registry)
    registry.store.execute(f"UPDATE runs SET {damage} RETURNING id", {})
    with pytest.raises(RegistryError, match=f"^the registry {path_of(registry)} is damaged: "):
        registry.find("run", "r")


@pytest.mark.req("X-24")
def test_a_count_that_a_newer_version_added_to_the_usage_is_ignored(registry: Registry) -> None:
    registered(registry)
    registry.store.execute(
        """UPDATE runs SET usage = '{"input_tokens": 7, "thoughts": 5}' RETURNING id""", {}
    )
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
        assert registry.store.notice is not None
        assert registry.store.notice.startswith(f"the registry {path} was damaged (")
        assert registry.store.notice.endswith(f"); it was set aside as {aside}")
        registered(registry, "new")
        assert [run.id for run in registry.read("all")] == ["new"]
    with opened(state) as again:
        assert (again.store.notice, [run.id for run in again.read("all")]) == (None, ["new"])


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
        assert (registry.store.notice, registry.read("all")) == (None, [])


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
        registry.store.execute("PRAGMA wal_checkpoint(TRUNCATE)", {})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        try:
            await supervisor.spawn(**order)
        except TurngateError as error:
            said.append(type(error).__name__)
        await asyncio.sleep(0.3)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        known = len(registry.read("all"))
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


# Owners


OWNER = """
import sys, time
from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.registry import Registry
registry = Registry(sys.argv[1])
owner = registry.join()
registry.register(SubagentRun(id="r", chain="r", agent_id="a", owner=owner), may_run=True, max_running=9)
print(owner, flush=True)
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
        kept = registry.take_over("me", None)
        assert registry.transition("start", "none", "me", depth=1, max_running=0) is None
        state_of_run = registry.read("all")[0].state
        process.kill()
        process.wait()
        [adopted] = registry.take_over("me", None)
    assert (kept, state_of_run, adopted.owner, adopted.recoveries) == ([], "running", "me", 1)


def test_what_an_owner_leaves_in_order_is_adopted_while_its_process_lives_on(state: Path) -> None:
    with opened(state) as registry:
        owner = registry.join()
        running(registry, owner=owner)
        assert registry.leave(owner) == 1
        assert registry.transition("start", "none", "me", depth=1, max_running=0) is None
        assert registry.read("all")[0].state == "waiting"
        [adopted] = registry.take_over("me", None)
        assert (adopted.owner, adopted.recoveries, registry.leave("nothing")) == ("me", 0, 0)
        assert list((state / "owners").iterdir()) == []
