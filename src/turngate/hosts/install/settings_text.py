"""The text of a host's settings with the line of Turngate, and without it. Pure: text → text."""

import json
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from turngate._frozen_dataclass import frozen
from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.hosts.host import FileFormat
from turngate.hosts.install.json_text import (
    BLANKS,
    Edit,
    Item,
    Node,
    NotJson,
    TextStyle,
    append_items,
    apply_edits,
    read_json_text,
    remove_items,
    replace_value,
    style_of,
)

HOOKS = "hooks"
COMMAND_KEYS = ("command", "bash")  # of the entry of a hook

Path = tuple[str, ...]  # the keys that lead to a value; () is the whole text


class UnsuitableSettings(ValueError):
    """Raised for settings that cannot hold hooks; the message says what is wrong, without the name of the file."""


_P = ParamSpec("_P")
_T = TypeVar("_T")


def in_format(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function that reads a text of settings, such as that of a `FileFormat`. Raises UnsuitableSettings."""
    try:
        return function(*args, **kwargs)
    except ValueError as error:
        raise UnsuitableSettings(f"{error}; correct it there and run this again") from None


@frozen
class AddedLines:
    """Settings with the lines of Turngate."""

    text: str
    created: frozenset[Path]  # what was not there before, and is removed with the lines


def add_lines(text: str, entries: Mapping[str, Mapping[str, Any]], others: Mapping[str, Any]) -> AddedLines:
    """Return the settings with one entry for each event; `others` are the keys that a file needs besides `hooks`.

    An entry that runs Turngate already is updated in its place. Raises UnsuitableSettings.
    """
    root = _read(text)
    style = style_of(text, root)
    new: dict[str, Any] = {HOOKS: {event: [entry] for event, entry in entries.items()}}
    if root is None:  # it holds only blanks and comments
        value = {**others, **new}
        start = style.newline if text.strip(BLANKS) and not text.endswith(("\n", "\r")) else ""
        paths: list[Path] = [(), *((key,) for key in value), *((HOOKS, event) for event in entries)]
        whole = style.format((None, value), before="", multiline=True)
        return AddedLines(text + start + whole + style.newline, frozenset(paths))
    missing = {key: value for key, value in others.items() if root.member(key) is None}
    created: list[Path] = [(key,) for key in missing]
    edits: list[Edit] = []
    if hooks := root.member(HOOKS):
        added = [event for event in entries if hooks.node.member(event) is None]
        created += [(HOOKS, event) for event in added]
        edits += append_items(text, hooks.node, [(event, new[HOOKS][event]) for event in added], style)
        for event in entries:
            if member := hooks.node.member(event):
                edits += _add_to_list(text, member, entries[event], style)
    else:
        created += [(HOOKS,), *((HOOKS, event) for event in entries)]
        missing |= new
    edits += append_items(text, root, [*missing.items()], style)
    return AddedLines(_checked(apply_edits(text, edits)), frozenset(created))


def add_hooks(text: str, event: str, hooks: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings with further hooks of an event: in its last group, if that is for all of them, or in a new one.

    Raises UnsuitableSettings.
    """
    root = _read(text)
    found = root.member(HOOKS) if root else None
    groups = found.node.member(event) if found else None
    items = groups.node.items if groups and isinstance(groups.node.value, list) else ()
    last = items[-1].node if items else None
    is_for_all = last and isinstance(last.value, dict) and "matcher" not in last.value
    inner = last.member(HOOKS) if last and is_for_all else None
    if inner is None or not isinstance(inner.node.value, list):
        return add_lines(text, {event: {HOOKS: list(hooks)}}, {}).text
    edits = append_items(text, inner.node, [(None, hook) for hook in hooks], style_of(text, root))
    return _checked(apply_edits(text, edits))


def _read(text: str) -> Node | None:
    """Return the value of settings, or None for a text without a value."""
    root = in_format(read_json_text, text)
    if root is None:
        return None
    if not isinstance(root.value, dict):
        raise UnsuitableSettings(f"it holds {_kind(root.value)}, expected an object")
    if (hooks := root.member(HOOKS)) and not isinstance(hooks.node.value, dict):
        raise UnsuitableSettings(f'"hooks" is {_kind(hooks.node.value)}, expected an object')
    return root


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
    return kinds.get(type(value), "a number")


def _checked(text: str) -> str:
    """Make sure that an edit has not broken the text: comments in unusual places are the risk."""
    try:
        read_json_text(text)
    except NotJson as error:
        raise UnsuitableSettings(f"it cannot be changed safely ({error})") from None
    return text


# The entries of one event


@frozen
class _Entry:
    """The entry of a hook in the list of an event, or in a group of that list."""

    item: Item  # of the list
    inner: Item | None  # of the group

    @property
    def node(self) -> Node:
        return (self.inner or self.item).node

    @property
    def is_ours(self) -> bool:
        return any(map(is_hook_line, _commands(self.node.value)))


def _entries(node: Node) -> Iterator[_Entry]:
    for item in node.items if isinstance(node.value, list) else ():
        group = item.node.member(HOOKS) if isinstance(item.node.value, dict) else None
        if group and group.node.items and isinstance(group.node.value, list):
            yield from (_Entry(item, inner) for inner in group.node.items)
        else:
            yield _Entry(item, None)


def _commands(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    arguments = value.get("args")
    words = [word for word in arguments if isinstance(word, str)] if isinstance(arguments, list) else []
    for key in COMMAND_KEYS:
        if isinstance(value.get(key), str):
            yield " ".join([shlex.quote(value[key]), *map(shlex.quote, words)]) if words else value[key]


def _add_to_list(text: str, member: Item, entry: Mapping[str, Any], style: TextStyle) -> list[Edit]:
    node = member.node
    if not isinstance(node.value, list):
        kind = _kind(node.value)
        raise UnsuitableSettings(f'"{member.key}" in "hooks" is {kind}, expected a list of hooks')
    ours = [each for each in _entries(node) if each.is_ours]
    if not ours:
        return append_items(text, node, [(None, entry)], style)
    first, *others = ours
    wanted = entry[HOOKS][0] if HOOKS in entry else entry
    return [*_update(text, first.node, wanted, style), *_remove_entries(text, node, others)]


def _update(text: str, node: Node, wanted: Mapping[str, Any], style: TextStyle) -> list[Edit]:
    """Return the edits that give an entry these values; its other keys stay, if they do not say what to run."""
    runs = {*COMMAND_KEYS, "args"}
    if runs & node.value.keys() != runs & wanted.keys():
        return [replace_value(text, node, wanted, style)]
    missing = {key: value for key, value in wanted.items() if key not in node.value}
    edits = append_items(text, node, [*missing.items()], style)
    for key, value in wanted.items():
        if (item := node.member(key)) and item.node.value != value:
            edits.append(replace_value(text, item.node, value, style))
    return edits


# Remove


def remove_lines(text: str, created: Collection[Path] | None) -> str:
    """Return the settings without the lines of Turngate, and without what `add_lines` has created and is empty now.

    If that is not known (None), every container that becomes empty is removed. Raises UnsuitableSettings.
    """
    root = _read(text)
    hooks = root.member(HOOKS) if root else None
    if root is None or hooks is None:
        return text
    ours = {id(item): [each for each in _entries(item.node) if each.is_ours] for item in hooks.node.items}
    events = [item for item in hooks.node.items if ours[id(item)]]
    emptied = [item for item in events if len(ours[id(item)]) == len([*_entries(item.node)])]
    gone = [item for item in emptied if created is None or (HOOKS, item.key) in created]
    created_keys = {path[0] for path in created or () if len(path) == 1}
    if len(gone) == len(hooks.node.items) and (created is None or (HOOKS,) in created):
        removed = [item for item in root.items if item.key in {HOOKS, *created_keys}]
        if len(removed) < len(root.items) or created is None or () not in created:
            return _checked(apply_edits(text, remove_items(text, root, removed)))
        rest = text[root.end :]
        rest = rest.removeprefix("\r\n" if rest.startswith("\r") else "\n")
        return _checked(text[: root.start] + rest)
    # With hooks that were added later, a file needs what it needed with ours.
    others = [item for item in root.items if item.key in created_keys and HOOKS not in created_keys]
    kept = (item for item in events if item not in gone)
    edits = [edit for item in kept for edit in _remove_entries(text, item.node, ours[id(item)])]
    edits += [*remove_items(text, hooks.node, gone), *remove_items(text, root, others)]
    return _checked(apply_edits(text, edits))


def _remove_entries(text: str, node: Node, removed: Sequence[_Entry]) -> list[Edit]:
    """Return the edits that remove entries, and the groups that hold nothing else."""
    kept = [entry for entry in _entries(node) if entry not in removed]
    gone = [entry.item for entry in removed if not any(entry.item is other.item for other in kept)]
    edits = remove_items(text, node, gone)
    for item in node.items:
        inner = [entry.inner for entry in removed if entry.item is item and entry.inner and item not in gone]
        if group := item.node.member(HOOKS) if inner else None:
            edits += remove_items(text, group.node, inner)
    return edits


# Look


def hook_lines(text: str, file_format: FileFormat | None = None) -> dict[str, list[str]]:
    """Return the commands that run Turngate, by the name of the event in the host. Raises UnsuitableSettings."""
    if file_format:
        text = json.dumps(in_format(file_format.read, text), default=str)
    root = _read(text)
    hooks = root.member(HOOKS) if root else None
    found: dict[str, list[str]] = {}
    for item in hooks.node.items if hooks else ():
        commands = (command for entry in _entries(item.node) for command in _commands(entry.node.value))
        found[str(item.key)] = list(filter(is_hook_line, commands))
    return {event: lines for event, lines in found.items() if lines}
