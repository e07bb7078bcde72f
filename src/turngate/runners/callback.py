"""Callback hooks: a function in this process. A session that it opens asks no hooks: that would never end."""

from collections.abc import Callable
from typing import Any

from turngate.ports import in_callback
from turngate.tasks import call


async def run_callback(callback: Callable[[Any], Any], told: Any) -> Any:
    """What it returns."""
    marked = in_callback.set(True)
    try:
        return await call(callback, told)
    finally:
        in_callback.reset(marked)
