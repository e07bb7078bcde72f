"""`StopGates` in five Python frameworks: one suite for all, offline, with each framework's own model for tests.

Where a case does not exist in a framework, the test is skipped with the reason. `make frameworks` runs the suite with the
lowest and the newest version of each, and writes the table of docs/reference/frameworks-results.md.
"""

import asyncio
import importlib
import importlib.util
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.support.frameworks import OUTPUT_TOKENS, QUESTION, Say, Script
from tests.support.paths import ROOT
from turngate import UsageError

FRAMEWORKS = {  # its driver, and a package that it needs
    "pydantic_ai": ["pydantic_ai"],
    "langchain": ["langchain", "deepagents"],
    "openai_agents": ["agents"],
    "strands": ["strands"],
    "claude_agent_sdk": ["claude_agent_sdk"],
}
HOW = "run `make test-all`, which installs it, or `make frameworks`"
HEADING = "[Stop hook requested continuation]\n"
REASON = "create the file done"
# Libraries that warn about themselves.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Any:
    for package in FRAMEWORKS[request.param]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: {HOW}")
    return importlib.import_module(f"tests.support.frameworks.{request.param}")


@pytest.fixture(autouse=True)
def _default_event_loop() -> Iterator[None]:
    """Close the event loop of the main thread, which frameworks leave open after a call without `async`."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)


def need(framework: Any, case: str) -> None:
    if case in framework.ABSENT:
        pytest.skip(f"does not exist: {framework.ABSENT[case]}")


def shell(script: str) -> dict[str, Any]:
    return {"type": "command", "command": script}


def blocks_until(file: Path) -> dict[str, Any]:
    return shell(f"test -e {file} || {{ echo {REASON} >&2; exit 2; }}")


NO = shell("echo no >&2; exit 2")


def configure(project: Path, *hooks: dict[str, Any], event: str = "Stop", **values: Any) -> None:
    (project / ".turngate").mkdir(exist_ok=True)
    settings = {"hooks": {event: [{"hooks": [*hooks]}]}, "turngate": values}
    (project / ".turngate" / "settings.json").write_text(json.dumps(settings))


def gates_of(framework: Any, project: Path, **options: Any) -> tuple[Any, list[str]]:
    """Return the gates, and what they have told the user."""
    told: list[str] = []
    return framework.StopGates(str(project), on_notice=told.append, **options), told


def reasons(script: Script) -> list[str]:
    """Return what the agent was asked after the user's question, without the heading, which Claude Code writes itself."""
    headings = (HEADING, "Stop hook feedback:\n")
    texts = script.asked[1:]
    assert all(text.startswith(headings) for text in texts)
    return [text.partition("\n")[2] for text in texts]


def at_limit(told: list[str]) -> list[str]:
    """Return what the user is told at the limit, without the hooks and the session."""
    return [re.sub(r"(?s) \(the limit\).*|(?<=gates accept) .*", "", text) for text in told]


def test_a_block_sends_the_agent_back_once(framework: Any, project: Path) -> None:
    done = project / "done"
    configure(project, blocks_until(done))
    gates, told = gates_of(framework, project)
    script = Script("done 1", Say("done 2", touch=done))
    ran = asyncio.run(framework.run(gates, script))
    assert (ran.answer, reasons(script), told) == ("done 2", [REASON], [])


@pytest.mark.parametrize("limit", [0, 2])
def test_at_the_limit_the_agent_may_stop_and_the_user_is_told(
    framework: Any, project: Path, limit: int
) -> None:
    configure(project, shell("echo $TURNGATE_STOP_HOOK_COUNT >> counts; echo no >&2; exit 2"))
    gates, told = gates_of(framework, project, limit=limit)
    script = Script("done")
    ran = asyncio.run(framework.run(gates, script))
    counts = [int(line) for line in (project / "counts").read_text().split()]
    assert (ran.answer, reasons(script), counts) == ("done", ["no"] * limit, [*range(limit + 1)])
    assert at_limit(told) == [
        f"Turn ended after {limit} continuations",
        "the last reason: no",
        "to accept it: turngate gates accept",
    ]


