"""Reads the JSON of one settings file into a layer; what is bad is left out, piece by piece, and reported."""

from collections.abc import Iterable, Mapping
from typing import Any

from turngate.core.constants import EVENTS, FOREIGN_EVENTS, JUDGED_EVENTS, voids_claude_file
from turngate.core.dialect import Dialect
from turngate.core.hooks import SETTINGS_KINDS, CommandHook, Hook
from turngate.core.matcher import InvalidMatcher, read_matcher
from turngate.core.settings import Layer, Problem, Rule, ScalarSettings, Severity
from turngate.core.text import describe_json, describe_name
from turngate.settings import keys

_GUARDS = ("PreToolUse", "PermissionRequest")


def parse_layer(value: Any, *, file: str, level: str, family: str, dialect: Dialect) -> Layer:
    """Any JSON value becomes a layer; none raises."""
    reader = _Reader(file, level, family, dialect)
    return reader.layer(value)


class _Reader:
    """One file being read: the problems gather here."""

    def __init__(self, file: str, level: str, family: str, dialect: Dialect) -> None:
        self.file, self.level, self.family, self.dialect = file, level, family, dialect
        self.problems: list[Problem] = []
        self.guard_lost = False
        self.ids: set[tuple[str, str | None]] = set()

    def layer(self, value: Any) -> Layer:
        if not isinstance(value, dict):
            self.problem(
                f"the file holds {describe_json(value)}, expected an object", hint='begin with {"hooks": {…}}'
            )
            value = {}
        rules = self.rules(value.get("hooks", {}))
        if self.guard_lost and self.dialect.unloadable_guard_voids_file:
            self.problem(
                "a PreToolUse or PermissionRequest hook in it can not be read, so in this dialect none of its hooks count"
            )
            rules = []
        disable = value.get("disableAllHooks")
        if not isinstance(disable, bool | None):
            self.problem(f"is {describe_json(disable)}, expected true or false", field="disableAllHooks")
            disable = None
        scalars = self.scalars(value.get("turngate", {}), value.get("agents"))
        env = self.env(value.get("env", {}))
        self.look_around(value)
        return Layer(
            file=self.file,
            level=self.level,
            family=self.family,
            rules=tuple(rules),
            disable_all=disable,
            env=env,
            scalars=scalars,
            problems=tuple(self.problems),
        )

    def rules(self, hooks: Any) -> list[Rule]:
        if not isinstance(hooks, dict):
            if hooks is not None:
                self.problem(f"is {describe_json(hooks)}, expected an object of events", field="hooks")
            return []
        found: list[Rule] = []
        for event, groups in hooks.items():
            if event not in EVENTS:
                self.unknown_event(event)
            elif not isinstance(groups, list):
                self.guard_lost |= event in _GUARDS
                self.problem(
                    f"is {describe_json(groups)}, expected a list of groups", event=event, hint=_GROUP_HINT
                )
            else:
                for number, group in enumerate(groups):
                    self.group(group, event, f"[{number}]", found)
        return found

    def unknown_event(self, event: str) -> None:
        if event in FOREIGN_EVENTS:
            return self.problem("is an event that Turngate does not fire", "note", event=event)
        likely = keys.closest_event(event)
        hint = f'did you mean "{likely}"?' if likely else f"known events: {', '.join(EVENTS)}"
        return self.problem(
            "is no known event, so its hooks never run", "warning", event=describe_name(event), hint=hint
        )

    def group(self, group: Any, event: str, index: str, found: list[Rule]) -> None:
        if not isinstance(group, dict):
            self.guard_lost |= event in _GUARDS
            return self.problem(
                f"is {describe_json(group)}, expected an object", event=event, index=index, hint=_GROUP_HINT
            )
        entries = group.get("hooks")
        if not isinstance(entries, list):
            self.guard_lost |= event in _GUARDS
            if "hooks" not in group and "type" in group:
                return self.problem(
                    "is a hook by itself, expected a group with an inner `hooks` list",
                    event=event,
                    index=index,
                    hint=_GROUP_HINT,
                )
            return self.problem(
                f"is {describe_json(entries) if 'hooks' in group else 'missing'}, expected a list of hooks",
                event=event,
                index=index,
                field="hooks",
                hint=_GROUP_HINT,
            )
        matcher = group.get("matcher")
        if not isinstance(matcher, str | None):
            self.guard_lost |= event in _GUARDS
            return self.problem(
                f"is {describe_json(matcher)}, expected a string: the group is left out",
                event=event,
                index=index,
                field="matcher",
            )
        if matcher:
            self.matcher(matcher, event, index)
        for number, entry in enumerate(entries):
            place = f"{index}.hooks[{number}]"
            hook = self.entry(entry, event, place)
            if hook is not None:
                if hook.id and (event, hook.id) in self.ids:
                    twice = f"{describe_name(hook.id)!r} stands twice in this file: the last one counts"
                    self.problem(twice, "warning", event=event, index=place, field="id")
                self.ids.add((event, hook.id))
                found.append(Rule(event, hook, matcher, self.level, self.file, self.family, place))
            elif not _asks_a_model(entry):
                self.guard_lost |= event in _GUARDS
        return None

    def matcher(self, matcher: str, event: str, index: str) -> None:
        if EVENTS[event] is None:
            if matcher != "*":
                self.problem(
                    f"{matcher!r} has no meaning on {event}: the hooks run at every {event}",
                    "warning",
                    event=event,
                    index=index,
                    field="matcher",
                    hint="leave it out",
                )
        elif matcher != "*" and isinstance(meaning := read_matcher(matcher), InvalidMatcher):
            self.problem(
                f"{describe_name(repr(matcher))} {meaning.why}, so it never matches",
                event=event,
                index=index,
                field="matcher",
            )

    def entry(self, entry: Any, event: str, index: str) -> Hook | None:
        """One hook, or None when it can not be used."""
        if type(entry) is not dict:
            self.problem(f"is {describe_json(entry)}, expected an object", event=event, index=index)
            return None
        if _removes(entry):
            return CommandHook("", id=entry["id"], enabled=False)
        kind = entry.get("type")
        if type(kind) is not str or kind not in SETTINGS_KINDS:
            self.bad_type(entry, kind, event, index)
            return None
        hook = SETTINGS_KINDS[kind]
        good: dict[str, Any] = {}
        usable = True
        for name, value in entry.items():
            key = keys.HOOK.get(name)
            if key is not None and kind in key.kinds and key.good(value):
                good[key.field] = value if key.read is None else key.read(value)
            elif name != "type":
                usable &= self.bad_key(name, value, kind, event, index)
        if usable and hook.body not in good:
            body = keys.HOOK[hook.body]
            self.problem(f"is missing, expected {body.expected}", event=event, index=index, field=body.field)
            usable = False
        if hook.asks_model and event not in JUDGED_EVENTS:
            only = f"{kind} hooks exist for {' and '.join(JUDGED_EVENTS)} only"
            self.problem(only, event=event, index=index, field="type", hint="use a command hook here")
            usable = False
        if good.get("timeout", 0) >= 1000:
            self.milliseconds(good["timeout"], event, index)
        return hook(**good) if usable else None

    def milliseconds(self, seconds: float, event: str, index: str) -> None:
        said = f"{seconds:g} looks like milliseconds, but it is read as seconds"
        hint = f"write {seconds / 1000:g} if you mean {seconds:g} milliseconds"
        self.problem(said, "warning", event=event, index=index, field="timeout", hint=hint)

    def bad_type(self, entry: Mapping[str, Any], kind: Any, event: str, index: str) -> None:
        known = ", ".join(f'"{name}"' for name in SETTINGS_KINDS)
        if "type" not in entry:
            likely = next((hook.kind for hook in SETTINGS_KINDS.values() if hook.body in entry), "command")
            return self.problem(
                f"is missing, expected one of {known}",
                event=event,
                index=index,
                field="type",
                hint=f'add "type": "{likely}"',
            )
        return self.problem(
            f"is {describe_json(kind)}, expected one of {known}", event=event, index=index, field="type"
        )

    def bad_key(self, name: str, value: Any, kind: str, event: str, index: str) -> bool:
        """Reports one key; says whether the hook can still be used."""
        key = keys.HOOK.get(name)
        at: dict[str, Any] = {"event": event, "index": index, "field": describe_name(name)}
        if key is None:
            if name not in keys.FOREIGN_HOOK_KEYS:
                self.unknown_key(name, keys.HOOK, **at)
            return True
        if kind not in key.kinds:
            self.problem(f"has no effect on {kind} hooks: ignored", "warning", **at)
            return True
        said = f"is {describe_json(value)}, expected {key.expected}"
        if not key.drops:
            self.problem(f"{said}: ignored", "warning", **at)
            return True
        hint = 'write 30, not "30"' if name == "timeout" and isinstance(value, str) else None
        self.problem(f"{said}: the hook is left out", hint=hint, **at)
        return False

    def scalars(self, section: Any, agents: Any) -> ScalarSettings:
        good: dict[str, Any] = {}
        if not isinstance(section, dict):
            self.problem(f"is {describe_json(section)}, expected an object", field="turngate")
            section = {}
        for name, value in section.items():
            key = keys.TURNGATE.get(name)
            if key is None:
                self.unknown_key(name, keys.TURNGATE, field=f"turngate.{describe_name(name)}")
            elif name in keys.PER_EVENT and type(value) is dict:
                good[key.field] = self.per_event(name, key, value) or None
            elif not key.good(value):
                self.problem(
                    f"is {describe_json(value)}, expected {key.expected}: ignored", field=f"turngate.{name}"
                )
            else:
                good[key.field] = value if key.read is None else key.read(value)
        steers = agents
        for step in ("defaults", "subagents", "maxSteerRestarts"):
            steers = steers.get(step) if isinstance(steers, dict) else None
        if keys.count(steers):
            good["child_limit"] = steers
        elif steers is not None:
            where = "agents.defaults.subagents.maxSteerRestarts"
            self.problem(
                f"is {describe_json(steers)}, expected a whole number, 0 or more: ignored", field=where
            )
        return ScalarSettings(**good)

    def per_event(self, name: str, key: keys.Key, value: dict[str, Any]) -> dict[str, Any]:
        """Each event's word by itself: a bad one takes no other with it."""
        good: dict[str, Any] = {}
        for event, word in value.items():
            field = f"turngate.{name}.{describe_name(event)}"
            if event not in EVENTS:
                self.problem(f"is no known event, expected one of {', '.join(EVENTS)}: ignored", field=field)
            elif not key.good(word) or type(word) is dict:
                expected = key.expected.removesuffix(keys.OR_PER_EVENT)
                self.problem(f"is {describe_json(word)}, expected {expected}: ignored", field=field)
            else:
                good[event] = word
        return good

    def env(self, env: Any) -> dict[str, str]:
        if not isinstance(env, dict):
            self.problem(f"is {describe_json(env)}, expected an object of names and strings", field="env")
            return {}
        good: dict[str, str] = {}
        for name, value in env.items():
            if len(good) < keys.VARIABLES_MOST and keys.variable(name, value):
                good[name] = value
            else:
                most = f"{keys.VARIABLES_MOST} names at most, each a string of up to {keys.VARIABLE_MOST:,} characters"
                self.problem(
                    f"is {describe_json(value)}, expected a string ({most}): ignored",
                    field=f"env.{describe_name(name)}",
                )
        return good

    def look_around(self, value: Mapping[str, Any]) -> None:
        """Mistakes outside of what we read."""
        for name in value:
            if name in EVENTS:
                self.problem(
                    "stands at the top of the file, so its hooks never run",
                    event=name,
                    hint=f'put it inside "hooks": {{"{name}": […]}}',
                )
            elif name not in keys.FILE and self.family != "claude":
                ours = self.family == "turngate" and name in keys.TURNGATE
                hint = f'put it inside "turngate": {{"{name}": …}}' if ours else None
                if keys.likely(name, keys.FILE) == "hooks":
                    said = "is no key that Turngate knows, so its hooks never run"
                    self.problem(said, field=describe_name(name), hint='did you mean "hooks"?')
                else:
                    self.unknown_key(name, keys.FILE, field=describe_name(name), hint=hint)
            elif self.family == "claude" and voids_claude_file(name, value[name]):
                said = "Claude Code would ignore this whole file, hooks included; Turngate does not"
                self.problem(f"is {describe_json(value[name])}: {said}", "warning", field=name)

    def unknown_key(self, name: str, known: Iterable[str], *, hint: str | None = None, **at: Any) -> None:
        """A key for somebody else is none of our business; one that is nearly ours is a mistake."""
        meant = keys.likely(name, known)
        hint = hint or (f'did you mean "{meant}"?' if meant else None)
        said = "is no key that Turngate knows: ignored"
        self.problem(said, "warning" if hint else "note", hint=hint, **at)

    def problem(
        self,
        message: str,
        severity: Severity = "error",
        *,
        event: str | None = None,
        index: str | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.problems.append(
            Problem(
                file=self.file,
                message=message,
                severity=severity,
                event=event,
                index=index,
                field=field,
                hint=hint,
            )
        )


def _removes(entry: dict[str, Any]) -> bool:
    """An entry that says nothing but `{"id": …, "enabled": false}` takes an earlier one away (C-09)."""
    return "type" not in entry and entry.get("enabled") is False and keys.text(entry.get("id"))


def _asks_a_model(entry: Any) -> bool:
    hook = SETTINGS_KINDS.get(str(entry.get("type"))) if isinstance(entry, dict) else None
    return hook is not None and hook.asks_model


_GROUP_HINT = 'a group looks like {"hooks": [{"type": "command", "command": "…"}]}'
