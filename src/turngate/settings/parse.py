"""Reads the JSON of one settings file into a layer of rules and values; an invalid part is left out and reported."""

import errno
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from turngate.core.constants import EVENTS, FOREIGN_EVENTS, MANAGED, TEAM_EVENTS, reject_constant
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.hooks.kinds import CLEAN, MAX_TIMEOUT_S, SETTINGS_KINDS, CommandHook, GateHook, Hook
from turngate.core.hooks.matcher import InvalidMatcher, read_matcher
from turngate.core.settings import Layer, Rule
from turngate.core.text import COMMENT, describe_json, describe_name, describe_syntax_error
from turngate.project.files import LOCAL, Files
from turngate.settings import key_table as keys
from turngate.settings.key_table import (
    MAX_VARIABLE_CHARS,
    MAX_VARIABLES,
    Key,
    ValueType,
    describe_invalid,
    is_text,
    is_variable,
    wrong_claude_setting,
)
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.settings.problem_log import ProblemLog, did_you_mean

MAX_FILE_BYTES = 4 * 1024 * 1024


class JsonFile(NamedTuple):
    value: Any
    duplicates: list[str]  # the keys that occur twice in one object


_COMMENT_HINT = 'remove it, or write it as a key that begins with _ or //: "_comment": "…"'


class UnreadableFile(Exception):
    """Raised for a file whose value cannot be read; the message says why."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def read_json(path: str, files: Files) -> JsonFile:
    """Return the value of a file, an object without keys if it is empty. Raises UnreadableFile or FileNotFoundError."""
    return parse_json(read_utf8(path, files).removeprefix("\ufeff"))


def read_utf8(path: str, files: Files = LOCAL, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return the text of a file, with its byte order mark. Raises UnreadableFile or FileNotFoundError."""
    try:
        return read_bytes(path, max_bytes, files).decode()
    except NotARegularFile as error:
        raise UnreadableFile(str(error), error.hint) from None
    except FileTooLarge:
        raise UnreadableFile(f"is larger than {max_bytes // 1024 // 1024} MiB") from None
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from None
    except (FileNotFoundError, NotADirectoryError):
        if files.islink(path):
            raise UnreadableFile("is a link to a file that does not exist") from None
        raise FileNotFoundError from None
    except OSError as error:
        message, hint = f"cannot be read: {error.strerror}", None
        if error.errno == errno.ELOOP:
            message = "is a link that leads back to itself, or through too many links"
            hint = "repair the link, or remove it"
        elif isinstance(error, PermissionError):
            hint = "check its permissions"
        raise UnreadableFile(message, hint) from None


def parse_json(text: str) -> JsonFile:
    """Return the value of a text. Raises UnreadableFile."""
    duplicates: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            duplicates.update(dict.fromkeys(name for name, count in counts.items() if count > 1))
        return value

    try:
        given = text if text.strip() else "{}"
        value = json.loads(given, parse_constant=reject_constant, object_pairs_hook=collect)
        return JsonFile(value, list(duplicates))
    except json.JSONDecodeError as error:
        message = describe_syntax_error(text, error)
        raise UnreadableFile(message, _COMMENT_HINT if message.endswith(COMMENT) else None) from None
    except RecursionError:
        raise UnreadableFile("not readable: it is nested too deeply") from None
    except ValueError as error:
        raise UnreadableFile(f"not JSON: {error}") from None


# The layer


