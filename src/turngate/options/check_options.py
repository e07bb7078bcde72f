"""Checks the hooks and fields of `Options`, and reports every problem at once; converts them to JSON and back."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from turngate.core.constants import EVENTS, FOREIGN_EVENTS, STOP_EVENTS, TEAM_EVENTS
from turngate.core.dialect import DIALECTS
from turngate.core.hooks.http_policy import url_problem
from turngate.core.hooks.kinds import (
    EXPECTED_MILLISECONDS,
    EXPECTED_SECONDS,
    KINDS,
    MAX_TIMEOUT_S,
    CallbackHook,
    GateHook,
    Hook,
    HttpHook,
    is_milliseconds,
    is_seconds,
)
from turngate.core.hooks.matcher import InvalidMatcher, read_matcher
from turngate.core.settings import Problem
from turngate.core.text import describe, describe_syntax_error
from turngate.options.hook_forms import (
    Config,
    HookCallbackMatcher,
    HookGroup,
    describe_legacy_form,
    function_name,
    hook_of,
)
from turngate.settings import key_table as keys
from turngate.settings.key_table import ValueType, describe_invalid, is_count, is_string_list, one_of
from turngate.settings.parse import RejectedKey, describe_bad_type, hook_from_json
from turngate.settings.problem_log import ProblemLog, did_you_mean

_FIRED = tuple(event for event in EVENTS if event not in TEAM_EVENTS)  # by the agent of Turngate


def parse_options(
    hooks: Any, own: Mapping[str, Any]
) -> tuple[dict[str, tuple[Config, ...]], list[Problem], list[str]]:
    """Return the valid hooks, every problem of the hooks and of the options' own fields, and the deprecated forms."""
    parser = _OptionsParser()
    valid = parser.parse_hooks(hooks)
    for name, value in own.items():
        if value is not None and not OWN[name].is_valid(value):
            parser.log.add(_describe_invalid(value, OWN[name]), name)
    return valid, list(parser.log.problems), parser.deprecated


def _describe_invalid(value: Any, kind: ValueType) -> str:
    """Return the message for an invalid value. In a dict only the invalid entry is named: values may be secrets."""
    if isinstance(value, dict) and kind.is_valid({}):
        invalid = next((name for name, each in value.items() if not kind.is_valid({name: each})), None)
        if invalid is not None:
            return f"has an invalid entry {describe(invalid)}, expected {kind.expected}"
    return f"is {describe_invalid(value, kind, describe)}, expected {kind.expected}"


_MILLISECONDS = ValueType(is_milliseconds, EXPECTED_MILLISECONDS, {}, convert=lambda value: value / 1000)

# The fields of Options besides `hooks`.
OWN: Mapping[str, ValueType] = {
    "timeout_ms": _MILLISECONDS,
    "mode": keys.TURNGATE_KEYS["mode"].type,
    "order": keys.TURNGATE_KEYS["order"].type,
    "dialect": one_of(*DIALECTS)._replace(expected="one of " + ", ".join(f'"{name}"' for name in DIALECTS)),
    "limit": keys.TURNGATE_KEYS["limit"].type._replace(
        is_valid=lambda value: is_count(value) and value <= MAX_TIMEOUT_S
    ),
    "model": keys.TURNGATE_KEYS["model"].type,
    "judge": keys.TURNGATE_KEYS["judge"].type,
}

_FUNCTION = ValueType(callable, "a function", {})
_NAME = ValueType(lambda value: value is None or is_string_list([value]), "a string", {})

# The fields of a hook that Python made, and the keys of its JSON form, where a timeout is in milliseconds.
_FIELDS: Mapping[str, keys.Key] = {
    **keys.HOOK_KEYS,
    "callback": keys.row("callback", _FUNCTION, ""),
    "name": keys.row("name", _NAME, ""),
}
_JSON_KEYS = {**_FIELDS, "timeout": keys.row("timeout", _MILLISECONDS, "")}


