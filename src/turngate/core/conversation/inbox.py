"""Messages that wait for the model: a queue, first in, first out."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.checkpoints import WaitingAgent, Workflow
from turngate.core.conversation.messages import Origin
from turngate.core.verdict.loop_guard import LoopGuard


@frozen
class InboxEntry:
    """One message, never merged with another."""

    text: str
    origin: Origin = "user"
    guard: LoopGuard | None = None  # of a continuation: the loop guard that counts it
    waited: bool = False  # the user typed it while a turn ran
    by_hook: bool = False  # a SessionStart hook speaks for the user; it starts no new count
    counts: bool = False  # a hook in the background wakes the agent with it: it counts as a continuation
    context: tuple[str, ...] = ()  # of a continuation: messages that follow it
    workflow: Workflow | None = None  # of a slash command: what it asks for, stage by stage
    notices: tuple[str, ...] = ()  # of a slash command: for the user
    # Of a report: whether its subagent waits at a checkpoint; None: as before.
    waiting: WaitingAgent | None = None
    key: str = ""  # a message with a key reaches the conversation once, however often it is sent


@dataclass
class Inbox:
    _waiting: deque[InboxEntry] = field(default_factory=deque)

    def put(self, entry: InboxEntry) -> None:
        self._waiting.append(entry)

    def put_all(self, entries: Iterable[InboxEntry]) -> None:
        self._waiting.extend(entries)

    def put_first(self, entry: InboxEntry) -> None:
        """Make an entry the next one: it answers a question, or was popped and did not reach the conversation."""
        self._waiting.appendleft(entry)

    def pop(self) -> InboxEntry | None:
        return self._waiting.popleft() if self._waiting else None

    def take(self, origin: Origin) -> list[InboxEntry]:
        taken = [entry for entry in self._waiting if entry.origin == origin]
        self._waiting = deque(entry for entry in self._waiting if entry.origin != origin)
        return taken

    def count(self, origin: Origin) -> int:
        return sum(entry.origin == origin for entry in self._waiting)

    def clear(self) -> None:
        self._waiting.clear()

    @property
    def wakes(self) -> int:
        """How many entries are blocks of hooks in the background."""
        return sum(entry.counts for entry in self._waiting)

    def drop_continuations(self) -> None:
        """After an interrupt or a question the agent does not continue; messages of the user and of subagents stay."""
        self.take("stop_hook")

    def __len__(self) -> int:
        return len(self._waiting)
