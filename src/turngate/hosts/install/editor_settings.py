"""Editors that start agents (ACP), as hosts: an entry in their settings starts an agent behind `turngate acp`."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.hosts.all_hosts import ACP
from turngate.hosts.host import FileFormat, Host
from turngate.hosts.install.json_text import (
    Item,
    Node,
    append_items,
    apply_edits,
    read_json_text,
    remove_items,
    replace_value,
    style_of,
)

SERVERS = "agent_servers"


def agent_entry(editor: Host, program: str, agent: str) -> dict[str, Mapping[str, Any]]:
    """Return the entry that starts an agent, under its name."""
    name = os.path.basename(shlex.split(agent)[0])
    return {f"{name}, checked by Turngate": editor.entry(f"{program} acp -- {agent}")}


def _entry(line: str) -> Mapping[str, Any]:
    command, *arguments = shlex.split(line)
    return {"command": command, "args": arguments, "env": {}}


def _read(text: str) -> Mapping[str, Any]:
    """Return for each agent what runs at its stops: `turngate hook`, if it is behind `turngate acp`."""
    agents = _parse(text)[2].items
    return {"hooks": {str(agent.key): [{"command": _stop_command(agent)}] for agent in agents}}


def _stop_command(agent: Item) -> str:
    entry = agent.node.value if isinstance(agent.node.value, dict) else {}
    arguments = entry.get("args")
    if not isinstance(arguments, list) or "acp" not in arguments:
        return ""
    return shlex.join(map(str, (entry.get("command"), *arguments[: arguments.index("acp")], "hook")))


def _add(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    text, root, servers = _parse(text)
    [(name, entry)] = entries.items()
    style, old = style_of(text, root), servers.member(name)
    if servers is _NONE:
        edits = append_items(text, root, [(SERVERS, entries)], style)
    elif old:
        edits = [replace_value(text, old.node, entry, style)] if old.node.value != entry else []
    else:
        edits = append_items(text, servers, [(name, entry)], style)
    added = apply_edits(text, edits)
    _parse(added)  # comments in unusual places are the risk
    return added


def _remove(text: str) -> str:
    text, root, servers = _parse(text)
    ours = [agent for agent in servers.items if is_hook_line(_stop_command(agent))]
    is_emptied = len(ours) == len(servers.items)
    removed = [item for item in root.items if item.node is servers] if is_emptied else ours
    return apply_edits(text, remove_items(text, root if is_emptied else servers, removed))


_NONE = Node(0, 0, {})


def _parse(text: str) -> tuple[str, Node, Node]:
    """Return the text, which has an object at least, with its value and that of its agents. Raises ValueError."""
    root = read_json_text(text)
    if root is None:
        return _parse(f"{text}\n{{}}\n".lstrip("\n"))
    servers = item.node if (item := root.member(SERVERS)) else _NONE
    if not isinstance(root.value, dict) or not isinstance(servers.value, dict):
        raise ValueError(f'it is not an object with an object as "{SERVERS}"')
    return text, root, servers


_EDITOR = replace(ACP, entry=_entry, file_format=FileFormat(read=_read, add=_add, remove=_remove))
EDITORS = {
    "zed": replace(
        _EDITOR,
        name="zed",
        title="Zed",
        files={"user": "~/.config/zed/settings.json"},
        folder_variable=("XDG_CONFIG_HOME", "~/.config"),
        entry=lambda line: {"type": "custom", **_entry(line)},
    ),
    "jetbrains": replace(
        _EDITOR, name="jetbrains", title="JetBrains IDEs", files={"user": "~/.jetbrains/acp.json"}
    ),
}