def parse_layer(value: Any, *, file: str, level: str, family: str, dialect: Dialect) -> Layer:
    """Return the layer of any JSON value. Problems are reported in it, never raised."""
    log = ProblemLog(file)
    if not isinstance(value, dict):
        log.add(
            f"the file holds {describe_json(value)}, expected an object", hint='begin with {"hooks": {…}}'
        )
        value = {}
    hooks = HooksParser(log, level, family, dialect)
    hooks.parse(value.get("hooks", {}))
    voided = hooks.guard_lost and dialect.unloadable_guard_voids_file
    if voided:
        log.add(
            "a PreToolUse or PermissionRequest hook is invalid, so in this dialect no hook of the file runs"
        )
    disable_all = value.get("disableAllHooks")
    if not isinstance(disable_all, bool | None):
        log.add(f"is {describe_json(disable_all)}, expected true or false", "disableAllHooks")
        disable_all = None
    scalars = {
        **_parse_section(value.get("turngate", {}), log),
        **_parse_steer_restarts(value, log),
        **_parse_restrictions(value, log),
    }
    env = _parse_env(value.get("env", {}), log)
    _check_file_keys(value, family, log)
    return Layer(
        file=file,
        level=level,
        family=family,
        rules=() if voided else tuple(hooks.rules),
        disable_all=disable_all,
        managed_only=_parse_managed_only(value.get("allowManagedHooksOnly"), level, log),
        env=env,
        scalars=scalars,
        problems=log.problems,
    )


def _parse_managed_only(value: Any, level: str, log: ProblemLog) -> bool:
    """Return whether only managed hooks run. An invalid value counts as true: it is a restriction."""
    if level != MANAGED or value is None or isinstance(value, bool):
        return level == MANAGED and value is True
    log.add(f"is {describe_json(value)}, expected true or false: taken as true", "allowManagedHooksOnly")
    return True


def _parse_restrictions(value: Mapping[str, Any], log: ProblemLog) -> dict[str, Any]:
    """Return the lists that restrict http hooks. An invalid list allows nothing, as an empty one."""
    restrictions: dict[str, Any] = {}
    for name, row in keys.RESTRICTIONS.items():
        if name not in value:
            continue
        if row.type.is_valid(value[name]):
            restrictions[row.field] = tuple(value[name])
        else:
            restrictions[row.field] = ()
            invalid = describe_invalid(value[name], row.type)
            log.add(f"is {invalid}, expected {row.type.expected}: it allows nothing", name)
    return restrictions


def _parse_section(section: Any, log: ProblemLog) -> dict[str, Any]:
    if not isinstance(section, dict):
        log.add(f"is {describe_json(section)}, expected an object", "turngate")
        return {}
    scalars: dict[str, Any] = {}
    for name, value in section.items():
        row, field = keys.TURNGATE_KEYS.get(name), f"turngate.{describe_name(name)}"
        if row is None:
            if not keys.is_comment(name):
                log.add_unknown_key(name, keys.TURNGATE_KEYS, field)
        elif row.type.per_event is not None and type(value) is dict:
            if by_event := _parse_per_event(value, row.type.per_event, field, log):
                scalars[row.field] = by_event
        elif row.type.is_valid(value):
            converted = value if row.type.convert is None else row.type.convert(value)
            if row.merge == "owners":  # `env` and `passEnv` are one list
                converted = scalars.get(row.field, ()) + converted
            scalars[row.field] = converted
            if row.field in ("stop_budget", "timeouts"):
                log.add_milliseconds(value, field)
        else:
            invalid = describe_invalid(value, row.type)
            log.add(f"is {invalid}, expected {row.type.expected}: ignored", field)
    return scalars


def _parse_per_event(
    values: Mapping[str, Any], one: ValueType, field: str, log: ProblemLog
) -> dict[str, Any]:
    """Check each event's value by itself, so that an invalid one does not discard the others."""
    valid: dict[str, Any] = {}
    for event, value in values.items():
        name = f"{field}.{describe_name(event)}"
        if keys.is_comment(event):
            continue
        if event not in EVENTS:
            log.add(f"is not a known event, expected one of {', '.join(EVENTS)}: ignored", name)
        elif not one.is_valid(value):
            log.add(f"is {describe_json(value)}, expected {one.expected}: ignored", name)
        else:
            valid[event] = one.convert(value) if one.convert else value
    return valid


