"""Editors that start agents (ACP), as hosts: an entry in their settings starts an agent behind `turngate acp`."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

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
_SUFFIX = ", checked by Turngate"  # of the names of our agents


def agent_entry(editor: Host, program: str, agent: str) -> dict[str, Mapping[str, Any]]:
    """Return the entry that starts an agent, under a name. Raises ValueError for quotes without an end."""
    return {agent + _SUFFIX: editor.entry(f"{program} acp -- {agent}")}


def _entry(line: str) -> Mapping[str, Any]:
    command, *arguments = shlex.split(line)
    return {"command": command, "args": arguments, "env": {}}


def _read(text: str) -> Mapping[str, Any]:
    """Return what runs at the stops of our agents."""
    agents = _agents(read_json_text(text))
    return {"hooks": {str(item.key): [{"command": "turngate hook"}] for item in _ours(agents)}}


def _ours(agents: Item | None) -> list[Item]:
    return [item for item in agents.node.items if str(item.key).endswith(_SUFFIX)] if agents else []


def _add(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    root = read_json_text(text)
    if root is None:
        return _add(f"{text}\n{{}}\n".lstrip("\n"), entries)
    [(name, entry)] = entries.items()
    style, agents = style_of(text, root), _agents(root)
    if agents is None:
        edits = append_items(text, root, [(SERVERS, entries)], style)
    elif old := agents.node.member(name):
        edits = [replace_value(text, old.node, entry, style)] if old.node.value != entry else []
    else:
        edits = append_items(text, agents.node, [(name, entry)], style)
    added = apply_edits(text, edits)
    _read(added)  # comments in unusual places are the risk
    return added


def _remove(text: str) -> str:
    root = read_json_text(text)
    agents = _agents(root)
    if root is None or agents is None:
        return text
    ours = _ours(agents)
    is_all = len(ours) == len(agents.node.items)
    edits = remove_items(text, root, [agents]) if is_all else remove_items(text, agents.node, ours)
    return apply_edits(text, edits)


def _agents(root: Node | None) -> Item | None:
    agents = root.member(SERVERS) if root else None
    if any(node and not isinstance(node.value, dict) for node in (root, agents and agents.node)):
        raise ValueError(f'it is not an object with an object as "{SERVERS}"')
    return agents


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
