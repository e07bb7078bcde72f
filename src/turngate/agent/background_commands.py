"""The commands that Bash runs in the background: their output, their end, and nothing of them left behind."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.answers.reports import Exited
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.tools import ToolFailed
from turngate.core.text import omission_note, one_line, truncate_middle
from turngate.ports import BoundedOutput, ConnectionLost, HookRunContext

MAX_RUNNING = 8  # commands of one agent at the same time
MAX_ENDED = 32  # ended commands whose output can still be read
KEPT_BYTES = 256 * 1024  # of the newest output of one command
MAX_REPORT_CHARS = 10_000  # of the output in the message that a command has ended

Status = Literal["running", "completed", "failed", "killed"]


class RecentOutput(BoundedOutput):
    """The newest output of a command, stdout and stderr as they came; each part of it is read once."""

    def __init__(self) -> None:
        super().__init__(KEPT_BYTES)
        self._kept = bytearray()
        self._read = 0  # bytes of the whole output

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        self._kept += data
        del self._kept[: -self.limit]

    @property
    def truncated(self) -> bool:
        return self.size > len(self._kept)

    def text(self) -> str:
        return self._since(0)

    def take_new(self) -> str:
        """Return the output since the last call."""
        text, self._read = self._since(self._read), self.size
        return text

    def _since(self, start: int) -> str:
        dropped = self.size - len(self._kept)
        text = self._kept[max(0, start - dropped) :].decode("utf-8", "replace")
        return omission_note(dropped - start, "bytes") + text if dropped > start else text


@dataclass
class BackgroundCommand:
    id: str
    command: str
    description: str
    started: float = field(default_factory=time.monotonic)
    output: RecentOutput = field(default_factory=RecentOutput)
    status: Status = "running"
    ending: str = ""  # how it ended, in words
    leaves_processes: bool = False  # it has ended, and processes that it started are still running
    is_reported: bool = False  # the agent knows that it has ended
    task: "asyncio.Task[None] | None" = None

    @property
    def state(self) -> str:
        if self.leaves_processes:
            return f"{self.ending}, and processes that it started are still running; KillShell ends them"
        return self.ending or "is running"

    @property
    def is_alive(self) -> bool:
        """Whether it runs, or processes that it left running."""
        return self.status == "running" or self.leaves_processes

    def report(self) -> str:
        """Return the message that wakes the agent."""
        output = self.output.take_new().rstrip("\n")
        if len(output) > MAX_REPORT_CHARS:
            output = truncate_middle(output, MAX_REPORT_CHARS, None)
        heading = f"[Background command] {self.id} ({one_line(self.command)[:200]}) {self.state}."
        return f"{heading}\n\n{output}" if output else f"{heading} It printed nothing new."


class BackgroundCommands:
    """The background commands of one agent."""

    def __init__(self, on_end: Callable[[BackgroundCommand], None]) -> None:
        self._on_end = on_end
        self._commands: dict[str, BackgroundCommand] = {}
        self._numbers = itertools.count(1)
        self._is_closed = False

    def start(
        self, command: str, description: str, run: Callable[[HookRunContext], Awaitable[Exited]]
    ) -> BackgroundCommand:
        """Start a command; `run` runs it to its end. Raises ToolFailed if too many are running."""
        alive = self.alive
        if self._is_closed:
            raise ToolFailed("the session is ending")
        if len(alive) >= MAX_RUNNING:
            names = ", ".join(each.id for each in alive)
            raise ToolFailed(f"{MAX_RUNNING} commands run in the background already ({names}): end one first")
        new = BackgroundCommand(f"bash_{next(self._numbers)}", command, description)
        self._forget_oldest()
        self._commands[new.id] = new
        new.task = asyncio.create_task(self._run(new, run))
        return new

    async def _run(
        self, command: BackgroundCommand, run: Callable[[HookRunContext], Awaitable[Exited]]
    ) -> None:
        live = HookRunContext()
        live.stdout = live.stderr = command.output

        def end(exited: Exited) -> None:
            command.status = "failed" if exited.code else "completed"
            signal = f" (signal {exited.signal})" if exited.signal else ""
            command.ending = f"ended with exit code {exited.code}{signal}"
            self._on_end(command)

        def leave(exited: Exited) -> None:
            command.leaves_processes = True
            end(exited)

        live.on_left_running = leave
        try:
            exited = await run(live)
        except asyncio.CancelledError:
            command.status, command.ending = "killed", "was killed"
            raise
        except OSError as error:
            command.status = "failed"
            lost = isinstance(error, ConnectionLost)
            command.ending = (
                f"has failed: {error}" if lost else f"could not be started: {error.strerror or error}"
            )
            self._on_end(command)
        else:
            if not command.leaves_processes:
                end(exited)
        finally:
            command.leaves_processes = False

    def get(self, identity: str) -> BackgroundCommand:
        if identity not in self._commands:
            known = f", expected one of {', '.join(self._commands)}" if self._commands else ""
            raise ToolFailed(f"there is no background command {identity!r}{known}")
        return self._commands[identity]

    @property
    def running(self) -> list[BackgroundCommand]:
        return [each for each in self._commands.values() if each.status == "running"]

    @property
    def alive(self) -> list[BackgroundCommand]:
        """The commands that run, and those that have left processes running."""
        return [each for each in self._commands.values() if each.is_alive]

    @property
    def ended(self) -> list[BackgroundCommand]:
        """The commands that have ended by themselves and that the agent does not know about."""
        return [
            each
            for each in self._commands.values()
            if each.status in ("completed", "failed") and not each.is_reported
        ]

    def take_ended(self) -> list[InboxEntry]:
        """Return a message for each of `ended`, once."""
        ended = self.ended
        for each in ended:
            each.is_reported = True
        return [InboxEntry(each.report(), "background", waited=True) for each in ended]

    def background_tasks(self) -> list[dict[str, Any]]:
        """Return the part of `background_tasks` of a stop event that these commands are."""
        return [
            {
                "id": each.id,
                "type": "shell",
                "status": "running",
                "description": each.description,
                "command": each.command,
            }
            for each in self.running
        ]

    async def kill(self, commands: Iterable[BackgroundCommand]) -> None:
        """End these commands with all processes that they started: TERM, then KILL."""
        tasks = [each.task for each in commands if each.task is not None and not each.task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await finish_despite_cancel(asyncio.gather(*tasks, return_exceptions=True))

    async def kill_since(self, started: float) -> None:
        """End the commands that were started at this time of the monotonic clock or later."""
        await self.kill(each for each in self.alive if each.started >= started)

    async def close(self) -> list[str]:
        """End all commands, and start no more. Return those that were still running, or had left processes running."""
        self._is_closed = True
        alive = self.alive
        await self.kill(alive)
        return [one_line(each.command) for each in alive]

    def _forget_oldest(self) -> None:
        ended = [each.id for each in self._commands.values() if not each.is_alive and each.is_reported]
        for identity in ended[: max(0, len(ended) - MAX_ENDED + 1)]:
            del self._commands[identity]
