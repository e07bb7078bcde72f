"""A private, temporary copy of a project, in which a hook can be tried without changing the project.

- Regular files and folders are copied with their modes and times; the bits setuid, setgid and sticky are not.
- A link to a place inside the project leads to the same place inside the copy. A link to a file outside becomes a copy
  of that file. A link to a folder outside, and one that leads nowhere outside, is left out: to write through it would
  change what it leads to.
- Dependency folders (`node_modules`, Python environments) are too large to copy. They are folders whose entries are
  links to the original entries, so a program in them works. This is the one place where a write can leave the copy.
- `.git` is usable, but cannot push and runs no git hooks; see `git_copy.py`.
- Caches (folders with a CACHEDIR.TAG) are left out.
- Pipes, sockets, devices and files that cannot be read are left out.

The copy is not a sandbox: a hook that names another path, such as its home folder, changes it.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from turngate._frozen import frozen
from turngate.filesystem.git_copy import GIT_LOCATION_VARIABLES, copy_git_folder, find_git_folders
from turngate.filesystem.real_path import is_inside, resolve

MAX_FILES = 50_000  # folders and links included; without dependency folders and git objects
MAX_BYTES = 1024**3
PREFIX = "turngate-copy-"
LOCK_FILE = "lock"
CACHE_TAG = "CACHEDIR.TAG"
_UNLOCKED_GRACE_S = 3600  # a folder without a lock is being made, or its process was killed while making it
_NAMED_ENTRIES = 3


class ProjectTooLarge(OSError):
    """Raised for a project with too many files or bytes."""

    def __init__(self, project: str, what: str, largest: str) -> None:
        text = f"it has more than {what}, most of them in {largest}"
        super().__init__(errno.EFBIG, f"too large to be copied: {text}", project)


@frozen
class ProjectCopy:
    """A copy of a project, and in what it differs from the project. Paths are relative to what was copied."""

    project: str  # the folder of the project in the copy
    original: str  # what was copied: the project, or the git repository that it is a folder of
    folder: str  # the copy of it
    linked: tuple[str, ...]  # dependency folders
    left_out: Mapping[str, str]  # path → why
    without_repository: str | None = None  # the repository above the project, if it is not in the copy

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences, as texts for the user."""
        repository = self.without_repository
        linked = [f"without the git repository in {repository}, which is too large"] if repository else []
        linked += [f"linked, not copied: {_list(self.linked)}"] if self.linked else []
        reasons = dict.fromkeys(self.left_out.values())
        by_reason = ((why, [path for path in self.left_out if self.left_out[path] == why]) for why in reasons)
        return (*linked, *(f"left out: {_list(paths)} ({why})" for why, paths in by_reason))


def _list(paths: tuple[str, ...] | list[str]) -> str:
    more = len(paths) - _NAMED_ENTRIES
    return ", ".join(paths[:_NAMED_ENTRIES]) + (f" and {more} more" if more > 0 else "")


