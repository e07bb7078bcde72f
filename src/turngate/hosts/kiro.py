"""Kiro: a file of its own for the hooks of one tool, with a list of them. From its documentation; not run."""

import json
from collections.abc import Mapping
from typing import Any

from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.hosts.host import INSTALLED_TIMEOUT_S, FileFormat, Host, write_portable_answer


def _hooks(text: str) -> list[dict[str, Any]]:
    value = json.loads(text) if text.strip() else {}
    hooks = value.get("hooks", []) if isinstance(value, dict) else None
    if not isinstance(hooks, list) or not all(isinstance(hook, dict) for hook in hooks):
        raise ValueError('expected an object with a list "hooks" of objects')
    return hooks


def _action(hook: Mapping[str, Any]) -> Mapping[str, Any]:
    action = hook.get("action")
    return action if isinstance(action, dict) else {}


def _read(text: str) -> Mapping[str, Any]:
    hooks: dict[str, list[Mapping[str, Any]]] = {}
    for hook in _hooks(text):
        hooks.setdefault(str(hook.get("trigger")), []).append({**hook, **_action(hook)})
    return {"hooks": hooks}


def _add(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    new = [{"name": f"turngate-{event}", "trigger": event, **entry} for event, entry in entries.items()]
    return _format([*_others(text), *new])


def _remove(text: str) -> str:
    return _format(hooks) if (hooks := _others(text)) else ""


def _others(text: str) -> list[dict[str, Any]]:
    return [hook for hook in _hooks(text) if not is_hook_line(str(_action(hook).get("command")))]


def _format(hooks: list[dict[str, Any]]) -> str:
    return json.dumps({"version": "v1", "hooks": hooks}, indent=2) + "\n"


KIRO = Host(
    name="kiro",
    title="Kiro",
    events={"Stop": "Stop"},
    files={"user": "~/.kiro/hooks/turngate.json", "project": ".kiro/hooks/turngate.json"},
    file_format=FileFormat(read=_read, add=_add, remove=_remove),
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
