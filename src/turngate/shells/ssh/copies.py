"""RemoteCopies: copies of transcripts and other files on the machine where hooks run, in a private folder.

Of a transcript that has grown, only what is new is sent. A copy that is not as it was sent, because it was truncated,
removed or changed, is sent anew, and so is one of a transcript that was rewritten here. The checksum of `cksum` decides;
no clock does.

The folder is removed when the connection ends, also when it is lost or this process is killed: the cleanup shell does it.
"""

import asyncio
import contextlib
import errno
import os
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import replace

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import finish_despite_cancel, run_in_thread
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import keep_ends, one_line
from turngate.ports import ConnectionLost, HookRunContext, NotStarted
from turngate.shells.ssh.remote_command import as_line, quote
from turngate.shells.ssh.shell import SshShell
from turngate.state.files import open_regular_file

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@frozen
class Checksum:
    """What POSIX `cksum` prints of the bytes so far: zlib's CRC with the bits of a byte reversed, and of the length."""

    size: int = 0
    crc: int = 0xFFFFFFFF

    def after(self, data: bytes) -> "Checksum":
        return Checksum(self.size + len(data), self._crc(data))

    def __str__(self) -> str:
        """Return what `cksum` prints for its stdin: `CRC SIZE`."""
        length = self.size.to_bytes((self.size.bit_length() + 7) // 8, "little")
        return f"{int(f'{self._crc(length):032b}'[::-1], 2)} {self.size}"

    def _crc(self, data: bytes) -> int:
        return zlib.crc32(data.translate(_REVERSED), self.crc)


CHUNK_BYTES = 8 * 1024 * 1024  # sent by one command, and held in memory
QUICK_BYTES = 8 * 1024  # sent to the cleanup shell: many shells read a line byte by byte
READ_BYTES = 1024 * 1024  # of a transcript, read at once
MAX_ATTEMPTS = 3  # while the folder is removed

# `FILE CHECKSUM NAME`: append what `data` prints to FILE if it has this checksum; `new`: to an empty file; nothing: in any
# case. The complete file is moved to NAME. What cannot be written is removed. One line, for the cleanup shell.
_APPEND = (
    "umask 077; f=$1 n=$3; case $2 in "
    'new) rm -f "$f"; : >"$f" || exit 1 ;; '
    '?*) [ -f "$f" ] || exit 9; set -- $2 $(cksum <"$f"); [ "$1 $2" = "$3 $4" ] || exit 9 ;; '
    'esac; data >>"$f" || { rm -f "$f"; exit 1; }; '
    '[ -z "$n" ] || { mkdir "${n%/*}" 2>/dev/null; mv -f "$f" "$n"; } || { rm -f "$f"; exit 1; }'
)
_CHANGED = 9
_NO_FOLDER = 8
_REMOVE = 'rm -rf -- "$@"'


class CopyFailed(OSError):
    """One sentence: which machine, and why."""

    def __init__(self, host: str, why: str) -> None:
        super().__init__(errno.EIO, why)
        self._message = f"the transcript could not be copied to {host}: {why}"

    def __str__(self) -> str:
        return self._message


class RemoteCopies:
    """The copies of one session or workspace. Another one never shares a folder with it."""

    def __init__(self, shell: SshShell) -> None:
        self.shell = shell
        self._copies: dict[str, _Copy] = {}  # by the path here
        self._originals: dict[str, str] = {}  # the path here, by the path there
        self._transfers: dict[str, _Transfer] = {}

    async def copy(self, path: str) -> str:
        """Copy what is new of a transcript, and return the path of the copy.

        If the transcript does not exist here, its copy does not exist there. Hooks that ask at the same time share one
        transfer; it ends when the last of them is cancelled. Raises OSError, which says why.
        """
        state = _state(path)
        transfer = self._transfers.get(path)
        if transfer is None or transfer.state != state:
            transfer = _Transfer(state, asyncio.create_task(self._copy_after(transfer, path)))
            self._transfers[path] = transfer
        transfer.waiters += 1
        try:
            return await asyncio.shield(transfer.task)
        finally:
            transfer.waiters -= 1
            if not transfer.waiters:
                if self._transfers.get(path) is transfer:
                    del self._transfers[path]
                await transfer.cancel()

    def has_lost(self, path: str) -> bool:
        """Return whether a copy is gone because the connection was lost after it was made."""
        folder = self.shell.folder
        return bool(path) and not (folder and path.startswith(f"{folder}/"))

    async def renew(self, path: str) -> str:
        """Return the path of a copy, which is made anew if it was lost with its connection. Raises OSError."""
        original = self._originals.get(path)
        return path if original is None or not self.has_lost(path) else await self.copy(original)

    async def close(self) -> None:
        for transfer in tuple(self._transfers.values()):
            await transfer.cancel()
        copies, self._copies = self._copies, {}
        names = [copy.subfolder for copy in copies.values() if copy.folder == self.shell.folder]
        if names and self.shell.folder and await self.shell.answers():
            with contextlib.suppress(NotStarted, ConnectionLost):  # the cleanup shell removes them
                await self._run(_REMOVE, names, self.shell.folder)

    async def _copy_after(self, earlier: "_Transfer | None", path: str) -> str:
        if earlier is not None:
            await asyncio.wait({earlier.task})
        try:
            return await self._copy(path)
        except (NotStarted, ConnectionLost, CopyFailed):
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise CopyFailed(self.shell.host, f"{where}{error.strerror or error}") from None

    async def _copy(self, path: str) -> str:
        gone, was_lost = "", False
        for _ in range(MAX_ATTEMPTS):
            try:
                folder = await self.shell.private_folder(instead_of=gone)
                copy = self._copies.get(path)
                if copy is None or copy.folder != folder:
                    copy = _Copy(folder, secrets.token_hex(4), os.path.basename(path))
                self._copies[path] = copy.with_unknown_content()  # until it is known to be complete
                copy = await self._update(copy, path)
            except _FolderGone:
                gone = folder
            except ConnectionLost:  # nothing of a hook has started, so it is safe to begin anew
                if was_lost:
                    raise
                was_lost = True
            else:
                # Otherwise the connection was lost, and the folder with it.
                if folder and folder == self.shell.folder:
                    self._copies[path] = copy
                    self._originals[copy.path] = path
                    return copy.path
        raise CopyFailed(self.shell.host, "its folder there was removed several times")

    async def _update(self, copy: "_Copy", path: str) -> "_Copy":
        """Make the copy equal to the transcript, and return it with its checksum."""
        try:
            fd = open_regular_file(path, os.O_RDONLY)
        except FileNotFoundError:
            await self._send_command(_REMOVE, copy.file, copy=copy)
            return copy.with_unknown_content()
        try:
            transcript = _Transcript(fd)
            if await run_in_thread(transcript.begins_with, copy.checksum):
                with contextlib.suppress(_CopyChanged):
                    return await self._append(copy, transcript)
            return await self._append(copy.with_unknown_content(), transcript)
        finally:
            os.close(fd)

    async def _append(self, copy: "_Copy", transcript: "_Transcript") -> "_Copy":
        """Append what is new; if nothing is known of the copy, to a new file, which replaces it when it is complete."""
        checksum, expected = copy.checksum or Checksum(), str(copy.checksum or "new")
        file, name = (copy.file, "") if copy.checksum else (f"{copy.subfolder}.new", copy.file)
        while True:
            data = await run_in_thread(transcript.read, checksum.size, CHUNK_BYTES)
            checksum = checksum.after(data)
            is_last = not data or checksum.size >= transcript.size
            await self._send_command(_APPEND, file, expected, name if is_last else "", copy=copy, stdin=data)
            if is_last:
                return replace(copy, checksum=checksum)
            expected = ""

    async def _send_command(self, script: str, *args: str, copy: "_Copy", stdin: bytes = b"") -> None:
        try:
            is_short = copy.checksum is None or copy.checksum.size <= READ_BYTES  # it is read there
            code, message = await self._run(script, args, copy.folder, stdin, is_short=is_short)
        except ConnectionLost:
            host = self.shell.host
            raise ConnectionLost(
                f"the connection to {host} was lost while the transcript was copied"
            ) from None
        if code == _NO_FOLDER:
            raise _FolderGone
        if code == _CHANGED:
            raise _CopyChanged
        if code:
            message = keep_ends(one_line(message), 200, 100, " … ")
            raise CopyFailed(self.shell.host, message or f"exit code {code}")

    async def _run(
        self, script: str, args: Sequence[str], folder: str, stdin: bytes = b"", *, is_short: bool = True
    ) -> tuple[int, str]:
        """Run a script in a folder there. Return its exit code, and what it says."""
        if not folder:  # `cd ''` stays in the home folder
            return _NO_FOLDER, ""
        if is_short and len(stdin) <= QUICK_BYTES and b"\0" not in stdin:
            ended = await self.shell.evaluate(_for_cleanup_shell(script, args, folder, stdin))
            if ended is not None:
                return ended
        hook = CommandHook("/bin/sh", args=("-c", f"data() {{ cat; }}; {script}", "turngate-copy", *args))
        env = await self.shell.environment()
        try:
            exited = await self.shell.run(hook, cwd=folder, env=env, stdin=stdin, live=HookRunContext())
        except NotStarted as error:
            if error.filename == folder:
                return _NO_FOLDER, ""
            raise
        return exited.code, exited.stderr


def _for_cleanup_shell(script: str, args: Sequence[str], folder: str, stdin: bytes) -> str:
    """Return one line that does the same as a command with this stdin."""
    data, words = quote(stdin.decode("utf-8", "surrogateescape")), " ".join(map(quote, args))
    steps = (
        f"cd -- {quote(folder)} 2>/dev/null || exit {_NO_FOLDER}",
        f"data() {{ printf %s {data}; }}",
        f"set -- {words}",
        script,
    )
    return as_line("; ".join(steps))


class _FolderGone(Exception):
    """Raised when the folder there does not exist."""


class _CopyChanged(Exception):
    """Raised when the copy is not as it was sent."""


@frozen
class _Copy:
    """A copy on the other machine; `checksum` is None if what it holds is not known."""

    folder: str
    subfolder: str
    name: str
    checksum: Checksum | None = None

    def with_unknown_content(self) -> "_Copy":
        return replace(self, checksum=None)

    @property
    def file(self) -> str:
        return f"{self.subfolder}/{self.name}"

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.file}"


class _Transfer:
    """A copy that is being made of a transcript in this state."""

    def __init__(self, state: object, task: "asyncio.Task[str]") -> None:
        self.state, self.task, self.waiters = state, task, 0

    async def cancel(self) -> None:
        if not self.task.done():
            self.task.cancel()
            await finish_despite_cancel(asyncio.wait({self.task}))


# The transcript here


def _state(path: str) -> tuple[int, ...] | None:
    """Return what changes with the file; None if there is none."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


class _Transcript:
    """An open file of this machine; what is appended later is not part of it."""

    def __init__(self, fd: int) -> None:
        self._fd, self.size = fd, os.fstat(fd).st_size

    def begins_with(self, sent: Checksum | None) -> bool:
        checksum = Checksum()
        while sent and (data := self.read(checksum.size, min(READ_BYTES, sent.size - checksum.size))):
            checksum = checksum.after(data)
        return checksum == sent

    def read(self, offset: int, limit: int) -> bytes:
        return os.pread(self._fd, max(0, min(limit, self.size - offset)), offset)
