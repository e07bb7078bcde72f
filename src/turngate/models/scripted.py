"""ScriptedModel: replay a script without network and key, for tests and the demo."""

import asyncio
import itertools
import json
import os
import reprlib
from collections.abc import Callable, Mapping
from typing import Any, get_args

from turngate.core.conversation import messages
from turngate.core.conversation.messages import ModelRequest, Reply, StopReason, Text, ToolUse, Usage
from turngate.core.text import closest_word, describe_syntax_error
from turngate.errors import ModelError, UsageError
from turngate.models.providers import STATUSES, error_kind
from turngate.state.files import open_regular_file

MAX_SCRIPT_CHARS = 64 * 1024 * 1024  # a longer script is truncated, and so is not valid JSON
AGENTS = ("main", "sub", "judge")
MAX_NUMBER = 1_000_000  # of seconds, or of repetitions


class ScriptedModel:
    """Answer from `{"main": [...], "sub": [...], "judge": [...]}`, in order; the last reply of each list repeats.

    Instead of a list, an object can hold one list for each conversation; its keys are texts that occur in the first
    message. So subagents that work at the same time can have their own replies.
    """

    def __init__(self, script: Mapping[str, Any], name: str = "scripted:script") -> None:
        value: object = script
        if not isinstance(value, Mapping):
            form = 'an object like {"main": ["an answer"]}'
            raise UsageError(f"a script is {form}, not {reprlib.repr(value)}")
        _check_keys(script)
        self.name = name
        self.context = _check_field("the script's", "context", script.get("context", 200_000))
        self.requests: list[ModelRequest] = []  # all requests so far, for tests
        self._replies = {agent: _parse_agent(script.get(agent, []), agent) for agent in AGENTS}
        self._counts = {(agent, key): 0 for agent, lists in self._replies.items() for key in lists}
        self._ids = itertools.count(1)

    @classmethod
    def from_file(cls, path: str) -> "ScriptedModel":
        """Read the script from a JSON file."""
        try:
            with open(open_regular_file(path, os.O_RDONLY), encoding="utf-8") as file:
                text = file.read(MAX_SCRIPT_CHARS + 1)
            script = json.loads(text)
        except OSError as error:
            raise UsageError(f"the script {path} cannot be read: {error.strerror}") from None
        except json.JSONDecodeError as error:
            raise UsageError(f"the script {path} is {describe_syntax_error(text, error)}") from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the script {path} is not JSON: {error}") from None
        if not isinstance(script, dict):
            raise UsageError(f'the script {path} must be an object like {{"main": ["an answer"]}}')
        # The path is absolute, because the session may be resumed from another folder.
        return cls(script, f"scripted:{os.path.abspath(path)}")

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        self.requests.append(request)
        key = self._find_list(request)
        if key is None or not (replies := self._replies[request.agent][key]):
            raise ModelError("invalid", f"the script has no answer for {request.agent!r}")
        number = self._counts[request.agent, key] = self._counts[request.agent, key] + 1
        entry = replies[min(number, len(replies)) - 1]
        if entry.get("delay"):
            await asyncio.sleep(entry["delay"])
        if "error" in entry:  # of a kind, of a provider's name of it, or of an HTTP status
            name, message = str(entry["error"]), str(entry.get("message", entry["error"]))
            status = int(name) if name.isdecimal() else STATUSES.get(name, 400)
            raise ModelError(name if name in ModelError.KINDS else error_kind(status), message)
        reply = self._reply(entry, number, request)
        for text in reply.texts:
            for piece in _pieces(text):
                tell(piece)
                await asyncio.sleep(entry.get("word_delay", 0))
        return reply

    def _find_list(self, request: ModelRequest) -> str | None:
        """Return the key of the first list whose text is in the first message; the key of a single list is empty."""
        prompts = (each.text for each in request.messages if isinstance(each, messages.UserMessage))
        first = next(prompts, "")
        return next((key for key in self._replies[request.agent] if key in first), None)

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _reply(self, entry: Mapping[str, Any], number: int, request: ModelRequest) -> Reply:
        size = len(repr(request.messages)) // 4
        texts = entry.get("texts", [entry["text"]] if "text" in entry else [])
        tools = entry.get("tools", [])
        if "tool" in entry:
            tools = [{"name": entry["tool"], "input": entry.get("input", {})}]
        blocks: list[Text | ToolUse] = [Text(str(text).replace("{n}", str(number))) for text in texts]
        blocks += [ToolUse(f"tool-{next(self._ids)}", tool["name"], tool.get("input", {})) for tool in tools]
        return Reply(
            tuple(blocks),
            stop_reason=entry.get("stop_reason", "tool_use" if tools else "end_turn"),
            usage=Usage(input_tokens=size, output_tokens=sum(map(len, map(str, texts))) // 4 + 1),
            model=self.name,
            id=f"msg-{next(self._ids)}",
        )


def _check_keys(script: Mapping[str, Any]) -> None:
    for key in script:
        if key not in (*AGENTS, "context"):
            close = closest_word(str(key), (*AGENTS, "context"))
            hint = f"did you mean {close!r}?" if close else f"expected {', '.join(AGENTS)} or context"
            raise UsageError(f"unknown key {reprlib.repr(key)} in the script; {hint}")


def _parse_agent(replies: object, agent: str) -> dict[str, list[dict[str, Any]]]:
    if isinstance(replies, Mapping):
        return {str(key): _parse_replies(each, f"{agent} {key}") for key, each in replies.items()}
    return {"": _parse_replies(replies, agent)}


def _parse_replies(replies: object, agent: str) -> list[dict[str, Any]]:
    """Check the replies and write them out: a text as a reply with that text, `repeat` as several replies."""
    if not isinstance(replies, list):
        raise UsageError(f"the script's {agent!r} must be a list of replies")
    entries: list[dict[str, Any]] = []
    for number, reply in enumerate(replies, 1):
        if not isinstance(reply, str | dict):
            raise UsageError(f"a reply in the script's {agent!r} is neither a text nor an object: {reply!r}")
        entry: dict[str, Any] = {"text": reply} if isinstance(reply, str) else reply
        _check(entry, f"reply {number} of the script's {agent!r}:")
        entries += [entry] * entry.get("repeat", 1)
    return entries


def _check(entry: Mapping[str, Any], where: str) -> None:
    """Check one reply. The whole script is checked before the first turn, so a mistake in it breaks no turn."""
    unknown = entry.keys() - _FIELDS.keys()
    if unknown and not entry.keys() & {"text", "texts", "tool", "tools", "error"}:
        hint = "; an answer in JSON is a text, so put it into quotes" if unknown & {"ok", "decision"} else ""
        raise UsageError(f"{where} {min(map(str, unknown))!r} is not a field of a reply{hint}")
    for field, value in entry.items():
        _check_field(where, field, value)
    for number, tool in enumerate(entry.get("tools", ()), 1):
        _check_field(where, f"tool {number}", tool, as_a="input")
        _check_field(where, f"tool {number}'s name", tool.get("name"), as_a="tool")
        _check_field(where, f"tool {number}'s input", tool.get("input", {}), as_a="input")


def _check_field(where: str, field: str, value: Any, as_a: str | None = None) -> Any:
    fits, expected = _FIELDS.get(as_a or field, (lambda _: True, ""))
    if not fits(value):
        raise UsageError(f"{where} {field} must be {expected}, not {reprlib.repr(value)}")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


STOP_REASONS: tuple[str, ...] = get_args(StopReason)

_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "context": (lambda v: type(v) is int and v > 0, "a number of tokens"),
    "text": (lambda v: isinstance(v, str), "a text"),
    "texts": (lambda v: isinstance(v, list) and all(isinstance(each, str) for each in v), "a list of texts"),
    "tool": (lambda v: isinstance(v, str), "the name of a tool"),
    "input": (lambda v: isinstance(v, dict), "an object"),
    "tools": (lambda v: isinstance(v, list), 'a list of objects like {"name": "Bash", "input": {}}'),
    "delay": (_is_number, "a number of seconds"),
    "word_delay": (_is_number, "a number of seconds"),
    "repeat": (lambda v: type(v) is int and _is_number(v), "a whole number"),
    "stop_reason": (lambda v: v in STOP_REASONS, f"one of {', '.join(STOP_REASONS)}"),
}


def _pieces(text: str) -> list[str]:
    """Split a text as a live model streams it: into small pieces, a very long text into larger ones."""
    size = max(12, len(text) // 50)
    return [text[place : place + size] for place in range(0, len(text), size)]
