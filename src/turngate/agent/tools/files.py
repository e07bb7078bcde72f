"""Reads, writes and edits one file."""

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from turngate.agent.tools.arguments import real
from turngate.agent.tools.base import ToolContext
from turngate.agent.tools.search_process import is_binary, lines, open_regular
from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.threads import run_in_thread
from turngate.core.text import truncate
from turngate.core.tools import ToolFailed, tool_spec

LINES = 2000
LINE = 2000  # characters of one line
MOST_SHOWN = 100_000  # characters of all lines
MOST_EDITED = 10_000_000  # bytes of a file
SECONDS = 30.0  # a file can be huge, and its disk far away

T = TypeVar("T")

_FILE_PATH = {"type": "string", "description": "The file, absolute or relative to the project."}

READ = tool_spec(
    "Read",
    f"Reads a text file, with line numbers as `cat -n` gives them. Gives {LINES} lines from the beginning, or "
    f"from `offset`; longer lines than {LINE} characters are cut.",
    {
        "file_path": _FILE_PATH,
        "offset": {"type": "integer", "minimum": 0, "description": "The first line, counted from 1."},
        "limit": {"type": "integer", "minimum": 1, "description": "How many lines."},
    },
    required=("file_path",),
)
WRITE = tool_spec(
    "Write",
    "Writes a whole file, and the folders above it. A file that exists must have been read before.",
    {"file_path": _FILE_PATH, "content": {"type": "string", "description": "The whole new text."}},
    required=("file_path", "content"),
)
EDIT = tool_spec(
    "Edit",
    "Replaces a text in a file that was read before. `old_string` must be exactly as in the file, without the "
    "line numbers, and must occur once, unless `replace_all` is true.",
    {
        "file_path": _FILE_PATH,
        "old_string": {"type": "string", "description": "The text to replace."},
        "new_string": {"type": "string", "description": "What stands there afterwards."},
        "replace_all": {"type": "boolean", "description": "Replaces every occurrence."},
    },
    required=("file_path", "old_string", "new_string"),
)


async def read(given: Mapping[str, Any], workplace: ToolContext) -> str:
    path = real(given["file_path"], workplace)
    with _failing(path):
        text, mtime = await _in_time(_read, path, given.get("offset", 1), given.get("limit", LINES))
    workplace.seen[path] = mtime
    return text


async def write(given: Mapping[str, Any], workplace: ToolContext) -> str:
    path = real(given["file_path"], workplace)
    with _failing(path):
        said, mtime = await finish_despite_cancel(
            _in_time(_write, path, given["content"].encode(), workplace.seen.get(path))
        )
    workplace.seen[path] = mtime
    return said


async def edit(given: Mapping[str, Any], workplace: ToolContext) -> str:
    path = real(given["file_path"], workplace)
    old, new, everywhere = given["old_string"], given["new_string"], given.get("replace_all", False)
    with _failing(path):
        said, mtime = await finish_despite_cancel(
            _in_time(_edit, path, old, new, everywhere, workplace.seen.get(path))
        )
    workplace.seen[path] = mtime
    return said


@contextlib.contextmanager
def _failing(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ToolFailed(f"{path} does not exist") from None
    except IsADirectoryError:
        raise ToolFailed(f"{path} is a folder") from None
    except TimeoutError:
        raise ToolFailed(f"{path}: that took more than {SECONDS:g} s") from None
    except OSError as error:
        raise ToolFailed(f"{path} can not be used: {error.strerror or error}") from None


async def _in_time(function: Callable[..., T], *arguments: object) -> T:
    async with asyncio.timeout(SECONDS):
        return await run_in_thread(function, *arguments)


def _read(path: str, first: int, count: int) -> tuple[str, float]:
    with open_regular(path) as file:
        mtime = os.fstat(file.fileno()).st_mtime
        if is_binary(file):
            raise ToolFailed(f"{path} is a binary file")
        number, room, shown = 0, MOST_SHOWN, list[str]()
        until = time.monotonic() + SECONDS  # nobody waits for us any longer
        for number, line in enumerate(lines(file, 4 * (LINE + 1), until), 1):  # UTF-8 has at most four bytes
            if number < first:
                continue
            text = f"{number:>6}\t{truncate(line.decode('utf-8', 'replace'), LINE, ' … [line cut]')}"
            room -= len(text)
            if len(shown) == count or (room < 0 and shown):
                shown.append(f"… [more lines follow: read on with offset {number}]")
                break
            shown.append(text)
    if not shown and number:
        raise ToolFailed(f"{path} has only {number} lines")
    return "\n".join(shown) or "(the file is empty)", mtime


def _write(path: str, data: bytes, seen: float | None) -> tuple[str, float]:
    before = _before(path, seen)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mtime = _replace(path, data, before)
    return f"{'Created' if before is None else 'Wrote'} {path}", mtime


def _edit(path: str, old: str, new: str, everywhere: bool, seen: float | None) -> tuple[str, float]:
    before = _before(path, seen)
    with open_regular(path) as file:
        if is_binary(file):
            raise ToolFailed(f"{path} is a binary file")
        data = file.read(MOST_EDITED + 1)
    if len(data) > MOST_EDITED:
        raise ToolFailed(f"{path} is too large to be edited: use Bash")
    text, count = _replaced(path, data.decode("utf-8", "surrogateescape"), old, new, everywhere)
    mtime = _replace(path, text.encode("utf-8", "surrogateescape"), before)
    return f"Changed {path} in {count} place{'s' if count > 1 else ''}", mtime


def _before(path: str, seen: float | None) -> os.stat_result | None:
    """The file as it is now, if the agent knows it so; None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{path} is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{path} is not a regular file")
    if seen is None:
        raise ToolFailed(f"{path} exists and was not read yet: read it first")
    if seen != found.st_mtime:
        raise ToolFailed(f"{path} has changed since it was read: read it again")
    if not os.access(path, os.W_OK):  # replacing it would not ask
        raise ToolFailed(f"{path} is write-protected")
    return found


def _replaced(path: str, text: str, old: str, new: str, everywhere: bool) -> tuple[str, int]:
    if not old:
        raise ToolFailed("`old_string` is empty: use Write for a whole file")
    if old == new:
        raise ToolFailed("`old_string` and `new_string` are the same")
    if 0 < text.count("\n") == text.count("\r\n"):  # Read shows no \r, so models give none
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    count = text.count(old)
    if count == 0:
        raise ToolFailed(f"`old_string` does not occur in {path}")
    if count > 1 and not everywhere:
        raise ToolFailed(
            f"`old_string` occurs {count} times in {path}: give more of what stands around it, or set `replace_all`"
        )
    if len(text) + count * max(0, len(new) - len(old)) > MOST_EDITED:
        raise ToolFailed(f"{path} would be too large to be edited again: use Bash")
    return text.replace(old, new), count


def _replace(path: str, data: bytes, before: os.stat_result | None) -> float:
    """Nobody ever sees half a file; the mode stays, and the owner if we may give it."""
    temporary = os.path.join(os.path.dirname(path), f".turngate-{os.urandom(6).hex()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            if before is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, before.st_uid, before.st_gid)
                os.fchmod(fd, stat.S_IMODE(before.st_mode))
            file.flush()
            mtime = os.fstat(fd).st_mtime
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return mtime
