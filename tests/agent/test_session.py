"""A session and its stops: what the model is asked, what the hooks are told, and how a turn ends."""

import ast
import asyncio
import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turngate
from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.machines import Machine
from tests.support.paths import SEEDS
from tests.support.sessions import (
    BLOCK_COMMAND,
    SAVE_INPUT,
    ScriptedSession,
    block_first,
    configured_session_on,
    hang,
    lines,
    make_session,
    message_text,
    on_first,
    records,
    saved_inputs,
    say,
    scripted_session,
    scripted_session_on,
    survives,
    wait_for_file,
    wait_for_file_sync,
)
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate import agent as agent_package
from turngate import subagents as subagents_package
from turngate.agent.session import Session
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import ModelRequest, Reply, ToolResult, ToolResults, UserMessage
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import (
    Continuation,
    HookFinished,
    HookStarted,
    Notice,
    StreamEnd,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnd,
    TurnResult,
)
from turngate.core.hooks.kinds import CallbackHook, CommandHook
from turngate.core.settings import Settings
from turngate.core.text import quote_name
from turngate.core.verdict.decisions import Block
from turngate.core.verdict.hook_run import outcome
from turngate.errors import ModelError, UsageError
from turngate.models.scripted import ScriptedModel

TOLD = "[Stop hook requested continuation]\nrun the tests"

by_dialect = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}, **more}


def ended(result: TurnResult) -> tuple[str, str, str | None]:
    return result.outcome, result.ended_by, result.stop_reason


# The document's own list


@pytest.mark.req("S0-08", "S0-93")
def test_a_session_without_hooks_stops_after_one_request(project: Path, machine: Machine) -> None:
    agent = configured_session_on(machine, project, "all done")
    result = agent.play("build it")
    assert (ended(result), result.result, result.hook_runs, agent.heard()) == (
        ("completed", "allowed", None),
        "all done",
        (),
        ["build it"],
    )
    assert len(agent.model.requests) == result.model_requests == 1


@pytest.mark.req("S0-94", "S3-04")
def test_a_session_stops_when_its_hook_exits_with_zero(project: Path, machine: Machine) -> None:
    write_settings(project, "mux", stop_hooks("true"))
    agent = configured_session_on(machine, project, "all done")
    result = agent.play("build it")
    assert (ended(result), [outcome(run) for run in result.hook_runs], len(agent.model.requests)) == (
        ("completed", "allowed", None),
        ["allow"],
        1,
    )


@pytest.mark.req("S0-01", "S0-02", "S0-68", "S0-95", "C-17", "S0-105")
def test_a_session_continues_at_exit_two_and_the_model_gets_the_exact_message(
    project: Path, machine: Machine
) -> None:
    write_settings(project, "mux", stop_hooks(block_first(1)))
    agent = configured_session_on(machine, project, "answer {n}")
    result = agent.play("build it")
    assert [type(m) for m in agent.model.requests[1].messages] == [UserMessage, Reply, UserMessage]
    assert agent.model.requests[1].messages[-1] == UserMessage(TOLD, "stop_hook")
    assert agent.heard() == ["build it", "agent: answer 1", TOLD]
    assert (ended(result), result.result, result.continuations) == (
        ("completed", "allowed", None),
        "answer 2",
        1,
    )


@pytest.mark.req("S0-96", "S0-45", "S0-42")
def test_a_session_continues_at_a_json_block(project: Path, machine: Machine) -> None:
    block = '[ -e asked ] || { touch asked; echo \'{"decision":"block","reason":"run the tests"}\'; }'
    write_settings(project, "mux", stop_hooks(block))
    agent = configured_session_on(machine, project, "answer {n}")
    assert ended(agent.play("build it")) == ("completed", "allowed", None)
    assert agent.heard() == ["build it", "agent: answer 1", TOLD]


@pytest.mark.req("S0-30", "S0-34", "S0-81", "S0-97", "X-06", "S0-105")
def test_the_flag_and_the_count_are_passed_on_stdin_and_in_the_environment(
    project: Path, machine: Machine
) -> None:
    spy = f"tee -a seen >/dev/null; echo $MUX_STOP_HOOK_ACTIVE $MUX_STOP_HOOK_COUNT >> env; {block_first(2)}"
    write_settings(project, "mux", stop_hooks(spy))
    configured_session_on(machine, project, "answer {n}").play("build it")
    assert saved_inputs(project, "stop_hook_active", "continuation_count", "max_continuations") == [
        (False, 0, 3),
        (True, 1, 3),
        (True, 2, 3),
    ]
    assert lines(project / "env") == ["false 0", "true 1", "true 2"]


@pytest.mark.req("S0-98", "S0-100", "S3-02", "C-18", "U-14", "X-10", "S0-105")
def test_a_hook_that_always_blocks_gets_three_continuations_and_then_a_notice(
    project: Path, machine: Machine
) -> None:
    write_settings(project, "mux", stop_hooks(BLOCK_COMMAND))
    agent = configured_session_on(machine, project, "answer {n}")
    result = agent.play("build it")
    notice = f"Turn ended after 3 continuations (the limit). Still blocked by: {quote_name(BLOCK_COMMAND)}."
    assert (ended(result), result.continuations, result.model_requests, len(agent.model.requests)) == (
        ("capped", "capped", notice),
        3,
        4,
        4,
    )
    assert [outcome(run) for run in result.hook_runs] == ["block"] * 4
    assert (result.notices, agent.of(Notice)) == (
        (notice,),
        [Notice(notice, "the last reason: run the tests")],
    )
    assert records(result.transcript_path)[-1] == {
        "type": "turn_end",
        "ended_by": "capped",
        "notice": notice,
    }


@pytest.mark.req("S0-100", "C-16")
def test_the_next_message_of_the_user_counts_from_zero(project: Path, machine: Machine) -> None:
    write_settings(project, "mux", stop_hooks(f"tee -a seen >/dev/null; {BLOCK_COMMAND}"))
    agent = configured_session_on(machine, project, "answer {n}")
    result = agent.play("first", "second")
    flags = [(False, 0), (True, 1), (True, 2), (True, 3)]
    assert saved_inputs(project, "stop_hook_active", "continuation_count") == flags * 2
    assert (result.continuations, result.model_requests) == (3, 4)


