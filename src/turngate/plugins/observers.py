"""Handlers that watch: told by priority, one after another, isolated and time-limited; nothing they do changes anything."""

import asyncio
import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from turngate.errors import UsageError
from turngate.tasks import call, is_cancelled

NAMES = ("conversation", "stop", "subagent_stop")
ALIASES = {"subagentStop": "subagent_stop"}
LIMIT = 30.0  # seconds for one handler

Handler = Callable[[Any], Any]


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
                self.on(name, handler, plugin=type(plugin).__name__)

    def bind(self, context: PluginContext) -> None:
        """Gives every added object the context of the session it now belongs to."""
        for plugin in self._objects:
            plugin.ctx = context

    async def tell(self, name: str, payload: object) -> None:
        """Tells everybody, whatever one of them does; what they return is not looked at."""
        wanted = [registered for registered in self._all if registered.name == name]
        for registered in sorted(wanted, key=lambda r: (-r.priority, r.number)):
            wrong = await self._told(registered, copy.deepcopy(payload))
            if wrong:
                self.complaints.append(f"plugin {registered.plugin} {wrong}")

    async def _told(self, registered: _Registered, payload: object) -> str | None:
        """What went wrong, or None."""
        try:
            async with asyncio.timeout(self.limit) as timer:
                await call(registered.handler, payload)
        except TimeoutError as error:
            if timer.expired():
                return f"took longer than {self.limit:g} s at {registered.name}"
            return f"failed at {registered.name}: {error!r}"
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            return f"failed at {registered.name}: it cancelled itself"
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - foreign code: it never changes the result
            return f"failed at {registered.name}: {type(error).__name__}: {error}"
        return None


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