def environment_in_copy(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that lead git back to the original repository."""
    return {name: value for name, value in environ.items() if name not in GIT_LOCATION_VARIABLES}


@contextlib.contextmanager
def copy_project(
    project: str, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES
) -> Iterator[ProjectCopy]:
    """Copy a project to a private folder below `$TMPDIR`, and remove the copy at the end.

    A project that is a folder of a git repository is copied with the whole repository, if that is not too large:
    otherwise git would not work. Copies of processes that were killed are removed first. Raises ProjectTooLarge, or
    another OSError.
    """
    remove_stale_copies()
    project = resolve(project)
    repository = _repository_above(project)
    private = tempfile.mkdtemp(prefix=PREFIX)
    lock = _lock(private)
    try:
        copier = _copy_first(dict.fromkeys((repository or project, project)), private, max_files, max_bytes)
        yield ProjectCopy(
            os.path.normpath(os.path.join(copier.target, os.path.relpath(project, copier.root))),
            copier.root,
            copier.target,
            tuple(sorted(copier.linked)),
            dict(sorted(copier.left_out.items())),
            repository if repository != copier.root else None,
        )
    finally:
        _remove(private)
        os.close(lock)


def _repository_above(project: str) -> str | None:
    """Return the folder of the git repository that the project is a folder of; not the home folder."""
    folder = project
    while folder != "/" and folder != resolve(os.path.expanduser("~")):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder if folder != project else None
        folder = os.path.dirname(folder)
    return None


def _copy_first(roots: Iterable[str], private: str, max_files: int, max_bytes: int) -> "_Copier":
    """Copy the first of these folders that is not too large."""
    *larger, smallest = (
        _Copier(root, os.path.join(resolve(private), os.path.basename(root) or "root"), max_files, max_bytes)
        for root in roots
    )
    for copier in larger:
        with contextlib.suppress(ProjectTooLarge):
            copier.copy()
            return copier
        _remove(copier.target)
    smallest.copy()
    return smallest


# The folder of the copy


def remove_stale_copies() -> None:
    """Remove the copies of processes that ended without removing them."""
    base = tempfile.gettempdir()
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(base)):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_stale(entry.path)


def _remove_if_stale(folder: str) -> None:
    info = os.lstat(folder)
    if info.st_uid != os.getuid():
        return
    try:
        lock = os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        if time.time() - info.st_mtime > _UNLOCKED_GRACE_S:
            _remove(folder)
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
    finally:
        os.close(lock)


def _lock(folder: str) -> int:
    """Lock the folder while this process lives. The file gets its name when it is locked."""
    path = os.path.join(folder, LOCK_FILE)
    fd = os.open(f"{path}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename(f"{path}.new", path)
    return fd


def _remove(folder: str) -> None:
    """Remove a folder, also where its folders are read-only. What a process still writes, the next run removes."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


# Its content


class _Copier:
    """Copies the folder `root` to `target`. Paths in the attributes are relative to both."""

    def __init__(self, root: str, target: str, max_files: int, max_bytes: int) -> None:
        self.root, self.target = root, target
        self.linked: list[str] = []
        self.left_out: dict[str, str] = {}
        self._max_files, self._max_bytes = max_files, max_bytes
        self._files: Counter[str] = Counter()  # by the first part of the path
        self._bytes: Counter[str] = Counter()

    def copy(self) -> None:
        made: list[tuple[str, os.stat_result]] = []
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            target = os.path.join(self.target, folder)
            try:
                info, names = os.stat(self._source(folder)), sorted(os.listdir(self._source(folder)))
            except OSError as error:
                if not folder:
                    raise
                self.left_out[folder] = _reason(error)
                continue
            os.mkdir(target, 0o700)
            made.append((target, info))
            entries = (os.path.join(folder, name) for name in names)
            waiting += [entry for entry in entries if self._copy_entry(entry)]
        for target, info in reversed(made):  # at the end: nothing can be added to a read-only folder
            _set_mode_and_times(target, info)

    def _source(self, relative: str) -> str:
        return os.path.join(self.root, relative)

    def _copy_entry(self, relative: str) -> bool:
        """Copy an entry. Return True for a folder whose entries are still to be copied."""
        try:
            mode = os.lstat(self._source(relative)).st_mode
            if os.path.basename(relative) == ".git" and self._copy_git(relative):
                return False
            if stat.S_ISDIR(mode):
                return self._is_to_be_copied(relative)
            if stat.S_ISLNK(mode):
                self._copy_link(relative)
            elif stat.S_ISREG(mode):
                self._copy_file(self._source(relative), relative)
            else:
                self.left_out[relative] = "it is not a regular file"
        except FileNotFoundError:  # it was removed meanwhile
            pass
        except PermissionError as error:
            self.left_out[relative] = _reason(error)
        return False

    def _is_to_be_copied(self, folder: str) -> bool:
        source = self._source(folder)
        if source == os.path.dirname(self.target):  # $TMPDIR is inside the project
            return False
        if _is_dependency_folder(source):
            self._link_entries(source, folder)
            return False
        if os.path.isfile(os.path.join(source, CACHE_TAG)):
            self.left_out[folder] = "a cache"
            return False
        self._count(folder)
        return True

    def _copy_link(self, relative: str) -> None:
        source = self._source(relative)
        text = os.readlink(source)
        try:
            real = resolve(source)
        except OSError as error:
            self.left_out[relative] = _reason(error)
            return
        if is_inside(real, self.root):
            self._count(relative)
            stays = _stays_inside(os.path.dirname(relative), text)
            text = text if stays else os.path.relpath(real, os.path.dirname(source))
            os.symlink(text, os.path.join(self.target, relative))
        elif os.path.isfile(real):
            self._copy_file(real, relative)
        elif os.path.isdir(real) and _is_dependency_folder(source):
            self._link_entries(real, relative)
        else:
            self.left_out[relative] = "a link that leads out of the project"

    def _link_entries(self, source: str, relative: str) -> None:
        """Make a folder of links. One link to the folder would not match `node_modules/` in .gitignore."""
        target = os.path.join(self.target, relative)
        os.mkdir(target, 0o700)
        for name in os.listdir(source):
            self._count(relative)
            os.symlink(os.path.join(source, name), os.path.join(target, name))
        self.linked.append(relative)

    def _copy_git(self, relative: str) -> bool:
        folders = find_git_folders(self._source(relative))
        if folders is None:
            return False

        def copy_file(source: str, target: str) -> None:
            with contextlib.suppress(FileNotFoundError):
                self._copy_file(source, os.path.relpath(target, self.target))

        copy_git_folder(folders, os.path.join(self.target, relative), copy_file)
        return True

    def _copy_file(self, source: str, relative: str) -> None:
        """Copy a regular file; something else that has just taken its place is left out."""
        target = os.path.join(self.target, relative)
        with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            info = os.fstat(file.fileno())
            if stat.S_ISREG(info.st_mode):
                self._count(relative, info.st_size)
                with open(target, "xb") as copy:
                    shutil.copyfileobj(file, copy)
                _set_mode_and_times(target, info)

    def _count(self, relative: str, size: int = 0) -> None:
        top = relative.partition("/")[0]
        self._files[top] += 1
        self._bytes[top] += size
        if self._files.total() > self._max_files:
            raise ProjectTooLarge(self.root, f"{self._max_files:,} files", self._files.most_common(1)[0][0])
        if self._bytes.total() > self._max_bytes:
            limit = f"{self._max_bytes // 1024**2:,} MiB"
            raise ProjectTooLarge(self.root, limit, self._bytes.most_common(1)[0][0])


def _is_dependency_folder(folder: str) -> bool:
    is_python = os.path.isfile(os.path.join(folder, "pyvenv.cfg"))
    return os.path.basename(folder) == "node_modules" or is_python


def _stays_inside(folder: str, text: str) -> bool:
    """Return whether a link in this folder of the project can be kept: `../` only at its start, and not too often."""
    names = [name for name in text.split("/") if name not in ("", ".")]
    ups = names.count("..")
    depth = len(folder.split("/")) if folder else 0
    return not text.startswith("/") and ups <= depth and ".." not in names[ups:]


def _set_mode_and_times(path: str, info: os.stat_result) -> None:
    os.chmod(path, stat.S_IMODE(info.st_mode) & 0o777)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
