"""Callback hooks: a function in this process. A session that it opens runs no hooks, or it would never end."""

from collections.abc import Callable
from typing import Any

from turngate.aio.foreign import call_callback
from turngate.ports import CallbackScope, in_callback


async def run_callback(callback: Callable[[Any], Any], event: Any) -> Any:
    """Return what the callback returns."""
    scope = CallbackScope()
    token = in_callback.set(scope)
    try:
        return await call_callback(callback, event)
    finally:
        scope.ended = True
        in_callback.reset(token)
