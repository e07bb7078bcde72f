"""What the wire formats have in common."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.messages import (
    ModelRequest,
    Reply,
    StopReason,
    Text,
    ToolResult,
    ToolUse,
    Usage,
)
from turngate.core.text import replace_surrogates
from turngate.http.event_stream import Event

Json = dict[str, Any]
MAX_COUNT = 2**53  # a larger number of tokens is a mistake, and could not be converted to a price


class AnswerReader(Protocol):
    def take(self, event: Event) -> str:
        """Return the text that an event adds to the answer, or "". Raises StreamError or Unreadable."""

    @property
    def is_finished(self) -> bool:
        """Whether the last event has arrived; nothing that follows belongs to the answer."""

    @property
    def reply(self) -> Reply | None:
        """The whole answer, or None if the stream ended in the middle of it."""


@frozen
class WireFormat:
    title: str  # for messages
    path: str  # after the base URL
    body: Callable[[str, ModelRequest], Json]  # of the name of the model and a request
    reader: Callable[[], AnswerReader]
    headers: Mapping[str, str] = field(default_factory=dict)


class Unreadable(Exception):
    """An answer does not have the form of its wire format."""


class OtherApi(Unreadable):
    """An answer seems to come from another API than the one that was asked."""


class StreamError(Exception):
    """The provider reports an error inside of a stream."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__()
        self.error = error


def parse_event(event: Event) -> Json:
    try:
        data = json.loads(event.data)
    except (ValueError, RecursionError):
        raise Unreadable("an event is not JSON") from None
    if not isinstance(data, dict):
        raise Unreadable("an event is not a JSON object")
    return data


def read_call(identity: object, name: object, arguments: str, stop_reason: StopReason) -> list[ToolUse]:
    """Return the call of a tool; none if the answer was truncated in the middle of it."""
    tool = text_of(name)
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        if stop_reason == "max_tokens":
            return []
        raise Unreadable(f"the input of a call of {tool or 'a tool'} is not JSON") from None
    if not isinstance(value, dict):
        raise Unreadable(f"the input of a call of {tool or 'a tool'} is not a JSON object")
    return [ToolUse(text_of(identity), tool, value)]


def whole_reply(
    blocks: Sequence[Text | ToolUse],
    stop_reason: StopReason,
    usage: Usage,
    head: Json,
    *,
    refused: bool = False,
) -> Reply:
    """Return the reply. Providers end it normally after calls of tools and, some of them, after a refusal."""
    if stop_reason == "end_turn" and any(isinstance(block, ToolUse) for block in blocks):
        stop_reason = "tool_use"
    elif stop_reason == "end_turn" and refused:
        stop_reason = "refusal"
    return Reply(
        tuple(blocks), stop_reason, usage, model=text_of(head.get("model")), id=text_of(head.get("id"))
    )


def text_of(value: object) -> str:
    """Return a text that can be written as UTF-8: JSON may contain half of a surrogate pair."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def count_of(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_COUNT else 0


def object_of(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def nonblank(blocks: Sequence[Text | ToolUse]) -> list[Text | ToolUse]:
    """Return the blocks without blank texts, which providers reject even in their own reply."""
    return [block for block in blocks if not isinstance(block, Text) or block.text.strip()]


def content_of(result: ToolResult) -> str:
    return result.content if result.content.strip() else "(no output)"  # providers reject a blank text


def is_repeated(request: ModelRequest) -> bool:
    """Return whether the next request will begin with the same messages, so that a cache is worth its price."""
    return request.agent != "judge" or bool(request.tools)


def closed_schema(schema: Mapping[str, Any]) -> Json:
    """Return the schema of an answer in the form that providers demand: no other properties."""
    return {**schema, "additionalProperties": False}
