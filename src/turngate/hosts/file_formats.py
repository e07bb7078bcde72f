"""The hosts whose settings have a format of their own: Kimi Code, Kiro and OpenCode."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.hosts.host import (
    INSTALLED_TIMEOUT_S,
    FileFormat,
    Host,
    with_halt_as_notice,
    write_claude_answer,
    write_exit_code,
    write_portable_answer,
)

# Kimi Code: exit code 2 blocks, with the reason on stderr; its settings are TOML.

# A table with simple values, as `_add_kimi` writes it, and the blank line before it.
_TABLE = re.compile(
    r"(?m)^(?:[ \t]*\r?\n)?[ \t]*\[\[hooks\]\][ \t]*(?:\r?\n[ \t]*\w+[ \t]*=[^\r\n]*)+(?:\r?\n|\Z)"
)


def _tables(text: str) -> list[dict[str, Any]]:
    import tomllib  # noqa: PLC0415 # lazy: a stop reads no settings of the host

    tables = tomllib.loads(text).get("hooks", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ValueError('"hooks" is not an array of tables')
    return tables


def _read_kimi(text: str) -> Mapping[str, Any]:
    hooks: dict[str, list[dict[str, Any]]] = {}
    for table in _tables(text):
        hooks.setdefault(str(table.get("event")), []).append(table)
    return {"hooks": hooks}


def _add_kimi(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Add a table for each event at the end: the order of tables means nothing in TOML."""
    text = _remove_kimi(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [] if not text or text.endswith("\n") else [""]
    for event, entry in entries.items():
        values = {"event": event, **entry}
        # A JSON string of printable ASCII is a TOML string.
        lines += ["", "[[hooks]]", *(f"{key} = {json.dumps(value)}" for key, value in values.items())]
    added = text + newline.join([*(lines if text else lines[1:]), ""])
    _tables(added)  # `hooks = []` above would make it invalid
    return added


def _remove_kimi(text: str) -> str:
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
    file_format=FileFormat(read=_read_kimi, add=_add_kimi, remove=_remove_kimi),
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


# Kiro: a file of its own for the hooks of one tool, with a list of them. From its documentation; not run.


def _hooks(text: str) -> list[dict[str, Any]]:
    value = json.loads(text) if text.strip() else {}
    hooks = value.get("hooks", []) if isinstance(value, dict) else None
    if not isinstance(hooks, list) or not all(isinstance(hook, dict) for hook in hooks):
        raise ValueError('expected an object with a list "hooks" of objects')
    return hooks


def _action(hook: Mapping[str, Any]) -> Mapping[str, Any]:
    action = hook.get("action")
    return action if isinstance(action, dict) else {}


def _read_kiro(text: str) -> Mapping[str, Any]:
    hooks: dict[str, list[Mapping[str, Any]]] = {}
    for hook in _hooks(text):
        hooks.setdefault(str(hook.get("trigger")), []).append({**hook, **_action(hook)})
    return {"hooks": hooks}


def _add_kiro(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    new = [{"name": f"turngate-{event}", "trigger": event, **entry} for event, entry in entries.items()]
    return _format([*_others(text), *new])


def _others(text: str) -> list[dict[str, Any]]:
    return [hook for hook in _hooks(text) if not is_hook_line(str(_action(hook).get("command")))]


def _format(hooks: list[dict[str, Any]]) -> str:
    return json.dumps({"version": "v1", "hooks": hooks}, indent=2) + "\n"


KIRO = Host(
    name="kiro",
    title="Kiro",
    events={"Stop": "Stop"},
    files={"user": "~/.kiro/hooks/turngate.json", "project": ".kiro/hooks/turngate.json"},
    file_format=FileFormat(
        read=_read_kiro, add=_add_kiro, remove=lambda text: _format(hooks) if (hooks := _others(text)) else ""
    ),
    entry=lambda command: {
        "action": {"type": "command", "command": command},
        "timeout": INSTALLED_TIMEOUT_S,
        "enabled": True,
    },
    default_timeout_s=60,
    adds_heading=False,
    programs=("kiro-cli", "kiro"),
    not_shown="at all: it documents no field for them",
    limitations=(
        "In version 2 of its command line, a stop cannot be blocked; version 3 and Kiro 1.0 read this file.",
        "It has no answer that ends a turn: a hook that halts allows the stop.",
        "It documents no event for the stop of a subagent, so subagents are not checked.",
    ),
    documentation="https://kiro.dev/docs/hooks/types",
    write_answer=write_portable_answer,  # it documents no field for notices: they go to stderr, and to the journal
)


# OpenCode: a plugin asks `turngate hook` when its agent is idle, and prompts the agent again with the reason.


_COMMAND = "const COMMAND = "  # the beginning of the line with the words that start Turngate
_EVENTS = {"Stop": "session.idle", "SessionStart": "chat.message"}


def _read_opencode(text: str) -> Mapping[str, Any]:
    found = (line for line in text.splitlines() if line.startswith(_COMMAND))
    words = json.loads(next(found, _COMMAND + "[]").removeprefix(_COMMAND))
    entry = {"command": shlex.join(map(str, words))}
    return {"hooks": {event: [entry] for event in _EVENTS.values()} if words else {}}


def _add_opencode(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    if text.strip() and not _read_opencode(text)["hooks"]:
        raise ValueError("it is another plugin with the name of this one; rename it")
    from importlib.resources import files  # noqa: PLC0415 # lazy: it takes longer to load than all hosts, and only `install` needs it

    words = shlex.split(next(iter(entries.values()))["command"])
    plugin = files("turngate.hosts").joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    return plugin.replace(f"{_COMMAND}[]", _COMMAND + json.dumps(words))


OPENCODE = Host(
    name="opencode",
    title="OpenCode",
    version="1.18.33",
    events=_EVENTS,
    files={
        "user": "~/.config/opencode/plugins/turngate.js",
        "project": ".opencode/plugins/turngate.js",
    },
    file_format=FileFormat(read=_read_opencode, add=_add_opencode, remove=lambda _text: ""),
    entry=lambda command: {"command": command},
    adds_heading=False,
    folder_variable=("XDG_CONFIG_HOME", "~/.config"),
    agent_variable="OPENCODE",
    limitations=(
        "It has no stop hook: the plugin waits until the agent is idle, and then prompts it with the reason, as a message of the user.",
        "`opencode run` has printed its answer and is about to exit by then. It waits for the plugin, which prints the further answers; versions that do not wait lose the block.",
        "In `opencode acp`, the plugin does nothing, because the turn of the editor has ended by then: `turngate acp -- opencode acp` asks the gates there.",
        "The stop of a subagent cannot be blocked, so subagents are not checked.",
        "It has no answer that ends a turn: a hook that halts allows the stop.",
        "It does not give a hook a transcript.",
        "`opencode --pure` runs no plugins.",
    ),
    documentation="https://opencode.ai/docs/plugins",
    write_answer=lambda answer: write_claude_answer(with_halt_as_notice(answer)),
)
