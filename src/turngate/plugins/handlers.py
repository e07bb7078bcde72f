"""Handlers of plugins: by priority, one after another, isolated and time-limited.

All of them watch, and nothing they do changes anything, but for `subagent_stopping`, which may send a child on.
"""

import asyncio
import copy
import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from turngate.aio.foreign import CallbackCancelledItself, call_callback
from turngate.core.plugin_events import (
    SubagentStoppingContext,
    SubagentStoppingEvent,
    SubagentStoppingResult,
    stopping_result,
)
from turngate.core.text import describe_exception
from turngate.errors import UsageError

NAMES = ("conversation", "stop", "subagent_stop", "subagent_stopping", "subagent_ended")
ALIASES = {"subagentStop": "subagent_stop"}
LIMIT = 30.0  # seconds for one handler

Handler = Callable[
    ..., Any
]  # takes the payload; of `subagent_stopping` and `subagent_ended` also the context


@dataclass(frozen=True)
class _Registered:
    name: str
    handler: Handler
    priority: int
    number: int
    plugin: str


@dataclass(frozen=True)
class PluginContext:
    """Where a plugin finds itself; an object that was added has it as `ctx`."""

    session_id: str
    project: str
    state: str  # the folder for what must be kept
    settings: Any


class Plugin:
    """A base for plugins: a method called like a plugin hook (`stop`, `subagent_stopping`, …) is its handler."""

    ctx: PluginContext | None = None  # once it belongs to a session
    priority = 0  # of all its handlers; higher ones come first


@dataclass
class Plugins:
    """Who wants to be told what."""

    limit: float = LIMIT
    complaints: list[str] = field(default_factory=list)  # what handlers got wrong, for the user
    _objects: list[Any] = field(default_factory=list)
    _all: list[_Registered] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def on(self, name: str, handler: Handler, *, priority: int = 0, plugin: str | None = None) -> None:
        """Higher priorities first; equal ones in order of registration."""
        name = ALIASES.get(name, name)
        if name not in NAMES:
            raise UsageError(f"there is no plugin hook {name!r}; there are {', '.join(NAMES)}")
        who = plugin or str(getattr(handler, "__qualname__", handler))
        self._all.append(_Registered(name, handler, priority, next(self._numbers), who))

    def add(self, plugin: object) -> None:
        """Registers every handler that an object has a method for."""
        self._objects.append(plugin)
        for name in (*NAMES, *ALIASES):
            handler = getattr(plugin, name, None)
            if callable(handler):
                self.on(name, handler, priority=getattr(plugin, "priority", 0), plugin=type(plugin).__name__)

    def bind(self, context: PluginContext) -> None:
        """Gives every added object the context of the session it now belongs to."""
        for plugin in self._objects:
            plugin.ctx = context

    def take_errors(self) -> list[str]:
        """What handlers got wrong since somebody asked last."""
        taken, self.complaints = self.complaints, []
        return taken

    def wants(self, name: str) -> bool:
        return any(registered.name == name for registered in self._all)

    async def tell(self, name: str, payload: object, *context: object) -> None:
        """Tells everybody, whatever one of them does; what they return is not looked at."""
        for registered in self._in_order(name):
            _, wrong = await self._called(registered, copy.deepcopy(payload), *context)
            if wrong:
                self.complaints.append(f"plugin {registered.plugin} {wrong}")

    async def ask_stopping(
        self, event: SubagentStoppingEvent, context: SubagentStoppingContext
    ) -> SubagentStoppingResult:
        """The first handler that redirects wins; one that fails, or redirects without a prompt, counts as allow.

        How far anybody raises the limit counts, whoever wins.
        """
        raised: list[int] = []
        answer = SubagentStoppingResult()
        for registered in self._in_order("subagent_stopping"):
            said, wrong = await self._called(registered, copy.deepcopy(event), context)
            try:
                answer, odd = stopping_result(None if wrong else said)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a mapping of the plugin's own is foreign code too
                answer, odd = SubagentStoppingResult(), f"returned no result: {describe_exception(error)}"
            if wrong or odd:
                self.complaints.append(f"plugin {registered.plugin} {wrong or odd}")
            if answer.extend_max_steers is not None:
                raised.append(answer.extend_max_steers)
            if not answer.allow:
                break
        return replace(answer, extend_max_steers=max(raised, default=None))

    def _in_order(self, name: str) -> list[_Registered]:
        wanted = [registered for registered in self._all if registered.name == name]
        return sorted(wanted, key=lambda r: (-r.priority, r.number))

    async def _called(self, registered: _Registered, *arguments: object) -> tuple[object, str | None]:
        """What it returned, and what went wrong."""
        *first, last = arguments
        try:
            async with asyncio.timeout(self.limit) as timer:
                return await call_callback(_bound(registered.handler, *first), last), None
        except TimeoutError as error:
            if timer.expired():
                return None, f"took longer than {self.limit:g} s at {registered.name}"
            return None, f"failed at {registered.name}: {describe_exception(error)}"
        except CallbackCancelledItself:
            return None, f"failed at {registered.name}: it cancelled itself"
        except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code: it never changes the result
            return None, f"failed at {registered.name}: {describe_exception(error)}"


def _bound(handler: Handler, *first: object) -> Handler:
    """The handler with all but its last argument; what is asynchronous stays so."""
    if not (inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)):
        return partial(handler, *first)

    async def bound(last: object) -> Any:
        return await handler(*first, last)

    return bound


@dataclass(frozen=True, kw_only=True)
class StopPayload:
    """What an observer of `stop` is told, once, at the final end of a turn."""

    session_id: str
    result: Any
    usage: Any
    turns_count: int
    tool_calls_count: int
    duration: float
    model: str
    continuations: int
    ended_by: str
    partial_usage: Any = None  # what a failed turn used all the same
    elapsed: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SubagentStopPayload:
    """What an observer of `subagent_stop` is told, once, at the final end of a child."""

    parent_session_id: str
    agent_id: str
    agent_type: str
    result: Any
    usage: Any
    total_tool_calls: int
    total_duration: float  # seconds
    model: str
    transcript_path: str = ""
    continuations: int = 0
    outcome: str = "ok"
