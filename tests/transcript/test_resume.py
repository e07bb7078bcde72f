"""A conversation that is continued: every tool call has one result, right after it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from turngate.core.conversation.messages import Reply, ToolResult, ToolResults, ToolUse, UserMessage
from turngate.errors import UsageError
from turngate.transcript.reader import MAX_LINE_BYTES
from turngate.transcript.resume import read_conversation


def conversation(tmp_path: Path, *messages: dict[str, Any]) -> list[object]:
    path = tmp_path / "chat.jsonl"
    records = [{"type": message["role"], "message": message} for message in messages]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return [
        each.blocks if isinstance(each, Reply) else each for each in read_conversation(str(path)).messages
    ]


def call(identity: str, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": {}}


def test_a_call_that_was_cut_off_by_the_end_of_its_process_has_failed(tmp_path: Path) -> None:
    asked = {"role": "assistant", "content": [call("t1", "Bash")]}
    assert conversation(tmp_path, asked, {"role": "user", "content": "go on"}) == [
        (ToolUse("t1", "Bash", {}),),
        ToolResults((ToolResult("t1", "the session ended before this tool did", is_error=True),)),
        UserMessage("go on"),
    ]


def test_a_second_call_with_the_same_id_is_left_out(tmp_path: Path) -> None:
    asked = {"role": "assistant", "content": [call("t1", "Bash"), call("t1", "Read")]}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "done"}]}
    assert conversation(tmp_path, asked, {"role": "user", "content": [result]}) == [
        (ToolUse("t1", "Bash", {}),),
        ToolResults((ToolResult("t1", "done"),)),
    ]


def test_a_line_that_is_too_long_is_skipped_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    first, end_of_long_line, second = (
        json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n"
        for text in ("first", "lost", "second")
    )
    path.write_text(first)
    os.truncate(path, len(first) + MAX_LINE_BYTES)  # a block of zeros, as a crash can leave it
    with path.open("a") as file:
        file.write(end_of_long_line + second)
    assert read_conversation(str(path)).messages == (UserMessage("first"), UserMessage("second"))


def test_a_transcript_that_is_too_large_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.touch()
    os.truncate(path, 100 * 1024**3)
    wrong = f"{path} is larger than 4 GiB, so it cannot be resumed; start another session"
    with pytest.raises(UsageError) as error:
        read_conversation(str(path))
    assert str(error.value) == wrong


def test_of_two_results_of_one_call_the_first_counts_in_any_number_of_records(tmp_path: Path) -> None:
    results = [
        {"type": "tool_result", "tool_use_id": name, "content": text}
        for name, text in (("t2", "b"), ("t1", "a"), ("t2", "again"))
    ]
    asked = {"role": "assistant", "content": [call("t1", "Bash"), call("t2", "Read")]}
    assert conversation(tmp_path, asked, *({"role": "user", "content": [each]} for each in results)) == [
        (ToolUse("t1", "Bash", {}), ToolUse("t2", "Read", {})),
        ToolResults((ToolResult("t1", "a"), ToolResult("t2", "b"))),
    ]
