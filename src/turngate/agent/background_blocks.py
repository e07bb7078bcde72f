"""The blocks of hooks in the background with `asyncRewake`, until a turn answers them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from turngate.agent.background_commands import MAX_REPORT_CHARS
from turngate.core.answers.reports import Exited
from turngate.core.conversation.inbox import Inbox, InboxEntry
from turngate.core.hooks.kinds import label
from turngate.core.text import keep_ends, one_line, quote_name
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.loop_guard import EndTurn, LoopGuard
from turngate.core.verdict.tool_effects import wake_message

MAX_REASON_CHARS = 200  # in a notice


@dataclass
class Wakes:
    """Keeps blocks within the limit of continuations.

    Tool calls may reset the count of continuations, but never the count of wakes.
    """

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
        """Whether a block waits for a turn."""
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
            self.notice(describe_lost_block(run, "blocked, and no further turn answers it"))
        self._blocks.clear()


def _reason(run: HookRun) -> str:
    """Return what a hook that blocks with exit code 2 printed."""
    return run.report.stderr.strip() if isinstance(run.report, Exited) else ""


def describe_lost_block(run: HookRun, what: str) -> str:
    name, reason = quote_name(label(run.rule.hook)), one_line(_reason(run), MAX_REASON_CHARS)
    return f"hook {name} in the background {what}{f': {reason}' if reason else ''}"
