"""The registry on PostgreSQL: its roles, leases, connections that are lost, its schema, and its command."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import turngate
from tests.support.registry import (
    WAYS,
    a_run,
    brought,
    change,
    execute,
    for_workers,
    kept,
    opened,
    registered,
)
from tests.support.servers.postgres import PASSWORD, REGISTRY, PostgresServer, find_postgres, postgres_server
from tests.support.sessions import is_running
from tests.support.subagents import Parent, bash, parent, task
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.subagent_run import RunState, SubagentRun
from turngate.errors import RegistryError, UsageError
from turngate.subagents.registry import Registry
from turngate.subagents.registry.statements import REPLACE
from turngate.subagents.registry.store import LEASE_S
from turngate.subagents.registry.table import SCHEMA_VERSION, to_column
from turngate.subagents.stored_transcript import StoredTranscript

LAPSE = f"UPDATE turngate.owners SET seen = seen - make_interval(secs => {LEASE_S})"


@pytest.fixture
def server(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    monkeypatch.setenv("TURNGATE_REGISTRY", postgres.url())
    return postgres


def as_login(server: PostgresServer, login: str) -> Registry:
    return Registry("", setting=server.url(login))


@pytest.fixture
def alice(postgres: PostgresServer) -> Iterator[Registry]:
    registry = as_login(postgres, "alice")
    yield registry
    registry.close()


@pytest.fixture
def bob(postgres: PostgresServer) -> Iterator[Registry]:
    registry = as_login(postgres, "bob")
    yield registry
    registry.close()


@pytest.fixture
def worker(postgres: PostgresServer) -> Iterator[Registry]:
    registry = as_login(postgres, "worker")
    yield registry
    registry.close()


# Roles


@pytest.mark.req("X-31")
def test_a_session_neither_reads_nor_changes_what_another_login_has_started(
    alice: Registry, bob: Registry
) -> None:
    announced = brought(alice, "announced")
    running = brought(alice, "running", "s")
    assert (alice.inbox("s"), bob.inbox("s"), bob.read("all")) == ([announced], [], [])
    assert bob.steer(running, "do what I say") is None
    assert (bob.kill("s", "mine"), bob.kill(("s", ""), "mine"), bob.mark_delivered("r")) == ([], [], None)
    assert (bob.transition("done", "r", "me"), bob.take_over("bob", None)) == (None, [])
    bob.discard_results("s")
    assert (bob.delete_finished(-1.0), alice.read("all")) == (
        0,
        sorted([announced, running], key=lambda r: r.id),
    )


def test_a_session_cannot_claim_not_even_what_it_has_started(alice: Registry) -> None:
    for_workers(alice, "r")
    before = alice.read("all")
    with pytest.raises(RegistryError, match="row-level security"):
        alice.join(slots=1)
    owner = alice.join()
    refused = "only a login with the role turngate_worker may claim a run"
    with pytest.raises(RegistryError, match=refused):
        alice.claim(owner, [], max_running=9)
    with pytest.raises(RegistryError, match=refused):
        execute(alice, f"UPDATE $runs SET owner = '{owner}' RETURNING id")
    with pytest.raises(RegistryError, match=refused):
        for_workers(alice, "another", owner=owner)
    with pytest.raises(RegistryError, match="permission denied"):
        execute(alice, "UPDATE $runs SET launch = NULL RETURNING id")
    assert alice.read("all") == before


def test_a_worker_starts_no_subagent_and_sees_only_what_is_for_workers(
    alice: Registry, worker: Registry
) -> None:
    here = registered(alice, "here")
    for_workers(alice, "there")
    owner = worker.join(slots=1)
    with pytest.raises(RegistryError, match="row-level security"):
        registered(worker, "mine")
    with pytest.raises(RegistryError, match="row-level security"):
        for_workers(worker, "mine")
    with pytest.raises(RegistryError, match="there is no run that this one may replace"):
        for_workers(worker, "mine", replaces="there")
    assert [run.id for run in worker.read("all")] == ["there"]
    assert worker.kill("here", "mine") == []
    with pytest.raises(RegistryError, match="permission denied"):
        execute(worker, "UPDATE $runs SET prompt = 'do what I say' RETURNING id")
    claimed = worker.claim(owner, [], max_running=1)
    assert (claimed and claimed.id, worker.claim(owner, [], max_running=9)) == ("there", None)
    assert kept(alice, "here") == here


def test_a_worker_takes_a_run_to_its_end_and_the_session_of_its_login_gets_the_result(
    alice: Registry, bob: Registry, worker: Registry
) -> None:
    for_workers(alice, "r")
    owner = worker.join(slots=1)
    assert worker.claim(owner, [], max_running=1) is not None
    for name in ("end", "redirect", "replace"):
        assert change(worker, name, "r", owner), name
    last = alice.find("last", "r")
    assert last is not None
    for name in ("end", "finish", "announce", "done"):
        assert change(worker, name, last.id, owner), name
    assert ([run.id for run in alice.inbox("s")], bob.inbox("s")) == ([last.id], [])
    assert alice.living([owner]) == {owner: f"process {os.getpid()} on {os.uname().nodename}"}


def test_a_transcript_is_written_by_the_worker_that_owns_the_subagent_and_read_by_its_session(
    alice: Registry, bob: Registry, worker: Registry, tmp_path: Path
) -> None:
    for_workers(alice, "r")
    file, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    stored, heir = StoredTranscript(worker, str(file)), StoredTranscript(worker, str(other))
    run = worker.claim(worker.join(slots=1), [], max_running=1)
    assert run is not None
    file.write_text("{1}\n")
    assert stored.transition("usage", "r", run.owner)
    assert stored.transition("usage", "r", run.owner)  # there is nothing more
    file.write_text("{1}\n{2}\n")
    assert stored.transition("usage", "r", "another") is None  # it has lost the subagent meanwhile
    heir.fetch(run, exact=False)
    other.write_text("{1}\n{late}\n")
    heir.fetch(run, exact=False)
    assert other.read_text() == "{1}\n{late}\n"
    heir.fetch(run, exact=True)
    assert (other.read_text(), other.stat().st_mode & 0o777) == ("{1}\n", 0o600)
    other.write_text("{1}\n{3}\n")
    ended = {"outcome": "ok", "reason": "complete", "result": "r"}
    assert heir.transition("end", "r", run.owner, **ended)
    assert heir.transition("end", "r", run.owner, **ended) is None
    assert (alice.read_transcript("r"), bob.read_transcript("r")) == ("{1}\n{3}\n", "")
    with pytest.raises(RegistryError, match="permission denied"):
        execute(alice, "INSERT INTO turngate.transcripts VALUES ('r', 99, 'what I say') RETURNING chain")
    for name in ("finish", "announce", "done"):
        assert change(worker, name, "r", run.owner), name
    alice.mark_delivered("r")
    assert (alice.delete_finished(-1.0), worker.read_transcript("r")) == (1, "")


def test_a_session_with_runs_of_its_own_reads_no_transcript_of_others(
    alice: Registry, bob: Registry, worker: Registry
) -> None:
    for_workers(alice, "r")
    registered(bob, "own")
    run = worker.claim(worker.join(slots=1), [], max_running=1)
    assert run is not None
    assert worker.transition("usage", "r", run.owner, start=0, part="secret")
    transcripts = "SELECT part FROM turngate.transcripts"
    assert [execute(each, transcripts) for each in (alice, bob)] == [[("secret",)], []]


CHANGES = [
    "owner = '{owner}'",
    "state = 'final', result = 'forged', announcement = 'forged'",
    "state = 'waiting', owner = ''",
    "taken = 1",
    "state = 'killed'",
    "next_prompt = 'do what I say', state = 'steering'",
]


@pytest.mark.parametrize("now", ["running", "announced", "done"])
def test_a_worker_cannot_change_what_another_one_has_or_what_is_finished(
    postgres: PostgresServer, alice: Registry, worker: Registry, now: RunState
) -> None:
    with postgres.connect(REGISTRY) as db:
        db.execute("DROP ROLE IF EXISTS another; CREATE ROLE another LOGIN IN ROLE turngate_worker")
    for_workers(alice, "r")
    owner = worker.join(slots=1)
    claimed = worker.claim(owner, [], max_running=1)
    assert claimed is not None
    for name in WAYS[now][1:]:
        assert change(worker, name, "r", owner)
    before = alice.read("all")
    with contextlib.closing(as_login(postgres, "another")) as other:
        mine = other.join(slots=1)
        for each in CHANGES:
            changed = f"UPDATE $runs SET {each.format(owner=mine)} RETURNING id"
            assert execute(other, changed) == []
        assert other.transition("usage", "r", owner, start=0, part="forged") is None
        with pytest.raises(RegistryError, match="row-level security"):
            execute(other, "INSERT INTO turngate.transcripts VALUES ('r', 0, 'forged') RETURNING chain")
        assert (alice.read("all"), other.read_transcript("r")) == (before, "")


def test_a_worker_gives_a_run_to_no_other_worker_and_keeps_no_lease_for_ever(
    alice: Registry, worker: Registry
) -> None:
    for_workers(alice, "r")
    owner = worker.join(slots=1)
    for other in ("another", alice.join()):
        with pytest.raises(RegistryError, match="row-level security"):
            execute(worker, f"UPDATE $runs SET owner = '{other}' RETURNING id")
    with pytest.raises(RegistryError, match="row-level security"):
        execute(worker, f"UPDATE turngate.owners SET seen = 'infinity' WHERE id = '{owner}' RETURNING id")


def test_what_a_worker_puts_into_the_place_of_a_run_is_the_same_subagent_with_its_next_prompt(
    alice: Registry, worker: Registry
) -> None:
    for_workers(alice, "r", "p", task="the task", prompt="the task", label="mine")
    owner = worker.join(slots=1, labels=["p"])
    assert worker.claim(owner, ["p"], max_running=1) is not None
    for name in ("end", "redirect"):
        assert change(worker, name, "r", owner)
    before = kept(alice)
    forged = a_run(
        "x", owner=owner, replaces="r", state="running", task="evil", prompt="evil", parent="another"
    )
    columns = {name: to_column(value) for name, value in vars(forged).items()}
    worker.store.execute(REPLACE, columns)
    [run] = [each for each in alice.read("all") if each.replaces]
    expected = {"id": before.next_id, "chain": "r", "prompt": "more", "by_hook": True, "task": "the task"}
    expected |= {"parent": "s", "agent_id": "a-r", "label": "mine", "launch": before.launch}
    assert {name: getattr(run, name) for name in expected} == expected


def test_a_login_without_a_role_is_told_what_to_do(postgres: PostgresServer) -> None:
    with postgres.connect(REGISTRY) as db:
        db.execute("DROP ROLE IF EXISTS mallory; CREATE ROLE mallory LOGIN")
    with pytest.raises(RegistryError) as raised:
        as_login(postgres, "mallory")
    assert str(raised.value) == (
        f"the registry postgresql://mallory@{postgres.folder}/registry has no schema that this login may use: "
        "`turngate registry init` creates it and its roles, with the URL of the owner of the database"
    )


# Leases


def test_a_lease_that_has_lapsed_stays_so_and_its_runs_are_taken_over(server: PostgresServer) -> None:
    with opened(Path()) as registry, opened(Path()) as other:
        owner, heir = registry.join(), other.join()
        brought(registry, "running", owner=owner)
        assert (registry.beat(owner), other.take_over(heir, None)) == (True, [])
        with server.connect(REGISTRY) as db:
            db.execute(f"{LAPSE} WHERE id = %s", (owner,))
        assert ([*other.living([owner, heir])], registry.beat(owner)) == ([heir], False)
        [adopted] = other.take_over(heir, None)
        assert (adopted.owner, adopted.recoveries, adopted.rapid) == (heir, 1, 1)
        assert change(registry, "end", owner=owner) is None
        assert change(registry, "end", owner=heir)


def test_a_session_whose_lease_has_lapsed_cancels_its_work_and_starts_again(
    server: PostgresServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.subagents.supervisor.BEAT_S", 0.1)
    start = bash("echo $$ >> pids; exec sleep 3600")
    scene = parent(
        project, start, "counted", main=[task(run_in_background=True), "waiting", "home"], allow=["Bash"]
    )

    async def lapse(scene: Parent) -> None:
        while not (project / "pids").exists():
            await asyncio.sleep(0.01)
        await asyncio.to_thread(lapse_all)
        await scene.until("done")

    def lapse_all() -> None:
        with server.connect(REGISTRY) as db:
            db.execute(LAPSE)

    result = scene.during(lapse)
    [pid] = (project / "pids").read_text().split()
    assert (result.result, is_running(pid)) == ("home", False)
    assert scene.notices == [
        "the registry was not reached in time; subagents are cancelled until it is",
        "continuing 1 subagent of a process that died: general-purpose",
    ]
    [run] = {run.id: run for name, run in scene.steps if name == "done"}.values()
    assert (run.result, run.recoveries) == ("counted", 1)


STOPPED = """
import sys
from tests.support.registry import a_run
from turngate.subagents.registry import Registry
registry = Registry("")
owner = registry.join()
registry.register(a_run(owner=owner), may_run=True, max_running=9)
print(owner, flush=True)
sys.stdin.readline()
late = registry.transition("end", "r", owner, outcome="ok", reason="complete", result="late")
print(registry.beat(owner), late, flush=True)
"""


def test_a_process_that_was_stopped_longer_than_its_lease_writes_nothing_more(server: PostgresServer) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process, opened(Path()) as registry:
        assert process.stdout is not None
        owner = process.stdout.readline().strip()
        process.send_signal(signal.SIGSTOP)
        adopted = list[SubagentRun]()
        end = time.monotonic() + LEASE_S + HANG_TIMEOUT_S
        while not adopted:
            assert time.monotonic() < end
            adopted = registry.take_over("heir", None)
            time.sleep(0.1)
        process.send_signal(signal.SIGCONT)
        assert process.communicate("\n")[0] == "False None\n"
        assert ([run.owner for run in registry.read("all")], owner != "heir") == (["heir"], True)


def test_a_folder_is_the_project_of_its_own_machine_and_a_location_over_ssh_of_all(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(Path()) as registry, opened(Path()) as other:
        owner = registry.join()
        for name, project in (("folder", "/app"), ("there", "ssh://build/app")):
            registered(registry, name, owner=owner, launch={"project": project})
        registry.leave(owner)
        monkeypatch.setattr("socket.gethostname", lambda: "another-machine")
        heir = other.join()
        taken = [[run.id for run in other.take_over(heir, each)] for each in ("/app", "ssh://build/app")]
        monkeypatch.undo()
        assert (taken, [run.id for run in registry.take_over("me", "/app")]) == ([[], ["there"]], ["folder"])


# Connections


def test_a_connection_that_is_cut_is_opened_again(server: PostgresServer) -> None:
    with opened(Path()) as registry:
        brought(registry, "running")
        registry.wait_for_change(registry.wait_for_change(-1, 0), 0.1)
        with server.connect("postgres") as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'carol'")
        assert change(registry, "end")
        registry.wait_for_change(registry.wait_for_change(-1, 0), 0.1)
        with opened(Path()) as other:
            seen = registry.wait_for_change(registry.wait_for_change(-1, 0), 0.5)
            change(other, "kill")
            assert registry.wait_for_change(seen, HANG_TIMEOUT_S) != seen


def test_a_column_that_is_added_does_not_stop_what_a_process_has_prepared(server: PostgresServer) -> None:
    with server.connect(REGISTRY) as db, opened(Path()) as registry:
        run = registered(registry)
        for _ in range(20):  # after some, psycopg prepares the statement
            assert registry.find("run", run.id) == run
        db.execute("ALTER TABLE turngate.runs ADD COLUMN later text")
        try:
            assert registry.find("run", run.id) == run
        finally:
            db.execute("ALTER TABLE turngate.runs DROP COLUMN later")
        assert registry.find("run", run.id) == run


def test_a_waiting_run_wakes_workers_and_an_announced_one_the_sessions_of_its_login(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.subagents.registry.postgres_store.POLL_S", 10**6)
    with contextlib.ExitStack() as stack:
        logins = ("alice", "bob", "worker")
        alice, bob, worker = (
            stack.enter_context(contextlib.closing(as_login(postgres, each))) for each in logins
        )
        acting = stack.enter_context(contextlib.closing(as_login(postgres, "alice")))
        running = stack.enter_context(contextlib.closing(as_login(postgres, "worker")))
        processes = {"alice": (alice, alice.join()), "bob": (bob, bob.join())}
        processes["worker"] = worker, worker.join(slots=1)
        seen = {name: each.wait_for_change(-1, 0.5) for name, (each, _) in processes.items()}
        seen = {name: each.wait_for_change(seen[name], 0.5) for name, (each, _) in processes.items()}

        def woken() -> list[str]:
            before = dict(seen)
            for name, (each, _) in processes.items():
                seen[name] = each.wait_for_change(seen[name], 1)
            return [name for name in seen if seen[name] != before[name]]

        for_workers(acting, "r", "gpu")
        assert woken() == ["worker"]
        owner = running.join(slots=1)
        assert running.claim(owner, ["gpu"], max_running=1)
        for name in ("end", "finish"):
            assert change(running, name, owner=owner)
        assert woken() == []
        assert change(running, "announce", owner=owner)
        assert woken() == ["alice"]


def test_without_notifications_as_behind_a_pool_a_change_is_noticed_by_polling(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.subagents.registry.postgres_store.POLL_S", 0.3)
    with server.connect(REGISTRY) as db, opened(Path()) as registry, opened(Path()) as other:
        db.execute("ALTER TABLE turngate.runs DISABLE TRIGGER notify_change")
        try:
            seen = registry.wait_for_change(-1, 0)
            registered(other)
            assert registry.wait_for_change(seen, HANG_TIMEOUT_S) != seen
        finally:
            db.execute("ALTER TABLE turngate.runs ENABLE TRIGGER notify_change")


def test_a_pool_that_refuses_to_listen_leaves_polling(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "turngate.subagents.registry.postgres_schema.CHANGES", '"a channel", or a syntax error'
    )
    monkeypatch.setattr("turngate.subagents.registry.postgres_store.POLL_S", 0.3)
    with opened(Path()) as registry:
        seen = registry.wait_for_change(-1, 0)
        assert registry.wait_for_change(seen, HANG_TIMEOUT_S) != seen


def test_a_subagent_that_is_registered_by_a_try_whose_answer_was_lost_is_registered_once(
    server: PostgresServer,
) -> None:
    with opened(Path()) as registry:
        first = registered(registry)
        assert (registered(registry), registry.read("all")) == (first, [first])
        with pytest.raises(UsageError, match="still running"):
            registered(registry, owner="another")


def test_a_session_waits_for_a_server_that_was_killed_and_starts_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = find_postgres()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: `apt-get install postgresql`")
    with postgres_server(programs) as own:
        monkeypatch.setenv("TURNGATE_REGISTRY", own.url())

        def restart() -> None:
            own.stop(kill=True)
            own.start()

        def at_step(name: str, _: object) -> None:
            if name == "worked" and not restarts:
                restarts.append(threading.Thread(target=restart))
                restarts[0].start()

        restarts: list[threading.Thread] = []
        scene = parent(project, "counted", main=[task(), "home"], on_step=at_step)
        result = scene.play()
        restarts[0].join()
        with opened(Path()) as registry:
            [run] = registry.read("all")
    assert (result.result, scene.heard("main")[-1], run.state, run.recoveries) == (
        "home",
        "tool: counted",
        "done",
        0,
    )


def test_a_server_that_is_not_there_ends_in_a_sentence_without_the_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TURNGATE_REGISTRY", f"postgresql://me:hush@/runs?host={tmp_path}")
    code, out, err = turngate("runs")
    assert (code, out, "hush" in err) == (64, "", False)
    assert err.startswith(f"turngate: the registry postgresql://me@{tmp_path}/runs cannot be used: ")


@pytest.mark.parametrize("url", ["mysql://db", "db", "postgresql://[", "postgresql://me:hush@db?port=x"])
def test_what_is_no_url_of_a_registry_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("TURNGATE_REGISTRY", url)
    code, out, err = turngate("runs")
    assert (code, out, err.startswith("turngate: "), err.count("\n"), "hush" in err) == (
        64,
        "",
        True,
        1,
        False,
    )


def test_the_server_is_checked_by_its_certificate(postgres: PostgresServer, tmp_path: Path) -> None:
    there = f"postgresql://alice:{PASSWORD}@127.0.0.1:{postgres.port}/registry"
    trusted = tmp_path / "root.crt"
    trusted.write_bytes(postgres.certificate.read_bytes())
    Registry("", setting=f"{there}?sslmode=verify-full&sslrootcert={trusted}").close()
    for wrong in (
        f"{there}?sslmode=verify-full&sslrootcert={tmp_path}/none.crt",
        f"{there}?sslmode=disable",
        f"{there.replace('127.0.0.1', 'localhost')}?sslmode=verify-full&sslrootcert={trusted}",
        f"{there.replace(PASSWORD, 'wrong')}?sslmode=verify-full&sslrootcert={trusted}",
    ):
        with pytest.raises(RegistryError, match="cannot be used: connection failed"):
            Registry("", setting=wrong)


# Content


def test_a_row_that_would_break_the_queries_of_others_is_refused_when_it_is_written(alice: Registry) -> None:
    with pytest.raises(RegistryError, match="Unicode"):
        registered(alice, launch={"project": "\0"})
    with pytest.raises(RegistryError, match="integer"):
        registered(alice, launch={"workers": {"labels": [], "at_once": "many"}})
    assert alice.read("all") == []


# The schema


def test_a_schema_of_a_later_version_is_refused(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = SCHEMA_VERSION + 1
    why = (
        f"the registry postgresql://{{}}@{postgres.folder}/registry has schema version {later}, and this version of "
        f"Turngate knows {SCHEMA_VERSION}: a later version wrote it; update Turngate"
    )
    with postgres.connect(REGISTRY) as db:
        db.execute(f"UPDATE turngate.schema_version SET version = {later}")
        try:
            with pytest.raises(RegistryError) as raised:
                as_login(postgres, "alice")
            assert str(raised.value) == why.format("alice")
            monkeypatch.setenv("TURNGATE_REGISTRY", postgres.url("owner"))
            assert turngate("registry", "init") == (64, "", f"turngate: {why.format('owner')}\n")
        finally:
            db.execute(f"UPDATE turngate.schema_version SET version = {SCHEMA_VERSION}")


def test_the_command_creates_a_schema_and_roles_and_says_so_and_may_run_again(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.connect("postgres") as db:
        db.execute("DROP DATABASE IF EXISTS fresh")
        db.execute("CREATE DATABASE fresh")
        db.execute("ALTER DATABASE fresh SET synchronous_commit = off")
    monkeypatch.setenv("TURNGATE_REGISTRY", server.url("owner", "fresh"))
    session = "it starts, steers and kills subagents, runs them, and reads those that its login has started"
    worker = "it claims and runs the subagents that are for workers, of all logins, and starts none"
    next_step = (
        "next: CREATE ROLE … LOGIN IN ROLE turngate_session, for each user; turngate_worker, for each worker"
    )
    warning = "! synchronous_commit is off: after a crash, announced results can be lost or announced again; set it to on"
    for _ in range(2):
        code, out, err = turngate("registry", "init")
        assert (code, out.splitlines(), err) == (
            0,
            [
                f"role turngate_session exists: {session}",
                f"role turngate_worker exists: {worker}",
                f"schema turngate, version {SCHEMA_VERSION}: created or updated",
                warning,
                next_step,
            ],
            "",
        )
    monkeypatch.setenv("TURNGATE_REGISTRY", server.url("alice", "fresh"))
    assert turngate("runs") == (0, "there are no subagents; a session starts one with the Task tool\n", "")
    code, out, err = turngate("registry", "init")
    assert (code, out, "permission denied" in err or "must be owner" in err) == (64, "", True)


def test_the_command_needs_the_url_of_a_database() -> None:
    assert turngate("registry", "init") == (
        64,
        "",
        "turngate: `turngate registry init` needs a registry on PostgreSQL; set TURNGATE_REGISTRY to postgresql://USER@HOST/NAME\n",
    )


# Settings


def test_the_registry_comes_from_user_settings_and_from_no_project(
    postgres: PostgresServer, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    registry = as_login(postgres, "alice")
    registered(registry)
    registry.close()
    text = f'{{"turngate": {{"registry": "{postgres.url("alice")}"}}}}'
    (project / ".turngate").mkdir()
    (project / ".turngate" / "settings.json").write_text(text)
    assert turngate("runs")[1].startswith("there are no subagents")
    code, out, _ = turngate("check", "--project", str(project))
    assert (code, "turngate.registry: has no effect in a project" in out) == (1, True)
    (home / ".turngate").mkdir()
    (home / ".turngate" / "settings.json").write_text(text)
    assert "left by a process that died" in turngate("runs")[1]


def test_without_a_url_psycopg_is_not_loaded() -> None:
    look = "import sys, turngate.agent.session, turngate.cli.commands.runs; print('psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
