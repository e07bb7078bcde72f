"""Every key of a settings file, one row each: validation, JSON Schema and merging are derived from these tables."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from turngate.core.constants import EVENTS
from turngate.core.hooks.kinds import CLEAN, KINDS
from turngate.core.settings import MergeRule
from turngate.settings.value_types import (
    COUNT,
    DAYS,
    DEFAULT_TIMEOUTS,
    FLAG,
    MODEL,
    OBJECT,
    POSITIVE_COUNT,
    SECONDS,
    STRING,
    STRING_OBJECT,
    TEXT,
    VARIABLE_NAMES,
    VARIABLES,
    ValueType,
    one_of,
    or_word,
    per_event,
    some_of,
    string_list,
)


class Key(NamedTuple):
    """One row. The fields of its `ValueType` are copied, because every entry of every file is checked with them."""

    field: str  # the field of the hook or of `Settings`
    is_valid: Callable[[Any], bool]
    expected: str
    schema: Mapping[str, Any]
    convert: Callable[[Any], Any] | None
    per_event: ValueType | None
    kinds: tuple[str, ...]  # the hook kinds that have it
    drops_hook: bool  # an invalid value drops the hook; otherwise only the key is ignored
    merge: MergeRule


def row(
    field: str, value: ValueType, description: str, *, drops_hook: bool = False, merge: MergeRule = "last"
) -> Key:
    return Key(
        field,
        value.is_valid,
        value.expected,
        {**value.schema, "description": description},
        value.convert,
        value.per_event,
        tuple(kind for kind, hook in KINDS.items() if field in hook.__dataclass_fields__),
        drops_hook,
        merge,
    )


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
    """Return the closest known name, or None."""
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
