"""The hook kinds: one class each, and `KINDS`, the one table of them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import InitVar, field, fields
from functools import cache, partial
from typing import Any, ClassVar, Literal, assert_never, get_args

from turngate._frozen_dataclass import frozen
from turngate.core.constants import JUDGED_EVENTS, STOP_EVENTS
from turngate.core.text import describe, describe_url, one_line

HookKind = Literal["command", "prompt", "agent", "http", "gate", "callback"]
Mode = Literal["gate", "observe"]
Asked = Literal["model", "server"]


@frozen(kw_only=True)
class _HookOptions:
    """The options of every hook kind, and the properties of the kind itself."""

    kind: ClassVar[HookKind]  # `type` in JSON
    body: ClassVar[str]  # the field that says what the hook checks, by the same name in JSON
    needs_body: ClassVar[bool] = True  # the field is required
    in_settings: ClassVar[bool] = True  # can be written in a settings file
    in_claude_code: ClassVar[bool] = False  # Claude Code, or its SDK, runs it too
    asks: ClassVar[Asked | None] = None  # who decides, outside of the project
    default_timeout: ClassVar[float] = 30.0  # seconds; a dialect may have another
    only_on: ClassVar[tuple[str, ...] | None] = None  # the events on which it runs; None: all

    timeout: float | None = None  # seconds; None: the settings' or the dialect's default
    timeout_ms: InitVar[int | None] = None
    id: str | None = None
    enabled: bool = True
    mode: Mode | None = None
    blocking: bool = False  # a failure counts as a block
    outcomes: tuple[str, ...] = ("ok",)  # subagent outcomes for which a SubagentStop hook runs
    detached: bool = False  # `async`: runs in the background, and its decision is ignored
    rewake: bool = False  # `asyncRewake`: the session's end waits for it, and its exit code 2 wakes the agent
    condition: str | None = None  # `if`
    status_message: str | None = None
    continue_on_block: bool = False  # in the claude dialect, the block of a prompt hook does not end the turn

    def __post_init__(self, timeout_ms: int | None) -> None:
        """Check the timeout here, because a hook can be used without `Options`; read a clean `env` as in JSON."""
        if getattr(self, "env", None) == CLEAN:
            object.__setattr__(self, "env", {})
            object.__setattr__(self, "pass_env", getattr(self, "pass_env", None) or ())
        if self.timeout is not None and not is_seconds(self.timeout):
            raise ValueError(f"a hook's timeout must be {EXPECTED_SECONDS}, not {describe(self.timeout)}")
        if timeout_ms is None:
            return
        if not is_milliseconds(timeout_ms):
            given = describe(timeout_ms)
            raise ValueError(f"a hook's timeout_ms must be {EXPECTED_MILLISECONDS}, not {given}")
        if self.timeout is not None:
            raise ValueError("give timeout (seconds) or timeout_ms (milliseconds), not both")
        object.__setattr__(self, "timeout", timeout_ms / 1000)


MAX_TIMEOUT_S = 10**9  # a larger number is a mistake, and more than a timer can hold
MAX_LABEL_CHARS = 80
CLEAN = "clean"  # `env` of a hook with a clean environment
COMMAND_GATE = "command"  # the gate of a gate hook that names none
EXPECTED_SECONDS = "a number of seconds above 0"
EXPECTED_MILLISECONDS = "a whole number of milliseconds above 0"


def is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= MAX_TIMEOUT_S


def is_milliseconds(value: Any) -> bool:
    return type(value) is int and 0 < value <= MAX_TIMEOUT_S * 1000


@frozen
class CommandHook(_HookOptions):
    """A command that reads the event on stdin and answers with its exit code or with JSON."""

    kind: ClassVar[HookKind] = "command"
    body: ClassVar[str] = "command"
    in_claude_code: ClassVar[bool] = True
    default_timeout: ClassVar[float] = 60.0

    command: str
    args: tuple[str, ...] | None = None  # if set, `command` is a program, run without a shell
    shell: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    # Set: a clean environment with these variables besides the usual ones; None: the settings' choice.
    pass_env: tuple[str, ...] | None = field(default=None, kw_only=True)
    on_failure: Literal["block"] | None = field(default=None, kw_only=True)


@frozen
class PromptHook(_HookOptions):
    """A question to a model, the judge, which answers whether the agent may stop."""

    kind: ClassVar[HookKind] = "prompt"
    body: ClassVar[str] = "prompt"
    in_claude_code: ClassVar[bool] = True
    asks: ClassVar[Asked | None] = "model"
    only_on: ClassVar[tuple[str, ...] | None] = JUDGED_EVENTS

    prompt: str
    model: str | None = None
    transcript: Literal["none", "last", "digest", "full"] | None = None


@frozen
class AgentHook(_HookOptions):
    """A read-only agent, the hook agent, which answers whether the other agent may stop."""

    kind: ClassVar[HookKind] = "agent"
    body: ClassVar[str] = "prompt"
    in_claude_code: ClassVar[bool] = True
    asks: ClassVar[Asked | None] = "model"
    default_timeout: ClassVar[float] = 60.0
    only_on: ClassVar[tuple[str, ...] | None] = JUDGED_EVENTS

    prompt: str
    model: str | None = None


@frozen
class HttpHook(_HookOptions):
    """A URL that receives the event and answers as a command does on stdout."""

    kind: ClassVar[HookKind] = "http"
    body: ClassVar[str] = "url"
    in_claude_code: ClassVar[bool] = True
    asks: ClassVar[Asked | None] = "server"

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold a secret
    allowed_env_vars: tuple[str, ...] = ()
    on_failure: Literal["block"] | None = field(default=None, kw_only=True)


@frozen
class GateHook(_HookOptions):
    """A ready-made gate, by its name; or a command, which has to pass before the agent may stop."""

    kind: ClassVar[HookKind] = "gate"
    body: ClassVar[str] = "command"
    needs_body: ClassVar[bool] = False  # a gate that is named may need no command
    default_timeout: ClassVar[float] = 600.0
    only_on: ClassVar[tuple[str, ...] | None] = STOP_EVENTS

    gate: str = COMMAND_GATE
    command: str | None = None
    args: tuple[str, ...] | None = None  # if set, `command` is a program, run without a shell
    options: Mapping[str, Any] = field(default_factory=dict)  # the gate's options, by their names in JSON
    strict: bool = field(default=False, kw_only=True)  # a gate that could not run blocks
    shell: str | None = field(default=None, kw_only=True)
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    pass_env: tuple[str, ...] | None = field(default=None, kw_only=True)  # as for a command hook


# Takes the event; in `Options` also the arguments of Claude's SDK. Returns a decision, a dict in the JSON contract, or None.
HookCallback = Callable[..., Any]


@frozen
class CallbackHook(_HookOptions):
    """A function, sync or async, that returns a decision, a dict in the JSON contract, or None."""

    kind: ClassVar[HookKind] = "callback"
    body: ClassVar[str] = "callback"
    in_settings: ClassVar[bool] = False
    in_claude_code: ClassVar[bool] = True

    callback: HookCallback = field(repr=False)
    name: str | None = None


Hook = CommandHook | PromptHook | AgentHook | HttpHook | GateHook | CallbackHook

# The names of the first SDKs, kept for compatibility.
CommandHookConfig = CommandHook
PromptHookConfig = PromptHook
CallbackHookConfig = CallbackHook
HookConfig = Hook

_CLASSES: tuple[type[Hook], ...] = get_args(Hook)
KINDS: Mapping[str, type[Hook]] = {hook.kind: hook for hook in _CLASSES}
SETTINGS_KINDS: Mapping[str, type[Hook]] = {name: hook for name, hook in KINDS.items() if hook.in_settings}


def hook_text(hook: Hook) -> str:
    """Return what identifies a hook for a reader: its command, prompt, URL or function."""
    match hook:
        case CommandHook(command, args):
            return command if args is None else " ".join((command, *args))
        case PromptHook(prompt) | AgentHook(prompt):
            return prompt
        case HttpHook(url):
            return describe_url(url)
        case GateHook():
            return _gate_text(hook)
        case CallbackHook(callback, name):
            return name or getattr(callback, "__qualname__", None) or repr(callback)
        case _:
            assert_never(hook)


def _gate_text(hook: GateHook) -> str:
    """Return `tests`, `pytest -q`, or `until: make test (promise: DONE, maxIterations: 20)`."""
    command = " ".join((hook.command or "", *(hook.args or ()))).strip()
    text = f"{hook.gate}: {command}" if command else hook.gate
    if command and hook.gate == COMMAND_GATE:
        text = command
    options = ", ".join(map(_option_text, hook.options, hook.options.values()))
    return f"{text} ({options})" if options else text


def _option_text(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    return name if value is True else f"{name}: {value}"


def command_of(hook: Hook) -> CommandHook | None:
    match hook:
        case CommandHook():
            return hook
        case GateHook(command=str(command)):
            return CommandHook(command, hook.args, hook.shell, hook.env, pass_env=hook.pass_env)
        case _:
            return None


def qualified_name(function: Callable[..., Any]) -> str:
    """Return the module and the name of a function, or of the class of an object that can be called."""
    while isinstance(function, partial):
        function = function.func
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def label(hook: Hook) -> str:
    """Return the hook's name on one short line: its id, or its text."""
    return one_line(hook.id or hook_text(hook), MAX_LABEL_CHARS)


# Claude Code (measured): the same command string runs once, and the same prompt is asked once, whatever these say.
HOW_IT_RUNS = frozenset(
    {
        *("timeout", "enabled", "mode", "status_message", "shell", "detached", "rewake"),
        *("blocking", "strict", "on_failure", "continue_on_block"),
        "allowed_env_vars",  # the headers that use the variables count
    }
)


def identity(hook: Hook) -> tuple[object, ...]:
    """Return a key that is equal for hooks of several files that count as one: with the same id, condition and outcomes. Callbacks are never merged."""
    if isinstance(hook, CallbackHook):
        return ("callback", object())
    kind: Any = type(hook)
    values = (getattr(hook, name) for name in _identifying_fields(kind))
    return (hook.kind, *(_hashable(value) if isinstance(value, Mapping) else value for value in values))


@cache
def _identifying_fields(hook: Any) -> list[str]:
    return [each.name for each in fields(hook) if each.name not in HOW_IT_RUNS]


def _hashable(mapping: Mapping[str, Any]) -> str:
    return json.dumps(dict(mapping), sort_keys=True, default=repr) if mapping else ""
