"""What plugins receive about subagents, and what they may return."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngate.core.events import SubagentOutcome
from turngate.core.subagent_run import EndedOutcome, SubagentRun

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
    outcome: SubagentOutcome = "ok"
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


def stopping_event(run: SubagentRun, answer: str | None) -> SubagentStoppingEvent:
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


def stopping_context(run: SubagentRun) -> SubagentStoppingContext:
    return SubagentStoppingContext(
        agent_id=run.agent_id,
        run_id=run.id,
        child_session_key=run.agent_id,
        requester_session_key=run.parent_agent or run.parent,
    )


def ended_event(run: SubagentRun) -> SubagentEndedEvent:
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
