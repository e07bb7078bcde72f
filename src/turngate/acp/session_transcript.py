"""The transcript of a session, as `turngate run` writes it, from what the agent tells the editor."""

import contextlib
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from turngate.acp import say
from turngate.core.conversation import messages
from turngate.errors import UsageError
from turngate.transcript.host_records import as_list, as_mapping, script_of
from turngate.transcript.writer import Transcript

Json = dict[str, Any]

_ENDED = ("completed", "failed")
_CHANGES = ("edit", "delete", "move")


class SessionTranscript:
    """Writes updates when calls of tools and turns end; `path` is empty if not all of them could be written."""

    def __init__(self, path: str, session: str, cwd: str, *, is_new: bool) -> None:
        self.path, self._place = path, (session, cwd)
        self.last_text = ""  # of the agent, since its last tool call
        self._items: list[Json] = []  # messages with their texts, plans, and calls as they are now
        self._has_prompt = False
        self._tokens = 0  # that are not written yet
        self._context = 0  # tokens in use at the last request
        if is_new:  # the file is of an earlier session, or the agent replays its messages
            with contextlib.suppress(OSError):
                os.unlink(path)

    def add(self, update: Json) -> None:
        match update.get("sessionUpdate"):
            case "user_message_chunk" if self._has_prompt:  # it is known
                pass
            case "agent_message_chunk" | "user_message_chunk" as kind:
                last, key = self._items[-1] if self._items else {}, (kind, update.get("messageId"))
                if last.get("message") != key:
                    self._items.append(last := {"message": key, "texts": []})
                last["texts"].append(str(update["content"].get("text", "")))
            case "tool_call" | "tool_call_update":
                calls = {item["id"]: item["call"] for item in self._items if "call" in item}
                identity = str(update.get("toolCallId"))
                if identity not in calls:
                    calls[identity] = {}
                    self._items.append({"id": identity, "call": calls[identity]})
                calls[identity] |= {key: each for key, each in update.items() if each not in (None, {}, [])}
                if all(call.get("status") in _ENDED for call in calls.values()):
                    self._write()
            case "plan" | "plan_update":
                self._items.append({"plan": as_mapping(update.get("plan", update)).get("entries")})
            case "usage_update" if type(used := update.get("used")) is int and used != self._context:
                self._context = used
                self._tokens += used
            case _:
                pass

    def add_prompt(self, text: str, origin: messages.Origin = "user") -> None:
        self._write(messages.UserMessage(text, origin))
        self.last_text, self._has_prompt = "", True

    def end_turn(self, outcome: Mapping[str, Any]) -> None:
        total = as_mapping(outcome.get("usage")).get("totalTokens")
        if not self._context and type(total) is int:  # it does not report each request
            self._tokens = total
        tokens, self._tokens = self._tokens, 0
        self._write(*([messages.Reply((), usage=messages.Usage(input_tokens=tokens))] if tokens else []))

    def _write(self, *further: messages.Message) -> None:
        """Write what is kept, and then further messages."""
        items, self._items = self._items, []
        for item in items:
            if "plan" not in item:
                self.last_text = "".join(item.get("texts", ()))
        if not self.path:
            return
        try:
            with contextlib.closing(Transcript(self.path, *self._place)) as transcript:
                for message in (*(each for item in items for each in _messages(item)), *further):
                    transcript.write_message(message)
        except (OSError, UsageError, ValueError, TypeError, RecursionError) as error:
            say(f"the transcript of session {self._place[0]} cannot be written: {error}")
            self.path = ""  # no gate may rely on a part of it


def _messages(item: Json) -> Iterator[messages.Message]:
    match item:
        case {"message": (kind, _), "texts": texts}:
            text, is_user = "".join(texts), kind == "user_message_chunk"
            yield messages.UserMessage(text) if is_user else messages.Reply((messages.Text(text),))
        case {"plan": entries}:
            todos = [*map(as_mapping, as_list(entries))]
            yield messages.Reply((messages.ToolUse(uuid.uuid4().hex, "TodoWrite", {"todos": todos}),))
        case _:
            identity, call = item["id"], item["call"]
            uses = (messages.ToolUse(identity, *use) for use in _tool_uses(call))
            yield messages.Reply(tuple(uses))
            if call.get("status") in _ENDED:
                output = as_mapping(call.get("rawOutput"))
                is_error = call["status"] == "failed" or _exit_code(output) not in (None, 0)
                result = messages.ToolResult(identity, _result_text(call, output), is_error)
                yield messages.ToolResults((result,))


def _tool_uses(call: Json) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a call as one of the built-in agent: a command, an edit of each file, or a tool with its title."""
    kind, given, title = call.get("kind"), as_mapping(call.get("rawInput")), str(call.get("title", ""))
    if kind == "execute":
        command = given.get("command", given.get("cmd", title.strip("`")))
        yield "Bash", {"command": script_of(command) if isinstance(command, list) else command}
        return
    parts, places = [[*map(as_mapping, as_list(call.get(key)))] for key in ("content", "locations")]
    diffs = [part for part in parts if part.get("type") == "diff"] or (places if kind in _CHANGES else [])
    paths = dict.fromkeys(path for each in diffs if isinstance(path := each.get("path"), str))
    yield from (("Edit", {"file_path": path}) for path in paths)
    if not paths:
        yield title or str(kind), given


def _exit_code(output: Mapping[str, Any]) -> object:
    """Return the exit code where agents are known to report it, or None."""
    codes = {**as_mapping(output.get("metadata")), **output}
    return next((codes[key] for key in ("exit_code", "exitCode", "exit") if key in codes), None)


def _result_text(call: Json, output: Mapping[str, Any]) -> str:
    parts = (as_mapping(as_mapping(each).get("content")).get("text") for each in as_list(call.get("content")))
    text = "\n".join(map(str, filter(None, parts)))
    return text or str(output.get("output", call.get("rawOutput", "")))
