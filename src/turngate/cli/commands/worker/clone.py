"""The clone of a worker for a project in git, with a work tree for each slot."""

import fcntl
import hashlib
import itertools
import os
import shutil
import subprocess

from turngate.core.text import one_line
from turngate.errors import UsageError
from turngate.project.git import run_git
from turngate.state.files import make_private_dir, wait_for_lock
from turngate.subagents.git_files import SlotFolder

TIMEOUT_S = 3600.0


def open_slots(url: str, state: str, count: int) -> list[SlotFolder]:
    """Clone a repository, or bring the clone up to date, and return a work tree of it for each slot. Raises UsageError."""
    clone = os.path.join(state, "clones", hashlib.sha256(url.encode()).hexdigest()[:16])
    make_private_dir(os.path.dirname(clone))
    fd = _lock_file(clone)
    try:
        wait_for_lock(fd, clone, TIMEOUT_S)
        if not os.path.isdir(clone):
            shutil.rmtree(f"{clone}.new", ignore_errors=True)  # of a process that was killed
            _git(os.path.dirname(clone), "clone", "--quiet", "--", url, f"{clone}.new")
            os.rename(f"{clone}.new", clone)
        _git(clone, "fetch", "--quiet", url, "HEAD")
        commit = _git(clone, "rev-parse", "FETCH_HEAD")
        _git(clone, "checkout", "--quiet", "--force", "--detach", commit)
        free = (folder for number in itertools.count(1) if _is_free(folder := f"{clone}-{number}"))
        slots = [SlotFolder(folder, url, state) for folder in itertools.islice(free, count)]
        for slot in slots:
            if os.path.isdir(slot.folder):
                _git(slot.folder, "checkout", "--quiet", "--force", "--detach", commit)
            else:
                _git(clone, "worktree", "add", "--quiet", "--force", "--detach", slot.folder, commit)
    except OSError as error:
        raise UsageError(f"the clone {clone} cannot be used: {error}") from None
    finally:
        os.close(fd)
    return slots


def _lock_file(path: str) -> int:
    return os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_free(folder: str) -> bool:
    """Return whether no process uses a slot; if so, this one does until it ends."""
    fd = _lock_file(folder)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return False
    return True


def _git(folder: str, *words: str) -> str:
    """Return what git prints, with the settings of the user. Raises UsageError."""
    environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = run_git(folder, *words, timeout=TIMEOUT_S, environ=environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git {words[0]} in {folder} failed: {error}") from None
    if done.returncode:
        why = one_line(done.stderr.decode("utf-8", "replace"), 200)
        raise UsageError(
            f"git {words[0]} in {folder} failed: {why}; check that git can read the remote without a prompt"
        )
    return os.fsdecode(done.stdout).strip()
