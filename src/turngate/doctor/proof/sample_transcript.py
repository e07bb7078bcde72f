"""A short transcript, for hooks that are run without an agent."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any


def conversation(
    answer: str = "Done.", *, ran_tests: bool = True, calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
) -> bytes:
    """Return a short transcript, in the forms in which scripts search for a test run; with these calls of tools."""
    command = "make test && npm test && pytest"
    use = {"type": "tool_use", "id": "t-1", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "t-1", "content": "all tests passed"}
    records: list[dict[str, Any]] = [_message("user", "Please do the task.")]
    if ran_tests:
        records += [
            _message("assistant", [use]),
            {"type": "tool", "tool_name": "bash", "tool_input": {"script": command}},
            _message("user", [result]),
        ]
    for number, (name, given) in enumerate(calls):
        call = {"type": "tool_use", "id": f"c-{number}", "name": name, "input": dict(given)}
        done = {"type": "tool_result", "tool_use_id": f"c-{number}", "content": "done"}
        records += [_message("assistant", [call]), _message("user", [done])]
    records.append(_message("assistant", [{"type": "text", "text": answer}]))
    return _lines(records)


def spent_conversation(started: float, tokens: int, replies: int) -> bytes:
    """Return a transcript that began at this time and has so many replies of the model, all tokens in the first one."""
    time = datetime.fromtimestamp(started, UTC).isoformat()
    prompt = {**_message("user", "Please do the task."), "timestamp": time}
    records = [prompt]
    for number in range(replies):
        record = _message("assistant", [{"type": "text", "text": "Done."}])
        record["message"] |= {"id": f"m-{number}", "usage": {"output_tokens": 0 if number else tokens}}
        records.append(record)
    return _lines(records)


def _lines(records: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def _message(role: str, content: object) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": content}}
