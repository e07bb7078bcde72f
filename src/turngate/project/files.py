"""The files of one machine: this one (`LocalFiles`), or another one behind the same methods.

Imports little: every stop needs it.
"""

import errno
import os
import stat as modes
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader

from turngate.project.safe_paths import resolve_links


class MachineUnreachable(Exception):
    """The machine where the files are does not answer; the text says why.

    It is not an OSError: those say something about one file, and reading goes on.
    """


# What differs after a file was written: its modification time, or what another machine reports.
FileVersion = float | str


class FileState:
    """What must be known of a file before it is replaced."""

    def __init__(self, stat: os.stat_result, version: FileVersion, *, is_writable: bool) -> None:
        self.stat = stat  # of the file itself, which may be a link
        self.version, self.is_writable = version, is_writable


class FoundFile:
    def __init__(self, path: str, stat: os.stat_result, *, is_link: bool) -> None:
        self.path, self.stat = path, stat  # for a link, of what it leads to
        self.is_link = is_link


class Files:
    """The files of one machine. The methods are called and raise OSError as those of `os`.

    Those of another machine block, take absolute paths, and raise MachineUnreachable too.
    """

    machine = ""  # its name, such as `ssh://me@build`; "" for this one
    home: str  # the home folder there
    environ: Mapping[str, str]  # of a login there

    def stat(self, path: str) -> os.stat_result:
        raise NotImplementedError

    def lstat(self, path: str) -> os.stat_result:
        raise NotImplementedError

    def readlink(self, path: str) -> str:
        raise NotImplementedError

    def listdir(self, path: str) -> list[str]:
        raise NotImplementedError

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the content of a regular file, through links, but at most `max_bytes`."""
        raise NotImplementedError

    def snapshot(self, places: Iterable[str] = ()) -> "Files":
        """Return the same files, each of which is asked for only once; what is at these places is read at once.

        A place may end with `/.`, for what is in a folder, or with `/**`, for all that is some levels below it. On this
        machine files are never remembered.
        """
        raise NotImplementedError

    # For tools: a path has no links, unless one has been put there meanwhile, which raises PathChanged

    def open(self, path: str) -> tuple[BufferedReader, FileVersion]:
        """Open a regular file, without ever waiting for a writer."""
        raise NotImplementedError

    def inspect(self, path: str) -> FileState:
        """Return the state of the file itself, which may be a link. Raises FileNotFoundError."""
        raise NotImplementedError

    def replace(
        self, path: str, data: bytes, before: FileState | None = None, *, make_folders: bool = False
    ) -> FileVersion:
        """Replace the file that was inspected in one step, or make it. The mode stays, and the owner where possible."""
        raise NotImplementedError

    # For a search in files that are not on this machine

    def tree(self, folder: str, skipped: Collection[str], max_depth: int) -> tuple[list[FoundFile], bool]:
        """Return the files and the links to files below a folder, and whether there are folders below `max_depth`.

        `skipped` are the names of folders that are left out. Raises OSError with EFBIG if there is too much.
        """
        raise NotImplementedError

    def fetch(self, paths: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        """Return the contents of files at once, each up to a size; those that cannot be read are left out."""
        raise NotImplementedError

    # Made of those above

    @property
    def live(self) -> "Files":
        """The same files as they are now; a snapshot has what they were."""
        return self

    def expand_home(self, path: str) -> str:
        """Return a path whose `~/` is the home folder; `~name` is known on this machine only."""
        return self.home + path[1:] if path == "~" or path.startswith("~/") else path

    def resolve(self, path: str) -> str:
        """Return the absolute path without links; its end need not exist. Raises only OSError."""
        return resolve_links(path, self.readlink)

    def realpath(self, path: str) -> str:
        """Return the same, to compare it with other paths. A path that cannot be resolved stays as it is."""
        try:
            return self.resolve(path)
        except OSError:
            return path

    def locate(self, path: str) -> str:
        """Return the same, with a slash at the end if it is a folder; `~/` is the home folder."""
        real = self.realpath(self.expand_home(path))
        return f"{real.rstrip('/')}/" if self.isdir(real) else real

    def scan(self, path: str) -> dict[str, os.stat_result]:
        """Return the names in a folder, each with what `lstat` says of it."""
        found = {}
        for name in self.listdir(path):
            try:
                found[name] = self.lstat(os.path.join(path, name))
            except FileNotFoundError:  # it was removed meanwhile
                continue
        return found

    def exists(self, path: str) -> bool:
        return _mode(self.stat, path) is not None

    def lexists(self, path: str) -> bool:
        return _mode(self.lstat, path) is not None

    def isfile(self, path: str) -> bool:
        return modes.S_ISREG(_mode(self.stat, path) or 0)

    def isdir(self, path: str) -> bool:
        return modes.S_ISDIR(_mode(self.stat, path) or 0)

    def is_executable(self, path: str) -> bool:
        """Return whether anybody may execute it: another machine does not say who we are."""
        return bool((_mode(self.stat, path) or 0) & 0o111)

    def islink(self, path: str) -> bool:
        return modes.S_ISLNK(_mode(self.lstat, path) or 0)

    def match(self, pattern: str) -> Iterator[str]:
        """Yield the paths that a pattern matches, as `glob.iglob` does."""
        from fnmatch import filter as matching  # noqa: PLC0415  # lazy: the fast path needs no patterns

        folder, name = os.path.split(pattern)
        for parent in self.match(folder) if _has_magic(folder) else [folder]:
            path = os.path.join(parent, name)
            if _has_magic(name):
                names = (each for each in self._names(parent) if each[0] != "." or name[0] == ".")
                yield from (os.path.join(parent, each) for each in matching(names, name))
            elif self.lexists(path) if name else self.isdir(parent):
                yield path

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield each folder below this one with the names of folders and files, as `os.walk` does."""
        names = self._names(folder)
        folders = [name for name in names if self.isdir(os.path.join(folder, name))]
        others = [name for name in names if name not in folders]
        yield folder, folders, others
        for name in folders:  # the caller may have left some out
            path = os.path.join(folder, name)
            if not self.islink(path):
                yield from self.walk(path)

    def _names(self, folder: str) -> list[str]:
        try:
            return self.listdir(folder)
        except (OSError, ValueError):
            return []


