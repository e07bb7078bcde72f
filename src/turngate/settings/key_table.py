"""Every key of a settings file, one row each: validation, JSON Schema and merging are derived from these tables."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from turngate.core.constants import EVENTS
from turngate.core.hooks.kinds import CLEAN, EXPECTED_SECONDS, KINDS, MAX_TIMEOUT_S, is_seconds
from turngate.core.settings import MergeRule
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


def describe_invalid(value: Any, expected: ValueType, describe: Callable[[Any], str] = describe_json) -> str:
    """Return an invalid value in the words of a message; of a list or of timeouts, with the item that is wrong."""
    if expected.is_valid is _is_default_timeouts and type(value) is dict:
        return _describe_default_timeouts(value)
    if type(value) is not list or not expected.expected.startswith("a list of"):
        return describe(value)
    if not value:
        return "an empty list"
    invalid = next((item for item in value if not expected.is_valid([item])), None)
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


# The keys


class Key(NamedTuple):
    """One row."""

    field: str  # the field of the hook or of `Settings`
    type: ValueType  # its schema has the description
    kinds: tuple[str, ...]  # the hook kinds that have it
    drops_hook: bool  # an invalid value drops the hook; otherwise only the key is ignored
    merge: MergeRule


def row(
    field: str, value: ValueType, description: str, *, drops_hook: bool = False, merge: MergeRule = "last"
) -> Key:
    described = value._replace(schema={**value.schema, "description": description})
    kinds = tuple(kind for kind, hook in KINDS.items() if field in hook.__dataclass_fields__)
    return Key(field, described, kinds, drops_hook, merge)


HOOK_KEYS: Mapping[str, Key] = {
    "command": row("command", TEXT, "The shell command to run, or with `args` the program.", drops_hook=True),
    "args": row(
        "args",
        string_list("a list of strings"),
        "The program's arguments. With `args`, no shell is involved.",
        drops_hook=True,
    ),
    "shell": row(
        "shell",
        one_of("sh", "bash", "powershell"),
        "The shell that runs the command; default `sh`. `powershell` is the program `pwsh`.",
    ),
    "env": row(
        "env",
        or_word(VARIABLES, CLEAN),
        "Environment variables for this hook; or `clean`: it gets only PATH, HOME, LANG and the like, and `passEnv`.",
        drops_hook=True,
    ),
    "passEnv": row(
        "pass_env",
        VARIABLE_NAMES,
        "Variables that the hook gets from the environment besides PATH, HOME, LANG and the like; no others.",
        drops_hook=True,
    ),
    "prompt": row(
        "prompt",
        TEXT,
        "The question for the model; `$ARGUMENTS` is replaced by the hook's input.",
        drops_hook=True,
    ),
    "model": row("model", MODEL, "The model that answers."),
    "transcript": row(
        "transcript", one_of("none", "last", "digest", "full"), "How much of the conversation the model sees."
    ),
    "url": row("url", TEXT, "The URL that the input is sent to.", drops_hook=True),
    "headers": row("headers", STRING_OBJECT, "Headers of the request.", drops_hook=True),
    "allowedEnvVars": row(
        "allowed_env_vars", string_list("a list of names"), "Environment variables that headers may use."
    ),
    "gate": row(
        "gate",
        TEXT,
        "The name of a ready-made gate; without one, the gate `command`, which runs `command`.",
        drops_hook=True,
    ),
    "options": row("options", OBJECT, "The options of the gate.", drops_hook=True),
    "strict": row("strict", FLAG, "true: a gate that could not run blocks."),
    "timeout": row("timeout", SECONDS, "Seconds until the hook is killed.", drops_hook=True),
    "id": row("id", TEXT, "A name. The same id in a later file replaces this hook."),
    "enabled": row("enabled", FLAG, "false: neither this hook nor an earlier one with the same id runs."),
    "mode": row(
        "mode",
        one_of("gate", "observe"),
        "observe: the hook runs, and a block is only recorded, as `would_block`.",
    ),
    "blocking": row(
        "blocking",
        FLAG,
        "true: a failure of the hook counts as a block. A block without a reason still does not count as one.",
    ),
    "onFailure": row(
        "on_failure",
        one_of("block"),
        "block: a failure of the hook counts as a block; in the claude dialect, not at a stop.",
        drops_hook=True,
    ),
    "continueOnBlock": row(
        "continue_on_block",
        FLAG,
        "true: in the claude dialect a prompt hook's block at an event other than a stop does not end the turn.",
    ),
    "outcomes": row(
        "outcomes",
        some_of("ok", "error", "timeout"),
        "The subagent outcomes for which a SubagentStop hook runs.",
    ),
    "async": row("detached", FLAG, "true: the hook runs in the background and its decision is ignored."),
    "asyncRewake": row(
        "rewake",
        FLAG,
        "true: with `async`, exit code 2 wakes the agent with what the hook printed on stderr. The session waits for the hook before it ends.",
    ),
    "if": row(
        "condition",
        TEXT._replace(expected="a permission rule"),
        "A permission rule, such as `Bash(git *)`: the hook runs only for tool calls that match it.",
    ),
    "statusMessage": row("status_message", STRING, "The text that Claude Code shows while the hook runs."),
}

# Keys that only other programs use: they are ignored without a note.
FOREIGN_HOOK_KEYS = frozenset(
    {"type", "once", "description", "rewakeMessage", "rewakeSummary", "commandWindows", "asyncTimeout"}
)

# Keys of Claude Code at the top of a file that restrict http hooks, in the files of every family.
RESTRICTIONS: Mapping[str, Key] = {
    "allowedHttpHookUrls": row(
        "http_hook_urls",
        string_list("a list of URL patterns"),
        "URL patterns, with `*` as a wildcard, that http hooks may call; the lists of all files are combined.",
        merge="concat",
    ),
    "httpHookAllowedEnvVars": row(
        "http_hook_variables",
        string_list("a list of names"),
        "Environment variables that headers of http hooks may use; the lists of all files are combined.",
        merge="concat",
    ),
}

FILE_KEYS = ("hooks", "disableAllHooks", "env", "turngate", "agents", "$schema", *RESTRICTIONS)

TURNGATE_KEYS: Mapping[str, Key] = {
    "limit": row("limit", COUNT, "Maximum number of continuations in one turn."),
    "hardLimit": row(
        "hard_limit", COUNT, "Upper bound of the limit. Only user settings can raise it.", merge="ceiling"
    ),
    "order": row(
        "order",
        per_event(one_of("parallel", "sequential", "first_block")),
        "How the hooks of one event are run.",
        merge="union",
    ),
    "mode": row(
        "mode", per_event(one_of("gate", "observe")), "observe: blocks are only recorded.", merge="union"
    ),
    "payload": row(
        "payload",
        one_of("full", "strict"),
        "strict: hooks receive only the six fields that are always present.",
    ),
    "defaults": row(
        "timeouts",
        DEFAULT_TIMEOUTS,
        "Seconds for hooks without a timeout: by kind, by event, or by kind within an event.",
        merge="union",
    ),
    "stopBudget": row("stop_budget", SECONDS, "Seconds for all hooks of one stop together."),
    "childrenAtOnce": row(
        "children_at_once",
        POSITIVE_COUNT,
        "Maximum number of subagents of one session that run at once; default 8.",
    ),
    "childrenDepth": row(
        "children_depth", COUNT, "How many levels of subagents are allowed; 0 means none; default 3."
    ),
    "childSeconds": row("child_seconds", SECONDS, "Seconds for one run of a subagent; default 3600."),
    "noReviseAfterSideEffects": row(
        "no_revise_after_side_effects",
        FLAG,
        "true: hooks do not redirect a subagent that has changed something.",
        merge="any",
    ),
    "announceChildren": row(
        "announce_children",
        FLAG,
        "false: results of background subagents stay in the registry (`turngate runs show`) and are not delivered to the parent.",
    ),
    "whenUserPending": row(
        "when_user_pending",
        one_of("defer", "run"),
        "defer: a pending user message is answered before the hooks run; run: the hooks run first.",
    ),
    "showPass": row(
        "show_pass",
        FLAG,
        "true: where another agent program runs Turngate, a stop that passes says so in one line.",
    ),
    "recordTrees": row(
        "record_trees",
        FLAG,
        "true: at each stop, the files are kept in the project's git repository for 30 days, for `turngate replay`. "
        "Only user settings can set it.",
        merge="user",
    ),
    "registry": row(
        "registry",
        STRING,
        "The URL of a PostgreSQL database, postgresql://USER@HOST/NAME, that holds the subagents of all machines. "
        "Only user settings can set it; `TURNGATE_REGISTRY` overrides it.",
        merge="user",
    ),
    "model": row("model", MODEL, "The agent's model, PROVIDER:NAME."),
    "judge": row("judge", MODEL, "The model of prompt and agent hooks without a `model`."),
    "env": row(
        "pass_env",
        one_of(CLEAN)._replace(convert=lambda _: ()),
        "clean: command hooks get only PATH, HOME, LANG and the like, and `passEnv`, from the environment.",
        merge="owners",
    ),
    "passEnv": row(
        "pass_env",
        VARIABLE_NAMES,
        "Variables that command hooks get from the environment besides PATH, HOME, LANG and the like; no others. "
        "Where user settings have a list, a project cannot add to it.",
        merge="owners",
    ),
    "retentionDays": row(
        "retention_days",
        DAYS,
        "How long `turngate sessions prune` keeps a session; default 30. A project can only lengthen your time.",
    ),
    "plugins": row("plugins", string_list("a list of names"), "The installed plugins that are enabled."),
    "pluginDirs": row(
        "plugin_dirs",
        string_list("a list of folders"),
        "Folders of Claude Code plugins: their hooks run, and their agent types are known. At most 100 in a file.",
        merge="concat",
    ),
    "allowedUrls": row(
        "allowed_urls",
        string_list("a list of addresses or hosts"),
        "The URLs that http hooks may call: `https://host/path/` or `*.example.com`. "
        "The user's list limits every project; a project's list can only narrow it.",
        merge="each",
    ),
}

# Another program's setting, read because it has the same meaning as a limit of Turngate.
STEER_RESTARTS_PATH = ("agents", "defaults", "subagents", "maxSteerRestarts")
STEER_RESTARTS = row("child_limit", COUNT, "Maximum number of redirects of one subagent.")

MERGE_RULES: Mapping[str, MergeRule] = {
    key.field: key.merge for key in (*TURNGATE_KEYS.values(), *RESTRICTIONS.values(), STEER_RESTARTS)
}


def is_comment(name: str) -> bool:
    """Whether a key is a comment: JSON has no other. Claude Code ignores keys with `_` or `//` in front (measured)."""
    return name.startswith(("_", "//", "#")) or name in ("comment", "comments", "$comment")


def closest_name(word: str, names: Iterable[str], similarity: float = 0.8) -> str | None:
    import difflib  # noqa: PLC0415 # lazy: only for a mistake

    by_letters = {name.lower(): name for name in names}
    matches = difflib.get_close_matches(word[:40].lower().replace("_", ""), by_letters, 1, similarity)
    return by_letters[matches[0]] if matches else None


# Names that other programs, or a guess, give to the end of a turn.
_NAMES_OF_STOP = frozenset(
    {"poststop", "prestop", "sessionstop", "agentstop", "turnend", "finish", "done", "end"}
)


def closest_event(word: str) -> str | None:
    if word.lower().replace("_", "").replace("-", "") in _NAMES_OF_STOP:
        return "Stop"
    return closest_name(word, EVENTS, 0.75)  # two swapped letters in a short name
