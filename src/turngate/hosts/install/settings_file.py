"""The settings file of a host: what `turngate install` would change, a replacement in one step, and the record that undoes it."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.errors import UsageError
from turngate.hosts.host import Host
from turngate.hosts.install.json_text import BLANKS
from turngate.hosts.install.settings_text import add_lines, hook_lines, in_format, remove_lines
from turngate.project.safe_paths import real_path
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.state.files import make_private_dir, open_regular_file, wait_for_lock, write_and_rename

MAX_BYTES = 8 * 1024 * 1024
LOCK_TIMEOUT_S = 10.0
UNCHANGED = "nothing was changed"


class ChangedMeanwhile(UsageError):
    """Another process has changed the file after it was read."""


def read_settings_text(path: str) -> str | None:
    """Return the text of a file, with its line ends and byte order mark, or None if there is none. Raises UsageError."""
    try:
        return read_bytes(path, MAX_BYTES).decode()
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise _unusable(path, "is a link to a file that does not exist") from None
        return None
    except FileTooLarge:
        raise _unusable(path, f"is larger than {MAX_BYTES // 1024 // 1024} MiB") from None
    except NotARegularFile as error:
        raise _unusable(path, str(error)) from None
    except UnicodeDecodeError as error:
        raise _unusable(path, f"is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None


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
    path: str, before: str | None, after: str | None, *, prepare: Callable[[], None] = lambda: None
) -> None:
    """Replace the text of a file, or create (`before` is None) or remove it (`after` is None).

    A link stays, and its target is replaced. `prepare` is called when it is certain that this process writes.
    Raises OSError, or ChangedMeanwhile if the text is not `before`.
    """
    target = real_path(path)
    with _locked(os.path.dirname(target)):
        if read_settings_text(path) != before:
            why = f"has changed after it was read; {UNCHANGED}, run the command again"
            raise ChangedMeanwhile(f"{path} {why}")
        prepare()
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


def make_folders(path: str) -> list[str]:
    """Make the missing folders of a file, and return them, the outermost first. Raises OSError, and then makes none."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    made: list[str] = []
    try:
        for folder in missing:
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.mkdir(folder)
                made.append(folder)
    except OSError:
        remove_folders(made)
        raise
    return made


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
    """Return the record of a settings file."""
    name = hashlib.sha256(real_path(path).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(state, "installs", f"{name}.json")


def read_record(path: str) -> InstallRecord | None:
    """Return a record, or None if there is none that can be read."""
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
