"""Handlers of plugins, called by priority, one after another, each isolated and under a timeout.

Handlers only observe, except those of `subagent_stopping`, which may redirect a subagent.
"""

import asyncio
import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from turngate._frozen_dataclass import frozen
from turngate.aio.foreign_code import call_callback
from turngate.aio.threads import CallbackCancelledItself
from turngate.core.events.plugin_events import (
    SubagentStoppingContext,
    SubagentStoppingEvent,
    SubagentStoppingResult,
    stopping_result,
)
from turngate.core.hooks.kinds import qualified_name
from turngate.core.text import closest_word, describe, describe_exception
from turngate.errors import UsageError

PluginHook = Literal[
    "conversation", "stop", "subagent_stop", "subagent_stopping", "subagent_ended", "subagentStop"
]
ALIASES = {"subagentStop": "subagent_stop"}
HANDLER_NAMES = tuple(name for name in get_args(PluginHook) if name not in ALIASES)

CONTEXT_HOOKS = ("subagent_stopping", "subagent_ended")  # their handlers take the context too
HANDLER_TIMEOUT_S = 30.0
ENTRY_POINT_GROUP = "turngate.plugins"


# A handler takes the payload; one of `subagent_stopping` or `subagent_ended` also the context.
Handler = Callable[..., Any]


@frozen
class _Registered:
    name: str
    handler: Handler
    priority: int
    plugin: str


@frozen
class PluginContext:
    """The session of a plugin; plugin objects have it as `ctx`."""

    session_id: str
    project: str
    state: str  # the state folder
    settings: Any


class Plugin:
    """A base class: a method named like a plugin hook (`stop`, `subagent_stopping`, …) is the handler of that hook."""

    ctx: PluginContext | None = None  # set when the plugin belongs to a session
    priority = 0  # of all its handlers; higher priorities run first


@dataclass
class Plugins:
    """The registered handlers of one session."""

    limit: float = HANDLER_TIMEOUT_S
    complaints: list[str] = field(default_factory=list)  # errors of handlers, as messages for the user
    _objects: list[Any] = field(default_factory=list)
    _context: PluginContext | None = field(default=None, init=False)  # of the session
    _all: list[_Registered] = field(default_factory=list)

    def on(self, name: PluginHook, handler: Handler, *, priority: int = 0, plugin: str | None = None) -> None:
        """Register a handler. Higher priorities run first, equal ones in order of registration.

        Raises UsageError if it cannot take the arguments of this hook.
        """
        known = ALIASES.get(name, name)
        if known not in HANDLER_NAMES:
            raise UsageError(f"unknown plugin hook {name!r}: {_name_hint(str(name))}")
        _check_handler(name, handler, 2 if known in CONTEXT_HOOKS else 1)
        plugin_name = plugin or str(getattr(handler, "__qualname__", handler))
        self._all.append(_Registered(known, handler, priority, plugin_name))

    def add(self, plugin: object) -> None:
        """Register every method of an object that is named like a plugin hook."""
        self._objects.append(plugin)
        for name in (*HANDLER_NAMES, *ALIASES):
            handler = getattr(plugin, name, None)
            if callable(handler):
                self.on(name, handler, priority=getattr(plugin, "priority", 0), plugin=type(plugin).__name__)

    def bind(self, context: PluginContext) -> None:
        """Set `ctx` of every added object, and of functions with such a parameter, to the context of the session."""
        self._context = context
        for plugin in self._objects:
            plugin.ctx = context

    def take_errors(self) -> list[str]:
        """Return the errors of handlers since the last call."""
        errors, self.complaints = self.complaints, []
        return errors

    def has_handlers(self, name: str) -> bool:
        return any(registered.name == name for registered in self._all)

    def handler_names(self, name: str) -> list[str]:
        """Return the qualified names of the handlers of a plugin hook, in the order in which they are called."""
        return [qualified_name(registered.handler) for registered in self._in_order(name)]

    async def notify(self, name: str, payload: object, *context: object) -> None:
        """Call every handler with a copy of the payload, whatever the others do; ignore what they return."""
        for registered in self._in_order(name):
            _, error = await self._call(registered, copy.deepcopy(payload), *context)
            if error:
                self.complaints.append(f"plugin {registered.plugin} {error}")

    async def ask_stopping(
        self, event: SubagentStoppingEvent, context: SubagentStoppingContext
    ) -> SubagentStoppingResult:
        """Return the first redirect; a handler that fails, or redirects without a prompt, counts as allow.

        The highest `extend_max_steers` counts, also of handlers that allow.
        """
        extensions: list[int] = []
        result = SubagentStoppingResult()
        for registered in self._in_order("subagent_stopping"):
            result = await self._ask_one(registered, event, context)
            if result.extend_max_steers is not None:
                extensions.append(result.extend_max_steers)
            if not result.allow:
                break
        return replace(result, extend_max_steers=max(extensions, default=None))

    async def _ask_one(
        self, registered: _Registered, event: SubagentStoppingEvent, context: SubagentStoppingContext
    ) -> SubagentStoppingResult:
        value, error = await self._call(registered, copy.deepcopy(event), context)
        try:
            result, problem = stopping_result(None if error else value)
        except Exception as raised:  # noqa: BLE001 - the mapping that a plugin returned is foreign code too
            result, problem = SubagentStoppingResult(), f"returned no result: {describe_exception(raised)}"
        if error or problem:
            self.complaints.append(f"plugin {registered.plugin} {error or problem}")
        return result

    def _in_order(self, name: str) -> list[_Registered]:
        handlers = [registered for registered in self._all if registered.name == name]
        return sorted(handlers, key=lambda registered: -registered.priority)

    async def _call(self, registered: _Registered, *args: object) -> tuple[object, str | None]:
        """Return the handler's return value, and the description of an error."""
        context = {"ctx": self._context} if _takes_context(registered.handler, len(args)) else {}
        try:
            async with asyncio.timeout(self.limit) as timer:
                return await call_callback(registered.handler, *args, **context), None
        except TimeoutError as error:
            if timer.expired():
                return None, f"timed out after {self.limit:g} s at {registered.name}"
            return None, f"failed at {registered.name}: {describe_exception(error)}"
        except CallbackCancelledItself:
            return None, f"failed at {registered.name}: it cancelled itself"
        except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code: its failure changes nothing else
            return None, f"failed at {registered.name}: {describe_exception(error)}"


