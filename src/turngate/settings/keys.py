"""Every key that a settings file may hold, once: validation and the JSON Schema are both made from these tables."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from turngate.core.constants import EVENTS
from turngate.core.hooks import KINDS, LONGEST, SECONDS, is_seconds


class Key(NamedTuple):
    field: str  # the name in our own values
    good: Callable[[Any], bool]
    expected: str
    schema: Mapping[str, Any]
    kinds: tuple[str, ...] = tuple(KINDS)  # the kinds of hook that know it
    drops: bool = False  # a bad value drops the entry; otherwise the key alone is ignored
    read: Callable[[Any], Any] | None = None


def likely(word: str, known: Iterable[str], alike: float = 0.8) -> str | None:
    """What somebody may have meant who wrote this."""
    by_letters = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word[:40].lower().replace("_", ""), by_letters, 1, alike)
    return by_letters[close[0]] if close else None


def closest_event(word: str) -> str | None:
    return likely(word, EVENTS, 0.75)  # two letters the wrong way round in a short word


def count(value: Any) -> bool:
    return type(value) is int and value >= 0


def positive(value: Any) -> bool:
    return type(value) is int and value >= 1


def text(value: Any) -> bool:
    """A string that a process can be given."""
    if type(value) is not str or not value.strip() or "\0" in value:
        return False
    return value.isascii() or _encodable(value)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def flag(value: Any) -> bool:
    return type(value) is bool


def texts(value: Any) -> bool:
    return type(value) is list and all(
        type(item) is str and "\0" not in item and _encodable(item) for item in value
    )


VARIABLE_MOST = 8_000  # characters of one value
VARIABLES_MOST = 200
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def variable(name: Any, value: Any) -> bool:
    return (
        type(name) is str
        and bool(_VARIABLE.fullmatch(name))
        and type(value) is str
        and len(value) <= VARIABLE_MOST
        and "\0" not in value
        and _encodable(value)
    )


def variables(value: Any) -> bool:
    return (
        type(value) is dict and len(value) <= VARIABLES_MOST and all(variable(k, v) for k, v in value.items())
    )


def strings(value: Any) -> bool:
    return type(value) is dict and texts([*value.keys(), *value.values()])


def one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in words


def some_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: (
        type(value) is list
        and bool(value)
        and all(item in words for item in value if type(item) is str)
        and all(type(i) is str for i in value)
    )


_SECONDS = {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST}
_TEXT = {"type": "string", "minLength": 1, "pattern": r"\S"}
_VARIABLES = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": VARIABLE_MOST},
    "maxProperties": VARIABLES_MOST,
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
}
_OUTCOMES = ("ok", "error", "timeout")

HOOK: Mapping[str, Key] = {
    "command": Key(
        "command",
        text,
        "a non-empty string",
        {**_TEXT, "description": "What to run: a shell command, or with `args` a program."},
        ("command",),
        drops=True,
    ),
    "args": Key(
        "args",
        texts,
        "a list of strings",
        {
            "type": "array",
            "items": {"type": "string"},
            "description": "Arguments of a program that is started without a shell.",
        },
        ("command",),
        drops=True,
        read=tuple,
    ),
    "shell": Key(
        "shell",
        one_of("sh", "bash"),
        '"sh" or "bash"',
        {"enum": ["sh", "bash"], "description": "Which shell reads the command; `sh` where nothing is said."},
        ("command",),
    ),
    "env": Key(
        "env",
        variables,
        "an object of names and strings",
        {**_VARIABLES, "description": "Environment variables for this hook."},
        ("command",),
        drops=True,
    ),
    "prompt": Key(
        "prompt",
        text,
        "a non-empty string",
        {**_TEXT, "description": "What a model is asked; `$ARGUMENTS` stands for the hook's input."},
        ("prompt", "agent"),
        drops=True,
    ),
    "model": Key(
        "model",
        text,
        "a model's name",
        {**_TEXT, "description": "The model that answers."},
        ("prompt", "agent"),
    ),
    "transcript": Key(
        "transcript",
        one_of("none", "last", "digest", "full"),
        '"none", "last", "digest" or "full"',
        {
            "enum": ["none", "last", "digest", "full"],
            "description": "How much of the conversation the model sees.",
        },
        ("prompt",),
    ),
    "url": Key(
        "url",
        text,
        "a non-empty string",
        {**_TEXT, "description": "Where the input is sent."},
        ("http",),
        drops=True,
    ),
    "headers": Key(
        "headers",
        strings,
        "an object of strings",
        {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Headers of the request.",
        },
        ("http",),
        drops=True,
    ),
    "allowedEnvVars": Key(
        "allowed_env_vars",
        texts,
        "a list of names",
        {"type": "array", "items": {"type": "string"}, "description": "Variables that headers may use."},
        ("http",),
        read=tuple,
    ),
    "timeout": Key(
        "timeout",
        is_seconds,
        SECONDS,
        {**_SECONDS, "description": "Seconds until the hook is ended."},
        drops=True,
        read=float,
    ),
    "id": Key(
        "id",
        text,
        "a non-empty string",
        {**_TEXT, "description": "A name; the same id in a later file replaces this entry."},
    ),
    "enabled": Key(
        "enabled",
        flag,
        "true or false",
        {
            "type": "boolean",
            "description": "false: this entry, and an earlier one with its id, does not run.",
        },
    ),
    "mode": Key(
        "mode",
        one_of("gate", "observe"),
        '"gate" or "observe"',
        {"enum": ["gate", "observe"], "description": "observe: it runs, and its refusal is only recorded."},
    ),
    "blocking": Key(
        "blocking",
        flag,
        "true or false",
        {"type": "boolean", "description": "true: its failure counts as a refusal."},
    ),
    "outcomes": Key(
        "outcomes",
        some_of(*_OUTCOMES),
        'a list of "ok", "error", "timeout"',
        {
            "type": "array",
            "minItems": 1,
            "items": {"enum": list(_OUTCOMES)},
            "description": "How a child must have ended for a SubagentStop hook to be asked.",
        },
        read=tuple,
    ),
    "async": Key(
        "detached",
        flag,
        "true or false",
        {"type": "boolean", "description": "true: started in the background, its decision is ignored."},
    ),
    "if": Key(
        "condition",
        text,
        "a permission rule",
        {**_TEXT, "description": "A permission rule of Claude Code; ignored on stops."},
    ),
    "statusMessage": Key(
        "status_message",
        lambda v: type(v) is str,
        "a string",
        {"type": "string", "description": "What is shown while it runs."},
    ),
}

# Keys that other programs know: no reason to note them.
FOREIGN_HOOK_KEYS = frozenset(
    {
        "type",
        "once",
        "description",
        "asyncRewake",
        "rewakeMessage",
        "rewakeSummary",
        "commandWindows",
        "continueOnBlock",
        "asyncTimeout",
    }
)

FILE = ("hooks", "disableAllHooks", "env", "turngate", "agents", "$schema")

_ORDERS = ("parallel", "sequential", "first_block")
_MODES = ("gate", "observe")


def per_event(word: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        word(value) or (type(value) is dict and all(k in EVENTS and word(v) for k, v in value.items()))
    )


def by_event(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {"*": value}


def default_timeouts(value: Any) -> bool:
    if type(value) is not dict:
        return False
    return all(
        (name in KINDS and is_seconds(limit))
        or (
            name in EVENTS
            and (
                is_seconds(limit)
                or (type(limit) is dict and all(k in KINDS and is_seconds(s) for k, s in limit.items()))
            )
        )
        for name, limit in value.items()
    )


def read_timeouts(value: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for name, limit in value.items():
        if name in KINDS:
            found["*", name] = float(limit)
        elif isinstance(limit, dict):
            found |= {(name, kind): float(s) for kind, s in limit.items()}
        else:
            found[name, "*"] = float(limit)
    return found


def _per_event_schema(words: tuple[str, ...], description: str) -> dict[str, Any]:
    word = {"enum": list(words)}
    events = {
        "type": "object",
        "properties": {event: word for event in EVENTS},
        "additionalProperties": False,
    }
    return {"anyOf": [word, events], "description": description}


def _timeouts_schema() -> dict[str, Any]:
    by_kind: dict[str, Any] = {
        "type": "object",
        "properties": {kind: _SECONDS for kind in KINDS},
        "additionalProperties": False,
    }
    by_event = {event: {"anyOf": [_SECONDS, by_kind]} for event in EVENTS}
    words = "Seconds for hooks that name no timeout, by kind, by event, or by kind within an event."
    return {**by_kind, "properties": {**by_kind["properties"], **by_event}, "description": words}


TURNGATE: Mapping[str, Key] = {
    "limit": Key(
        "limit",
        count,
        "a whole number, 0 or more",
        {
            "type": "integer",
            "minimum": 0,
            "description": "How often hooks may send the agent on in one turn.",
        },
    ),
    "hardLimit": Key(
        "hard_limit",
        count,
        "a whole number, 0 or more",
        {
            "type": "integer",
            "minimum": 0,
            "description": "What nobody may raise the limit above; only user settings raise it.",
        },
    ),
    "order": Key(
        "order",
        per_event(one_of(*_ORDERS)),
        '"parallel", "sequential" or "first_block", for all or per event',
        _per_event_schema(_ORDERS, "How the hooks of one event are run."),
        read=by_event,
    ),
    "mode": Key(
        "mode",
        per_event(one_of(*_MODES)),
        '"gate" or "observe", for all or per event',
        _per_event_schema(_MODES, "observe: refusals are only recorded."),
        read=by_event,
    ),
    "payload": Key(
        "payload",
        one_of("full", "strict"),
        '"full" or "strict"',
        {"enum": ["full", "strict"], "description": "strict: hooks get the six fields alone."},
    ),
    "defaults": Key(
        "timeouts",
        default_timeouts,
        "seconds by kind of hook or by event",
        _timeouts_schema(),
        read=read_timeouts,
    ),
    "stopBudget": Key(
        "stop_budget",
        is_seconds,
        SECONDS,
        {**_SECONDS, "description": "Seconds for all hooks of one stop together."},
        read=float,
    ),
    "childrenAtOnce": Key(
        "children_at_once",
        positive,
        "a whole number, 1 or more",
        {"type": "integer", "minimum": 1, "description": "How many children of one session run at once; 8."},
    ),
    "childrenDepth": Key(
        "children_depth",
        count,
        "a whole number, 0 or more",
        {
            "type": "integer",
            "minimum": 0,
            "description": "How deep children may have children; 3, and 0: no children.",
        },
    ),
    "childSeconds": Key(
        "child_seconds",
        is_seconds,
        SECONDS,
        {**_SECONDS, "description": "Seconds for one run of a child; 3600."},
        read=float,
    ),
    "noReviseAfterSideEffects": Key(
        "no_revise_after_side_effects",
        flag,
        "true or false",
        {
            "type": "boolean",
            "description": "true: a child that has changed something is not sent on by hooks.",
        },
    ),
    "announceChildren": Key(
        "announce_children",
        flag,
        "true or false",
        {
            "type": "boolean",
            "description": "false: what children in the background found stays in the register, and no parent is told.",
        },
    ),
    "whenUserPending": Key(
        "when_user_pending",
        one_of("defer", "run"),
        '"defer" or "run"',
        {
            "enum": ["defer", "run"],
            "description": "defer: a message that waits is answered before the gates are asked; run: they are asked all the same.",
        },
    ),
    "model": Key(
        "model", text, "a model's name", {**_TEXT, "description": "The agent's model, PROVIDER:NAME."}
    ),
    "judge": Key(
        "judge", text, "a model's name", {**_TEXT, "description": "The model of prompt and agent hooks."}
    ),
    "retentionDays": Key(
        "retention_days",
        is_seconds,
        "a number of days above 0",
        {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": LONGEST,
            "description": "How long `turngate sessions prune` keeps a session; 30.",
        },
        read=float,
    ),
    "plugins": Key(
        "plugins",
        texts,
        "a list of names",
        {"type": "array", "items": {"type": "string"}, "description": "Plugins that are switched on."},
        read=tuple,
    ),
    "pluginDirs": Key(
        "plugin_dirs",
        texts,
        "a list of folders",
        {"type": "array", "items": {"type": "string"}, "description": "Folders of plugins."},
        read=tuple,
    ),
    "allowedUrls": Key(
        "allowed_urls",
        texts,
        "a list of addresses or hosts",
        {
            "type": "array",
            "items": {"type": "string"},
            "description": "What http hooks may ask: `https://host/path/` or `*.example.com`. Yours limits every project; a project's can only narrow it.",
        },
        read=tuple,
    ),
}

# Keys whose value may be an object of events.
PER_EVENT = frozenset({"order", "mode"})
OR_PER_EVENT = ", for all or per event"
