"""A session's past: resumed after a kill, held by one process, listed and pruned."""

import asyncio
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.cli import start_in_project, turngate
from tests.support.sessions import (
    ScriptedSession,
    block_first,
    configured_session,
    hang,
    message_text,
    records,
    saved_inputs,
    scripted_session,
    wait_for_file_sync,
    without_starts,
)
from tests.support.subagents import parent
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program
from turngate.agent.session_store import SessionLock, SessionSummary, list_sessions, prune_sessions
from turngate.core.conversation.messages import (
    Message,
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolUse,
    UserMessage,
)
from turngate.errors import SessionBusy, UsageError
from turngate.state.paths import main_transcript_path
from turngate.transcript.resume import StoredConversation, read_conversation
from turngate.transcript.writer import Transcript

TOLD = "[Stop hook requested continuation]\nrun the tests"


def command(project: Path, prompt: str, replies: list[Any]) -> list[str]:
    """`turngate run -p` in session x."""
    script = project.parent / "script.json"
    script.write_text(json.dumps({"main": replies}))
    named = ["--session", "x", "--model", f"scripted:{script}"]
    return ["run", "-p", prompt, *named, "--allow", "Bash", "--output-format", "json"]


def running(project: Path, prompt: str, replies: list[Any]) -> AbstractContextManager[Program]:
    """The same as a process of its own."""
    return start_in_project(project, *command(project, prompt, replies))


# Killed in the middle


HANG_AT_SECOND = f"tee -a seen >/dev/null; [ -e released ] && exit 0; {block_first(1)}; {hang()}"


def killed_at_the_second_stop(project: Path) -> None:
    """One tool call, one continuation, and a kill -9 while the hook runs again."""
    write_settings(project, "turngate", stop_hooks(HANG_AT_SECOND))
    tool = {"text": "looking", "tool": "Bash", "input": {"command": "echo here"}}
    with running(project, "build it", [tool, "done", "done again"]) as process:
        wait_for_file_sync(project / "pid")
        process.send_signal(signal.SIGKILL)
        process.wait()
    (project / "released").touch()


@pytest.mark.req("S0-80", "C-16")
def test_after_a_kill_the_conversation_is_whole_the_count_is_kept_and_the_prompt_is_new(
    project: Path,
) -> None:
    killed_at_the_second_stop(project)
    agent = configured_session(project, "at last", dialect="turngate", session_id="x")
    result = agent.play("and now?")
    assert agent.heard() == [
        "build it",
        "agent: looking + Bash",
        "tool: here",
        "agent: done",
        TOLD,
        "agent: done again",
        "and now?",
    ]
    assert (result.outcome, result.continuations) == ("completed", 1)
    flags = saved_inputs(project, "stop_hook_active", "continuation_count")
    assert flags == [(False, 0), (True, 1), (False, 1)]


@pytest.mark.req("S0-80", "C-16")
def test_the_turn_after_the_resumed_one_counts_from_zero(project: Path) -> None:
    killed_at_the_second_stop(project)
    configured_session(project, "at last", dialect="turngate", session_id="x").play("and now?", "once more")
    assert saved_inputs(project, "continuation_count")[-2:] == [1, 0]


@pytest.mark.req("S0-80")
def test_a_resumed_turn_has_no_more_continuations_left_than_before(project: Path) -> None:
    killed_at_the_second_stop(project)
    rules = [rule("echo 'run the tests' >&2; exit 2")]
    agent = scripted_session(project, "answer {n}", rules=rules, session_id="x")
    result = agent.play("and now?")
    assert (result.ended_by, result.continuations, len(agent.model.requests)) == ("capped", 3, 3)


@pytest.mark.req("S0-80")
def test_a_turn_that_is_killed_twice_still_has_its_count(project: Path) -> None:
    killed_at_the_second_stop(project)
    for name in ("released", "pid"):
        (project / name).unlink()
    with running(project, "and now?", ["third"]) as process:
        wait_for_file_sync(project / "pid")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert read_conversation(main_transcript_path(os.environ["TURNGATE_STATE"], "x")).continuations == 1


