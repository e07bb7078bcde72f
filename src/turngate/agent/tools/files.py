"""The tools Read, Write and Edit."""

import asyncio
import contextlib
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from io import BufferedReader
from typing import Any, TypeVar

from turngate.agent.tools.search_process import is_binary, lines
from turngate.agent.tools.tool import ToolContext, resolve_path
from turngate.aio.threads import finish_despite_cancel, run_in_thread
from turngate.core.conversation.tools import ToolFailed, ToolOutput, tool_spec
from turngate.core.text import truncate
from turngate.project.files import FileState, FileVersion, MachineUnreachable
from turngate.project.link_safe_files import PathChanged

MAX_LINES = 2000
MAX_LINE_CHARS = 2000
MAX_READ_CHARS = 100_000  # of all lines
MAX_EDIT_BYTES = 10_000_000  # of one file
TIMEOUT_S = 30.0  # a file can be huge, and on a network disk

T = TypeVar("T")

_FILE_PATH = {"type": "string", "description": "The file, absolute or relative to the project."}

READ = tool_spec(
    "Read",
    f"Reads a text file, with line numbers as `cat -n` gives them. Gives {MAX_LINES} lines from the beginning, or "
    f"from `offset`; lines longer than {MAX_LINE_CHARS} characters are truncated.",
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
        "new_string": {"type": "string", "description": "The text that replaces it."},
        "replace_all": {"type": "boolean", "description": "Replaces every occurrence."},
    },
    required=("file_path", "old_string", "new_string"),
)


