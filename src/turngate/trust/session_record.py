"""The gates and values of one session of a host, recorded at its first event: a gate that is changed later blocks the stop.

Imports little: every stop looks for a record.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress

from turngate.gates.stored_state import hash_bytes, state_path, write_file
from turngate.project.checkouts import find_top, in_main_checkout
from turngate.project.files import LOCAL

VERSION = 4

# A gate as it was approved: its id or "", where it is configured, and its definition as compact JSON.
RecordedGate = tuple[str, str, str]
# `limit`, `hard_limit` and `child_limit` of the settings: an agent that lowers one would be let go at its next stop.
Limits = tuple[int | None, int | None, int | None]


class SessionRecord:
    def __init__(
        self, project: str, gates: tuple[RecordedGate, ...], limits: Limits, files: str, values: str
    ) -> None:
        self.project, self.gates, self.limits = project, gates, limits
        self.files = files  # what `files_states` returned at the start; "": not known
        self.values = values  # of the user's settings, as `trust.load` writes them


def record_path(state: str, session: str, below: str = "") -> str:
    """`below`: a project inside of that of the session, or in another checkout."""
    return state_path(state, session, "", f"gates of the session {below}")


def read_record(path: str) -> SessionRecord | None:
    """Return what was recorded, or None: it is the first event of the session, or the file is damaged."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            data = json.load(file)
        data["gates"] = tuple((str(key), str(place), str(text)) for key, place, text in data["gates"])
        return SessionRecord(**data) if data.pop("version") == VERSION else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def forget_record(path: str) -> None:
    with suppress(OSError):  # most often there is none
        os.unlink(path)


def write_record(path: str, record: SessionRecord) -> None:
    write_file(path, json.dumps({"version": VERSION, **vars(record)}))


# Projects inside of the project of a session: in a monorepo, their gates count for the files below them

_FOLDER = '"folder": '  # in a file of approvals
_HEADER_CHARS = 16 * 1024


def projects_below(state: str, project: str) -> list[str]:
    """Return the folders below a project of which hooks were approved; they may be gone."""
    folder, found = os.path.join(state, "trust", "projects"), []
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError, ValueError), open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read(_HEADER_CHARS)
                found.append(str(json.JSONDecoder().raw_decode(text, text.index(_FOLDER) + len(_FOLDER))[0]))
    real = os.path.realpath(project).rstrip("/")
    main = in_main_checkout(real, LOCAL)
    return sorted(real + each[len(main) :] for each in found if each.startswith(f"{main}/"))


def files_states(folders: Iterable[str], state: str) -> dict[str, str]:
    """Return by folder what is the same only if its files are that git does not ignore, and what hides new ones."""
    # lazy: it is needed at a start, and where a session has several projects or checkouts
    from turngate.gates.local_tree_state import ENTRY_BYTES, Listing, local_listing, local_names  # noqa: PLC0415

    looks, found = dict[str, Listing | None](), dict[str, str]()
    for folder in folders:
        real = os.path.realpath(folder)
        top = find_top(real, LOCAL)
        if top not in looks:  # once for all projects of a repository
            looks[top] = local_listing(top, state)
        below = os.fsencode(f"{real}/"[len(top) :].lstrip("/"))
        listing = looks[top]
        listed = [*listing.entries, *listing.inside] if listing else []
        entries = [each for each in listed if each.startswith(below, ENTRY_BYTES)]
        if listing and entries:
            entries.append(listing.excludes.encode())
        else:  # there is no repository, or it ignores the folder
            paths = [os.path.join(real, name) for name in local_names(real, state) or ()]
            times = [f"{path} {os.lstat(path).st_ctime_ns}" for path in paths if os.path.lexists(path)]
            entries = [os.fsencode(each) for each in times]
        found[folder] = hash_bytes(b"\0".join((b"%d" % os.path.isdir(real), *entries)))
    return found
