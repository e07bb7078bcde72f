"""RemoteFiles: the files of the machine of a shell. Each method runs one short script there.

The methods block and are called in threads; the commands run on the event loop of the session. A command that does not
answer is ended in the background, and so is never waited for.
"""

import asyncio
import concurrent.futures
import errno
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from turngate.core.hooks import CommandHook
from turngate.core.reports import Exited
from turngate.filesystem.files import Files, MachineUnreachable
from turngate.ports import BoundedOutput, ConnectionLost, HookRunContext, Shell
from turngate.shells import file_scripts as scripts
from turngate.shells.file_scripts import Content, Described, error_of, parse_files, parse_stat
from turngate.shells.files_snapshot import FilesSnapshot, settings_paths, with_parents

EXISTENCE_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 10.0  # in which something must arrive
SEARCH_TIMEOUT_S = 20.0
WRITE_TIMEOUT_S = 10.0  # and one second more for each WRITE_BYTES_PER_S
WRITE_BYTES_PER_S = 1_000_000
PAUSE_S = 5.0  # after the machine did not answer, in which nothing is asked
MAX_ANSWER_BYTES = 64 * 1024
MAX_LIST_BYTES = 16 * 1024 * 1024
MAX_PATH_BYTES = 4096  # no system takes longer ones
MAX_ARGUMENT_BYTES = 64 * 1024  # of a path, and of all names of one command; systems allow 128 KiB or more


class _Limit(NamedTuple):
    seconds: float
    while_silent: bool = False  # it counts from the last output


class Inspected(NamedTuple):
    """What a tool must know of a file before it replaces it."""

    stat: os.stat_result  # of the file itself
    version: str  # differs after the file was written; "" for what is not a regular file
    is_writable: bool


