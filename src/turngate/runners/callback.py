"""Callback hooks: a function in this process. A session that it opens asks no hooks: that would never end."""

from collections.abc import Callable
from typing import Any

from turngate.aio.foreign import call_callback
from turngate.ports import CallbackScope, in_callback


async def run_callback(callback: Callable[[Any], Any], told: Any) -> Any:
    """What it returns."""
    ours = CallbackScope()
    marked = in_callback.set(ours)
    try:
        return await call_callback(callback, told)
    finally:
        ours.ended = True
        in_callback.reset(marked)
