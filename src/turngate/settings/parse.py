"""Reads the JSON of one settings file into a layer; an invalid part is left out and reported."""

from collections.abc import Mapping
from typing import Any

from turngate.core.constants import EVENTS, MANAGED
from turngate.core.dialect import Dialect
from turngate.core.hooks.kinds import CLEAN
from turngate.core.settings import Layer
from turngate.core.text import describe_json, describe_name
from turngate.settings import key_table as keys
from turngate.settings.parse_hooks import HooksParser
from turngate.settings.problem_log import ProblemLog
from turngate.settings.value_types import (
    MAX_VARIABLE_CHARS,
    MAX_VARIABLES,
    ValueType,
    describe_invalid,
    is_variable,
    wrong_claude_setting,
)


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
        if row.is_valid(value[name]):
            restrictions[row.field] = tuple(value[name])
        else:
            restrictions[row.field] = ()
            invalid = describe_invalid(value[name], row.is_valid, row.expected)
            log.add(f"is {invalid}, expected {row.expected}: it allows nothing", name)
    return restrictions


def _parse_section(section: Any, log: ProblemLog) -> dict[str, Any]:
    """Return the values of the `turngate` section by field of `Settings`."""
    if not isinstance(section, dict):
        log.add(f"is {describe_json(section)}, expected an object", "turngate")
        return {}
    scalars: dict[str, Any] = {}
    for name, value in section.items():
        row, field = keys.TURNGATE_KEYS.get(name), f"turngate.{describe_name(name)}"
        if row is None:
            if not keys.is_comment(name):
                log.add_unknown_key(name, keys.TURNGATE_KEYS, field)
        elif row.per_event is not None and type(value) is dict:
            if by_event := _parse_per_event(value, row.per_event, field, log):
                scalars[row.field] = by_event
        elif row.is_valid(value):
            converted = value if row.convert is None else row.convert(value)
            if row.merge == "owners":  # `env` and `passEnv` are one list
                converted = scalars.get(row.field, ()) + converted
            scalars[row.field] = converted
            if row.field in ("stop_budget", "timeouts"):
                log.add_milliseconds(value, field)
        else:
            invalid = describe_invalid(value, row.is_valid, row.expected)
            log.add(f"is {invalid}, expected {row.expected}: ignored", field)
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
    if not row.is_valid(value):
        log.add(f"is {describe_json(value)}, expected {row.expected}: ignored", ".".join(path))
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
    """Report mistakes in the keys at the top of the file."""
    for name in value:
        if name in EVENTS:
            log.event, hint = name, f'put it inside "hooks": {{"{name}": […]}}'
            log.add("is at the top of the file, so its hooks never run", hint=hint)
            log.event = ""
        elif family == "claude":
            _check_claude_key(name, value[name], log)
        elif name not in keys.FILE_KEYS and not keys.is_comment(name):
            _add_unknown_file_key(name, family, log)


def _check_claude_key(name: str, value: Any, log: ProblemLog) -> None:
    if wrong := wrong_claude_setting(name, value):
        part, found = wrong
        effect = "Claude Code ignores this whole file, hooks included; Turngate does not"
        log.add(f"is {describe_json(found)}: {effect}", part, severity="warning")
    elif name == "enabledPlugins" and any(value.values()):
        hint = "name their folders with --plugin-dir or `pluginDirs`"
        log.add("hooks of installed plugins do not run here", name, hint, severity="note")


def _add_unknown_file_key(name: str, family: str, log: ProblemLog) -> None:
    field = describe_name(name)
    if not log.is_full and keys.closest_name(name, keys.FILE_KEYS) == "hooks":
        return log.add(
            "is not a key that Turngate knows, so its hooks never run", field, 'did you mean "hooks"?'
        )
    misplaced = family == "turngate" and name in keys.TURNGATE_KEYS
    hint = f'put it inside "turngate": {{"{name}": …}}' if misplaced else None
    return log.add_unknown_key(name, keys.FILE_KEYS, field, hint)
