"""What a program may write in `Options.hooks` besides a hook: a group under a matcher, the old form, JSON."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turngate.core.hooks import Hook
from turngate.core.text import describe


@dataclass(frozen=True)
class HookGroup:
    """Hooks that are asked only where the event's subject (a tool's name, a child's type) fits."""

    matcher: str | None
    hooks: Sequence["Hook | Mapping[str, Any]"]


@dataclass(frozen=True)
class HookCallbackMatcher:
    """The old form: functions under a matcher, with one timeout in seconds. Deprecated; `docs/migrate.md`."""

    matcher: str | None = None
    hooks: Sequence[Callable[..., Any]] = ()
    timeout: float | None = None  # seconds

    def __post_init__(self) -> None:
        warn_of_old_form("HookCallbackMatcher", self.matcher, self.hooks, self.timeout)


def warn_of_old_form(form: str, matcher: Any, hooks: Any, timeout: Any) -> None:
    """Says what to write instead, at the line of whoever wrote it."""
    new = (
        f"write {_new_form(matcher, hooks, timeout)} in Options.hooks"
        if hooks
        else "leave it out, it has no hooks"
    )
    said = f"{form} is the old form; {new}"
    level, frame = 1, sys._getframe()  # noqa: SLF001 - as `warnings` does
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "turngate":
        level, frame = level + 1, frame.f_back
    warnings.warn(said, DeprecationWarning, stacklevel=level)


def _new_form(matcher: Any, hooks: Any, timeout: Any) -> str:
    limit = "" if timeout is None else f", timeout={describe(timeout)}"
    functions = hooks if isinstance(hooks, list | tuple) else [hooks]
    each = ", ".join(f"CallbackHook({name_of(f)}{limit})" for f in functions)
    return each if matcher in (None, "", "*") else f"HookGroup({describe(matcher)}, [{each}])"


def name_of(function: Any) -> str:
    name = str(getattr(function, "__name__", "…"))
    return name if name.isidentifier() else "…"


Config = Hook | HookGroup | HookCallbackMatcher | Mapping[str, Any]


def hook_of(config: Config) -> Hook:
    """What reading left is a hook, where it is no group."""
    assert not isinstance(config, HookGroup | HookCallbackMatcher | Mapping)  # noqa: S101
    return config
