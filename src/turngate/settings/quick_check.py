"""One quick look, before anything heavy is loaded: is there anything to ask at this event?"""

import json
import os

from turngate.core.constants import EVENTS, voids_claude_file
from turngate.settings.paths import (
    NotARegularFile,
    Place,
    TooLarge,
    read_bytes,
    script_places,
    settings_places,
)

SMALL = 1024 * 1024  # bytes; what is larger is read by the real reader


def has_no_hooks(project: str, event: str, dialect: str, home: str | None = None) -> bool:
    """True only when it is certain; whatever looks odd is for the real reader, which reports it."""
    scripts = [place for name, place in script_places(project, dialect) if name == event]
    files = settings_places(project, dialect, home)
    return all(_absent(place) for place in scripts) and all(_silent(place, event, dialect) for place in files)


def _absent(place: Place) -> bool:
    try:
        os.lstat(place.path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # it may well be there
        return False
    return False


def _silent(place: Place, event: str, dialect: str) -> bool:
    """Is this no file, or a sound one without a hook for the event?"""
    if _absent(place):
        return True
    try:
        text = read_bytes(place.path, SMALL).decode("utf-8-sig")
        value = json.loads(text, parse_constant=_odd, object_pairs_hook=_object) if text.strip() else {}
    except (OSError, NotARegularFile, TooLarge, ValueError, RecursionError):
        return False
    return (
        isinstance(value, dict)
        and _no_hooks(value, event, dialect)
        and _nothing_to_report(value, place.family)
    )


def _no_hooks(value: dict[str, object], event: str, dialect: str) -> bool:
    hooks = value.get("hooks", {})
    if not isinstance(hooks, dict) or not hooks.keys() <= EVENTS.keys() or hooks.get(event, []) != []:
        return False
    # In that dialect, another event's hook can take the whole file with it.
    return dialect != "claude" or hooks == {}


def _nothing_to_report(value: dict[str, object], family: str) -> bool:
    """Only what every sound file may hold; a Claude Code file may hold more, which is not ours to judge."""
    ours = {"hooks", "disableAllHooks", "env", "$schema"}
    if EVENTS.keys() & value.keys() or (family != "claude" and not value.keys() <= ours):
        return False
    if (
        value.get("turngate", {}) != {}
        or "agents" in value
        or not isinstance(value.get("disableAllHooks"), bool | None)
    ):
        return False
    return _plain_variables(value.get("env", {})) and not any(
        voids_claude_file(name, value[name]) for name in value
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


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice")
    return value


def _odd(name: str) -> None:
    raise ValueError(name)