def _parse_steer_restarts(value: Any, log: ProblemLog) -> dict[str, Any]:
    row, path = keys.STEER_RESTARTS, keys.STEER_RESTARTS_PATH
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return {}
    if not row.type.is_valid(value):
        log.add(f"is {describe_json(value)}, expected {row.type.expected}: ignored", ".".join(path))
        return {}
    return {row.field: value}


def _parse_env(env: Any, log: ProblemLog) -> dict[str, str]:
    if not isinstance(env, dict):
        hint = f'put it inside "turngate": {{"env": "{CLEAN}"}}' if env == CLEAN else None
        log.add(f"is {describe_json(env)}, expected an object of names and strings", "env", hint)
        return {}
    valid: dict[str, str] = {}
    limits = f"at most {MAX_VARIABLES} names, each with up to {MAX_VARIABLE_CHARS:,} characters"
    for name, value in env.items():
        if len(valid) < MAX_VARIABLES and is_variable(name, value):
            valid[name] = value
        elif not keys.is_comment(name):
            field = f"env.{describe_name(name)}"
            log.add(f"is {describe_json(value)}, expected a string ({limits}): ignored", field)
    return valid


def _check_file_keys(value: Mapping[str, Any], family: str, log: ProblemLog) -> None:
    for name in value:
        if name in EVENTS:
            log.event, hint = name, f'put it inside "hooks": {{"{name}": […]}}'
            log.add("is at the top of the file, so its hooks never run", hint=hint)
            log.event = ""
        elif family == "claude" and (wrong := wrong_claude_setting(name, value[name])):
            effect = "Claude Code ignores this whole file, hooks included; Turngate does not"
            log.add(f"is {describe_json(wrong[1])}: {effect}", wrong[0], severity="warning")
        elif family == "claude":
            if name == "enabledPlugins" and any(value[name].values()):
                hint = "name their folders with --plugin-dir or `pluginDirs`"
                log.add("hooks of installed plugins do not run here", name, hint, severity="note")
        elif name not in keys.FILE_KEYS and not keys.is_comment(name):
            _add_unknown_file_key(name, family, log)


def _add_unknown_file_key(name: str, family: str, log: ProblemLog) -> None:
    field = describe_name(name)
    if not log.is_full and keys.closest_name(name, keys.FILE_KEYS) == "hooks":
        return log.add(
            "is not a key that Turngate knows, so its hooks never run", field, 'did you mean "hooks"?'
        )
    misplaced = family == "turngate" and name in keys.TURNGATE_KEYS
    hint = f'put it inside "turngate": {{"{name}": …}}' if misplaced else None
    return log.add_unknown_key(name, keys.FILE_KEYS, field, hint)


# The hooks


class RejectedKey(NamedTuple):
    """A key that is unknown (`row` is None), belongs to other hook kinds, or has an invalid value."""

    name: str
    value: Any
    row: Key | None


def hook_from_json(
    entry: Mapping[str, Any], hook: type[Hook], rows: Mapping[str, Key]
) -> tuple[dict[str, Any], list[RejectedKey]]:
    """Return the constructor arguments for a hook, and the keys that did not become one."""
    fields: dict[str, Any] = {}
    rejected: list[RejectedKey] = []
    kind = hook.kind
    for name, value in entry.items():
        if name == "type":
            continue
        row = rows.get(name)
        if row is not None and kind in row.kinds and row.type.is_valid(value):
            fields[row.field] = value if row.type.convert is None else row.type.convert(value)
        else:
            rejected.append(RejectedKey(name, value, row))
    return fields, rejected


