"""The hook kinds: one class each, and `KINDS`, the one table of them."""

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Literal, assert_never

from turngate.core.text import describe, describe_url, one_line

HookKind = Literal["command", "prompt", "agent", "http", "callback"]
Mode = Literal["gate", "observe"]


@dataclass(frozen=True, kw_only=True)
class _HookOptions:
    """The options that every hook kind has, and what a kind says about itself."""

    kind: ClassVar[HookKind]  # `type` in JSON
    body: ClassVar[str]  # the required field, by the same name in JSON
    in_settings: ClassVar[bool] = True  # can be written in a settings file
    asks_model: ClassVar[bool] = False  # runs only on the events in JUDGED_EVENTS

    timeout: float | None = None  # seconds; None: what the settings or the dialect say
    timeout_ms: InitVar[int | None] = None
    id: str | None = None
    enabled: bool = True
    mode: Mode | None = None
    blocking: bool = False  # its failure counts as a refusal
    outcomes: tuple[str, ...] = ("ok",)  # of a child, for which a SubagentStop hook is asked
    detached: bool = False  # `async`: started, not waited for, its decision ignored
    condition: str | None = None  # `if`
    status_message: str | None = None

    def __post_init__(self, timeout_ms: int | None) -> None:
        """A bad limit is said where it is written: a hook may run without any `Options`."""
        if self.timeout is not None and not is_seconds(self.timeout):
            raise ValueError(f"a hook's timeout must be {EXPECTED_SECONDS}, not {describe(self.timeout)}")
        if timeout_ms is None:
            return
        if not is_milliseconds(timeout_ms):
            raise ValueError(
                f"a hook's timeout_ms must be {EXPECTED_MILLISECONDS}, not {describe(timeout_ms)}"
            )
        if self.timeout is not None:
            raise ValueError("give timeout (seconds) or timeout_ms (milliseconds), not both")
        object.__setattr__(self, "timeout", timeout_ms / 1000)


MAX_TIMEOUT_S = 10**9  # a larger number is a mistake, and more than a timer can hold
MAX_LABEL_CHARS = 80
EXPECTED_SECONDS = "a number of seconds above 0"
EXPECTED_MILLISECONDS = "a whole number of milliseconds above 0"


def is_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= MAX_TIMEOUT_S


def is_milliseconds(value: Any) -> bool:
    return type(value) is int and 0 < value <= MAX_TIMEOUT_S * 1000


@dataclass(frozen=True)
class CommandHook(_HookOptions):
    """A program of the project's: told on its stdin, it answers with its exit code or with JSON."""

    kind: ClassVar[HookKind] = "command"
    body: ClassVar[str] = "command"

    command: str
    args: tuple[str, ...] | None = None  # given: `command` is a program, no shell reads it
    shell: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptHook(_HookOptions):
    """A question to a small model, which answers whether the agent may stop."""

    kind: ClassVar[HookKind] = "prompt"
    body: ClassVar[str] = "prompt"
    asks_model: ClassVar[bool] = True

    prompt: str
    model: str | None = None
    transcript: Literal["none", "last", "digest", "full"] | None = None


@dataclass(frozen=True)
class AgentHook(_HookOptions):
    """A small agent that can only look, and answers whether the other may stop."""

    kind: ClassVar[HookKind] = "agent"
    body: ClassVar[str] = "prompt"
    asks_model: ClassVar[bool] = True

    prompt: str
    model: str | None = None


@dataclass(frozen=True)
class HttpHook(_HookOptions):
    """An endpoint: it is sent what happened, and answers as a command would on its stdout."""

    kind: ClassVar[HookKind] = "http"
    body: ClassVar[str] = "url"

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # they may hold a secret
    allowed_env_vars: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallbackHook(_HookOptions):
    """A function of this program, sync or async: it returns a decision, a dict in the JSON contract, or None."""

    kind: ClassVar[HookKind] = "callback"
    body: ClassVar[str] = "callback"
    in_settings: ClassVar[bool] = False

    callback: Callable[..., Any] = field(repr=False)  # of the event; in Options also as Claude's SDK calls it
    name: str | None = None


# The names that the first SDKs have for them.
CommandHookConfig = CommandHook
PromptHookConfig = PromptHook
CallbackHookConfig = CallbackHook

Hook = CommandHook | PromptHook | AgentHook | HttpHook | CallbackHook


_CLASSES: tuple[type[Hook], ...] = (CommandHook, PromptHook, AgentHook, HttpHook, CallbackHook)
KINDS: Mapping[str, type[Hook]] = {hook.kind: hook for hook in _CLASSES}
SETTINGS_KINDS: Mapping[str, type[Hook]] = {name: hook for name, hook in KINDS.items() if hook.in_settings}


def hook_text(hook: Hook) -> str:
    """The words that people know a hook by: its command, prompt, address or function."""
    match hook:
        case CommandHook(command, args):
            return command if args is None else " ".join((command, *args))
        case PromptHook(prompt) | AgentHook(prompt):
            return prompt
        case HttpHook(url):
            return describe_url(url)
        case CallbackHook(callback, name):
            return name or getattr(callback, "__qualname__", None) or repr(callback)
        case _:
            assert_never(hook)


def label(hook: Hook) -> str:
    """A hook's name on one short line."""
    return one_line(hook.id or hook_text(hook), MAX_LABEL_CHARS)


def identity(hook: Hook) -> tuple[object, ...]:
    """Hooks with the same identity are one hook, in whichever files they are written.

    Measured on Claude Code: the same command string runs once, whatever its timeout, message or shell, and the same
    prompt is asked once; callbacks are never taken for one another. An id of its own makes another hook.
    """
    match hook:
        case CommandHook(command, args):
            return ("command", command, args, tuple(hook.env.items()), hook.outcomes, hook.id)
        case CallbackHook():
            return ("callback", object())
        case HttpHook(url, headers):
            return ("http", url, tuple(headers.items()), hook.id)
        case PromptHook(prompt, model, transcript):
            return ("prompt", prompt, model, transcript, hook.id)
        case AgentHook(prompt, model):
            return ("agent", prompt, model, hook.id)
        case _:
            assert_never(hook)
