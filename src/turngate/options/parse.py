"""Reads what a program wrote, and says all that is wrong with it."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from typing import Any

from turngate.core.constants import EVENTS, FOREIGN_EVENTS, JUDGED_EVENTS, STOP_EVENTS
from turngate.core.dialect import DIALECTS
from turngate.core.hooks import (
    KINDS,
    LONGEST,
    MILLISECONDS,
    SECONDS,
    CallbackHook,
    Hook,
    HttpHook,
    is_milliseconds,
    is_seconds,
)
from turngate.core.http_policy import url_objection
from turngate.core.matcher import InvalidMatcher, read_matcher
from turngate.core.settings import Problem
from turngate.core.text import describe
from turngate.options.config_forms import Config, HookCallbackMatcher, HookGroup, name_of, warn_of_old_form
from turngate.settings import keys


def read(hooks: Any, own: Mapping[str, Any]) -> tuple[dict[str, tuple[Config, ...]], list[Problem]]:
    """The hooks that are good, and every problem: theirs, and those of the options' own fields."""
    reader = _Reader()
    good = reader.hooks(hooks)
    for name, value in own.items():
        is_good, expected = OWN[name]
        if value is not None and not is_good(value):
            reader.problem(f"{_wrong(value, is_good)}, expected {expected}", field=name)
    return good, reader.problems


def _wrong(value: Any, is_good: Callable[[Any], bool]) -> str:
    """What is wrong: where it is only some entries, these by name. Their values may be secrets."""
    if isinstance(value, dict) and is_good({}):
        odd = [describe(name) for name, each in value.items() if not is_good({name: each})]
        if odd:
            return f"has a wrong entry {odd[0]}"
    return f"is {describe(value)}"


def _as_in_settings(name: str) -> tuple[Callable[[Any], bool], str]:
    key = keys.TURNGATE[name]
    return key.good, key.expected


def _limit(value: Any) -> bool:
    return keys.count(value) and value <= LONGEST


# Options' own fields: what is good, and the words for it.
OWN: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "timeout_ms": (is_milliseconds, MILLISECONDS),
    "mode": _as_in_settings("mode"),
    "order": _as_in_settings("order"),
    "dialect": (keys.one_of(*DIALECTS), "one of " + ", ".join(f'"{name}"' for name in DIALECTS)),
    "limit": (_limit, keys.TURNGATE["limit"].expected),
    "model": _as_in_settings("model"),
    "judge": _as_in_settings("judge"),
}


