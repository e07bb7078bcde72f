"""The state of a project's files on this machine: equal states, equal content. Imports little: most stops need it.

The files are those that git does not ignore, of the whole repository; without a repository, all but those in folders of
tools. A file is read again only if its times, size, mode or inode have changed since the last look, which a private file
in the state folder remembers. So neither flags in git's index nor filters hide a change.
"""

import hashlib
import json
import os
import select
import stat
import time
from collections.abc import Iterable, Iterator

from turngate.gates.git.scripts import GIT_ENVIRONMENT, GIT_OPTIONS, LOCAL_GIT_VARIABLES
from turngate.gates.stored_state import digest, write_file

TIMEOUT_S = 20.0  # then nothing is cached, and the gate has the rest of its time
RACY_NS = 2_000_000_000  # a file that was changed this shortly before could change again without a new time
CHUNK_BYTES = 1 << 20
UNTRACKED = "?"  # git's tag of a file
LIST_FILES = ("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
# Folders that hold what others wrote, or what tools have made of the rest.
PRUNED = (
    *(".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle"),
)


class _Unknown(Exception):
    """The content is not known, or not in time."""


def local_tree_state(project: str, state: str) -> tuple[str, str] | None:
    """Return the state of all files, and that of the tracked ones. None: it cannot be found out; then nothing is cached.

    `state` is the state folder of Turngate.
    """
    deadline = time.monotonic() + TIMEOUT_S
    top = os.path.realpath(project)
    try:
        repository = _repository(top)
        words = (deadline, "check-ignore", "--quiet", top)
        if repository and (repository == top or _run_git(repository, *words) is None):
            top = repository
        return _find_state(top, os.path.join(state, "gates", digest(f"files of {top}"), "files-1"), deadline)
    except (OSError, _Unknown):
        return None


def _repository(folder: str) -> str | None:
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _find_state(top: str, cache: str, deadline: float) -> tuple[str, str]:
    now_ns = time.time_ns()
    listing = _Listing(top, deadline)
    listing.add("")
    names, stats = sorted(listing.stats), listing.stats
    key = _hash([*listing.rules, "", *names, "", *map(stats.__getitem__, names)])
    stored = _read_lines(cache)
    if (before := next(stored, {})).get("key") == key:
        return before["all"], before["tracked"]
    known = next(stored, {})
    kept: dict[str, str] = {}  # content by name and stat, of files that were not changed just now
    lines: list[str] = [*listing.rules, ""]
    tracked: list[str] = [*lines]
    states: dict[str, str] = {}
    try:
        for name in names:
            tag, mode, *_, modified_ns, changed_ns = stats[name].split()
            file = f"{name} {stats[name]}"
            content = known.get(file) or _read_content(f"{top}/{name}", int(mode), deadline)
            if now_ns - max(int(modified_ns), int(changed_ns)) > RACY_NS:
                kept[file] = content
            lines.append(f"{name} {content}")
            if tag != UNTRACKED:
                tracked.append(lines[-1])
        states = {"all": _hash(lines), "tracked": _hash(tracked)}
        return states["all"], states["tracked"]
    finally:  # also if the time is up: the next look goes on from here
        if states and len(kept) == len(names):
            states["key"] = key
        write_file(cache, f"{json.dumps(states)}\n{json.dumps(kept)}\n")


class _Listing:
    """The files that count, in a folder and in the repositories inside of it."""

    def __init__(self, top: str, deadline: float) -> None:
        self.stats: dict[str, str] = {}  # by name; a text that changes with the file, after a tag of git
        self.rules: list[str] = []  # what is ignored, besides what files of the project say
        self._top = top
        self._deadline = deadline

    def add(self, below: str) -> None:
        """Add the files of a folder: "", or its name with a slash. Raises _Unknown."""
        folder = f"{self._top}/{below}".rstrip("/")
        is_repository = os.path.lexists(f"{folder}/.git")
        listed = _run_git(folder, self._deadline, *LIST_FILES) if is_repository else None
        if listed is not None:
            self.rules += [below, *_ignore_rules(folder, self._deadline)]
        # If git cannot read it, all files count.
        names = _walk(folder) if listed is None else listed.split("\0")[:-1]
        fd = os.open(folder, os.O_RDONLY)  # so that the system does not look up the whole path of each file
        try:
            for name in names:
                try:
                    found = os.stat(name[2:], dir_fd=fd, follow_symlinks=False)
                except (FileNotFoundError, NotADirectoryError):  # it is deleted
                    continue
                mode = found.st_mode
                if mode & 0o170000 == stat.S_IFREG or self._is_link(below + name[2:], mode):
                    self.stats[below + name[2:]] = (
                        f"{name[0]} {mode} {found.st_size} {found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns}"
                    )
        finally:
            os.close(fd)

    def _is_link(self, name: str, mode: int) -> bool:
        """Return False for a folder; a repository is added. Raises _Unknown for what has no content that can be known."""
        path = f"{self._top}/{name}"
        if stat.S_ISDIR(mode):
            if os.path.lexists(f"{path}/.git"):
                self.add(f"{name.rstrip('/')}/")
            return False
        target = os.path.realpath(path)
        leads_out = not f"{target}/".startswith(f"{self._top}/") or "/.git/" in f"{target[len(self._top) :]}/"
        if leads_out or not stat.S_ISLNK(mode):
            raise _Unknown
        return True


def _walk(folder: str, below: str = "") -> Iterator[str]:
    with os.scandir(f"{folder}/{below}") as entries:
        for entry in entries:
            if entry.name in PRUNED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder, f"{below}{entry.name}/")
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield f"H {below}{entry.name}"  # as git lists a tracked file


def _ignore_rules(repository: str, deadline: float) -> tuple[str, str]:
    """Return the rules that are not in the work tree."""
    common = f"{repository}/.git"
    if not os.path.isdir(common):  # a worktree or a submodule
        common = os.path.join(repository, _read_text(common).removeprefix("gitdir: "))
        common = os.path.join(common, _read_text(f"{common}/commondir"))
    configured = _run_git(repository, deadline, "config", "--type=path", "--get", "core.excludesFile")
    default = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git/ignore")
    of_user = os.path.join(repository, (configured or default).rstrip("\n"))
    return _read_text(f"{common}/info/exclude"), _read_text(of_user)


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rstrip("\n")
    except FileNotFoundError:
        return ""


def _read_content(path: str, mode: int, deadline: float) -> str:
    if stat.S_ISLNK(mode):
        return f"-> {os.readlink(path)}"
    content = hashlib.blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            if time.monotonic() > deadline:
                raise _Unknown
            content.update(chunk)
    return content.hexdigest() + ("x" if mode & stat.S_IXUSR else "")


def _read_lines(path: str) -> Iterator[dict[str, str]]:
    try:
        with open(path, encoding="utf-8") as file:
            yield from map(json.loads, file)
    except (OSError, ValueError):  # most often there is none yet
        return


def _hash(lines: Iterable[str]) -> str:
    text = "\0\0".join(lines)  # no name has a NUL
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _run_git(folder: str, deadline: float, *words: str) -> str | None:
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
    return None if has_failed else os.fsdecode(b"".join(parts))
