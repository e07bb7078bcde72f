"""The events: one frozen value each, with its name and the subject that matchers are compared with."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import field, replace
from typing import Any, ClassVar, Literal, get_args

from turngate._frozen_dataclass import frozen
from turngate.core.constants import EVENTS, TEAM_EVENTS

SubagentOutcome = Literal["ok", "error", "timeout"]
HookEvent = str  # the name of an event: a key of `EVENTS`, and of the hooks in `Options`


def _check_strings(event: object, *names: str) -> None:
    """Raise TypeError for a field that is not a string. Without this check every hook would fail later."""
    for name in names:
        value = getattr(event, name)
        if not isinstance(value, str):
            raise TypeError(f"{type(event).__name__}.{name} must be a string, not {type(value).__name__}")


@frozen(kw_only=True)
class Subagent:
    """The subagent that stops, in a SubagentStop event."""

    id: str
    type: str = ""
    transcript_path: str = ""
    outcome: SubagentOutcome = "ok"

    def __post_init__(self) -> None:
        _check_strings(self, "id", "type", "transcript_path")
        if self.outcome not in get_args(SubagentOutcome):
            outcomes = ", ".join(get_args(SubagentOutcome))
            raise ValueError(f"Subagent.outcome must be one of {outcomes}, not {self.outcome!r}")


# done: no hook blocks; blocked: the agent continues; gave-up: the turn ends although a hook blocks.
StopOutcome = Literal["done", "blocked", "gave-up"]


@frozen(kw_only=True)
class StopEvent:
    """An agent is about to stop.

    `session_id` and `transcript_path` are those of the main agent; those of a subagent are in `subagent`.
    """

    session_id: str
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str = "default"
    stop_hook_active: bool = False
    last_assistant_message: str | Sequence[str] | None = None  # a sequence: the answer's text blocks
    continuation_count: int = 0
    limit: int | None = None
    subagent: Subagent | None = None
    team_event: str = ""  # one of `TEAM_EVENTS`: it is this stop in a team of Claude Code …
    team_fields: Mapping[str, str] | None = None  # … with these fields, such as `task_id` and `teammate_name`
    prompt_id: str | None = None
    effort: str | None = None
    usage: Mapping[str, int] | None = None
    duration_ms: int | None = None
    tool_calls: int | None = None
    background_tasks: Sequence[Mapping[str, str]] = ()
    session_crons: Sequence[Mapping[str, str]] = ()
    host_fields: Mapping[str, Any] | None = None  # the input of another agent program, as it is
    outcome: StopOutcome | None = None  # what the other hooks have decided, for a gate that runs after them

    def __post_init__(self) -> None:
        _check_strings(self, "session_id", "transcript_path", "cwd", "permission_mode")
        active: object = self.stop_hook_active
        if not isinstance(active, bool):
            raise TypeError(f"StopEvent.stop_hook_active must be true or false, not {type(active).__name__}")
        subagent: object = self.subagent
        if not isinstance(subagent, Subagent | None):
            raise TypeError(f"StopEvent.subagent must be a Subagent, not {type(subagent).__name__}")
        message: object = self.last_assistant_message
        blocks = message if isinstance(message, list | tuple) else () if message is None else (message,)
        if not all(isinstance(block, str) for block in blocks):
            raise TypeError("StopEvent.last_assistant_message must be a string or a list of strings")

    @property
    def name(self) -> str:
        return self.team_event or ("Stop" if self.subagent is None else "SubagentStop")

    @property
    def subject(self) -> str | None:
        return None if self.subagent is None or self.team_event else self.subagent.type

    @property
    def last_text(self) -> str:
        """Return the agent's last answer as one text; it may have several blocks or none."""
        message = self.last_assistant_message
        return message if isinstance(message, str) else "\n".join(message or ())

    @property
    def stopping_transcript(self) -> str:
        """Return the path of the transcript of the agent that stops."""
        return self.subagent.transcript_path if self.subagent else self.transcript_path


def team_event(name: str) -> str:
    return name if name in TEAM_EVENTS else ""


