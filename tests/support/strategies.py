"""Settings and other JSON as hypothesis makes them up: mostly with real names, so that it gets far."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from turngate.core.constants import EVENTS, FOREIGN_EVENTS
from turngate.core.hooks.kinds import KINDS, SETTINGS_KINDS
from turngate.gates.library import GATES
from turngate.settings import key_table as keys
from turngate.settings.key_table import CLAUDE_SETTING_TYPES, is_text

Values = st.SearchStrategy[Any]

NAMES = sorted(
    {
        *EVENTS,
        *FOREIGN_EVENTS,
        *keys.FILE_KEYS,
        *keys.HOOK_KEYS,
        *keys.TURNGATE_KEYS,
        *CLAUDE_SETTING_TYPES,
        *KINDS,
        *keys.FOREIGN_HOOK_KEYS,
        "matcher",
        "defaults",
        "subagents",
        "maxSteerRestarts",
        "stop",
        "colour",
    }
)
WORDS = [
    *KINDS,
    "parallel",
    "sequential",
    "first_block",
    "gate",
    "observe",
    "full",
    "strict",
    "ok",
    "error",
    "timeout",
    "sh",
    "bash",
    "none",
    "last",
    "digest",
    "make",
    "Explore|Plan",
    "*",
    "(",
    "[a-z]+",
    "",
    " ",
    "a\0b",
    "\ud800",
]
NUMBERS = [0, -1, 1, 3, 0.5, 30, 999, 1000, 60_000, 1e308, float("inf"), float("nan"), 10**400, -(10**400)]

any_text = st.text(st.characters(), max_size=12)  # half characters too: JSON can hold them
any_number: Values = st.sampled_from([*NUMBERS, 10**400, 10**400])
any_scalar: Values = (
    st.none() | st.booleans() | any_number | st.integers() | st.sampled_from(WORDS) | any_text
)


def json_values(scalars: Values = any_scalar, names: list[str] | None = None, leaves: int = 12) -> Values:
    known = st.sampled_from(names or NAMES)
    name = known | known | any_text
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(name, inner, max_size=5),
        max_leaves=leaves,
    )


anything: Values = any_scalar | json_values()


def settings_values(
    junk: Values = anything, *, words: Values = any_text, numbers: Values = any_number
) -> Values:
    """Settings as people write them, with junk in some of the places."""
    hooks = _often(_hooks(junk, words, numbers), junk)
    return _often(_object({"hooks": hooks}, _file(junk, words, numbers)), junk)


def _hooks(junk: Values, words: Values, numbers: Values) -> Values:
    entry = st.sampled_from([*SETTINGS_KINDS]).flatmap(lambda kind: _entry(kind, junk, words, numbers))
    matcher = st.sampled_from(["", "*", "Explore", "a|b", "^x", "("])
    group = _object({"hooks": _list(_often(entry, junk))}, {"matcher": _often(matcher, junk)})
    event = st.sampled_from([*EVENTS, "Stop", "SubagentStop", "stop", "Notification"])
    return st.dictionaries(event, _often(_list(_often(group, junk)), junk), max_size=3)


def _entry(kind: str, junk: Values, words: Values, numbers: Values) -> Values:
    body = SETTINGS_KINDS[kind].body
    others = {name: _often(good, junk) for name, good in _good(words).items()}
    others["timeout"] = _often(_seconds, numbers)
    must = {"type": _often(st.just(kind), junk), body: others[body]}
    rest = {name: value for name, value in others.items() if name not in must}
    return _object(must, {**rest, "colour": junk, "once": junk})


def _good(words: Values) -> Mapping[str, Values]:
    text = words.filter(is_text) | st.just("make")
    strings: Values = st.sampled_from([{}, {"A": "1"}])
    return {
        **{hook.body: text for hook in SETTINGS_KINDS.values()},
        "model": text,
        "id": text,
        "if": text,
        "statusMessage": text,
        "args": st.lists(text, max_size=2),
        "allowedEnvVars": st.lists(text, max_size=2),
        "env": strings | st.just("clean"),
        "passEnv": st.lists(st.sampled_from(["A", "B_1"]), max_size=2),
        "headers": strings,
        "shell": st.sampled_from(["sh", "bash"]),
        "mode": st.sampled_from(["gate", "observe"]),
        "gate": st.sampled_from([*GATES, "tets"]),
        "options": st.sampled_from([{}, {}, {"colour": 1}]),
        "strict": st.booleans(),
        "transcript": st.sampled_from(["none", "last", "digest", "full"]),
        "enabled": st.booleans(),
        "blocking": st.booleans(),
        "async": st.booleans(),
        "outcomes": st.lists(st.sampled_from(["ok", "error", "timeout"]), min_size=1, max_size=2),
    }


def _file(junk: Values, words: Values, numbers: Values) -> Mapping[str, Values]:
    text = words.filter(is_text) | st.just("x")
    per_event: Values = st.sampled_from(["parallel", "sequential", "first_block", "gate", "observe"])
    per_event |= st.dictionaries(st.sampled_from([*EVENTS]), per_event, max_size=2)
    seconds = _often(_seconds | st.just({"command": 1}), numbers)
    limits = st.dictionaries(st.sampled_from([*KINDS, *EVENTS]), seconds, max_size=2)
    good = {
        "limit": st.integers(0, 20),
        "hardLimit": st.integers(0, 20),
        "order": per_event,
        "mode": per_event,
        "payload": st.sampled_from(["full", "strict"]),
        "defaults": limits,
        "stopBudget": _often(_seconds, numbers),
        "model": text,
        "judge": text,
        "env": st.just("clean"),
        "passEnv": st.lists(st.sampled_from(["A", "B_1"]), max_size=2),
        "plugins": st.lists(text, max_size=2),
        "pluginDirs": st.lists(text, max_size=2),
        "allowedUrls": st.lists(text, max_size=2),
    }
    section = _object({}, {name: _often(value, junk) for name, value in good.items()})
    steers = _often(st.integers(0, 5), junk).map(
        lambda n: {"defaults": {"subagents": {"maxSteerRestarts": n}}}
    )
    env = st.dictionaries(st.sampled_from(["A", "B_1", "1C", ""]), _often(text, junk), max_size=2)
    return {
        "turngate": _often(section, junk),
        "disableAllHooks": _often(st.booleans(), junk),
        "env": _often(env, junk),
        "agents": _often(steers, junk),
    }


_seconds: Values = st.sampled_from([0.5, 1, 30, 1000])


def _often(good: Values, junk: Values) -> Values:
    """Good in most of the cases, so that one mistake does not stand among a hundred."""
    return st.integers(0, 5).flatmap(lambda number: junk if number == 5 else good)


def _list(items: Values) -> Values:
    return st.lists(items, max_size=3)


def _object(must: Mapping[str, Values], may: Mapping[str, Values] | None = None) -> Values:
    return st.fixed_dictionaries(dict(must), optional=dict(may or {}))
