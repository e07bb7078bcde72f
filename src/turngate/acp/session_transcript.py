"""The transcript of a session, as `turngate run` writes it, from what the agent tells the editor."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from turngate.core.conversation.messages import (
    Message,
    Origin,
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolUse,
    Usage,
    UserMessage,
)
from turngate.transcript.writer import Transcript

_Fields = Mapping[str, Any]


class SessionTranscript:
    """Takes updates of a session in order; methods raise OSError when the file cannot be written."""

    def __init__(self, path: str, session: str, cwd: str, *, is_new: bool) -> None:
        if is_new and os.path.lexists(path):
            os.unlink(
                path
            )  # of an earlier session: its messages are not of this one, or the agent replays them
        self.path = path
        self.last_text = ""  # of the agent
        self._file: Transcript | None = None  # open during a turn
        self._place = session, cwd
        self._texts: list[str] = []
        self._of: tuple[object, object] = ("", None)  # whose texts, and of which message
        self._calls: dict[str, dict[str, Any]] = {}  # that have no result yet
        self._replies = 0
        self._tokens = 0  # that no message names yet
        self._context = 0  # tokens in it after the last request
        self._total: int | None = 0  # of the answers so far; None: the agent reports each request

    def add(self, update: _Fields, *, is_replay: bool) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk" | "user_message_chunk" as kind:
                text = _mapping(update.get("content")).get("text")
                if isinstance(text, str) and (is_replay or kind == "agent_message_chunk"):
                    if self._of != (of := (kind, update.get("messageId"))):
                        self._end_text()
                        self._of = of
                    self._texts.append(text)
            case "tool_call" | "tool_call_update":
                self._end_text()
                call = self._calls.setdefault(str(update.get("toolCallId")), {})
                call.update({key: value for key, value in update.items() if value not in (None, {}, [])})
                if call.get("status") in ("completed", "failed"):
                    self._end_call(str(update.get("toolCallId")))
            case "plan":
                entries = [dict(entry) for entry in _list(update.get("entries")) if isinstance(entry, dict)]
                self._end_text()
                self._write_reply(ToolUse(f"plan {self._replies}", "TodoWrite", {"todos": entries}))
            case "usage_update":
                used = update.get("used")
                if type(used) is int and used not in (0, self._context):
                    self._context, self._total = used, None
                    self._tokens += used
            case _:
                pass

    def add_prompt(self, text: str, origin: Origin = "user") -> None:
        self._end_text()
        self._write(UserMessage(text, origin))
        self.last_text = ""

    def end_turn(self, result: _Fields) -> None:
        """The agent has stopped: write what is left."""
        total = _mapping(result.get("usage")).get("totalTokens")
        if self._total is not None and type(total) is int and total >= 0:
            # For some agents it is the sum of the session: where that cannot be told, fewer tokens are counted.
            self._tokens += total - self._total if total >= self._total else total
            self._total = total
        self._end_text()
        for call in list(self._calls):
            self._end_call(call)
        if self._tokens:
            self._write_reply(Text(""))
        if self._file:
            self._file.close()
            self._file = None

    def _end_text(self) -> None:
        if not self._texts:
            return
        text, self._texts = "".join(self._texts), []
        if self._of[0] == "user_message_chunk":
            self._write(UserMessage(text))
        else:
            self._write_reply(Text(text))
            self.last_text = text

    def _end_call(self, identity: str) -> None:
        call = self._calls.pop(identity)
        self._write_reply(*_tool_uses(identity, call))
        if call.get("status") in ("completed", "failed"):
            code = _exit_code(call.get("rawOutput"))
            is_error = call["status"] == "failed" or code not in (None, 0)
            self._write(ToolResults((ToolResult(identity, _result_text(call), is_error),)))
        self.last_text = ""

    def _write_reply(self, *blocks: Text | ToolUse) -> None:
        self._replies += 1
        usage, self._tokens = Usage(input_tokens=self._tokens), 0
        self._write(Reply(blocks, usage=usage, id=f"reply {self._replies}"))

    def _write(self, message: Message) -> None:
        self._file = self._file or Transcript(self.path, *self._place)
        self._file.write_message(message)


def _tool_uses(identity: str, call: _Fields) -> Iterator[ToolUse]:
    """Yield a call under the names of the built-in agent: a command, an edit of each file, or a tool with its title."""
    kind, given = call.get("kind"), _mapping(call.get("rawInput"))
    title = str(call.get("title", ""))
    if kind == "execute":
        command = given.get("command", given.get("cmd", title.strip("`")))
        if isinstance(command, list):
            is_script = len(command) == 3 and command[1] in ("-c", "-lc")
            command = str(command[2]) if is_script else " ".join(map(str, command))
        yield ToolUse(identity, "Bash", {"command": command})
        return
    diffs = [each for each in map(_mapping, _list(call.get("content"))) if each.get("type") == "diff"]
    places = diffs or [*map(_mapping, _list(call.get("locations")))] if kind in _CHANGES else diffs
    paths = dict.fromkeys(path for each in places if isinstance(path := each.get("path"), str))
    for path in paths:
        yield ToolUse(identity, "Edit", {"file_path": path})
    if not paths:
        yield ToolUse(identity, title or str(kind), given)


_CHANGES = ("edit", "delete", "move")


def _exit_code(output: object) -> object:
    """Return the exit code where agents are known to report it, or None."""
    places = (_mapping(output), _mapping(_mapping(output).get("metadata")))
    return next(
        (place[key] for place in places for key in ("exit_code", "exitCode", "exit") if key in place), None
    )


def _result_text(call: _Fields) -> str:
    parts = (_mapping(_mapping(each).get("content")).get("text") for each in _list(call.get("content")))
    output = call.get("rawOutput")
    shown = "\n".join(part for part in parts if isinstance(part, str))
    given = output if isinstance(output, str) else _mapping(output).get("output", "")
    return shown or (given if isinstance(given, str) else "")


def _mapping(value: object) -> _Fields:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
