"""What the engine needs from outside: the Shell, Model and Store protocols, and World, which holds them."""

import asyncio
import os
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol, Self

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import T, finish_despite_cancel, run_in_thread
from turngate.core.answers.report_types import Exited, Report
from turngate.core.constants import IN_HOOK
from turngate.core.conversation.messages import Evaluation, ModelRequest, Reply
from turngate.core.events.events import Event
from turngate.core.hooks.kinds import AgentHook, CommandHook, label
from turngate.core.redaction import Redactor, make_redactor, secret_values
from turngate.core.settings import Rule
from turngate.core.text import omission_note, quote_name
from turngate.core.verdict.hook_run import HookRun
from turngate.project.files import LOCAL, Files


class CallbackScope:
    """One call of a callback hook; everything that the callback starts inherits it, also after it ended."""

    ended = False


in_callback: ContextVar[CallbackScope | None] = ContextVar("in_callback", default=None)

MAX_STDOUT_BYTES = 16 * 1024 * 1024
MAX_STDERR_BYTES = 8 * 1024 * 1024
MAX_NAMED_HOOKS = 10  # in one notice
MAX_LAST_LINE_BYTES = 4096
OUTPUT_TAIL_BYTES = 64 * 1024  # kept of what exceeds the limit


class BoundedOutput:
    """The output of a command so far: the first `limit` bytes and the last `tail`."""

    def __init__(self, limit: int, tail: int = OUTPUT_TAIL_BYTES) -> None:
        self.limit, self.tail = limit, tail
        self.size = 0
        self.fed_at = 0.0  # time.monotonic()
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        self.fed_at = time.monotonic()
        room = self.limit - len(self._head)
        if room > 0:
            self._head += data[:room]
        if len(data) > room:
            self._tail += data[max(0, room) :]
            del self._tail[: -self.tail]

    @property
    def truncated(self) -> bool:
        return self.size > len(self._head) + len(self._tail)

    def data(self) -> bytes:
        """Return the output as it was, unless it is truncated."""
        return bytes(self._head + self._tail)

    def last_line(self) -> bytes:
        """Return the newest line that is not blank, or its end if it is long."""
        newest = self._head[-MAX_LAST_LINE_BYTES:] + self._tail[-MAX_LAST_LINE_BYTES:]
        lines = bytes(newest[-MAX_LAST_LINE_BYTES:]).splitlines()
        if self.size > MAX_LAST_LINE_BYTES:
            lines[0] = "…".encode() + lines[0]
        return next(filter(None, map(bytes.strip, reversed(lines))), b"")

    def text(self) -> str:
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        left_out = self.size - len(self._head) - len(self._tail)
        head, tail = self._head.decode("utf-8", "replace"), self._tail.decode("utf-8", "replace")
        return head + omission_note(left_out, "bytes") + tail


class HookRunContext:
    """The state of one hook run while it runs, shared by the engine and the runner."""

    def __init__(self, on_exit: Callable[[], None] = lambda: None) -> None:
        self.on_exit = on_exit  # called when the command has exited, before the rest of its output is read
        # If set, it is called when the command has exited and left processes running; the run then lasts until they end.
        self.on_left_running: Callable[[Exited], None] | None = None
        self.ended: Exited | None = None  # how the command ended, if it exited at the moment of its timeout
        self.warnings: list[str] = []  # for the hook's author
        self.redactor: Redactor | None = None  # of the secrets that an endpoint or a command was given
        self.deadline: float | None = None  # in the time of the loop
        self.limit: float | None = None  # the seconds until then, when the hook was started
        self.evaluation: Evaluation | None = None  # what the run used of a model
        self.run_id: str | None = None  # in its records, if it has one of its start
        self.command: HookRunContext | None = None  # that of the command that a gate runs
        # Whether a plain command is started without a shell also if its program is on the PATH.
        self.finds_programs = True

    @cached_property  # only commands have output
    def stdout(self) -> BoundedOutput:
        return BoundedOutput(MAX_STDOUT_BYTES)

    @cached_property
    def stderr(self) -> BoundedOutput:
        return BoundedOutput(MAX_STDERR_BYTES)

    def last_line(self) -> str:
        """Return the newest line that the command of the hook has printed, with its secrets; "" if there is none."""
        live = self.command or self
        return (
            max((live.stdout, live.stderr), key=lambda output: output.fed_at)
            .last_line()
            .decode("utf-8", "replace")
        )


class NotStarted(OSError):
    """The program could not be started; nothing of it ran."""

    def __str__(self) -> str:
        return f"could not be started: {self.filename}: {self.strerror}"


class ConnectionLost(ConnectionError):
    """The connection to the machine where a command ran was lost before its end; how it ended is not known."""


