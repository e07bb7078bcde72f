"""The transcript of a session, as `turngate run` writes it, from what the agent tells the editor."""

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
from turngate.transcript.host_records import script_of
from turngate.transcript.writer import Transcript

_Fields = Mapping[str, Any]
_ENDED = ("completed", "failed")
_CHANGES = ("edit", "delete", "move")


class SessionTranscript:
    """Writes updates when calls of tools and turns end; `path` is empty if not all of them could be written."""

    def __init__(self, path: str, session: str, cwd: str, *, is_new: bool) -> None:
        self.path, self._place = path, (session, cwd)
        self.last_text = ""  # of the agent, since its last tool call
        self._items: list[dict[str, Any]] = []  # messages with their texts, plans, and calls as they are now
        self._calls: dict[str, dict[str, Any]] = {}  # of `_items`
        self._tokens = 0  # that are not written yet
        self._context = 0  # tokens in use at the last request
        if is_new:  # the file is of an earlier session, or the agent replays its messages
            with suppress(OSError):
                os.unlink(path)

    def add(self, update: _Fields) -> None:
        match update.get("sessionUpdate"):
            case "agent_message_chunk" | "user_message_chunk" as kind:
                if isinstance(text := update["content"].get("text"), str):
                    last = self._items[-1] if self._items else {}
                    if (last.get("sessionUpdate"), last.get("messageId")) != (kind, update.get("messageId")):
                        self._items.append(last := {**update, "texts": []})
                    last["texts"].append(text)
            case "tool_call" | "tool_call_update":
                if (identity := str(update.get("toolCallId"))) not in self._calls:
                    self._calls[identity] = {}
                    self._items.append(self._calls[identity])
                known = {key: value for key, value in update.items() if value not in (None, {}, [])}
                self._calls[identity].update(known)
                if all(call.get("status") in _ENDED for call in self._calls.values()):
                    self._write()
            case "plan":
                self._items.append(dict(update))
            case "usage_update" if type(used := update.get("used")) is int and used != self._context:
                self._context = used
                self._tokens += used
            case _:
                pass

    def add_prompt(self, text: str, origin: Origin = "user") -> None:
        self._write(UserMessage(text, origin))
        self.last_text = ""

    def end_turn(self, result: _Fields) -> None:
        total = _mapping(result.get("usage")).get("totalTokens")
        if not self._context and type(total) is int:  # it does not report each request
            self._tokens = total
        usage, self._tokens = Usage(input_tokens=self._tokens), 0
        self._write(*([Reply((), usage=usage)] if usage.input_tokens else []))

    def _write(self, *further: Message) -> None:
        """Write what is kept, and then further messages."""
        items, self._items, self._calls = self._items, [], {}
        for item in items:
            if item.get("sessionUpdate") != "plan":
                self.last_text = "".join(item.get("texts", ()))
        if not self.path:
            return
        try:
            transcript = Transcript(self.path, *self._place)
            try:
                for message in (*(each for item in items for each in _messages(item)), *further):
                    transcript.write_message(message)
            finally:
                transcript.close()
        except (OSError, UsageError, ValueError, TypeError, RecursionError) as error:
            say(f"the transcript of session {self._place[0]} cannot be written: {error}")
            self.path = ""  # no gate may rely on a part of it


def _messages(item: _Fields) -> Iterator[Message]:
    kind, identity = item.get("sessionUpdate"), str(item.get("toolCallId"))
    if kind == "user_message_chunk":
        yield UserMessage("".join(item["texts"]))
    elif kind == "agent_message_chunk":
        yield Reply((Text("".join(item["texts"])),))
    elif kind == "plan":
        entries = [*map(_mapping, _list(item.get("entries")))]
        yield Reply((ToolUse(uuid.uuid4().hex, "TodoWrite", {"todos": entries}),))
    else:
        yield Reply(tuple(_tool_uses(identity, item)))
        if item.get("status") in _ENDED:
            is_error = item["status"] == "failed" or _exit_code(item.get("rawOutput")) not in (None, 0)
            yield ToolResults((ToolResult(identity, _result_text(item), is_error),))


def _tool_uses(identity: str, call: _Fields) -> Iterator[ToolUse]:
    """Yield a call under the names of the built-in agent: a command, an edit of each file, or a tool with its title."""
    kind, given, title = call.get("kind"), _mapping(call.get("rawInput")), str(call.get("title", ""))
    if kind == "execute":
        command = given.get("command", given.get("cmd", title.strip("`")))
        if isinstance(command, list):
            command = script_of(command)
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
