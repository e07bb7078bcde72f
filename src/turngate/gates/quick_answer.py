"""The answer of a gate that has passed, for the next stop with an unchanged tree. Imports little: most stops end here.

It is kept for `turngate gate` on this machine, by the words of the command line, and holds while `tree_signature`
is the same: one process of git, and the times of the files that differ from the last commit.
"""

import os
import time

from turngate.gates.state import digest, write_file

VERSION = "1"
MAX_STATUS_BYTES = 4 * 1024 * 1024
STATUS_TIMEOUT_S = 5.0
# A file that was changed this shortly before could be changed again without a new time.
CLOCK_TICK_NS = 2_000_000_000

# `git rev-parse --local-env-vars`: they lead git to another repository, index or folder.
LOCAL_GIT_VARIABLES = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_LITERAL_PATHSPECS",
)
_STATUS = (
    *("git", "-c", "core.fsmonitor=false", "-c", "core.sparseCheckout=true", "-C", "", "status", "-z"),
    *("--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=all", "--no-renames"),
    "--ignore-submodules=none",
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
    """Return a text that is the same only if the repository's files are; None: it cannot be found out so quickly."""
    top = _repository(project)
    status = _git_status(project) if top else None
    if top is None or status is None:
        return None
    try:
        stats = [_stat(os.path.join(os.fsencode(top), path)) for path in _changed_paths(status)]
    except (OSError, ValueError):
        return None
    return digest(status.hex() + repr(stats))


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


def _stat(path: bytes) -> tuple[int, ...]:
    found = os.lstat(path)
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < CLOCK_TICK_NS:
        raise ValueError("changed just now")
    return (found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)


def _git_status(project: str) -> bytes | None:
    """Return the output of `git status`, or None. Without `subprocess`, which takes longer to load than git to run."""
    env = {name: value for name, value in os.environ.items() if name not in LOCAL_GIT_VARIABLES}
    env["GIT_OPTIONAL_LOCKS"] = "0"
    words = [project if word == "" else word for word in _STATUS]
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
    return _output(pid, source)


def _output(pid: int, source: int) -> bytes | None:
    import select  # noqa: PLC0415 # lazy: only where an answer is stored

    parts: list[bytes] = []
    size, is_complete = 0, False
    deadline = time.monotonic() + STATUS_TIMEOUT_S
    while (
        size <= MAX_STATUS_BYTES and select.select([source], [], [], max(0.0, deadline - time.monotonic()))[0]
    ):
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
