"""The settings of an editor that starts agents (ACP): an entry that starts one behind `turngate acp`. Pure: text → text."""

import os
from collections.abc import Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.hosts.install.json_text import (
    Edit,
    Item,
    Node,
    NotJson,
    append_items,
    apply_edits,
    read_json_text,
    remove_items,
    replace_value,
    style_of,
)
from turngate.hosts.install.settings_file import Change, InstallRecord, digest
from turngate.hosts.install.settings_text import UnsuitableSettings

SERVERS = "agent_servers"


@frozen
class Editor:
    name: str  # on the command line
    title: str
    file: str  # below home
    further: Mapping[str, Any]  # what its entries have besides the command


EDITORS = {
    "zed": Editor("zed", "Zed", "~/.config/zed/settings.json", {"type": "custom"}),
    "jetbrains": Editor("jetbrains", "JetBrains IDEs", "~/.jetbrains/acp.json", {}),
}


def plan_entry(text: str | None, name: str, entry: Mapping[str, Any], record: InstallRecord | None) -> Change:
    """Return the settings with the entry. Raises UnsuitableSettings."""
    before = text or ""
    root, servers = _read(before)
    style = style_of(before, root)
    old = servers.node.member(name) if servers else None
    if root is None:
        edits = [
            Edit(
                len(before),
                len(before),
                style.format((None, {SERVERS: {name: entry}}), before="", multiline=True) + style.newline,
            )
        ]
    elif old:
        edits = [replace_value(before, old.node, entry, style)] if old.node.value != entry else []
    elif servers:
        edits = append_items(before, servers.node, [(name, entry)], style)
    else:
        edits = append_items(before, root, [(SERVERS, {name: entry})], style)
    after = apply_edits(before, edits)
    if after == text:
        return Change(text, text)
    _read(after)
    if record and text is not None and record.restores(text):
        kept = InstallRecord(record.before, (digest(text), digest(after)), record.created, record.folders)
        return Change(text, after, kept)
    created = frozenset() if servers else frozenset({(SERVERS,)})
    return Change(text, after, InstallRecord(text, (digest(after),), created))


def plan_removal(text: str | None, record: InstallRecord | None) -> Change:
    """Return the settings without the entries that start `turngate acp`. Raises UnsuitableSettings."""
    root, servers = _read(text or "")
    ours = [item for item in servers.node.items if _is_ours(item.node.value)] if servers else []
    if text is None or root is None or servers is None or not ours:
        return Change(text, text)
    if record and record.restores(text):
        return Change(text, record.before)
    is_created = record is not None and (SERVERS,) in record.created and len(ours) == len(servers.node.items)
    edits = remove_items(text, *((root, [servers]) if is_created else (servers.node, ours)))
    return Change(text, apply_edits(text, edits))


def _is_ours(value: Any) -> bool:
    """Return whether an entry runs `turngate acp` or `python -m turngate acp`."""
    arguments = value.get("args") if isinstance(value, dict) else None
    words = [os.path.basename(str(value.get("command"))), *arguments] if isinstance(arguments, list) else []
    return ("turngate", "acp") in (tuple(words[:2]), tuple(words[2:4]))


def _read(text: str) -> tuple[Node | None, Item | None]:
    """Return the whole value, and the member with the agents."""
    try:
        root = read_json_text(text)
    except NotJson as error:
        raise UnsuitableSettings(f"{error}; correct it there and run this again") from None
    servers = root.member(SERVERS) if root else None
    if not all(isinstance(node.value, dict) for node in (root, servers and servers.node) if node):
        raise UnsuitableSettings(f'it is not an object with an object as "{SERVERS}"')
    return root, servers