@pytest.mark.req("S0-80")
def test_a_reset_forgets_the_count_of_a_killed_turn(project: Path) -> None:
    killed_at_the_second_stop(project)
    agent = configured_session(project, "at last", dialect="turngate", session_id="x")

    async def reset_and_send() -> None:
        async with agent.session:
            await agent.session.reset()
            await agent.session.send("fresh")

    asyncio.run(reset_and_send())
    assert (agent.heard(), saved_inputs(project, "stop_hook_active")[-1]) == (["fresh"], False)


def test_a_tool_call_that_a_kill_left_open_gets_an_answer(project: Path) -> None:
    tools = [{"name": "Bash", "input": {"command": command}} for command in ("echo one", hang())]
    with running(project, "build it", [{"tools": tools}]) as process:
        wait_for_file_sync(project / "pid")
        process.send_signal(signal.SIGKILL)
        process.wait()
    agent = configured_session(project, "at last", dialect="turngate", session_id="x")
    agent.play("and now?")
    lost = "the session ended before this tool did"
    assert agent.heard() == ["build it", "agent: Bash + Bash", f"tool: one + {lost}", "and now?"]


# Read back


def said(path: Path, *parts: Message | dict[str, Any]) -> None:
    transcript = Transcript(str(path), "s", "/p")
    for part in parts:
        if isinstance(part, dict):
            transcript.write_record(part)
        else:
            transcript.write_message(
                part, **({"continuation": 2} if getattr(part, "origin", "") == "stop_hook" else {})
            )
    transcript.close()


CALL = Reply((ToolUse("t1", "Bash", {"command": "x"}),), "tool_use")
ANSWER = Reply((Text("done"),))
CONTINUED = UserMessage("go on", "stop_hook")
LOST = ToolResults((ToolResult("t1", "the session ended before this tool did", is_error=True),))
TWO = Reply((ToolUse("t1", "Bash", {}), ToolUse("t2", "Read", {})), "tool_use")
ONE_DONE, OTHER_DONE = ToolResults((ToolResult("t1", "one"),)), ToolResults((ToolResult("t2", "other"),))
OVER = {"type": "turn_end", "ended_by": "allowed", "notice": None}

PASTS: list[tuple[str, list[Message | dict[str, Any]], StoredConversation]] = [
    ("nothing", [], StoredConversation()),
    (
        "a finished turn",
        [UserMessage("a"), ANSWER, CONTINUED, ANSWER, OVER],
        StoredConversation((UserMessage("a"), ANSWER, CONTINUED, ANSWER), 2),
    ),
    (
        "an open turn",
        [UserMessage("a"), ANSWER, CONTINUED],
        StoredConversation((UserMessage("a"), ANSWER, CONTINUED), 2),
    ),
    (
        "a new turn after it",
        [UserMessage("a"), ANSWER, CONTINUED, ANSWER, OVER, UserMessage("b")],
        StoredConversation((UserMessage("a"), ANSWER, CONTINUED, ANSWER, UserMessage("b")), 0),
    ),
    ("an open tool call", [UserMessage("a"), CALL], StoredConversation((UserMessage("a"), CALL, LOST), 0)),
    (
        "an open tool call in the middle",
        [UserMessage("a"), CALL, UserMessage("b")],
        StoredConversation((UserMessage("a"), CALL, LOST, UserMessage("b")), 0),
    ),
    (
        "cleared",
        [UserMessage("a"), ANSWER, CONTINUED, {"type": "cleared"}, UserMessage("b")],
        StoredConversation((UserMessage("b"),), 0),
    ),
    (
        "summed up",
        [UserMessage("a"), ANSWER, UserMessage("sum", "summary"), UserMessage("b")],
        StoredConversation((UserMessage("sum", "summary"), UserMessage("b")), 0),
    ),
    (
        "results in records of their own",
        [TWO, ONE_DONE, OTHER_DONE, ANSWER],
        StoredConversation((TWO, ToolResults((*ONE_DONE.results, *OTHER_DONE.results)), ANSWER), 0),
    ),
    (
        "results in another order",
        [TWO, OTHER_DONE, ONE_DONE],
        StoredConversation((TWO, ToolResults((*ONE_DONE.results, *OTHER_DONE.results))), 0),
    ),
    (
        "one result of two",
        [TWO, OTHER_DONE, UserMessage("b")],
        StoredConversation((TWO, ToolResults((*LOST.results, *OTHER_DONE.results)), UserMessage("b")), 0),
    ),
    (
        "a word between the results",
        [TWO, ONE_DONE, UserMessage("b", "context"), OTHER_DONE],
        StoredConversation(
            (TWO, ToolResults((*ONE_DONE.results, *OTHER_DONE.results)), UserMessage("b", "context")), 0
        ),
    ),
    (
        "a result twice",
        [CALL, ONE_DONE, ToolResults((ToolResult("t1", "late"),))],
        StoredConversation((CALL, ONE_DONE), 0),
    ),
    (
        "a result without its call",
        [UserMessage("a"), ONE_DONE, CALL, OTHER_DONE],
        StoredConversation((UserMessage("a"), CALL, LOST), 0),
    ),
    ("a result after another reply", [CALL, ANSWER, ONE_DONE], StoredConversation((CALL, LOST, ANSWER), 0)),
    (
        "other records",
        [{"type": "hook_output", "stdout": "x"}, UserMessage("a"), {"type": "odd"}],
        StoredConversation((UserMessage("a"),), 0),
    ),
]


