"""Checks whether an event has no hooks, before the modules that can run hooks are loaded."""

import os

from turngate.core.constants import EVENTS, STOP_OF_START, wrong_claude_setting
from turngate.filesystem.real_path import real_path
from turngate.settings.paths import (
    FileTooLarge,
    NotARegularFile,
    SettingsFile,
    read_bytes,
    read_local_bytes,
    script_files,
    settings_files,
)
from turngate.state.paths import state_folder

MAX_QUICK_BYTES = 1024 * 1024  # a larger file is left to load_settings


def has_no_hooks(project: str, event: str, dialect: str, home: str | None = None) -> bool:
    """Return True only if it is certain. Everything unusual is left to load_settings, which reports it."""
    scripts = [script for name, script in script_files(project, dialect) if name == event]
    files = settings_files(project, dialect, home)
    if not all(map(_is_absent, scripts)) or not all(_has_none(file, event, dialect) for file in files):
        return False
    return not _was_approved(project, event)


def other_events(project: str, event: str, dialect: str, home: str | None = None) -> list[str]:
    """Return the other events that have hooks, where `has_no_hooks` found none for this one."""
    found = {name for name, script in script_files(project, dialect) if not _is_absent(script)}
    for file in settings_files(project, dialect, home):
        value = {} if _is_absent(file) else _read(file)
        hooks = value.get("hooks") if isinstance(value, dict) else None
        found |= {name for name, groups in hooks.items() if groups} if isinstance(hooks, dict) else set()
    return [name for name in EVENTS if name in found and name != event]


def _was_approved(project: str, event: str) -> bool:
    """Return whether a hook of the project was approved for the event: it is gone, which is reported."""
    state = state_folder()
    if not os.path.isdir(os.path.join(state, "trust", "projects")):
        return False
    from turngate.state.paths import approvals_path  # noqa: PLC0415 # lazy: it loads hashlib and re

    try:
        content = read_local_bytes(approvals_path(state, real_path(project)), MAX_QUICK_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, NotARegularFile, FileTooLarge):
        return True
    return f'{{\\"event\\":\\"{event}\\"'.encode() in content


def _is_absent(file: SettingsFile) -> bool:
    try:
        os.lstat(file.path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # it may exist
        return False
    return False


def _has_none(file: SettingsFile, event: str, dialect: str) -> bool:
    """Return whether the file does not exist, or is valid and has no hook for the event."""
    if _is_absent(file):
        return True
    value = _read(file)
    return (
        isinstance(value, dict)
        and _has_no_hooks(value, event, dialect)
        and _has_no_problems(value, file.family)
    )


def _read(file: SettingsFile) -> object:
    """Return the value of a file, or None if it is not valid."""
    import json  # noqa: PLC0415 # lazy: it loads re, and many projects have no settings file

    try:
        text = read_bytes(file.path, MAX_QUICK_BYTES).decode("utf-8-sig")
        if not text.strip():
            return {}
        return json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_reject_duplicates)
    except (OSError, NotARegularFile, FileTooLarge, ValueError, RecursionError):
        return None


def _has_no_hooks(value: dict[str, object], event: str, dialect: str) -> bool:
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict) or not hooks.keys() <= EVENTS.keys() or hooks.get(event, []) != []:
        return False
    if event in STOP_OF_START and _has_gate(hooks.get(STOP_OF_START[event])):
        return False  # a gate may record what is there at the start
    # In the claude dialect an invalid hook of another event disables the whole file, so all of them are read.
    return dialect != "claude" or hooks == {}


def _has_gate(groups: object) -> bool:
    """Return whether a value of any shape holds a hook of the kind `gate`."""
    parts = [groups]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if part.get("type") == "gate":
                return True
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return False


# load_settings checks the values of these keys.
_REPORTED_KEYS = ("agents", "allowedHttpHookUrls", "httpHookAllowedEnvVars")


def _has_no_problems(value: dict[str, object], family: str) -> bool:
    """Return whether load_settings has nothing to report. Files of Claude Code may hold any other key."""
    plain_keys = {"hooks", "disableAllHooks", "env", "$schema"}
    if EVENTS.keys() & value.keys() or (family != "claude" and not value.keys() <= plain_keys):
        return False
    if (
        value.get("turngate", {}) != {}
        or not value.keys().isdisjoint(_REPORTED_KEYS)
        or not isinstance(value.get("disableAllHooks"), bool | None)
    ):
        return False
    return _plain_variables(value.get("env", {})) and not any(
        wrong_claude_setting(name, value[name]) for name in value
    )


def _plain_variables(env: object) -> bool:
    return isinstance(env, dict) and len(env) <= 100 and all(map(_plain_variable, env.items()))


def _plain_variable(item: tuple[str, object]) -> bool:
    name, value = item
    return (
        name.isidentifier()
        and isinstance(value, str)
        and f"{name}{value}".isascii()
        and len(value) < 1000
        and "\0" not in value
    )


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key occurs twice")
    return value


def _reject_constant(name: str) -> None:
    raise ValueError(name)
