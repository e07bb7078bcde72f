"""One run of a subagent and its states, as a row of the registry holds it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.messages import Usage
from turngate.core.verdict.hook_run import HookOutput, record_outputs, recorded_outputs

RunState = Literal[
    "waiting",  # registered; starts once a slot is free
    "running",
    "ended",  # has an outcome; the stop check is under way
    "steering",  # redirected or steered: another run with a new prompt will replace it
    "replaced",  # the other run exists
    "final",  # may stop; the result is fixed and not delivered yet
    "announced",  # the result is delivered; plugins are not notified of the end yet
    "done",
    "killed",  # plugins are not notified of the end yet
    "given_up",  # the result could not be announced
]


LIVING_STATES: tuple[RunState, ...] = ("waiting", "running", "ended", "steering")  # can still be killed
OPEN_STATES: tuple[RunState, ...] = (*LIVING_STATES, "final", "announced", "killed")

MAX_UNENFORCED = 20  # gates in one row

EndedOutcome = Literal["ok", "error", "timeout", "killed"]


@frozen(kw_only=True)
class SubagentRun:
    """One run of a subagent. Redirects and steers make a chain of runs, all in one session.

    Names of stored columns keep an old word: `steer_count` counts redirects, `max_steers` limits them, and
    `steer_why` is the reason of the last one.
    """

    id: str
    chain: str  # id of the first run, by which the parent knows the chain
    agent_id: str  # of the subagent and its session
    agent_type: str = ""
    parent: str = ""  # the session that started it
    parent_agent: str = ""  # the subagent that started it, if one did
    label: str = ""
    task: str = ""  # the parent's prompt, even after redirects
    prompt: str = ""  # this run's prompt
    by_hook: bool = False  # a hook's redirect started it
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
    result: str = ""  # the answer, as the parent gets it
    transcript: str = ""
    steer_count: int = 0  # redirects of this chain; steers do not count
    max_steers: int | None = None  # None: no limit
    steer_why: str = ""
    next_id: str = ""  # of the run that will replace this one
    next_prompt: str = ""
    next_by_hook: bool = False
    replaces: str = ""
    announcement: str = ""  # message to the parent if no tool call waits for the result
    announced: float | None = None
    taken: float | None = None  # when the parent's conversation stored it
    attempts: int = 0  # to announce
    recoveries: int = 0  # times another process adopted it after its owner died
    rapid: int = 0  # of these, how many in quick succession
    recovered: float | None = None
    usage: Usage = field(default_factory=Usage)  # of this run
    spent: Usage = field(default_factory=Usage)  # of the runs of this chain before it
    tool_calls: int = 0
    tools: tuple[str, ...] = ()
    earlier_tools: tuple[str, ...] = ()  # of the runs of this chain before it
    guard: Mapping[str, Any] = field(default_factory=dict)  # the loop guard's state
    launch: Mapping[str, Any] = field(default_factory=dict)  # what another process needs to continue it

    @property
    def seconds(self) -> float | None:
        if self.started is None or self.ended is None:
            return None
        return max(0.0, self.ended - self.started)

    @property
    def success(self) -> bool:
        return self.outcome == "ok"

    @property
    def is_for_workers(self) -> bool:
        return "workers" in self.launch

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """Return the names of the hooks because of which the subagent ended as capped, stalled or halted."""
        return tuple(map(str, self.guard.get("blocked_by", ())))

    @property
    def is_at_stage_end(self) -> bool:
        """Whether it waits at a checkpoint of its instructions; not if a hook made it wait before."""
        return self.guard.get("stage_end") is True

    @property
    def unenforced(self) -> tuple[HookOutput, ...]:
        """Return the gates of the chain that were not enforced, in whichever process."""
        return recorded_outputs(self.guard.get("unenforced", ()))

    @property
    def total_seconds(self) -> float:
        """Return the wall-clock seconds of the chain up to the end of this run."""
        return max(0.0, (self.ended or self.created) - (self.begun or self.created))

    # The names of document 001.

    @property
    def totalToolCalls(self) -> int:  # noqa: N802
        return self.tool_calls

    @property
    def totalDuration(self) -> float:  # noqa: N802
        return self.total_seconds

    @property
    def name(self) -> str:
        return self.label or self.agent_type or self.agent_id


def names_of(runs: Sequence[SubagentRun]) -> str:
    """Return the names of the first few runs, for a notice."""
    return ", ".join(run.name for run in runs[:5]) + (", …" if len(runs) > 5 else "")


def with_unenforced(guard: Mapping[str, Any], hooks: Iterable[HookOutput]) -> dict[str, Any]:
    """Return a guard's state with further gates that were not enforced, each of them once."""
    stored = list(guard.get("unenforced", ()))
    stored += [entry for entry in record_outputs(dict.fromkeys(hooks)) if entry not in stored]
    return {**guard, "unenforced": stored[:MAX_UNENFORCED]} if stored else dict(guard)


def changed_guard(
    run: SubagentRun,
    unenforced: Iterable[HookOutput],
    blocked_by: tuple[str, ...] = (),
    *,
    is_at_stage_end: bool = False,
) -> dict[str, Any] | None:
    """Return the guard's state with what the parent is to know, or None if there is nothing new."""
    guard = with_unenforced(run.guard, unenforced)
    guard |= {"blocked_by": blocked_by} if blocked_by else {}
    guard |= {"stage_end": True} if is_at_stage_end else {}
    return guard if guard != run.guard else None
