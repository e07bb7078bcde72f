"""SshFiles: the files of another machine, over one SFTP channel of its connection.

The methods block and are called in threads; the questions run on the event loop of the session. Version 3 of the
protocol, which all servers have, knows times in whole seconds, and neither inodes nor most error numbers.
"""

import asyncio
import concurrent.futures
import contextlib
import errno
import hashlib
import io
import math
import os
import secrets
import stat
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any

import asyncssh
from asyncssh.sftp import SFTPAttrs, SFTPClient, SFTPClientFile

from turngate.aio.threads import T
from turngate.project.files import Files, FileState, FileVersion, FoundFile, MachineUnreachable, check_regular
from turngate.project.link_safe_files import PathChanged
from turngate.shells.ssh.shell import SshShell

PAUSE_S = 5.0  # after the machine did not answer, in which nothing is asked
EXISTENCE_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 10.0  # in which something must arrive
SEARCH_TIMEOUT_S = 20.0
WRITE_TIMEOUT_S = 10.0  # and one second more for each WRITE_BYTES_PER_S
WRITE_BYTES_PER_S = 1_000_000
MAX_PATH_BYTES, MAX_NAME_BYTES = 4096, 255
MAX_ENTRIES = 200_000  # of one tree
MAX_SNAPSHOT_FILE_BYTES = 64 * 1024
SNAPSHOT_DEPTH = 3  # of folders below a place that ends with `/**`
AT_ONCE = 64  # files or folders that are open at the same time; servers allow about a hundred
CHUNK_BYTES = 1024 * 1024
VERSION_BYTES = 256 * 1024  # the content of a file of this size is part of its version

_NONE = math.inf  # a limit of its own, for each part that is read
_UNREADABLE = (asyncssh.SFTPNoSuchFile, asyncssh.SFTPPermissionDenied)
_LOST = (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection, asyncssh.DisconnectError, ConnectionError)


# An answer is what a method returned or raised, by the name of the method and the path.
Answers = dict[tuple[str, str], Any]


