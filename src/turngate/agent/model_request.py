"""One request to the model: counted, asked again while the provider is overloaded, and never trusted to behave."""

import asyncio
import json
import random
import reprlib
import uuid
from collections.abc import Callable
from dataclasses import replace

from turngate.agent.loop_context import LoopContext
from turngate.aio.foreign import CallbackCancelledItself, run_isolated
from turngate.core.messages import ModelRequest, Reply, Text, ToolUse, Usage
from turngate.errors import ModelError

LONGEST_PAUSE = 60.0  # seconds that a provider may ask us to wait


async def ask(desk: LoopContext, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
    """One answer, asked for again while the provider is overloaded; every request is counted."""
    for pause in (*desk.retries, None):
        if desk.in_turn:
            desk.turn.requests += 1
        try:
            reply = await _asked(desk, request, tell)
        except ModelError as error:
            if not error.is_transient or pause is None:
                raise
            wait = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
            desk.notice(f"the model did not answer ({error}); asking again in {wait:g} s")
            await asyncio.sleep(wait * random.uniform(1.0, 1.2))  # noqa: S311 - no secret
        else:
            if desk.in_turn:
                desk.turn.usage += reply.usage
            return reply
    raise AssertionError("the last try either returns or raises")


async def _asked(desk: LoopContext, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
    """A model is foreign code: whatever it raises is its failure, and nothing that it does holds up our interrupt."""
    try:
        reply = await run_isolated(desk.model.ask(request, tell))
    except CallbackCancelledItself:
        raise ModelError("network", "the request was cancelled, and not by us") from None
    except Exception as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError("invalid", f"{type(error).__name__}: {error}") from error
    return _sound(reply)


def _sound(reply: object) -> Reply:
    """A reply whose parts are what they should be, each call with an id of its own."""
    match reply:
        case Reply(blocks=tuple() as blocks, usage=Usage() as usage) if all(
            type(n) is int for n in vars(usage).values()
        ):
            taken: set[str] = set()
            return replace(reply, blocks=tuple(_sound_block(block, taken) for block in blocks))
        case _:
            raise ModelError("invalid", f"the model gave {reprlib.repr(reply)}, which is no reply")


def _writable(given: object) -> bool:
    try:
        json.dumps(given, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are none, or a circle
        return False
    return True


def _sound_block(block: object, taken: set[str]) -> Text | ToolUse:
    match block:
        case Text(str()):
            return block
        case ToolUse(str(identity), str(), given) if _writable(given):
            own = identity if identity and identity not in taken else f"call-{uuid.uuid4().hex}"
            taken.add(own)
            return block if own == identity else replace(block, id=own)
        case _:
            raise ModelError("invalid", f"the model gave {reprlib.repr(block)}, which is no part of a reply")
