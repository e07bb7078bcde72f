"""Messages that wait for the model: a queue of sealed entries, first in, first out."""

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
    guard: LoopGuard | None = None  # a continuation runs under the guard that granted it
    waited: bool = False  # it was typed while a turn ran
    key: str = ""  # what has one reaches the conversation once, however often it is sent


@dataclass
class Inbox:
    _waiting: deque[InboxEntry] = field(default_factory=deque)

    def put(self, entry: InboxEntry) -> None:
        self._waiting.append(entry)

    def put_back(self, entry: InboxEntry) -> None:
        """It was taken, and did not get through: it is the next one again."""
        self._waiting.appendleft(entry)

    def put_all(self, entries: Iterable[InboxEntry]) -> None:
        self._waiting.extend(entries)

    def take(self) -> InboxEntry | None:
        return self._waiting.popleft() if self._waiting else None

    @property
    def goes_on(self) -> bool:
        """Does a continuation wait already?"""
        return any(entry.origin == "stop_hook" for entry in self._waiting)

    def drop_continuations(self) -> None:
        """After an interrupt nothing goes on by itself; what the user typed and children reported stays."""
        self._waiting = deque(entry for entry in self._waiting if entry.origin != "stop_hook")

    def __len__(self) -> int:
        return len(self._waiting)
