"""The transcript of a session, as `turngate run` writes it, from what the agent tells the editor."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from turngate.acp import say
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
from turngate.errors import UsageError
from turngate.transcript.writer import Transcript

_Fields = Mapping[str, Any]
_ENDED = ("completed", "failed")
_CHANGES = ("edit", "delete", "move")


class SessionTranscript:
    """Takes updates of a session in order; `path` is empty if not all of them could be written."""

    def __init__(self, path: str, session: str, cwd: str, *, is_new: bool) -> None:
        self.path, self._place, self._is_new = path, (session, cwd), is_new
        self.last_text = ""  # of the agent, since its last tool call
        self._file: Transcript | None = None  # open during a turn
        self._texts: list[str] = []
        self._of: tuple[object, object] = ("", None)  # whose texts, and of which message
        self._calls: dict[str, dict[str, Any]] = {}  # that have no result yet
        self._replies = 0
        self._tokens = 0  # that no message names yet
        self._context = 0  # tokens in use at the last request

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
                call = self._calls.setdefault(identity := str(update.get("toolCallId")), {})
                call.update({key: value for key, value in update.items() if value not in (None, {}, [])})
                if call.get("status") in _ENDED:
                    self._end_call(identity)
            case "plan":
                self._end_text()
                entries = [*map(_mapping, _list(update.get("entries")))]
                self._write_reply(ToolUse(f"plan {self._replies}", "TodoWrite", {"todos": entries}))
            case "usage_update" if type(used := update.get("used")) is int and used != self._context:
                self._context = used
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
        if not self._context and type(total) is int:  # it does not report each request
            self._tokens = total
        self._end_text()
        for identity in list(self._calls):
            self._end_call(identity)
        if self._tokens:
            self._write_reply(Text(""))
        if self._file:
            self._file.close()
            self._file = None

    def _end_text(self) -> None:
        text, self._texts = "".join(self._texts), []
        if text and self._of[0] == "user_message_chunk":
            self._write(UserMessage(text))
        elif text:
            self._write_reply(Text(text))
            self.last_text = text

    def _end_call(self, identity: str) -> None:
        call = self._calls.pop(identity)
        self._write_reply(*_tool_uses(identity, call))
        if call.get("status") in _ENDED:
            is_error = call["status"] == "failed" or _exit_code(call.get("rawOutput")) not in (None, 0)
            self._write(ToolResults((ToolResult(identity, _result_text(call), is_error),)))
        self.last_text = ""

    def _write_reply(self, *blocks: Text | ToolUse) -> None:
        self._replies += 1
        usage, self._tokens = Usage(input_tokens=self._tokens), 0
        self._write(Reply(blocks, usage=usage, id=f"reply {self._replies}"))

    def _write(self, message: Message) -> None:
        if not self.path:
            return
        try:
            if self._is_new and os.path.lexists(self.path):
                os.unlink(self.path)  # of an earlier session, or the agent replays its messages
            self._is_new = False
            self._file = self._file or Transcript(self.path, *self._place)
            self._file.write_message(message)
        except (OSError, UsageError) as error:
            say(f"the transcript of session {self._place[0]} cannot be written: {error}")
            self.path = ""  # no gate may rely on a part of it


def _tool_uses(identity: str, call: _Fields) -> Iterator[ToolUse]:
    """Yield a call under the names of the built-in agent: a command, an edit of each file, or a tool with its title."""
    kind, given, title = call.get("kind"), _mapping(call.get("rawInput")), str(call.get("title", ""))
    if kind == "execute":
        command = given.get("command", given.get("cmd", title.strip("`")))
        if isinstance(command, list):  # `bash -lc SCRIPT`
            command = (
                str(command[2])
                if command[1:2] in (["-c"], ["-lc"]) and command[2:]
                else " ".join(map(str, command))
            )
        yield ToolUse(identity, "Bash", {"command": command})
        return
    parts, places = [[*map(_mapping, _list(call.get(key)))] for key in ("content", "locations")]
    diffs = [part for part in parts if part.get("type") == "diff"] or (places if kind in _CHANGES else [])
    paths = dict.fromkeys(path for each in diffs if isinstance(path := each.get("path"), str))
    yield from (ToolUse(identity, "Edit", {"file_path": path}) for path in paths)
    if not paths:
        yield ToolUse(identity, title or str(kind), given)


def _exit_code(output: object) -> object:
    """Return the exit code where agents are known to report it, or None."""
    places = (_mapping(output), _mapping(_mapping(output).get("metadata")))
    return next(
        (place[key] for place in places for key in ("exit_code", "exitCode", "exit") if key in place), None
    )


def _result_text(call: _Fields) -> str:
    parts = (_mapping(_mapping(each).get("content")).get("text") for each in _list(call.get("content")))
    output = call.get("rawOutput")
    return "\n".join(map(str, filter(None, parts))) or str(_mapping(output).get("output", output or ""))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
