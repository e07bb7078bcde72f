"""A child as people see it: a chain of runs, the last of which says where it stands."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from turngate.core.subagent_run import LIVING, OPEN, SubagentRun
from turngate.core.text import printable
from turngate.subagents.registry import Registry, owner_is_gone

_STATES = {
    "waiting": "waits",
    "running": "works",
    "ended": "hooks are asked",
    "steering": "is sent on",
    "replaced": "was sent on",
    "final": "reports",
    "announced": "has reported",
    "killed": "killed",
    "given_up": "given up",
}
_ENDS = {"ok": "done", "error": "failed", "timeout": "timed out", "killed": "killed"}


@dataclass(frozen=True)
class Chain:
    """All runs of one child for one task, oldest first."""

    runs: tuple[SubagentRun, ...]
    left: bool = False  # it is not finished, and whoever ran it has died

    @property
    def id(self) -> str:
        return self.last.chain

    @property
    def last(self) -> SubagentRun:
        return next((run for run in reversed(self.runs) if run.state != "replaced"), self.runs[-1])

    @property
    def what(self) -> str:
        kind = self.last.agent_type or "no kind"
        return printable(f"{self.last.label} ({kind})" if self.last.label else kind)

    @property
    def open(self) -> bool:
        return self.last.state in OPEN

    @property
    def state(self) -> str:
        return "left behind" if self.left and self.last.state in LIVING else state_of(self.last)

    @property
    def began(self) -> float:
        return min(run.created for run in self.runs)

    def seconds(self, now: float) -> float:
        ended = None if self.last.state in LIVING else self.last.ended
        return max(0.0, (now if ended is None else ended) - self.began)

    @property
    def project(self) -> str:
        return str(self.last.launch.get("project", ""))

    @property
    def unread(self) -> bool:
        """Its report waits until its parent is there again."""
        return bool(self.last.announcement) and self.last.announced is not None and self.last.taken is None

    def is_called(self, start: str) -> bool:
        ids = (self.id, self.last.agent_id, *(run.id for run in self.runs))
        return any(each.startswith(start) for each in ids)


def state_of(run: SubagentRun) -> str:
    """In plain words."""
    if run.state == "done":
        if run.reason in ("capped", "stalled", "halted"):
            return run.reason
        return _ENDS.get(run.outcome or "error", str(run.outcome))
    return _STATES.get(run.state, run.state)


def chains(registry: Registry) -> list[Chain]:
    """Every child that the register knows, the newest last."""
    every = sorted(registry.all(), key=lambda run: run.chain)
    grouped = [tuple(group) for _, group in itertools.groupby(every, key=lambda run: run.chain)]
    living = {owner: not owner_is_gone(registry.state, owner) for owner in {run.owner for run in every}}
    found = [Chain(_in_turn(runs)) for runs in grouped]
    marked = [Chain(chain.runs, left=chain.open and not living[chain.last.owner]) for chain in found]
    return sorted(marked, key=lambda chain: (chain.began, chain.id))


def _in_turn(runs: Sequence[SubagentRun]) -> tuple[SubagentRun, ...]:
    return tuple(sorted(runs, key=lambda run: (run.created, run.steer_count)))


def shortest(found: Sequence[Chain]) -> int:
    """How much of their ids tells them apart."""
    lengths = range(8, max((len(chain.id) for chain in found), default=8), 4)
    told_apart = (n for n in lengths if len({chain.id[:n] for chain in found}) == len(found))
    return next(told_apart, lengths.stop)
