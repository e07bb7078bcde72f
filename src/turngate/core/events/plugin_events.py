"""What plugins receive about subagents, and what they may return."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.subagent_run import EndedOutcome, SubagentRun
from turngate.core.events.events import SubagentOutcome
from turngate.core.text import CamelCaseAccess, replace_surrogates, snake_case


@frozen(kw_only=True)
class StoppingUsage(CamelCaseAccess):
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


@frozen(kw_only=True)
class SubagentStoppingContext(CamelCaseAccess):
    """Which run of which subagent an event is about; the second argument of a handler."""

    run_id: str
    child_session_key: str
    requester_session_key: str
    agent_id: str


@frozen(kw_only=True)
class SubagentStoppingEvent(SubagentStoppingContext):
    """A subagent wants to stop, after `steer_count` of at most `max_steers` redirects.

    These are public names that keep an old word for a redirect; `child_session_key` is the subagent's session.
    """

    task: str | None = None  # the parent's prompt, even after redirects
    label: str | None = None
    outcome: SubagentOutcome = "ok"
    reason: str = "complete"
    error: str | None = None
    last_assistant_message: str | None = None
    usage: StoppingUsage | None = None
    duration_ms: int | None = None
    tools_used: tuple[str, ...] = ()
    steer_count: int = 0
    max_steers: int | None = 3


@frozen(kw_only=True)
class SubagentStoppingResult:
    """`allow=False` needs a prompt. `extend_max_steers` raises the limit of redirects and never lowers it."""

    allow: bool = True
    prompt: str | None = None
    reason: str | None = None
    extend_max_steers: int | None = None


@frozen(kw_only=True)
class SubagentEndedEvent(SubagentStoppingContext):
    """The last run of a subagent is over, and its result, if any, was delivered. `steer_count` counts redirects."""

    agent_type: str
    outcome: EndedOutcome
    reason: str = ""
    error: str | None = None
    steer_count: int = 0
    label: str | None = None
    transcript_path: str = ""


def stopping_event(run: SubagentRun, answer: str | None) -> SubagentStoppingEvent:
    if run.outcome not in ("ok", "error", "timeout"):
        raise ValueError(f"no handler is asked about a run that ended as {run.outcome!r}")
    seconds = run.seconds
    return SubagentStoppingEvent(
        **vars(stopping_context(run)),
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


def stopping_context(run: SubagentRun) -> SubagentStoppingContext:
    return SubagentStoppingContext(
        agent_id=run.agent_id,
        run_id=run.id,
        child_session_key=run.agent_id,
        requester_session_key=run.parent_agent or run.parent,
    )


def ended_event(run: SubagentRun) -> SubagentEndedEvent:
    return SubagentEndedEvent(
        **vars(stopping_context(run)),
        agent_type=run.agent_type,
        outcome=run.outcome or "error",
        reason=run.reason,
        error=run.error or None,
        steer_count=run.steer_count,
        label=run.label or None,
        transcript_path=run.transcript,
    )


def stopping_result(returned: object) -> tuple[SubagentStoppingResult, str | None]:
    """Interpret a handler's return value. Return the problem with it too; an invalid value never redirects."""
    unknown = None
    match returned:
        case None:
            return SubagentStoppingResult(), None
        case SubagentStoppingResult():
            values = vars(returned)
        case Mapping():
            values = {snake_case(str(name)): value for name, value in returned.items()}
            unknown = _unknown_keys(values)
        case _:
            return SubagentStoppingResult(), f"returned {type(returned).__name__}, which is not a result"
    extend = values.get("extend_max_steers")
    allowed = SubagentStoppingResult(extend_max_steers=extend if type(extend) is int else None)
    if values.get("allow") is not False:
        return allowed, unknown
    prompt, reason = values.get("prompt"), values.get("reason")
    if not isinstance(prompt, str) or not prompt.strip():
        return allowed, unknown or "returned allow=False without a prompt; it counts as allow"
    if replace_surrogates(prompt) != prompt:
        return allowed, "returned allow=False with a prompt that is not valid Unicode; it counts as allow"
    reason = reason if isinstance(reason, str) else None
    return replace(allowed, allow=False, prompt=prompt, reason=reason), unknown


def _unknown_keys(returned: Mapping[str, object]) -> str | None:
    """A misspelled `allow` would count as consent in silence."""
    known = [field.name for field in fields(SubagentStoppingResult)]
    unknown = [f"`{name}`" for name in returned if name not in known]
    if not unknown:
        return None
    keys = "keys" if len(unknown) > 1 else "key"
    return f"returned the unknown {keys} {', '.join(unknown)}; the keys are {', '.join(known)}"


@frozen(kw_only=True)
class StopPayload(CamelCaseAccess):
    """The payload of `stop` handlers, called once at the final end of a turn.

    Unless `result.success`, which is only the case of an allowed stop, `usage`, the counts and `duration` are zero,
    also for a capped turn; `partial_usage` and `elapsed` are what it really took.
    """

    session_id: str
    result: Any
    usage: Any
    turns_count: int  # model requests
    tool_calls_count: int
    duration: float  # seconds
    model: str  # PROVIDER/NAME
    continuations: int
    ended_by: str
    partial_usage: Any = None
    elapsed: float = 0.0  # seconds


@frozen(kw_only=True)
class SubagentStopPayload(CamelCaseAccess):
    """The payload of `subagent_stop` handlers, called once at the final end of a subagent."""

    parent_session_id: str  # of the agent that started it: the id of the session, or of the subagent that did
    agent_id: str
    agent_type: str
    result: Any
    usage: Any
    total_tool_calls: int
    total_duration: float  # seconds
    model: str
    transcript_path: str = ""
    continuations: int = 0
    outcome: str = "ok"
