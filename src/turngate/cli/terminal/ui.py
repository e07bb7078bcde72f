"""What a conversation needs of a terminal, and what a terminal tells a conversation."""

from dataclasses import dataclass
from typing import Literal, Protocol

Look = Literal["plain", "dim", "note", "loud", "you"]


@dataclass(frozen=True)
class Activity:
    """What runs now, and since when."""

    what: str
    since: float  # time.monotonic()
    waiting: int = 0  # messages that wait for their answer


class InputHandler(Protocol):
    """Who listens to the user."""

    @property
    def busy(self) -> bool: ...

    def hear(self, text: str) -> None:
        """A whole message."""
        ...

    def interrupt(self) -> None: ...

    def ctrl_c(self) -> None: ...

    def end(self) -> None:
        """Nothing more is going to be said."""
        ...

    def leave(self, code: int = 0) -> None: ...


class TerminalUI(Protocol):
    """A screen with a line that lives, or plain lines."""

    for_people: bool  # somebody sits there and reads

    def say(self, text: str, look: Look = "plain") -> None:
        """Whole lines."""
        ...

    def stream(self, text: str) -> None:
        """A piece of the agent's answer; the next `say` ends its line."""
        ...

    def end_stream(self) -> None: ...

    def doing(self, doing: Activity | None) -> None: ...

    def ask(self, question: str | None) -> None:
        """The next line answers this; None: no longer."""
        ...

    def ready(self) -> None:
        """The next message is wanted."""
        ...

    async def listen(self, ear: InputHandler) -> None:
        """Tells what the user says until there is nothing more; cancelled, it leaves the terminal as it was."""
        ...
