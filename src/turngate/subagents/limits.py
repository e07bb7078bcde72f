"""What children may use up."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SubagentLimits:
    at_once: int = 8  # children of one session, at one depth and below, that run at once
    on_machine: int = 32  # the same for all processes that share the state folder
    depth: int = 3  # a child's child's child
    seconds: float = 3600.0  # for one run
    recoveries: int = 3  # how often a run is taken over from an owner that died,
    rapid: int = 2  # and how often in quick succession
    announce_tries: int = 5
    announce_expiry: float = 2700.0  # seconds
    announce_call: float = 120.0  # seconds for one try
    settle: float = 5.0  # seconds that a child gets to take a new prompt
    wait: float = (
        1800.0  # seconds that a parent waits for children in the background before it may stop all the same
    )
