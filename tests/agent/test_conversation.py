"""A conversation: what the model sees is on disk first, and a result with a key is delivered once."""

import asyncio
from pathlib import Path

import pytest

from tests.support.sessions import records
from turngate.agent.conversation import Conversation
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import (
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolUse,
    UserMessage,
)
from turngate.errors import UsageError

CALLS = (ToolUse("1", "Read", {}), ToolUse("2", "Read", {}))


def created(folder: Path) -> Conversation:
    conversation = Conversation(str(folder / "chat.jsonl"), "s", str(folder))
    conversation.create()
    return conversation


def test_a_conversation_that_is_not_open_takes_no_message(tmp_path: Path) -> None:
    conversation = Conversation(str(tmp_path / "chat.jsonl"), "s", str(tmp_path))
    with pytest.raises(UsageError, match="not open"):
        conversation.append(UserMessage("go"))
    assert conversation.messages == []


def test_a_message_with_a_key_is_appended_once_also_by_the_next_process(tmp_path: Path) -> None:
    entry = InboxEntry("report", "subagent", key="k")
    conversation = created(tmp_path)
    conversation.append_once(entry)
    conversation.append_once(entry)
    conversation.close()
    resumed = Conversation(conversation.path, "s", str(tmp_path))
    asyncio.run(resumed.open())
    resumed.append_once(entry)
    assert (resumed.messages, resumed.has_delivered("k")) == ([UserMessage("report", "subagent")], True)


def test_results_become_one_message_in_the_order_of_the_calls(tmp_path: Path) -> None:
    delivered: list[str] = []
    conversation = created(tmp_path)
    conversation.on_result_delivered = delivered.append
    conversation.append(Reply(CALLS, "tool_use"))
    conversation.add_tool_result(ToolResult("2", "two"), key="chain")
    conversation.add_tool_result(ToolResult("1", "one"))
    conversation.finish_tool_results(CALLS)
    assert conversation.messages[-1] == ToolResults((ToolResult("1", "one"), ToolResult("2", "two")))
    assert delivered == ["chain"]


def test_the_end_of_a_turn_answers_the_calls_that_have_no_result(tmp_path: Path) -> None:
    conversation = created(tmp_path)
    conversation.append(Reply(CALLS, "tool_use"))
    conversation.add_tool_result(ToolResult("1", "one"))
    conversation.end_turn("interrupt", None)
    missing = "no result: the turn ended (interrupt) before this call finished"
    assert conversation.messages[-1] == ToolResults(
        (ToolResult("1", "one"), ToolResult("2", missing, is_error=True))
    )
    assert records(conversation.path)[-1] == {"type": "turn_end", "ended_by": "interrupt", "notice": None}


def test_a_restart_on_a_full_disk_changes_nothing_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = created(tmp_path)
    conversation.append(UserMessage("go"))
    conversation.append(Reply((Text("done"),)))
    before = list(conversation.messages)
    with open("/dev/full", "wb") as disk:
        monkeypatch.setattr(conversation.transcript, "_fd", disk.fileno())
        with pytest.raises(OSError, match="No space left"):
            conversation.restart((UserMessage("summary", "summary"), {}))
        monkeypatch.undo()
    assert conversation.messages == before
