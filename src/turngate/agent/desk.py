"""What the parts of a turn need of the session they belong to."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from turngate.agent.tools import Workplace
from turngate.core.events import Event
from turngate.core.messages import Message, ToolResult, ToolUse
from turngate.core.turn import SessionEvent
from turngate.core.verdict import Verdict
from turngate.ports import Model


class Counted(Protocol):
    tool_calls: int
    requests: int
    continuations: int
    question: str | None
    results: list[ToolResult]


class Desk(Protocol):
    """A session, as its parts see it."""

    model: Model
    messages: list[Message]
    workplace: Workplace
    permission_mode: Any
    allowed: set[str]
    permit: Callable[[ToolUse, str], Awaitable[bool]] | None

    @property
    def turn(self) -> Counted: ...
    def common(self) -> dict[str, Any]: ...
    def say(self, message: Message, **meta: Any) -> None: ...
    def emit(self, event: SessionEvent) -> None: ...
    def notice(self, text: str) -> None: ...
    async def fire(self, event: Event) -> Verdict: ...
    async def begin(self, source: Any) -> None: ...
