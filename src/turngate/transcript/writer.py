"""Write a transcript: the conversation on disk, append-only, one JSON record per line."""

import contextlib
import json
import os
import threading
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, assert_never

from turngate.core.conversation.messages import Message, Reply, Text, ToolResults, ToolUse, UserMessage
from turngate.state import files
from turngate.state.files import make_private_dir, open_regular_file, os_errors_as_usage_errors, write_all

COPY_BYTES = 1024 * 1024


class TranscriptError(OSError):
    """The transcript cannot be written: the disk is full, or gone."""


class Transcript:
    """Append records; one is on disk when `sync` returns. If the file was deleted, `sync` and `close` write all of them to a new one."""

    def __init__(
        self,
        path: str,
        session: str,
        cwd: str,
        *,
        subagent: Mapping[str, str] | None = None,
        parent: str | None = None,
        machine: str = "",
    ) -> None:
        self.path = path
        place = {"cwd": cwd, "machine": machine} if machine else {"cwd": cwd}
        is_sidechain = subagent is not None
        self._common = {"sessionId": session, **place, "isSidechain": is_sidechain, **(subagent or {})}
        self._parent = parent
        self._partial = False  # the last line is not complete
        self._lock = threading.Lock()  # `sync` runs in a thread
        self.restored = 0  # times the file was deleted and written again
        with os_errors_as_usage_errors(path):
            make_private_dir(os.path.dirname(path))
            self._fd = open_regular_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            self._end_last_line()

    def write_message(self, message: Message, **meta: Any) -> None:
        """Write a message of the conversation, and each of its tool calls as a record of its own."""
        kind, content = _message_json(message)
        identity, mark = str(uuid.uuid4()), dict[str, Any]()
        if (
            isinstance(message, UserMessage) and message.origin != "user"
        ):  # no reader may take it for a user's turn
            mark = {"isMeta": True, "origin": message.origin}
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        record = {
            "type": kind,
            "uuid": identity,
            "parentUuid": self._parent,
            **self._common,
            "timestamp": now,
            **mark,
            **meta,
            "message": content,
        }
        self._parent = identity
        # The tool calls come first: the last line with an assistant's role must carry its text.
        for call in message.tool_uses if isinstance(message, Reply) else ():
            self.write_record(_call_record(call))
        self.write_record(record)

    def write_record(self, record: Mapping[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"
        with self._lock:
            try:
                if self._partial:
                    self._end_last_line()
                self._partial = True  # until all of it is written
                write_all(self._fd, line.encode("utf-8", "replace"))
            except OSError as error:
                raise TranscriptError(error.errno, error.strerror) from error
            self._partial = False

    def sync(self) -> None:
        """Return when every record is on disk."""
        try:
            self._restore_if_deleted()
            os.fdatasync(self._fd)
        except OSError as error:
            raise TranscriptError(error.errno, error.strerror) from error

    def close(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # the session ends, and has reported earlier errors
                self._restore_if_deleted()
            os.close(self._fd)
            self._fd = -1

    def _restore_if_deleted(self) -> None:
        """Continue in the file at the path if that is another one now; copy the records if it is empty."""
        if files.is_same_file(self.path, self._fd):
            return
        with self._lock:
            make_private_dir(os.path.dirname(self.path))
            new = open_regular_file(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                position = 0 if os.fstat(new).st_size == 0 else os.fstat(self._fd).st_size
                while data := os.pread(self._fd, COPY_BYTES, position):
                    write_all(new, data)
                    position += len(data)
            except OSError:
                os.ftruncate(new, 0)
                os.close(new)
                raise
            os.close(self._fd)
            self._fd, self.restored = new, self.restored + 1
            self._end_last_line()

    def _end_last_line(self) -> None:
        """End the half line that a killed process may have left, so that the next record starts a new one."""
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")


def _message_json(message: Message) -> tuple[str, dict[str, Any]]:
    match message:
        case UserMessage(text):
            return "user", {"role": "user", "content": text}
        case ToolResults(results):
            content = [{"type": "tool_result", **vars(result)} for result in results]
            return "user", {"role": "user", "content": content}
        case Reply():
            return "assistant", {
                "role": "assistant",
                "content": [_block(block) for block in message.blocks],
                "model": message.model,
                "id": message.id,
                "stop_reason": message.stop_reason,
                "usage": asdict(message.usage),
            }
        case _:
            assert_never(message)


def _block(block: Text | ToolUse) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": _input(block)}


def _call_record(call: ToolUse) -> dict[str, Any]:
    """Return one tool call as a flat record, for hooks that grep for `"tool_name":"bash".*"script":".*test`."""
    if call.name == "Bash":
        return {"type": "tool_call", "tool_name": "bash", "script": str(_input(call).get("command", ""))}
    return {"type": "tool_call", "tool_name": call.name.lower(), "input": _input(call)}


def _input(call: ToolUse) -> dict[str, Any]:
    """Return the call's input as an object; a model may give anything, and providers accept nothing else."""
    value: object = call.input
    return dict(value) if isinstance(value, Mapping) else {}
