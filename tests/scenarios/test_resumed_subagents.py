"""A session that is resumed after a crash: its subagents, their reports, and the gates that were missed before it."""

import asyncio
import contextlib
import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.left_behind import STUCK, asked, left_behind, listed, scripted, session, task, until
from tests.support.sessions import BLOCK_COMMAND, SAVE_INPUT, message_text, saved_inputs
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program
from turngate.agent.session import Session
from turngate.core.events.stream_events import TurnResult
from turngate.models.scripted import ScriptedModel

CONTINUED = "continuing 1 subagent of a process that died: count files"
LIMITED = {"turngate": {"limit": 1}}


def resume(project: Path, *words: str, main: tuple[Any, ...], sub: tuple[Any, ...] = ()) -> tuple[int, Any]:
    """Resume the session `s-1` with another script of the same name. Return its exit code and its result."""
    model = scripted(project, list(main), list(sub))
    given = ("--project", str(project), "--model", model, "--output-format", "json", *words)
    code, out, _ = turngate("run", "-p", "go on", "--resume", "--session", "s-1", *given)
    return code, json.loads(out)


def names(result: Any, key: str = "blocked_subagents") -> list[tuple[str, str, list[str]]]:
    return [(each["label"], each["reason"], each["blocked_by"]) for each in result[key]]


# A subagent whose call is gone


def test_a_resumed_turn_waits_for_a_subagent_whose_call_is_gone(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks(SAVE_INPUT))
    left_behind(project, state)
    late = {"text": "three files", "delay": 1}
    code, result = resume(project, main=("waiting", "thank you"), sub=(late,))
    assert (code, result["result"], result["notices"]) == (0, "thank you", [CONTINUED])
    assert [each["label"] for each in result["subagents"]] == ["count files"]
    assert saved_inputs(project, "last_assistant_message") == ["thank you"]


def test_a_resumed_turn_names_the_blocked_subagent_whose_call_is_gone(project: Path, state: Path) -> None:
    write_settings(
        project, "turngate", {**stop_hooks(BLOCK_COMMAND, event="SubagentStop", id="tests"), **LIMITED}
    )
    left_behind(project, state)
    code, result = resume(project, "--strict", main=("waiting", "thank you"), sub=("three files",))
    assert (code, result["result"], names(result)) == (
        13,
        "thank you",
        [("count files", "capped", ["tests"])],
    )


def test_a_session_that_ends_before_its_subagents_names_them(project: Path, state: Path) -> None:
    left_behind(project, state)
    ask = {"tool": "AskUser", "input": {"question": "Which ones?"}}
    code, result = resume(project, main=(ask,), sub=(STUCK,))
    left = "1 subagent has not finished: count files; continue with `turngate run --resume --session s-1`"
    assert (code, result["ended_by"], result["notices"]) == (12, "question", [CONTINUED, left])
    assert [each["state"] for each in listed()] == ["running"]


# Gates that the turn before the crash has missed

GATE = {**stop_hooks(BLOCK_COMMAND, event="SubagentStop", id="tests"), **LIMITED}
BLOCKED = [("count files", "capped", ["tests"])]


def transcript(state: Path) -> Path:
    return state / "sessions" / "s-1" / "chat.jsonl"


def written(state: Path, text: str) -> bool:
    return transcript(state).exists() and text in transcript(state).read_text()