class RemoteFiles(Files):
    """After the machine did not answer, all calls fail at once for PAUSE_S."""

    def __init__(
        self,
        shell: Shell,
        loop: asyncio.AbstractEventLoop,
        *,
        home: str,
        environ: Mapping[str, str],
        machine: str = "",
    ) -> None:
        self.home, self.environ, self.machine = home, environ, machine
        self.unreachable: MachineUnreachable | None = None  # why, if the machine did not answer the last call
        self.calls = 0  # commands so far
        self._shell, self._loop = shell, loop
        self._dialect = ""  # of `stat` there
        self._paused_until = 0.0
        self._ending: set[asyncio.Task[Exited]] = set()

    # As in `os`

    def stat(self, path: str) -> os.stat_result:
        return self._stat(path, "L")

    def lstat(self, path: str) -> os.stat_result:
        return self._stat(path, "")

    def _stat(self, path: str, follow: str) -> os.stat_result:
        dialect = self.dialect()
        output = self._run(scripts.STAT, dialect, follow, path, path=path)
        return self._parse(output.decode("utf-8", "surrogateescape"), dialect, path)

    def _parse(self, text: str, dialect: str, path: str) -> os.stat_result:
        try:
            return parse_stat(text, dialect)
        except ValueError as error:
            raise OSError(errno.EIO, str(error), path) from None

    def readlink(self, path: str) -> str:
        return self._run(scripts.READLINK, path, path=path).decode("utf-8", "surrogateescape")

    def listdir(self, path: str) -> list[str]:
        output = self._run(scripts.LISTDIR, path, path=path, max_bytes=MAX_LIST_BYTES)
        return [
            name.decode("utf-8", "surrogateescape").removeprefix("./") for name in output.split(b"\0")[:-1]
        ]

    def is_executable(self, path: str) -> bool:
        try:
            self._run(scripts.IS_EXECUTABLE, path, path=path)
        except MachineUnreachable:
            raise
        except OSError:
            return False
        return True

    def read(self, path: str, max_bytes: int) -> bytes:
        count = -(-max_bytes // scripts.BLOCK_BYTES)
        return self._read(scripts.READ, path, path, 0, count)[0][:max_bytes]

    # For tools: a path has no links, unless one has been put there meanwhile, which raises PathChanged

    def read_blocks(self, path: str, first: int, count: int) -> tuple[bytes, str]:
        """Return some blocks of a regular file, and its version."""
        folder, name = _split(path)
        return self._read(scripts.READ_RESOLVED, path, name, first, count, folder)

    def _read(
        self, script: str, path: str, name: str, first: int, count: int, *folder: str
    ) -> tuple[bytes, str]:
        answer = self._answer(
            script,
            (name, self.dialect(), str(first), str(count), *folder),
            path=path,
            max_bytes=count * scripts.BLOCK_BYTES,
            limit=_Limit(READ_TIMEOUT_S, while_silent=True),
        )
        return answer.stdout.data(), scripts.version_in(answer.stderr.text())

    def inspect(self, path: str) -> Inspected:
        dialect = self.dialect()
        output = self._run(scripts.INSPECT, dialect, *_split(path), path=path)
        line, version, writable = output.decode("utf-8", "surrogateescape").split("\0")
        return Inspected(self._parse(line, dialect, path), version.strip(), bool(writable))

    def replace(
        self, path: str, data: bytes, before: Inspected | None = None, *, make_folders: bool = False
    ) -> str:
        """Replace a file in one step, or make it if `before` is None. Return its version.

        The mode stays, and the owner where the user may set it. Raises FileChanged if there is
        another file now.
        """
        folder, name = _split(path)
        owner, mode = ("", "") if before is None else _owner_and_mode(before.stat)
        return (
            self._run(
                scripts.REPLACE,
                self.dialect(),
                folder,
                name,
                f".turngate-{secrets.token_hex(6)}",
                str(len(data)),
                "create" if make_folders else "",
                before.version if before else "",
                owner,
                mode,
                path=path,
                stdin=data,
                limit=_Limit(WRITE_TIMEOUT_S + len(data) / WRITE_BYTES_PER_S),
            )
            .decode()
            .strip()
        )

    def tree(
        self, folder: str, skipped: Sequence[str], names: Sequence[str], max_depth: int
    ) -> tuple[list[Described], bool]:
        """Return what is below a folder and not a folder itself, and whether there are folders below `max_depth`.

        `skipped` are the names of folders that are left out, `names` patterns that the names of files match; [] for
        all files. A `stat` is that of what a link leads to. Raises OSError with EFBIG if there is too much.
        """
        dialect = self.dialect()
        output = self._run(
            scripts.TREE,
            scripts.DESCRIBE_ALL,
            dialect,
            folder,
            str(max_depth),
            "\n".join(_any_name(names)),
            *_prune(skipped),
            path=folder,
            max_bytes=MAX_LIST_BYTES,
            limit=_Limit(SEARCH_TIMEOUT_S),
        )
        found = parse_files(output.removeprefix(b"e"), dialect, "")
        return [file for file in found if isinstance(file, Described)], output.startswith(b"e")

    def search(self, folder: str, skipped: Sequence[str], text: str) -> list[str]:
        """Return the files of such a tree that have a text. A name with a newline is more than one."""
        output = self._run(
            scripts.SEARCH,
            text,
            folder,
            *_prune(skipped),
            path=folder,
            max_bytes=MAX_LIST_BYTES,
            limit=_Limit(SEARCH_TIMEOUT_S),
        )
        names = output.decode("utf-8", "surrogateescape").split("\n")[:-1]
        return [f"{folder.rstrip('/')}/{name.removeprefix('./')}" for name in names]

    def fetch(self, paths: Sequence[str], max_bytes: int) -> list[Content]:
        """Return the contents of files with one command. Those that cannot be read or have just been changed are left out."""
        dialect, token = self.dialect(), _new_token()
        output = self._run(
            scripts.FETCH_ALL,
            dialect,
            token,
            "",
            *paths,
            path=paths[0],
            max_bytes=max_bytes,
            limit=_Limit(READ_TIMEOUT_S, while_silent=True),
        )
        return [file for file in parse_files(output, dialect, token) if isinstance(file, Content)]

    # Copies for a short time

    def snapshot(self, project: str) -> FilesSnapshot:
        """Read the usual places of settings with one command, for one load of them."""
        return self._snapshot(settings_paths(project, self.home))

    def snapshot_of(self, *paths: str) -> FilesSnapshot:
        """Describe some paths and the folders above them, and read the small files, with one command."""
        return self._snapshot(_first(with_parents(paths)))

    def _snapshot(self, paths: Sequence[str]) -> FilesSnapshot:
        dialect, token = self.dialect(), _new_token()
        try:
            output = self._run(
                scripts.SNAPSHOT,
                scripts.DESCRIBE_ALL,
                scripts.FETCH_ALL,
                dialect,
                token,
                *paths,
                path="/",
                max_bytes=MAX_LIST_BYTES,
                limit=_Limit(READ_TIMEOUT_S, while_silent=True),
            )
            return FilesSnapshot(self, list(parse_files(output, dialect, token)))
        except MachineUnreachable:
            raise
        except (OSError, ValueError):  # too much, or not what the scripts print: each file is asked for
            return FilesSnapshot(self, ())

    def look_up(self, path: str) -> FilesSnapshot:
        """Describe a path and the folders above it with one command."""
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
        dialect, paths = self.dialect(), _first(with_parents([path]))
        output = self._run(
            scripts.DESCRIBE_ALL, dialect, "links", "", *paths, path=path, max_bytes=MAX_LIST_BYTES
        )
        return FilesSnapshot(self, list(parse_files(output, dialect, "")))

    def dialect(self) -> str:
        """Return which `stat` there is."""
        if not self._dialect:
            self._dialect = self._run(scripts.DIALECT, path="/").decode().strip()
        return self._dialect

    # Commands

    def _run(
        self,
        script: str,
        *args: str,
        path: str,
        stdin: bytes = b"",
        max_bytes: int = MAX_ANSWER_BYTES,
        limit: _Limit | None = None,
    ) -> bytes:
        answer = self._answer(script, args, path=path, stdin=stdin, max_bytes=max_bytes, limit=limit)
        return answer.stdout.data()

    def _answer(
        self,
        script: str,
        args: Sequence[str],
        *,
        path: str,
        stdin: bytes = b"",
        max_bytes: int,
        limit: _Limit | None,
    ) -> HookRunContext:
        """Return the output of a script. Raises OSError for one that failed; `path` is for its message."""
        self._check_call(path)
        answer = HookRunContext()
        answer.stdout, answer.stderr = BoundedOutput(max_bytes), BoundedOutput(MAX_ANSWER_BYTES)
        hook = CommandHook("/bin/sh", args=("-c", script, "sh", *args))
        exited = self._on_loop(hook, stdin, answer, limit or _Limit(EXISTENCE_TIMEOUT_S))
        if exited.code != 0:
            raise error_of(answer.stderr.data().decode("utf-8", "surrogateescape"), path)
        if answer.stdout.truncated:
            raise OSError(errno.EFBIG, f"there is more than {max_bytes:,} bytes of it", path)
        return answer

    def _check_call(self, path: str) -> None:
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            raise RuntimeError("the files of another machine cannot be read on the event loop: use a thread")
        if "\0" in path:
            raise ValueError("embedded null byte")
        if len(path.encode("utf-8", "surrogateescape")) > MAX_ARGUMENT_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path[:100])
        if self.unreachable is not None and time.monotonic() < self._paused_until:
            raise MachineUnreachable(*self.unreachable.args)

    def _on_loop(self, hook: CommandHook, stdin: bytes, answer: HookRunContext, limit: _Limit) -> Exited:
        """Run a command on the event loop, while this thread waits."""
        self.calls += 1
        call = self._ask(hook, stdin, answer, limit)
        try:
            exited = asyncio.run_coroutine_threadsafe(call, self._loop).result()
        except (concurrent.futures.CancelledError, RuntimeError):
            call.close()
            raise MachineUnreachable(errno.ESHUTDOWN, "the session has ended") from None
        except TimeoutError:
            raise self._pause(
                errno.ETIMEDOUT, f"the machine did not answer within {limit.seconds:.3g} s"
            ) from None
        except OSError as error:
            raise self._pause(errno.EHOSTUNREACH, error.strerror or str(error)) from None
        self.unreachable = None
        return exited

    def _pause(self, number: int, why: str) -> MachineUnreachable:
        self._paused_until = time.monotonic() + PAUSE_S
        self.unreachable = MachineUnreachable(number, why)
        return self.unreachable

    async def _ask(self, hook: CommandHook, stdin: bytes, answer: HookRunContext, limit: _Limit) -> Exited:
        """Run a command, which may be tried again if it only reads. Raises TimeoutError."""
        start = self._loop.time()
        try:
            return await self._ask_once(hook, stdin, answer, limit)
        except ConnectionLost:
            if stdin:
                raise
        answer.stdout, answer.stderr = BoundedOutput(answer.stdout.limit), BoundedOutput(answer.stderr.limit)
        rest = max(0.0, start + limit.seconds - self._loop.time())
        return await self._ask_once(hook, stdin, answer, limit._replace(seconds=rest))

    async def _ask_once(
        self, hook: CommandHook, stdin: bytes, answer: HookRunContext, limit: _Limit
    ) -> Exited:
        running = self._shell.run(hook, cwd="/", env=self.environ, stdin=stdin, live=answer)
        task = asyncio.create_task(running, name="files")
        try:
            await asyncio.wait({task}, timeout=limit.seconds)
            received = 0
            while limit.while_silent and not task.done() and answer.stdout.size > received:
                received = answer.stdout.size
                await asyncio.wait({task}, timeout=limit.seconds)
            if not task.done():
                raise TimeoutError
            return task.result()
        finally:
            if not task.done():
                self._end(task)

    def _end(self, task: "asyncio.Task[Exited]") -> None:
        """Cancel a command, which then ends its processes; on a dead connection that takes long."""
        self._ending.add(task)
        task.add_done_callback(self._ended)
        task.cancel()

    def _ended(self, task: "asyncio.Task[Exited]") -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()


def _owner_and_mode(info: os.stat_result) -> tuple[str, str]:
    return f"{info.st_uid}:{info.st_gid}", f"{info.st_mode & 0o7777:04o}"


def _split(path: str) -> tuple[str, str]:
    """Return the folder of an absolute path, and its name as a path below it."""
    folder, _, name = path.rpartition("/")
    return folder or "/", f"./{name}"


def _prune(names: Sequence[str]) -> list[str]:
    """Return the beginning of an expression for `find`: without folders of these names. The first folder is named `.`."""
    return ["-type", "d", "!", "-name", ".", *_any_name(names), "-prune", "-o"]


def _any_name(names: Sequence[str]) -> list[str]:
    words = [word for name in names for word in ("-o", "-name", name)]
    return ["(", *words[1:], ")"] if names else []


def _first(paths: Sequence[str]) -> list[str]:
    """Return as many paths as fit into one command."""
    sizes = accumulate(len(path.encode("utf-8", "surrogateescape")) for path in paths)
    return [path for path, size in zip(paths, sizes, strict=True) if size <= MAX_ARGUMENT_BYTES]


def _new_token() -> str:
    return f"turngate-{secrets.token_hex(16)}"
