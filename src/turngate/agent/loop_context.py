"""What the parts of a turn need of the session they belong to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from turngate.agent.tools import Tool, ToolContext
from turngate.agent.turn import Turn
from turngate.core.events import Event
from turngate.core.loop_guard import EndTurn
from turngate.core.messages import Message, ToolResult, ToolUse
from turngate.core.session_events import SessionEvent
from turngate.core.settings import Settings
from turngate.core.verdict import Verdict
from turngate.ports import Model


class TurnHalted(Exception):
    """A hook said `continue: false` in the middle of a turn."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason or "")
        self.reason = reason


class LoopContext(Protocol):
    """A session, as its parts see it."""

    model: Model
    messages: list[Message]
    settings: Settings
    workplace: ToolContext
    tools: Mapping[str, Tool]
    permission_mode: Any
    allowed: set[str]
    permit: Callable[[ToolUse, str], Awaitable[bool]] | None
    retries: Sequence[float]
    agent: Literal["main", "sub", "judge"]
    compact_again_at: int  # messages; below that an automatic compaction that failed is not tried again

    @property
    def turn(self) -> Turn: ...
    @property
    def in_turn(self) -> bool: ...
    @property
    def spent(self) -> bool: ...
    def out_of_turns(self) -> EndTurn: ...
    def system(self) -> str: ...
    def common(self) -> dict[str, Any]: ...
    def say(self, message: Message, **meta: Any) -> None: ...
    def add_tool_result(self, result: ToolResult, key: str = "") -> None: ...
    def add_tool_results(self, uses: Sequence[ToolUse]) -> None: ...
    def emit(self, event: SessionEvent) -> None: ...
    def notice(self, text: str) -> None: ...
    async def fire(self, event: Event) -> Verdict: ...
    async def begin(self, source: Any) -> None: ...