class _OptionsParser:
    """Reads the hooks of some options, and collects the problems."""

    def __init__(self) -> None:
        self.log = ProblemLog(file="")
        self.deprecated: list[str] = []

    def parse_hooks(self, hooks: Any) -> dict[str, tuple[Config, ...]]:
        if not isinstance(hooks, Mapping):
            self.log.add(f"is {describe(hooks)}, expected a dict of events", "hooks")
            return {}
        valid: dict[str, tuple[Config, ...]] = {}
        for event, configs in hooks.items():
            self.log.set_position(key_name(event))
            if event not in _FIRED:
                self.add_unknown_event(event)
            elif not isinstance(configs, list | tuple):
                self.log.add(f"is {describe(configs)}, expected a list of hooks")
            else:
                parsed = [self.parse_config(config, f"[{n}]") for n, config in enumerate(configs)]
                valid[event] = tuple(config for config in parsed if config is not None)
        self.log.set_position()
        return valid

    def add_unknown_event(self, event: Any) -> None:
        if event in FOREIGN_EVENTS or event in TEAM_EVENTS:
            return self.log.add("is an event that Turngate does not fire")
        hint = did_you_mean(keys.closest_event(key_name(event)))
        return self.log.add(f"is not a known event, expected one of {', '.join(_FIRED)}", hint=hint)

    def parse_config(self, config: Any, index: str) -> Config | None:
        self.log.index = index
        match config:
            case HookCallbackMatcher(matcher, hooks, timeout):
                return self.convert_legacy(matcher, hooks, timeout)
            case HookGroup(matcher, hooks):
                return self.parse_group(matcher, hooks)
            case {"hooks": _, **rest} if "type" not in rest:
                return self.parse_json_group(config)
            case object(matcher=matcher, hooks=hooks):  # the matcher class of another SDK
                timeout = getattr(config, "timeout", None)
                self.deprecated.append(describe_legacy_form(type(config).__name__, matcher, hooks, timeout))
                # Claude's SDK ignores `on_failure` on stop events.
                blocking = (
                    getattr(config, "on_failure", None) == "block" and self.log.event not in STOP_EVENTS
                )
                return self.convert_legacy(matcher, hooks, timeout, blocking=blocking)
            case _:
                return self.parse_hook(config)

    def parse_json_group(self, group: Mapping[Any, Any]) -> HookGroup | None:
        hooks, matcher, timeout = group["hooks"], group.get("matcher"), group.get("timeout")
        is_legacy = isinstance(hooks, list | tuple) and any(map(callable, hooks))
        fields = ("matcher", "hooks", "timeout") if is_legacy else ("matcher", "hooks")
        for name in group:
            if name not in fields:
                self.log.add("is not a field of a group of hooks", key_name(name))
        if not is_legacy:
            return self.parse_group(matcher, hooks)
        self.deprecated.append(describe_legacy_form("a function in a group", matcher, hooks, timeout))
        return self.convert_legacy(matcher, hooks, timeout)

    def parse_group(self, matcher: Any, hooks: Any) -> HookGroup | None:
        if not isinstance(matcher, str | None):
            self.log.add(f"is {describe(matcher)}, expected a string", "matcher")
        elif (
            matcher
            and matcher != "*"
            and EVENTS[self.log.event]
            and isinstance(read_matcher(matcher), InvalidMatcher)
        ):
            expected = "expected names or a regular expression"
            self.log.add(f"is {describe(matcher)}, which never matches, {expected}", "matcher")
        if not isinstance(hooks, list | tuple):
            self.log.add(f"is {describe(hooks)}, expected a list of hooks", "hooks")
            return None
        index, parsed = self.log.index, []
        for number, hook in enumerate(hooks):
            self.log.index = f"{index}.hooks[{number}]"
            parsed.append(self.parse_hook(hook))
        return HookGroup(matcher, tuple(hook for hook in parsed if hook is not None))

    def convert_legacy(
        self, matcher: Any, hooks: Any, timeout: Any, *, blocking: bool = False
    ) -> HookGroup | None:
        """Convert functions under a matcher, with one timeout in seconds, to a group."""
        if timeout is not None and not is_seconds(timeout):
            self.log.add(f"is {describe(timeout)}, expected {EXPECTED_SECONDS}", "timeout")
            timeout = None
        if not isinstance(hooks, list | tuple):
            self.log.add(f"is {describe(hooks)}, expected a list of functions", "hooks")
            return None
        converted = [
            each
            if isinstance(each, Hook | Mapping)
            else CallbackHook(each, timeout=timeout, blocking=blocking)
            for each in hooks
        ]
        return self.parse_group(matcher, converted)

    def parse_hook(self, config: Any) -> Hook | None:
        before = self.log.count
        hook: Hook | None = None
        if isinstance(config, Hook):
            hook = self.check_instance(config)
        elif isinstance(config, Mapping):
            hook = self.parse_entry(config)
        else:
            hint = f"write CallbackHook({function_name(config)})" if callable(config) else None
            self.log.add(f"is {describe(config)}, expected a hook", hint=hint)
        if hook is not None and hook.only_on is not None and self.log.event not in hook.only_on:
            events = ", ".join(hook.only_on)
            self.log.add(f'is "{hook.kind}", but {hook.kind} hooks run only on {events}', "type")
        if self.log.count > before:
            return None
        if isinstance(hook, GateHook):
            self.check_gate(hook)
        elif isinstance(hook, HttpHook) and (wrong := url_problem(hook.url, "python", ())):
            self.log.add(wrong, "url")
        return hook if self.log.count == before else None

    def check_gate(self, hook: GateHook) -> None:
        # lazy: the gates, which few options have
        from turngate.gates.arguments import GateCall, read_gate_hook  # noqa: PLC0415

        read = read_gate_hook(hook)
        for field, message, hint in () if isinstance(read, GateCall) else read:
            self.log.add(message, key_name(field), hint)

    def check_instance(self, hook: Hook) -> Hook:
        """Check a hook that Python made. Its lists and dicts are copied, so later changes do not reach the options."""
        valid: dict[str, Any] = {}
        for row in _FIELDS.values():
            if hook.kind not in row.kinds:
                continue
            value = copy_plain(getattr(hook, row.field))
            if value is None and default_of(hook, row.field) is None:
                continue
            if row.type.is_valid(value):
                valid[row.field] = value if row.type.convert is None else row.type.convert(value)
            else:
                self.log.add(_describe_invalid(value, row.type), row.field)
        return replace(hook, **valid)

    def parse_entry(self, entry: Mapping[Any, Any]) -> Hook | None:
        kind = entry.get("type")
        if not isinstance(kind, str) or kind not in KINDS:
            message, hint = describe_bad_type(entry, KINDS, describe)
            self.log.add(message, "type", hint)
            return None
        hook = KINDS[kind]
        plain = {name: copy_plain(value) for name, value in entry.items()}
        parsed, rejected = hook_from_json(plain, hook, _JSON_KEYS)
        for key in rejected:
            self.add_rejected_key(key, hook)
        if hook.needs_body and hook.body not in entry:
            self.log.add(f"is missing, expected {_FIELDS[hook.body].type.expected}", hook.body)
        return hook(**parsed) if hook.body in parsed or not hook.needs_body else None

    def add_rejected_key(self, rejected: RejectedKey, hook: type[Hook]) -> None:
        name, value, row = rejected
        if row is None:
            hint = "write `timeout`, here in milliseconds" if name == "timeout_ms" else None
            self.log.add(f"is not a field of {hook.kind} hooks", key_name(name), hint)
        elif hook.kind not in row.kinds:
            owners = " and ".join(row.kinds)
            self.log.add(f"is a field of {owners} hooks, not of {hook.kind} hooks", name)
        else:
            self.log.add(_describe_invalid(value, row.type), name)


