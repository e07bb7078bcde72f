"""Suggests the gate that does what many write by hand: any failure of a command blocks, a missing program does not."""

import json
import re
import shlex

from turngate.core.constants import STOP_EVENTS
from turngate.core.settings import Rule
from turngate.core.shell_syntax import read_commands

BLOCKS = "which blocks with the output as the reason"
_REDIRECTS = re.compile(r"(?:\s*(?:1?>&2|2>&1))+\s*$")


def suggests_gate(rule: Rule) -> bool:
    return rule.event in STOP_EVENTS


def gate_hint(rule: Rule, check: str, effect: str) -> str:
    """Return what to write for a command that decides by its exit code, and the effect of that.

    The other programs that read `.claude` and `.mux` know only commands.
    """
    check = _REDIRECTS.sub("", check).strip()
    entry = json.dumps({"type": "gate", "command": check}, ensure_ascii=False)
    if rule.family == "turngate":
        return f"write {entry}, {effect}"
    return f"write turngate gate -- {_as_words(check)}, {effect}; in .turngate/settings.json: {entry}"


def _as_words(check: str) -> str:
    """Return a command as arguments in a shell command; `turngate gate` gives one argument with blanks to a shell."""
    commands = read_commands(check)
    is_simple = commands.is_complete and len(commands.commands) == 1 and not commands.end
    only = commands.commands[0] if is_simple else None
    return check if only and not only.redirects and not only.assignments else shlex.quote(check)


def without_exit(text: str) -> str | None:
    """Return CHECK of `CHECK || exit 2` or `CHECK || { …; exit 2; }`; None for any other text, or one of several lines."""
    check, operator, _ = text.partition("||")
    is_only = operator and "||" not in text[len(check) + 2 :] and "\n" not in text.strip()
    return check.strip() or None if is_only else None