def killed_when(project: Path, state: Path, text: str, *main: Any, sub: tuple[Any, ...] = ("three",)) -> None:
    """Kill a session as soon as its transcript has this text and all of its subagents are done."""
    with session(project, [*main, STUCK], list(sub), "--strict", "--allow", "Bash") as process:
        until(lambda: written(state, text) and all(each["state"] == "done" for each in listed()))
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_a_blocked_subagent_whose_result_arrived_before_a_crash_is_named_by_the_resumed_turn(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", GATE)
    killed_when(project, state, "tool_result", task("count files"))
    code, result = resume(project, "--strict", main=("all done",))
    assert (code, result["result"], names(result)) == (13, "all done", BLOCKED)
    code, result = resume(project, "--strict", main=("all done",))  # the turn before has named it
    assert (code, names(result)) == (0, [])


def test_a_blocked_subagent_whose_report_arrived_before_a_crash_is_named_by_the_resumed_turn(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", GATE)
    start = task("count files", run_in_background=True)
    killed_when(project, state, "[Subagent result]", start, "waiting")
    assert names(resume(project, main=("all done",))[1]) == BLOCKED


def test_a_blocked_subagent_is_named_if_the_crash_came_before_its_report_was_acknowledged(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", GATE)
    killed_when(project, state, "[Subagent result]", task("count files", run_in_background=True), "waiting")
    kept = transcript(state).read_text().splitlines(keepends=True)
    transcript(state).write_text("".join(line for line in kept if '"missed_gates"' not in line))
    with contextlib.closing(sqlite3.connect(state / "registry.db", isolation_level=None)) as db:
        db.execute("UPDATE runs SET taken = NULL")
    code, result = resume(project, "--strict", main=("all done",))
    assert (code, result["model_requests"], names(result)) == (13, 1, BLOCKED)


def test_a_blocked_subagent_of_a_subagent_is_named_after_a_crash(project: Path, state: Path) -> None:
    write_settings(project, "turngate", {**GATE, "turngate": {"limit": 0}})
    inner = task("inner", "Count the lines.")
    killed_when(project, state, "tool_result", task("outer"), sub=(inner, "counted"))
    both = [("inner", "capped", ["tests"]), ("outer", "capped", ["tests"])]
    assert names(resume(project, main=("all done",))[1]) == both


PRE: Any = stop_hooks("exit 1", event="PreToolUse", id="pre")
PRE["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
MISSED = [{"hook": "pre", "outcome": "failed", "why": "exit code 1, nothing on stderr"}]
MISSED_NOTICE = 'hook "pre" was NOT enforced before the process died: exit code 1, nothing on stderr'


def test_a_gate_that_was_not_enforced_before_a_crash_is_named_by_the_resumed_turn(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", PRE)
    killed_when(project, state, "tool_result", {"tool": "Bash", "input": {"command": "true"}})
    code, result = resume(project, "--strict", main=("all done",))
    assert (code, result["unenforced"], result["notices"]) == (13, MISSED, [MISSED_NOTICE])
    code, result = resume(project, "--strict", main=("all done",))
    assert (code, result["unenforced"], result["notices"]) == (0, [], [])


def test_a_gate_of_a_subagent_that_was_not_enforced_before_a_crash_is_named_by_the_resumed_turn(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", PRE)
    bash = {"tool": "Bash", "input": {"command": "touch ran"}}
    with session(project, [task("count files")], [bash, STUCK], "--allow", "Bash") as process:
        asked(state)
        until((project / "ran").exists)
        process.send_signal(signal.SIGKILL)
        process.wait()
    code, result = resume(project, "--strict", main=("waiting", "all done"), sub=("three files",))
    assert (code, result["result"], result["unenforced"]) == (13, "all done", MISSED)


def test_a_gate_that_was_missed_before_a_crash_counts_also_if_no_hooks_run_afterwards(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", PRE)
    killed_when(project, state, "tool_result", {"tool": "Bash", "input": {"command": "true"}})
    code, result = resume(project, "--strict", "--no-hooks", main=("all done",))
    assert (code, result["unenforced"], result["notices"]) == (13, MISSED, [MISSED_NOTICE])


def test_a_reset_forgets_what_was_missed_before_a_crash(project: Path, state: Path) -> None:
    write_settings(project, "turngate", PRE)
    killed_when(project, state, "tool_result", {"tool": "Bash", "input": {"command": "true"}})
    model = ScriptedModel({"main": ["all done"]})

    async def reset() -> TurnResult:
        async with Session(str(project), model, session_id="s-1", strict=True) as resumed:
            await resumed.open()
            await resumed.reset()
            return await resumed.send("go on")

    result = asyncio.run(reset())
    assert (result.success, result.unenforced) == (True, ())


# A subagent that another process continues

START = task("count files", run_in_background=True)
UNTIL_GO = {"tool": "Bash", "input": {"command": "until [ -e go ]; do sleep 0.01; done"}}
BOTH_ALLOW = ("--allow", "Bash")


@contextlib.contextmanager
def other_process(project: Path, state: Path) -> Iterator[Program]:
    """Kill a session; yield the process of another session that has adopted its subagent, which waits for `go`."""
    with session(project, [START, "all done"], [STUCK], *BOTH_ALLOW) as process:
        asked(state)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with session(project, [STUCK], [UNTIL_GO, "three files"], *BOTH_ALLOW, "--session", "z") as other:
        try:
            until(lambda: not listed()[0]["left"])
            yield other
        finally:
            (project / "go").touch()  # a killed process leaves its command behind


def continued_by(other: Program) -> str:
    return f"1 subagent of this session is continued by process {other.pid}: count files; its result arrives here"


def resumed_process(project: Path, *words: str) -> AbstractContextManager[Program]:
    main = ["waiting", "thank you"]
    return session(project, main, ["three files"], "--resume", "--strict", *BOTH_ALLOW, *words)


def ended(process: Program) -> tuple[int, Any]:
    out, _ = process.communicate(timeout=HANG_TIMEOUT_S)
    return process.wait(), json.loads(out)


def test_a_resumed_session_waits_for_a_subagent_that_another_process_continues(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", {**GATE, "turngate": {"limit": 0}})
    with other_process(project, state) as other, resumed_process(project) as process:
        until(lambda: written(state, '"waiting"'))
        (project / "go").touch()
        code, result = ended(process)
    assert (code, result["result"], result["notices"], names(result)) == (
        13,
        "thank you",
        [continued_by(other)],
        BLOCKED,
    )
    assert transcript(state).read_text().count("[Subagent result]") == 1


def test_a_session_takes_over_when_the_process_that_continues_its_subagent_dies(
    project: Path, state: Path
) -> None:
    with other_process(project, state) as other, resumed_process(project) as process:
        until(lambda: written(state, '"waiting"'))
        other.send_signal(signal.SIGKILL)
        other.wait()
        code, result = ended(process)
    assert (code, result["result"], result["notices"]) == (
        0,
        "thank you",
        [continued_by(other), CONTINUED],
    )
    assert transcript(state).read_text().count("[Subagent result]") == 1


def reset_and_ask(project: Path, **options: Any) -> list[str]:
    """Resume the session, reset it, and return what its model gets afterwards."""
    model = ScriptedModel({"main": ["hello"]})

    async def reset() -> None:
        async with Session(str(project), model, session_id="s-1", **options) as resumed:
            await resumed.open()
            await resumed.reset()
            await resumed.send("new topic")

    asyncio.run(reset())
    return [message_text(message) for message in model.requests[-1].messages]


def test_a_reset_ends_a_subagent_that_another_process_continues(project: Path, state: Path) -> None:
    with other_process(project, state):
        assert reset_and_ask(project) == ["new topic"]
        [child] = until(lambda: [each for each in listed() if each["state"] == "done"])
        assert (child["outcome"], child["reason"]) == ("killed", "session-reset")


def test_a_reset_ends_a_subagent_that_the_session_may_not_continue(project: Path, state: Path) -> None:
    write_settings(project, "turngate", GATE)
    left_behind(project, state)
    assert reset_and_ask(project, hooks=False) == ["new topic"]
    assert [(each["outcome"], each["reason"]) for each in listed()] == [("killed", "session-reset")]


def test_a_result_waits_for_the_conversation_that_asked_for_it_although_another_dialect_uses_its_id(
    project: Path, state: Path
) -> None:
    with session(project, [START, "all done"], [STUCK]) as process:
        asked(state)
        process.send_signal(signal.SIGKILL)
        process.wait()
    model = scripted(project, [], ["three files"])
    assert turngate("runs", "recover", "--project", str(project), "--model", model)[0] == 0
    with session(project, ["hello", "thank you"], [], "--dialect", "mux") as process:
        code, result = ended(process)
    assert (code, result["result"], result["subagents"]) == (0, "hello", [])
    code, result = resume(project, main=("hello", "thank you"))
    assert (code, result["result"]) == (0, "thank you")
    assert [each["label"] for each in result["subagents"]] == ["count files"]
