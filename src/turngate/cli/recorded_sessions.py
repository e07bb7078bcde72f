"""The sessions of the journals, for commands; what a person says of them is added to the journal, and to a file for CI."""

import json
import os
import time
from collections.abc import Iterable, Sequence

from turngate.cli.console.progress import show_if_slow
from turngate.cli.review import check_person
from turngate.core.text import one_line, strip_controls
from turngate.errors import UsageError
from turngate.history.journals import Record
from turngate.history.sessions import History
from turngate.ports import World
from turngate.project.link_safe_files import open_parent
from turngate.state.files import os_errors_as_usage_errors, write_all
from turngate.state.journal import Journal
from turngate.state.paths import state_folder

FILE = ".turngate/accepted.jsonl"
MAX_BYTES = 1024 * 1024
MAX_WHY_CHARS = 500
MAX_LISTED_IDS = 10
NOT_AT_LIMIT = "the last turn did not end although a gate blocks"


def load_history(project: str | None = None) -> History:
    history = History(state_folder(), project)
    with show_if_slow("reading the journals"), os_errors_as_usage_errors(state_folder()):
        list(history.refresh())
    return history


def find_session(given: str, ids: Iterable[str]) -> str | None:
    """Return the session with this id, or the only one whose id starts so. None: there is none.

    Raises UsageError, which lists them, if there are several.
    """
    matches = sorted({each for each in ids if each.startswith(given)})
    if len(matches) > 1 and given not in matches:
        lines = "".join(f"\n  {each}" for each in matches[:MAX_LISTED_IDS])
        more = f"\n  and {len(matches) - MAX_LISTED_IDS} more" if len(matches) > MAX_LISTED_IDS else ""
        raise UsageError(f"{given} matches {len(matches)} sessions; there are{lines}{more}")
    return matches[0] if matches else None  # the shortest is the first


def record_in_journal(session: str, project: str, record: Record) -> None:
    journal = Journal(state_folder(), project)
    journal.record(session, record)
    journal.close()
    if journal.fault:
        raise UsageError(journal.fault)


def accept_open_stop(given: str, why: str) -> str:
    """Accept the end of a session, which is named by the beginning of its id; return what is printed."""
    check_person(os.environ, "accepts what a gate blocks")
    found = {each.id: each for each in load_history().newest_first() if each.open_stop}
    session = found.get(find_session(given, found) or "")
    if session is None or session.open_stop is None:
        raise UsageError(
            f"no session {given} has ended with a gate still blocking; `turngate log --open` lists them"
        )
    return accept_stop(session.id, session.project, session.open_stop.blocked_by, why)


def accept_stop(session: str, project: str, gates: Sequence[str], why: str) -> str:
    """Record that a person accepts what these gates block; return what is printed."""
    if not gates:
        raise UsageError(NOT_AT_LIMIT)
    why = one_line(strip_controls(why), MAX_WHY_CHARS)
    if not why:
        raise UsageError("why is it accepted? Give a reason, which others will read")
    record_in_journal(session, project, {"kind": "accepted", "gates": list(gates), "why": why})
    line = f"accepted: {', '.join(gates)}, in session {session}"
    if not os.path.isabs(project):  # on another machine
        return line
    entry = {"time": time.time(), "session": session, "gates": list(gates), "why": why}
    try:
        with open_parent(os.path.join(os.path.realpath(project), FILE), create=True) as (folder, name):
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            fd = os.open(name, flags, 0o644, dir_fd=folder)
            with open(fd, "wb", buffering=0):
                write_all(fd, f"{json.dumps(entry)}\n".encode())
    except OSError as error:
        raise UsageError(f"{line}, but {FILE} of {project} cannot be written: {error.strerror}") from None
    return f"{line}; commit {FILE}, so that `turngate gates run` reports it"


async def read_accepted(world: World) -> dict[str, str]:
    """Return by gate what the file of the project says of its last acceptance, which no one has verified."""
    found = dict[str, str]()
    try:
        text = await world.call(world.files.read, os.path.join(world.project, FILE), MAX_BYTES)
    except OSError:  # most often there is none
        return found
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            day = time.strftime("%Y-%m-%d", time.localtime(entry["time"]))
            found.update(dict.fromkeys(map(str, entry["gates"]), f"accepted on {day}: {entry['why']}"))
        except (ValueError, LookupError, TypeError, OverflowError, OSError, RecursionError):
            continue
    return found
