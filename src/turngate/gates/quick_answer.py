"""The answer of a gate that has passed, for the next stop with an unchanged tree. Imports little: most stops end here.

It is kept for `turngate gate` on this machine, by the words of the command line, and holds while `tree_signature`
is the same: one process of git, and the times of the files that differ from the last commit.
"""

import os
import time

from turngate.gates.git.scripts import GIT_ENVIRONMENT, GIT_OPTIONS, LOCAL_GIT_VARIABLES
from turngate.gates.stored_state import digest, write_file

VERSION = "2"
MAX_STATUS_BYTES = 4 * 1024 * 1024
MAX_INDEX_BYTES = 64 * 1024 * 1024
STATUS_TIMEOUT_S = 5.0
COMPLEX_SETTINGS = (b"[filter", b"[include", b"excludesfile", b"attributesfile")
# A file that was changed this shortly before could be changed again without a new time.
CLOCK_TICK_NS = 2_000_000_000

_STATUS = (
    *("status", "-z", "--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=all"),
    *("--no-renames", "--ignore-submodules=none"),
)


def quick_path(state: str, session: str, agent: str, words: list[str], places: list[str]) -> str:
    """Return the file of the answer. `places`: what decides which project is meant."""
    name = digest("\0".join([*words, "", *places]))
    return os.path.join(state, "gates", digest(f"{session}\0{agent}"), f"{name}.quick")


def read_quick_answer(path: str) -> str | None:
    """Return the stored answer if the tree is as it was when the gate passed."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            version, signature, answer, project = file.read().split("\n", 3)
    except (OSError, ValueError):
        return None
    if version != VERSION or signature != tree_signature(project):
        return None
    return answer


def write_quick_answer(path: str, signature: str, answer: str, project: str) -> None:
    write_file(path, f"{VERSION}\n{signature}\n{answer}\n{project}")


def remove_quick_answer(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # most often there is none
        return


def tree_signature(project: str) -> str | None:
    """Return a text that is the same only if the repository's files are; None: it cannot be found out so quickly.

    The answer is stored only where `shows_all_changes`; the index is part of the signature, so that this stays true.
    """
    top = _repository(project)
    try:
        settings = _read_settings(top) if top else None
        status = _run_git(top, *_STATUS, max_bytes=MAX_STATUS_BYTES) if top and settings else None
        if top is None or status is None:
            return None
        stats = [stat_signature(os.path.join(os.fsencode(top), path)) for path in _changed_paths(status)]
    except (OSError, ValueError):
        return None
    return digest(status.hex() + repr((settings, stats)))


def shows_all_changes(project: str) -> bool:
    """Return whether `git status` compares every file: the index has no flag that hides one, and no submodule."""
    top = _repository(project)
    listed = _run_git(top, "ls-files", "-v", "-z", "--stage", max_bytes=MAX_INDEX_BYTES) if top else None
    if listed is None:
        return False
    return all(
        entry.startswith(b"H ") and not entry.startswith(b"H 160000") for entry in listed.split(b"\0")[:-1]
    )


def _read_settings(top: str) -> list[object]:
    """Return what decides how git compares files, and what it ignores. Raises ValueError for what is not so simple."""
    folder = common = os.path.join(top, ".git")
    if not os.path.isdir(folder):  # a worktree or a submodule
        folder = common = os.path.join(top, os.fsdecode(_read(folder)).removeprefix("gitdir: ").rstrip("\n"))
        common = os.path.join(folder, os.fsdecode(_read(os.path.join(folder, "commondir"))).rstrip("\n"))
    configuration = [
        _read(os.path.join(common, "config")),
        _read(os.path.join(folder, "config.worktree")),
    ]
    # Programs that git would start, and files elsewhere.
    if any(word in text.lower() for text in configuration for word in COMPLEX_SETTINGS):
        raise ValueError("filters, or files elsewhere")
    files = [_read(os.path.join(common, "info", name)) for name in ("exclude", "attributes")]
    index = os.stat(os.path.join(folder, "index"))
    return [*configuration, *files, index.st_ino, index.st_size, index.st_mtime_ns, index.st_ctime_ns]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _repository(project: str) -> str | None:
    folder = os.path.realpath(project)
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _changed_paths(status: bytes) -> list[bytes]:
    """Return the paths of files that differ from the commit. Raises ValueError for what has an inside of its own."""
    paths = []
    for record in status.split(b"\0"):
        kind = record[:2]
        if kind == b"? ":
            path = record[2:]
            if path.endswith(b"/"):
                raise ValueError("a repository inside of this one")
        elif kind in (b"1 ", b"u "):
            fields = record.split(b" ", 8 if kind == b"1 " else 10)
            if fields[2] != b"N...":
                raise ValueError("a submodule")
            path = fields[-1]
            if fields[5 if kind == b"1 " else 6] == b"000000":  # deleted
                continue
        elif kind in (b"# ", b""):
            continue
        else:
            raise ValueError("unknown record")
        paths.append(path)
    return paths


def stat_signature(path: bytes | str) -> tuple[int, ...]:
    """Return what changes when a file does. Raises OSError, and ValueError if it was changed just now."""
    found = os.lstat(path)
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < CLOCK_TICK_NS:
        raise ValueError("changed just now")
    return (found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def _run_git(top: str, *words: str, max_bytes: int) -> bytes | None:
    """Return what git prints, or None. Without `subprocess`, which takes longer to load than git to run."""
    env = {name: value for name, value in os.environ.items() if name not in LOCAL_GIT_VARIABLES}
    env.update(GIT_ENVIRONMENT)
    words = ("git", *GIT_OPTIONS, "-C", top, f"--work-tree={top}", *words)
    try:
        source, target = os.pipe()
    except OSError:
        return None
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, target, 1),
        ]
        pid = os.posix_spawnp(words[0], words, env, file_actions=actions)
    except (OSError, ValueError):
        os.close(source)
        return None
    finally:
        os.close(target)
    return _output(pid, source, max_bytes)


def _output(pid: int, source: int, max_bytes: int) -> bytes | None:
    import select  # noqa: PLC0415 # lazy: only where an answer is stored

    parts: list[bytes] = []
    size, is_complete = 0, False
    deadline = time.monotonic() + STATUS_TIMEOUT_S
    while size <= max_bytes and select.select([source], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(source, 1 << 16)
        if not part:
            is_complete = True
            break
        parts.append(part)
        size += len(part)
    os.close(source)
    if not is_complete:
        os.kill(pid, 9)
    try:
        succeeded = os.waitpid(pid, 0)[1] == 0
    except ChildProcessError:  # SIGCHLD is ignored
        return None
    return b"".join(parts) if is_complete and succeeded else None