class FileChanged(OSError):
    """The file is not what it was when it was inspected."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EBUSY, "it has just been changed; try again", path)


class SshFiles(Files):
    """After the machine did not answer, all calls fail at once for PAUSE_S."""

    def __init__(
        self,
        shell: SshShell,
        loop: asyncio.AbstractEventLoop,
        *,
        home: str,
        environ: Mapping[str, str],
        machine: str = "",
    ) -> None:
        self.home, self.environ, self.machine = home, environ, machine
        self.loop = loop
        self._shell = shell
        self._unreachable: MachineUnreachable | None = None  # the machine did not answer the last call
        self._unreachable_since = 0.0

    # As in `os`

    def stat(self, path: str) -> os.stat_result:
        return self._ask(path, lambda sftp: _stat(sftp, path))

    def lstat(self, path: str) -> os.stat_result:
        return self._ask(path, lambda sftp: _lstat(sftp, path))

    def readlink(self, path: str) -> str:
        return self._ask(path, lambda sftp: _readlink(sftp, path))

    def listdir(self, path: str) -> list[str]:
        return list(self.scan(path))

    def scan(self, path: str) -> dict[str, os.stat_result]:
        return self._ask(path, lambda sftp: _list(sftp, path))

    def read(self, path: str, max_bytes: int) -> bytes:
        return self._ask(path, lambda sftp: _read(sftp, path, max_bytes), limit=_NONE)

    def resolve(self, path: str) -> str:
        """Ask about all folders of the path at once."""
        is_known = path.startswith("/") and "\0" not in path
        return Files.resolve(self._snapshot([path]) if is_known else self, path)

    def locate(self, path: str) -> str:
        path = self.expand_home(path)
        return Files.locate(self._snapshot([path]), path)

    def snapshot(self, places: Iterable[str] = ()) -> "Snapshot":
        return self._snapshot([place for place in places if "\0" not in place], READ_TIMEOUT_S)

    def _snapshot(self, places: Sequence[str], limit: float | None = None) -> "Snapshot":
        answers: Answers = {}
        if places:
            self._ask("/", lambda sftp: _remember(sftp, places, answers), limit=limit)
        return Snapshot(self, answers)

    # For tools: a path has no links, unless one has been put there meanwhile, which raises PathChanged

    def open(self, path: str) -> tuple[io.BufferedReader, str]:
        async def read(sftp: SFTPClient, offset: int, size: int) -> tuple[bytes, os.stat_result]:
            await _check_no_link(sftp, path)
            return await _read_resolved(sftp, path, offset, size)

        def part(offset: int, size: int) -> tuple[bytes, os.stat_result]:
            return self._ask(path, lambda sftp: read(sftp, offset, size), limit=_NONE)

        data, info = part(0, VERSION_BYTES)
        return io.BufferedReader(_Parts(data, lambda offset: part(offset, CHUNK_BYTES)[0])), _version(
            info, data
        )

    def inspect(self, path: str) -> FileState:
        return self._ask(path, lambda sftp: _inspect(sftp, path), limit=READ_TIMEOUT_S)

    def replace(
        self, path: str, data: bytes, before: FileState | None = None, *, make_folders: bool = False
    ) -> str:
        limit = WRITE_TIMEOUT_S + len(data) / WRITE_BYTES_PER_S
        temporary = f"{os.path.dirname(path)}/.turngate-{secrets.token_hex(6)}"
        try:
            return self._ask(
                path,
                lambda sftp: _replace(sftp, path, data, before, temporary, make_folders),
                limit=limit,
                again=False,
            )
        except MachineUnreachable:
            self._unreachable = None  # one more attempt, over another connection
            with contextlib.suppress(OSError, MachineUnreachable):
                self._ask(temporary, lambda sftp: sftp.remove(temporary))
            raise

    def tree(self, folder: str, skipped: Collection[str], max_depth: int) -> tuple[list[FoundFile], bool]:
        return self._ask(folder, lambda sftp: _tree(sftp, folder, skipped, max_depth), limit=SEARCH_TIMEOUT_S)

    def fetch(self, paths: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        async def read(sftp: SFTPClient) -> dict[str, bytes]:
            found: dict[str, bytes] = {}

            async def add(path: str) -> None:
                with contextlib.suppress(OSError, *_UNREADABLE):
                    found[path] = (await _read_resolved(sftp, path, 0, max_bytes))[0]

            await _check_no_link(sftp, *{os.path.dirname(path) for path in paths})
            await _for_each(add, paths)
            return found

        return self._ask(paths[0], read, limit=SEARCH_TIMEOUT_S)

    # The bridge from a thread to the event loop

    def _ask(
        self,
        path: str,
        question: Callable[[SFTPClient], Awaitable[T]],
        *,
        limit: float | None = None,  # EXISTENCE_TIMEOUT_S
        again: bool = True,
    ) -> T:
        """Ask on the event loop, while this thread waits. Raises MachineUnreachable, OSError or ValueError."""
        self._check_call(path)
        asking: Coroutine[Any, Any, T] = self._answer(question, limit, again)
        try:
            answer = asyncio.run_coroutine_threadsafe(asking, self.loop).result()
        except (concurrent.futures.CancelledError, RuntimeError):
            asking.close()
            raise MachineUnreachable("the session has ended") from None
        except _Unreachable as error:
            self._unreachable_since = time.monotonic()
            self._unreachable = MachineUnreachable(str(error))
            raise self._unreachable from None
        except asyncssh.SFTPError as error:
            raise _os_error(error, path) from None
        self._unreachable = None
        return answer

    def _check_call(self, path: str) -> None:
        try:
            is_here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_here = False
        if is_here:
            raise RuntimeError("the files of another machine cannot be read on the event loop: use a thread")
        if "\0" in path:
            raise ValueError("embedded null byte")
        if len(path.encode("utf-8", "surrogateescape")) > MAX_PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path[:100])
        if self._unreachable is not None and time.monotonic() < self._unreachable_since + PAUSE_S:
            raise MachineUnreachable(str(self._unreachable))

    async def _answer(
        self, question: Callable[[SFTPClient], Awaitable[T]], limit: float | None, again: bool
    ) -> T:
        """Ask once more over another connection if the first one was lost; opening has a limit of its own."""
        try:
            sftp = await self._shell.sftp()
        except OSError as error:
            raise _Unreachable(error.strerror or str(error)) from None
        seconds = EXISTENCE_TIMEOUT_S if limit is None else limit
        try:
            async with asyncio.timeout(seconds):
                return await question(sftp)
        except TimeoutError:
            self._shell.drop_sftp()
            raise _Unreachable(
                f"the machine did not answer within {min(seconds, READ_TIMEOUT_S):.3g} s"
            ) from None
        except _LOST:
            self._shell.drop_sftp()
            if not again:
                raise _Unreachable(f"the connection to {self._shell.host} was lost") from None
        return await self._answer(question, limit, again=False)


# What was answered


class Snapshot(Files):
    """Each answer is as it was when the snapshot was taken or, for other files, at the first question."""

    def __init__(self, files: Files, answers: Answers) -> None:
        self._files, self.answers = files, answers
        self.machine, self.home, self.environ = files.machine, files.home, files.environ

    @property
    def live(self) -> Files:
        return self._files

    def stat(self, path: str) -> os.stat_result:
        return self._ask(self._files.stat, path)

    def lstat(self, path: str) -> os.stat_result:
        return self._ask(self._files.lstat, path)

    def readlink(self, path: str) -> str:
        known = self.answers.get(("lstat", path))
        if isinstance(known, os.stat_result) and not stat.S_ISLNK(known.st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return self._ask(self._files.readlink, path)

    def listdir(self, path: str) -> list[str]:
        return list(self._ask(self._files.listdir, path))

    def scan(self, path: str) -> dict[str, os.stat_result]:
        return self._ask(self._files.scan, path)

    def read(self, path: str, max_bytes: int) -> bytes:
        data = self.answers.get(("read", path))
        return self._files.read(path, max_bytes) if data is None else data[:max_bytes]

    def resolve(self, path: str) -> str:
        if ("lstat", os.path.dirname(path)) in self.answers:
            return super().resolve(path)
        return self._ask(self._files.resolve, path)

    def locate(self, path: str) -> str:
        return self._ask(self._files.locate, path)

    def open(self, path: str) -> tuple[io.BufferedReader, FileVersion]:
        return self._files.open(path)

    def snapshot(self, places: Iterable[str] = ()) -> Files:
        """Return this snapshot, with what is at these places unless it is known already."""
        if missing := [place for place in places if not self._knows(place)]:
            read = self._files.snapshot(missing)
            self.answers = {**(read.answers if isinstance(read, Snapshot) else {}), **self.answers}
        return self

    def _knows(self, place: str) -> bool:
        path = place.removesuffix("/**").removesuffix("/.")
        return ("lstat" if path == place else "scan", path) in self.answers or self._is_missing(path)

    def _ask(self, method: Callable[[str], T], path: str) -> T:
        key = (method.__name__, path)
        if key not in self.answers:
            try:
                if self._is_missing(path):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                self.answers[key] = method(path)
            except OSError as error:
                self.answers[key] = error
        answer: T = self.answers[key]
        if isinstance(answer, OSError):
            raise answer.with_traceback(None)
        return answer

    def _is_missing(self, path: str) -> bool:
        """Return whether the path, or a folder above it, is known not to exist."""
        while "/" in path.rstrip("/"):
            folder, _, name = path.rstrip("/").rpartition("/")
            names = self.answers.get(("listdir", folder or "/"))
            is_listed = not isinstance(names, list) or _may_name(name, names)
            if isinstance(self.answers.get(("lstat", path)), FileNotFoundError) or not is_listed:
                return True
            path = folder
        return False


def _may_name(name: str, names: list[str]) -> bool:
    """The file system may ignore the case, and compose characters."""
    return not name.isascii() or name in (".", "..") or name.lower() in (each.lower() for each in names)


class _Unreachable(Exception):
    """The machine did not answer; the text says why."""


def _os_error(error: asyncssh.SFTPError, path: str) -> OSError:
    match error:
        case asyncssh.SFTPNoSuchFile():
            number = errno.ENOENT
        case asyncssh.SFTPPermissionDenied():
            number = errno.EACCES
        case asyncssh.SFTPBadMessage():  # EINVAL and ENAMETOOLONG of OpenSSH
            names = path.encode("utf-8", "surrogateescape").split(b"/")
            number = errno.ENAMETOOLONG if max(map(len, names)) > MAX_NAME_BYTES else errno.EINVAL
        case asyncssh.SFTPOpUnsupported():
            number = errno.EOPNOTSUPP
        case _:
            return OSError(errno.EIO, f"the machine reports: {error.reason}", path)
    return OSError(number, os.strerror(number), path)


# Questions: each runs on the event loop, and raises OSError or SFTPError


async def _stat(sftp: SFTPClient, path: str) -> os.stat_result:
    return _stat_result(await sftp.stat(path), path)


async def _lstat(sftp: SFTPClient, path: str) -> os.stat_result:
    return _stat_result(await sftp.lstat(path), path)


def _stat_result(attrs: SFTPAttrs, path: str) -> os.stat_result:
    if attrs.permissions is None:
        raise OSError(errno.EIO, "the machine sent an answer that cannot be read", path)
    atime, mtime = attrs.atime or 0, attrs.mtime or 0
    fields = (attrs.permissions, 0, 0, 0, attrs.uid or 0, attrs.gid or 0, attrs.size or 0, atime, mtime, 0)
    times = {"st_atime": float(atime), "st_mtime": float(mtime), "st_ctime": 0.0}
    return os.stat_result(fields, {**times, **{f"{name}_ns": int(at) * 10**9 for name, at in times.items()}})


async def _readlink(sftp: SFTPClient, path: str) -> str:
    target: str | bytes = await sftp.readlink(path)
    return os.fsdecode(target)


async def _list(sftp: SFTPClient, folder: str) -> dict[str, os.stat_result]:
    """Return the names in a folder, each with what is known of the file itself."""
    found = {}
    try:
        async for entry in sftp.scandir(folder):
            name = str(entry.filename)
            if name not in ("", ".", "..") and "/" not in name and "\0" not in name:
                found[name] = _stat_result(entry.attrs, f"{folder}/{name}")
    except asyncssh.SFTPNoSuchFile:
        if stat.S_ISDIR((await _stat(sftp, folder)).st_mode):
            raise
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
    return found


async def _read(
    sftp: SFTPClient, path: str, max_bytes: int, *, offset: int = 0, info: os.stat_result | None = None
) -> bytes:
    """Read a regular file. The protocol cannot open without waiting for a writer, so what it is is asked first."""
    async with asyncio.timeout(READ_TIMEOUT_S) as timer:
        info = info or await _stat(sftp, path)
        check_regular(info, path)
        size = min(max_bytes, max(0, info.st_size - offset) or CHUNK_BYTES)  # files of /proc have no size
        data = bytearray()
        async with sftp.open(path, "rb") as file:
            while part := await _read_part(file, min(CHUNK_BYTES, size - len(data)), offset + len(data)):
                data += part
                if len(data) == size:
                    break
                timer.reschedule(asyncio.get_running_loop().time() + READ_TIMEOUT_S)
        return bytes(data)


async def _read_part(file: SFTPClientFile, size: int, offset: int) -> bytes:
    data: str | bytes = await file.read(size, offset)
    return data.encode() if isinstance(data, str) else data


async def _read_resolved(sftp: SFTPClient, path: str, offset: int, size: int) -> tuple[bytes, os.stat_result]:
    """`path` is in a folder that was checked."""
    info = await _lstat(sftp, path)
    if stat.S_ISLNK(info.st_mode):
        raise PathChanged(path)
    return await _read(sftp, path, size, offset=offset, info=info), info


async def _check_no_link(sftp: SFTPClient, *paths: str) -> None:
    """Raise PathChanged for a link in a path that had none when it was resolved, NotADirectoryError for a file above it."""

    async def check(path: str) -> None:
        with contextlib.suppress(*_UNREADABLE, asyncssh.SFTPBadMessage):
            mode = (await _lstat(sftp, path)).st_mode
            if stat.S_ISLNK(mode):
                raise PathChanged(path)
            if path not in paths and not stat.S_ISDIR(mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    await _for_each(check, dict.fromkeys(parent for path in paths for parent in _with_parents(path)))


def _with_parents(path: str) -> list[str]:
    """Return all folders above an absolute path, and the path itself."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    return ["/" + "/".join(names[:n]) for n in range(1, len(names) + 1)]


