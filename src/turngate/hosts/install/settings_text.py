"""The text of a host's settings with the line of Turngate, and without it. Pure: text → text."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.hosts.host import FileFormat
from turngate.hosts.install.json_text import Node, NotJson, read_json_text, rewrite

HOOKS = "hooks"
COMMAND_KEYS = ("command", "bash")  # of the entry of a hook


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


def add_lines(text: str, entries: Mapping[str, Mapping[str, Any]], others: Mapping[str, Any]) -> str:
    """Return the settings with one entry for each event; `others` are the keys that a file needs besides `hooks`.

    An entry that runs Turngate already is updated in its place. Raises UnsuitableSettings.
    """
    root = _read(text)
    value = root.value if root else {}
    value.update({key: each for key, each in others.items() if key not in value})
    hooks = value.setdefault(HOOKS, {})
    for event, entry in entries.items():
        groups = hooks.setdefault(event, [])
        if not isinstance(groups, list):
            raise UnsuitableSettings(f'"{event}" in "hooks" is {_kind(groups)}, expected a list of hooks')
        if ours := [each for each in _entries(groups) if _is_ours(each)]:
            _update(groups, ours[0], entry[HOOKS][0] if HOOKS in entry else entry)
            _remove_entries(groups, ours[1:])
        else:
            groups.append(entry)
    return _rewrite(text, root, value)


def add_hooks(text: str, event: str, hooks: Sequence[Mapping[str, Any]]) -> str:
    """Return the settings with further hooks of an event: in its last group, if that is for all of them, or in a new one.

    Raises UnsuitableSettings.
    """
    root = _read(text)
    value = root.value if root else {}
    groups = value.get(HOOKS, {}).get(event)
    last = groups[-1] if isinstance(groups, list) and groups else None
    if not isinstance(last, dict) or "matcher" in last or not isinstance(last.get(HOOKS), list):
        return add_lines(text, {event: {HOOKS: list(hooks)}}, {})
    last[HOOKS] += hooks
    return _rewrite(text, root, value)


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


def _rewrite(text: str, root: Node | None, value: Mapping[str, Any]) -> str:
    try:
        return rewrite(text, root, value)
    except NotJson as error:
        raise UnsuitableSettings(f"it cannot be changed safely ({error})") from None


# The entries of one event


def _entries(groups: Any) -> list[Any]:
    """Return the entries in the list of an event, those of groups too."""
    return [entry for item in groups for entry in _inner(item) or [item]] if isinstance(groups, list) else []


def _inner(item: Any) -> list[Any]:
    """Return the entries of a group; none for an entry that is in no group."""
    inner = item.get(HOOKS) if isinstance(item, dict) else None
    return inner if isinstance(inner, list) else []


def _is_ours(entry: Any) -> bool:
    return any(map(is_hook_line, _commands(entry)))


def _commands(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    arguments = value.get("args")
    words = [word for word in arguments if isinstance(word, str)] if isinstance(arguments, list) else []
    for key in COMMAND_KEYS:
        if isinstance(value.get(key), str):
            yield " ".join([shlex.quote(value[key]), *map(shlex.quote, words)]) if words else value[key]


def _update(groups: list[Any], entry: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    """Give an entry these values; its other keys stay, if they do not say what to run."""
    runs = {*COMMAND_KEYS, "args"}
    if runs & entry.keys() == runs & wanted.keys():
        entry.update(wanted)
        return
    for holder in (groups, *map(_inner, groups)):
        holder[:] = [wanted if each is entry else each for each in holder]


def _remove_entries(groups: list[Any], removed: Sequence[Any]) -> None:
    """Remove entries, and the groups that hold nothing else."""
    gone = set(map(id, removed))

    def is_kept(item: Any) -> bool:
        if not (inner := _inner(item)):
            return id(item) not in gone
        inner[:] = [entry for entry in inner if id(entry) not in gone]
        return bool(inner)

    groups[:] = filter(is_kept, groups)


# Remove


def remove_lines(text: str, others: Mapping[str, Any], before: str | None) -> str:
    """Return the settings without the lines of Turngate, and without what `add_lines` has created and is empty now.

    `before`: the text before it, "" for no file. If that is not known (None), every container that becomes empty is
    removed. Raises UnsuitableSettings.
    """
    root, earlier = _read(text), _read(before or "")
    if root is None or HOOKS not in root.value:
        return text
    value, was = root.value, earlier.value if earlier else {}
    hooks = value[HOOKS]
    for event, groups in [*hooks.items()]:
        if ours := [each for each in _entries(groups) if _is_ours(each)]:
            _remove_entries(groups, ours)
            if not groups and event not in was.get(HOOKS, {}):
                del hooks[event]
    if not hooks and HOOKS not in was:
        del value[HOOKS]
    # With hooks that were added later, a file needs what it needed with ours.
    if before is not None and (HOOKS in was or HOOKS not in value):
        for key in others.keys() - was.keys():
            value.pop(key, None)
    if value or earlier or before is None:
        return _rewrite(text, root, value)
    rest = text[root.end :]
    return text[: root.start] + rest.removeprefix("\r\n" if rest.startswith("\r") else "\n")


# Look


def hook_lines(text: str, file_format: FileFormat | None = None) -> dict[str, list[str]]:
    """Return the commands that run Turngate, by the name of the event in the host. Raises UnsuitableSettings."""
    if file_format:
        value = in_format(file_format.read, text)
    else:
        root = _read(text)
        value = root.value if root else {}
    found = {
        event: [line for entry in _entries(groups) for line in _commands(entry) if is_hook_line(line)]
        for event, groups in value.get(HOOKS, {}).items()
    }
    return {event: lines for event, lines in found.items() if lines}