@pytest.mark.req("S0-80")
@pytest.mark.parametrize(("parts", "past"), [case[1:] for case in PASTS], ids=[case[0] for case in PASTS])
def test_a_transcript_says_where_the_conversation_stands(
    tmp_path: Path, parts: list[Message | dict[str, Any]], past: StoredConversation
) -> None:
    said(tmp_path / "chat.jsonl", *parts)
    read = read_conversation(str(tmp_path / "chat.jsonl"))
    assert (read.messages, read.continuations) == (past.messages, past.continuations)


def test_half_a_line_and_garbage_do_not_stop_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    said(path, UserMessage("a"), ANSWER)
    with path.open("ab") as file:
        file.write(b'\xff\xfe\x00{\n[]\n5\n{"type":"user","message":{"role":"user","content":"half')
    assert read_conversation(str(path)).messages == (UserMessage("a"), ANSWER)


ODD = [
    '{"type":"user","message":{"role":"user","content":[{"type":"tool_result"}]}}',
    '{"type":"user","message":{"role":"user","content":5}}',
    '{"type":"assistant","message":{"role":"assistant","content":5}}',
    '{"type":"assistant","message":{"role":"assistant","content":[],"usage":5}}',
    '{"type":"user","origin":"stop_hook","continuation":"x","message":{"role":"user","content":"hi"}}',
]


@pytest.mark.parametrize("line", ODD)
def test_a_record_of_another_program_does_not_prevent_a_resume(tmp_path: Path, line: str) -> None:
    path = tmp_path / "chat.jsonl"
    said(path, UserMessage("a"), ANSWER)
    with path.open("a") as file:
        file.write(line + "\n")
    assert read_conversation(str(path)).messages[:2] == (UserMessage("a"), ANSWER)


@pytest.mark.parametrize("count", [-1, 10**30, True, 1.5, None, "2", [2]])
def test_an_impossible_count_is_none(tmp_path: Path, count: Any) -> None:
    path = tmp_path / "chat.jsonl"
    record = {"type": "user", "continuation": count, "message": {"role": "user", "content": "hi"}}
    path.write_text(json.dumps(record) + "\n")
    assert read_conversation(str(path)) == StoredConversation((UserMessage("hi"),), 0, is_unfinished=True)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["t1", "user", "summary"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
IDS = st.sampled_from(["t1", "t2", "t3"]) | ANYTHING
BLOCKS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": ANYTHING}),
    st.fixed_dictionaries(
        {"type": st.just("tool_use"), "id": IDS, "name": st.just("Bash") | ANYTHING, "input": ANYTHING}
    ),
    st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": IDS, "content": ANYTHING}),
    ANYTHING,
)
RECORDS = ANYTHING | st.fixed_dictionaries(
    {
        "type": st.sampled_from(["user", "assistant"]) | ANYTHING,
        "message": st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "assistant"]) | ANYTHING,
                "content": st.lists(BLOCKS, max_size=4) | ANYTHING,
            },
            optional={key: ANYTHING for key in ("usage", "stop_reason", "model", "id")},
        )
        | ANYTHING,
    },
    optional={key: ANYTHING for key in ("origin", "continuation", "uuid", "isMeta")},
)


