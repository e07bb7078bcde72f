"""Editors that start agents (ACP), as hosts: an entry in their settings starts an agent behind `turngate acp`."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate.hosts.all_hosts import ACP
from turngate.hosts.host import FileFormat, Host
from turngate.hosts.install.json_text import Node, read_json_text, rewrite

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
    _, agents = _agents(text)
    ours = (name for name in agents if name.endswith(_SUFFIX))
    return {"hooks": {name: [{"command": "turngate hook"}] for name in ours}}


def _add(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    root, agents = _agents(text)
    agents.update(entries)
    value = root.value if root else {}
    value[SERVERS] = agents
    return rewrite(text, root, value)


def _remove(text: str) -> str:
    root, agents = _agents(text)
    for name in [name for name in agents if name.endswith(_SUFFIX)]:
        del agents[name]
    if root is None:
        return text
    if not agents:
        root.value.pop(SERVERS, None)
    return rewrite(text, root, root.value)


def _agents(text: str) -> tuple[Node | None, dict[str, Any]]:
    root = read_json_text(text)
    value = root.value if root else {}
    agents = value.get(SERVERS, {}) if isinstance(value, dict) else None
    if not isinstance(agents, dict):
        raise ValueError(f'it is not an object with an object as "{SERVERS}"')
    return root, agents


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
