"""What the engine needs of the world."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.constants import IN_HOOK
from turngate.core.events import Event
from turngate.core.hooks import AgentHook, CommandHook
from turngate.core.messages import Evaluation, ModelRequest, Reply
from turngate.core.redaction import Redactor
from turngate.core.reports import Exited, Report
from turngate.core.settings import Rule
from turngate.core.verdict import HookRun


class CallbackScope:
    """One call of a function that is a hook; whatever it starts knows of it, also when it is over."""

    over = False


in_callback: ContextVar[CallbackScope | None] = ContextVar("in_callback", default=None)

STDOUT_LIMIT = 16 * 1024 * 1024
STDERR_LIMIT = 8 * 1024 * 1024
TAIL = 64 * 1024


class BoundedOutput:
    """What a command has printed so far; bounded, but the end is never lost."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        room = self.limit - len(self._head)
        if room > 0:
            self._head += data[:room]
        if len(data) > room:
            self._tail += data[max(0, room) :]
            del self._tail[:-TAIL]

    @property
    def cut(self) -> bool:
        return self.size > len(self._head) + len(self._tail)

    def text(self) -> str:
        if not self.cut:
            return (self._head + self._tail).decode("utf-8", "replace")
        left_out = self.size - len(self._head) - len(self._tail)
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return f"{head}\n… [{left_out:,} bytes left out] …\n{tail}"


class RunContext:
    """One run while it still runs: what it has printed, and what should be known about it."""

    def __init__(self, on_exit: Callable[[], None] = lambda: None) -> None:
        self.on_exit = on_exit  # called as soon as the command has ended, though we may read on for a moment
        self.ended: Exited | None = None  # how it ended, where its end and our time limit met
        self.warnings: list[str] = []  # for the hook's author
        self.redactor: Redactor | None = None  # of the secrets that an endpoint was sent
        self.until: float | None = None  # the loop time at which the timeout expires
        self.evaluation: Evaluation | None = None  # what its model has cost so far

    @cached_property  # only commands print
    def stdout(self) -> BoundedOutput:
        return BoundedOutput(STDOUT_LIMIT)

    @cached_property
    def stderr(self) -> BoundedOutput:
        return BoundedOutput(STDERR_LIMIT)


class Shell(Protocol):
    """Where commands run: this machine, or another one.

    A class needs both methods to be a Shell. Without a limit of its own, `slot` returns `contextlib.nullcontext()`.
    """

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: RunContext
    ) -> Exited:
        """Run one command to its end. When cancelled, leave no process behind."""
        ...

    def slot(self, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Return a context manager that waits until one more command may run, and holds its slot.

        `background` is for hooks that the stop does not wait for: they must not delay those it waits for.
        """
        ...


class Model(Protocol):
    """Something that answers."""

    name: str  # PROVIDER:NAME
    context: int  # tokens that fit into one request

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        """One request, streamed: `tell` gets each piece of text as it comes. Raises ModelError."""
        ...

    async def close(self) -> None:
        """Lets go of connections; it may be asked again afterwards."""
        ...


class Store(Protocol):
    """What must outlive the moment. Neither method raises: a full disk never changes a verdict."""

    def record(self, session: str, entry: Mapping[str, Any]) -> None:
        """Adds one line to the session's journal, without waiting for the disk."""
        ...

    def keep(self, session: str, text: str) -> str | None:
        """Writes a text that is too long for a model; gives its path, or None."""
        ...


@dataclass
class World:
    """Everything outside: where hooks run, for which project, and what is remembered."""

    shell: Shell
    project: str
    store: Store | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))  # what hooks inherit
    watch: Callable[[Rule, HookRun | None], None] | None = (
        None  # called when a run starts, and with it when it ends
    )
    background: set["asyncio.Task[None]"] = field(default_factory=set)
    judge: Callable[[str | None], Model] | None = None  # the model of a prompt hook that names one, or none
    inspect: Callable[[AgentHook, Event, RunContext], Awaitable[Report]] | None = (
        None  # asks a small agent, which can only look
    )

    def __post_init__(self) -> None:
        self.project = os.path.abspath(self.project)
        self._made_by_hook = in_callback.get() is not None

    @property
    def in_hook(self) -> bool:
        """Are we below a hook? Then no hook is asked: that would never end.

        What a function has started and left behind is below it only with a world that it made there itself.
        """
        call = in_callback.get()
        return IN_HOOK in self.environ or (call is not None and (self._made_by_hook or not call.over))

    async def close(self, grace: float = 0.0) -> int:
        """Waits for the hooks in the background, then ends them; says how many had to be ended."""
        waiting = set(self.background)
        try:
            if waiting and grace > 0:
                await asyncio.wait(waiting, timeout=grace)
        finally:
            late = [task for task in waiting if not task.done()]
            for task in late:
                task.cancel()
            await finish_despite_cancel(asyncio.gather(*late, return_exceptions=True))
        return len(late)


Workspace = World  # the name that editors have for it
