"""LoopContext: the model, conversation, tools and hooks that every part of a turn uses."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.agent.agent_config import Permissions
from turngate.agent.conversation import Conversation
from turngate.agent.tools.tool import Tool, ToolContext
from turngate.agent.turn.state import TurnState
from turngate.core.conversation.messages import AgentRole
from turngate.core.dialect import Dialect
from turngate.core.events.events import Event
from turngate.core.events.stream_events import SessionEvent
from turngate.core.verdict.loop_guard import EndTurn
from turngate.core.verdict.verdict import Verdict
from turngate.ports import Model


@frozen(kw_only=True)
class LoopContext:
    """One per turn of a session, and one per run of an agent hook."""

    model: Model
    agent: AgentRole
    dialect: Dialect
    conversation: Conversation
    turn: TurnState
    tools: Mapping[str, Tool]
    tool_context: ToolContext
    permissions: Permissions
    system_prompt: Callable[[], Awaitable[str]]  # called for every request: hooks may add to it
    event_fields: Callable[[], dict[str, Any]]  # the fields that every event has
    fire: Callable[[Event], Awaitable[Verdict]]  # runs the hooks of an event
    max_requests: int
    retries: Sequence[float]  # seconds between requests to a provider that is overloaded
    emit: Callable[[SessionEvent], None]
    notice: Callable[..., None]  # a text for the user, and what to do about it
    take_late_context: Callable[[], Sequence[str]] = tuple  # what hooks in the background have added
    on_compacted: Callable[[], Awaitable[None]] | None = None

    @property
    def requests_exhausted(self) -> bool:
        return self.turn.earlier_requests + self.turn.requests >= self.max_requests

    def end_at_limit(self) -> EndTurn:
        return EndTurn("max_turns", stop_reason=f"the limit of {self.max_requests} model requests is reached")
