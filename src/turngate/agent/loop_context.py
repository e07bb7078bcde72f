"""LoopContext: the model, conversation, tools and hooks that every part of a turn uses, and one request to the model."""

import asyncio
import json
import random
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.agent.agent_config import Permissions
from turngate.agent.conversation import Conversation
from turngate.agent.tools.tool import Tool, ToolContext
from turngate.agent.turn_state import TurnState
from turngate.aio.foreign_code import run_isolated
from turngate.aio.threads import CallbackCancelledItself
from turngate.core.conversation.messages import AgentRole, ModelRequest, Reply, Text, ToolUse
from turngate.core.dialect import Dialect
from turngate.core.events.events import Event
from turngate.core.events.stream_events import SessionEvent
from turngate.core.text import describe
from turngate.core.verdict.loop_guard import EndTurn
from turngate.core.verdict.verdict import Verdict
from turngate.errors import ModelError
from turngate.ports import Model

MAX_RETRY_AFTER_S = 60.0  # the longest pause; a provider that asks for more is not asked again


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


async def ask_model(context: LoopContext, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
    """Return the model's reply. Every request counts, including those that are retried."""
    turn = context.turn
    for pause in (*context.retries, None):
        turn.requests += 1
        try:
            reply = await _ask(context, request, tell)
        except ModelError as error:
            if not error.is_transient or pause is None:
                raise
            wait = max(pause, error.retry_after or 0.0)
            if wait > MAX_RETRY_AFTER_S:
                longest = f"{MAX_RETRY_AFTER_S:g} s is the longest one here"
                text = f"{error}; it asks for a pause of {wait:,.0f} s, and {longest}"
                raise ModelError(error.kind, text, retry_after=wait) from None
            context.notice(f"the model did not answer ({error}); retrying in {wait:g} s")
            await asyncio.sleep(wait * random.uniform(1.0, 1.2))  # noqa: S311 - no secret
        else:
            turn.add_reply(reply)
            return reply
    raise AssertionError("the last try either returns or raises")


async def _ask(context: LoopContext, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
    """Call the model, which is foreign code: translate what it raises, and never let it delay an interrupt."""
    try:
        reply: object = await run_isolated(context.model.ask(request, tell))
    except CallbackCancelledItself:
        raise ModelError("network", "the request was cancelled, and not by turngate") from None
    except Exception as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError("invalid", f"{type(error).__name__}: {error}") from error
    if not isinstance(reply, Reply):
        raise ModelError("invalid", f"the model's reply is {describe(reply)}, expected a Reply")
    for use in reply.tool_uses:
        try:  # hooks, transcripts and tools get it as JSON
            json.dumps(use.input, allow_nan=False, default=str)
        except (ValueError, TypeError, RecursionError):
            text = f"the input of a call of {use.name} cannot be written as JSON"
            raise ModelError("invalid", text) from None
    return _with_unique_ids(reply)


def _with_unique_ids(reply: Reply) -> Reply:
    """Give a tool call a new id if its own is empty or used twice; results are matched by id."""
    seen: set[str] = set()

    def unique(block: Text | ToolUse) -> Text | ToolUse:
        if isinstance(block, Text):
            return block
        identity = block.id if block.id and block.id not in seen else f"call-{uuid.uuid4().hex}"
        seen.add(identity)
        return block if identity == block.id else replace(block, id=identity)

    return replace(reply, blocks=tuple(map(unique, reply.blocks)))