class _Reader:
    """Options being read: the problems gather here."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def problem(
        self,
        message: str,
        event: str | None = None,
        index: str | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problems.append(
            Problem(file="", message=message, event=event, index=index, field=field, hint=hint)
        )

    def hooks(self, value: Any) -> dict[str, tuple[Config, ...]]:
        if not isinstance(value, Mapping):
            self.problem(f"is {describe(value)}, expected a dict of events", field="hooks")
            return {}
        good: dict[str, tuple[Config, ...]] = {}
        for event, configs in value.items():
            if event not in EVENTS:
                self.unknown_event(event)
            elif not isinstance(configs, list | tuple):
                self.problem(f"is {describe(configs)}, expected a list of hooks", event)
            else:
                read = [self.config(config, event, f"[{n}]") for n, config in enumerate(configs)]
                good[event] = tuple(config for config in read if config is not None)
        return good

    def unknown_event(self, event: Any) -> None:
        name = named(event)
        if event in FOREIGN_EVENTS:
            return self.problem("is an event that Turngate does not fire", name)
        likely = keys.closest_event(name)
        hint = f'did you mean "{likely}"?' if likely else None
        return self.problem(f"is no known event, expected one of {', '.join(EVENTS)}", name, hint=hint)

    def config(self, config: Any, event: str, index: str) -> Config | None:
        match config:
            case HookCallbackMatcher(matcher, hooks, timeout):
                return self.old_form(matcher, hooks, timeout, event, index)
            case HookGroup(matcher, hooks):
                return self.group(matcher, hooks, event, index)
            case {"hooks": hooks, **rest} if "type" not in rest:
                is_old = isinstance(hooks, list | tuple) and any(map(callable, hooks))
                for name in rest:
                    if name != "matcher" and not (is_old and name == "timeout"):
                        self.problem("is no field of a group of hooks", event, index, named(name))
                if not is_old:
                    return self.group(rest.get("matcher"), hooks, event, index)
                warn_of_old_form("a function in a group", rest.get("matcher"), hooks, rest.get("timeout"))
                return self.old_form(rest.get("matcher"), hooks, rest.get("timeout"), event, index)
            case object(matcher=matcher, hooks=hooks):  # as other SDKs have them
                timeout = getattr(config, "timeout", None)
                warn_of_old_form(type(config).__name__, matcher, hooks, timeout)
                # Claude's SDK has it, and ignores it at a stop.
                blocking = getattr(config, "on_failure", None) == "block" and event not in STOP_EVENTS
                return self.old_form(matcher, hooks, timeout, event, index, blocking=blocking)
            case _:
                return self.hook(config, event, index)

    def group(self, matcher: Any, hooks: Any, event: str, index: str) -> HookGroup | None:
        if not isinstance(matcher, str | None):
            self.problem(f"is {describe(matcher)}, expected a string", event, index, "matcher")
        elif (
            matcher and matcher != "*" and EVENTS[event] and isinstance(read_matcher(matcher), InvalidMatcher)
        ):
            never = f"is {describe(matcher)}, which can never match, expected names or a regular expression"
            self.problem(never, event, index, "matcher")
        if not isinstance(hooks, list | tuple):
            self.problem(f"is {describe(hooks)}, expected a list of hooks", event, index, "hooks")
            return None
        read = [self.hook(hook, event, f"{index}.hooks[{n}]") for n, hook in enumerate(hooks)]
        return HookGroup(matcher, tuple(hook for hook in read if hook is not None))

    def old_form(
        self, matcher: Any, hooks: Any, timeout: Any, event: str, index: str, *, blocking: bool = False
    ) -> HookGroup | None:
        """Functions under a matcher, with one limit in seconds."""
        if timeout is not None and not is_seconds(timeout):
            self.problem(f"is {describe(timeout)}, expected {SECONDS}", event, index, "timeout")
            timeout = None
        if not isinstance(hooks, list | tuple):
            self.problem(f"is {describe(hooks)}, expected a list of functions", event, index, "hooks")
            return None
        new = [
            each
            if isinstance(each, Hook | Mapping)
            else CallbackHook(each, timeout=timeout, blocking=blocking)
            for each in hooks
        ]
        return self.group(matcher, new, event, index)

    def hook(self, config: Any, event: str, index: str) -> Hook | None:
        before = len(self.problems)
        read: Hook | None = None
        if isinstance(config, Hook):
            read = self.made(config, event, index)
        elif isinstance(config, Mapping):
            read = self.entry(config, event, index)
        else:
            hint = f"write CallbackHook({name_of(config)})" if callable(config) else None
            self.problem(f"is {describe(config)}, expected a hook", event, index, hint=hint)
        if read is not None and read.asks_model and event not in JUDGED_EVENTS:
            only = f"{read.kind} hooks exist for {' and '.join(JUDGED_EVENTS)} only"
            self.problem(only, event, index, "type")
        if isinstance(read, HttpHook) and len(self.problems) == before:
            refused = url_objection(read.url, "python", ())
            if refused:
                self.problem(refused, event, index, "url")
        return read if len(self.problems) == before else None

    def made(self, hook: Hook, event: str, index: str) -> Hook:
        """A config that Python made, with copies of what its constructor took as it was given."""
        good: dict[str, Any] = {}
        if isinstance(hook, CallbackHook):
            self.function(hook.callback, event, index)
            self.label(hook.name, event, index)
        for key in keys.HOOK.values():
            if hook.kind not in key.kinds:
                continue
            value = plain(getattr(hook, key.field))
            if value is None and default(hook, key.field) is None:
                continue
            if key.good(value):
                good[key.field] = value if key.read is None else key.read(value)
            else:
                self.problem(f"{_wrong(value, key.good)}, expected {key.expected}", event, index, key.field)
        return replace(hook, **good)

    def entry(self, entry: Mapping[Any, Any], event: str, index: str) -> Hook | None:
        """A config in its JSON form."""
        which = entry.get("type")
        if not isinstance(which, str) or which not in KINDS:
            said = "is missing" if "type" not in entry else f"is {describe(which)}"
            known = ", ".join(f'"{name}"' for name in KINDS)
            meant = which.lower() if isinstance(which, str) and which.lower() in KINDS else None
            hint = f'did you mean "{meant}"?' if meant else None
            self.problem(f"{said}, expected one of {known}", event, index, "type", hint)
            return None
        hook = KINDS[which]
        good: dict[str, Any] = {}
        for name, value in entry.items():
            if name == "type":
                continue
            if name == "callback" and which == "callback":
                self.function(value, event, index)
                good[name] = value
            elif name == "name" and which == "callback":
                self.label(value, event, index)
                good[name] = value
            else:
                self.key(name, value, which, event, index, good)
        if hook.body not in entry:
            expected = keys.HOOK[hook.body].expected if which != "callback" else "a function"
            self.problem(f"is missing, expected {expected}", event, index, hook.body)
        return hook(**good) if hook.body in good else None

    def key(self, name: Any, value: Any, which: str, event: str, index: str, good: dict[str, Any]) -> None:
        value = plain(value)
        key = keys.HOOK.get(name) if isinstance(name, str) else None
        if name == "callback" or (key is not None and which not in key.kinds):
            owners = ("callback",) if key is None else key.kinds
            self.problem(
                f"is a field of {' and '.join(owners)} hooks, not of {which} hooks", event, index, name
            )
        elif key is None:
            hint = "write `timeout`, here in milliseconds" if name == "timeout_ms" else None
            self.problem(f"is not a field of {which} hooks", event, index, named(name), hint)
        elif name == "timeout":
            if is_milliseconds(value):
                good[name] = value / 1000
            else:
                self.problem(f"is {describe(value)}, expected {MILLISECONDS}", event, index, name)
        elif not key.good(value):
            self.problem(f"{_wrong(value, key.good)}, expected {key.expected}", event, index, name)
        else:
            good[key.field] = value if key.read is None else key.read(value)

    def label(self, value: Any, event: str, index: str) -> None:
        if value is not None and not keys.texts([value]):
            self.problem(f"is {describe(value)}, expected a string", event, index, "name")

    def function(self, value: Any, event: str, index: str) -> None:
        if not callable(value):
            self.problem(f"is {describe(value)}, expected a function", event, index, "callback")


def default(hook: Hook, name: str) -> Any:
    [found] = [each for each in fields(hook) if each.name == name]
    if found.default_factory is not MISSING:
        return found.default_factory()
    return found.default


def named(name: Any) -> str:
    """A key that nobody knows."""
    return name if isinstance(name, str) else describe(name)


def plain(value: Any) -> Any:
    """As JSON would have it, and a copy: what is changed later changes no options."""
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
