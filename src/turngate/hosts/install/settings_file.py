"""The settings of a host with the line of Turngate and without it: their text, the file, and the record that undoes it."""

import contextlib
import hashlib
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from turngate._frozen_dataclass import frozen
from turngate.core.hooks.turngate_hook_command import is_hook_line
from turngate.errors import UsageError
from turngate.hosts.host import FileFormat, Host
from turngate.hosts.install.json_text import BLANKS, Node, NotJson, read_json_text, rewrite
from turngate.project.safe_paths import real_path
from turngate.settings.parse import UnreadableFile, read_utf8
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.state.files import make_private_dir, open_regular_file, wait_for_lock, write_and_rename

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


# The file

MAX_BYTES = 8 * 1024 * 1024
LOCK_TIMEOUT_S = 10.0
UNCHANGED = "nothing was changed"


class ChangedMeanwhile(UsageError):
    """Another process has changed the file after it was read."""


def read_settings_text(path: str) -> str | None:
    """Return the text of a file, with its line ends and byte order mark, or None if there is none. Raises UsageError."""
    try:
        return read_utf8(path, max_bytes=MAX_BYTES)
    except FileNotFoundError:
        return None
    except UnreadableFile as error:
        raise _unusable(path, str(error)) from None


def _unusable(path: str, why: str) -> UsageError:
    return UsageError(f"{path} {why}; {UNCHANGED}")


def check_owner(path: str) -> None:
    """Raise UsageError for a file that is another user's, or that its owner has protected."""
    if not os.path.exists(path):
        return
    if os.stat(path).st_uid != os.geteuid():
        raise _unusable(path, "belongs to another user")
    if not os.access(path, os.W_OK):
        raise _unusable(path, "is not writable")


def replace_settings_text(
    path: str,
    before: str | None,
    after: str | None,
    *,
    prepare: Callable[[list[str]], None] = lambda _folders: None,
) -> None:
    """Replace the text of a file, or create (`before` is None) or remove it (`after` is None).

    A link stays, and its target is replaced. `prepare` is called with the folders that were made, when it is certain that
    this process writes. Raises OSError, or ChangedMeanwhile if the text is not `before`, and then leaves nothing behind.
    """
    target = real_path(path)
    with _with_folders(path) as folders, _locked(os.path.dirname(target)):
        if read_settings_text(path) != before:
            why = f"has changed after it was read; {UNCHANGED}, run the command again"
            raise ChangedMeanwhile(f"{path} {why}")
        prepare(folders)
        if after is None:
            os.unlink(target)
        else:
            _replace(target, after.encode())


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold a lock on the folder itself: it leaves no file behind, and is the same one for every state folder."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            wait_for_lock(fd, folder, LOCK_TIMEOUT_S)
        except OSError as error:
            if isinstance(error, BlockingIOError):  # otherwise the file system has no locks
                raise
        yield
    finally:
        os.close(fd)


def _replace(path: str, data: bytes) -> None:
    """Write a new file beside the old one, then rename it. One that a killed process has left is overwritten."""
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.turngate-new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with contextlib.suppress(FileNotFoundError):
        info = os.stat(path)
        with contextlib.suppress(OSError):  # a group that this user is not in
            os.fchown(fd, -1, info.st_gid)
        os.fchmod(fd, info.st_mode & 0o7777)
    write_and_rename(fd, temporary, path, data)


# Folders


@contextlib.contextmanager
def _with_folders(path: str) -> Iterator[list[str]]:
    """Make the missing folders of a file, and yield them, the outermost first; after an error, remove them again."""
    missing, made = list[str](), list[str]()
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    try:
        for folder in missing:
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.mkdir(folder)
                made.append(folder)
        yield made
    except BaseException:
        remove_folders(made)
        raise


def remove_folders(folders: list[str]) -> None:
    """Remove folders that are empty, the innermost first."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


MAX_RECORD_BYTES = 32 * 1024 * 1024  # a text as JSON, whose characters may be escaped


@frozen
class InstallRecord:
    """One settings file before the lines of Turngate were added."""

    before: str | None  # None: there was no file
    after: tuple[str, ...]  # digests of the text with the lines; none if it was changed between two installs
    folders: tuple[str, ...] = ()  # that were made for it

    def restores(self, text: str) -> bool:
        """Return whether the text is exactly what was written, so that `before` is what was there."""
        return digest(text) in self.after


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record_path(state: str, path: str) -> str:
    name = hashlib.sha256(real_path(path).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(state, "installs", f"{name}.json")


def read_record(path: str) -> InstallRecord | None:
    try:
        value = json.loads(read_bytes(path, MAX_RECORD_BYTES))
        return InstallRecord(value["before"], tuple(value["after"]), tuple(value["folders"]))
    except (OSError, NotARegularFile, FileTooLarge, ValueError, RecursionError, TypeError, KeyError):
        return None


def write_record(path: str, record: InstallRecord, file: str) -> None:
    """Write a record, private because settings hold keys and tokens. Raises OSError with its path."""
    value = {"file": file, "before": record.before, "after": record.after, "folders": record.folders}
    try:
        make_private_dir(os.path.dirname(path))
        temporary = f"{path}.new"
        fd = open_regular_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        write_and_rename(fd, temporary, path, json.dumps(value).encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


@frozen
class Change:
    """A text before and after; None stands for no file."""

    before: str | None
    after: str | None
    record: InstallRecord | None = None  # to undo it

    @property
    def is_needed(self) -> bool:
        return self.before != self.after


_Entries = Mapping[str, Mapping[str, Any]]  # by event


def plan_install(text: str | None, entries: _Entries, host: Host, record: InstallRecord | None) -> Change:
    """Return the settings with the lines of Turngate. Raises UnsuitableSettings."""
    if host.file_format:
        added = in_format(host.file_format.add, text or "", entries)
    else:
        added = add_lines(text or "", entries, host.new_file)
    if text is None or not hook_lines(text, host.file_format):
        return Change(text, added, InstallRecord(text, (digest(added),)))
    if record is None:  # the lines came with the repository: what was there before them is not known
        return Change(text, added)
    digests = (digest(text), digest(added)) if record.restores(text) else ()
    return Change(text, added, InstallRecord(record.before, digests, record.folders))


def plan_uninstall(text: str | None, host: Host, record: InstallRecord | None) -> Change:
    """Return the settings without the lines of Turngate. Raises UnsuitableSettings."""
    if text is None or not hook_lines(text, host.file_format):
        return Change(text, text)
    if record and record.restores(text):
        return Change(text, record.before)
    if host.file_format:
        rest = in_format(host.file_format.remove, text)
        was_there = record is not None and record.before is not None
        return Change(text, rest if rest.strip(BLANKS) or was_there else None)
    rest = remove_lines(text, host.new_file, (record.before or "") if record else None)
    try:
        if rest.strip(BLANKS) and json.loads(rest) not in ({}, dict(host.new_file)):
            return Change(text, rest)
    except ValueError:  # it has comments
        return Change(text, rest)
    # Without a record: is it what `add_lines` makes where there is no file?
    is_new = (
        record.before is None
        if record
        else text == f"{json.dumps(json.loads(text), indent=2, ensure_ascii=False)}\n"
    )
    return Change(text, None if is_new else rest)
