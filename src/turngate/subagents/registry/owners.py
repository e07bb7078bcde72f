"""Owners of runs: each process that runs subagents holds a file lock, which the system releases when it dies."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator

from turngate.errors import RegistryError
from turngate.state.files import make_private_dir
from turngate.state.process_stat import ProcessId, is_alive, this_process
from turngate.subagents.registry.store import OwnerEnd
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


@contextlib.contextmanager
def owner_status(folder: str, owner: str) -> Iterator[OwnerEnd | None]:
    """Yield how an owner ended, or None while it lives. One that left in order has given up its runs: its id is "".

    An id of another form, which no version writes, has no lock file and is that of a dead owner.
    A dead owner's lock is held inside the `with` block, so only one process sees "died" at a time, unless its lock
    file is missing. Then its process decides; in an id of an earlier version none is named, and it left in order.
    """
    if not owner:
        yield "left"
        return
    path = lock_path(folder, owner)
    if path is None:
        yield "died"
        return
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        process = process_of(owner)
        yield "left" if process is None else None if is_alive(process) else "died"
        return
    except OSError:
        yield None
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
    else:
        yield "died"
    finally:
        os.close(fd)


def process_of(owner: str) -> ProcessId | None:
    """Return the process that an owner's id names; an id of an earlier version names none."""
    match = _OWNER_ID.fullmatch(owner)
    return ProcessId(int(match[1]), match[2]) if match and match[1] else None


def lock_path(folder: str, owner: str) -> str | None:
    """Return the path of an owner's lock; None for an id in the registry that no version writes."""
    return os.path.join(folder, owner) if _OWNER_ID.fullmatch(owner) else None


def owner_is_gone(folder: str, owner: str) -> bool:
    with owner_status(folder, owner) as status:
        return status is not None