class Shell(Protocol):
    """Where commands run: this machine, or another one.

    A class needs both methods to be a Shell. Without a limit of its own, `slot` returns `contextlib.nullcontext()`.
    With `is_local = True` gates read the project's files without it. `run_stop_hooks` takes a shell with `is_local`, or
    with the attribute `workspace`, and for any other one a World, which says where the files are.
    """

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        """Run one command to its end. When cancelled, leave no process behind."""

    def slot(self, *, background: bool = False) -> AbstractAsyncContextManager[None]:
        """Return a context manager that waits until one more command may run, and holds its slot.

        `background` is for hooks that the stop does not wait for: they must not delay those it waits for.
        """


class FileCopies(Protocol):
    """Copies of files of this machine on the machine where hooks run: transcripts, and other files that only grow."""

    async def copy(self, path: str) -> str:
        """Copy what is new of a file, and return the path of the copy. Raises OSError, which says why."""

    def has_lost(self, path: str) -> bool:
        """Return whether a copy is gone because the connection was lost after it was made."""

    async def renew(self, path: str) -> str:
        """Return the path of a copy, which is made anew if it was lost with its connection. Raises OSError."""


class Model(Protocol):
    """A language model. One with a method `prepare` begins to open its connection before the first request."""

    name: str  # PROVIDER:NAME
    context: int  # tokens that fit into one request

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        """Send one request and return the reply. Each piece of text goes to `tell` as it arrives. Raises ModelError."""

    async def close(self) -> None:
        """Close the connections. The model may be asked again afterward."""


class Store(Protocol):
    """What outlives a hook run. A full disk must not change a verdict, so neither method raises OSError."""

    def record(self, session: str, entry: Mapping[str, Any]) -> None:
        """Add one line to the session's journal, without waiting for the disk."""

    def keep(self, session: str, text: str) -> str | None:
        """Save a text that is too long for a model. Return its path, or None if it could not be saved."""


@frozen
class RemoteMachine:
    """What a project on another machine needs besides a shell there."""

    files: Files
    copies: FileCopies | None = None  # None: hooks can read the files of this machine themselves
    # For commands that the agent leaves running; None: the shell for all.
    background_shell: Shell | None = None
    disconnect: Callable[[], Awaitable[None]] | None = None


# While these are as they were, a gate passes again: the state of the project's files, and the names of the gate's own files and
# of the variables that it uses.
HeldPass = tuple[str, tuple[str, ...], tuple[str, ...]]


