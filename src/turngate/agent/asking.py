"""One request to the model: counted, asked again while the provider is overloaded, and never trusted to behave."""

import asyncio
import random
from collections.abc import Callable

from turngate.agent.desk import Desk
from turngate.core.messages import ModelRequest, Reply
from turngate.errors import ModelError
from turngate.tasks import is_cancelled

LONGEST_PAUSE = 60.0  # seconds that a provider may ask us to wait


async def ask(desk: Desk, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
    """One answer, asked for again while the provider is overloaded; every request is counted."""
    for pause in (*desk.retries, None):
        if desk.in_turn:
            desk.turn.requests += 1
        try:
            reply = await _asked(desk, request, tell)
        except ModelError as error:
            if not error.passing or pause is None:
                raise
            wait = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
            desk.notice(f"the model did not answer ({error}); asking again in {wait:g} s")
            await asyncio.sleep(wait * random.uniform(1.0, 1.2))  # noqa: S311 - no secret
        else:
            if desk.in_turn:
                desk.turn.usage += reply.usage
            return reply
    raise AssertionError("the last try either returns or raises")


async def _asked(desk: Desk, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
    """A model is foreign code: whatever it raises is its failure, and only our own interrupt is an interrupt."""
    try:
        return await desk.model.ask(request, tell)
    except ModelError:
        raise
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        raise ModelError("network", "the request was cancelled, and not by us") from None
    except Exception as error:
        raise ModelError("invalid", f"{type(error).__name__}: {error}") from error