def default_of(hook: Hook, name: str) -> Any:
    [field] = [each for each in fields(hook) if each.name == name]
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def key_name(name: Any) -> str:
    """Return a dict's key as it appears in a message."""
    return name if isinstance(name, str) else describe(name)


def copy_plain(value: Any) -> Any:
    """Return a copy of the value with the types that JSON has."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


# As JSON

_JSON_NAMES = {"timeout" if name == "timeout_ms" else name: name for name in OWN}


def options_json(hooks: Mapping[str, Sequence[Config]], own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "hooks": {event: [_config_json(config) for config in configs] for event, configs in hooks.items()},
        **{key: own[name] for key, name in _JSON_NAMES.items() if own[name] is not None},
    }


def _config_json(config: Config) -> dict[str, Any]:
    if isinstance(config, HookGroup):
        matcher = {} if config.matcher is None else {"matcher": config.matcher}
        return {**matcher, "hooks": [_config_json(hook) for hook in config.hooks]}
    return hook_json(hook_of(config), per_second=1000)


def hook_json(hook: Hook, *, per_second: int) -> dict[str, Any]:
    """Return a hook as JSON without the function of a callback. `per_second` is the unit of the timeout."""
    entry: dict[str, Any] = {"type": hook.kind}
    for name, row in keys.HOOK_KEYS.items():
        value = getattr(hook, row.field, None)
        if hook.kind in row.kinds and value != default_of(hook, row.field):
            entry[name] = copy_plain(value)
    if hook.timeout is not None:
        limit = hook.timeout * per_second
        entry["timeout"] = max(1, round(limit)) if per_second > 1 or limit == int(limit) else limit
    return entry


def parse_options_json(
    value: Mapping[str, Any] | str, callbacks: Iterable[Callable[..., Any]]
) -> tuple[Any, Mapping[str, Any], Sequence[Problem]]:
    """Return the hooks and the other options of some JSON, not yet checked, and the problems of the JSON itself."""
    log = ProblemLog(file="")
    try:
        options: Any = json.loads(value) if isinstance(value, str) else value
        if not isinstance(options, Mapping):
            log.add(f"is {describe(options)}, expected an object")
    except json.JSONDecodeError as error:
        log.add(f"is {describe_syntax_error(error.doc, error)}")
    except (ValueError, RecursionError):
        log.add("is not JSON: it is nested too deeply, or a number in it is too long")
    if log.problems:
        return {}, {}, log.problems
    for name in options:
        if name != "hooks" and name not in _JSON_NAMES:
            log.add("is not an option", key_name(name))
    functions: Iterator[Callable[..., Any]] = iter(())
    try:
        functions = iter(callbacks)
    except TypeError:
        log.add(f"is {describe(callbacks)}, expected a list of functions", "callbacks")
    hooks = options.get("hooks", {})
    if isinstance(hooks, Mapping):
        hooks = {event: _with_callbacks(configs, functions) for event, configs in hooks.items()}
    if any(True for _ in functions):
        log.add("has more functions than there are callback hooks", "callbacks")
    return hooks, {_JSON_NAMES[n]: each for n, each in options.items() if n in _JSON_NAMES}, log.problems


def _with_callbacks(configs: Any, functions: Iterator[Callable[..., Any]], *, groups: bool = True) -> Any:
    """Return the list with the next functions put into its callback entries, also into those in groups."""
    if not isinstance(configs, list | tuple):
        return configs
    filled = []
    for config in configs:
        entry, added = config if isinstance(config, Mapping) else {}, dict[str, Any]()
        if groups and "hooks" in entry and "type" not in entry:
            added = {"hooks": _with_callbacks(entry["hooks"], functions, groups=False)}
        elif entry.get("type") == "callback" and (function := next(functions, None)) is not None:
            added = {"callback": function}
        filled.append({**entry, **added} if added else config)
    return filled
