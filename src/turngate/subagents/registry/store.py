"""The port to where runs are stored. `Registry` says what is written; a store executes it, and knows which owners live."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

BEAT_S = 5.0  # an owner that needs a lease shows so often that it lives
LEASE_S = 20.0  # after so long without, others may take over its runs
HELD_S = LEASE_S - 2  # after so long without, it cancels its work itself

OwnerEnd = Literal["died", "left"]  # one that left in order has given up its runs: its id there is ""


class RunStore(Protocol):
    """One connection of one process. Every method may be called from any thread, and raises RegistryError."""

    has_lease: bool  # whether an owner has to `beat` every BEAT_S
    name: str  # for messages
    notice: str | None  # for the user, about what happened when it was opened

    def execute(self, statement: str, values: Mapping[str, object]) -> Sequence[Mapping[str, Any]]:
        """Execute a statement, durably, and return its rows."""
        ...

    def wait_for_change(self, since: int, seconds: float) -> int:
        """Wait for a write of another process, and return a number that differs from `since` after one."""
        ...

    def join(self) -> str:
        """Make this process an owner of runs, until `leave` or `close`; return the owner's id."""
        ...

    def beat(self, owner: str) -> bool:
        """Keep the owner's runs from being taken over. False: others may have taken them over already."""
        ...

    def leave(self, owner: str) -> None:
        """Note that an owner ended in order; without it, `close` lets the owner count as dead."""
        ...

    def owner_status(self, owner: str) -> AbstractContextManager[OwnerEnd | None]:
        """Return how an owner ended, or None while it lives. Inside the block, no other process does the same."""
        ...

    def living(self, owners: Collection[str]) -> dict[str, str | None]:
        """Return those that live, each with a phrase that says where, "" if that is not known.

        None: it has just died, and another process is taking over its runs.
        """
        ...

    def close(self) -> None: ...