def test_a_gate_that_passes_at_the_limit_has_held(framework: Any, project: Path) -> None:
    done = project / "done"
    configure(project, blocks_until(done), limit=1)
    gates, told = gates_of(framework, project)
    ran = asyncio.run(framework.run(gates, Script("done 1", Say("done 2", touch=done))))
    assert (ran.answer, told) == ("done 2", [])


def test_a_hook_that_halts_ends_the_run(framework: Any, project: Path) -> None:
    halt = shell("""echo '{"continue": false, "stopReason": "enough"}'""")
    configure(project, halt, blocks_until(project / "done"))
    gates, told = gates_of(framework, project)
    script = Script("done")
    ran = asyncio.run(framework.run(gates, script))
    assert (ran.answer, script.asked, told) == ("done", [QUESTION], ["halted by a hook: enough"])


def test_a_hook_that_cannot_run_is_not_enforced_and_the_user_is_told(framework: Any, project: Path) -> None:
    configure(project, shell("no-such-program-of-this-test"))
    gates, told = gates_of(framework, project)
    script = Script("done")
    ran = asyncio.run(framework.run(gates, script))
    assert (ran.answer, script.asked, len(told)) == ("done", [QUESTION], 1)
    assert "NOT enforced" in told[0]


def test_a_hook_without_approval_is_not_enforced_and_the_user_is_told(
    framework: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    configure(project, blocks_until(project / "done"))
    gates, told = gates_of(framework, project)
    ran = asyncio.run(framework.run(gates, Script("done")))
    assert (ran.answer, len(told)) == ("done", 1)
    assert "turngate hooks" in told[0]


def test_a_judge_that_fails_is_not_an_answer_that_fails(framework: Any, project: Path) -> None:
    configure(project, {"type": "prompt", "prompt": "Done? $ARGUMENTS", "model": "anthropic:none"})
    gates, told = gates_of(framework, project)
    script = Script("done")
    ran = asyncio.run(framework.run(gates, script))
    assert (ran.answer, script.asked, len(told)) == ("done", [QUESTION], 1)
    assert "NOT enforced" in told[0]


def test_a_subagent_has_gates_and_a_count_of_its_own(framework: Any, project: Path) -> None:
    configure(project, shell("echo $TURNGATE_EVENT >> events; echo no >&2; exit 2"), event="SubagentStop")
    gates, of_parent = gates_of(framework, project)
    child_gates, of_child = gates_of(framework, project, agent="helper", limit=1)
    script, child_script = Script(Say(tool="delegate"), "parent"), Script("child")
    if framework.__name__.endswith("claude_agent_sdk"):  # it asks one dictionary about all agents
        gates, of_parent = {}, ["no hook for Stop is configured"]
    ran = asyncio.run(framework.run_parent(gates, child_gates, script, child_script))
    assert (ran.answer, reasons(child_script), (project / "events").read_text()) == (
        "parent",
        ["no"],
        "SubagentStop\n" * 2,
    )
    assert [text.partition(" is configured")[0] for text in of_parent] == ["no hook for Stop"] or gates == {}
    assert at_limit(of_child)[:2] == ["Turn ended after 1 continuation", "the last reason: no"]


def test_after_a_handoff_the_last_agent_is_held(framework: Any, project: Path) -> None:
    if not hasattr(framework, "run_handoff"):
        pytest.skip("does not exist: in a run, no agent hands the conversation over to another one")
    done = project / "done"
    configure(project, blocks_until(done))
    gates, told = gates_of(framework, project)
    expert = Script("done 1", Say("done 2", touch=done))
    ran, last = asyncio.run(framework.run_handoff(gates, Script(Say(tool="transfer_to_expert")), expert))
    assert (ran.answer, last, reasons(expert), told) == ("done 2", "expert", [REASON], [])


def test_a_stream_goes_on_after_a_block_and_has_shown_the_rejected_answer(
    framework: Any, project: Path
) -> None:
    done = project / "done"
    configure(project, blocks_until(done))
    gates, told = gates_of(framework, project)
    ran = asyncio.run(framework.stream(gates, Script("rejected", Say("accepted", touch=done))))
    assert (ran.answer, ran.streamed, told) == ("accepted", "rejectedaccepted", [])


def test_a_stream_that_ignores_blocks_is_refused(framework: Any, project: Path) -> None:
    if not framework.__name__.endswith("pydantic_ai"):
        pytest.skip("does not exist: every way to run an agent obeys a block")
    configure(project, blocks_until(project / "done"))
    gates, _ = gates_of(framework, project)
    script = Script("done")

    async def run() -> None:
        async with framework._agent(gates, script).run_stream(QUESTION):
            pass

    with pytest.raises(framework.UserError, match="use `run_stream_events`, `iter` or `run`"):
        asyncio.run(run())
    assert script.asked == []


def test_a_call_without_a_stop_is_reported(framework: Any, project: Path) -> None:
    if not hasattr(framework, "run_without_stop"):
        pytest.skip("does not exist: every way to run an agent ends with a stop")
    configure(project, blocks_until(project / "done"))
    gates, told = gates_of(framework, project)
    asyncio.run(framework.run_without_stop(gates, Script("done")))
    assert told == ["the gates were NOT enforced: there was an error, or `structured_output` was called"]


def test_the_object_of_a_structured_answer_is_that_of_the_last_one(framework: Any, project: Path) -> None:
    need(framework, "structured")
    done = project / "done"
    configure(project, shell(f"cat > answer; test -e {done} || {{ echo no >&2; exit 2; }}"))
    gates, told = gates_of(framework, project)
    first, second = (Say(tool="Answer", arguments={"number": number}) for number in (1, 2))
    script = Script(first, Say(tool="Answer", arguments=second.arguments, touch=done))
    structured = asyncio.run(framework.run_structured(gates, script))
    assert (structured, len(script.asked), told) == ({"number": 2}, 2, [])


def test_without_async_it_is_the_same(framework: Any, project: Path) -> None:
    need(framework, "sync")
    done = project / "done"
    configure(project, blocks_until(done))
    gates, told = gates_of(framework, project)
    script = Script("done 1", Say("done 2", touch=done))
    ran = framework.run_sync(gates, script)
    assert (ran.answer, reasons(script), told) == ("done 2", [REASON], [])


def test_without_async_it_works_in_a_running_event_loop_too(framework: Any, project: Path) -> None:
    if not hasattr(framework, "run_in_loop"):
        pytest.skip("does not exist: the framework itself refuses it")
    done = project / "done"
    configure(project, blocks_until(done))
    gates, told = gates_of(framework, project)
    ran = asyncio.run(framework.run_in_loop(gates, Script("done 1", Say("done 2", touch=done))))
    assert (ran.answer, told) == ("done 2", [])


def test_a_cancelled_run_ends_the_gate_that_runs(framework: Any, project: Path) -> None:
    configure(project, shell("echo $$ > pid.new; mv pid.new pid; exec sleep 600"))
    gates, _ = gates_of(framework, project)
    file = project / "pid"

    async def cancel() -> bool:
        task = asyncio.create_task(framework.run(gates, Script("done")))
        while not file.exists() and not task.done():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    was_cancelled = asyncio.run(cancel())
    assert (was_cancelled, has_ended(int(file.read_text()))) == (True, True)


def test_a_cancelled_stream_ends_the_gate_that_runs(framework: Any, project: Path) -> None:
    if not hasattr(framework, "start_stream"):
        pytest.skip("does not exist: a stream is cancelled like a run")
    configure(project, shell("echo $$ > pid.new; mv pid.new pid; exec sleep 600"))
    gates, _ = gates_of(framework, project)
    file = project / "pid"

    async def cancel() -> None:
        stream, reading = framework.start_stream(gates, Script("done"))
        while not file.exists() and not reading.done():
            await asyncio.sleep(0.01)
        stream.cancel()
        await reading

    asyncio.run(cancel())
    assert has_ended(int(file.read_text()))


def test_an_interrupt_ends_the_gate_that_runs_without_async(framework: Any, project: Path) -> None:
    need(framework, "sync")
    need(framework, "interrupt")
    configure(project, {**shell("echo $$ > pid.new; mv pid.new pid; exec sleep 600"), "timeout": 600_000})
    file, driver = project / "pid", framework.__name__
    code = (
        f"from {driver} import StopGates, run_sync; from tests.support.frameworks import Script\n"
        f"run_sync(StopGates({str(project)!r}), Script('done'))"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE) as process:
        while not file.exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert (b"KeyboardInterrupt" in errors, has_ended(int(file.read_text()))) == (True, True)


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


def test_the_usage_is_that_of_all_continuations(framework: Any, project: Path) -> None:
    configure(project, NO)
    gates, _ = gates_of(framework, project, limit=2)
    ran = asyncio.run(framework.run(gates, Script("done")))
    assert ran.output_tokens == 3 * OUTPUT_TOKENS


def test_the_history_is_kept(framework: Any, project: Path) -> None:
    need(framework, "history")
    done = project / "done"
    configure(project, blocks_until(done))
    gates, _ = gates_of(framework, project)
    ran = asyncio.run(framework.run_twice(gates, Script("one", Say("two", touch=done), "three")))
    assert [*ran.texts] == [QUESTION, "one", HEADING + REASON, "two", "again", "three"]


def test_the_limit_of_the_framework_still_ends_the_run(framework: Any, project: Path) -> None:
    need(framework, "limit")
    configure(project, NO)
    gates, _ = gates_of(framework, project, limit=9)
    script = Script("done")
    error = framework.LIMIT_ERROR
    with pytest.raises(error) if error else nullcontext():  # or its result says so
        asyncio.run(framework.run(gates, script, requests=3))
    assert len(script.asked) == 3


@pytest.mark.parametrize("is_first", [True, False])
def test_another_check_beside_the_gates_is_asked_too(
    framework: Any, project: Path, *, is_first: bool
) -> None:
    need(framework, "beside")
    done = project / "done"
    configure(project, blocks_until(done))
    gates, told = gates_of(framework, project)
    script = Script("one", "two", Say("three", touch=done), "four")
    ran = asyncio.run(framework.run_beside(gates, script, is_first=is_first))
    asked = [what for text in script.asked for what in (REASON, "shorter") if what in text]
    assert (ran.answer in ("three", "four"), asked.count("shorter"), told) == (True, 1, [])
    assert REASON in asked


def test_two_runs_at_once_have_counts_of_their_own(framework: Any, project: Path) -> None:
    configure(project, shell("sleep 0.05; echo no >&2; exit 2"))
    gates, told = gates_of(framework, project, limit=2)
    scripts = [Script("a"), Script("b")]

    async def run() -> list[Any]:
        return await asyncio.gather(*(framework.run(gates, script) for script in scripts))

    answers = [ran.answer for ran in asyncio.run(run())]
    assert (answers, [len(script.asked) for script in scripts]) == (["a", "b"], [3, 3])
    assert sum("the limit" in text for text in told) == 2


def test_gates_read_the_conversation(framework: Any, project: Path) -> None:
    need(framework, "conversation")
    (project / "todo").touch()
    gate = {"type": "gate", "id": "todos", "gate": "todos"}
    configure(project, gate, shell('cp "$TURNGATE_TRANSCRIPT_PATH" transcript.jsonl'))
    gates, _ = gates_of(framework, project, limit=1)
    tasks = [{"content": "write the tests", "status": "pending"}]

    def todo_write(todos: list[dict[str, str]]) -> str:
        """Write the task list."""
        return "written"

    todo_write.__name__ = "todo_write"
    call = Say(tool="todo_write", arguments={"todos": tasks})
    script = Script(call, "done")
    ran = asyncio.run(framework.run(gates, script, tools=[todo_write]))
    records = [json.loads(line) for line in (project / "transcript.jsonl").read_text().splitlines()]
    kinds = [record["type"] for record in records]
    assert (ran.answer, len(script.asked), "write the tests" in script.asked[-1]) == ("done", 3, True)
    assert kinds == ["user", "tool_call", "assistant", "user", "assistant", "user", "assistant"]
    assert [record.get("isMeta", False) for record in records if record["type"] == "user"] == [
        False,
        False,
        True,
    ]
    assert not list(Path(os.environ["TURNGATE_STATE"]).rglob("run-*"))


def test_a_gate_that_the_agent_removes_holds(framework: Any, project: Path) -> None:
    done = project / "done"
    configure(project, blocks_until(done))
    gates, _ = gates_of(framework, project)
    script = Script(Say("done 1", remove=project / ".turngate" / "settings.json"), Say("done 2", touch=done))
    ran = asyncio.run(framework.run(gates, script))
    assert (ran.answer, len(script.asked)) == ("done 2", 2)
    done.unlink()
    later = Script("done 3", Say("done 4", touch=done))  # another run of the same gates
    assert (asyncio.run(framework.run(gates, later)).answer, len(later.asked)) == ("done 4", 2)


def test_a_state_folder_that_cannot_be_written_does_not_hold_the_agent_forever(
    framework: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "file").touch()
    monkeypatch.setenv("TURNGATE_STATE", str(project / "file"))
    configure(project, NO)
    gates, told = gates_of(framework, project)
    ran = asyncio.run(framework.run(gates, Script("done")))
    assert (ran.answer, bool(told)) == ("done", True)


def test_a_failure_of_turngate_is_reported_and_does_not_reach_the_program(
    framework: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(project, NO)
    gates, told = gates_of(framework, project)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("TURNGATE_STATE", "state")  # below a folder that the agent removes
    ran = asyncio.run(framework.run(gates, Script(Say("done", remove=gone))))
    assert (ran.answer, f"the gates of {project} were NOT enforced" in told[-1]) == ("done", True)


def test_a_project_without_hooks_is_reported_once(framework: Any, project: Path) -> None:
    gates, told = gates_of(framework, project)
    for _ in range(2):
        assert asyncio.run(framework.run(gates, Script("done"))).answer == "done"
    nothing = f"no hook for Stop is configured in {project}, so nothing is checked"
    assert told == [f"{nothing}; `turngate init` writes gates"]


def test_without_a_function_for_notices_they_are_logged(
    framework: Any, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure(project, shell("no-such-program-of-this-test"))
    with caplog.at_level(logging.WARNING, "turngate"):
        asyncio.run(framework.run(framework.StopGates(str(project)), Script("done")))
    assert ["NOT enforced" in record.message for record in caplog.records] == [True]


def test_wrong_options_are_refused_with_a_sentence(framework: Any, project: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no folder .*; give the project's folder as `project`"):
        framework.StopGates(str(project / "none"))
    with pytest.raises(UsageError, match="`limit` is -1, expected 0 or more"):
        framework.StopGates(str(project), limit=-1)


def test_no_framework_is_imported_with_turngate() -> None:
    names = [name for names in FRAMEWORKS.values() for name in names]
    code = "import sys, turngate, turngate.stop_hooks, turngate.hosts.stop; print([*sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in names if f"'{name}'" in done.stdout] == []


def test_a_tool_that_evidence_does_not_know_is_reported_once(framework: Any, project: Path) -> None:
    need(framework, "conversation")
    configure(project, {"type": "gate", "gate": "evidence"})
    gates, told = gates_of(framework, project)

    def save(path: str) -> str:
        """Save a file."""
        return path

    for _ in range(2):
        script = Script(Say(tool="save", arguments={"path": "a.py"}), "done")
        asyncio.run(framework.run(gates, script, tools=[save]))
    assert told == ['gate "evidence" does not know what these tools change: save']


@pytest.mark.parametrize("code", [0, 1])
def test_an_edit_with_a_known_tool_needs_evidence(framework: Any, project: Path, code: int) -> None:
    need(framework, "conversation")
    configure(project, {"type": "gate", "gate": "evidence"})
    gates, told = gates_of(framework, project, limit=1)

    def write_file(path: str) -> str:
        """Write a file."""
        return path

    def shell(command: str) -> str:
        """Run a command."""
        return f"pytest has run\nexit code: {code}"

    edit = Say(tool="write_file", arguments={"path": "a.py"})
    check = Say(tool="shell", arguments={"command": "pytest -q"})
    script = Script(edit, "Done.", check, "All tests pass.")
    ran = asyncio.run(framework.run(gates, script, tools=[write_file, shell]))
    assert (ran.answer, bool(told)) == ("All tests pass.", bool(code))
    assert any("You have edited a.py, and no command has checked it since." in each for each in script.asked)
