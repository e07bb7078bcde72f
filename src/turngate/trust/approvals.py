"""The approvals of one project, or of the user: a private file in the state folder."""

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from turngate.errors import UsageError
from turngate.project.checkouts import in_main_checkout
from turngate.project.files import LOCAL, Files
from turngate.project.safe_paths import is_inside, real_path
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.state.files import make_private_dir, wait_for_lock, write_and_rename
from turngate.state.paths import approvals_path, user_approvals_path
from turngate.trust.covered_files import NO_FILES, CoveredFiles, compare_files
from turngate.trust.fingerprint import Fingerprint, text_digest

VERSION = 2
LOCK_SECONDS = 5.0
MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_WITHDRAWN = 1000  # that are remembered
MAX_EARLIER = 20  # versions of one hook
MAX_KEPT_BYTES = 1024 * 1024  # of a file whose approved text is kept, to show what has changed
# FS_IOC_GETVERSION of Linux: differs between two folders that have the same inode in turn.
_GET_GENERATION = 0x80087601


class Approval(NamedTuple):
    """What was approved, and when. `folder` holds the approved texts."""

    key: str
    place: str  # in a settings file
    fingerprint: Fingerprint
    time: float = 0.0
    folder: str = ""
    # Versions of its files that were approved before: those of another branch.
    earlier: tuple[Fingerprint, ...] = ()

    def content_of(self, name: str) -> bytes | None:
        """Return the content of a file as it was approved, or None if it was not kept."""
        digest = (self.fingerprint.files.get(name) or "").removeprefix("sha256:")
        try:
            return read_bytes(os.path.join(self.folder, os.path.basename(digest)), MAX_KEPT_BYTES)
        except (OSError, NotARegularFile, FileTooLarge):  # without a digest, it is the folder
            return None


