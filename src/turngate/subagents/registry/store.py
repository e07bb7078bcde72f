"""The port to where runs are stored. `Registry` says what is written; a store executes it, and knows which owners live."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

BEAT_S = 5.0  # an owner that needs a lease shows so often that it lives
LEASE_S = 20.0  # after so long without, others may take over its runs
HELD_S = LEASE_S - 2  # after so long without, it cancels its work itself


class RunStore(Protocol):
    """One connection of one process. Every method may be called from any thread, and raises RegistryError."""

    has_lease: bool  # whether an owner has to `beat` every BEAT_S
    retry_pauses: Sequence[float]  # between tries of a statement that fails
    name: str  # for messages
    notice: str | None  # for the user, about what happened when it was opened

    # Durable when it returns.
    def execute(self, statement: str, values: Mapping[str, object]) -> Sequence[Mapping[str, Any]]: ...
    # Waits for a write of another process; after one, the number differs from `since`.
    def wait_for_change(self, since: int, seconds: float) -> int: ...
    # Returns the id of a new owner of runs. With slots it is a worker, which claims runs with some of these labels.
    def join(self, *, slots: int = 0, labels: Sequence[str] = ()) -> str: ...
    # Keeps the owner's runs from being taken over. False: others may have taken them over already.
    def beat(self, owner: str) -> bool: ...
    # The owner ends in order; without it, `close` lets it count as dead.
    def leave(self, owner: str) -> None: ...
    # Those that live, each with a phrase that says where, or "" for this process. Others never live again.
    def living(self, owners: Collection[str]) -> dict[str, str]: ...
    # The workers that live, the oldest first: id, host, version, slots, labels (JSON), and seconds since the last beat.
    def workers(self) -> Sequence[Mapping[str, Any]]: ...
    def close(self) -> None: ...
