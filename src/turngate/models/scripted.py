"""A model that replays a script: no network, no key. For your own tests, and for the demo."""

import asyncio
import itertools
import json
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from turngate.core.messages import ModelRequest, Reply, StopReason, Text, ToolUse, Usage
from turngate.errors import ModelError, UsageError
from turngate.state.files import open_regular_file

LONGEST = 64 * 1024 * 1024  # characters of a script; a longer one ends in the middle, and is no JSON


class ScriptedModel:
    """`{"main": [...], "sub": [...], "judge": [...]}`, each handed out in order, the last one again and again."""

    def __init__(self, script: Mapping[str, Any], name: str = "scripted:script") -> None:
        given: object = script
        if not isinstance(given, Mapping):
            raise UsageError(
                f'a script is an object like {{"main": ["an answer"]}}, not {reprlib.repr(given)}'
            )
        self.name = name
        self.context = _checked("the script's", "context", script.get("context", 200_000))
        self.requests: list[ModelRequest] = []  # everything that was asked, for tests to look at
        self._replies = {agent: _expanded(script.get(agent, []), agent) for agent in ("main", "sub", "judge")}
        self._asked = dict.fromkeys(self._replies, 0)
        self._ids = itertools.count(1)

    @classmethod
    def from_file(cls, path: str) -> "ScriptedModel":
        try:
            with open(open_regular_file(path, os.O_RDONLY), encoding="utf-8") as file:
                script = json.loads(file.read(LONGEST + 1))
        except OSError as error:
            raise UsageError(f"the script {path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the script {path} is not JSON: {error}") from None
        if not isinstance(script, dict):
            raise UsageError(f'the script {path} must be an object like {{"main": ["an answer"]}}')
        return cls(script, f"scripted:{os.path.abspath(path)}")  # whoever goes on with it may be elsewhere

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        self.requests.append(request)
        number = self._asked[request.agent] = self._asked[request.agent] + 1
        replies = self._replies[request.agent]
        if not replies:
            raise ModelError("invalid", f"the script has no answer for {request.agent!r}")
        said = replies[min(number, len(replies)) - 1]
        if said.get("delay"):
            await asyncio.sleep(said["delay"])
        if "error" in said:
            raise ModelError.named(str(said["error"]), str(said.get("message", said["error"])))
        reply = self._reply(said, number, request)
        for text in reply.texts:
            for word in _words(text):
                tell(word)
                await asyncio.sleep(said.get("word_delay", 0))
        return reply

    async def close(self) -> None:
        """There is nothing to let go of."""

    def _reply(self, said: Mapping[str, Any], number: int, request: ModelRequest) -> Reply:
        texts = said.get("texts", [said["text"]] if "text" in said else [])
        tools = (
            [{"name": said["tool"], "input": said.get("input", {})}]
            if "tool" in said
            else said.get("tools", [])
        )
        blocks: list[Text | ToolUse] = [Text(str(text).replace("{n}", str(number))) for text in texts]
        blocks += [ToolUse(f"tool-{next(self._ids)}", tool["name"], tool.get("input", {})) for tool in tools]
        return Reply(
            tuple(blocks),
            stop_reason=said.get("stop_reason", "tool_use" if tools else "end_turn"),
            usage=Usage(input_tokens=_size(request), output_tokens=sum(map(len, map(str, texts))) // 4 + 1),
            model=self.name,
            id=f"msg-{next(self._ids)}",
        )


def _expanded(replies: Sequence[Any], agent: str) -> list[dict[str, Any]]:
    """A text is a reply with that text; `repeat` writes a reply down several times."""
    if not isinstance(replies, list):
        raise UsageError(f"the script's {agent!r} must be a list of replies")
    found: list[dict[str, Any]] = []
    for number, reply in enumerate(replies, 1):
        if not isinstance(reply, str | dict):
            raise UsageError(f"a reply in the script's {agent!r} is neither a text nor an object: {reply!r}")
        said: dict[str, Any] = {"text": reply} if isinstance(reply, str) else reply
        _check(said, f"reply {number} of the script's {agent!r}:")
        found += [said] * said.get("repeat", 1)
    return found


def _check(said: Mapping[str, Any], where: str) -> None:
    """The whole script is checked before it plays: a mistake in it is the author's, and no turn has begun."""
    odd = said.keys() - _FIELDS.keys()
    if odd and not said.keys() & {"text", "texts", "tool", "tools", "error"}:
        hint = "; an answer in JSON is a text, so put it into quotes" if odd & {"ok", "decision"} else ""
        raise UsageError(f"{where} {min(map(str, odd))!r} is no field of a reply{hint}")
    for field, value in said.items():
        _checked(where, field, value)
    for number, tool in enumerate(said.get("tools", ()), 1):
        _checked(where, f"tool {number}", tool, as_a="input")
        _checked(where, f"tool {number}'s name", tool.get("name"), as_a="tool")
        _checked(where, f"tool {number}'s input", tool.get("input", {}), as_a="input")


def _checked(where: str, field: str, value: Any, as_a: str | None = None) -> Any:
    fits, wanted = _FIELDS.get(as_a or field, (_anything, ""))
    if not fits(value):
        raise UsageError(f"{where} {field} must be {wanted}, not {reprlib.repr(value)}")
    return value


def _anything(_: object) -> bool:
    return True


def _number(value: object, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


STOP_REASONS: tuple[str, ...] = get_args(StopReason)
MOST = 1_000_000  # seconds, and how often

_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "context": (lambda v: type(v) is int and v > 0, "a number of tokens"),
    "text": (lambda v: isinstance(v, str), "a text"),
    "texts": (lambda v: isinstance(v, list) and all(isinstance(each, str) for each in v), "a list of texts"),
    "tool": (lambda v: isinstance(v, str), "the name of a tool"),
    "input": (lambda v: isinstance(v, dict), "an object"),
    "tools": (lambda v: isinstance(v, list), 'a list of objects like {"name": "Bash", "input": {}}'),
    "delay": (lambda v: _number(v, MOST), "a number of seconds"),
    "word_delay": (lambda v: _number(v, MOST), "a number of seconds"),
    "repeat": (lambda v: type(v) is int and _number(v, MOST), "a whole number"),
    "stop_reason": (lambda v: v in STOP_REASONS, f"one of {', '.join(STOP_REASONS)}"),
}


def _words(text: str) -> list[str]:
    """Streamed as a live model would, in small pieces; a very long text in larger ones."""
    size = max(12, len(text) // 50)
    return [text[place : place + size] for place in range(0, len(text), size)]


def _size(request: ModelRequest) -> int:
    return len(repr(request.messages)) // 4
