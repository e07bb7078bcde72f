"""What a Python program configures: hooks by event, and how they are asked.

Everything is checked when `Options` is made, and all that is wrong is said at once, before any agent starts.
"""

import functools
import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields, replace
from importlib import import_module
from typing import Any

from turngate.core.dialect import DIALECTS, KINDS, Dialect
from turngate.core.events import Event
from turngate.core.hooks import (
    AgentHook,
    CallbackHook,
    CommandHook,
    Hook,
    HttpHook,
    Mode,
    PromptHook,
    kind,
    text_of,
)
from turngate.core.matcher import Unusable, read_matcher
from turngate.core.names import EVENTS, FOREIGN_EVENTS, STOP_EVENTS
from turngate.core.settings import Order, Problem, Rule, Settings
from turngate.core.wire import payload_of
from turngate.errors import UsageError
from turngate.settings import keys


class InvalidOptions(UsageError, ValueError):
    """Every problem of some options, before anything is started."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = (f"{problem} ({problem.hint})" if problem.hint else str(problem) for problem in self.problems)
        super().__init__("\n  ".join((f"{count} in the options", *lines)))


@dataclass(frozen=True)
class HookGroup:
    """Hooks that are asked only where the event's subject (a tool's name, a child's type) fits."""

    matcher: str | None
    hooks: Sequence["Hook | Mapping[str, Any]"]


@dataclass(frozen=True)
class HookCallbackMatcher:
    """The old form: functions under a matcher, with one timeout in seconds. Deprecated; `docs/migrate.md`."""

    matcher: str | None = None
    hooks: Sequence[Callable[..., Any]] = ()
    timeout: float | None = None  # seconds

    def __post_init__(self) -> None:
        said = f"HookCallbackMatcher is the old form; write {self._new_form()} in Options.hooks"
        warnings.warn(said, DeprecationWarning, stacklevel=3)

    def _new_form(self) -> str:
        limit = "" if self.timeout is None else f", timeout={self.timeout!r}"
        functions = self.hooks if isinstance(self.hooks, list | tuple) else [self.hooks]
        each = ", ".join(f"CallbackHook({getattr(f, '__name__', '…')}{limit})" for f in functions)
        return each if self.matcher in (None, "", "*") else f"HookGroup({self.matcher!r}, [{each}])"


Config = Hook | HookGroup | HookCallbackMatcher | Mapping[str, Any]