class Approvals:
    """The approvals of one folder: a project, or the user's home folder.

    The folder may be on another machine. The file of the approvals, and the texts that were approved, are on this one.
    All checkouts of a git repository have the approvals of the main one: those of `git worktree add` too.
    """

    def __init__(self, folder: str, state: str, *, of_user: bool = False, files: Files = LOCAL) -> None:
        self._files, self._machine = files, files.machine
        machine = files.machine
        if not machine and files.live is not LOCAL:
            raise ValueError("the files of another machine are approved under its name, and it has none")
        self._path_of_folder = files.realpath(folder)
        self._main = self._path_of_folder if of_user else in_main_checkout(self._path_of_folder, files)
        self.folder = machine + self._main
        self._trust = os.path.join(state, "trust")
        self.path = user_approvals_path(state, machine) if of_user else approvals_path(state, self.folder)
        self.problem: str | None = None  # why the file does not count
        # A repository could contain the file; the home folder, where the state folder is by default, is not one.
        place = self._path_of_folder
        has_home = is_inside(real_path(os.path.expanduser("~")), place)
        self._is_inside = not machine and is_inside(real_path(self.path), place) and not has_home
        self._data = self._load()

    def find(self, digest: str) -> Approval | None:
        """Return the approval of a definition."""
        record = self._data["approved"].get(digest)
        if record is None:
            return None
        approved, *earlier = (
            Fingerprint(record["content"], self._data["files"].get(files, NO_FILES), variables)
            for files, variables in _versions(record)
        )
        texts = os.path.join(self._trust, "content")
        return Approval(record["key"], record["place"], approved, record["time"], texts, tuple(earlier))

    def latest_of(self, place: str) -> Approval | None:
        """Return the last approval of the hook at this place of a settings file."""
        found = (approval for approval in self.all() if approval.place == place)
        return max(found, key=lambda approval: approval.time, default=None)

    def all(self) -> Iterator[Approval]:
        return filter(None, map(self.find, self._data["approved"]))

    def is_rejected(self, digest: str) -> bool:
        return digest in self._data["rejected"]

    def is_withdrawn(self, digest: str) -> bool:
        """Return whether a person has rejected, forgotten or replaced what was approved."""
        return self.is_rejected(digest) or digest in self._data.get("withdrawn", ())

    def has_env(self, env: Mapping[str, str]) -> bool:
        """Return whether the `env` of the settings is approved."""
        return not env or env_digest(env) in self._data["env"]

    # Changes

    def approve(
        self,
        hooks: Iterable[tuple[str, str, Fingerprint]],
        env: Mapping[str, str] | None = None,
        present: Collection[str] = (),
    ) -> None:
        """Add approvals: the place, the key and the fingerprint of each hook. Raises UsageError.

        `env` replaces what was approved of the settings' `env`. `present` are the definitions that there are now: another
        one at the same place is not missed any more, and stays approved for other branches.
        """
        hooks = tuple(hooks)
        covered = CoveredFiles(self._files.live, self._path_of_folder)
        with self._changing() as data:
            for key, found in {id(found.files): (key, found) for _, key, found in hooks}.values():
                self._keep_texts(key, found, covered)
            _withdraw(data, _replaced(data, {place for place, _, _ in hooks}, present), kept=MAX_EARLIER)
            for place, key, found in hooks:
                data["rejected"].pop(found.digest, None)
                data["withdrawn"] = [each for each in data.get("withdrawn", ()) if each != found.digest]
                digest = text_digest(json.dumps(found.files, sort_keys=True))
                data["files"][digest] = dict(found.files)
                earlier = _versions(data["approved"].get(found.digest))
                data["approved"][found.digest] = {
                    "key": key,
                    "place": place,
                    "time": time.time(),
                    "content": found.content,
                    "files": digest,
                    "variables": dict(found.variables),
                    "earlier": [each for each in earlier if each[0] != digest][:MAX_EARLIER],
                }
            used = {files for record in data["approved"].values() for files, _ in _versions(record)}
            data["files"] = {digest: files for digest, files in data["files"].items() if digest in used}
            if env is not None:
                data["env"] = [env_digest(env)]

    def reject(self, hooks: Iterable[tuple[str, str, Fingerprint]], present: Collection[str] = ()) -> None:
        """Withdraw approvals, and remember that these definitions are not wanted. The parameters are those of `approve`."""
        hooks = tuple(hooks)
        with self._changing() as data:
            _withdraw(data, _replaced(data, {place for place, _, _ in hooks}, present))
            for _, key, found in hooks:
                _withdraw(data, {found.digest} & data["approved"].keys())
                data["rejected"][found.digest] = key

    def forget(self, digests: Iterable[str]) -> None:
        """Remove approvals of hooks that have vanished, and remember that a person has decided this."""
        with self._changing() as data:
            places = {data["approved"][each]["place"] for each in digests if each in data["approved"]}
            _withdraw(data, _replaced(data, places))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Read the file again under a lock, and write it when the block ends."""
        if self._is_inside:
            raise UsageError(
                f"the state folder {self._trust} is inside the project, where approvals do not count; "
                "set TURNGATE_STATE to a folder of your own"
            )
        try:
            make_private_dir(os.path.dirname(self.path))
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                wait_for_lock(lock, f"{self.path}.lock", LOCK_SECONDS)
                data = self._load()
                yield data
                _write_private(self.path, json.dumps(data, indent=1).encode())
                self._data = data
            finally:
                os.close(lock)
        except OSError as error:
            raise UsageError(
                f"the approval cannot be stored: {error.filename or self.path}: {error.strerror}; "
                "repair it, or set TURNGATE_STATE to another folder"
            ) from None

    # The file

    def _empty(self) -> dict[str, Any]:
        return {**self._header(), "approved": {}, "rejected": {}, "env": [], "files": {}}

    def _header(self) -> dict[str, Any]:
        """Return what binds the file to this folder and this user: a copy of the file, or of the folder, has another."""
        identity = [] if self._machine else _identity(self._main)  # SFTP does not tell inodes
        return {"version": VERSION, "folder": self.folder, "user": os.geteuid(), "identity": identity}

    def _load(self) -> dict[str, Any]:
        self.problem = None
        if self._is_inside:
            return self._empty()
        try:
            if why := _why_not_private(self.path):
                self.problem = f"{self.path} {why}"
                return self._empty()
            data: Any = json.loads(read_bytes(self.path, MAX_FILE_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return self._empty()
        except (ValueError, RecursionError):
            wrong = "cannot be read (it is not JSON)"
        except (OSError, NotARegularFile, FileTooLarge) as error:
            wrong = f"cannot be read ({str(error) or 'it is too large'})"
        else:
            if isinstance(data, dict) and not self._header().items() <= data.items():
                return self._empty()
            if _is_valid(data):
                own: dict[str, Any] = data
                return own
            wrong = "is damaged"
        self.problem = f"{self.path} {wrong}, so no approval counts; remove it, and approve again"
        return self._empty()

    def _keep_texts(self, key: str, found: Fingerprint, covered: CoveredFiles) -> None:
        """Keep the contents of a hook's files by their digests. Raises UsageError if one is not as it was reviewed."""
        if found.problem:
            raise UsageError(f"{key} cannot be approved: {found.problem}")
        if change := compare_files(found.files, covered):
            raise UsageError(f"{change} while {key} was reviewed; nothing was approved, review it again")
        for name, recorded in found.files.items():
            kind, _, digest = (recorded or "").partition(":")
            path = os.path.join(self._trust, "content", digest)
            if kind == "sha256" and not os.path.exists(path):
                data = covered.files.read(covered.path_of(name), MAX_KEPT_BYTES + 1)
                if len(data) <= MAX_KEPT_BYTES and hashlib.sha256(data).hexdigest() == digest:
                    make_private_dir(os.path.dirname(path))
                    _write_private(path, data)