@dataclass
class World:
    """Everything outside of the engine that hooks need: where they run, for which project, what is stored."""

    shell: Shell
    project: str
    store: Store | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))  # inherited by hooks
    # Called with None when a run starts, and with the run when it ends.
    watch: Callable[[Rule, HookRun | None], None] | None = None
    background: set["asyncio.Task[None]"] = field(default_factory=set)
    # Returns the model for a hook's `model`, or the default.
    judge: Callable[[str | None], Model] | None = None
    # Runs the hook agent of an agent hook.
    inspect: Callable[[AgentHook, Event, HookRunContext], Awaitable[Report]] | None = None
    awaited: set["asyncio.Task[None]"] = field(default_factory=set)  # the tasks that `close` waits for
    # Called with the run of a hook in the background when it has ended by itself.
    on_background_end: Callable[[Event, HookRun], None] | None = None
    logs: bool = True  # log gates that are not enforced; False: the caller shows them
    time_limit: float | None = None  # seconds for all hooks of one event, whatever the settings say
    held: list[tuple[Rule, HeldPass]] = field(default_factory=list)  # the gates that have passed
    remote: RemoteMachine | None = None  # where the project is; None: on this machine

    def __post_init__(self) -> None:
        if self.remote is None:
            self.project = os.path.abspath(self.project)
        self._made_in_callback = in_callback.get() is not None
        self.records_trees = False  # an agent runs here: with `recordTrees`, its files are kept at each stop
        self.host = ""  # the name of the agent program whose agent stops; "": none that is known
        self.running: dict[HookRunContext, Rule] = {}  # the hooks that run now
        self.killed: list[str] = []  # the names of the hooks that `close` has cancelled
        self.environ_here: Mapping[str, str] | None = None  # see `own_environ`; None: that of this process
        self.store_fault: str | None = None  # why something could not be stored, once the store is closed
        self._redactors: dict[frozenset[str], Redactor | None] = {}  # by further secrets

    @classmethod
    async def ssh(
        cls,
        host: str,
        path: str,
        *,
        user: str | None = None,
        port: int | None = None,
        connect_timeout: float | None = None,
    ) -> "World":
        """Connect to another machine as `ssh` would, and return the workspace of a folder there.

        `host` may be a name of `~/.ssh/config`; `path` is absolute, or relative to the home folder there. Each attempt to
        connect ends after `connect_timeout` seconds, 10 if it is None. Close the workspace with `disconnect`, or use it
        in `async with`. Raises UsageError.
        """
        from turngate.shells.ssh.workspace import open_ssh_workspace  # noqa: PLC0415  # lazy: few projects need it

        return await open_ssh_workspace(host, path, user=user, port=port, connect_timeout=connect_timeout)

    async def disconnect(self) -> None:
        """Remove what was copied to the other machine, and close its connections; on this machine, do nothing."""
        if self.remote is not None and self.remote.disconnect is not None:
            await self.remote.disconnect()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await finish_despite_cancel(self.disconnect())

    @property
    def files(self) -> Files:
        """The files of the machine where the project is."""
        return self.remote.files if self.remote else LOCAL

    @property
    def copies(self) -> FileCopies | None:
        return self.remote.copies if self.remote else None

    @property
    def machine(self) -> str:
        """The machine where the project is, such as `ssh://me@build`; "" for this one."""
        return self.files.machine

    @property
    def location(self) -> str:
        """Where the project is, even on another machine: `ssh://me@build/srv/app`."""
        return self.machine + self.project

    async def with_files(self, function: Callable[..., T], *args: object) -> T:
        """Call a function that reads files of the project with the parameter `files`: see `call`."""
        return await self.call(partial(function, *args, files=self.files))

    async def call(self, function: Callable[..., T], *args: object) -> T:
        """Call a function that reads files of the project: at once, or in a thread if they are on another machine."""
        return await run_in_thread(function, *args) if self.remote else function(*args)

    @property
    def own_environ(self) -> Mapping[str, str]:
        """The environment for what runs on this machine wherever the project is: models, HTTP requests, the state."""
        here = os.environ if self.environ_here is None else self.environ_here
        return here if self.machine else self.environ

    @property
    def in_hook(self) -> bool:
        """Whether this code was started from a hook. Then no hooks run, because they could start each other forever.

        After a callback has ended, what it left running counts only if it uses a World made inside the callback.
        """
        scope = in_callback.get()
        is_called = scope is not None and (self._made_in_callback or not scope.ended)
        return is_called or IN_HOOK in self.own_environ

    def last_line(self, hook: str | None = None) -> str:
        """Return the newest line that a running hook of this name, or any of them, has printed, without secrets."""
        for live, rule in self.running.items():
            if hook in (None, label(rule.hook)) and (line := live.last_line()):
                redactor = live.redactor or self.redactor({})
                return redactor.truncated(line) if redactor else line
        return ""

    @cached_property
    def _secrets(self) -> frozenset[str]:
        return secret_values(self.environ)

    def redactor(self, further: Mapping[str, str]) -> Redactor | None:
        """Return a redactor of the secrets in the environment and in further variables, made once for each."""
        secrets = secret_values(further) if further else frozenset()
        if secrets not in self._redactors:
            self._redactors[secrets] = make_redactor(self._secrets | secrets, ignores_case=False)
        return self._redactors[secrets]

    async def close(self, grace: float = 0.0) -> int:
        """Wait up to `grace` seconds for background hooks, then cancel them. Return how many were cancelled.

        Hooks with `asyncRewake` are waited for up to their own timeout.
        """
        waiting = set(self.background)
        try:
            if self.awaited:
                await asyncio.wait(set(self.awaited))
            if waiting and grace > 0:
                await asyncio.wait(waiting, timeout=grace)
        finally:
            late = [task for task in waiting if not task.done()]
            for task in late:
                task.cancel()
            self.killed = [task.get_name() for task in late]
            await finish_despite_cancel(asyncio.gather(*late, return_exceptions=True))
        return len(late)


def on_machine(world: World) -> str:
    """Return " on me@build", for a message about what is read there, or "" for this machine."""
    return f" on {world.machine.removeprefix('ssh://')}" if world.machine else ""


def ssh_option(world: World) -> str:
    """Return the option of a command for a project on another machine, with a space; "" for one on this machine."""
    return f"--ssh {shlex.quote(world.location)} " if world.machine else ""


def describe_killed(world: World) -> str:
    """Return a notice that names the hooks that `World.close` has cancelled."""
    names = list(dict.fromkeys(world.killed))
    listed = ", ".join(map(quote_name, names[:MAX_NAMED_HOOKS]))
    more = f" and {len(names) - MAX_NAMED_HOOKS} more" if len(names) > MAX_NAMED_HOOKS else ""
    return f"background hooks killed because they were still running: {listed}{more}"


Workspace = World  # a public alias: editors call it a workspace
