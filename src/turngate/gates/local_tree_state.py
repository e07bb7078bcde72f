"""The files of a project on this machine: one state, equal for equal content, and the entry of each file. Imports little: most stops need it.

The files are those that git does not ignore, of the whole repository; without a repository, all but those in folders of
tools. A file is read again only if its times, size, mode or inode have changed since the last look, which a private file
in the state folder remembers. So neither flags in git's index nor filters hide a change. The state covers what a command may ask git
as well: HEAD, the index, refs and configuration.
"""

import json
import os
import select
import stat
import time
from collections.abc import Iterable, Iterator

from turngate.gates.git.scripts import GIT_ENVIRONMENT, GIT_OPTIONS, LOCAL_GIT_VARIABLES
from turngate.gates.stored_state import digest, hash_bytes, write_file

TIMEOUT_S = 20.0  # then nothing is cached, and the gate has the rest of its time
RACY_NS = 2_000_000_000  # a file that was changed this shortly before could change again without a new time
CHUNK_BYTES = 1 << 20
UNTRACKED = "?"  # git's tag of a file
LIST_FILES = ("ls-files", "-z", "-v", "--stage", "--cached", "--others", "--exclude-standard")
# Folders that hold what others wrote, or what tools have made of the rest.
PRUNED = (
    *(".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle"),
)
# What a command may ask git, beside the index and loose refs. In `.git`: of the work tree, and of all work trees of a repository.
OWN_STATE = ("HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "config.worktree")
COMMON_STATE = (
    *("config", "packed-refs", "reftable/tables.list", "logs/refs/stash", "shallow"),
    *("info/exclude", "info/attributes", "info/sparse-checkout"),
)


class _Unknown(Exception):
    """The content is not known, or not in time."""


def local_tree_state(project: str, state: str, since_ns: int | None = None) -> str | None:
    """Return the state of all files and of git. None: it cannot be found out; then nothing is cached.

    `state` is the state folder of Turngate. `since_ns`: nor is it known if a file was changed since, and changed back.
    """
    try:
        return _Look(project, state).find_state(since_ns)
    except (OSError, _Unknown):
        return None


def content_of(state: str) -> str:
    """Return the part of a state that is about the content of files; that of another machine is not divided."""
    return state.rpartition(":")[2]


def local_entries(project: str, state: str) -> dict[str, str] | None:
    """Return mode and id of the files of a project in a repository, as in a tree of git, by their names in the repository.

    None: they cannot be found out in time. Those of repositories inside of it are left out.
    """
    try:
        return _Look(project, state).find_entries() if _repository(os.path.realpath(project)) else None
    except (OSError, _Unknown):
        return None


def local_names(project: str) -> list[str] | None:
    """Return the names of the files without a look at them, of a repository inside only its folder. None: not in time."""
    deadline, project = time.monotonic() + TIMEOUT_S, os.path.realpath(project)
    try:
        top = _find_top(project, deadline)
        _, names = _list_files(top, deadline)
    except (OSError, _Unknown):
        return None
    below = "" if top == project else f"{project.removeprefix(top).strip('/')}/"
    return [name.removeprefix(below) for name in names if name.startswith(below)]


def is_committed(path: str) -> bool:
    """Return whether a file has the content that it has in the commit of its repository, without links and filters."""
    top, deadline = _repository(os.path.dirname(path)), time.monotonic() + TIMEOUT_S
    try:
        found = os.lstat(path)
        if top is None or not stat.S_ISREG(found.st_mode):
            return False
        content = _read_content(path, found.st_mode, found.st_size, deadline)
        committed = _run_git(top, deadline, "rev-parse", "--verify", f"HEAD:{os.path.relpath(path, top)}")
    except (OSError, _Unknown):
        return False
    return committed is not None and content.endswith(f" {committed.decode().strip()}")


class _Look:
    """One look at the files."""

    def __init__(self, project: str, state: str) -> None:
        self._now_ns = time.time_ns()
        self._deadline = time.monotonic() + TIMEOUT_S
        self._project = os.path.realpath(project)
        self._top = _find_top(self._project, self._deadline)
        self._cache = os.path.join(state, "gates", digest(f"files of {self._top}"), "files-4")
        self._stats: dict[str, str] = {}  # by name; a text that changes with the file
        self._states: list[str] = []  # of the repositories
        self._nested: list[str] = []  # repositories inside of the first one
        self._is_known = True  # whether there is nothing else: no link leads out
        self._add("")

    def find_state(self, since_ns: int | None = None) -> str:
        """Raises _Unknown."""
        changed = (int(found.rpartition(" ")[2]) for found in self._stats.values())
        if not self._is_known or (since_ns and max(changed, default=0) > since_ns):
            raise _Unknown
        stored = _read_lines(self._cache)
        if (before := next(stored, {})).get("key") == self._key():
            return before["state"]
        return self._state_of(self._read(before, next(stored, {})))

    def find_entries(self) -> dict[str, str]:
        """Raises _Unknown."""
        stored = _read_lines(self._cache)
        below = "" if self._project == self._top else f"{self._project[len(self._top) + 1 :]}/"
        inside = tuple(name.rstrip("/") + "/" for name in self._nested)
        entries = self._read(next(stored, {}), next(stored, {}))
        if not (below or inside):
            return entries
        own = (name for name in entries if name.startswith(below) and not name.startswith(inside))
        return {name: entries[name] for name in own}

    def _key(self) -> str:
        return _hash_texts([*self._states, "", *self._stats, "", *self._stats.values()])

    def _state_of(self, entries: dict[str, str]) -> str:
        """Return the state of git, and that of the content, which has no git in it."""
        content = (f"{entry} {name}" for name, entry in sorted(entries.items()))
        return f"{_hash_texts(self._states)}:{_hash_texts(content)}"

    def _read(self, before: dict[str, str], known: dict[str, str]) -> dict[str, str]:
        """Return the entries of all files. `before`, `known`: state, and entries by name and stat, of the last look."""
        entries: dict[str, str] = {}
        kept: dict[str, str] = {}  # of files that were not changed just now
        try:
            for name, found in sorted(self._stats.items()):
                file = f"{name} {found}"
                content = known.get(file)
                if content is None:
                    mode, size, _, modified_ns, changed_ns = map(int, found.split())
                    content = _read_content(f"{self._top}/{name}", mode, size, self._deadline)
                    if self._now_ns - max(modified_ns, changed_ns) <= RACY_NS:
                        entries[name] = content
                        continue
                kept[file] = entries[name] = content
            return entries
        finally:  # also if the time is up: the next look goes on from here
            key = self._key() if len(kept) == len(self._stats) else ""
            if kept != known or before.get("key", "") != key:
                states = {"key": key, "state": self._state_of(entries)} if key else {}
                write_file(self._cache, f"{json.dumps(states)}\n{json.dumps(kept)}\n")

    def _add(self, below: str) -> None:
        """Add the files of a folder: "", or its name with a slash. Raises _Unknown."""
        folder = f"{self._top}/{below}".rstrip("/")
        listed, names = _list_files(folder, self._deadline)
        if listed is not None:
            self._states += [below, hash_bytes(listed), *_git_state(folder, self._deadline)]
        fd = os.open(folder, os.O_RDONLY)  # so that the system does not look up the whole path of each file
        try:
            for name in names:
                try:
                    found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except (FileNotFoundError, NotADirectoryError):  # it is deleted
                    continue
                mode = found.st_mode
                if mode & 0o170000 == stat.S_IFREG or self._is_link(below + name, mode):
                    self._stats[below + name] = (
                        f"{mode} {found.st_size} {found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns}"
                    )
        finally:
            os.close(fd)

    def _is_link(self, name: str, mode: int) -> bool:
        """Return whether it is a link, and note whether its content is known. A repository is added."""
        path = f"{self._top}/{name}"
        if stat.S_ISDIR(mode):
            if os.path.lexists(f"{path}/.git"):
                self._nested.append(name)
                self._add(f"{name.rstrip('/')}/")
            return False
        target = os.path.realpath(path)
        leads_out = not f"{target}/".startswith(f"{self._top}/") or "/.git/" in f"{target[len(self._top) :]}/"
        self._is_known = self._is_known and stat.S_ISLNK(mode) and not leads_out
        return stat.S_ISLNK(mode)


def _find_top(project: str, deadline: float) -> str:
    """Return the folder whose files count: that of the repository, unless it ignores the project."""
    repository = _repository(project)
    if repository is None or repository == project:
        return project
    is_ignored = _run_git(repository, deadline, "check-ignore", "--quiet", project) is not None
    return project if is_ignored else repository


def _repository(folder: str) -> str | None:
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _list_files(folder: str, deadline: float) -> tuple[bytes | None, list[str]]:
    """Return what git lists, and the names of the files: all of them if git cannot read the folder."""
    listed = _run_git(folder, deadline, *LIST_FILES) if os.path.lexists(f"{folder}/.git") else None
    if listed is None:
        return None, [*_walk(folder)]
    lines = os.fsdecode(listed).split("\0")[:-1]
    return listed, [line[2:] if line[0] == UNTRACKED else line.partition("\t")[2] for line in lines]


def _walk(folder: str, below: str = "") -> Iterator[str]:
    with os.scandir(f"{folder}/{below}") as entries:
        for entry in entries:
            if entry.name in PRUNED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder, f"{below}{entry.name}/")
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield f"{below}{entry.name}"