@frozen(kw_only=True)
class BaseHookInput:
    """The fields that the hooks of every event receive."""

    session_id: str
    transcript_path: str
    cwd: str
    permission_mode: str

    def __post_init__(self) -> None:
        for name in ("session_id", "transcript_path", "cwd", "permission_mode"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a string, not {getattr(self, name)!r}")


@frozen(kw_only=True)
class StopHookInput(BaseHookInput):
    """The six fields that every stop hook receives."""

    hook_event_name: Literal["Stop", "SubagentStop"]
    stop_hook_active: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hook_event_name not in ("Stop", "SubagentStop"):
            event = self.hook_event_name
            raise ValueError(f'hook_event_name must be "Stop" or "SubagentStop", not {event!r}')
        if not isinstance(self.stop_hook_active, bool):
            raise TypeError(f"stop_hook_active must be true or false, not {self.stop_hook_active!r}")

    def event(self) -> StopEvent:
        """Return the event that `ask_hooks` takes."""
        subagent = None
        if self.hook_event_name == "SubagentStop":
            subagent = Subagent(id=self.session_id, transcript_path=self.transcript_path)
        return StopEvent(
            session_id=self.session_id,
            transcript_path=self.transcript_path,
            cwd=self.cwd,
            permission_mode=self.permission_mode,
            stop_hook_active=self.stop_hook_active,
            subagent=subagent,
        )


@frozen(kw_only=True)
class SubagentStopHookInput(StopHookInput):
    """The six fields of a stopping subagent, and its id and type if they are known."""

    hook_event_name: Literal["SubagentStop"] = "SubagentStop"
    agent_id: str = ""
    agent_type: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hook_event_name != "SubagentStop":
            raise ValueError(f'hook_event_name must be "SubagentStop", not {self.hook_event_name!r}')
        _check_strings(self, "agent_id", "agent_type")

    def event(self) -> StopEvent:
        agent_id, path = self.agent_id or self.session_id, self.transcript_path
        subagent = Subagent(id=agent_id, type=self.agent_type, transcript_path=path)
        return replace(super().event(), subagent=subagent)


@frozen(kw_only=True)
class _Common:
    session_id: str
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str = "default"
    agent_id: str = ""  # of a subagent; empty for the main agent
    agent_type: str = ""
    prompt_id: str = ""  # of the prompt that the agent works on
    effort: str = ""  # of the model
    stop_hook_active: ClassVar[bool] = False
    continuation_count: ClassVar[int] = 0
    name: ClassVar[str]  # that of the class

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__

    def __post_init__(self) -> None:
        _check_strings(self, "session_id", "transcript_path", "cwd", "permission_mode")

    @property
    def subject(self) -> str | None:
        """Return what matchers are compared with."""
        name = EVENTS[self.name]
        return None if name is None else str(getattr(self, name))

    @property
    def stopping_transcript(self) -> str:
        return self.transcript_path


@frozen(kw_only=True)
class SessionStart(_Common):
    source: Literal["startup", "resume", "clear", "compact"] = "startup"
    model: str = ""


@frozen(kw_only=True)
class UserPromptSubmit(_Common):
    prompt: str = ""


@frozen(kw_only=True)
class _OfTool(_Common):
    tool_name: str = ""
    tool_input: Mapping[str, Any] = field(default_factory=dict)


@frozen(kw_only=True)
class PreToolUse(_OfTool):
    tool_use_id: str = ""


@frozen(kw_only=True)
class PermissionRequest(_OfTool):
    pass


@frozen(kw_only=True)
class PostToolUse(_OfTool):
    tool_response: Any = None  # an object, whose fields depend on the tool
    tool_use_id: str = ""
    duration_ms: int | None = None  # of the tool, without its hooks


@frozen(kw_only=True)
class PostToolUseFailure(_OfTool):
    tool_use_id: str = ""
    error: str = ""
    is_interrupt: bool = False
    duration_ms: int | None = None


@frozen(kw_only=True)
class PostToolBatch(_Common):
    """All tool calls of one reply are finished."""

    tool_calls: Sequence[Mapping[str, Any]] = ()  # tool_name, tool_input, tool_use_id, tool_response


@frozen(kw_only=True)
class PreCompact(_Common):
    trigger: Literal["manual", "auto"] = "manual"
    custom_instructions: str = ""


@frozen(kw_only=True)
class SubagentStart(_Common):
    pass


@frozen(kw_only=True)
class StopFailure(_Common):
    error: str = ""
    last_assistant_message: str = ""


@frozen(kw_only=True)
class SessionEnd(_Common):
    reason: Literal["clear", "prompt_input_exit", "other"] = "other"


ToolEvent = PreToolUse | PermissionRequest | PostToolUse | PostToolUseFailure  # about one call of a tool

_AfterTools = PostToolBatch | PreCompact | SubagentStart | StopFailure | SessionEnd
OtherEvent = SessionStart | UserPromptSubmit | ToolEvent | _AfterTools
Event = StopEvent | OtherEvent

OTHER_EVENTS: Mapping[str, type[OtherEvent]] = {kind.name: kind for kind in get_args(OtherEvent)}


def copy_event(event: Event) -> Event:
    """Return a copy with its own containers, so that a callback cannot change what other hooks get."""
    values: dict[str, Any] = {name: getattr(event, name, None) or () for name in _CONTAINERS}
    copies: dict[str, Any] = {
        name: deepcopy(value) for name, value in values.items() if value and not isinstance(value, str | int)
    }
    return replace(event, **copies) if copies else event


_CONTAINERS = (
    *("tool_input", "tool_response", "tool_calls"),
    *("last_assistant_message", "usage", "background_tasks", "session_crons"),
)
