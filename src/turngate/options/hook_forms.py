"""What `Options.hooks` may hold besides a hook: groups, deprecated forms, and callbacks of Claude's Agent SDK."""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.aio.foreign_code import call_callback
from turngate.core.dialect import Dialect
from turngate.core.events.events import Event
from turngate.core.events.hook_input import hook_payload
from turngate.core.hooks.kinds import CallbackHook, Hook, hook_text
from turngate.core.text import describe


@frozen
class HookGroup:
    """Hooks that run only when the matcher matches the event's subject (a tool's name, an agent type)."""

    matcher: str | None
    hooks: Sequence["Hook | Mapping[str, Any]"]


@frozen
class HookCallbackMatcher:
    """Callbacks under a matcher, with one timeout in seconds. Deprecated: see https://github.com/turngate/turngate/blob/main/docs/how-to/migrate.md."""

    matcher: str | None = None
    hooks: Sequence[Callable[..., Any]] = ()
    timeout: float | None = None  # seconds

    def __post_init__(self) -> None:
        text = describe_legacy_form("HookCallbackMatcher", self.matcher, self.hooks, self.timeout)
        warnings.warn(text, DeprecationWarning, stacklevel=3)


def describe_legacy_form(form: str, matcher: Any, hooks: Any, timeout: Any) -> str:
    """Return the text of a DeprecationWarning, with the replacement."""
    if not hooks:
        return f"{form} is deprecated; remove it, it has no hooks"
    keyword = "" if timeout is None else f", timeout={describe(timeout)}"
    functions = hooks if isinstance(hooks, list | tuple) else [hooks]
    configs = ", ".join(f"CallbackHook({function_name(f)}{keyword})" for f in functions)
    new = configs if matcher in (None, "", "*") else f"HookGroup({describe(matcher)}, [{configs}])"
    return f"{form} is deprecated; write {new} in Options.hooks"


def function_name(function: Any) -> str:
    name = str(getattr(function, "__name__", "…"))
    return name if name.isidentifier() else "…"


Config = Hook | HookGroup | HookCallbackMatcher | Mapping[str, Any]


def hook_of(config: Config) -> Hook:
    """Return a parsed config that is not a group as the hook that it is."""
    assert not isinstance(config, HookGroup | HookCallbackMatcher | Mapping)  # noqa: S101
    return config


# Callbacks of Claude's Agent SDK


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
    @functools.wraps(callback)
    async def call(event: Event) -> Any:
        payload, tool_use_id = hook_payload(event, dialect), getattr(event, "tool_use_id", None)
        return without_trailing_underscores(
            await call_callback(callback, payload, tool_use_id, {"signal": None})
        )

    return call


def without_trailing_underscores(value: Any) -> Any:
    """Rename `continue_` and `async_`, which the SDK uses because they are keywords of Python."""
    return {str(name).rstrip("_"): each for name, each in value.items()} if isinstance(value, dict) else value
