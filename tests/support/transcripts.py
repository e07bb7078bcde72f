"""Build transcripts of other hosts, record by record, in the shape of Claude Code: one block in a line."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LONG_AGO, IN_THE_FUTURE = "2020-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z"


class TranscriptBuilder:
    """Collects lines; every method returns the builder."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self._count = 0

    def user(self, text: str, **fields: Any) -> "TranscriptBuilder":
        return self._message("user", {"role": "user", "content": text}, **fields)

    def feedback(self, text: str) -> "TranscriptBuilder":
        """Add what a stop hook said, as the host writes it."""
        return self.user(f"Stop hook feedback:\n{text}", isMeta=True)

    def says(self, text: str, **message: Any) -> "TranscriptBuilder":
        return self._assistant({"type": "text", "text": text}, **message)

    def calls(
        self, name: str, args: Any, result: str | None = "", *, is_error: bool = False, **fields: Any
    ) -> "TranscriptBuilder":
        """Add a tool call and its result; None: it has none yet."""
        identity = f"toolu_{self._count}"
        self._assistant({"type": "tool_use", "id": identity, "name": name, "input": args})
        if result is None:
            return self
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": identity, "content": result}
        if is_error:
            block["is_error"] = True
        return self._message("user", {"role": "user", "content": [block]}, **fields)

    def runs(self, command: str, output: str = "", code: int = 0) -> "TranscriptBuilder":
        """Add a command of the tool Bash."""
        text = output if code == 0 else f"Exit code {code}\n{output}"
        return self.calls("Bash", {"command": command}, text, is_error=code != 0)

    def edits(self, path: str) -> "TranscriptBuilder":
        args = {"file_path": path, "old_string": "a", "new_string": "b"}
        return self.calls("Edit", args, "The file has been updated.")

    def raw(self, line: bytes) -> "TranscriptBuilder":
        self.lines.append(line)
        return self

    def write(self, path: Path) -> str:
        path.write_bytes(b"".join(line + b"\n" for line in self.lines))
        return str(path)

    def _assistant(self, block: dict[str, Any], **message: Any) -> "TranscriptBuilder":
        usage = {"input_tokens": 10, "output_tokens": 5}
        content = {
            "id": f"msg_{self._count}",
            "role": "assistant",
            "model": "claude-test",
            "content": [block],
            "usage": usage,
            **message,
        }
        return self._message("assistant", content)

    def _message(self, kind: str, message: dict[str, Any], **fields: Any) -> "TranscriptBuilder":
        self._count += 1
        minute, second = divmod(self._count, 60)
        record = {
            "parentUuid": None,
            "isSidechain": False,
            "type": kind,
            "message": message,
            "uuid": f"u{self._count}",
            "timestamp": f"2026-11-16T09:{minute % 60:02}:{second:02}.000Z",
            **fields,
        }
        self.lines.append(json.dumps(record, separators=(",", ":")).encode())
        return self


def talk() -> TranscriptBuilder:
    """Return a conversation that begins with a request of the user."""
    return TranscriptBuilder().user("Please do it.")


def with_transcript(builder: TranscriptBuilder, **fields: Any) -> Callable[[Path], Mapping[str, Any]]:
    """Write the transcript next to the project, where the event says that it is."""

    def setup(project: Path) -> Mapping[str, Any]:
        builder.write(project.parent / "transcript.jsonl")
        return fields

    return setup
