"""Runs of children: what is known about one, and what a plugin may say when one would stop."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from turngate.core.events import Outcome
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
class Run:
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


# What a plugin is told, and what it may say


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


class _Camel:
    """Handlers that were written for document 004 may use its names: `event.lastAssistantMessage`."""

    def __getattr__(self, name: str) -> Any:
        plain = _snake(name)
        if plain == name or plain.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return getattr(self, plain)


@dataclass(frozen=True, kw_only=True)
class StoppingUsage(_Camel):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


@dataclass(frozen=True, kw_only=True)
class SubagentStoppingEvent(_Camel):
    """A child would stop. `steer_count` of at most `max_steers` redirects have been made."""

    run_id: str
    child_session_key: str
    requester_session_key: str
    agent_id: str
    task: str | None = None  # the original prompt, also after redirects
    label: str | None = None
    outcome: Outcome = "ok"
    reason: str = "complete"
    error: str | None = None
    last_assistant_message: str | None = None
    usage: StoppingUsage | None = None
    duration_ms: int | None = None
    tools_used: tuple[str, ...] = ()
    steer_count: int = 0
    max_steers: int | None = 3


@dataclass(frozen=True, kw_only=True)
class SubagentStoppingContext(_Camel):
    agent_id: str
    run_id: str
    child_session_key: str
    requester_session_key: str


@dataclass(frozen=True, kw_only=True)
class SubagentStoppingResult:
    """`allow=False` needs a prompt. `extend_max_steers` raises the limit and never lowers it."""

    allow: bool = True
    prompt: str | None = None
    reason: str | None = None
    extend_max_steers: int | None = None


@dataclass(frozen=True, kw_only=True)
class SubagentEndedEvent(_Camel):
    """The final run of a child is over, and its result was handed over if there was one to hand over."""

    run_id: str
    child_session_key: str
    requester_session_key: str
    agent_id: str
    agent_type: str
    outcome: EndedOutcome
    reason: str = ""
    error: str | None = None
    steer_count: int = 0
    label: str | None = None
    transcript_path: str = ""


def stopping_event(run: Run, answer: str | None) -> SubagentStoppingEvent:
    if run.outcome not in ("ok", "error", "timeout"):
        raise ValueError(f"no handler is asked about a run that ended as {run.outcome!r}")
    seconds = run.seconds
    return SubagentStoppingEvent(
        run_id=run.id,
        child_session_key=run.agent_id,
        requester_session_key=run.parent_agent or run.parent,
        agent_id=run.agent_id,
        task=run.task or None,
        label=run.label or None,
        outcome=run.outcome,
        reason=run.reason,
        error=run.error or None,
        last_assistant_message=answer,
        usage=StoppingUsage(
            input=run.usage.input_tokens,
            output=run.usage.output_tokens,
            cache_read=run.usage.cache_read_input_tokens,
            cache_write=run.usage.cache_creation_input_tokens,
        ),
        duration_ms=None if seconds is None else int(seconds * 1000),
        tools_used=run.tools,
        steer_count=run.steer_count,
        max_steers=run.max_steers,
    )


def stopping_context(run: Run) -> SubagentStoppingContext:
    return SubagentStoppingContext(
        agent_id=run.agent_id,
        run_id=run.id,
        child_session_key=run.agent_id,
        requester_session_key=run.parent_agent or run.parent,
    )


def ended_event(run: Run) -> SubagentEndedEvent:
    return SubagentEndedEvent(
        run_id=run.id,
        child_session_key=run.agent_id,
        requester_session_key=run.parent_agent or run.parent,
        agent_id=run.agent_id,
        agent_type=run.agent_type,
        outcome=run.outcome or "error",
        reason=run.reason,
        error=run.error or None,
        steer_count=run.steer_count,
        label=run.label or None,
        transcript_path=run.transcript,
    )


def stopping_result(said: object) -> tuple[SubagentStoppingResult, str | None]:
    """What a handler's return value means, and what is wrong with it. What is wrong never redirects."""
    match said:
        case None:
            return SubagentStoppingResult(), None
        case SubagentStoppingResult():
            fields = vars(said)
        case Mapping():
            fields = {_snake(str(name)): value for name, value in said.items()}
        case _:
            return SubagentStoppingResult(), f"returned {type(said).__name__}, which is no result"
    extend = fields.get("extend_max_steers")
    raised = extend if type(extend) is int else None
    reason = fields.get("reason")
    if fields.get("allow") is not False:
        return SubagentStoppingResult(extend_max_steers=raised), None
    prompt = fields.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return SubagentStoppingResult(
            extend_max_steers=raised
        ), "said allow=False without a prompt; it counts as allow"
    try:
        prompt.encode()
    except UnicodeEncodeError:
        odd = "said allow=False with a prompt that is no text; it counts as allow"
        return SubagentStoppingResult(extend_max_steers=raised), odd
    why = reason if isinstance(reason, str) else None
    return SubagentStoppingResult(allow=False, prompt=prompt, reason=why, extend_max_steers=raised), None
