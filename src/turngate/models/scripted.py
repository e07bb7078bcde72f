"""A model that replays a script: no network, no key. For your own tests, and for the demo."""

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngate.core.messages import ModelRequest, Reply, Text, ToolUse, Usage
from turngate.errors import ModelError, UsageError


class ScriptedModel:
    """`{"main": [...], "sub": [...], "judge": [...]}`, each handed out in order, the last one again and again."""

    def __init__(self, script: Mapping[str, Any], name: str = "scripted:script") -> None:
        self.name = name
        self.context = int(script.get("context", 200_000))
        self.requests: list[ModelRequest] = []  # everything that was asked, for tests to look at
        self._replies = {agent: _expanded(script.get(agent, []), agent) for agent in ("main", "sub", "judge")}
        self._asked = dict.fromkeys(self._replies, 0)
        self._ids = itertools.count(1)

    @classmethod
    def from_file(cls, path: str) -> "ScriptedModel":
        try:
            with open(path, encoding="utf-8") as file:
                script = json.load(file)
        except OSError as error:
            raise UsageError(f"the script {path} can not be read: {error.strerror}") from None
        except ValueError as error:
            raise UsageError(f"the script {path} is not JSON: {error}") from None
        if not isinstance(script, dict):
            raise UsageError(f'the script {path} must be an object like {{"main": ["an answer"]}}')
        return cls(script, f"scripted:{path}")

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
    for reply in replies:
        if not isinstance(reply, str | dict):
            raise UsageError(f"a reply in the script's {agent!r} is neither a text nor an object: {reply!r}")
        said = {"text": reply} if isinstance(reply, str) else reply
        repeat, tools = said.get("repeat", 1), said.get("tools", [])
        if (
            type(repeat) is not int
            or not isinstance(tools, list)
            or not all("name" in tool for tool in tools)
        ):
            raise UsageError(
                f"a reply in the script's {agent!r} has a bad `repeat` or a tool without a name: {said}"
            )
        found += [said] * repeat
    return found


def _words(text: str) -> list[str]:
    """Streamed as a live model would, in small pieces; a very long text in larger ones."""
    size = max(12, len(text) // 50)
    return [text[place : place + size] for place in range(0, len(text), size)]


def _size(request: ModelRequest) -> int:
    return len(repr(request.messages)) // 4
