"""The files of a project on this machine: one state, equal for equal content, and the entry of each file. Imports little: most stops need it.

The files are those that git does not ignore, of the whole repository; without a repository, all but those in folders of
tools. A file is read again only if its times, size, mode or inode have changed since the last look, which a private file
in the state folder remembers. So neither flags in git's index nor filters hide a change. The state covers what a command may ask git
as well: HEAD, the index, refs and configuration.

Git lists the names again only if something has changed that they depend on: the index, or a rule of what it ignores. Of a folder that has
changed, only the new names are asked for.
"""

import errno
import json
import os
import select
import stat
import sys
import time
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter

from turngate.gates.git.scripts import GIT_ENVIRONMENT, GIT_OPTIONS, LOCAL_GIT_VARIABLES
from turngate.gates.stored_state import digest, hash_bytes, write_file
from turngate.project.safe_paths import path_outside
from turngate.state.files import open_regular_file

TIMEOUT_S = 20.0  # then nothing is cached, and the gate has the rest of its time
RACY_NS = 2_000_000_000  # a file that was changed this shortly before could change again without a new time
CHUNK_BYTES = 1 << 20
# What changes with a file, as numbers of 64 bits; all are 0 for one that is not there. A size changes only with the times.
STAT_FIELDS = attrgetter("st_mode", "st_ino", "st_mtime_ns", "st_ctime_ns")
FIELDS, STAT_BYTES = 4, 32
TYPE_BYTE = 1 if sys.byteorder == "little" else 6  # of these bytes, the one with the type of the file
NO_STAT = b"\xff" * STAT_BYTES
ENTRY_BYTES = 48  # mode, id and newline
PART = 1000  # how many names are handled together
MAX_NEW = 500  # names that git is asked for one by one
UNTRACKED = b"?"  # git's tag of a file
LIST_FILES = ("ls-files", "-z", "-v", "--stage", "--cached", "--others", "--exclude-standard")
LIST_INDEX = ("ls-files", "-z", "-v", "--stage", "--cached")  # the end of what LIST_FILES prints
LIST_NEW = ("--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
LIST_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
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

_answers: dict[tuple[str, ...], bytes] = {}  # of git, the last ones, for the looks of one stop


class _Unknown(Exception):
    """The content is not known, or not in time."""


def local_tree_state(
    project: str, state: str, since_ns: int | None = None, names: str | None = None
) -> str | None:
    """Return the state of all files and of git. None: it cannot be found out; then nothing is cached.

    `state` is the state folder of Turngate. `since_ns`: nor is it known if a file was changed since, and changed back. `names`: what
    `first_look` has returned; nor is it known if that is different now.
    """
    try:
        return _Look(project, state).find_state(since_ns, names)
    except (OSError, _Unknown):
        return None


def first_look(
    project: str, state: str, start: str | None, likely: Iterable[str]
) -> tuple[str | None, str | None]:
    """Return the state; or, without a look at all files, what later tells that it is still that of now, if that can be told.

    `start`: a state, with which the one of now is compared. Then the look ends at the first file that has another content; it begins
    with the `likely` ones.
    """
    try:
        look = _Look(project, state)
        names = look.names_state()
        if names and (
            start is None or look.differs_from(start, (os.path.join(project, each) for each in likely))
        ):
            return None, names
        return look.find_state(), None
    except (OSError, _Unknown):
        return None, None


def content_of(state: str) -> str:
    """Return the part of a state that is about the content of files; that of another machine is not divided."""
    return state.rpartition(":")[2]


def others_of(state: str) -> str:
    """Return the part of the content that no `Listing.entries` has: repositories inside, and what hides new files."""
    return content_of(state).partition(".")[2]


class Listing:
    """The files of a project in a repository: mode, id and name of each, as `git update-index --index-info` reads them.

    The names are those in the repository.
    """

    def __init__(
        self,
        entries: list[bytes],
        inside: list[bytes],
        state: str | None,
        *,
        has_repositories: bool,
        excludes: str,
    ) -> None:
        self.entries = entries
        self.inside = inside  # those of repositories inside of it; other checkouts are in neither
        self.state = state  # what `local_tree_state` returns
        self.has_repositories = has_repositories  # inside, or checkouts
        self.excludes = excludes  # a hash of what hides new files


def local_listing(project: str, state: str) -> Listing | None:
    """Return the files of a project in a repository. None: they cannot be found out in time."""
    try:
        return _Look(project, state).find_listing() if _repository(os.path.realpath(project)) else None
    except (OSError, _Unknown):
        return None


def repository_top(project: str) -> str | None:
    """Return the folder of the repository that a project is in; None: there is none, or it ignores the project."""
    try:
        top = _find_top(os.path.realpath(project), time.monotonic() + TIMEOUT_S)
    except (OSError, _Unknown):
        return None
    return top if os.path.lexists(f"{top}/.git") else None


def local_names(project: str, state: str) -> list[str] | None:
    """Return the names of the files without a look at them, of a repository inside only its folder. None: not in time."""
    try:
        look = _Look(project, state)
    except (OSError, _Unknown):
        return None
    return [os.fsdecode(name[len(look.below) :]) for name in look.names if name.startswith(look.below)]


def find_names(project: str, state: str, pattern: str) -> tuple[list[str], list[str]] | None:
    """Return the names of files that match a pattern, in lower case, and of files that git ignores, except in ignored folders.

    None: they cannot be found out in time.
    """
    try:
        return _Look(project, state).find_names(pattern)
    except (OSError, _Unknown):
        return None


def is_committed(path: str) -> bool:
    """Return whether a file has the content that it has in the commit of its repository, without links and filters."""
    top, deadline = _repository(os.path.dirname(path)), time.monotonic() + TIMEOUT_S
    try:
        found = os.lstat(path)
        if top is None or not stat.S_ISREG(found.st_mode):
            return False
        content = _read_content(path, found.st_mode, deadline)
        committed = _run_git(top, deadline, "rev-parse", "--verify", f"HEAD:{os.path.relpath(path, top)}")
    except (OSError, _Unknown):
        return False
    return committed is not None and content.endswith(f" {committed.decode().strip()}")


class _Look:
    """One look at the files."""

    def __init__(self, project: str, state: str) -> None:
        """Raises OSError, _Unknown."""
        self._now_ns = time.time_ns()
        self._deadline = time.monotonic() + TIMEOUT_S
        project = os.path.realpath(project)
        self._top = _find_top(project, self._deadline)
        self.below = b"" if project == self._top else os.fsencode(f"{os.path.relpath(project, self._top)}/")
        self._cache = os.path.join(state, "gates", digest(f"files of {self._top}"), "files-9")
        self._stored = _read_parts(self._cache)  # by the last look
        self._names_before = _split(self._stored.get("names", b""))
        self._listing: dict[str, bytes] = {}  # what tells whether the names still hold, if that can be told
        self._states: list[str] = []  # of the repositories
        # What hides new files: their `info/exclude`, and what the user's git ignores.
        self._excludes: list[str] = []
        self._nested: list[bytes] = []  # repositories inside of the first one
        self._checkouts: list[bytes] = []  # those that are linked work trees, which have gates of their own
        self._names_hold = False  # whether the names follow from those of the last look
        self._likely: list[bytes] = []  # the files of the folders that have changed since
        self._is_known = True  # whether there is nothing else: no link leads out
        self._stats = array("Q")
        self.names = self._list()
        self._seen = array("Q")  # the stats of these, if `differs_from` has found them

    def names_state(self) -> str | None:
        """Return what is the same only if the names of all files, and what git knows, are. None: it is not known which of them are there."""
        return self._hash_names() if self._names_hold else None

    def _hash_names(self) -> str:
        texts = map(os.fsencode, (*self._states, *self._excludes))
        return hash_bytes(b"\0".join((*texts, b"", *self.names)))

    def differs_from(self, start: str, likely: Iterable[str]) -> bool:
        """Return whether a file is known to have another content than in the state of the last look. Raises OSError, _Unknown."""
        stats = self._stored["stats"]
        if content_of(self._stored["state"].decode()) != content_of(start):
            return False
        if self.names != self._names_before:
            return True
        top = os.fsencode(f"{self._top}/")
        wanted = {*self._likely, *(os.fsencode(os.path.realpath(path)).removeprefix(top) for path in likely)}
        nearest = ((name, bisect_left(self.names, name)) for name in sorted(wanted))
        places = [place for name, place in nearest if self.names[place : place + 1] == [name]]
        before = b"".join([stats[place * STAT_BYTES : (place + 1) * STAT_BYTES] for place in places])
        if self._has_other_content(places, before, _stat_files(self._top, [self.names[at] for at in places])):
            return True
        for first in range(0, len(self.names), PART):
            found = _stat_files(self._top, self.names[first : first + PART])
            self._seen += found
            before = stats[first * STAT_BYTES : (first + PART) * STAT_BYTES]
            if self._has_other_content(range(first, first + PART), before, found):
                return True
        return False

    def _has_other_content(self, places: Sequence[int], before: bytes, found: "array[int]") -> bool:
        """Return whether one of these files has another content than at the last look."""
        for at in _differences(before, found.tobytes()):
            entry = self._read_entry(places[at], found[at * FIELDS])
            if not self._stored["entries"].startswith(entry, places[at] * ENTRY_BYTES):
                return True
        return False

    def find_state(self, since_ns: int | None = None, names: str | None = None) -> str:
        """Raises OSError, _Unknown."""
        self._stat()
        if not self._is_known or (since_ns and max(self._stats[FIELDS - 1 :: FIELDS], default=0) > since_ns):
            raise _Unknown
        if names and names != self._hash_names():
            raise _Unknown
        key = {**self._key, **self._listing}
        if self._stored.get("state") and key.items() <= self._stored.items():
            return self._stored["state"].decode()
        return self._state_of(self._read())

    def find_listing(self) -> Listing:
        """Raises OSError, _Unknown."""
        self._stat()
        entries, below = self._read(), self.below
        lines, inside = self._divide(entries)
        if below or self._checkouts:
            left_out = tuple(self._checkouts)
            lines = [
                line
                for line in lines
                if line.startswith(below, ENTRY_BYTES) and not line.startswith(left_out, ENTRY_BYTES)
            ]
            inside = [line for line in inside if line.startswith(below, ENTRY_BYTES)]
        state = self._state_of(entries) if self._is_known else None
        excludes = _hash_texts(self._excludes)
        return Listing(lines, inside, state, has_repositories=bool(self._nested), excludes=excludes)

    def _divide(self, entries: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the entries with their names, and those of repositories inside that are no checkouts."""
        lines = [entry + b"\t" + name for entry, name in zip(entries.split(b"\n"), self.names, strict=False)]
        nested = tuple(each for each in self._nested if each not in self._checkouts)
        inside = [line for line in lines if line.startswith(nested, ENTRY_BYTES)]
        return (
            [line for line in lines if not line.startswith(nested, ENTRY_BYTES)] if inside else lines
        ), inside

    def find_names(self, pattern: str) -> tuple[list[str], list[str]]:
        """Return the names that match, and those of ignored files, as long as the listing holds those of the last time. Raises OSError, _Unknown."""
        path = os.path.join(os.path.dirname(self._cache), f"names-{digest(pattern)}")
        import re  # noqa: PLC0415 # lazy: few looks need it

        below, matches = os.fsdecode(self.below), re.compile(pattern).search
        key = hash_bytes(self.below + b"\0" + self._listing.get("base", b""))
        try:
            with open(path, encoding="utf-8") as file:
                before, matching, ignored = json.load(file)
        except (OSError, ValueError):  # most often there is none yet
            before = None
        if before != key or not self._listing:
            names = [name for name in map(os.fsdecode, self.names) if name.startswith(below)]
            matching = [name for name in names if matches(name[len(below) :].lower())]
            listed = _run_git(self._top, self._deadline, *LIST_IGNORED) or b""
            others = [os.fsdecode(name) for name in _split(listed[:-1]) if not name.endswith(b"/")]
            ignored = [name for name in others if name.startswith(below)]
            write_file(path, json.dumps((key, matching, ignored)))
        found = {name: True for name in matching} | dict.fromkeys(ignored, False)
        for change in map(os.fsdecode, _split(self._listing.get("changes", b""))):
            kind, name = change[0], change[1:]
            found.pop(name, None)
            if name.startswith(below) and (
                kind == "?" or (kind == "+" and matches(name[len(below) :].lower()))
            ):
                found[name] = kind == "+"
        matching = [name[len(below) :] for name, is_listed in found.items() if is_listed]
        return matching, [name[len(below) :] for name, is_listed in found.items() if not is_listed]

    @cached_property
    def _key(self) -> dict[str, bytes]:
        """What is the same only if the state is; it is known when `_stat` has been called."""
        states = _hash_texts(self._states).encode()
        is_same = self.names == self._names_before
        names = self._stored.get("names", b"") if is_same else b"\0".join(self.names)
        return {"states": states, "stats": self._stats.tobytes(), "names": names}

    def _state_of(self, entries: bytes) -> str:
        """Return the state of git, and that of the content, which has no git in it but what hides new files."""
        names, inside = self.names, list[bytes]()
        if self._nested:
            own, inside = self._divide(entries)
            names, entries = [], b"\0".join(own)
        own_state = hash_bytes(b"\0".join((*names, b"", entries)))
        others = hash_bytes(b"\0".join((*map(os.fsencode, self._excludes), b"", *inside)))
        return f"{_hash_texts(self._states)}:{own_state}.{others}"

    def _read(self) -> bytes:
        """Return the entries of all files; those that the last look has read, and that were not changed since, are not read again."""
        key, stored = self._key, self._stored
        stats = key["stats"]
        before, entries = self._known(key["names"])
        changed = _differences(before, stats)
        known = bytearray(stats)  # none for a file that was changed just now
        for place in changed:
            known[place * STAT_BYTES : (place + 1) * STAT_BYTES] = bytes(STAT_BYTES)
        try:
            for place in changed:
                mode, _, modified_ns, changed_ns = self._stats[place * FIELDS : (place + 1) * FIELDS]
                entry = self._read_entry(place, mode)
                entries[place * ENTRY_BYTES : (place + 1) * ENTRY_BYTES] = entry
                if self._now_ns - max(modified_ns, changed_ns) > RACY_NS:
                    at = slice(place * STAT_BYTES, (place + 1) * STAT_BYTES)
                    known[at] = stats[at]
            return bytes(entries)
        finally:  # also if the time is up: the next look goes on from here
            parts = {
                **key,
                **self._listing,
                "stats": bytes(known),
                "entries": bytes(entries),
                "state": b"",
            }
            if known == stats:
                parts["state"] = self._state_of(parts["entries"]).encode()
            if parts != stored:
                sizes = json.dumps({name: len(part) for name, part in parts.items()}).encode()
                write_file(self._cache, b"".join((sizes, b"\n", *parts.values())))

    def _read_entry(self, place: int, mode: int) -> bytes:
        path = f"{self._top}/{os.fsdecode(self.names[place])}"
        return f"{_read_content(path, mode, self._deadline)}\n".encode()

    def _known(self, names: bytes) -> tuple[bytes, bytearray]:
        """Return the stats and entries of the last look for the files of now; they are zeros for a new file."""
        stored = self._stored
        stats, entries = stored.get("stats", b""), stored.get("entries", b"")
        if stored.get("names") == names:
            return stats, bytearray(entries)
        before = self._names_before
        first = _count_same(before, self.names)
        last = _count_same(before[first:][::-1], self.names[first:][::-1])
        places = {name: place for place, name in enumerate(before[first:], first)}
        found = [places.get(name, len(before)) for name in self.names[first : len(self.names) - last]]
        parts = []
        for stored_part, size in ((stats, STAT_BYTES), (entries, ENTRY_BYTES)):
            part = stored_part + bytes(size)
            middle = [part[place * size : (place + 1) * size] for place in found]
            parts.append(b"".join((part[: first * size], *middle, part[(len(before) - last) * size : -size])))
        return parts[0], bytearray(parts[1])

    def _stat(self) -> None:
        """Find the stats of the files. Those that are not there are left out; the files of repositories inside are added."""
        names, self.names = self.names, []
        self._add(b"", names)
        if self._nested:
            self._listing = {}

    def _add(self, below: bytes, names: list[bytes]) -> None:
        """Add the files of a folder: "", or its name with a slash."""
        is_seen = names and len(self._seen) == len(names) * FIELDS and not below
        found = self._seen if is_seen else _stat_files(f"{self._top}/{os.fsdecode(below)}", names)
        types = {stat.S_IFMT(byte << 8) for byte in {*found.tobytes()[TYPE_BYTE::STAT_BYTES]}}
        if not below and types <= {stat.S_IFREG}:
            self.names, self._stats = names, found
            return
        for name, at in zip(names, range(0, len(found), FIELDS), strict=True):
            if stat.S_ISREG(found[at]) or self._is_link(below + name, found[at]):
                self.names.append(below + name)
                self._stats += found[at : at + FIELDS]

    def _is_link(self, name: bytes, mode: int) -> bool:
        """Return whether it is a link, and note whether its content is known. A repository is added."""
        path = f"{self._top}/{os.fsdecode(name)}"
        if mode == 0:  # it is deleted
            return False
        if stat.S_ISDIR(mode):
            if os.path.lexists(f"{path}/.git"):
                self._nested.append(below := name.rstrip(b"/") + b"/")
                if os.path.basename(os.path.dirname(_git_folders(path)[0])) == "worktrees":
                    self._checkouts.append(below)
                self._add(below, self._list(below))
            return False
        target = os.path.realpath(path)
        if stat.S_ISLNK(mode) and os.path.basename(path) in PRUNED:  # what is behind it never counts
            return True
        leads_out = not f"{target}/".startswith(f"{self._top}/") or "/.git/" in f"{target[len(self._top) :]}/"
        self._is_known = self._is_known and stat.S_ISLNK(mode) and not leads_out
        return stat.S_ISLNK(mode)

    def _list(self, below: bytes = b"") -> list[bytes]:
        """Return the names of the files of a folder, and note the state of its repository. Raises OSError, _Unknown."""
        folder = f"{self._top}/{os.fsdecode(below)}".rstrip("/")
        if not os.path.lexists(f"{folder}/.git"):
            return sorted(_walk(os.fsencode(folder)))
        states = [*_git_state(folder, self._deadline)]
        if below not in self._checkouts:
            self._excludes += [_read_text(f"{_git_folders(folder)[1]}/info/exclude"), states[-1]]
        git = _hash_texts(states)
        if not below and (names := self._update_names(git)) is not None:
            self._states += ["", self._stored["listed"].decode(), git]
            self._names_hold = True
            return names
        output = _run_git(folder, self._deadline, *LIST_FILES)
        if output is None:  # git cannot read it
            return sorted(_walk(os.fsencode(folder)))
        lines = _split(output[:-1])
        others = [line[2:] for line in lines if line[:1] == UNTRACKED]  # these are first
        listed = hash_bytes(output[sum(map(len, others)) + 3 * len(others) :])
        self._states += [os.fsdecode(below), listed, git]
        names = sorted({*others, *(line.partition(b"\t")[2] for line in lines[len(others) :])})
        if not below and (watched := self._find_watched(names)):
            stats = _stat_files(folder, watched)
            base = hash_bytes(hash_bytes(output).encode() + stats.tobytes()).encode()
            self._listing = {"git": git.encode(), "listed": listed.encode(), "base": base, "changes": b""}
            self._listing |= {"watched": b"\0".join(watched), "watched_stats": self._without_recent(stats)}
        return names

    def _update_names(self, git: str) -> list[bytes] | None:
        """Return the names of the files: those of the last look, and of the folders that have changed since. None: git has to list all."""
        stored = self._stored
        watched = _split(stored.get("watched", b""))
        if not watched or stored["git"] != git.encode():
            return None
        stats = _stat_files(self._top, watched)
        places = _differences(stored["watched_stats"], stats.tobytes())
        index = stats[:FIELDS].tobytes().hex()
        if places[:1] == [0]:  # most often git has noted the times of files
            output = self._ask_git((git, index), *LIST_INDEX)
            if output is None or hash_bytes(output).encode() != stored["listed"]:
                return None
        changed = [place for place in places if place]
        if not all(
            stat.S_ISDIR(stats[place * FIELDS]) for place in changed
        ):  # a .gitignore, or a folder is gone
            return None
        names, new, gone, folders = self._names_before[:], set[bytes](), set[bytes](), set[bytes]()
        for folder in (watched[place] for place in changed):
            below = b"" if folder == b"." else folder + b"/"
            inside = names[bisect_left(names, below) : bisect_left(names, folder + b"0")] if below else names
            known = {name for name in inside if b"/" not in name[len(below) :]}
            with os.scandir(os.path.join(os.fsencode(self._top), folder)) as entries:
                found = {below + entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            if found.pop(below + b".git", None) is not None and below:  # a repository inside
                return None
            files = {name for name, is_folder in found.items() if not is_folder}
            self._likely += known & files
            gone |= known - files
            new |= files - known
            folders |= found.keys() - files
        if len(new) > MAX_NEW or any(name.endswith(b".gitignore") for name in new):
            return None
        if self._not_ignored(sorted(folders.difference(watched))):  # with new files
            return None
        output = self._ask_git((git, index), *LIST_NEW, *map(os.fsdecode, sorted(new))) if new else b""
        if output is None:
            return None
        listed = new.intersection(_split(output[:-1]))
        changes = {each[1:]: each[:1] for each in _split(stored["changes"])}
        changes |= dict.fromkeys(gone, b"-") | {name: b"+" if name in listed else b"?" for name in new}
        if len(changes) > MAX_NEW:
            return None
        self._listing = {name: stored[name] for name in ("git", "listed", "base", "watched")}
        self._listing["changes"] = b"\0".join([kind + name for name, kind in sorted(changes.items())])
        self._listing["watched_stats"] = self._without_recent(stats)
        for name in gone:
            del names[bisect_left(names, name)]
        for name in listed:
            insort(names, name)
        return names

    def _ask_git(self, rules: tuple[str, str], *words: str) -> bytes | None:
        """Return what git prints, which depends on its rules and on the index."""
        question = (self._top, *rules, *words)
        output = _answers.get(question)
        if output is None and (output := _run_git(self._top, self._deadline, *words)) is not None:
            if len(_answers) > 1:
                _answers.clear()
            _answers[question] = output
        return output

    def _without_recent(self, stats: "array[int]") -> bytes:
        """Return these stats; those of what was changed just now are no stats, so that it is looked at again."""
        parts = bytearray(stats.tobytes())
        for at in range(0, len(stats), FIELDS):
            if self._now_ns - max(stats[at + FIELDS - 2 : at + FIELDS]) <= RACY_NS:
                parts[at * 8 : (at + FIELDS) * 8] = NO_STAT
        return bytes(parts)

    def _find_watched(self, names: list[bytes]) -> list[bytes]:
        """Return what the names depend on, beside the state of git: the index, the folders in which git looks for files, their `.gitignore`.

        None of them if a folder cannot be read.
        """
        with_files = {b""}  # the folders of files, and those above
        new = set(names)
        while new := {name.rpartition(b"/")[0] for name in new} - with_files:
            with_files |= new
        watched, pending, unknown = (
            [os.fsencode(_git_folders(self._top)[0]) + b"/index"],
            [b""],
            list[bytes](),
        )
        while pending or unknown:
            if not pending:
                pending, unknown = self._not_ignored(unknown), []
                continue
            watched.append((folder := pending.pop()) or b".")
            try:
                entries = os.scandir(os.path.join(os.fsencode(self._top), folder))
            except OSError:
                return []
            with entries:
                for entry in entries:
                    if entry.name == b".gitignore":
                        watched.append(os.path.join(folder, entry.name))
                    elif entry.is_dir(follow_symlinks=False) and entry.name != b".git":
                        name = os.path.join(folder, entry.name)
                        (pending if name in with_files else unknown).append(name)
        return watched

    def _not_ignored(self, folders: list[bytes]) -> list[bytes]:
        """Return those of these folders in which git looks for files."""
        ignored = set[bytes]()
        for at in range(0, len(folders), PART):
            words = ("check-ignore", "--no-index", "--", *map(os.fsdecode, folders[at : at + PART]))
            ignored.update((_run_git(self._top, self._deadline, *words) or b"").split(b"\n"))
        return [folder for folder in folders if folder not in ignored]


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


def _walk(folder: bytes, below: bytes = b"") -> Iterator[bytes]:
    with os.scandir(os.path.join(folder, below)) as entries:
        for entry in entries:
            if os.fsdecode(entry.name) in PRUNED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder, below + entry.name + b"/")
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield below + entry.name


def _stat_files(folder: str, names: list[bytes]) -> "array[int]":
    """Return the fields of each file. They are numbers in one array: objects for each file would take as long as the system."""
    found, fields = array("Q"), STAT_FIELDS
    fd = os.open(folder, os.O_RDONLY)  # so that the system does not look up the whole path of each file
    # Most agents work at the top, where the system needs no other folder.
    is_here = os.path.exists(os.curdir) and os.path.samefile(fd, os.curdir)
    look_at = os.lstat if is_here else lambda name: os.lstat(name, dir_fd=fd)
    try:
        for at in range(0, len(names), PART):
            values = list[int]()
            for name in names[at : at + PART]:
                try:
                    values += fields(look_at(name))
                except (FileNotFoundError, NotADirectoryError):
                    values += (0,) * FIELDS
            try:
                found.fromlist(values)
            except OverflowError:  # a time before 1970
                found.extend(value & 0xFFFF_FFFF_FFFF_FFFF for value in values)
    finally:
        os.close(fd)
    return found


def _git_state(repository: str, deadline: float) -> Iterator[str]:
    """Yield what git knows beside the index, and the rules of what it ignores that are not in the work tree; last, those of the user."""
    own, common = _git_folders(repository)
    yield from (_read_text(f"{own}/{name}") for name in OWN_STATE)
    yield from (_read_text(f"{common}/{name}") for name in COMMON_STATE)
    for folder, _, names in sorted(os.walk(f"{common}/refs")):
        if not folder.startswith(f"{common}/refs/turngate/"):  # `recordTrees` adds one at each stop
            yield from (f"{folder}/{name} {_read_text(f'{folder}/{name}')}" for name in sorted(names))
    user = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git")
    path = f"{user}/ignore"
    of_user = (f"{user}/config", os.path.expanduser("~/.gitconfig"), "/etc/gitconfig")
    files = (f"{common}/config", f"{own}/config.worktree", *of_user)
    texts = "".join(map(_read_text, files)).lower()
    if (
        "excludesfile" in texts
        or "[include" in texts
        or any(name.startswith("GIT_CONFIG") for name in os.environ)
    ):
        configured = _run_git(repository, deadline, "config", "--type=path", "--get", "core.excludesFile")
        path = os.path.join(repository, os.fsdecode(configured).rstrip("\n")) if configured else path
    yield _read_text(path)


def _git_folders(repository: str) -> tuple[str, str]:
    """Return the folder of git for the work tree, and that for all work trees of a repository."""
    own = f"{repository}/.git"
    if not os.path.isdir(own):  # a worktree or a submodule
        own = os.path.join(repository, _read_text(own).removeprefix("gitdir: "))
    return own, os.path.join(own, _read_text(f"{own}/commondir"))


def _read_text(path: str) -> str:
    """Return the text of a file; "" for what is none, such as a pipe, which would have to be waited for. Raises OSError."""
    try:
        with open(open_regular_file(path, os.O_RDONLY), encoding="utf-8", errors="surrogateescape") as file:
            return file.read().rstrip("\n")
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EINVAL):
            raise
        return ""


def _read_content(path: str, mode: int, deadline: float) -> str:
    """Return the entry of a file: its mode, and the id that git gives to its content, as a blob. Raises _Unknown."""
    kind = "120000" if stat.S_ISLNK(mode) else "100755" if mode & stat.S_IXUSR else "100644"
    from hashlib import sha1  # noqa: PLC0415 # lazy: it loads OpenSSL, and most looks read no file

    if stat.S_ISLNK(mode):
        target = os.fsencode(os.readlink(path))
        content = sha1(b"blob %d\0%b" % (len(target), target), usedforsecurity=False)
        return f"{kind} {content.hexdigest()}"
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        content = sha1(b"blob %d\0" % size, usedforsecurity=False)
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


def _read_parts(path: str) -> dict[str, bytes]:
    """Return what a look has stored: the first line has the names of the parts and their lengths."""
    try:
        with open(path, "rb") as file:
            return {name: file.read(size) for name, size in json.loads(file.readline()).items()}
    except (OSError, ValueError):  # most often there is none yet
        return {}


def _count_same(one: list[bytes], other: list[bytes]) -> int:
    """Return how many names are the same at the beginning."""
    pairs = zip(one, other, strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _differences(before: bytes, now: bytes) -> list[int]:
    """Return the places of the files whose stats differ."""
    found = []
    for start in range(0, len(now), size := PART * STAT_BYTES):
        if now[start : start + size] != before[start : start + size]:
            places = range(start, min(start + size, len(now)), STAT_BYTES)
            found += [at for at in places if now[at : at + STAT_BYTES] != before[at : at + STAT_BYTES]]
    return [at // STAT_BYTES for at in found]


def _split(text: bytes) -> list[bytes]:
    return text.split(b"\0") if text else []


def _hash_texts(texts: Iterable[str]) -> str:
    return hash_bytes("\0\0".join(texts).encode("utf-8", "surrogateescape"))  # no name has a NUL


def _run_git(folder: str, deadline: float, *words: str) -> bytes | None:
    """Return what git prints, or None if it fails. Without `subprocess`, which takes longer to load than git to run."""
    env = {name: value for name, value in os.environ.items() if name not in LOCAL_GIT_VARIABLES}
    env.update(GIT_ENVIRONMENT, GIT_CEILING_DIRECTORIES=os.path.dirname(folder))
    places = path_outside(os.environ.get("PATH", os.defpath), folder).split(os.pathsep)
    program = next((path for each in places if os.access(path := f"{each}/git", os.X_OK)), "git")
    words = (program, *GIT_OPTIONS, "-C", folder, f"--work-tree={folder}", *words)
    source, target = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, target, 1),
    ]
    try:
        pid = os.posix_spawn(program, words, env, file_actions=actions)
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
