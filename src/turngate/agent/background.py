"""What runs in the background of a session: commands of Bash, and hooks with `asyncRewake` whose blocks wake the agent."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from turngate.aio.threads import finish_despite_cancel
from turngate.core.answers.report_types import Exited
from turngate.core.conversation.inbox import Inbox, InboxEntry
from turngate.core.conversation.tools import ToolFailed
from turngate.core.hooks.kinds import label
from turngate.core.text import keep_ends, omission_note, one_line, quote_name, truncate_middle
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.loop_guard import EndTurn, LoopGuard
from turngate.core.verdict.tool_effects import wake_message
from turngate.ports import BoundedOutput, ConnectionLost, HookRunContext

MAX_RUNNING = 8  # commands of one agent at the same time
MAX_ENDED = 32  # ended commands whose output can still be read
KEPT_BYTES = 256 * 1024  # of the newest output of one command
MAX_REPORT_CHARS = 10_000  # of the output in the message that a command has ended

Status = Literal["running", "completed", "failed", "killed"]


class RecentOutput(BoundedOutput):
    """The newest output of a command, stdout and stderr as they came; each part of it is read once."""

    def __init__(self) -> None:
        super().__init__(0, tail=KEPT_BYTES)
        self._read = 0  # bytes of the whole output

    def take_new(self) -> str:
        """Return the output since the last call."""
        start, self._read = self._read, self.size
        dropped = self.size - len(self._tail)
        text = self._tail[max(0, start - dropped) :].decode("utf-8", "replace")
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
        output = truncate_middle(self.output.take_new().rstrip("\n"), MAX_REPORT_CHARS)
        heading = f"[Background command] {self.id} ({one_line(self.command)[:200]}) {self.state}."
        return f"{heading}\n\n{output}" if output else f"{heading} It printed nothing new."


class BackgroundCommands:
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
            raise ToolFailed(
                f"{MAX_RUNNING} commands are already running in the background ({names}): end one first"
            )
        new = BackgroundCommand(f"bash_{next(self._numbers)}", command, description)
        ended = [each.id for each in self._commands.values() if not each.is_alive and each.is_reported]
        for identity in ended[: max(0, len(ended) - MAX_ENDED + 1)]:
            del self._commands[identity]
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
            command.ending = f"could not be started: {error.strerror or error}"
            if isinstance(error, ConnectionLost):
                command.ending = f"has failed: {error}"
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
        ended = [each for each in self._commands.values() if each.status in ("completed", "failed")]
        return [each for each in ended if not each.is_reported]

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

    async def close(self) -> list[str]:
        """End all commands, and start no more. Return those that were still running, or had left processes running."""
        self._is_closed = True
        alive = self.alive
        await self.kill(alive)
        return [one_line(each.command) for each in alive]


MAX_REASON_CHARS = 200  # in a notice


@dataclass
class Wakes:
    """Keeps blocks within the limit of continuations. Tool calls may reset the count of continuations, but never the count of wakes."""

    running: set["asyncio.Task[None]"]  # the hooks that may still block
    guard: Callable[[], LoopGuard]
    inbox: Inbox
    notice: Callable[[str], None]
    on_change: Callable[[], None]

    def __post_init__(self) -> None:
        self._blocks: list[tuple[HookRun, InboxEntry]] = []
        self._unanswered: dict[str, str] = {}  # beyond the limit: the reason by the name of the hook
        self._count = 0  # since the user's last message
        self._is_closed = False

    @property
    def waiting(self) -> bool:
        return bool(self._blocks)

    def add(self, run: HookRun) -> None:
        """Keep the block of a hook that has ended, if its exit code wakes the agent."""
        text = wake_message(run)
        if not text:
            return
        if self._is_closed:
            self.notice(describe_lost_block(run, "blocked after the last turn, and wakes no agent"))
            return
        guard, name = self.guard(), f"hook {quote_name(label(run.rule.hook))} in the background"
        for _ in range(len(self._blocks) + self.inbox.wakes):
            guard = guard.redirected()
        if not guard.below_limit or (guard.limit is not None and self._count >= guard.limit):
            self._unanswered[label(run.rule.hook)] = _reason(run)
            self.notice(f"{name} does not wake the agent: {guard.limit} continuations are the limit")
            return
        self._count += 1
        bounded = keep_ends(text, MAX_REPORT_CHARS // 2, MAX_REPORT_CHARS // 2)
        self._blocks.append((run, InboxEntry(bounded, "background", waited=True, counts=True)))
        self.notice(f"{name} wakes the agent")
        self.on_change()

    def take(self) -> list[InboxEntry]:
        """Return the messages to the agent, each of them once."""
        blocks, self._blocks = self._blocks, []
        return [entry for _, entry in blocks]

    def count_anew(self) -> None:
        """The user has sent a message."""
        self._count = 0
        self._unanswered.clear()

    def watch_running(self) -> bool:
        """Return whether a hook runs that may still block; its end calls `on_change`."""
        for task in self.running:
            task.remove_done_callback(self._on_end)
            task.add_done_callback(self._on_end)
        return bool(self.running)

    def _on_end(self, _: object) -> None:
        self.on_change()

    def end_turn(self, end: EndTurn) -> EndTurn:
        """Return how a turn ends that no other hook blocks: as capped, if a block was beyond the limit."""
        blocking, self._unanswered = self._unanswered, {}
        if end.ended_by != "allowed" or not blocking:
            return end
        return self.guard().capped(list(blocking), list(blocking.values())[-1])

    def close(self) -> None:
        """Name the blocks that no turn will answer, now and from now on."""
        self._is_closed = True
        for run, _ in self._blocks:
            self.notice(describe_lost_block(run, "blocked, and there is no later turn to act on it"))
        self._blocks.clear()


def _reason(run: HookRun) -> str:
    return run.report.stderr.strip() if isinstance(run.report, Exited) else ""


def describe_lost_block(run: HookRun, what: str) -> str:
    name, reason = quote_name(label(run.rule.hook)), one_line(_reason(run), MAX_REASON_CHARS)
    return f"hook {name} in the background {what}{f': {reason}' if reason else ''}"