def describe_bad_type(
    entry: Mapping[str, Any], kinds: Mapping[str, type[Hook]], describe: Callable[[Any], str]
) -> tuple[str, str | None]:
    """Return message and hint for an entry whose `type` is missing or not one of these kinds."""
    expected = "expected one of " + ", ".join(f'"{kind}"' for kind in kinds)
    if "type" not in entry:
        bodies = ((kind, "gate" if kind == "gate" else hook.body) for kind, hook in kinds.items())
        kind = next((kind for kind, body in bodies if body in entry), "command")
        return f"is missing, {expected}", f'add "type": "{kind}"'
    value = entry["type"]
    kind = value.lower() if isinstance(value, str) else ""
    return f"is {describe(value)}, {expected}", did_you_mean(kind if kind in kinds else None)


MAX_HOOKS = 2000  # of one file; as many groups, whose matchers are compiled
MAX_COMPARED_KEYS = 50  # of a hook without a body, with the name that was probably meant
_TOOL_GUARDS = ("PreToolUse", "PermissionRequest")
_GROUP_KEYS = ("matcher", "hooks")
_GROUP_HINT = 'a group looks like {"hooks": [{"type": "command", "command": "…"}]}'


class _TooManyHooks(Exception):
    """Raised when the limit for one file is reached; the rest of the file is not read."""


