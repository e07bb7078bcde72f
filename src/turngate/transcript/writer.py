"""The transcript: the conversation on disk, one JSON record per line, append-only."""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, assert_never

from turngate.core.messages import (
    Message,
    Reply,
    Text,
    ToolResults,
    ToolUse,
    UserMessage,
)
from turngate.errors import UsageError
from turngate.state.files import make_private_dir, open_regular_file, write_all


class Transcript:
    """Append-only. A record is written when `add` returns, and on disk when `settle` returns."""

    def __init__(
        self,
        path: str,
        session: str,
        cwd: str,
        *,
        child: Mapping[str, str] | None = None,
        parent: str | None = None,
    ) -> None:
        self.path = path
        self._common = {"sessionId": session, "cwd": cwd, "isSidechain": child is not None, **(child or {})}
        self._parent = parent
        self._half = False  # the last line is not whole
        with usable(path):
            make_private_dir(os.path.dirname(path))
            self._fd = open_regular_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self._end_last_line()

    def say(self, message: Message, **meta: Any) -> None:
        """Adds a message of the conversation, and each of its tool calls as a record of its own."""
        for kind, content in _shapes(message):
            identity = str(uuid.uuid4())
            record = {
                "type": kind,
                "uuid": identity,
                "parentUuid": self._parent,
                **self._common,
                "timestamp": _now(),
                **_origin(message),
                **meta,
                "message": content,
            }
            self._parent = identity
            # The tool calls come first: the last line with an assistant's role must carry its text.
            for call in message.tool_uses if isinstance(message, Reply) else ():
                self.add(_call_record(call))
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"
        if self._half:
            self._end_last_line()
        self._half = True  # until all of it is written
        write_all(self._fd, line.encode("utf-8", "replace"))
        self._half = False

    def settle(self) -> None:
        """Everything said so far is on disk."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _end_last_line(self) -> None:
        """A process that was killed may have left half a line; what follows must not be glued to it."""
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")


@contextmanager
def usable(path: str) -> Iterator[None]:
    """A place where no session can be kept is for the user to mend, so it is told as wrong usage."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{error.filename or path} can not be used: {error.strerror}; "
            "put that right, or set TURNGATE_STATE to another folder"
        ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shapes(message: Message) -> Iterator[tuple[str, dict[str, Any]]]:
    match message:
        case UserMessage(text):
            yield "user", {"role": "user", "content": text}
        case ToolResults(results):
            blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": r.tool_use_id,
                    "content": r.content,
                    "is_error": r.is_error,
                }
                for r in results
            ]
            yield "user", {"role": "user", "content": blocks}
        case Reply():
            yield (
                "assistant",
                {
                    "role": "assistant",
                    "content": [_block(block) for block in message.blocks],
                    "model": message.model,
                    "id": message.id,
                    "stop_reason": message.stop_reason,
                    "usage": asdict(message.usage),
                },
            )
        case _:
            assert_never(message)


def _block(block: Text | ToolUse) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": _given(block)}


def _origin(message: Message) -> dict[str, Any]:
    """What no human said is marked, so that nobody takes it for a turn of the user's."""
    if isinstance(message, UserMessage) and message.origin != "user":
        return {"isMeta": True, "origin": message.origin}
    return {}


def _call_record(call: ToolUse) -> dict[str, Any]:
    """People grep for `"tool_name":"bash".*"script":".*test`."""
    if call.name == "Bash":
        return {"type": "tool_call", "tool_name": "bash", "script": str(_given(call).get("command", ""))}
    return {"type": "tool_call", "tool_name": call.name.lower(), "input": _given(call)}


def _given(call: ToolUse) -> dict[str, Any]:
    """A model may give anything; a conversation with anything but an object is refused by providers."""
    given: object = call.input
    return dict(given) if isinstance(given, Mapping) else {}
