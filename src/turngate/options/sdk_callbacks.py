"""Functions that were written for Claude's Agent SDK, called as it would call them."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from turngate.core.dialect import Dialect
from turngate.core.events import Event
from turngate.core.hook_input import hook_payload
from turngate.core.hooks import CallbackHook, Hook, hook_text


def adapt_sdk_callback(hook: Hook, dialect: Dialect) -> Hook:
    if not isinstance(hook, CallbackHook) or not is_sdk_callback(hook.callback):
        return hook
    return replace(hook, callback=_told_as_sdk(hook.callback, dialect), name=hook.name or hook_text(hook))


def is_sdk_callback(callback: Callable[..., Any]) -> bool:
    """Does it take `(input, tool_use_id, context)`, and not one event?"""
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):
        return False
    return not _takes(signature, 1) and _takes(signature, 3)


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _told_as_sdk(callback: Callable[..., Any], dialect: Dialect) -> Callable[[Any], Any]:
    def told(event: Event) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
        return hook_payload(event, dialect), getattr(event, "tool_use_id", None), {"signal": None}

    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):

        @functools.wraps(callback)
        async def answer_later(event: Event) -> Any:
            return meant(await callback(*told(event)))

        return answer_later

    @functools.wraps(callback)
    def answer(event: Event) -> Any:
        return meant(callback(*told(event)))

    return answer


def meant(value: Any) -> Any:
    """The SDK writes `continue_` and `async_`, which are words of Python."""
    return {str(name).rstrip("_"): each for name, each in value.items()} if isinstance(value, dict) else value
