"""`make reference`: write the tables of docs/reference/settings.md and docs/reference/gate-options.md, and the list of decisions."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from turngate.core.dialect import TURNGATE
from turngate.core.hooks.kinds import KINDS, SETTINGS_KINDS
from turngate.core.settings import MergeRule, Settings
from turngate.gates.arguments import json_name, option_rows
from turngate.gates.gate import Gate, GateOption
from turngate.gates.library import GATES
from turngate.settings import key_table as keys
from turngate.subagents.limits import SubagentLimits

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
BEGIN = "<!-- {}: written by `make reference` -->\n"
END = "<!-- end of the written part -->\n"

# The page that says more about a key.
PAGES: Mapping[str, str] = {
    **dict.fromkeys(("gate", "options", "strict"), "hook-kinds.md#gate-hooks"),
    **dict.fromkeys(("url", "headers", "allowedEnvVars", "allowedUrls", *keys.RESTRICTIONS), "http-hooks.md"),
    **dict.fromkeys(("prompt", "model", "transcript", "judge"), "prompt-hooks.md"),
    **dict.fromkeys(("env", "passEnv"), "hook-input.md#clean-environment"),
    **dict.fromkeys(("timeout", "defaults"), "hook-kinds.md#timeouts"),
    **dict.fromkeys(("async", "asyncRewake"), "events.md#hooks-in-the-background"),
    **dict.fromkeys(("limit", "hardLimit"), "loop-guard.md"),
    **dict.fromkeys(("childrenAtOnce", "childrenDepth", "childSeconds"), "subagents.md#limits"),
    "if": "matchers.md#conditions",
    "outcomes": "subagents.md#when-a-subagent-says-that-it-is-done",
    "order": "../how-to/order.md",
    "pluginDirs": "plugins.md",
}
# Where several files set a key.
MERGES: Mapping[MergeRule, str] = {
    "last": "the last file",
    "union": "the last file, for each event",
    "any": "`true` in any file",
    "concat": "the lists are combined",
    "owners": "your list; without one, the projects' lists combined",
    "each": "every list must allow it",
    "ceiling": "a project can only lower it",
    "user": "only user settings can set it",
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = (f"| {' | '.join(cells)} |\n" for cells in (header, *rows))
    return next(body) + "|---" * len(header) + "|\n" + "".join(body)


def code(value: Any) -> str:
    """Return a default as it is written in JSON, or a dash for none."""
    match value:
        case None | () | dataclasses.MISSING:
            return "–"
        case dict() if not value:
            return "–"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return "`[" + ", ".join(f'"{item}"' for item in value) + "]`"
        case float():
            return f"{value:g}"
        case int():
            return str(value)
        case _:
            return f"`{value}`"


def words(text: str) -> str:
    """Return words in quotes, and the word before a colon, as code; without the default, which has its own column."""
    text = re.sub(r"; default [^.;]+", "", text).replace("|", r"\|")
    return re.sub(
        r'^([a-z]+)(?=:)|"(\w+)"|(?<=; )([a-z]+)(?=:)', lambda word: f"`{word[0].strip(chr(34))}`", text
    )


def meaning(name: str, key: keys.Key) -> str:
    text = words(key.type.schema["description"])
    return f"{text} [More]({PAGES[name]})" if name in PAGES else text


# --- settings ---------------------------------------------------------------------------------------------------------

_LIMITS = SubagentLimits()
_UNSET = Settings()
# Where a field holds None or nothing, and the default is decided elsewhere.
DEFAULTS: Mapping[str, Any] = {
    "limit": TURNGATE.limit,
    "hardLimit": TURNGATE.hard_limit,
    "order": _UNSET.order_of("Stop"),
    "mode": "gate",
    "childrenAtOnce": _LIMITS.at_once,
    "childrenDepth": _LIMITS.depth,
    "childSeconds": _LIMITS.seconds,
    "whenUserPending": "defer" if _UNSET.defers_to_user else "run",
}
HOOK_DEFAULTS: Mapping[str, Any] = {"shell": "sh", "transcript": "none", "mode": "gate"}


def hook_keys() -> str:
    kinds = ", ".join(f"`{kind}`" for kind in SETTINGS_KINDS)
    rows = [("`type`", f"one of {kinds}", "required", "all", "The [kind](hook-kinds.md) of the hook.")]
    for name, key in keys.HOOK_KEYS.items():
        owners = [kind for kind in key.kinds if kind in SETTINGS_KINDS]
        of = "all" if len(owners) == len(SETTINGS_KINDS) else ", ".join(owners)
        rows.append((f"`{name}`", words(key.type.expected), _hook_default(name, key), of, meaning(name, key)))
    return table(("key", "value", "default", "kinds", "meaning"), rows)


def _hook_default(name: str, key: keys.Key) -> str:
    if name in HOOK_DEFAULTS:
        return code(HOOK_DEFAULTS[name])
    if name == "timeout":
        return "by kind"
    fields = [
        field for kind in key.kinds for field in dataclasses.fields(KINDS[kind]) if field.name == key.field
    ]
    required = [field for field in fields if field.default is field.default_factory is dataclasses.MISSING]
    if required:
        return "required" if len(required) == len(fields) else "required, except for a gate"
    return code(fields[0].default)


def turngate_keys() -> str:
    rows = [
        (f"`{name}`", words(key.type.expected), _default(name, key), MERGES[key.merge], meaning(name, key))
        for name, key in keys.TURNGATE_KEYS.items()
    ]
    return table(("key", "value", "default", "in several files", "meaning"), rows)


def _default(name: str, key: keys.Key) -> str:
    return code(DEFAULTS.get(name, getattr(_UNSET, key.field)))


def restrictions() -> str:
    rows = [
        (f"`{name}`", words(key.type.expected), meaning(name, key)) for name, key in keys.RESTRICTIONS.items()
    ]
    return table(("key", "value", "meaning"), rows)


PARTS = {"keys of a hook": hook_keys, "restrictions": restrictions, "keys of turngate": turngate_keys}


def settings_page(page: str) -> str:
    """Return the page with the tables as they have to be."""
    for name, write in PARTS.items():
        begin = BEGIN.format(name)
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(END)
        if not found:
            raise SystemExit(f"settings.md does not have the marks {begin.strip()} and {END.strip()}")
        page = f"{before}{begin}\n{write()}\n{END}{after}"
    return page


# --- gates ------------------------------------------------------------------------------------------------------------

GATES_HEADING = """\
# Options of the gates

