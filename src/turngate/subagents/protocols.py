"""What a chain sees of those around it: its child, the child's parent, and the supervisor."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from turngate.core.inbox import InboxEntry
from turngate.core.messages import Message
from turngate.core.session_events import SessionEvent, TurnResult
from turngate.core.subagent_run import Run
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.registry import Registry
from turngate.subagents.slots import ConcurrencySlots
from turngate.subagents.stop_check import StopCheckHost

T = TypeVar("T")


class Child(Protocol):
    """A child's session, as its chain sees it."""

    messages: list[Message]
    last_result: TurnResult | None

    async def open(self) -> None: ...
    async def take_turn(self, entry: InboxEntry) -> TurnResult: ...
    async def close(self) -> None: ...
    def clear_inbox(self) -> None: ...
    def append_once(self, entry: InboxEntry) -> None: ...
    def knows(self, key: str) -> bool: ...
    def add_context(self, text: str) -> None: ...
    def settle(self) -> None: ...


class Host(StopCheckHost, Protocol):
    """The session that children belong to, as their chains see it."""

    def new_child(self, run: Run) -> Child: ...
    def emit(self, event: SessionEvent) -> None: ...
    def child_news(self, run: Run) -> None: ...
    def child_gone(self, run: Run) -> None: ...
    def has_children(self, agent: str) -> bool: ...


class Office(Protocol):
    """The supervisor, as one of its chains sees it."""

    host: Host
    registry: Registry
    limits: SubagentLimits
    line: ConcurrencySlots
    announcer: Callable[[Run], Awaitable[None]] | None

    @property
    def id(self) -> str: ...
    def step(self, name: str, run: Run) -> None: ...
    def works(self, agent: str) -> bool: ...
    async def write(self, transition: Callable[..., T], *arguments: object) -> T: ...
