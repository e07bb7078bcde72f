"""Messages that wait for the model: a queue, first in, first out."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from turngate.core.loop_guard import LoopGuard
from turngate.core.messages import Origin


@dataclass(frozen=True)
class InboxEntry:
    """One message, never merged with another."""

    text: str
    origin: Origin = "user"
    guard: LoopGuard | None = None  # of a continuation: the loop guard that counts it
    waited: bool = False  # the user typed it while a turn ran
    context: tuple[str, ...] = ()  # of a continuation: messages that follow it
    key: str = ""  # a message with a key reaches the conversation once, however often it is sent


@dataclass
class Inbox:
    _waiting: deque[InboxEntry] = field(default_factory=deque)

    def put(self, entry: InboxEntry) -> None:
        self._waiting.append(entry)

    def put_all(self, entries: Iterable[InboxEntry]) -> None:
        self._waiting.extend(entries)

    def put_back(self, entry: InboxEntry) -> None:
        """Make an entry the next one again: it was popped and did not reach the conversation."""
        self._waiting.appendleft(entry)

    def pop(self) -> InboxEntry | None:
        return self._waiting.popleft() if self._waiting else None

    def clear(self) -> None:
        self._waiting.clear()

    @property
    def has_continuation(self) -> bool:
        return any(entry.origin == "stop_hook" for entry in self._waiting)

    def drop_continuations(self) -> None:
        """After an interrupt the agent does not continue; messages of the user and of subagents stay."""
        self._waiting = deque(entry for entry in self._waiting if entry.origin != "stop_hook")

    def __len__(self) -> int:
        return len(self._waiting)