def _takes_context(handler: Handler, arguments: int) -> bool:
    """Return whether a function has a parameter `ctx` besides those that its hook fills."""
    try:
        parameters = inspect.signature(handler).parameters
    except (TypeError, ValueError):  # a function of an extension module
        return False
    place = list(parameters).index("ctx") if "ctx" in parameters else -1
    return place >= arguments or (place >= 0 and parameters["ctx"].kind is inspect.Parameter.KEYWORD_ONLY)


def _check_handler(name: str, handler: Any, arguments: int) -> None:
    """Reject a handler that every call would fail for; one without a signature may be right."""
    of_hook = f"the handler of the plugin hook {name!r}"
    if not callable(handler):
        raise UsageError(f"{of_hook} is {describe(handler)}; expected a function that takes the payload")
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        return
    context = {"ctx": None} if _takes_context(handler, arguments) else {}
    try:
        signature.bind(*range(arguments), **context)
    except TypeError:
        expected = "the event and the context" if arguments > 1 else "the payload"
        raise UsageError(f"{of_hook} takes {signature}; expected a function that takes {expected}") from None


def _name_hint(name: str) -> str:
    by_letters = {known.replace("_", ""): known for known in HANDLER_NAMES}
    close = closest_word(name.replace("_", ""), tuple(by_letters))
    return f"did you mean {by_letters[close]!r}?" if close else f"expected one of {', '.join(HANDLER_NAMES)}"


# Plugins of other packages


def installed_plugins() -> tuple[str, ...]:
    """Return the names of the plugins that packages provide, without loading them."""
    return tuple(sorted(_entry_points()))


def load_plugins(names: Sequence[str]) -> Plugins:
    """Load the named plugins; a package that is only installed runs no code. Raises UsageError."""
    plugins = Plugins()
    installed = _entry_points() if names else {}
    for name in names:
        if name not in installed:
            missing = f"the settings enable the plugin {name!r}, which is not installed"
            raise UsageError(f"{missing}; installed: {', '.join(sorted(installed)) or 'none'}")
        try:
            plugin = installed[name].load()
            plugins.add(plugin() if isinstance(plugin, type) else plugin)
        except Exception as error:
            failed = f"the plugin {name!r} cannot be loaded ({type(error).__name__}: {error})"
            raise UsageError(f"{failed}; disable it in the settings") from error
    return plugins


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - lazy: slow to load, and most projects have no plugins

    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
