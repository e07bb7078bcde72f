"""Adapts callbacks with the signature of Claude's Agent SDK, so that they can be called with an event."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from turngate.core.dialect import Dialect
from turngate.core.events.events import Event
from turngate.core.events.hook_input import hook_payload
from turngate.core.hooks.kinds import CallbackHook, Hook, hook_text


def adapt_sdk_callback(hook: Hook, dialect: Dialect) -> Hook:
    """Return the hook with a callback that takes one event; other hooks are returned as they are."""
    if not isinstance(hook, CallbackHook) or not is_sdk_callback(hook.callback):
        return hook
    return replace(
        hook, callback=_with_sdk_arguments(hook.callback, dialect), name=hook.name or hook_text(hook)
    )


def is_sdk_callback(callback: Callable[..., Any]) -> bool:
    """Return whether it takes `(input, tool_use_id, context)` and cannot be called with one event."""
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):
        return False
    return not _accepts(signature, 1) and _accepts(signature, 3)


def _accepts(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _with_sdk_arguments(callback: Callable[..., Any], dialect: Dialect) -> Callable[[Any], Any]:
    def arguments(event: Event) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
        return hook_payload(event, dialect), getattr(event, "tool_use_id", None), {"signal": None}

    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):

        @functools.wraps(callback)
        async def call_async(event: Event) -> Any:
            return without_trailing_underscores(await callback(*arguments(event)))

        return call_async

    @functools.wraps(callback)
    def call(event: Event) -> Any:
        return without_trailing_underscores(callback(*arguments(event)))

    return call


def without_trailing_underscores(value: Any) -> Any:
    """Rename `continue_` and `async_`, which the SDK uses because they are keywords of Python."""
    return {str(name).rstrip("_"): each for name, each in value.items()} if isinstance(value, dict) else value