async def _inspect(sftp: SFTPClient, path: str) -> FileState:
    await _check_no_link(sftp, f"{os.path.dirname(path)}/.")
    info = await _lstat(sftp, path)
    if not stat.S_ISREG(info.st_mode):
        return FileState(info, "", is_writable=False)
    try:
        async with sftp.open(path, "r+b") as file:
            data = await _read_part(file, min(info.st_size, VERSION_BYTES), 0)
        return FileState(info, _version(info, data), is_writable=True)
    except (asyncssh.SFTPPermissionDenied, asyncssh.SFTPFailure):  # the disk may be read-only
        data = await _read(sftp, path, VERSION_BYTES)
        return FileState(info, _version(info, data), is_writable=False)


def _version(info: os.stat_result, data: bytes) -> str:
    """Return what differs after a file was written; `data` is its beginning."""
    return f"{info.st_size} {info.st_mtime} {hashlib.sha256(data[:VERSION_BYTES]).hexdigest()}"


async def _replace(
    sftp: SFTPClient, path: str, data: bytes, before: FileState | None, temporary: str, make_folders: bool
) -> str:
    folder = os.path.dirname(path)
    if make_folders:
        await sftp.makedirs(folder, exist_ok=True)
    await _check_no_link(sftp, path)
    if not stat.S_ISDIR((await _stat(sftp, folder)).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    try:
        current: FileVersion | None = (await _inspect(sftp, path)).version
    except asyncssh.SFTPNoSuchFile:
        current = None
    if current != (before.version if before else None):
        raise FileChanged(path)
    try:
        async with sftp.open(temporary, "xb") as file:
            await file.write(data)
            if before is not None:
                with contextlib.suppress(asyncssh.SFTPError):  # only root may give files away
                    await file.chown(before.stat.st_uid, before.stat.st_gid)
                await file.chmod(stat.S_IMODE(before.stat.st_mode))
            info = _stat_result(await file.stat(), path)
        await sftp.posix_rename(temporary, path)
    except BaseException as error:
        with contextlib.suppress(asyncssh.SFTPError, TimeoutError):
            async with asyncio.timeout(EXISTENCE_TIMEOUT_S):
                await sftp.remove(temporary)
                # The protocol reports only that it failed.
                if isinstance(error, asyncssh.SFTPFailure) and (await sftp.statvfs(folder)).bavail == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder) from error
        raise
    return _version(info, data)


