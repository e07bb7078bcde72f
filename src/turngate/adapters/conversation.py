"""The conversation of a framework's agent, as gates read it: messages, calls of tools, and a transcript of them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from turngate.core.conversation.messages import Message, Reply, ToolResult, ToolUse, UserMessage
from turngate.core.dialect import TURNGATE
from turngate.transcript.host_records import TOOL_NAMES
from turngate.transcript.writer import Transcript

_NAMES = {**TOOL_NAMES, "execute": "Bash", "shell": "Bash", "edit_file": "Edit", "file_write": "Write"}
_READ_ONLY = ("ls", "read_file", "glob", "grep")
_FAILED = r"(?i)\bexit[ _](?:code|status)\W{0,3}[1-9]"
_TAIL = 200  # characters at the end of a result, where tools for commands write the exit code


def user_message(text: str) -> UserMessage:
    return UserMessage(text, "stop_hook" if text.startswith(TURNGATE.prefix) else "user")


def tool_use(identity: object, name: str, arguments: object) -> ToolUse:
    """Return a call of a tool; tools for commands, files and tasks get the names that gates know."""
    with suppress(ValueError, RecursionError):
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    args = dict(arguments) if isinstance(arguments, Mapping) else {}
    known = _NAMES.get(name, name)
    if known in ("Edit", "Write") and "path" in args:
        args.setdefault("file_path", args["path"])
    return ToolUse(str(identity), known, args)


def tool_result(identity: object, content: object, *, is_error: bool = False) -> ToolResult:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return ToolResult(str(identity), text, is_error or re.search(_FAILED, text[-_TAIL:]) is not None)


def since_prompt(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of the turn, which began with the last message that the user wrote."""
    places = enumerate(messages)
    prompts = [n for n, each in places if isinstance(each, UserMessage) and each.origin == "user"]
    return messages[max(prompts, default=0) :]


def unknown_tools(messages: Iterable[Message]) -> frozenset[str]:
    calls = [call.name for each in messages if isinstance(each, Reply) for call in each.tool_uses]
    return frozenset(calls) - {*_NAMES.values(), *_READ_ONLY}


def write_transcript(
    path: str, session: str, project: str, messages: Iterable[Message], began: float
) -> None:
    """Write the conversation for the hooks. Most frameworks do not say when a message was written, so it is the run's start."""
    transcript = Transcript(path, session, project)
    try:
        for message in messages:
            transcript.write_message(message, timestamp=datetime.fromtimestamp(began, UTC).isoformat())
    finally:
        transcript.close()
