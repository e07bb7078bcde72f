"""One run of a subagent and its states, as a row of the registry holds it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from turngate.core.loop_guard import LoopGuard
from turngate.core.messages import Usage

RunState = Literal[
    "waiting",  # registered; it starts when there is room
    "running",
    "ended",  # its outcome is known; the hooks are being asked
    "steering",  # it is to be followed by another run with a new prompt
    "replaced",  # that other run is there
    "final",  # it may stop; its result is frozen and still to be handed over
    "announced",  # the parent has it; `subagent_ended` is still to be told
    "done",
    "killed",  # `subagent_ended` is still to be told
    "given_up",  # the result could not be handed over, or the run could not be brought back
]


OPEN: tuple[RunState, ...] = ("waiting", "running", "ended", "steering", "final", "announced", "killed")


LIVING: tuple[RunState, ...] = ("waiting", "running", "ended", "steering")  # may still be killed or steered


EndedOutcome = Literal["ok", "error", "timeout", "killed"]


@dataclass(frozen=True, kw_only=True)
class SubagentRun:
    """One run of a child; redirects make a chain of them, all with one child session."""

    id: str
    chain: str  # the first run's id: what the parent knows
    agent_id: str  # the child session
    agent_type: str = ""
    parent: str = ""  # the session that asked for it
    parent_agent: str = ""  # the child that asked for it, if one did
    label: str = ""
    task: str = ""  # the prompt that the parent gave, whatever hooks said later
    prompt: str = ""  # what this run was started with
    by_hook: bool = False  # it was started by a hook's redirect
    background: bool = False
    depth: int = 1
    state: RunState = "waiting"
    owner: str = ""
    created: float = 0.0
    begun: float = 0.0  # when the first run of the chain was created
    started: float | None = None
    ended: float | None = None
    outcome: EndedOutcome | None = None
    reason: str = ""
    error: str = ""
    result: str = ""  # the frozen answer
    transcript: str = ""
    steer_count: int = 0  # how often hooks have redirected this chain
    max_steers: int | None = None  # None: no limit
    steer_why: str = ""  # why it was sent back the last time
    next_id: str = ""  # of the run that is to follow
    next_prompt: str = ""
    next_by_hook: bool = False
    replaces: str = ""
    announcement: str = ""  # what its parent is told, where no tool call waits for the result
    announced: float | None = None
    taken: float | None = None  # the parent's conversation has it
    attempts: int = 0  # of handing over
    recoveries: int = 0  # how often it was taken over from an owner that died,
    rapid: int = 0  # and how often in quick succession
    recovered: float | None = None
    usage: Usage = field(default_factory=Usage)  # of this run
    spent: Usage = field(default_factory=Usage)  # of the runs of this chain before it
    tool_calls: int = 0
    tools: tuple[str, ...] = ()
    earlier_tools: tuple[str, ...] = ()  # of the runs of this chain before it
    guard: Mapping[str, Any] = field(default_factory=dict)  # what the loop guard must remember
    launch: Mapping[str, Any] = field(default_factory=dict)  # what another process needs to go on with it

    @property
    def seconds(self) -> float | None:
        """Wall clock of this run."""
        if self.started is None or self.ended is None:
            return None
        return max(0.0, self.ended - self.started)

    @property
    def success(self) -> bool:
        return self.outcome == "ok"

    @property
    def total_seconds(self) -> float:
        """Wall clock of the whole chain, up to the end of this run."""
        return max(0.0, (self.ended or self.created) - (self.begun or self.created))

    @property
    def name(self) -> str:
        return self.label or self.agent_type or self.agent_id


def guard_state(guard: LoopGuard) -> dict[str, Any]:
    """What of a guard must survive a restart, besides count and limit."""
    return {
        "count": guard.count,
        "advised": guard.advised,
        "repeats": guard.repeats,
        "last_refusal": [list(pair) for pair in guard.last_refusal],
    }