@given(st.lists(RECORDS, max_size=8))
def test_whatever_was_written_each_call_has_one_result_right_after_it(
    tmp_path_factory: pytest.TempPathFactory, written: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("chat") / "chat.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in written))
    messages = read_conversation(str(path)).messages
    calls = [
        (place + 1, [use.id for use in message.tool_uses])
        for place, message in enumerate(messages)
        if isinstance(message, Reply) and message.tool_uses
    ]
    answers = [
        (place, [result.tool_use_id for result in message.results])
        for place, message in enumerate(messages)
        if isinstance(message, ToolResults)
    ]
    assert (answers, [len(set(ids)) for _, ids in calls]) == (calls, [len(ids) for _, ids in calls])


def test_a_session_that_is_opened_again_continues_where_it_was(project: Path) -> None:
    scripted_session(project, "one", session_id="x").play("first")
    again = scripted_session(project, "two", session_id="x")
    again.play("second")
    assert again.heard() == ["first", "agent: one", "second"]


# One process at a time


def test_a_second_process_gets_the_id_of_the_process_that_holds_the_session(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(hang()))
    with running(project, "build it", ["done"]) as first:
        wait_for_file_sync(project / "pid")
        words = command(project, "me too", ["done"])
        assert turngate(*words, "--project", str(project)) == (
            64,
            "",
            f"turngate: session x is in use by process {first.pid}; end that process, or start another session\n",
        )
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=HANG_TIMEOUT_S) == 130


def test_a_second_session_in_the_same_process_is_rejected_too(project: Path) -> None:
    one, two = (scripted_session(project, "done", session_id="x") for _ in range(2))

    async def both() -> None:
        async with one.session:
            await one.session.open()
            with pytest.raises(SessionBusy, match=f"session x is in use by process {os.getpid()};"):
                await two.session.send("go")
        await two.turns("go")

    asyncio.run(both())
    assert len(two.model.requests) == 1


def test_a_lock_dies_with_its_owner(project: Path) -> None:
    killed_at_the_second_stop(project)
    lock = SessionLock(os.path.join(os.environ["TURNGATE_STATE"], "sessions", "x", "lock"))
    lock.acquire()
    lock.release()


# Lists


def test_sessions_are_listed_newest_first_with_what_was_asked(project: Path, state: Path) -> None:
    for number, prompt in enumerate(("first   thing\nto do", "x" * 200)):
        agent = scripted_session(
            project, "done", session_id=f"s-{number}", rules=[rule("echo hello", "SessionStart")]
        )
        agent.play(prompt, "and more")
        os.utime(agent.session.transcript_path, (1000 + number, 1000 + number))
    paths = [main_transcript_path(str(state), f"s-{number}") for number in (0, 1)]
    sizes = [os.path.getsize(path) for path in paths]
    assert list_sessions(str(state)) == [
        SessionSummary("s-1", 1001, sizes[1], "x" * 79 + "…", str(project), paths[1]),
        SessionSummary("s-0", 1000, sizes[0], "first thing to do", str(project), paths[0]),
    ]


def test_a_transcript_of_a_hundred_gigabytes_does_not_prevent_the_list(project: Path, state: Path) -> None:
    scripted_session(project, "done", session_id="small").play("hello")
    huge = Path(main_transcript_path(str(state), "huge"))
    huge.parent.mkdir(parents=True)
    huge.touch()
    prompt = json.dumps({"type": "user", "message": {"role": "user", "content": "late"}})
    huge.write_text("x\n" * 600_000 + prompt + "\n")
    os.truncate(huge, 100 * 1024**3)
    assert {session.session_id: session.first for session in list_sessions(str(state))} == {
        "small": "hello",
        "huge": "",
    }


def test_without_any_session_the_list_is_empty(state: Path) -> None:
    assert (list_sessions(str(state)), prune_sessions(str(state), 30)) == ([], [])