@dataclass(frozen=True)
class Options:
    """The hooks of each event, in order; a list may mix kinds, and the JSON form of a config is understood too.

    Raises InvalidOptions, a ValueError, which lists everything that is wrong.
    """

    hooks: Mapping[str, Sequence[Config]] = field(default_factory=dict)
    _: KW_ONLY
    timeout_ms: int | None = None  # for hooks that name none; None: what the settings or the dialect say
    mode: Mode | Mapping[str, Mode] | None = None  # of these hooks; "observe": refusals are only recorded
    order: Order | Mapping[str, Order] | None = None  # None: "sequential", unless the settings say otherwise
    dialect: str | None = None  # None: the settings', or "turngate"
    limit: int | None = None  # continuations in one turn
    model: str | None = None
    judge: str | None = None  # the model of prompt hooks

    def __post_init__(self) -> None:
        reader = _Reader()
        hooks = reader.hooks(self.hooks)
        for name, (good, expected) in _OWN.items():
            value = getattr(self, name)
            if value is not None and not good(value):
                reader.problem(f"is {_shown(value)}, expected {expected}", field=name)
        if reader.problems:
            raise InvalidOptions(reader.problems)
        object.__setattr__(self, "hooks", hooks)

    def settings(self, base: Settings | None = None) -> Settings:
        """These options on top of settings that were read from files, or of none."""
        base = base or Settings()
        dialect = base.dialect if self.dialect is None else DIALECTS[self.dialect]
        return replace(
            base,
            rules=(*base.rules, *self.rules(dialect)),
            dialect=dialect,
            order=self._order(base.order),
            limit=base.limit if self.limit is None else self.limit,
            model=self.model or base.model,
            judge=self.judge or base.judge,
        )

    def _order(self, before: Mapping[str, Order]) -> dict[str, Order]:
        match self.order:
            case None:
                return {"*": "sequential", **before}
            case str(order):
                return {"*": order}
            case by_event:
                return {"*": "sequential", **before, **by_event}

    def rules(self, dialect: Dialect) -> tuple[Rule, ...]:
        """One rule for each hook, in the order in which they are asked."""
        written = self.rules_as_written()
        return tuple(replace(rule, hook=_understood(rule.hook, dialect)) for rule in written)

    def _each(self) -> Iterator[tuple[str, str | None, str, Hook]]:
        """Event, matcher, place and hook of each."""
        for event, configs in self.hooks.items():
            for number, config in enumerate(configs):
                if isinstance(config, HookGroup):
                    for inner, hook in enumerate(config.hooks):
                        yield event, config.matcher, f"[{number}].hooks[{inner}]", _read(hook)
                else:
                    yield event, None, f"[{number}]", _read(config)

    def _completed(self, hook: Hook, event: str) -> Hook:
        """A hook that says nothing about its mode and its time gets what is said here."""
        mode = self.mode if isinstance(self.mode, str | None) else self.mode.get(event)
        limit = None if self.timeout_ms is None else self.timeout_ms / 1000
        own_limit = hook.timeout if hook.timeout is not None else limit
        return replace(hook, mode=hook.mode or mode, timeout=own_limit)

    # As JSON

    def to_json(self) -> dict[str, Any]:
        """Timeouts are in milliseconds (C-01); what is unset is left out, and a function is never written."""
        hooks = {event: [_config_json(config) for config in configs] for event, configs in self.hooks.items()}
        own = {told: getattr(self, name) for told, name in _JSON.items()}
        return {
            "hooks": hooks,
            **{
                told: dict(value) if isinstance(value, Mapping) else value
                for told, value in own.items()
                if value is not None
            },
        }

    @classmethod
    def from_json(
        cls, value: Mapping[str, Any] | str, callbacks: Iterable[Callable[..., Any]] = ()
    ) -> "Options":
        """What `to_json` gave; the functions of its callback hooks are handed out in order."""
        told: Any = json.loads(value) if isinstance(value, str) else value
        if not isinstance(told, Mapping):
            raise InvalidOptions([Problem(file="", message=f"is {_shown(told)}, expected an object")])
        functions = iter(callbacks)
        unknown = [
            Problem(file="", field=str(name), message="is no option")
            for name in told
            if name != "hooks" and name not in _JSON
        ]
        given = {_JSON[name]: value for name, value in told.items() if name in _JSON}
        try:
            options = cls(_with_functions(told.get("hooks", {}), functions), **given)
        except InvalidOptions as invalid:
            raise InvalidOptions([*unknown, *invalid.problems]) from None
        if unknown:
            raise InvalidOptions(unknown)
        return options

    # For another program

    def for_claude(self, base: Any = None) -> Any:
        """The options of Claude's Agent SDK, a `ClaudeAgentOptions`; with `base` these hooks are added to it.

        Commands, prompts, agents and endpoints travel in its settings, and Claude Code runs them; functions are
        called here. No model is called by us.
        """
        try:
            adapter = import_module("turngate.adapters.claude_sdk")  # its SDK takes 0.6 s to import
        except ModuleNotFoundError as missing:
            if missing.name != "claude_agent_sdk":
                raise
            wanted = "for_claude needs Claude's Agent SDK: pip install 'turngate[claude]' brings it"
            raise UsageError(wanted) from None
        return adapter.claude_options(self.rules_as_written(), model=self.model, judge=self.judge, base=base)

    def rules_as_written(self) -> tuple[Rule, ...]:
        """The same rules with the very functions that were given, for a program that calls them its own way."""
        return tuple(
            Rule(event, self._completed(hook, event), matcher, index=index)
            for event, matcher, index, hook in self._each()
        )