@pytest.mark.req("C-18")
def test_a_hook_that_agrees_when_it_is_asked_at_the_limit_lets_the_turn_complete(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(machine, project, "answer {n}", stop=block_first(3), dialect=MUX)
    result = agent.play()
    assert (ended(result), result.continuations, result.notices) == (("completed", "allowed", None), 3, ())


@pytest.mark.req("U-08")
def test_without_a_continuation_in_the_limit_the_first_block_caps(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, "answer {n}", stop=BLOCK_COMMAND, limit=0)
    assert (agent.play().ended_by, len(agent.model.requests)) == ("capped", 1)


@pytest.mark.req("X-08")
def test_the_same_block_three_times_without_a_tool_call_is_a_stall(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, "answer {n}", stop=BLOCK_COMMAND, limit=8)
    result = agent.play()
    said = f"Turn ended: nothing changed in 3 continuations. Still blocked by: {quote_name(BLOCK_COMMAND)}."
    assert (ended(result), result.continuations) == (("capped", "stalled", said), 3)


@pytest.mark.req("X-08")
def test_an_agent_that_uses_tools_between_two_blocks_does_not_stall_but_is_capped(
    project: Path, machine: Machine
) -> None:
    replies = [bash("true"), "again"] * 6
    agent = scripted_session_on(
        machine, project, *replies, stop=BLOCK_COMMAND, limit=5, permission_mode="bypassPermissions"
    )
    result = agent.play()
    assert (result.ended_by, result.continuations, result.tool_calls) == ("capped", 5, 6)


@pytest.mark.req("S0-69")
def test_a_block_without_a_reason_queues_nothing(project: Path, machine: Machine) -> None:
    blank = say({"decision": "block", "reason": "  "})
    unreasoned = [(say({"decision": "block"}), "without a reason"), (blank, "without a reason")]
    for stop, notice in (*unreasoned, ("exit 2", "gave no reason")):
        agent = scripted_session_on(machine, project, "answer {n}", stop=stop, dialect=MUX)
        result = agent.play()
        assert (ended(result), len(agent.model.requests)) == (("completed", "allowed", None), 1)
        assert notice in result.notices[0]


# What a stop is, and what its hooks are told


@pytest.mark.req("S0-20", "S3-11")
def test_stop_is_asked_once_after_the_answer_that_calls_no_tool(project: Path, machine: Machine) -> None:
    stop = rule("echo stop >> log")
    replies = [bash("echo 1 >> log"), {"text": "so", **bash("echo 2 >> log")}, bash("echo 3 >> log"), "done"]
    agent = scripted_session_on(machine, project, *replies, rules=[stop], permission_mode="bypassPermissions")
    result = agent.play()
    assert (lines(project / "log"), result.tool_calls, result.model_requests) == (
        ["1", "2", "3", "stop"],
        3,
        4,
    )


@pytest.mark.req("S0-23")
def test_the_main_agent_never_asks_the_hooks_of_a_subagent(project: Path, machine: Machine) -> None:
    rules = [rule("echo Stop >> log"), rule("echo SubagentStop >> log", "SubagentStop")]
    scripted_session_on(machine, project, "done", rules=rules).play()
    assert lines(project / "log") == ["Stop"]


@pytest.mark.req("S0-25", "S0-27", "S0-28", "S0-73", "C-14", "X-06")
def test_a_stop_hook_gets_everything_about_its_session(project: Path, machine: Machine) -> None:
    replies = [bash("true"), {"texts": ["looked", "done"]}, "again"]
    stop = f"{SAVE_INPUT}; {block_first(1)}"
    agent = scripted_session_on(
        machine, project, *replies, stop=stop, session_id="workspace-abc123", allow=["Bash"]
    )
    result = agent.play()
    first, second = saved_inputs(project)
    assert 0 <= first.pop("duration_ms") <= second.pop("duration_ms") <= result.duration_ms
    assert isinstance(first["prompt_id"], str)
    used = first.pop("usage"), second.pop("usage")
    assert 0 < used[0]["output_tokens"] < used[1]["output_tokens"]
    assert used[1] == {
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
    }
    told = {
        "session_id": "workspace-abc123",
        "transcript_path": agent.path_for_hooks(result.transcript_path),
        "cwd": str(project),
        "prompt_id": first["prompt_id"],
        "permission_mode": "default",
        "hook_event_name": "Stop",
        "max_continuations": 3,
        "tool_calls": 1,
    }
    at_first = {"stop_hook_active": False, "last_assistant_message": "looked\ndone", "continuation_count": 0}
    later = {"stop_hook_active": True, "last_assistant_message": "again", "continuation_count": 1}
    assert [first, second] == [{**told, **at_first}, {**told, **later}]


@pytest.mark.req("S0-27", "S0-31", "S0-32", "S0-33")
def test_a_relative_project_is_absolute_for_the_hooks_of_a_session(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "echo $MUX_PROJECT_DIR $CLAUDE_PROJECT_DIR $PWD > where"
    monkeypatch.chdir(project.parent)
    agent = scripted_session(Path(project.name), stop=f"tee -a seen >/dev/null; {shown}")
    result = agent.play()
    assert lines(project / "where") == [f"{project} {project} {project}"]
    assert saved_inputs(project, "cwd") == [str(project)] == [agent.session.project]
    assert {record["cwd"] for record in records(result.transcript_path) if "cwd" in record} == {str(project)}


@pytest.mark.req("S0-28")
def test_a_hook_gets_the_permission_mode_of_that_moment(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, stop=SAVE_INPUT)

    async def switch() -> None:
        async with agent.session:
            await agent.session.send("one")
            agent.session._agent.permissions.mode = "plan"
            await agent.session.send("two")

    machine.run(switch())
    assert saved_inputs(project, "permission_mode") == ["default", "plan"]


@pytest.mark.req("S0-72")
def test_a_continuation_runs_with_the_options_of_its_turn(project: Path, machine: Machine) -> None:
    write = {"tool": "Write", "input": {"file_path": "new.txt", "content": "x"}}
    spy = f"tee -a seen >/dev/null; {block_first(1)}"
    agent = scripted_session_on(
        machine, project, "done", write, "done now", stop=spy, permission_mode="acceptEdits"
    )
    agent.play()
    first, *others = [(request.system, request.tools, request.agent) for request in agent.model.requests]
    assert others == [first, first]
    assert saved_inputs(project, "permission_mode") == ["acceptEdits", "acceptEdits"]
    assert (project / "new.txt").read_text() == "x"


STARTS_PROCESSES = re.compile(
    r"subprocess|multiprocessing|^pty$|shells\.process|^(fork|exec|spawn|posix_spawn|popen|system)"
)


@pytest.mark.req("S0-82")
def test_session_and_task_tool_start_no_process_by_themselves() -> None:
    """The Bash tool, in `agent/tools`, is the agent's own; hooks go through the engine."""
    agent, subagents = Path(agent_package.__path__[0]), Path(subagents_package.__path__[0])
    found = {
        f"{path.name}: {name}"
        for path in (*agent.glob("*.py"), *subagents.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        for name in _names(node)
        if STARTS_PROCESSES.search(name)
    }
    assert found == set()


def _names(node: ast.AST) -> list[str]:
    """Return what a node imports, or the attribute of a module that it uses."""
    match node:
        case ast.Import(names):
            return [name.name for name in names]
        case ast.ImportFrom(module, names):
            return [module or "", *(name.name for name in names if module in ("os", "asyncio"))]
        case ast.Attribute(ast.Name("os" | "asyncio"), attribute):
            return [attribute]
        case _:
            return []


@pytest.mark.req("S0-82")
def test_what_a_session_calls_is_public() -> None:
    """The types, the loader of the settings, the executor of any event, and that of a stop."""
    names = ("StopHookInput", "StopHooksResult", "StopEvent", "load_settings", "ask_hooks", "run_stop_hooks")
    assert [name for name in names if name not in dir(turngate)] == []
    agent, subagents = Path(agent_package.__path__[0]), Path(subagents_package.__path__[0])
    called = {
        f"{path.name}: {node.module}.{name.name}"
        for path in (*agent.rglob("*.py"), *subagents.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in ("turngate.engine", "turngate.stop_hooks")
        for name in node.names
    }
    assert called == {"session_hooks.py: turngate.engine.ask_hooks"}


# Events


@pytest.mark.req("S0-66", "S0-67", "S0-79", "C-30")
def test_the_answer_is_shown_before_its_hooks_and_the_turn_ends_last(project: Path, machine: Machine) -> None:
    hook = block_first(1)
    agent = scripted_session_on(machine, project, "one", "two", stop=CommandHook(hook, id="tests"))
    result = agent.play()
    told = [
        (event.event, event.hook, event.outcome) if isinstance(event, HookFinished) else event
        for event in agent.events
    ]
    replies = [m for m in agent.session.messages if isinstance(m, Reply)]
    assert told == [
        TextDelta("one"),
        StreamEnd(replies[0], stop_hook_active=False),
        HookStarted("Stop", "tests", 60),
        ("Stop", "tests", "block"),
        Continuation(TOLD, 1, 3),
        TextDelta("two"),
        StreamEnd(replies[1], stop_hook_active=True),
        HookStarted("Stop", "tests", 60),
        ("Stop", "tests", "allow"),
        TurnEnd(result),
    ]


def test_tools_are_reported_when_they_start_and_end(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, bash("echo hello"), "done", allow=["Bash"])
    agent.play()
    [started], [finished] = agent.of(ToolStarted), agent.of(ToolFinished)
    assert (started.use, finished.result) == (finished.use, ToolResult("tool-1", "hello"))


# Messages that the user writes meanwhile


def write_second(session: Session) -> None:
    session.queue("second")


@by_dialect
@pytest.mark.req("S0-70")
def test_a_message_written_while_the_model_answers_is_answered_in_the_same_turn(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        "answer {n}",
        listen=on_first(TextDelta, write_second),
        stop=SAVE_INPUT,
        dialect=dialect,
    )
    result = agent.play("first")
    assert (ended(result), agent.heard(), agent.session.queued) == (
        ("completed", "allowed", None),
        ["first", "agent: answer 1", "second"],
        0,
    )


@pytest.mark.parametrize(
    ("dialect", "answers"),
    [(TURNGATE, ["answer 2"]), (CLAUDE, ["answer 2"]), (MUX, ["answer 1", "answer 2"])],
    ids=["turngate", "claude", "mux"],
)
@pytest.mark.req("C-31")
def test_the_gates_wait_for_a_message_of_the_users_unless_the_dialect_is_mux(
    project: Path, dialect: Dialect, answers: list[str], machine: Machine
) -> None:
    scripted_session_on(
        machine,
        project,
        "answer {n}",
        listen=on_first(TextDelta, write_second),
        stop=SAVE_INPUT,
        dialect=dialect,
    ).play("first")
    assert saved_inputs(project, "last_assistant_message") == answers


@pytest.mark.parametrize(
    ("when", "answers"), [("run", ["answer 1", "answer 2"]), ("defer", ["answer 2"])], ids=["run", "defer"]
)
@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
@pytest.mark.req("C-31")
def test_when_user_pending_decides_whether_the_gates_wait(
    project: Path, dialect: str, when: str, answers: list[str], machine: Machine
) -> None:
    family = "claude" if dialect == "claude" else "mux"
    write_settings(project, family, {**stop_hooks(SAVE_INPUT), "turngate": {"whenUserPending": when}})
    listen = on_first(TextDelta, write_second)
    agent = configured_session_on(machine, project, "answer {n}", dialect=dialect, listen=listen)
    agent.play("first")
    assert saved_inputs(project, "last_assistant_message") == answers
    assert agent.heard() == ["first", "agent: answer 1", "second"]


@by_dialect
@pytest.mark.req("S0-70", "X-34")
def test_a_message_written_while_a_hook_runs_that_agrees_is_answered_once(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        "answer {n}",
        listen=on_first(HookStarted, write_second),
        stop=SAVE_INPUT,
        dialect=dialect,
    )
    agent.play("first")
    assert (agent.heard(), agent.session.queued) == (["first", "agent: answer 1", "second"], 0)
    assert saved_inputs(project, "last_assistant_message") == ["answer 1", "answer 2"]


@pytest.mark.req("S0-68", "C-16", "C-31", "X-34")
def test_in_mux_a_continuation_queues_behind_the_users_message_and_keeps_its_flag(
    project: Path, machine: Machine
) -> None:
    spy = f"tee -a seen >/dev/null; {block_first(1)}"
    agent = scripted_session_on(
        machine, project, "answer {n}", listen=on_first(HookStarted, write_second), stop=spy, dialect=MUX
    )
    agent.play("first")
    assert (agent.heard(), agent.session.queued) == (
        ["first", "agent: answer 1", "second", "agent: answer 2", TOLD],
        0,
    )
    assert saved_inputs(project, "stop_hook_active") == [False, False, True]
    assert [event.stop_hook_active for event in agent.of(StreamEnd)] == [False, False, True]


@by_dialect
@pytest.mark.req("X-34")
def test_nothing_of_a_turn_is_left_for_the_next_one(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        "answer {n}",
        listen=on_first(HookStarted, write_second),
        stop=block_first(1),
        dialect=dialect,
    )
    left: list[int] = []

    async def both() -> None:
        async with agent.session:
            for prompt in ("first", "third"):
                await agent.session.send(prompt)
                left.append(agent.session.queued)

    machine.run(both())
    told = [message_text(m) for m in agent.session.messages if isinstance(m, UserMessage)]
    assert (left, told.count("second"), told[-1]) == ([0, 0], 1, "third")


@pytest.mark.req("C-16")
def test_a_message_of_the_users_in_the_middle_of_a_turn_starts_its_own_count(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        "answer {n}",
        listen=on_first(Continuation, write_second),
        stop=f"tee -a seen >/dev/null; {block_first(2)}",
        dialect=TURNGATE,
    )
    result = agent.play("first")
    assert saved_inputs(project, "stop_hook_active", "continuation_count") == [
        (False, 0),
        (False, 0),
        (True, 1),
    ]
    assert (ended(result), result.continuations) == (("completed", "allowed", None), 2)


ENDINGS = {
    "blocked": (block_first(1), 3, "allowed"),
    "capped": (BLOCK_COMMAND, 0, "capped"),
    "halted": (f"[ -e once ] || {{ touch once; {say({'continue': False})}; }}", 3, "halted"),
    "failed": ("exit 1", 3, "allowed"),
}


@by_dialect
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.req("S0-70", "X-34")
def test_a_message_written_while_a_hook_runs_is_answered_once_however_the_hook_decides(
    project: Path, dialect: Dialect, ending: str, machine: Machine
) -> None:
    """After a halt it waits for the next turn: nothing of this one may run."""
    stop, limit, ended_by = ENDINGS[ending]
    listen = on_first(HookStarted, write_second)
    agent = scripted_session_on(
        machine, project, "answer {n}", stop=stop, limit=limit, listen=listen, dialect=dialect
    )
    first: list[TurnResult] = []

    async def both() -> None:
        async with agent.session:
            first.append(await agent.session.send("first"))
            left = agent.session.queued
            await agent.session.send("third")
            assert (left, agent.session.queued) == (1 if ending == "halted" else 0, 0)

    machine.run(both())
    told = [text for text in agent.heard() if not text.startswith(("agent: ", "[Stop hook", "Stop hook"))]
    assert (told, first[0].ended_by) == (["first", "second", "third"], ended_by)


@by_dialect
@pytest.mark.req("S0-68")
def test_a_block_is_queued_as_one_entry_that_carries_the_flag(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    queued: list[InboxEntry] = []

    def look(session: Session) -> None:
        entry = session._agent.inbox.pop()
        assert entry is not None
        queued.append(entry)
        session._agent.inbox.put_first(entry)

    block = say({"decision": "block", "reason": "run the tests"})
    stop = f"[ -e once ] || {{ touch once; {block}; }}"
    agent = scripted_session_on(
        machine, project, stop=stop, dialect=dialect, listen=on_first(Continuation, look)
    )
    agent.play()
    [entry] = queued
    assert entry.guard is not None
    assert (entry.text, entry.origin, entry.guard.active) == (agent.heard()[-1], "stop_hook", True)
    marked = [r for r in records(agent.session.transcript_path) if r.get("stopHookActive")]
    assert [record["message"]["content"] for record in marked] == [entry.text]


# Waiting for the user


@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=["turngate", "mux"])
@pytest.mark.req("X-17")
def test_an_agent_that_asks_its_user_waits_and_no_gate_pushes_it_on(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    ask = {"text": "well", "tool": "AskUser", "input": {"question": "red or blue?"}}
    agent = scripted_session_on(
        machine, project, ask, "blue it is", stop=f"tee -a seen >/dev/null; {BLOCK_COMMAND}", dialect=dialect
    )
    result = agent.play()
    assert (
        ended(result),
        result.question,
        result.result,
        len(agent.model.requests),
        lines(project / "seen"),
    ) == (
        ("waiting", "question", None),
        "red or blue?",
        "well",
        1,
        [],
    )


@pytest.mark.req("X-17")
def test_the_gates_are_asked_when_it_continues_after_the_answer(project: Path, machine: Machine) -> None:
    ask = {"tool": "AskUser", "input": {"question": "red or blue?"}}
    agent = scripted_session_on(machine, project, ask, "blue it is", stop=SAVE_INPUT)
    result = agent.play("paint it", "blue")
    asked = "tool: The user was asked; the answer comes with the next message."
    assert agent.heard() == ["paint it", "agent: AskUser", asked, "blue"]
    assert (ended(result), result.question, len(saved_inputs(project))) == (
        ("completed", "allowed", None),
        None,
        1,
    )


@pytest.mark.req("S0-20")
def test_in_claude_a_continuation_after_a_question_is_a_run_like_any_other(
    project: Path, machine: Machine
) -> None:
    """The dialect asks the gates although the agent waits; a tool call that follows is no stop."""
    ask = {"tool": "AskUser", "input": {"question": "red or blue?"}}
    spy = f"tee -a seen >/dev/null; {block_first(1)}"
    agent = scripted_session_on(
        machine, project, ask, bash("true"), "done", stop=spy, dialect=CLAUDE, allow=["Bash"]
    )
    result = agent.play()
    assert (len(agent.model.requests), len(saved_inputs(project)), result.result) == (3, 2, "done")


# Providers that fail


@pytest.mark.req("U-18", "X-18")
def test_an_overloaded_provider_is_asked_again_and_nothing_of_it_stays(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, {"error": "overloaded", "repeat": 2}, "done", stop=SAVE_INPUT, retries=(0.01, 0.02)
    )
    result = agent.play()
    said = tuple(f"the model did not answer (overloaded); retrying in {pause} s" for pause in (0.01, 0.02))
    assert (ended(result), result.result, result.notices, result.model_requests) == (
        ("completed", "allowed", None),
        "done",
        said,
        3,
    )
    assert (agent.heard(), len(saved_inputs(project))) == (["go"], 1)


@pytest.mark.parametrize("pause", [61.0, 86_400.0])
def test_a_provider_that_asks_for_a_long_pause_is_not_asked_again(project: Path, pause: float) -> None:
    agent = scripted_session(project, "never", stop=SAVE_INPUT, retries=(0.01, 0.01))

    async def ask(*_: object) -> Reply:
        raise ModelError("overloaded", "come back later", retry_after=pause)

    agent.model.ask = ask  # type: ignore[method-assign,assignment]
    result = agent.play()
    why = f"come back later; it asks for a pause of {pause:,.0f} s, and 60 s is the longest one here"
    assert (ended(result), result.model_requests) == (
        ("error", "error", f"the model failed (overloaded): {why}"),
        1,
    )


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_the_input_of_a_tool_call_has_no_number_that_json_does_not_have(project: Path, number: float) -> None:
    call = {"tool": "Bash", "input": {"command": "touch ran", "timeout": [number]}}
    result = scripted_session(project, call, "done", stop=SAVE_INPUT, allow=["Bash"]).play()
    why = "the model failed (invalid): the input of a call of Bash cannot be written as JSON"
    assert ended(result) == ("error", "error", why)


FAILURES = [
    ({"error": "overloaded"}, "overloaded", 2),
    ({"error": "network", "message": "cut"}, "network", 2),
    ({"error": "auth", "message": "no key"}, "auth", 1),
    ({"error": "quota"}, "quota", 1),
    ({"error": "refusal"}, "refusal", 1),
    ({"text": "I will not", "stop_reason": "refusal"}, "refusal", 1),
    ({"text": "and so", "stop_reason": "max_tokens"}, "invalid", 4),
]


@pytest.mark.req("X-18")
@pytest.mark.parametrize(("reply", "kind", "requests"), FAILURES)
def test_a_provider_that_fails_is_no_stop(
    project: Path, reply: dict[str, Any], kind: str, requests: int, machine: Machine
) -> None:
    rules = [rule(f"echo stopped >> log; {BLOCK_COMMAND}"), rule(SAVE_INPUT, "StopFailure")]
    agent = scripted_session_on(machine, project, reply, rules=rules, retries=(0.01,))
    result = agent.play()
    [told] = saved_inputs(project)
    assert (result.outcome, result.ended_by, result.success, len(agent.model.requests)) == (
        "error",
        "error",
        False,
        requests,
    )
    assert (told["hook_event_name"], told["error"]) == ("StopFailure", kind)
    assert result.stop_reason == f"the model failed ({kind}): {told['last_assistant_message']}"
    assert not (project / "log").exists()


@pytest.mark.req("X-18")
def test_after_a_failure_the_session_continues_with_the_next_message(project: Path) -> None:
    agent = scripted_session(project, {"error": "auth"}, "better now")
    result = agent.play("one", "two")
    assert (ended(result), agent.heard()) == (("completed", "allowed", None), ["one", "two"])


def test_an_answer_that_was_cut_off_is_asked_for_again(project: Path, machine: Machine) -> None:
    cut = {"text": "and so", "stop_reason": "max_tokens", "repeat": 3}
    agent = scripted_session_on(machine, project, cut, "and so on", stop=SAVE_INPUT)
    result = agent.play()
    assert (ended(result), result.result, result.model_requests) == (
        ("completed", "allowed", None),
        "and so on",
        4,
    )


@pytest.mark.parametrize("blank", [{"texts": []}, {"text": "  \n"}])
def test_an_empty_answer_is_asked_for_once_more(
    project: Path, blank: dict[str, Any], machine: Machine
) -> None:
    agent = scripted_session_on(machine, project, blank, "here I am", stop=SAVE_INPUT)
    assert (agent.play().result, agent.heard(), len(saved_inputs(project))) == ("here I am", ["go"], 1)


def test_two_empty_answers_are_an_answer_and_the_gates_are_asked(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, {"texts": []}, stop=SAVE_INPUT)
    result = agent.play()
    assert (ended(result), result.model_requests, len(saved_inputs(project))) == (
        ("completed", "allowed", None),
        2,
        1,
    )


def test_a_tool_call_without_words_is_no_empty_answer(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, bash("true"), "done", allow=["Bash"])
    assert (agent.play().model_requests, agent.heard()) == (2, ["go", "agent: Bash", "tool: (no output)"])


def test_the_limit_of_requests_ends_the_turn_without_a_gate(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, bash("true"), stop=SAVE_INPUT, allow=["Bash"], max_turns=3)
    result = agent.play()
    assert (ended(result), result.model_requests, result.tool_calls, lines(project / "seen")) == (
        ("error", "max_turns", "the limit of 3 model requests is reached"),
        3,
        3,
        [],
    )


def test_continuations_count_against_the_limit_of_requests(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine, project, "answer {n}", stop=f"tee -a seen >/dev/null; {BLOCK_COMMAND}", max_turns=2
    )
    result = agent.play()
    assert (result.ended_by, result.result, len(saved_inputs(project))) == ("max_turns", "answer 2", 2)


# Hooks that are broken


BROKEN = [
    ("exit 1", "failed"),
    ("/no/such/program", "failed"),
    ("kill -9 $$", "failed"),
    ("sleep 3600", "timeout"),
]


@pytest.mark.req("S0-104", "C-29", "X-09", "S0-105")
@pytest.mark.parametrize(("command", "kind"), BROKEN)
def test_a_hook_that_fails_ends_in_a_stop_and_is_distinguished_from_a_block(
    project: Path, command: str, kind: str, machine: Machine
) -> None:
    limit = 0.3 if kind == "timeout" else HANG_TIMEOUT_S
    agent = scripted_session_on(machine, project, "done", stop=CommandHook(command, timeout=limit, id="gate"))
    result = agent.play()
    [notice] = result.notices
    assert (ended(result), [outcome(run) for run in result.hook_runs]) == (
        ("completed", "allowed", None),
        [kind],
    )
    how = "failed" if kind == "failed" else "timed out after 0.3 s"
    assert notice.startswith(f'hook "gate" {how} and was NOT enforced')
    assert [(each.hook, each.outcome) for each in result.unenforced] == [("gate", kind)]


@pytest.mark.parametrize(
    ("command", "strict", "success"),
    [("exit 1", False, True), ("exit 1", True, False), ("true", True, True)],
)
def test_in_a_strict_session_a_turn_with_a_gate_that_was_not_enforced_is_not_a_success(
    project: Path, command: str, strict: bool, success: bool, machine: Machine
) -> None:
    result = scripted_session_on(machine, project, "done", stop=command, strict=strict).play()
    assert (ended(result), result.success, result.strict) == (
        ("completed", "allowed", None),
        success,
        strict,
    )


def test_in_a_strict_session_a_hook_that_could_not_be_loaded_counts(project: Path, machine: Machine) -> None:
    write_settings(project, "turngate", {"hooks": {"Stop": {}}})
    results = [
        configured_session_on(machine, project, "done", dialect="turngate", strict=True, hooks=hooks).play()
        for hooks in (True, False)
    ]
    assert [(result.outcome, result.not_loaded, result.success) for result in results] == [
        ("completed", True, False),
        ("completed", False, True),
    ]


def test_a_session_logs_a_gate_that_was_not_enforced_unless_a_listener_shows_it(
    project: Path, caplog: pytest.LogCaptureFixture, machine: Machine
) -> None:
    scripted_session_on(machine, project, "done", stop="exit 1").play()
    assert caplog.messages == []

    settings = Settings(rules=(rule("exit 1"),))
    session = make_session(machine, project, ScriptedModel({"main": ["done"]}), settings)

    async def turn() -> None:
        async with session:
            await session.send("go")

    machine.run(turn())
    why = "exit code 1, nothing on stderr"
    assert caplog.messages == [f'hook "exit 1" failed and was NOT enforced: {why}']


@pytest.mark.req("C-29", "X-09")
def test_a_broken_hook_that_must_work_is_named_as_broken_and_bounded_by_the_limit(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, "answer {n}", stop=CommandHook("exit 1", blocking=True, id="gate")
    )
    result = agent.play()
    said = "this check failed and must pass before you may stop: exit code 1, nothing on stderr"
    assert agent.heard()[-1] == f"[Stop hook requested continuation]\n{said}"
    assert (result.outcome, result.continuations) == ("capped", 3)


# Halts


@pytest.mark.parametrize("times", [0, 1])
def test_continue_false_ends_the_turn_and_tells_the_user_why(
    project: Path, times: int, machine: Machine
) -> None:
    halt = say({"continue": False, "stopReason": "enough", "systemMessage": "see you"})
    agent = scripted_session_on(
        machine, project, "answer {n}", stop=f"({block_first(times)}) || exit 2; {halt}"
    )
    result = agent.play()
    assert (ended(result), result.continuations, result.notices) == (
        ("halted", "halted", "enough"),
        times,
        ("see you",),
    )


@by_dialect
@pytest.mark.req("S0-47", "S3-25", "C-06")
def test_the_stop_reason_of_a_halt_is_shown_and_never_sent_to_the_model(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    halt = say({"continue": False, "stopReason": "enough"})
    agent = scripted_session_on(
        machine, project, "answer {n}", stop=f"[ -e once ] || {{ touch once; {halt}; }}", dialect=dialect
    )
    agent.play("one", "two")
    assert [event.result.stop_reason for event in agent.of(TurnEnd)] == ["enough", None]
    assert agent.heard() == ["one", "agent: answer 1", "two"]
    kept = [record["type"] for record in records(agent.session.transcript_path) if "enough" in str(record)]
    assert kept == ["hook_output", "turn_end"]


@by_dialect
@pytest.mark.parametrize("first", ["halt", "block"])
@pytest.mark.req("C-06", "S0-46")
def test_one_hook_that_halts_beats_another_that_blocks(
    project: Path, dialect: Dialect, first: str, machine: Machine
) -> None:
    halt = say({"continue": False, "stopReason": "enough"})
    commands = [halt, BLOCK_COMMAND] if first == "halt" else [BLOCK_COMMAND, halt]
    agent = scripted_session_on(machine, project, "answer {n}", rules=map(rule, commands), dialect=dialect)
    result = agent.play()
    assert (ended(result), len(agent.model.requests), result.continuations) == (
        ("halted", "halted", "enough"),
        1,
        0,
    )
    assert sorted(outcome(run) for run in result.hook_runs) == ["block", "halt"]


@pytest.mark.req("C-06", "S3-25")
@pytest.mark.parametrize("word", [True, None])
def test_continue_true_takes_nothing_from_a_block_in_a_session(
    project: Path, word: bool | None, machine: Machine
) -> None:
    block = say({"continue": word, "decision": "block", "reason": "run the tests"})
    agent = scripted_session_on(
        machine, project, "answer {n}", stop=f"[ -e once ] || {{ touch once; {block}; }}"
    )
    result = agent.play()
    assert (agent.heard()[-1], ended(result)) == (TOLD, ("completed", "allowed", None))


@pytest.mark.req("C-06")
def test_a_user_is_warned_of_a_block_beside_a_halt(project: Path, machine: Machine) -> None:
    both = say({"continue": False, "decision": "block", "reason": "run the tests"})
    result = scripted_session_on(machine, project, "answer {n}", stop=CommandHook(both, id="gate")).play()
    warning = "it sent `continue: false` with a block: the turn ends and the block's reason is not used"
    assert (ended(result), result.notices) == (("halted", "halted", None), (f'hook "gate": {warning}',))


# The hook's words


class Looking(ScriptedModel):
    """Notes what is in the transcript at the moment when it is asked."""

    def __init__(self, path: str) -> None:
        super().__init__({"main": ["answer {n}"]})
        self.path = path
        self.found: list[str] = []

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        self.found.append(lines(Path(self.path))[-1])
        return await super().ask(request, tell)


@pytest.mark.req("S0-26", "S0-35", "S0-105")
def test_a_hook_can_read_the_transcript_up_to_its_stop(project: Path, machine: Machine) -> None:
    copy = f'cat "$TURNGATE_TRANSCRIPT_PATH" > seen$TURNGATE_STOP_HOOK_COUNT; {block_first(1)}'
    agent = scripted_session_on(machine, project, "answer {n}", stop=copy)
    agent.play()
    written = records(agent.session.transcript_path)
    seen = [records(str(project / f"seen{count}")) for count in (0, 1)]
    assert [each == written[: len(each)] for each in seen] == [True, True]
    assert ["answer" in json.dumps(each[-1]) for each in seen] == [True, True]


@pytest.mark.req("X-19", "S0-68", "S0-80", "T-2", "S0-105")
def test_the_reason_is_in_the_transcript_and_marked_before_the_model_gets_it(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(machine, project, stop=block_first(1))
    model = Looking(agent.session.transcript_path)
    agent.session._agent.model = model
    agent.play("build it")
    told, continued = (json.loads(line) for line in model.found)
    assert (told["message"], "isMeta" in told) == ({"role": "user", "content": "build it"}, False)
    assert (continued["message"], continued["isMeta"], continued["origin"], continued["stopHookActive"]) == (
        {"role": "user", "content": TOLD},
        True,
        "stop_hook",
        True,
    )
    assert continued["continuation"] == 1


@pytest.mark.req("S3-01", "S3-05")
def test_hooks_run_whatever_the_model_says_and_decide_the_same_each_time(
    project: Path, machine: Machine
) -> None:
    script = "I will not be checked. Hooks are off. {n}"
    agent = scripted_session_on(
        machine, project, script, stop=f"test -f proof || {{ {BLOCK_COMMAND}; }}", limit=1
    )
    assert [agent_ended(agent, "one"), agent_ended(actor_like(agent, project), "two")] == ["capped", "capped"]
    (project / "proof").touch()
    assert agent_ended(actor_like(agent, project), "three") == "allowed"


def agent_ended(agent: ScriptedSession, prompt: str) -> str:
    return agent.play(prompt).ended_by


def actor_like(agent: ScriptedSession, project: Path) -> ScriptedSession:
    return scripted_session_on(
        agent.machine, project, "never mind {n}", rules=agent.session.settings.rules, limit=1
    )


# End to end


@pytest.mark.req("S0-106")
def test_a_gate_sends_the_agent_back_until_its_work_is_right(project: Path, machine: Machine) -> None:
    (project / "sum.py").write_text("print(1 - 1)\n")
    gate = "test \"$(python3 sum.py)\" = 2 || { echo 'sum.py must print 2' >&2; exit 2; }"
    write_settings(project, "mux", stop_hooks(gate))
    edit = {"file_path": "sum.py", "old_string": "1 - 1", "new_string": "1 + 1"}
    agent = configured_session_on(
        machine,
        project,
        "done",
        {"text": "let me see", "tool": "Read", "input": {"file_path": "sum.py"}},
        {"tool": "Edit", "input": edit},
        "repaired",
        permission_mode="acceptEdits",
    )
    result = agent.play("make sum.py print 2")
    assert (ended(result), result.result, result.continuations, result.tool_calls, result.model_requests) == (
        ("completed", "allowed", None),
        "repaired",
        1,
        2,
        4,
    )
    assert agent.heard() == [
        "make sum.py print 2",
        "agent: done",
        "[Stop hook requested continuation]\nsum.py must print 2",
        "agent: let me see + Read",
        "tool:      1\tprint(1 - 1)",
        "agent: Edit",
        f"tool: Changed {project}/sum.py in 1 place",
    ]


@pytest.mark.req("S3-43")
def test_a_hook_may_use_the_home_folder_and_globs_of_the_project(project: Path, machine: Machine) -> None:
    write_settings(
        project, "mux", stop_hooks("sh ~/.claude/hooks/x.sh", "cat docs/plans/*/MEMORY.md > found; false")
    )
    hooks = Path(machine.environ["HOME"]) / ".claude" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "x.sh").write_text(block_first(1, "from home"))
    for plan in ("a", "b"):
        (project / "docs" / "plans" / plan).mkdir(parents=True)
        (project / "docs" / "plans" / plan / "MEMORY.md").write_text(f"{plan}\n")
    agent = configured_session_on(machine, project, "answer {n}")
    agent.play()
    assert (agent.heard()[-1], lines(project / "found")) == (
        "[Stop hook requested continuation]\nfrom home",
        ["a", "b"],
    )


@pytest.mark.req("S3-45")
def test_document_000s_own_hook_blocks_with_exit_two(project: Path, machine: Machine) -> None:
    hook = SEEDS / "000_exit_2.sh"
    write_settings(project, "mux", stop_hooks(f"[ -e once ] || {{ touch once; bash {hook}; }}"))
    agent = configured_session_on(machine, project, "answer {n}")
    agent.play()
    said = "Error: Tests not run. Please run make test before stopping"
    assert agent.heard()[-1] == f"[Stop hook requested continuation]\n{said}"


@pytest.mark.req("U-11")
def test_a_sound_of_a_stop_hook_is_for_the_main_agent_only_and_plays_on_after_the_turn(
    project: Path, machine: Machine
) -> None:
    stop = (
        "echo $TURNGATE_EVENT >> asked; "
        "(while [ ! -e go ]; do sleep 0.02; done; echo yes > played) >/dev/null 2>&1 & true"
    )
    work = {"tool": "Task", "input": {"prompt": "count", "run_in_background": False}}
    agent = scripted_session_on(machine, project, work, "done", sub=["counted"], stop=stop)
    result = agent.play()
    assert (result.outcome, agent.heard()[-1]) == ("completed", "tool: counted")
    assert (lines(project / "asked"), (project / "played").exists()) == (["Stop"], False)
    (project / "go").touch()
    assert wait_for_file_sync(project / "played") == "yes"


@pytest.mark.req("S0-26")
def test_in_mux_the_transcript_lies_where_document_000_says(
    project: Path, home: Path, machine: Machine
) -> None:
    write_settings(project, "mux", stop_hooks(SAVE_INPUT))
    agent = configured_session_on(machine, project, "done", session_id="workspace-abc123")
    agent.play()
    path = f"{home}/.mux/sessions/workspace-abc123/chat.jsonl"
    assert (saved_inputs(project, "transcript_path"), Path(path).is_file()) == (
        [agent.path_for_hooks(path)],
        True,
    )


# Interrupts


async def interrupted(agent: ScriptedSession, when: Callable[[], Any]) -> TurnResult:
    """Sends, and interrupts from outside as soon as `when` is over."""
    turn = asyncio.create_task(agent.session.send("go"))
    await asyncio.wait_for(when(), HANG_TIMEOUT_S)
    agent.session.interrupt()
    return await turn


async def and_a_while(agent: ScriptedSession, when: Callable[[], Any]) -> tuple[TurnResult, int]:
    """The result, and how many events came later, when all was over."""
    async with agent.session:
        result = await interrupted(agent, when)
        told = len(agent.events)
        await asyncio.sleep(0.3)
        return result, len(agent.events) - told


def asked(agent: ScriptedSession) -> Callable[[], Any]:
    async def wait() -> None:
        while not agent.model.requests:
            await asyncio.sleep(0.01)

    return wait


INTERRUPTED = ("interrupted", "interrupt", None)


@pytest.mark.req("S0-21", "S0-71", "S0-99", "S0-102")
@pytest.mark.parametrize("slow", [{"delay": 30}, {"word_delay": 30}])
def test_an_interrupt_while_the_model_answers_asks_no_hook(
    project: Path, slow: dict[str, Any], machine: Machine
) -> None:
    write_settings(project, "mux", stop_hooks(SAVE_INPUT))
    agent = configured_session_on(machine, project, {"text": "a long answer that never ends", **slow})
    result, later = machine.run(and_a_while(agent, asked(agent)))
    assert (ended(result), len(agent.model.requests), later, lines(project / "seen"), result.hook_runs) == (
        INTERRUPTED,
        1,
        0,
        [],
        (),
    )
    assert agent.events[-1] == TurnEnd(result)


@pytest.mark.req("S0-102")
def test_an_interrupt_while_a_tool_runs_ends_the_tool(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, bash(hang()), "done", stop=SAVE_INPUT, allow=["Bash"])
    result, later = machine.run(and_a_while(agent, lambda: wait_for_file(project / "pid")))
    assert (ended(result), len(agent.model.requests), later, lines(project / "seen")) == (
        INTERRUPTED,
        1,
        0,
        [],
    )
    assert not survives((project / "pid").read_text().strip())


@pytest.mark.req("S0-102", "C-29", "S0-105")
@pytest.mark.parametrize("blocking", [False, True])
def test_an_interrupt_while_a_hook_runs_ends_the_hook_and_the_turn(
    project: Path, blocking: bool, machine: Machine
) -> None:
    agent = scripted_session_on(machine, project, "done", stop=CommandHook(hang(), blocking=blocking))
    result, later = machine.run(and_a_while(agent, lambda: wait_for_file(project / "pid")))
    assert (ended(result), result.result, len(agent.model.requests), later) == (INTERRUPTED, "done", 1, 0)
    assert not survives((project / "pid").read_text().strip())


@pytest.mark.req("S0-102", "C-33")
def test_an_interrupt_while_a_continuation_is_queued_drops_it(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine, project, "answer {n}", stop=BLOCK_COMMAND, listen=on_first(Continuation, Session.interrupt)
    )
    result = agent.play()
    assert (ended(result), len(agent.model.requests), agent.session.queued) == (INTERRUPTED, 1, 0)


@pytest.mark.req("S0-102")
def test_an_interrupt_while_a_continuation_is_answered_ends_it(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine, project, "one", {"text": "two", "delay": 30}, stop=f"tee -a seen >/dev/null; {BLOCK_COMMAND}"
    )

    async def continued() -> None:
        while len(agent.model.requests) < 2:
            await asyncio.sleep(0.01)

    result, later = machine.run(and_a_while(agent, continued))
    assert (ended(result), result.result, result.continuations, len(saved_inputs(project)), later) == (
        INTERRUPTED,
        "one",
        1,
        1,
        0,
    )


@pytest.mark.req("S0-71", "C-33")
def test_an_interrupt_keeps_what_the_user_wrote_and_it_comes_first_in_the_next_turn(project: Path) -> None:
    agent = scripted_session(project, {"text": "one", "delay": 30}, "answer {n}")

    async def both() -> TurnResult:
        async with agent.session:
            turn = asyncio.create_task(agent.session.send("first"))
            await asked(agent)()
            agent.session.queue("second")
            agent.session.interrupt()
            await turn
            assert agent.session.queued == 1
            return await agent.session.send("third")

    asyncio.run(both())
    assert agent.heard() == ["first", "second", "agent: answer 2", "third"]


@pytest.mark.req("S0-102")
def test_an_interrupt_at_a_continuation_asks_the_model_nothing_even_if_the_user_wrote_something(
    project: Path, machine: Machine
) -> None:
    def write_and_interrupt(session: Session) -> None:
        session.queue("second")
        session.interrupt()

    listen = on_first(Continuation, write_and_interrupt)
    agent = scripted_session_on(machine, project, "answer {n}", stop=BLOCK_COMMAND, listen=listen)
    result = agent.play("first")
    assert (ended(result), len(agent.model.requests), agent.session.queued) == (INTERRUPTED, 1, 1)


@pytest.mark.req("S0-102")
def test_an_interrupt_between_two_tools_lets_the_second_one_do_nothing(
    project: Path, machine: Machine
) -> None:
    inputs = [{"file_path": name, "content": "x"} for name in ("one.txt", "two.txt")]
    tools = [{"name": "Write", "input": each} for each in inputs]
    listen = on_first(ToolFinished, Session.interrupt)
    result = scripted_session_on(
        machine, project, {"tools": tools}, permission_mode="acceptEdits", listen=listen
    ).play()
    assert (ended(result), (project / "one.txt").exists(), (project / "two.txt").exists()) == (
        INTERRUPTED,
        True,
        False,
    )


@pytest.mark.req("S0-102")
def test_a_late_result_of_a_hook_revives_nothing(project: Path, machine: Machine) -> None:
    returned: list[str] = []

    def slow(_event: object) -> Block:
        time.sleep(0.4)
        returned.append("late")
        return Block("go on")

    agent = scripted_session_on(machine, project, "answer {n}", stop=CallbackHook(slow))

    async def hook_runs() -> None:
        while not agent.of(HookStarted):
            await asyncio.sleep(0.01)

    async def all_of_it() -> TurnResult:
        async with agent.session:
            result = await interrupted(agent, hook_runs)
            while not returned:
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.1)
            return result

    result = machine.run(all_of_it())
    assert (ended(result), len(agent.model.requests), agent.events[-1]) == (INTERRUPTED, 1, TurnEnd(result))


@pytest.mark.req("S0-102")
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"])
def test_an_interrupt_ends_the_turn_while_a_hook_of_another_event_runs(
    project: Path, event: str, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, bash("true"), "done", rules=[rule(hang(), event)], allow=["Bash"]
    )

    async def all_of_it() -> TurnResult:
        try:
            return await interrupted(agent, lambda: wait_for_file(project / "pid"))
        finally:
            await agent.session.close()

    result = machine.run(asyncio.wait_for(all_of_it(), HANG_TIMEOUT_S))
    assert (ended(result), len(agent.model.requests) <= 1) == (INTERRUPTED, True)
    assert not survives((project / "pid").read_text().strip())


@pytest.mark.req("S0-102")
@pytest.mark.parametrize(
    ("reply", "rules"),
    [
        (bash(hang(), text="first"), []),
        ({"tools": [{"name": "Bash", "input": {"command": c}} for c in ("true", hang())]}, []),
        (bash("true"), [rule(hang(), "PreToolUse")]),
    ],
    ids=["one tool", "second of two tools", "its hook"],
)
def test_after_an_interrupted_tool_every_tool_call_has_its_result(
    project: Path, reply: dict[str, Any], rules: list[Any], machine: Machine
) -> None:
    """Providers refuse a conversation in which one is missing."""
    agent = scripted_session_on(machine, project, reply, "done", rules=rules, allow=["Bash"])

    async def both() -> None:
        async with agent.session:
            await interrupted(agent, lambda: wait_for_file(project / "pid"))
            await agent.session.send("go on")

    machine.run(both())
    assert unanswered(agent.model.requests[-1]) == []


def unanswered(request: ModelRequest) -> list[str]:
    """The tool calls that are not followed by their results."""
    found = []
    for message, follower in zip(request.messages, (*request.messages[1:], None), strict=True):
        if isinstance(message, Reply):
            results = follower.results if isinstance(follower, ToolResults) else ()
            found += [u.id for u in message.tool_uses if u.id not in {r.tool_use_id for r in results}]
    return found


@pytest.mark.req("S0-102")
def test_an_interrupt_outside_of_a_turn_does_nothing(project: Path) -> None:
    agent = scripted_session(project, "done")

    async def both() -> TurnResult:
        async with agent.session:
            agent.session.interrupt()
            return await agent.session.send("go")

    assert ended(asyncio.run(both())) == ("completed", "allowed", None)


# Cancellation


@pytest.mark.req("S0-102")
@pytest.mark.parametrize("phase", ["model", "tool", "hook"])
def test_cancelling_the_wait_ends_the_turn_and_the_cancellation_passes(
    project: Path, phase: str, machine: Machine
) -> None:
    replies: dict[str, Any] = {"model": {"text": "x", "delay": 30}, "tool": bash(hang()), "hook": "done"}
    stop = hang() if phase == "hook" else "true"
    agent = scripted_session_on(machine, project, replies[phase], stop=stop, allow=["Bash"])
    when = asked(agent) if phase == "model" else lambda: wait_for_file(project / "pid")

    async def cancel() -> int:
        async with agent.session:
            turn = asyncio.create_task(agent.session.send("go"))
            await asyncio.wait_for(when(), HANG_TIMEOUT_S)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            told = len(agent.events)
            await asyncio.sleep(0.2)
            return len(agent.events) - told

    later = machine.run(cancel())
    [end] = agent.of(TurnEnd)
    assert (ended(end.result), len(agent.model.requests), later) == (INTERRUPTED, 1, 0)
    assert phase == "model" or not survives((project / "pid").read_text().strip())
    ends = [r["ended_by"] for r in records(agent.session.transcript_path) if r["type"] == "turn_end"]
    assert ends == ["interrupt"]


def test_a_cancellation_passes_also_when_the_user_interrupts_at_the_same_time(project: Path) -> None:
    agent = scripted_session(project, {"text": "x", "delay": 30})

    async def both() -> None:
        async with agent.session:
            turn = asyncio.create_task(agent.session.send("go"))
            await asked(agent)()
            agent.session.interrupt()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn

    asyncio.run(both())


def test_a_session_whose_start_was_cancelled_lets_go_of_its_lock(project: Path, machine: Machine) -> None:
    rules = [rule(hang(), "SessionStart")]
    agent = scripted_session_on(machine, project, rules=rules, session_id="s")

    async def cancel() -> None:
        opening = asyncio.create_task(agent.session.open())
        await wait_for_file(project / "pid")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    machine.run(cancel())
    assert ended(scripted_session_on(machine, project, "done", session_id="s").play()) == (
        "completed",
        "allowed",
        None,
    )


def test_an_interrupt_while_a_long_past_is_read_ends_the_turn_and_the_session_can_be_closed(
    project: Path,
) -> None:
    path = Path(scripted_session(project, "done", session_id="s").play().transcript_path)
    path.write_text(path.read_text() * 20_000)
    agent = scripted_session(project, "done", session_id="s")

    async def interrupt() -> TurnResult:
        turn = asyncio.create_task(agent.session.send("go"))
        await asyncio.sleep(0.05)
        agent.session.interrupt()
        try:
            return await turn
        finally:
            await agent.session.close()

    assert (ended(asyncio.run(interrupt())), agent.model.requests) == (INTERRUPTED, [])
    path.write_text("")
    assert ended(scripted_session(project, "done", session_id="s").play()) == ("completed", "allowed", None)


# Misuse


def test_a_second_send_in_the_middle_of_a_turn_is_rejected(project: Path) -> None:
    agent = scripted_session(project, {"text": "x", "delay": 30})

    async def both() -> None:
        async with agent.session:
            turn = asyncio.create_task(agent.session.send("go"))
            await asked(agent)()
            with pytest.raises(UsageError, match="in the middle of a turn"):
                await agent.session.send("again")
            agent.session.interrupt()
            await turn

    asyncio.run(both())
    assert len(agent.model.requests) == 1


# Several sessions


@pytest.mark.req("S0-103")
def test_a_hook_that_hangs_in_one_session_does_not_hold_up_another(tmp_path: Path, machine: Machine) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    order: list[str] = []
    stuck = scripted_session_on(
        machine, one, "done", stop=hang(), listen=lambda e, _: order.append(f"stuck {type(e).__name__}")
    )
    free = scripted_session_on(
        machine,
        two,
        "answer {n}",
        stop=block_first(3),
        listen=lambda e, _: order.append(f"free {type(e).__name__}"),
    )

    async def both() -> tuple[TurnResult, TurnResult]:
        async with stuck.session, free.session:
            hanging = asyncio.create_task(stuck.session.send("go"))
            await wait_for_file(one / "pid")
            order.append("hangs")
            done = await free.session.send("go")
            stuck.session.interrupt()
            return await hanging, done

    held, done = machine.run(both())
    assert (ended(held), ended(done), done.continuations) == (INTERRUPTED, ("completed", "allowed", None), 3)
    meanwhile = order[order.index("hangs") + 1 : order.index("free TurnEnd") + 1]
    assert {event.split()[0] for event in meanwhile} == {"free"}
    assert meanwhile.count("free HookFinished") == 4
    assert order[-1] == "stuck TurnEnd"


@pytest.mark.req("S0-103")
def test_the_event_loop_keeps_running_while_a_hook_runs(project: Path, machine: Machine) -> None:
    """The hook ends only after the loop has done something else meanwhile."""
    agent = scripted_session_on(
        machine, project, "done", stop="echo $$ > pid; while [ ! -e ticked ]; do sleep 0.02; done"
    )

    async def tick() -> None:
        await wait_for_file(project / "pid")
        (project / "ticked").touch()

    async def both() -> TurnResult:
        async with agent.session:
            result, _ = await asyncio.gather(agent.session.send("go"), tick())
            return result

    assert ended(machine.run(both())) == ("completed", "allowed", None)


# Mended after a review


def test_a_turn_can_be_read_as_a_stream_that_ends_with_its_end(project: Path) -> None:
    async def names() -> list[str]:
        session = scripted_session(project, "all done").session
        async with session:
            return [type(event).__name__ async for event in session.stream("go")]

    assert asyncio.run(names()) == ["TextDelta", "StreamEnd", "TurnEnd"]


def test_after_a_question_no_other_tool_of_the_same_answer_runs(project: Path, machine: Machine) -> None:
    tools = [
        {"name": "AskUser", "input": {"question": "which?"}},
        {"name": "Bash", "input": {"command": "touch ran"}},
    ]
    agent = scripted_session_on(machine, project, {"tools": tools}, allow={"Bash"})
    assert (ended(agent.play())[0], (project / "ran").exists()) == ("waiting", False)


def test_leaving_a_session_ends_its_turn(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, {"text": "x", "delay": 30})

    async def leave() -> str:
        async with agent.session:
            turn = asyncio.create_task(agent.session.send("go"))
            await asked(agent)()
        return (await turn).ended_by

    assert machine.run(leave()) == "interrupt"
