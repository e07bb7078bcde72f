"""The settings of an editor that starts agents (ACP): an entry that starts one behind `turngate acp`. Pure: text → text."""

import os
from collections.abc import Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.hosts.install.json_text import (
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
    documentation: str
    further: Mapping[str, Any]  # what its entries have besides the command


EDITORS = {
    "zed": Editor(
        "zed",
        "Zed",
        "~/.config/zed/settings.json",
        "https://zed.dev/docs/ai/external-agents",
        {"type": "custom"},
    ),
    "jetbrains": Editor(
        "jetbrains",
        "JetBrains IDEs",
        "~/.jetbrains/acp.json",
        "https://www.jetbrains.com/help/ai-assistant/acp.html",
        {},
    ),
}


def plan_entry(text: str | None, name: str, entry: Mapping[str, Any], record: InstallRecord | None) -> Change:
    """Return the settings with the entry. Raises UnsuitableSettings."""
    root, before = _read(text or ""), text or ""
    style = style_of(before, root)
    servers = root.member(SERVERS) if root else None
    old = servers.node.member(name) if servers else None
    if root is None:
        start = style.newline if before and not before.endswith("\n") else ""
        after = (
            before
            + start
            + style.format((None, {SERVERS: {name: entry}}), before="", multiline=True)
            + style.newline
        )
    elif old and old.node.value == entry:
        return Change(text, text)
    elif old:
        after = apply_edits(before, [replace_value(before, old.node, entry, style)])
    elif servers:
        after = apply_edits(before, append_items(before, servers.node, [(name, entry)], style))
    else:
        after = apply_edits(before, append_items(before, root, [(SERVERS, {name: entry})], style))
    _read(after)
    if record and text is not None and record.restores(text):
        return Change(
            text,
            after,
            InstallRecord(record.before, (digest(text), digest(after)), record.created, record.folders),
        )
    created = frozenset() if servers else frozenset({(SERVERS,)})
    return Change(text, after, InstallRecord(text, (digest(after),), created))


def plan_removal(text: str | None, record: InstallRecord | None) -> Change:
    """Return the settings without the entries that start `turngate acp`. Raises UnsuitableSettings."""
    root = _read(text or "")
    servers = root.member(SERVERS) if root else None
    ours = [item for item in servers.node.items if _is_ours(item.node.value)] if servers else []
    if text is None or root is None or servers is None or not ours:
        return Change(text, text)
    if record and record.restores(text):
        return Change(text, record.before)
    is_created = record is not None and (SERVERS,) in record.created
    if is_created and len(ours) == len(servers.node.items):
        return Change(text, apply_edits(text, remove_items(text, root, [servers])))
    return Change(text, apply_edits(text, remove_items(text, servers.node, ours)))


def _is_ours(value: Any) -> bool:
    """Return whether an entry runs `turngate acp` or `python -m turngate acp`."""
    arguments = value.get("args") if isinstance(value, dict) else None
    words = [os.path.basename(str(value.get("command"))), *arguments] if isinstance(arguments, list) else []
    return ("turngate", "acp") in (tuple(words[:2]), tuple(words[2:4]))


def _read(text: str) -> Node | None:
    try:
        root = read_json_text(text)
    except NotJson as error:
        raise UnsuitableSettings(f"{error}; correct it there and run this again") from None
    servers = root.member(SERVERS) if root and isinstance(root.value, dict) else None
    if (root and not isinstance(root.value, dict)) or (servers and not isinstance(servers.node.value, dict)):
        raise UnsuitableSettings(f'it is not an object with an object as "{SERVERS}"')
    return root
