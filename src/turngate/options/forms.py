"""What a program may write in `Options.hooks` besides a hook: a group under a matcher, the old form, JSON."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turngate.core.hooks import Hook


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
        said = f"HookCallbackMatcher is the old form; write {self._new_form()} in Options.hooks"
        warnings.warn(said, DeprecationWarning, stacklevel=3)

    def _new_form(self) -> str:
        limit = "" if self.timeout is None else f", timeout={self.timeout!r}"
        functions = self.hooks if isinstance(self.hooks, list | tuple) else [self.hooks]
        each = ", ".join(f"CallbackHook({getattr(f, '__name__', '…')}{limit})" for f in functions)
        return each if self.matcher in (None, "", "*") else f"HookGroup({self.matcher!r}, [{each}])"


Config = Hook | HookGroup | HookCallbackMatcher | Mapping[str, Any]


def hook_of(config: Config) -> Hook:
    """What reading left is a hook, where it is no group."""
    assert not isinstance(config, HookGroup | HookCallbackMatcher | Mapping)  # noqa: S101
    return config
