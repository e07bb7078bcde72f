"""Kimi Code: exit code 2 blocks, with the reason on stderr; its settings are TOML."""

import json
import re
from collections.abc import Mapping
from typing import Any

from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.hosts.host import INSTALLED_TIMEOUT_S, FileFormat, Host, write_exit_code

# A table with simple values, as `_add` writes it, and the blank line before it.
_TABLE = re.compile(
    r"(?m)^(?:[ \t]*\r?\n)?[ \t]*\[\[hooks\]\][ \t]*(?:\r?\n[ \t]*\w+[ \t]*=[^\r\n]*)+(?:\r?\n|\Z)"
)


def _tables(text: str) -> list[dict[str, Any]]:
    import tomllib  # noqa: PLC0415 # lazy: a stop reads no settings of the host

    tables = tomllib.loads(text).get("hooks", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ValueError('"hooks" is not an array of tables')
    return tables


def _read(text: str) -> Mapping[str, Any]:
    hooks: dict[str, list[dict[str, Any]]] = {}
    for table in _tables(text):
        hooks.setdefault(str(table.get("event")), []).append(table)
    return {"hooks": hooks}


def _add(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Add a table for each event at the end: the order of tables means nothing in TOML."""
    text = _remove(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [] if not text or text.endswith("\n") else [""]
    for event, entry in entries.items():
        values = {"event": event, **entry}
        # A JSON string of printable ASCII is a TOML string.
        lines += ["", "[[hooks]]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    added = text + newline.join([*(lines if text else lines[1:]), ""])
    _tables(added)  # `hooks = []` above would make it invalid
    return added


def _remove(text: str) -> str:
    return _TABLE.sub(lambda found: "" if _is_ours(found[0]) else found[0], text)


def _is_ours(table: str) -> bool:
    try:
        return all(is_hook_line(str(each.get("command"))) for each in _tables(table))
    except ValueError:  # a value with several lines
        return False


KIMI = Host(
    name="kimi",
    title="Kimi Code",
    version="2.1.0",
    events={"Stop": "Stop", "SessionStart": "SessionStart"},
    files={"user": "~/.kimi-code/config.toml"},
    file_format=FileFormat(read=_read, add=_add, remove=_remove),
    entry=lambda command: {"command": command, "timeout": INSTALLED_TIMEOUT_S},
    default_timeout_s=30,
    adds_heading=False,
    limit=1,
    folder_variable=("KIMI_CODE_HOME", "~/.kimi-code"),
    not_shown="at all: it shows nothing of a hook that lets the agent stop",
    limitations=(
        "It asks once in a turn: after a block, the next stop is not checked.",
        "A block is exit code 2 with the reason on stderr; it ignores `decision`.",
        "It has no answer that ends a turn: a hook that halts allows the stop.",
        "It cannot block at `SubagentStop`, so gates there are not asked; but it reports the stop of a subagent as `Stop` too, so gates of `Stop` are asked there.",
        "It has no settings of a project, and does not give a hook a transcript or the last message of the agent.",
        "It sets no variable in the commands of its agent, so Turngate does not recognize them: the agent could approve a hook, or play the start of a session.",
    ),
    documentation="https://moonshotai.github.io/kimi-code/en/customization/hooks.html",
    write_answer=write_exit_code,
)