async def _tree(
    sftp: SFTPClient, root: str, skipped: Collection[str], max_depth: int
) -> tuple[list[FoundFile], bool]:
    await _check_no_link(sftp, root)
    found: list[FoundFile] = []
    links: list[str] = []
    count, folders, depth = 0, [root], 0
    while folders and depth <= max_depth:
        inner: list[str] = []

        async def visit(folder: str, inner: list[str] = inner) -> None:
            nonlocal count
            try:
                entries = await _list(sftp, folder)
            except (NotADirectoryError, *_UNREADABLE):
                if folder == root:
                    raise
                return  # removed meanwhile, or not readable
            count += len(entries)
            if count > MAX_ENTRIES:
                raise OSError(errno.EFBIG, f"there are more than {MAX_ENTRIES:,} files", root)
            for name, info in entries.items():
                path = f"{folder.rstrip('/')}/{name}"
                if stat.S_ISDIR(info.st_mode) and name not in skipped:
                    inner.append(path)
                elif stat.S_ISREG(info.st_mode):
                    found.append(FoundFile(path, info, is_link=False))
                elif stat.S_ISLNK(info.st_mode):
                    links.append(path)

        await _for_each(visit, folders)
        folders, depth = inner, depth + 1

    async def follow(path: str) -> None:
        with contextlib.suppress(*_UNREADABLE):
            info = await _stat(sftp, path)
            if stat.S_ISREG(info.st_mode):
                found.append(FoundFile(path, info, is_link=True))

    await _for_each(follow, links)
    return found, bool(folders)


