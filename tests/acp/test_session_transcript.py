"""What the transcript of an ACP session has of what the agent tells."""

import json
from pathlib import Path
from typing import Any

import pytest

from turngate.acp.session import MAX_ITEMS, Session


def text(words: str) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}


def call(identity: str, **fields: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call_update", "toolCallId": identity, **fields}


def test_a_turn_is_written_in_its_order_with_the_calls_as_they_ended(tmp_path: Path) -> None:
    transcript = Session(str(tmp_path / "acp.jsonl"), "s", str(tmp_path), is_new=True)
    transcript.add_prompt("do it")
    for update in (
        text("I "),
        text("look."),
        call("1", kind="execute", title="`ls`", status="in_progress"),
        call("2", kind="edit", locations=[{"path": "a.py"}], status="completed"),
        call("1", rawOutput={"exit_code": 1, "output": "no"}, status="completed"),
        text("Done."),
        {"sessionUpdate": "plan", "entries": [{"content": "all", "status": "completed"}]},
    ):
        transcript.add(update)
    transcript.end_turn({})
    records = map(json.loads, Path(transcript.path).read_text().splitlines())
    contents = [record["message"]["content"] for record in records if "message" in record]
    blocks = [block for content in contents[1:] for block in content]
    assert contents[0] == "do it"
    assert [block.get("text", block.get("input", block.get("content"))) for block in blocks] == [
        "I look.",
        {"command": "ls"},
        "no",
        {"file_path": "a.py"},
        "",
        "Done.",
        {"todos": [{"content": "all", "status": "completed"}]},
    ]
    assert [block["is_error"] for block in blocks if "is_error" in block] == [True, False]
    assert transcript.last_text == "Done."


def test_a_transcript_that_cannot_be_written_is_named_and_no_gate_gets_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    transcript = Session(str(tmp_path / "file" / "acp.jsonl"), "s", str(tmp_path), is_new=True)
    transcript.add_prompt("do it")
    transcript.add(text("Done."))
    transcript.end_turn({})
    assert (transcript.path, transcript.last_text) == ("", "Done.")
    assert capsys.readouterr().err.startswith("turngate acp: the transcript of session s cannot be written: ")


def test_messages_of_the_user_are_kept_until_the_first_prompt(tmp_path: Path) -> None:
    transcript = Session(str(tmp_path / "acp.jsonl"), "s", str(tmp_path), is_new=True)
    for prompt in ("do it", "again"):
        transcript.add({**text(f"before: {prompt}"), "sessionUpdate": "user_message_chunk"})
        transcript.add_prompt(prompt)
    records = map(json.loads, Path(transcript.path).read_text().splitlines())
    assert [record["message"]["content"] for record in records] == ["before: do it", "do it", "again"]


def test_a_plan_of_version_2_is_a_plan(tmp_path: Path) -> None:
    transcript = Session(str(tmp_path / "acp.jsonl"), "s", str(tmp_path), is_new=True)
    entries = [{"content": "all", "status": "pending"}]
    transcript.add({"sessionUpdate": "plan_update", "plan": {"type": "items", "entries": entries}})
    transcript.end_turn({})
    records = [json.loads(line) for line in Path(transcript.path).read_text().splitlines()]
    assert [each["input"]["todos"] for each in records[-1]["message"]["content"]] == [entries]


def test_whole_messages_of_version_2_replace_their_chunks(tmp_path: Path) -> None:
    session = Session(str(tmp_path / "acp.jsonl"), "s", str(tmp_path), is_new=True)
    parts = [{"type": "text", "text": words} for words in ("All ", "of it.")]
    run = call("1", kind="execute", title="ls", content=[{"type": "content", "content": parts[0]}])
    for update in (
        {"sessionUpdate": "user_message", "messageId": "u", "content": [parts[1]]},
        {**text("A part"), "messageId": "m"},
        {"sessionUpdate": "agent_message", "messageId": "m", "content": parts},
        run,
        {
            "sessionUpdate": "tool_call_content_chunk",
            "toolCallId": "1",
            "content": {"type": "content", "content": parts[1]},
        },
        call("1", status="completed"),
        {"sessionUpdate": "agent_message", "messageId": "n", "content": parts},
        {**text(" Done."), "messageId": "n"},
    ):
        session.add(update)
    session.end_turn({})
    records = map(json.loads, Path(session.path).read_text().splitlines())
    contents = [record["message"]["content"] for record in records if "message" in record]
    assert contents[0] == "of it."
    assert [
        block.get("text", block.get("input", block.get("content")))
        for content in contents[1:]
        for block in content
    ] == ["All of it.", {"command": "ls"}, "All \nof it.", "All of it. Done."]
    assert session.last_text == "All of it. Done."


def test_a_long_turn_is_written_in_parts_and_in_its_order(tmp_path: Path) -> None:
    session = Session(str(tmp_path / "acp.jsonl"), "s", str(tmp_path), is_new=True)
    commands = [f"echo {number}" for number in range(2 * MAX_ITEMS)]
    for number, command in enumerate(commands):
        session.add(call(str(number), kind="execute", title=command, status="in_progress"))
        session.add(call(str(number), status="completed"))
    assert Path(session.path).exists()
    session.add(text("Done."))
    session.end_turn({})
    records = [json.loads(line) for line in Path(session.path).read_text().splitlines()]
    assert [record["script"] for record in records if record["type"] == "tool_call"] == commands
    results = [record for record in records if "tool_result" in json.dumps(record)]
    assert (len(results), session.last_text) == (len(commands), "Done.")
