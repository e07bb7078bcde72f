"""Owners of runs: each process that runs subagents holds a file lock, which the system releases when it dies."""

import contextlib
import fcntl
import os
import re

from turngate.errors import RegistryError
from turngate.state.files import make_private_dir
from turngate.state.process_stat import ProcessId, is_alive, this_process
from turngate.subagents.registry.table import new_id

OWNERS_FOLDER = "owners"  # folder of the lock files in the state folder
_OWNER_ID = re.compile(r"[0-9A-Za-z]{1,64}(?:-([0-9]{1,20})-([0-9]{0,40}))?")


def new_owner_id() -> str:
    """Return an id that names the process too, because a lock file can be deleted."""
    process = this_process()
    return f"{new_id()}-{process.pid}-{process.started}"


def hold_lock(folder: str, owner: str) -> int:
    """Return the descriptor of a new lock, which is released when it is closed."""
    path = os.path.join(folder, owner)
    try:
        make_private_dir(folder)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError as error:
        raise RegistryError(f"the owner's lock {path} cannot be taken: {error}") from error
    with contextlib.suppress(OSError):  # the PID only helps people, so a full disk does not matter
        os.write(fd, str(os.getpid()).encode())
    return fd


def is_gone(folder: str, owner: str) -> bool:
    """Return whether an owner has died or has given up its runs, which then have the owner ""; remove its lock file.

    If the lock file is missing, the process in the id decides. An id that no version writes has none.
    """
    if not _OWNER_ID.fullmatch(owner):
        return True
    path = os.path.join(folder, owner)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        process = process_of(owner)
        return process is None or not is_alive(process)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared by all that look
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    with contextlib.suppress(OSError):
        os.unlink(path)
    return True


def process_of(owner: str) -> ProcessId | None:
    """Return the process that an owner's id names; an id of an earlier version names none."""
    match = _OWNER_ID.fullmatch(owner)
    return ProcessId(int(match[1]), match[2]) if match and match[1] else None
