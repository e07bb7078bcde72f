"""A conversation that is continued: every tool call has one result, right after it."""

import json
from pathlib import Path
from typing import Any

from turngate.core.messages import Reply, ToolResult, ToolResults, ToolUse, UserMessage
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