def _git_state(repository: str, deadline: float) -> Iterator[str]:
    """Yield what git knows beside the index, and the rules of what it ignores that are not in the work tree."""
    own = f"{repository}/.git"
    if not os.path.isdir(own):  # a worktree or a submodule
        own = os.path.join(repository, _read_text(own).removeprefix("gitdir: "))
    common = os.path.join(own, _read_text(f"{own}/commondir"))
    yield from (_read_text(f"{own}/{name}") for name in OWN_STATE)
    yield from (_read_text(f"{common}/{name}") for name in COMMON_STATE)
    for folder, _, names in sorted(os.walk(f"{common}/refs")):
        yield from (f"{folder}/{name} {_read_text(f'{folder}/{name}')}" for name in sorted(names))
    user = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git")
    path = f"{user}/ignore"
    files = (f"{common}/config", f"{user}/config", os.path.expanduser("~/.gitconfig"), "/etc/gitconfig")
    texts = "".join(map(_read_text, files)).lower()
    if (
        "excludesfile" in texts
        or "[include" in texts
        or any(name.startswith("GIT_CONFIG") for name in os.environ)
    ):
        configured = _run_git(repository, deadline, "config", "--type=path", "--get", "core.excludesFile")
        path = os.path.join(repository, os.fsdecode(configured).rstrip("\n")) if configured else path
    yield _read_text(path)


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rstrip("\n")
    except FileNotFoundError:
        return ""