_MILLISECONDS = "a whole number of milliseconds above 0"


def _milliseconds(value: Any) -> bool:
    return type(value) is int and 0 < value <= keys.LONGEST * 1000


def _per_event(*words: str) -> Callable[[Any], bool]:
    one = keys.one_of(*words)
    return lambda value: (
        one(value)
        or (
            isinstance(value, Mapping) and all(event in EVENTS and one(word) for event, word in value.items())
        )
    )


_ORDERS = ("parallel", "sequential", "first_block")

# Options' own fields: what is good, and the words for it.
_OWN: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "timeout_ms": (_milliseconds, _MILLISECONDS),
    "mode": (_per_event("gate", "observe"), '"gate" or "observe", for all or per event'),
    "order": (_per_event(*_ORDERS), '"parallel", "sequential" or "first_block", for all or per event'),
    "dialect": (keys.one_of(*DIALECTS), "one of " + ", ".join(f'"{name}"' for name in DIALECTS)),
    "limit": (keys.count, "a whole number, 0 or more"),
    "model": (keys.text, "a model's name"),
    "judge": (keys.text, "a model's name"),
}
_JSON = {"timeout" if name == "timeout_ms" else name: name for name in _OWN}

_CLASSES: Mapping[str, type[Hook]] = {
    "command": CommandHook,
    "prompt": PromptHook,
    "agent": AgentHook,
    "http": HttpHook,
    "callback": CallbackHook,
}
_BODY = {**keys.BODY, "callback": "callback"}
_A: Mapping[str, str] = {name: f"an {name}" if name in ("agent", "http") else f"a {name}" for name in KINDS}