def age(path: Path, days: float) -> None:
    then = time.time() - days * 86400
    for each in (*path.rglob("*"), path):
        os.utime(each, (then, then))


def test_old_sessions_are_removed_and_young_or_held_ones_are_kept(project: Path, state: Path) -> None:
    for name in ("old", "young", "held"):
        scripted_session(project, "done", session_id=name).play()
    for name, days in (("old", 31), ("young", 29), ("held", 31)):
        age(state / "sessions" / name, days)
    holder = SessionLock(str(state / "sessions" / "held" / "lock"))
    holder.acquire()
    age(state / "sessions" / "held", 31)
    try:
        assert prune_sessions(str(state), 30) == ["old"]
    finally:
        holder.release()
    assert sorted(path.name for path in (state / "sessions").iterdir()) == ["held", "young"]


def test_a_stray_file_does_not_stop_the_pruning(project: Path, state: Path) -> None:
    scripted_session(project, "done", session_id="old").play()
    age(state / "sessions" / "old", 31)
    (state / "sessions" / ".DS_Store").touch()
    age(state / "sessions", 31)
    assert prune_sessions(str(state), 30) == ["old"]


def test_a_folder_that_vanishes_meanwhile_does_not_stop_the_pruning(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "old"):
        scripted_session(project, "done", session_id=name).play()
        age(state / "sessions" / name, 31)
    known = [str(state / "sessions" / name) for name in ("gone", "old")]
    monkeypatch.setattr("turngate.agent.session_store._folders", lambda _: known)
    shutil.rmtree(state / "sessions" / "gone")
    assert prune_sessions(str(state), 30) == ["old"]


def test_a_session_that_is_used_stays_young(project: Path, state: Path) -> None:
    scripted_session(project, "done", session_id="s").play()
    age(state / "sessions" / "s", 31)
    scripted_session(project, "done", session_id="s").play()
    assert prune_sessions(str(state), 30) == []


@pytest.mark.req("X-07")
def test_what_a_session_remembers_lies_in_its_own_folder_and_not_in_the_project(
    project: Path, state: Path
) -> None:
    agents: list[ScriptedSession] = [
        scripted_session(project, "done", stop="true", session_id=name) for name in ("a", "b")
    ]
    for agent in agents:
        agent.play()
    assert [agent.session.transcript_path for agent in agents] == [
        f"{state}/sessions/{name}/chat.jsonl" for name in ("a", "b")
    ]
    assert list(project.iterdir()) == []
    kept = [without_starts(records(f"{state}/sessions/{name}/journal.jsonl")) for name in ("a", "b")]
    assert list(map(len, kept)) == [3, 3]


@pytest.mark.req("X-07")
def test_what_a_subagent_and_its_gates_remember_lies_in_the_state_folder(project: Path, state: Path) -> None:
    """The count of redirects is in the registry, so two sessions of one project do not share it."""
    again = "echo again >&2; exit 2"
    scenes = [parent(project, rules=[rule(again, "SubagentStop")], session_id=name) for name in ("a", "b")]
    for scene in scenes:
        scene.play()
    assert [max(run.steer_count for run in scene.runs()) for scene in scenes] == [3, 3]
    assert list(project.iterdir()) == []
    transcripts = {scene.registered[0].transcript for scene in scenes}
    assert {str(Path(path).parent) for path in transcripts} == {
        f"{state}/sessions/{name}/subagents" for name in ("a", "b")
    }


# A state folder that cannot be used


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/full")])
def test_a_transcript_that_is_no_plain_file_is_rejected(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    path = tmp_path / "chat.jsonl"
    make(path)
    for use in (lambda: read_conversation(str(path)), lambda: Transcript(str(path), "s", "/p")):
        with pytest.raises(UsageError, match=f"^{path} cannot be used: .*; repair it, or set TURNGATE_STATE"):
            use()


def test_the_conversation_is_kept_in_the_session_too(project: Path) -> None:
    agent = scripted_session(project, "done")
    agent.play("go")
    assert [message_text(message) for message in agent.session.messages] == ["go", "agent: done"]
