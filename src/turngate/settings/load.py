"""Loads the settings of a project: every file of the dialect's families, and the script hooks beside them."""

import json
import os
from dataclasses import replace
from typing import Any

from turngate.core.constants import EVENTS
from turngate.core.dialect import DIALECTS, Dialect
from turngate.core.settings import Layer, Problem, Settings, merge
from turngate.errors import UsageError
from turngate.settings import keys
from turngate.settings.parse import parse_layer
from turngate.settings.paths import NotARegularFile, Place, TooLarge, read_bytes, settings_places
from turngate.settings.script_hooks import script_layers

MOST = 16 * 1024 * 1024  # bytes of one settings file


def load_settings(project: str = ".", *, dialect: str = "turngate", home: str | None = None) -> Settings:
    """Reads and merges. A bad file takes nothing else down; what is wrong stands in `problems`."""
    if dialect not in DIALECTS:
        raise UsageError(f"there is no dialect {dialect!r}; there are {', '.join(DIALECTS)}")
    chosen, project = DIALECTS[dialect], os.path.abspath(project)
    layers = [load_file(place, chosen) for place in settings_places(project, dialect, home)]
    return merge(
        [*(layer for layer in layers if layer), *script_layers(project, dialect)], keys.MERGE_RULES, chosen
    )


def lost(settings: Settings, *events: str) -> bool:
    """Was something thrown away, or written wrong, that was meant for one of these events?"""
    return any(
        problem.event is None or problem.event in events or keys.closest_event(problem.event) in events
        for problem in settings.not_loaded
    )


def load_file(place: Place, dialect: Dialect) -> Layer | None:
    """What one file says; None when it is not there."""
    try:
        text = _read(place.path)
    except FileNotFoundError:
        return None
    except _Unreadable as error:
        return _bad(place, str(error), error.hint)
    try:
        value = json.loads(text, parse_constant=_no_constant) if text.strip() else {}
        twice = _keys_twice(text)
    except json.JSONDecodeError as error:
        return _bad(place, _diagnosis(text, error))
    except RecursionError:
        return _bad(place, "not readable: it is nested too deeply")
    except ValueError as error:
        return _bad(place, f"not JSON: {error}")
    layer = parse_layer(value, file=place.shown, level=place.level, family=place.family, dialect=dialect)
    return replace(layer, problems=_not_too_many((*layer.problems, *(_twice(place, key) for key in twice))))


PROBLEMS_MOST = 200  # of one file: who has more has one


def _not_too_many(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The first ones, and how many more there are; the worst of them says how bad that is."""
    rest = problems[PROBLEMS_MOST:]
    if not rest:
        return problems
    worst = min((problem.severity for problem in rest), key=("error", "warning", "note").index)
    more = Problem(file=rest[0].file, message=f"and {len(rest):,} more", severity=worst)
    return (*problems[:PROBLEMS_MOST], more)


class _Unreadable(Exception):
    def __init__(self, said: str, hint: str | None = None) -> None:
        super().__init__(said)
        self.hint = hint


def _read(path: str) -> str:
    try:
        return read_bytes(path, MOST).decode("utf-8-sig")
    except NotARegularFile as error:
        raise _Unreadable(str(error), error.hint) from None
    except TooLarge:
        raise _Unreadable(f"is larger than {MOST // 1024 // 1024} MiB") from None
    except UnicodeDecodeError as error:
        raise _Unreadable(f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from None
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise _Unreadable("is a link to a file that is not there") from None
        raise FileNotFoundError from None
    except OSError as error:
        raise _Unreadable(f"can not be read: {error.strerror}", "check its permissions") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


SMALL = 64 * 1024  # bytes; a larger file is searched only where an event's name stands in it twice


def _keys_twice(text: str) -> list[str]:
    """Keys that stand twice in one object: JSON keeps the last and drops the first without a word."""
    if len(text) > SMALL and not any(text.count(f'"{event}"') > 1 for event in EVENTS):
        return []
    found: dict[str, None] = {}

    def look(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                found[name] = None
            seen.add(name)

    if text.strip():
        json.loads(text, object_pairs_hook=look)
    return list(found)


def _twice(place: Place, key: str) -> Problem:
    said = f"the key {json.dumps(key)} stands twice in one object: only the last one counts"
    return Problem(file=place.shown, message=said, hint="put both into one")


def _diagnosis(text: str, error: json.JSONDecodeError) -> str:
    """Where it is, and what the usual suspects look like to a parser that knows only JSON."""
    place, words = error.pos, error.msg[0].lower() + error.msg[1:]
    rest = text[place:].lstrip()
    before = text[:place].rstrip()
    if rest.startswith(("//", "/*", "#")):
        words = "comments are not allowed in JSON"
    elif (rest[:1] in ("}", "]") and before.endswith(",")) or "trailing comma" in words:
        place = text.rindex(",", 0, place + 1)  # Python 3.13 stands on the comma, earlier ones behind it
        words = "a comma before the closing bracket is not allowed in JSON"
    elif error.msg == "Extra data":
        words = "the file goes on after the JSON value ended"
    elif rest.startswith("'"):
        words = 'strings need double quotes (")'
    line = text.count("\n", 0, place) + 1
    return f"not JSON at line {line}, column {place - text.rfind(chr(10), 0, place)}: {words}"


def _bad(place: Place, message: str, hint: str | None = None) -> Layer:
    problem = Problem(file=place.shown, message=f"{message}; none of its hooks run", hint=hint)
    return Layer(file=place.shown, level=place.level, family=place.family, problems=(problem,))