async def _remember(sftp: SFTPClient, places: Sequence[str], answers: Answers) -> None:
    """Ask about places and the folders above them. Add what is known, and the contents of small files."""

    async def ask(method: str, path: str, question: Awaitable[object]) -> object:
        try:
            answers[method, path] = await question
        except OSError as error:
            answers[method, path] = error
        except _LOST:
            raise
        except asyncssh.SFTPError as error:
            answers[method, path] = _os_error(error, path)
        return answers[method, path]

    async def look_up(path: str, *, content: bool) -> None:
        info: Any = answers.get(("lstat", path)) or await ask("lstat", path, _lstat(sftp, path))
        if not isinstance(info, os.stat_result):
            return
        if stat.S_ISLNK(info.st_mode):
            info, _ = await asyncio.gather(
                ask("stat", path, _stat(sftp, path)), ask("readlink", path, _readlink(sftp, path))
            )
        else:
            answers["stat", path] = info
        is_file = isinstance(info, os.stat_result) and stat.S_ISREG(info.st_mode)
        if content and is_file and info.st_size <= MAX_SNAPSHOT_FILE_BYTES:
            data = await ask("read", path, _read(sftp, path, MAX_SNAPSHOT_FILE_BYTES + 1))
            if not isinstance(data, bytes) or len(data) > MAX_SNAPSHOT_FILE_BYTES:
                del answers["read", path]

    async def list_folder(folder: str, depth: int) -> None:
        entries = await ask("scan", folder, _list(sftp, folder))
        answers["listdir", folder] = list(entries) if isinstance(entries, dict) else entries
        if isinstance(entries, dict):
            paths = {f"{folder.rstrip('/')}/{name}": info for name, info in entries.items()}
            answers.update((("lstat", path), info) for path, info in paths.items())
            await _for_each(lambda path: look_up(path, content=depth > 0), paths)
            if depth > 0:
                inner = [path for path, info in paths.items() if stat.S_ISDIR(info.st_mode)]
                await _for_each(lambda path: list_folder(path, depth - 1), inner)

    async def remember(place: str) -> None:
        if place.endswith("/**"):
            await list_folder(place[:-3], SNAPSHOT_DEPTH)
        elif place.endswith("/."):
            await list_folder(place[:-2], 0)
        else:
            await look_up(place, content=True)

    plain = [place.removesuffix("/**").removesuffix("/.") for place in places]
    parents = dict.fromkeys(parent for place in plain for parent in _with_parents(place))
    await _for_each(lambda path: look_up(path, content=False), parents)
    pairs = zip(places, plain, strict=True)
    there = [place for place, path in pairs if isinstance(answers.get(("stat", path)), os.stat_result)]
    await _for_each(remember, there)


async def _for_each(function: Callable[[str], Awaitable[None]], paths: Iterable[str]) -> None:
    """Call a function for all paths, AT_ONCE at the same time."""
    paths = list(paths)
    waiting = iter(paths)

    async def work() -> None:
        for path in waiting:
            await function(path)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in paths[:AT_ONCE]:
                group.create_task(work())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


class _Parts(io.RawIOBase):
    """A file on another machine, read part by part; `data` is its beginning."""

    def __init__(self, data: bytes, read: Callable[[int], bytes]) -> None:
        self._unread, self._read, self._offset = memoryview(data), read, len(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        if not self._unread and self._offset >= VERSION_BYTES:
            self._unread = memoryview(self._read(self._offset))
            self._offset += len(self._unread)
        count = min(len(buffer), len(self._unread))
        buffer[:count] = self._unread[:count]
        self._unread = self._unread[count:]
        return count
