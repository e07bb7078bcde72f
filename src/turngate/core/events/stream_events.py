"""The events of a session, and the result of a turn."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.messages import Reply, ToolResult, ToolUse, Usage
from turngate.core.text import quote_name, snake_case
from turngate.core.verdict.hook_run import HookOutput, HookRun, outputs, record_outputs, recorded_outputs
from turngate.core.verdict.json_output import unenforced_json
from turngate.core.verdict.loop_guard import EndedBy

TurnOutcome = Literal["completed", "capped", "halted", "waiting", "interrupted", "error"]

OUTCOMES: Mapping[EndedBy, TurnOutcome] = {
    "allowed": "completed",
    "capped": "capped",
    "stalled": "capped",
    "halted": "halted",
    "checkpoint": "waiting",
    "question": "waiting",
    "tool_deferred": "waiting",
    "interrupt": "interrupted",
    "max_turns": "error",
    "error": "error",
}


@frozen(kw_only=True)
class TurnResult:
    """The result of one turn: everything from a user's message until control returns to the user."""

    ended_by: EndedBy
    session_id: str
    transcript_path: str
    result: str = ""  # the last answer, whatever the outcome
    stop_reason: str | None = None  # why a hook ended the turn, or the error
    question: str | None = None  # what the agent asks the user
    checkpoint: str | None = None  # what waits for the user's yes or no
    deferred_tool_use: ToolUse | None = None  # the call that a hook deferred
    continuations: int = 0
    model_requests: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None  # US dollars; None if the price of a request is unknown
    duration_ms: int = 0
    model: str = ""
    hook_runs: tuple[HookRun, ...] = ()
    unenforced: tuple[HookOutput, ...] = ()  # gates that gave no decision although they should have
    # A turn with such a gate, with a blocked subagent, or with a hook that could not be loaded is not a success.
    strict: bool = False
    not_loaded: bool = False  # a hook could not be loaded from the settings
    tools: tuple[str, ...] = ()  # names, in the order of first use
    subagents: tuple["SubagentFinished", ...] = ()  # those that ended, or whose result arrived, in this turn
    notices: tuple[str, ...] = ()

    @property
    def hook_outputs(self) -> tuple[HookOutput, ...]:
        """The output of every hook run of the turn, in order."""
        return outputs(self.hook_runs)

    @property
    def outcome(self) -> TurnOutcome:
        return OUTCOMES[self.ended_by]

    @property
    def blocked_subagents(self) -> tuple["SubagentFinished", ...]:
        """The subagents that ended although a gate still blocks, at a limit or because a hook halted them."""
        return tuple(each for each in self.subagents if each.is_blocked)

    @property
    def success(self) -> bool:
        """The turn completed; in a strict session, every gate was enforced as well, also those of subagents."""
        missed = self.unenforced or self.not_loaded or self.blocked_subagents
        return self.outcome == "completed" and not (self.strict and missed)

    # The names of document 001: `result.data.usage`, `result.metadata.turnsCount` …

    @property
    def data(self) -> "TurnResult":
        """The result itself, so that `result.data.usage` is its usage."""
        return self

    @property
    def metadata(self) -> "TurnResult":
        """The result itself, so that `result.metadata.duration` is its duration."""
        return self

    @property
    def turnsCount(self) -> int:  # noqa: N802
        """The same as `model_requests`."""
        return self.model_requests

    @property
    def toolCallsCount(self) -> int:  # noqa: N802
        """The same as `tool_calls`."""
        return self.tool_calls

    @property
    def duration(self) -> float:
        """The seconds of the turn."""
        return self.duration_ms / 1000


@frozen
class TextDelta:
    text: str


@frozen
class StreamEnd:
    """The answer is complete; the stop hooks have not run yet."""

    reply: Reply
    stop_hook_active: bool = False


@frozen
class ToolStarted:
    use: ToolUse


@frozen
class ToolFinished:
    use: ToolUse
    result: ToolResult
    seconds: float
    change: tuple[str, str] | None = None  # the text of a file before and after


@frozen
class HookStarted:
    event: str
    hook: str
    timeout: float | None = None  # seconds that it may take
    # Returns the newest line that it has printed, without secrets; "" before the first one.
    last_line: Callable[[], str] = field(default=str, compare=False, repr=False)


@frozen
class HookFinished:
    event: str
    hook: str
    outcome: str
    seconds: float
    said: str | None = None  # its message, whatever it decided


@frozen
class Continuation:
    prompt: str
    count: int
    limit: int | None


@frozen
class Notice:
    """A message to the user, never to the model."""

    text: str
    hint: str | None = None  # what to do about it


@frozen
class Compacted:
    trigger: Literal["manual", "auto"]
    summary: str


@frozen
class SubagentStarted:
    agent_id: str
    agent_type: str
    label: str


@frozen
class SubagentRedirected:
    agent_id: str
    label: str
    why: str
    count: int
    limit: int | None


BLOCKED_REASONS = ("capped", "stalled", "halted", "checkpoint")


