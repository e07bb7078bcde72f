"""What `Options.hooks` may hold besides a hook: a group under a matcher, the legacy form, JSON."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngate._frozen import frozen
from turngate.core.hooks.kinds import Hook
from turngate.core.text import describe


@frozen
class HookGroup:
    """Hooks that run only when the matcher matches the event's subject (a tool's name, an agent type)."""

    matcher: str | None
    hooks: Sequence["Hook | Mapping[str, Any]"]


@frozen
class HookCallbackMatcher:
    """Callbacks under a matcher, with one timeout in seconds. Deprecated: see `docs/migrate.md`."""

    matcher: str | None = None
    hooks: Sequence[Callable[..., Any]] = ()
    timeout: float | None = None  # seconds

    def __post_init__(self) -> None:
        warn_of_legacy_form("HookCallbackMatcher", self.matcher, self.hooks, self.timeout)


def warn_of_legacy_form(form: str, matcher: Any, hooks: Any, timeout: Any) -> None:
    """Issue a DeprecationWarning with the replacement, at the line of the caller outside of Turngate."""
    replacement = (
        f"write {_replacement(matcher, hooks, timeout)} in Options.hooks"
        if hooks
        else "remove it, it has no hooks"
    )
    level, frame = 1, sys._getframe()  # noqa: SLF001 - as `warnings` does
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "turngate":
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{form} is deprecated; {replacement}", DeprecationWarning, stacklevel=level)


def _replacement(matcher: Any, hooks: Any, timeout: Any) -> str:
    keyword = "" if timeout is None else f", timeout={describe(timeout)}"
    functions = hooks if isinstance(hooks, list | tuple) else [hooks]
    configs = ", ".join(f"CallbackHook({function_name(f)}{keyword})" for f in functions)
    return configs if matcher in (None, "", "*") else f"HookGroup({describe(matcher)}, [{configs}])"


def function_name(function: Any) -> str:
    name = str(getattr(function, "__name__", "…"))
    return name if name.isidentifier() else "…"


Config = Hook | HookGroup | HookCallbackMatcher | Mapping[str, Any]


def hook_of(config: Config) -> Hook:
    """Return a parsed config that is not a group as the hook that it is."""
    assert not isinstance(config, HookGroup | HookCallbackMatcher | Mapping)  # noqa: S101
    return config
