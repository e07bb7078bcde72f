"""The conversation as a transcript left it, so that a session can resume."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from turngate.core.messages import Message, Reply, ToolResult, ToolResults, ToolUse, UserMessage
from turngate.transcript.reader import message_of, read_records
from turngate.transcript.writer import usable

COUNT_MOST = 1_000_000  # continuations; whoever wrote more did not count


@dataclass(frozen=True)
class Past:
    """What a transcript says about where the conversation stands."""

    messages: tuple[Message, ...] = ()
    continuations: int = 0  # of the turn that was not finished; 0 when it was
    last: str | None = field(default=None, compare=False)  # the last message's id
    keys: frozenset[str] = frozenset()  # of messages that may reach it once only


def read_conversation(path: str) -> Past:
    """The conversation up to its last whole message; tools that never answered get an answer."""
    messages: list[Message] = []
    continuations = 0
    last: str | None = None
    keys: set[str] = set()
    for record in _records(path):
        kind = record.get("type")
        if kind == "cleared":
            messages, continuations = [], 0
        elif kind == "turn_end":
            continuations = 0
        message = message_of(record)
        if message is None:
            continue
        if isinstance(record.get("key"), str):
            keys.add(record["key"])
        last = record["uuid"] if isinstance(record.get("uuid"), str) else last
        if isinstance(message, UserMessage):
            if message.origin == "summary":
                messages = []
            continuations = _count(record.get("continuation"))
        messages.append(message)
    return Past(tuple(_answered(messages)), continuations, last, frozenset(keys))


def _records(path: str) -> Iterator[dict[str, Any]]:
    with usable(path):
        yield from read_records(path)


def _count(said: object) -> int:
    return said if type(said) is int and 0 <= said <= COUNT_MOST else 0


def _answered(messages: list[Message]) -> Iterator[Message]:
    """Every tool call has one result, right after it: providers refuse any other conversation.

    What was written between two replies belongs to the first of them: the results of its calls, in as many
    records as there are, and then what was said.
    """
    for reply, rest in _by_reply(messages):
        if reply is not None:
            yield reply
        if reply is not None and reply.tool_uses:
            found = [
                result for message in rest if isinstance(message, ToolResults) for result in message.results
            ]
            yield ToolResults(tuple(_result(use, found) for use in reply.tool_uses))
        yield from (message for message in rest if isinstance(message, UserMessage))


def _by_reply(messages: list[Message]) -> Iterator[tuple[Reply | None, list[Message]]]:
    """Each reply with what follows it up to the next one; what comes before the first has none."""
    reply: Reply | None = None
    rest: list[Message] = []
    for message in messages:
        if isinstance(message, Reply):
            yield reply, rest
            reply, rest = message, []
        else:
            rest.append(message)
    yield reply, rest


def _result(use: ToolUse, found: list[ToolResult]) -> ToolResult:
    lost = ToolResult(use.id, "the session ended before this tool did", is_error=True)
    return next((result for result in found if result.tool_use_id == use.id), lost)
