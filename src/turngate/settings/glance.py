"""One quick look, before anything heavy is loaded: is there anything to ask at this event?"""

import json
import os

from turngate.core.names import EVENTS
from turngate.settings.places import script_places, settings_places


def nothing_to_ask(project: str, event: str, dialect: str, home: str | None = None) -> bool:
    """True only when it is certain; whatever looks odd is for the real reader, which reports it."""
    if any(os.path.lexists(place.path) for name, place in script_places(project, dialect) if name == event):
        return False
    return all(
        _silent(place.path, event)
        for place in settings_places(project, dialect, home)
        if os.path.lexists(place.path)
    )


def _silent(path: str, event: str) -> bool:
    """Is this a sound settings file with no hook for the event?"""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read().removeprefix(b"\xef\xbb\xbf") or b"{}", parse_constant=_odd)
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or EVENTS.keys() & value.keys():
        return False
    hooks = value.get("hooks", {})
    return isinstance(hooks, dict) and hooks.keys() <= EVENTS.keys() and hooks.get(event, []) == []


def _odd(name: str) -> None:
    raise ValueError(name)