def _mode(function: Callable[[str], os.stat_result], path: str) -> int | None:
    try:
        return function(path).st_mode
    except (OSError, ValueError):
        return None


def _has_magic(pattern: str) -> bool:
    return any(character in pattern for character in "*?[")


class LocalFiles(Files):
    """The files of this machine, as `os` sees them."""

    @property
    def home(self) -> str:  # type: ignore[override]
        return os.path.expanduser("~")

    @property
    def environ(self) -> Mapping[str, str]:  # type: ignore[override]
        return os.environ

    def stat(self, path: str) -> os.stat_result:
        return os.stat(path)

    def lstat(self, path: str) -> os.stat_result:
        return os.lstat(path)

    def readlink(self, path: str) -> str:
        return os.readlink(path)

    def listdir(self, path: str) -> list[str]:
        return os.listdir(path)

    def is_executable(self, path: str) -> bool:
        return os.access(path, os.X_OK)

    def read(self, path: str, max_bytes: int) -> bytes:
        """Never blocks, even for files such as /proc/kmsg."""
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            check_regular(os.fstat(fd), path)
            data = bytearray()
            while len(data) < max_bytes and (chunk := os.read(fd, min(max_bytes - len(data), 1024 * 1024))):
                data += chunk
            return bytes(data)
        finally:
            os.close(fd)

    def snapshot(self, places: Iterable[str] = ()) -> Files:  # noqa: ARG002 - see Files
        return self

    def open(self, path: str) -> tuple[BufferedReader, FileVersion]:
        from turngate.project.link_safe_files import open_file  # noqa: PLC0415  # lazy: only tools need it

        return open_file(path)

    def inspect(self, path: str) -> FileState:
        from turngate.project.link_safe_files import inspect_file  # noqa: PLC0415  # lazy: as above

        return inspect_file(path)

    def replace(
        self, path: str, data: bytes, before: FileState | None = None, *, make_folders: bool = False
    ) -> FileVersion:
        from turngate.project.link_safe_files import replace_file  # noqa: PLC0415  # lazy: as above

        return replace_file(path, data, before, make_folders=make_folders)

    def expand_home(self, path: str) -> str:
        return os.path.expanduser(path)


def check_regular(info: os.stat_result, path: str) -> None:
    """Raise OSError for what is not a regular file: a pipe or a device may never end."""
    if modes.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not modes.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


LOCAL = LocalFiles()