def _identity(folder: str) -> list[int]:
    """Return what another folder at the same path does not have: the inode and, if the system tells, its generation or birth."""
    try:
        found = os.stat(folder)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        generation = int.from_bytes(fcntl.ioctl(fd, _GET_GENERATION, bytes(8))[:4], sys.byteorder)
    except OSError:  # not on this file system, or not Linux
        generation = 0
    finally:
        os.close(fd)
    return [found.st_ino, generation or int(getattr(found, "st_birthtime", 0))]


def _versions(record: Mapping[str, Any] | None) -> list[list[Any]]:
    """Return files and variables of all versions that were approved, the last one first."""
    return [[record["files"], record["variables"]], *record.get("earlier", ())] if record else []


def _replaced(data: dict[str, Any], places: Collection[str], present: Collection[str] = ()) -> list[str]:
    """Return the definitions at these places that are not there, the last one that was approved first."""
    approved = sorted(data["approved"].items(), key=lambda item: -item[1]["time"])
    return [digest for digest, record in approved if record["place"] in places and digest not in present]


def _withdraw(data: dict[str, Any], digests: Iterable[str], kept: int = 0) -> None:
    """Remember that a person has decided about these definitions: a session does not miss them. Remove all but some."""
    for number, digest in enumerate(digests):
        if number >= kept:
            del data["approved"][digest]
        data["withdrawn"] = [*data.get("withdrawn", ()), digest][-MAX_WITHDRAWN:]


def env_digest(env: Mapping[str, str]) -> str:
    return text_digest(json.dumps(env, sort_keys=True))


def _why_not_private(path: str) -> str | None:
    """Return why a file does not count: another user could have written it."""
    info = os.lstat(path)
    if not stat.S_ISREG(info.st_mode):
        return "is not a regular file, so no approval counts; remove it, and approve again"
    if info.st_uid != os.geteuid():
        return "belongs to another user, so no approval counts; remove it, and approve again"
    if info.st_mode & 0o077:
        return f"is open to other users, so no approval counts; chmod 600 {path} if you trust its content"
    return None


def _is_valid(data: Any) -> bool:
    tables = {"env": list, "approved": dict, "rejected": dict, "files": dict}
    if not _has_types(data, tables) or not all(isinstance(each, dict) for each in data["files"].values()):
        return False
    return all(_has_types(record, _RECORD) for record in data["approved"].values())


_RECORD = {"key": str, "place": str, "content": str, "time": (int, float), "files": str, "variables": dict}


def _has_types(value: Any, types: Mapping[str, Any]) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), each) for name, each in types.items())


def _write_private(path: str, data: bytes) -> None:
    """Replace a file in one step; it is never seen half written."""
    from tempfile import mkstemp  # noqa: PLC0415 # lazy: a check of approvals writes nothing

    write_and_rename(*mkstemp(dir=os.path.dirname(path)), path, data)