class _Reader:
    """Options being read: the problems gather here."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def problem(
        self, message: str, event: str | None = None, index: str | None = None, field: str | None = None,
        hint: str | None = None,
    ) -> None:  # fmt: skip
        self.problems.append(
            Problem(file="", message=message, event=event, index=index, field=field, hint=hint)
        )

    def hooks(self, value: Any) -> dict[str, tuple[Config, ...]]:
        if not isinstance(value, Mapping):
            self.problem(f"is {_shown(value)}, expected a dict of events", field="hooks")
            return {}
        good: dict[str, tuple[Config, ...]] = {}
        for event, configs in value.items():
            if event not in EVENTS:
                self.unknown_event(event)
            elif not isinstance(configs, list | tuple):
                self.problem(f"is {_shown(configs)}, expected a list of hooks", event)
            else:
                read = [self.config(config, event, f"[{n}]") for n, config in enumerate(configs)]
                good[event] = tuple(config for config in read if config is not None)
        return good

    def unknown_event(self, event: Any) -> None:
        name = event if isinstance(event, str) else _shown(event)
        if event in FOREIGN_EVENTS:
            return self.problem("is an event that Turngate does not fire", name)
        likely = [known for known in EVENTS if known.lower() == name.lower().replace("_", "")]
        hint = f'did you mean "{likely[0]}"?' if likely else None
        return self.problem(f"is no known event, expected one of {', '.join(EVENTS)}", name, hint=hint)

    def config(self, config: Any, event: str, index: str) -> Config | None:
        match config:
            case HookCallbackMatcher():
                return self.old_form(config, event, index)
            case HookGroup(matcher, hooks):
                return self.group(matcher, hooks, event, index)
            case {"hooks": hooks, **rest} if "type" not in rest:
                for name in rest.keys() - {"matcher"}:
                    self.problem("is no field of a group of hooks", event, index, str(name))
                return self.group(rest.get("matcher"), hooks, event, index)
            case _:
                return self.hook(config, event, index)

    def group(self, matcher: Any, hooks: Any, event: str, index: str) -> HookGroup | None:
        if not isinstance(matcher, str | None):
            self.problem(f"is {_shown(matcher)}, expected a string", event, index, "matcher")
        elif matcher and matcher != "*" and EVENTS[event] and isinstance(read_matcher(matcher), Unusable):
            never = f"is {_shown(matcher)}, which can never match, expected names or a regular expression"
            self.problem(never, event, index, "matcher")
        if not isinstance(hooks, list | tuple):
            self.problem(f"is {_shown(hooks)}, expected a list of hooks", event, index, "hooks")
            return None
        read = [self.hook(hook, event, f"{index}.hooks[{n}]") for n, hook in enumerate(hooks)]
        return HookGroup(matcher, tuple(hook for hook in read if hook is not None))

    def old_form(self, old: HookCallbackMatcher, event: str, index: str) -> HookGroup | None:
        if old.timeout is not None and not keys.seconds(old.timeout):
            expected = "a number of seconds above 0"
            self.problem(f"is {_shown(old.timeout)}, expected {expected}", event, index, "timeout")
            return None
        if not isinstance(old.hooks, list | tuple):
            self.problem(f"is {_shown(old.hooks)}, expected a list of functions", event, index, "hooks")
            return None
        return self.group(
            old.matcher, [CallbackHook(each, timeout=old.timeout) for each in old.hooks], event, index
        )

    def hook(self, config: Any, event: str, index: str) -> Hook | None:
        before = len(self.problems)
        read: Hook | None = None
        match config:
            case CommandHook() | PromptHook() | AgentHook() | HttpHook() | CallbackHook():
                read = self.made(config, event, index)
            case Mapping():
                read = self.entry(config, event, index)
            case _:
                self.problem(f"is {_shown(config)}, expected a hook", event, index)
        if isinstance(read, PromptHook | AgentHook) and event not in STOP_EVENTS:
            only = f"{kind(read)} hooks exist for {' and '.join(STOP_EVENTS)} only"
            self.problem(only, event, index, "type")
        return read if len(self.problems) == before else None

    def made(self, hook: Hook, event: str, index: str) -> Hook:
        """A config that Python made: its constructor took what it was given."""
        which = kind(hook)
        if isinstance(hook, CallbackHook):
            self.function(hook.callback, event, index)
        for name, key in keys.HOOK.items():
            if which in key.kinds:
                value = _plain(getattr(hook, key.field))
                is_body = name == _BODY[which]
                if (is_body or value != _plain(_default(hook, key.field))) and not key.good(value):
                    self.problem(f"is {_shown(value)}, expected {key.expected}", event, index, key.field)
        return hook

    def entry(self, entry: Mapping[Any, Any], event: str, index: str) -> Hook | None:
        """A config in its JSON form."""
        which = entry.get("type")
        if not isinstance(which, str) or which not in _CLASSES:
            said = "is missing" if "type" not in entry else f"is {_shown(which)}"
            known = ", ".join(f'"{name}"' for name in KINDS)
            self.problem(f"{said}, expected one of {known}", event, index, "type")
            return None
        good: dict[str, Any] = {}
        for name, value in entry.items():
            if name == "type":
                continue
            if name == "callback" and which == "callback":
                self.function(value, event, index)
                good[name] = value
            else:
                self.key(name, value, which, event, index, good)
        if _BODY[which] not in entry:
            body = keys.HOOK[_BODY[which]].expected if which != "callback" else "a function"
            self.problem(f"is missing, expected {body}", event, index, _BODY[which])
        usable = _BODY[which] in good
        return _CLASSES[which](**good) if usable else None

    def key(self, name: Any, value: Any, which: str, event: str, index: str, good: dict[str, Any]) -> None:
        key = keys.HOOK.get(name) if isinstance(name, str) else None
        if name == "callback" or (key is not None and which not in key.kinds):
            owners = ("callback",) if key is None else key.kinds
            whose = " or ".join(_A[owner] for owner in owners)
            self.problem(f"belongs to {whose} hook, not to {_A[which]} hook", event, index, name)
        elif key is None:
            self.problem(f"is no field of {_A[which]} hook", event, index, str(name))
        elif name == "timeout":
            if _milliseconds(value):
                good[name] = value / 1000
            else:
                self.problem(f"is {_shown(value)}, expected {_MILLISECONDS}", event, index, name)
        elif not key.good(value):
            self.problem(f"is {_shown(value)}, expected {key.expected}", event, index, name)
        else:
            good[key.field] = value if key.read is None else key.read(value)

    def function(self, value: Any, event: str, index: str) -> None:
        if not callable(value):
            self.problem(f"is {_shown(value)}, expected a function", event, index, "callback")


def _read(config: Config) -> Hook:
    """What `__post_init__` left is a hook."""
    assert not isinstance(config, HookGroup | HookCallbackMatcher | Mapping)  # noqa: S101
    return config


def _default(hook: Hook, name: str) -> Any:
    [found] = [each for each in fields(hook) if each.name == name]
    if found.default_factory is not MISSING:
        return found.default_factory()
    return None if found.default is MISSING else found.default


def _plain(value: Any) -> Any:
    """As JSON would have it."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _shown(value: Any) -> str:
    match value:
        case Mapping():
            return "a dict"
        case list() | tuple():
            return "a list"
        case str() | int() | float() | None:
            words = repr(value)
            return words if len(words) <= 60 else words[:59] + "…"
        case _:
            return f"of the type {type(value).__name__}"


