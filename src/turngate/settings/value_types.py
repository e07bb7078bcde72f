"""The types of settings values: how each is checked, described, written as JSON Schema and converted."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turngate.core.constants import EVENTS
from turngate.core.hooks.kinds import EXPECTED_SECONDS, KINDS, MAX_TIMEOUT_S, is_seconds
from turngate.core.text import describe_json, describe_name

MAX_VARIABLE_CHARS = 8_000
MAX_VARIABLES = 200


class ValueType(NamedTuple):
    """What a key accepts. `expected` completes a message: "is 5, expected a list of strings"."""

    is_valid: Callable[[Any], bool]
    expected: str
    schema: Mapping[str, Any]
    convert: Callable[[Any], Any] | None = None  # None: the JSON value is used as it is
    # The type of one event's value, where an object of events is allowed.
    per_event: "ValueType | None" = None


def describe_invalid(
    value: Any, is_valid: Callable[[Any], bool], expected: str, describe: Callable[[Any], str] = describe_json
) -> str:
    """Return an invalid value in the words of a message; of a list or of timeouts, with the item that is wrong."""
    if is_valid is _is_default_timeouts and type(value) is dict:
        return _describe_default_timeouts(value)
    if type(value) is not list or not expected.startswith("a list of"):
        return describe(value)
    if not value:
        return "an empty list"
    invalid = next((item for item in value if not is_valid([item])), None)
    return f"a list with {describe(invalid)} in it"


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_text(value: Any) -> bool:
    """Return whether the value is a non-blank string that can be passed to a process."""
    return _is_passable(value) and bool(value.strip())


def _is_passable(value: Any) -> bool:
    """Return whether the value is a string that can be passed to a process."""
    if type(value) is not str or "\0" in value:
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def is_string_list(value: Any) -> bool:
    return type(value) is list and all(map(_is_passable, value))


_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def is_variable(name: Any, value: Any) -> bool:
    is_name = type(name) is str and bool(_VARIABLE_NAME.fullmatch(name))
    return is_name and _is_passable(value) and len(value) <= MAX_VARIABLE_CHARS


_SECONDS_SCHEMA = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_TIMEOUT_S}
_TEXT_SCHEMA = {"type": "string", "minLength": 1, "pattern": r"\S"}

COUNT = ValueType(is_count, "a whole number, 0 or more", {"type": "integer", "minimum": 0})
POSITIVE_COUNT = ValueType(
    lambda value: is_count(value) and value >= 1,
    "a whole number, 1 or more",
    {"type": "integer", "minimum": 1},
)
FLAG = ValueType(lambda value: type(value) is bool, "true or false", {"type": "boolean"})
SECONDS = ValueType(is_seconds, EXPECTED_SECONDS, _SECONDS_SCHEMA, convert=float)
DAYS = SECONDS._replace(expected="a number of days above 0")
STRING = ValueType(lambda value: type(value) is str, "a string", {"type": "string"})
TEXT = ValueType(is_text, "a non-empty string", _TEXT_SCHEMA)
MODEL = TEXT._replace(expected="a model's name")
OBJECT = ValueType(lambda value: type(value) is dict, "an object", {"type": "object"})
STRING_OBJECT = ValueType(
    lambda value: type(value) is dict and is_string_list([*value.keys(), *value.values()]),
    "an object of strings",
    {"type": "object", "additionalProperties": {"type": "string"}},
)
VARIABLES = ValueType(
    lambda value: (
        type(value) is dict
        and len(value) <= MAX_VARIABLES
        and all(is_variable(*each) for each in value.items())
    ),
    "an object of names and strings",
    {
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": MAX_VARIABLE_CHARS},
        "maxProperties": MAX_VARIABLES,
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    },
)


VARIABLE_NAMES = ValueType(
    lambda value: (
        type(value) is list
        and len(value) <= MAX_VARIABLES
        and all(type(name) is str and _VARIABLE_NAME.fullmatch(name) for name in value)
    ),
    "a list of names, without wildcards",
    {
        "type": "array",
        "items": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        "maxItems": MAX_VARIABLES,
    },
    convert=tuple,
)


def or_word(value: ValueType, word: str) -> ValueType:
    """Return the type of a value that can also be a word. A word is not converted."""
    schema = {"anyOf": [value.schema, {"enum": [word]}]}
    expected = f'{value.expected}, or "{word}"'
    return ValueType(lambda given: given == word or value.is_valid(given), expected, schema)


def string_list(expected: str) -> ValueType:
    schema = {"type": "array", "items": {"type": "string"}}
    return ValueType(is_string_list, expected, schema, convert=tuple)


def one_of(*words: str) -> ValueType:
    *first, last = (f'"{word}"' for word in words)
    expected = " or ".join(filter(None, (", ".join(first), last)))
    return ValueType(lambda value: type(value) is str and value in words, expected, {"enum": list(words)})


def some_of(*words: str) -> ValueType:
    def is_valid(value: Any) -> bool:
        return type(value) is list and bool(value) and all(type(i) is str and i in words for i in value)

    return ValueType(
        is_valid,
        "a list of " + ", ".join(f'"{word}"' for word in words),
        {"type": "array", "minItems": 1, "items": {"enum": list(words)}},
        convert=tuple,
    )


def per_event(one: ValueType) -> ValueType:
    """Return the type of a value that holds for every event, or of an object with a value per event."""

    def is_valid(value: Any) -> bool:
        return one.is_valid(value) or (
            type(value) is dict and all(name in EVENTS and one.is_valid(each) for name, each in value.items())
        )

    def convert(value: Any) -> dict[str, Any]:
        values = value if isinstance(value, dict) else {"*": value}
        return {name: one.convert(each) if one.convert else each for name, each in values.items()}

    by_event = {
        "type": "object",
        "properties": {event: one.schema for event in EVENTS},
        "additionalProperties": False,
    }
    return ValueType(
        is_valid,
        f"{one.expected}, for all or per event",
        {"anyOf": [one.schema, by_event]},
        convert=convert,
        per_event=one,
    )


def _is_default_timeouts(value: Any) -> bool:
    return type(value) is dict and all(
        is_seconds(limit)
        if name in KINDS
        else name in EVENTS and (is_seconds(limit) or _is_timeout_by_kind(limit))
        for name, limit in value.items()
    )


def _describe_default_timeouts(value: Mapping[str, Any]) -> str:
    name, wrong = next(item for item in value.items() if not _is_default_timeouts(dict([item])))
    if name in EVENTS and type(wrong) is dict:
        kind, wrong = next(item for item in wrong.items() if not _is_timeout_by_kind(dict([item])))
        is_known, name = kind in KINDS, f"{name}.{describe_name(kind)}"
    else:
        is_known = name in KINDS or name in EVENTS
        name = describe_name(name)
    return f"an object with {f'{describe_json(wrong)} for' if is_known else 'the unknown key'} `{name}`"


def _is_timeout_by_kind(value: Any) -> bool:
    return type(value) is dict and all(kind in KINDS and is_seconds(limit) for kind, limit in value.items())


def _timeouts_by_event_and_kind(value: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    timeouts: dict[tuple[str, str], float] = {}
    for name, limit in value.items():
        if name in KINDS:
            timeouts["*", name] = float(limit)
        elif isinstance(limit, dict):
            timeouts |= {(name, kind): float(seconds) for kind, seconds in limit.items()}
        else:
            timeouts[name, "*"] = float(limit)
    return timeouts


_KINDS: dict[str, Any] = {kind: _SECONDS_SCHEMA for kind in KINDS}
_BY_KIND: dict[str, Any] = {"type": "object", "properties": _KINDS, "additionalProperties": False}
_BY_EVENT = {event: {"anyOf": [_SECONDS_SCHEMA, _BY_KIND]} for event in EVENTS}
DEFAULT_TIMEOUTS = ValueType(
    _is_default_timeouts,
    "seconds by kind of hook or by event",
    {**_BY_KIND, "properties": {**_KINDS, **_BY_EVENT}},
    convert=_timeouts_by_event_and_kind,
)


# Claude Code: a wrong type of one of its settings makes it ignore the whole file, hooks included (measured). A dict is
# an object whose keys have these types, where they are present; a list is a list of such items.
CLAUDE_SETTING_TYPES: dict[str, object] = {
    "cleanupPeriodDays": (int, float),
    "env": dict,
    "permissions": {"allow": list},
    "includeCoAuthoredBy": bool,
    "model": str,
    "outputStyle": str,
    "statusLine": dict,
    "apiKeyHelper": str,
    "enableAllProjectMcpServers": bool,
    "disabledMcpjsonServers": list,
    "language": str,
    "fileSuggestion": dict,
    "spinnerTipsEnabled": bool,
    "attribution": dict,
    "sandbox": {"credentials": {"files": [dict]}},
    "enabledPlugins": dict,
    "alwaysThinkingEnabled": bool,
    "allowedHttpHookUrls": list,
    "autoUpdatesChannel": str,
}


def wrong_claude_setting(name: str, value: object) -> tuple[str, object] | None:
    """Return the part of this setting because of which Claude Code ignores the whole file, and its value."""
    return _wrong_part(name, value, CLAUDE_SETTING_TYPES[name]) if name in CLAUDE_SETTING_TYPES else None


def _wrong_part(path: str, value: object, expected: object) -> tuple[str, object] | None:
    parts: list[tuple[str, object, object]] = []
    if isinstance(expected, dict) and isinstance(value, dict):
        parts = [(f"{path}.{key}", value[key], each) for key, each in expected.items() if key in value]
    elif isinstance(expected, list) and isinstance(value, list):
        parts = [(f"{path}[{number}]", item, expected[0]) for number, item in enumerate(value)]
    elif isinstance(expected, dict | list):
        return path, value
    else:
        types = expected if isinstance(expected, tuple) else (expected,)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            return path, value
    return next((wrong for part in parts if (wrong := _wrong_part(*part))), None)