async def read(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    first = args.get("offset", 1)
    _, (text, content) = await _use_file(_read, args, context, first, args.get("limit", MAX_LINES))
    file = {"filePath": args["file_path"], "content": "\n".join(content)}
    file |= {"numLines": len(content), "startLine": max(1, first)}
    return ToolOutput(text, {"type": "text", "file": file})


async def write(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    path, before = await finish_despite_cancel(_use_file(_write, args, context, args["content"].encode()))
    created = before is None
    response = {"type": "create" if created else "update", "filePath": args["file_path"]}
    patch: dict[str, Any] = {"structuredPatch": [], "originalFile": None} if created else {}
    response |= {"content": args["content"], **patch, "userModified": False}
    text = f"{'Created' if created else 'Wrote'} {path}"
    return ToolOutput(text, response, change=(before or "", args["content"]))


async def edit(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    old, new, replace_all = args["old_string"], args["new_string"], args.get("replace_all", False)
    path, (count, change) = await finish_despite_cancel(
        _use_file(_edit, args, context, old, new, replace_all)
    )
    response = {"filePath": args["file_path"], "oldString": old, "newString": new}
    response |= {"replaceAll": replace_all, "userModified": False}
    return ToolOutput(f"Changed {path} in {count} place{'s' if count > 1 else ''}", response, change=change)


async def _use_file(
    function: Callable[..., tuple[T, FileVersion]],
    args: Mapping[str, Any],
    context: ToolContext,
    *more: object,
) -> tuple[str, T]:
    """Call a function with the path in a thread, and remember the version that it returns. Return path and result."""
    path = await context.call(resolve_path, args["file_path"], context)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            result, context.read_files[path] = await run_in_thread(function, path, context, *more)
    except FileNotFoundError:
        raise ToolFailed(f"{path} does not exist") from None
    except IsADirectoryError:
        raise ToolFailed(f"{path} is a folder") from None
    except TimeoutError:
        raise ToolFailed(f"{path}: no answer from the disk within {TIMEOUT_S:g} s") from None
    except OSError as error:
        raise ToolFailed(f"{path} cannot be used: {error.strerror or error}") from None
    except MachineUnreachable as error:
        raise ToolFailed(f"{path} cannot be used: {error}") from None
    return path, result


def _read(
    path: str, context: ToolContext, first: int, count: int
) -> tuple[tuple[str, list[str]], FileVersion]:
    """Return the numbered lines for the model with the lines themselves, and the version."""
    with _open_text(path, context) as (file, version):
        number, room, output, content = 0, MAX_READ_CHARS, list[str](), list[str]()
        until = time.monotonic() + TIMEOUT_S  # the caller has given up by then
        max_bytes = 4 * (MAX_LINE_CHARS + 1)  # UTF-8 has at most four bytes per character
        for number, line in enumerate(lines(file, max_bytes, until), 1):
            if number < first:
                continue
            shown = truncate(line.decode("utf-8", "replace"), MAX_LINE_CHARS, " … [line truncated]")
            text = f"{number:>6}\t{shown}"
            room -= len(text)
            if len(output) == count or (room < 0 and output):
                output.append(f"… [more lines follow: read on with offset {number}]")
                break
            output.append(text)
            content.append(shown)
    if not output and number:
        raise ToolFailed(f"{path} has only {number} lines")
    return ("\n".join(output) or "(the file is empty)", content), version


@contextlib.contextmanager
def _open_text(path: str, context: ToolContext) -> Iterator[tuple[BufferedReader, FileVersion]]:
    file, version = context.files.open(path)
    with file:
        if is_binary(file):
            raise ToolFailed(f"{path} is a binary file")
        yield file, version


def _write(path: str, context: ToolContext, data: bytes) -> tuple[str | None, FileVersion]:
    """Return what was in the file, or None if it is new, and its version. On another machine it is not read."""
    state = _check_current(path, context)
    before = "" if state else None
    if state and context.is_local:
        with contextlib.suppress(OSError), context.files.open(path)[0] as file:
            before = file.read(MAX_EDIT_BYTES).decode("utf-8", "replace")
    return before, context.files.replace(path, data, state, make_folders=True)


def _edit(
    path: str, context: ToolContext, old: str, new: str, replace_all: bool
) -> tuple[tuple[int, tuple[str, str]], FileVersion]:
    """Return in how many places the file changed, its text before and after, and its version."""
    before = _check_current(path, context)
    with _open_text(path, context) as (file, _):
        data = file.read(MAX_EDIT_BYTES + 1)
    if len(data) > MAX_EDIT_BYTES:
        raise ToolFailed(f"{path} is too large to be edited: use Bash")
    text = data.decode("utf-8", "surrogateescape")
    changed, count = replace_text(path, text, old, new, replace_all)
    version = context.files.replace(path, changed.encode("utf-8", "surrogateescape"), before)
    return (count, (text, changed)), version


def _check_current(path: str, context: ToolContext) -> FileState | None:
    """Return the state of the file, or None if there is none. Raises ToolFailed unless the agent has read it as it is."""
    try:
        state = context.files.inspect(path)
    except FileNotFoundError:
        return None
    seen, mode = context.read_files.get(path), state.stat.st_mode
    if stat.S_ISLNK(mode):
        raise PathChanged(path)
    if stat.S_ISDIR(mode):
        raise ToolFailed(f"{path} is a folder")
    if not stat.S_ISREG(mode):
        raise ToolFailed(f"{path} is not a regular file")
    if seen is None:
        raise ToolFailed(f"{path} exists and was not read yet: read it first")
    if seen != state.version:
        raise ToolFailed(f"{path} has changed since it was read: read it again")
    if not state.is_writable:
        raise ToolFailed(f"{path} is write-protected")
    return state


def replace_text(path: str, text: str, old: str, new: str, replace_all: bool) -> tuple[str, int]:
    """Return the new text of a file, and in how many places it changes. Raises ToolFailed."""
    if not old:
        raise ToolFailed("`old_string` is empty: use Write for a whole file")
    if old == new:
        raise ToolFailed("`old_string` and `new_string` are the same")
    if 0 < text.count("\n") == text.count("\r\n"):  # Read does not show \r, so models do not send it
        old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
    count = text.count(old)
    if count == 0:
        raise ToolFailed(f"`old_string` does not occur in {path}")
    if count > 1 and not replace_all:
        several = f"`old_string` occurs {count} times in {path}"
        raise ToolFailed(f"{several}: give more of the text around it, or set `replace_all`")
    if len(text) + count * max(0, len(new) - len(old)) > MAX_EDIT_BYTES:
        raise ToolFailed(f"{path} would be too large to be edited again: use Bash")
    return text.replace(old, new), count