Every option of every [ready-made gate](../gates.md), as it is written in a gate hook: `{"type": "gate", "gate": "until", "options":
{"maxIterations": 20}}`. On the command line, `maxIterations` is `--max-iterations`; in Python, `max_iterations`. All gates also have the keys
of [a gate hook](hook-kinds.md#gate-hooks), such as `timeout` and `strict`. This page is written by `make reference`.
"""
COMMANDS = {"never": "", "optional": "It can run a `command`.", "required": "It needs a `command`."}
VALUES = {
    "flag": "true or false",
    "text": "a text",
    "number": "a number",
    "texts": "a text or a list of texts",
}


def gates_page() -> str:
    return GATES_HEADING + "".join(_gate_section(gate) for _, gate in sorted(GATES.items()))


def _gate_section(gate: Gate) -> str:
    sentences = (
        f"[{gate.summary[0].upper()}{gate.summary[1:]}](../gates/{gate.name}.md). {COMMANDS[gate.command]}"
    )
    rows = [
        (f"`{json_name(row)}`", VALUES[row.kind], _option_default(row), words(row.help))
        for row in option_rows(gate)
    ]
    options = "\n" + table(("option", "value", "default", "meaning"), rows) if rows else ""
    return f"\n## {gate.name}\n\n{sentences.strip()}\n{options}"


def _option_default(row: GateOption) -> str:
    if row.required:
        return "required"
    return code(bool(row.default) if row.kind == "flag" else row.default)


# --- decisions --------------------------------------------------------------------------------------------------------

DECISIONS = REFERENCE.parent / "decisions" / "README.md"
DECISIONS_HEADING = """\
# Decisions

Hard choices, half a page each: what was chosen, what else was considered, and why. A later decision may replace an earlier one.
This list is written by `make reference`.

"""


def decisions_page() -> str:
    files = sorted(DECISIONS.parent.glob("[0-9]*.md"))
    titles = ((path.name, path.read_text().partition("\n")[0].removeprefix("# ")) for path in files)
    return DECISIONS_HEADING + "".join(f"- [{title}]({name})\n" for name, title in titles)


if __name__ == "__main__":
    settings = REFERENCE / "settings.md"
    texts = {
        settings: settings_page(settings.read_text()),
        REFERENCE / "gate-options.md": gates_page(),
        DECISIONS: decisions_page(),
    }
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
        print(f"written   {path.relative_to(REFERENCE.parents[1])}")