def _read_content(path: str, mode: int, size: int, deadline: float) -> str:
    """Return the entry of a file: its mode, and the id that git gives to its content, as a blob. Raises _Unknown."""
    kind = "120000" if stat.S_ISLNK(mode) else "100755" if mode & stat.S_IXUSR else "100644"
    import hashlib  # noqa: PLC0415 # lazy: it loads OpenSSL, and most looks read no file

    content = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    if stat.S_ISLNK(mode):
        content.update(os.fsencode(os.readlink(path)))
        return f"{kind} {content.hexdigest()}"
    fd = os.open(path, os.O_RDONLY)
    try:
        while size > 0 and (chunk := os.read(fd, min(size, CHUNK_BYTES))):
            content.update(chunk)
            size -= len(chunk)
            if time.monotonic() > deadline:
                raise _Unknown
    finally:
        os.close(fd)
    if size:  # it is written just now
        raise _Unknown
    return f"{kind} {content.hexdigest()}"


def _read_lines(path: str) -> Iterator[dict[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            yield from map(json.loads, file)
    except (OSError, ValueError):  # most often there is none yet
        return


def _hash_texts(texts: Iterable[str]) -> str:
    return hash_bytes("\0\0".join(texts).encode("utf-8", "surrogateescape"))  # no name has a NUL


def _run_git(folder: str, deadline: float, *words: str) -> bytes | None:
    """Return what git prints, or None if it fails. Without `subprocess`, which takes longer to load than git to run."""
    env = {name: value for name, value in os.environ.items() if name not in LOCAL_GIT_VARIABLES}
    env.update(GIT_ENVIRONMENT, GIT_CEILING_DIRECTORIES=os.path.dirname(folder))
    words = ("git", *GIT_OPTIONS, "-C", folder, f"--work-tree={folder}", *words)
    source, target = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, target, 1),
    ]
    try:
        pid = os.posix_spawnp(words[0], words, env, file_actions=actions)
    except OSError:  # there is no git
        os.close(source)
        return None
    finally:
        os.close(target)
    parts, is_complete = [], False
    with open(source, "rb", buffering=0) as output:
        while not is_complete and select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            parts.append(output.read(CHUNK_BYTES))
            is_complete = not parts[-1]
    if not is_complete:
        os.kill(pid, 9)
    has_failed = os.waitpid(pid, 0)[1] != 0
    if not is_complete:
        raise _Unknown
    return None if has_failed else b"".join(parts)