# JSON


def _config_json(config: Config) -> dict[str, Any]:
    if isinstance(config, HookGroup):
        matcher = {} if config.matcher is None else {"matcher": config.matcher}
        return {**matcher, "hooks": [_config_json(hook) for hook in config.hooks]}
    return config_json(_read(config), per_second=1000)


def config_json(hook: Hook, *, per_second: int) -> dict[str, Any]:
    """A hook as JSON, its timeout in whatever the surface counts; a function is never written."""
    which = kind(hook)
    told: dict[str, Any] = {"type": which}
    for name, key in keys.HOOK.items():
        value = getattr(hook, key.field, None)
        if which in key.kinds and value != _default(hook, key.field):
            told[name] = _plain(value)
    if hook.timeout is not None:
        limit = hook.timeout * per_second
        told["timeout"] = max(1, round(limit)) if per_second > 1 or limit == int(limit) else limit
    return told


def _with_functions(hooks: Any, functions: Iterator[Callable[..., Any]]) -> Any:
    """The same JSON, and each callback entry has the next function, as long as there are some."""
    if isinstance(hooks, list):
        return [_with_functions(each, functions) for each in hooks]
    if not isinstance(hooks, dict):
        return hooks
    if hooks.get("type") == "callback":
        found = next(functions, None)
        return hooks if found is None else {**hooks, "callback": found}
    if "type" in hooks:
        return hooks
    return {name: _with_functions(each, functions) for name, each in hooks.items()}


# Functions that were written for Claude's Agent SDK


def _understood(hook: Hook, dialect: Dialect) -> Hook:
    if not isinstance(hook, CallbackHook) or not speaks_sdk(hook.callback):
        return hook
    return replace(hook, callback=_told_as_sdk(hook.callback, dialect), name=hook.name or text_of(hook))


def speaks_sdk(callback: Callable[..., Any]) -> bool:
    """Does it take `(input, tool_use_id, context)`, and not one event?"""
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):
        return False
    return not _takes(signature, 1) and _takes(signature, 3)


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _told_as_sdk(callback: Callable[..., Any], dialect: Dialect) -> Callable[[Any], Any]:
    def told(event: Event) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
        return payload_of(event, dialect), getattr(event, "tool_use_id", None), {"signal": None}

    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):

        @functools.wraps(callback)
        async def answer_later(event: Event) -> Any:
            return _meant(await callback(*told(event)))

        return answer_later

    @functools.wraps(callback)
    def answer(event: Event) -> Any:
        return _meant(callback(*told(event)))

    return answer


def _meant(value: Any) -> Any:
    """The SDK writes `continue_` and `async_`, which are words of Python."""
    return {str(name).rstrip("_"): each for name, each in value.items()} if isinstance(value, dict) else value
