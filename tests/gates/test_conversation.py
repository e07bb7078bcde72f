"""What gates read of a conversation."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.transcripts import TranscriptBuilder, talk
from turngate.core.conversation.messages import (
    Reply,
    ToolResult,
    ToolResults,
    ToolUse,
    Usage,
    UserMessage,
)
from turngate.core.events.events import StopEvent, Subagent
from turngate.gates.conversation import (
    ToolCall,
    TranscriptUnreadable,
    UsedTokens,
    UserPrompt,
    describe_wait,
    find_prompt,
    last_answer,
    measure_activity,
    read_calls,
    read_calls_of,
    read_usage,
)
from turngate.gates.gate import GateContext
from turngate.gates.run_commands import ProjectCommands
from turngate.gates.session_changes import first_time
from turngate.gates.stored_state import GateState
from turngate.shells.local import LocalShell
from turngate.transcript.writer import Transcript

NOW = 1_800_000_000.0
SHELL_TASK = {"id": "b1", "type": "shell", "status": "running", "command": "make serve"}
AGENT_TASK = {"id": "a1", "type": "subagent", "status": "running", "agent_type": "explorer"}


def stop(builder: TranscriptBuilder, tmp_path: Path, **fields: Any) -> StopEvent:
    return StopEvent(session_id="s", transcript_path=builder.write(tmp_path / "t.jsonl"), **fields)


def wait_of(event: StopEvent, tmp_path: Path, now: float = NOW) -> str | None:
    async def describe() -> str | None:
        context = GateContext(
            project=str(tmp_path),
            event=event,
            commands=ProjectCommands(LocalShell(), str(tmp_path), {}, None),
            state=GateState(str(tmp_path / "state.json")),
            now=now,
        )
        return describe_wait(context)

    return asyncio.run(describe())


# Calls


def test_calls_come_with_their_results_in_order(tmp_path: Path) -> None:
    builder = talk().runs("pytest", "2 passed").edits("/p/a.py").runs("make", "no rule", code=2)
    builder.calls("Bash", {"command": "sleep"}, None)
    assert [(call.name, call.result, call.is_error) for call in read_calls(stop(builder, tmp_path))] == [
        ("Bash", "2 passed", False),
        ("Edit", "The file has been updated.", False),
        ("Bash", "Exit code 2\nno rule", True),
        ("Bash", None, False),
    ]


def test_calls_of_our_own_transcripts_are_read(tmp_path: Path) -> None:
    transcript = Transcript(str(tmp_path / "chat.jsonl"), "s", str(tmp_path))
    transcript.write_message(UserMessage("go"))
    call = ToolUse("c1", "Bash", {"command": "make"})
    transcript.write_message(Reply((call,), usage=Usage(input_tokens=3, output_tokens=4), id="r1"))
    transcript.write_message(ToolResults((ToolResult("c1", "exit code 2\nno rule", is_error=True),)))
    transcript.write_message(UserMessage("DONE tests pass", "stop_hook"))
    transcript.close()
    event = StopEvent(session_id="s", transcript_path=transcript.path)
    expected = ToolCall(
        name="Bash", input={"command": "make"}, id="c1", result="exit code 2\nno rule", is_error=True
    )
    assert read_calls(event) == (expected,)
    assert read_usage(event) == UsedTokens(7, 1)
    prompt = find_prompt(event)
    assert prompt is not None
    assert prompt.offset == 0


def test_a_result_belongs_to_the_latest_call_before_it(tmp_path: Path) -> None:
    """Some models use an id again in every turn."""
    again = [line.replace(b"toolu_1", b"toolu_9") for line in talk().runs("false", code=1).lines]
    builder = talk().calls("TodoWrite", {"todos": []}, "ok")
    builder.lines = [line.replace(b"toolu_1", b"toolu_9") for line in builder.lines] + again
    event = stop(builder, tmp_path)
    assert [(call.name, call.is_error) for call in read_calls(event)] == [
        ("TodoWrite", False),
        ("Bash", True),
    ]
    assert [call.is_error for call in read_calls_of(event, ("TodoWrite",))] == [False]


def test_calls_before_the_conversation_was_cleared_do_not_count(tmp_path: Path) -> None:
    builder = talk().runs("one").raw(b'{"type":"cleared"}').runs("two")
    assert [call.input["command"] for call in read_calls(stop(builder, tmp_path))] == ["two"]


def test_a_subagents_calls_are_those_of_its_own_transcript(tmp_path: Path) -> None:
    record = {
        "isSidechain": True,
        "message": {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": {}}],
        },
    }
    own = TranscriptBuilder().raw(json.dumps(record).encode()).write(tmp_path / "sub.jsonl")
    subagent = Subagent(id="a1", transcript_path=own)
    event = stop(talk().runs("main"), tmp_path, subagent=subagent)
    assert read_calls(event) == (ToolCall(name="Bash", input={}, id="1"),)


# The user's messages


NOT_PROMPTS: Mapping[str, TranscriptBuilder] = {
    "feedback of a hook": talk().feedback("Run and verify that tests pass before stopping"),
    "feedback that is not marked": talk().user("Stop hook feedback:\nplease go on"),
    "our own continuation": talk().user("go on", isMeta=True, origin="stop_hook"),
    "a notice of the host": talk().user("<task-notification>\nb1 ended</task-notification>"),
    "an origin that is not the user": talk().user("b1 ended", origin={"kind": "task-notification"}),
    "a summary": talk().user("This session continues …", isCompactSummary=True),
    "a result": talk().runs("ls", "please go on"),
    "a subagent's prompt": talk().user("find it", isSidechain=True),
    "wrong types": talk().raw(b'{"type":"user","message":{"role":"user","content":{"a":1}}}'),
}


@pytest.mark.req("T-2")
@pytest.mark.parametrize("builder", NOT_PROMPTS.values(), ids=NOT_PROMPTS.keys())
def test_only_what_the_user_wrote_is_a_prompt(builder: TranscriptBuilder, tmp_path: Path) -> None:
    event = stop(builder, tmp_path)
    assert find_prompt(event) == UserPrompt(0, 1_794_819_601.0)


def test_the_last_prompt_is_found(tmp_path: Path) -> None:
    builder = talk().says("ok")
    offset = sum(len(line) + 1 for line in builder.lines)
    builder.user("now the next").runs("ls")
    assert find_prompt(stop(builder, tmp_path)) == UserPrompt(offset, 1_794_819_603.0)


@pytest.mark.req("T-2")
def test_the_last_answer_is_the_models_own(tmp_path: Path) -> None:
    builder = (
        talk().says("All tests pass.").feedback("DONE").says("API Error: overloaded", model="<synthetic>")
    )
    assert last_answer(stop(builder, tmp_path)) == "All tests pass."
    assert last_answer(stop(builder, tmp_path, last_assistant_message="Now.")) == "Now."
    assert last_answer(StopEvent(session_id="s", transcript_path=str(tmp_path / "none"))) == ""


def test_the_conversation_begins_with_its_first_time(tmp_path: Path) -> None:
    builder = TranscriptBuilder().raw(b'{"type":"summary","timestamp":7}').user("go").user("on")
    assert first_time(stop(builder, tmp_path).stopping_transcript) == 1_794_819_601.0


# Usage


def test_several_lines_of_one_message_count_once(tmp_path: Path) -> None:
    first = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 50}
    last = {**first, "output_tokens": 20, "service_tier": "standard", "cache_creation": {"x": 9}}
    builder = talk().says("a", id="m1", usage=first).says("b", id="m1", usage=last)
    builder.says(
        "c", id="m2", usage={"input_tokens": "7", "output_tokens": -3, "cache_read_input_tokens": True}
    )
    builder.says("d", id=None, usage=[1]).says("e", id=5, usage={"output_tokens": 3})
    assert read_usage(stop(builder, tmp_path)) == UsedTokens(173, 4)


def test_usage_since_an_offset(tmp_path: Path) -> None:
    builder = talk().says("a")
    offset = sum(len(line) + 1 for line in builder.lines)
    assert read_usage(stop(builder.user("next").says("b").says("c"), tmp_path), offset) == UsedTokens(30, 2)


# Waiting


@pytest.mark.req("X-17")
@pytest.mark.parametrize("name", ["AskUser", "AskUserQuestion", "ExitPlanMode"])
def test_an_agent_with_an_open_question_waits(name: str, tmp_path: Path) -> None:
    asked = talk().runs("ls").says("One question.").calls(name, {"question": "Which one?"}, None)
    assert wait_of(stop(asked, tmp_path), tmp_path) == "a question to the user is open"
    answered = talk().calls(name, {}, "the first").says("Then I go on.")
    assert wait_of(stop(answered, tmp_path), tmp_path) is None
    for later in (
        talk().calls(name, {}, None).user("the first"),
        talk().calls(name, {}, None).says("I go on without an answer."),
    ):
        assert wait_of(stop(later, tmp_path), tmp_path) is None


@pytest.mark.req("X-17")
def test_an_agent_in_plan_mode_waits(tmp_path: Path) -> None:
    assert wait_of(stop(talk(), tmp_path, permission_mode="plan"), tmp_path) == "the agent is in plan mode"


@pytest.mark.req("X-17")
def test_an_agent_waits_for_a_subagent_but_not_forever(tmp_path: Path) -> None:
    event = stop(talk(), tmp_path, background_tasks=(AGENT_TASK,))
    assert wait_of(event, tmp_path) == "a subagent works in the background"
    assert wait_of(event, tmp_path, NOW + 3599) == "a subagent works in the background"
    assert wait_of(event, tmp_path, NOW + 3600) is None
    other = stop(talk(), tmp_path, background_tasks=(AGENT_TASK, {**AGENT_TASK, "id": "a2"}))
    assert wait_of(other, tmp_path, NOW + 3600) == "a subagent works in the background"
    assert wait_of(other, tmp_path, NOW + 3000) == "2 subagents work in the background"


@pytest.mark.req("X-17")
@pytest.mark.parametrize(
    "task",
    [SHELL_TASK, {}, {**AGENT_TASK, "status": "completed"}, {**AGENT_TASK, "type": "monitor"}, None, 7],
)
def test_an_agent_does_not_wait_for_anything_else(task: Any, tmp_path: Path) -> None:
    assert wait_of(stop(talk(), tmp_path, background_tasks=(task,)), tmp_path) is None


@pytest.mark.req("X-17")
def test_a_subagent_does_not_wait_for_the_others_that_a_host_lists(tmp_path: Path) -> None:
    own = Subagent(id="a1", transcript_path=str(tmp_path / "t.jsonl"))
    event = stop(talk(), tmp_path, background_tasks=(AGENT_TASK, {**AGENT_TASK, "id": "a2"}), subagent=own)
    assert wait_of(event, tmp_path) is None


# Activity


def test_activity_changes_with_every_tool_call_and_prompt_and_with_nothing_else(tmp_path: Path) -> None:
    def activity(conversation: TranscriptBuilder) -> str | None:
        return measure_activity(stop(conversation, tmp_path))

    one = activity(talk().runs("ls"))
    assert activity(talk().runs("ls").says("done").feedback("go on").says('{"type":"tool_use"}')) == one
    others = {
        activity(talk()),
        activity(talk().runs("ls").runs("ls")),
        activity(talk().runs("ls").user("more")),
    }
    assert len(others | {one, None}) == 5


# Hostile transcripts


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _long_line(path: Path) -> None:
    path.write_bytes(b'{"message":{"role":"user","content":"' + b"z" * 60_000_000)


def _nested(path: Path) -> None:
    path.write_bytes(b'{"message":' + b"[" * 500_000 + b"\n")


def _other_format(path: Path) -> None:
    line = b'{"role":"assistant","message":"ok","tool_calls":[{"name":"shell"}]}'
    path.write_bytes(line + b"\n")


NO_MESSAGES = "the transcript has no messages"
UNKNOWN_FORMAT = "the transcript has no messages in a format that Turngate knows"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_pipe, "the transcript cannot be read: it is not a regular file"),
        (Path.mkdir, "the transcript cannot be read: it is not a regular file"),
        (lambda _: None, "the transcript cannot be read: No such file or directory"),
        (_long_line, UNKNOWN_FORMAT),
        (Path.touch, NO_MESSAGES),
        (_nested, UNKNOWN_FORMAT),
        (_other_format, UNKNOWN_FORMAT),
    ],
    ids=["pipe", "folder", "missing", "60 MB in one line", "empty", "nested", "another format"],
)
def test_a_hostile_transcript_is_unreadable(make: Any, problem: str, tmp_path: Path) -> None:
    make(tmp_path / "t.jsonl")
    event = StopEvent(session_id="s", transcript_path=str(tmp_path / "t.jsonl"))
    assert (find_prompt(event), first_time(event.stopping_transcript), last_answer(event)) == (None, None, "")
    assert (measure_activity(event), wait_of(event, tmp_path)) == (None, None)
    for read in (read_calls, read_usage):
        with pytest.raises(TranscriptUnreadable) as raised:
            read(event)
        assert str(raised.value) == problem


_KEYS = [
    "type",
    "message",
    "role",
    "content",
    "tool_use_id",
    "id",
    "name",
    "input",
    "usage",
    "output_tokens",
    "timestamp",
    "isMeta",
    "isSidechain",
    "origin",
    "text",
    "is_error",
    "model",
]
_TEXTS = (
    "user",
    "assistant",
    "Bash",
    "AskUser",
    "tool_use",
    "tool_result",
    "text",
    "t1",
    "2026-11-16T09:00:00Z",
    "",
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_TEXTS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6),
    max_leaves=20,
)


_FIRST = {"type": "assistant", "message": {"role": "assistant", "content": []}}


@given(records=st.lists(st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=6), max_size=5))
def test_records_of_any_form_are_read(
    records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("any") / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in (_FIRST, *records)))
    event = StopEvent(session_id="s", transcript_path=str(path))
    read_calls(event)
    read_usage(event)
    assert find_prompt(event) is None or records
    assert isinstance(last_answer(event), str)
    assert wait_of(event, path.parent) in (None, "a question to the user is open")
    measure_activity(event)
    first_time(event.stopping_transcript)