class HooksParser:
    """Collects the rules of one file. `guard_lost` is set when a hook that guards a tool was left out."""

    def __init__(self, log: ProblemLog, level: str, family: str, dialect: Dialect = TURNGATE) -> None:
        self.log, self.level, self.family, self.dialect = log, level, family, dialect
        self.rules: list[Rule] = []
        self.guard_lost = False
        self._ids: set[tuple[str, str | None]] = set()
        self._groups = self._hooks = 0

    def parse(self, hooks: Any) -> None:
        if isinstance(hooks, dict):
            try:
                for event, groups in hooks.items():
                    self.log.event = event
                    self._parse_event(event, groups)
                    self.log.set_position()
            except _TooManyHooks:
                self.log.set_position()
                self.log.add(f"has over {MAX_HOOKS:,} hooks or groups: the others are left out", "hooks")
        elif hooks is not None:
            self.log.add(f"is {describe_json(hooks)}, expected an object of events", "hooks")

    def _parse_event(self, event: str, groups: Any) -> None:
        if event not in EVENTS or (event in TEAM_EVENTS and self.family == "claude"):
            if not keys.is_comment(event):
                self._add_unknown_event(event)
        elif not isinstance(groups, list):
            self._lose(f"is {describe_json(groups)}, expected a list of groups", hint=_GROUP_HINT)
        else:
            for number, group in enumerate(groups):
                self.log.set_position(event, f"[{number}]")
                self._parse_group(group)

    def _add_unknown_event(self, event: str) -> None:
        if event in FOREIGN_EVENTS or event in TEAM_EVENTS:
            message = "is an event that Turngate does not fire, so its hooks never run here"
            return self.log.add(message, severity="note")
        closest = None if self.log.is_full else keys.closest_event(event)
        hint = did_you_mean(closest) or f"known events: {', '.join(EVENTS)}"
        self.log.event = describe_name(event)
        return self.log.add("is not a known event, so its hooks never run", hint=hint, severity="warning")

    def _lose(self, message: str, field: str | None = None, hint: str | None = None) -> None:
        """Report something because of which hooks are left out."""
        self.guard_lost |= self.log.event in _TOOL_GUARDS
        self.log.add(message, field, hint)

    def _parse_group(self, group: Any) -> None:
        self._groups += 1
        if self._groups > MAX_HOOKS:
            raise _TooManyHooks
        if not isinstance(group, dict):
            return self._lose(f"is {describe_json(group)}, expected an object", hint=_GROUP_HINT)
        entries, matcher = group.get("hooks"), group.get("matcher")
        if "hooks" not in group and "type" in group:
            return self._lose("is a hook, expected a group with an inner `hooks` list", hint=_GROUP_HINT)
        if not isinstance(entries, list):
            value = describe_json(entries) if "hooks" in group else "missing"
            return self._lose(f"is {value}, expected a list of hooks", "hooks", _GROUP_HINT)
        if not isinstance(matcher, str | None):
            message = f"is {describe_json(matcher)}, expected a string: the group is left out"
            return self._lose(message, "matcher")
        if matcher and matcher not in ("*", ".*"):
            self._check_matcher(matcher)
        self._check_group_keys(group)
        index = self.log.index
        for number, entry in enumerate(entries):
            self.log.index = f"{index}.hooks[{number}]"
            self._parse_entry(entry, matcher)
        return None

    def _check_group_keys(self, group: dict[str, Any]) -> None:
        for name in group:
            if name in _GROUP_KEYS or name in keys.FOREIGN_HOOK_KEYS or keys.is_comment(name):
                continue
            field = describe_name(name)
            if name in keys.HOOK_KEYS:
                message = "is a key of a hook, not of a group: ignored"
                self.log.add(message, field, "move it into the hooks of the group", severity="warning")
            else:
                self.log.add_unknown_key(name, _GROUP_KEYS, field)

    def _check_matcher(self, matcher: str) -> None:
        """Report a matcher that has no effect or never matches."""
        event = self.log.event
        if EVENTS[event] is None:
            message = f"is {matcher!r}, which has no effect on {event}: the hooks run at every {event}"
            self.log.add(message, "matcher", "remove the matcher", severity="warning")
        elif isinstance(parsed := read_matcher(matcher), InvalidMatcher):
            message = f"is {describe_name(repr(matcher))}, which {parsed.why}, so it never matches"
            self.log.add(message, "matcher")

    def _parse_entry(self, entry: Any, matcher: str | None) -> None:
        self._hooks += 1
        if self._hooks > MAX_HOOKS:
            raise _TooManyHooks
        if type(entry) is not dict:
            return self._lose(f"is {describe_json(entry)}, expected an object")
        self.log.hook = entry["id"] if "id" in entry and is_text(entry["id"]) else None
        self._parse_hook(entry, matcher)
        self.log.hook = None
        return None

    def _parse_hook(self, entry: dict[str, Any], matcher: str | None) -> None:
        kind = entry.get("type")
        hook: Hook | None
        if type(kind) is str and kind in SETTINGS_KINDS:
            of_kind = SETTINGS_KINDS[kind]
            hook = self._build_hook(entry, of_kind) if self._can_use_kind(of_kind) else None
        elif kind == "mcp_tool":
            message = 'is "mcp_tool", which Turngate does not run: the hook is left out'
            return self.log.add(message, "type", "use a command hook that calls the server")
        elif "type" not in entry and entry.get("enabled") is False and is_text(entry.get("id")):
            # It removes an earlier hook with that id (C-09).
            hook = CommandHook("", id=entry["id"], enabled=False)
        else:
            message, hint = describe_bad_type(entry, SETTINGS_KINDS, describe_json)
            return self._lose(message, "type", hint)
        if hook is not None:
            log = self.log
            if hook.id is not None and (log.event, hook.id) in self._ids:
                shown = describe_name(hook.id)
                message = f"is {shown!r}, which occurs twice in this file: the last one is used"
                log.add(message, "id", severity="warning")
            self._ids.add((log.event, hook.id))
            self.rules.append(Rule(log.event, hook, matcher, self.level, log.file, self.family, log.index))
        return None

    def _can_use_kind(self, hook: type[Hook]) -> bool:
        """Report a kind that Claude Code ignores in its own file; return False if its dialect leaves the hook out."""
        if hook.in_claude_code or self.family != "claude":
            return True
        message = f'is "{hook.kind}", which Claude Code does not know'
        hint = f"use a command hook{' with `turngate gate`' if hook is GateHook else ''}"
        if self.dialect.is_claude_code:
            self._lose(f"{message}: the hook is left out", "type", hint)
            return False
        message = f"{message}: only Turngate runs the hook"
        self.log.add(message, "type", f"move it to .turngate/, or {hint}", severity="warning")
        return True

    def _build_hook(self, entry: dict[str, Any], hook: type[Hook]) -> Hook | None:
        """Return the hook, or None when it cannot be used."""
        fields, rejected = hook_from_json(entry, hook, keys.HOOK_KEYS)
        has_body = hook.body in entry or (hook is GateHook and "gate" in entry)
        misnamed = None if has_body else _misnamed_body(rejected, hook.body)
        usable = not [key for key in rejected if key is not misnamed and not self._keeps_hook(key, hook)]
        if misnamed:
            message = f'is not a key that Turngate knows, and "{hook.body}" is missing: the hook is left out'
            self.log.add(message, describe_name(misnamed.name), did_you_mean(hook.body))
            usable = False
        elif usable and hook.needs_body and hook.body not in fields:
            self.log.add(f"is missing, expected {keys.HOOK_KEYS[hook.body].type.expected}", hook.body)
            usable = False
        if hook.only_on is not None and self.log.event not in hook.only_on:
            message = f'is "{hook.kind}", but {hook.kind} hooks run only on {", ".join(hook.only_on)}'
            self.log.add(message, "type", "use a command hook here")
            usable = False
        elif not usable:
            self.guard_lost |= self.log.event in _TOOL_GUARDS
        if "timeout" in fields:
            self.log.add_milliseconds(fields["timeout"], "timeout")
        if not usable:
            return None
        made = hook(**fields)
        return self._check_gate(made) if isinstance(made, GateHook) else made

    def _check_gate(self, hook: GateHook) -> Hook | None:
        """Report what is wrong with the options of a gate; such a gate is left out."""
        # lazy: the gates, which few settings have
        from turngate.gates.arguments import GateCall, read_gate_hook  # noqa: PLC0415

        read = read_gate_hook(hook)
        if isinstance(read, GateCall):
            return hook
        for field, message, hint in read:
            self.log.add(f"{message}: the hook is left out", describe_name(field), hint)
        return None

    def _keeps_hook(self, rejected: RejectedKey, hook: type[Hook]) -> bool:
        """Report one key, and return whether the hook can be used without it."""
        name, value, row = rejected
        field = describe_name(name)
        if row is None:
            if name not in keys.FOREIGN_HOOK_KEYS and not keys.is_comment(name):
                self.log.add_unknown_key(name, keys.HOOK_KEYS, field)
            return True
        if hook.kind not in row.kinds:
            self.log.add(f"has no effect on {hook.kind} hooks: ignored", field, severity="warning")
            return True
        is_large = name == "timeout" and type(value) in (int, float) and value > MAX_TIMEOUT_S
        expected = f"at most {MAX_TIMEOUT_S:,} seconds" if is_large else row.type.expected
        message = f"is {describe_invalid(value, row.type)}, expected {expected}"
        # Claude Code drops a hook whose shell it does not know (measured).
        if not row.drops_hook and (name != "shell" or self.dialect.honors_shell):
            self.log.add(f"{message}: ignored", field, severity="warning")
            return True
        hint = _number_hint(value) if name == "timeout" and isinstance(value, str) else None
        self.log.add(f"{message}: the hook is left out", field, hint)
        return False


def _misnamed_body(rejected: Sequence[RejectedKey], body: str) -> RejectedKey | None:
    """Return the key that probably holds what belongs under `body`: `cmd` for `command`."""
    unknown = [key for key in rejected[:MAX_COMPARED_KEYS] if key.row is None and is_text(key.value)]
    close = keys.closest_name(body, [key.name for key in unknown], 0.5)
    return next((key for key in unknown if key.name == close), None)


def _number_hint(text: str) -> str:
    """Return how to write a text such as "10", "10s" or "1.5 s" as a number of seconds."""
    number = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:s|sec|seconds?)?\s*", text)
    return f'write {number[1]}, not "{text}"' if number else "write a number of seconds, such as 30"