@frozen
class SubagentFinished:
    agent_id: str
    label: str
    outcome: str  # ok, error, timeout or killed
    redirects: int
    seconds: float
    agent_type: str = ""
    reason: str = ""  # complete; one of BLOCKED_REASONS; or why it was killed
    blocked_by: tuple[str, ...] = ()  # names of the hooks because of which it ended so
    run_id: str = ""  # of its first run
    unenforced: tuple[HookOutput, ...] = ()  # its gates that gave no decision although they should have

    @property
    def is_blocked(self) -> bool:
        """Whether it ended although a gate still blocks."""
        # At a checkpoint of its agent type no gate blocks it: it waits, and so does the turn.
        return self.reason in BLOCKED_REASONS and (self.reason != "checkpoint" or bool(self.blocked_by))


@frozen
class BackgroundCommandFinished:
    """A command that Bash ran in the background has ended by itself."""

    id: str
    command: str
    status: str  # completed or failed


@frozen
class TurnEnd:
    """Hooks and plugins are done; control returns to the user."""

    result: TurnResult


_TurnEvent = TextDelta | StreamEnd | ToolStarted | ToolFinished | Continuation | Notice | Compacted | TurnEnd
_SubagentEvent = SubagentStarted | SubagentRedirected | SubagentFinished
SessionEvent = _TurnEvent | HookStarted | HookFinished | _SubagentEvent | BackgroundCommandFinished


def blocked_subagents_json(result: TurnResult) -> list[dict[str, Any]]:
    keys = ("agent_id", "agent_type", "label", "reason", "blocked_by")
    return [{key: getattr(each, key) for key in keys} for each in result.blocked_subagents]


def subagent_json(finished: SubagentFinished) -> dict[str, Any]:
    return {**vars(finished), "unenforced": unenforced_json(finished.unenforced)}


def event_json(event: SessionEvent) -> dict[str, Any]:
    """Return one line of `stream-json`; the result of the turn is a further object that `cli` prints."""
    name = snake_case(type(event).__name__).lstrip("_")
    match event:
        case StreamEnd(reply, active):
            return {"type": name, "text": reply.text, "stop_hook_active": active}
        case HookStarted(of, hook, timeout):
            return {"type": name, "event": of, "hook": hook, "timeout": timeout}
        case ToolStarted(use):
            return {"type": name, "id": use.id, "name": use.name, "input": dict(use.input)}
        case ToolFinished(use, result, seconds):
            fields = {"content": result.content, "is_error": result.is_error, "seconds": round(seconds, 4)}
            return {"type": name, "id": use.id, "name": use.name, **fields}
        case Notice(text, hint):
            return {"type": name, "text": text, **({"hint": hint} if hint else {})}
        case SubagentFinished():
            return {"type": name, **subagent_json(event)}
        case TurnEnd(result):
            return {"type": name, "outcome": result.outcome, "ended_by": result.ended_by}
        case _:
            return {"type": name, **vars(event)}


# The gates that a turn has missed, as a record of the transcript: a crash must not make the turn a success

MISSED_GATES = "missed_gates"  # the type of the record


@frozen(kw_only=True)
class MissedGates:
    unenforced: tuple[HookOutput, ...] = ()
    subagents: tuple[SubagentFinished, ...] = ()  # that a gate still blocks

    def as_record(self) -> dict[str, Any]:
        """Return the record, without what the hooks printed."""
        subagents = [{**vars(each), "unenforced": record_outputs(each.unenforced)} for each in self.subagents]
        return {"type": MISSED_GATES, "unenforced": record_outputs(self.unenforced), "subagents": subagents}

    def notices(self) -> tuple[str, ...]:
        """Return what the turn that continues after a crash says about hooks; its result names blocked subagents."""
        hooks = [(f"hook {quote_name(hook.hook)}", hook) for hook in self.unenforced]
        hooks += [
            (f"hook {quote_name(hook.hook)} of subagent {finished.label}", hook)
            for finished in self.subagents
            for hook in finished.unenforced
        ]
        before = "was NOT enforced before the process died"
        return tuple(dict.fromkeys(f"{name} {before}: {hook.said or hook.outcome}" for name, hook in hooks))


def merge_missed(missed: Iterable[MissedGates]) -> MissedGates:
    """Return all of them as one, without repetitions."""
    missed = list(missed)
    return MissedGates(
        unenforced=tuple(dict.fromkeys(hook for each in missed for hook in each.unenforced)),
        subagents=tuple(dict.fromkeys(finished for each in missed for finished in each.subagents)),
    )


def missed_gates_of(record: Mapping[str, Any]) -> MissedGates:
    """Read a record; one of another form has nothing."""
    try:
        return MissedGates(
            unenforced=recorded_outputs(record["unenforced"]),
            subagents=tuple(map(_subagent, record["subagents"])),
        )
    except (KeyError, TypeError):
        return MissedGates()


def _subagent(record: Mapping[str, Any]) -> SubagentFinished:
    hooks = recorded_outputs(record["unenforced"])
    return SubagentFinished(**{**record, "blocked_by": tuple(record["blocked_by"]), "unenforced": hooks})
