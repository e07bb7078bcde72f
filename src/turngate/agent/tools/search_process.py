"""The search of Glob and Grep, as a program of its own: only killing its process ends a bad regular expression.

In a thread `re` would hold the interpreter lock while it matches. The program imports little, so that it starts quickly.
"""

import json
import math
import os
import re
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader, BytesIO
from itertools import islice
from typing import Any, NamedTuple

if __name__ == "__main__":  # started without the paths of packages
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))

from turngate.core.globs import matches_names
from turngate.project.link_safe_files import open_folder, open_parent, open_regular

MAX_FILES = 100  # that Glob lists
DEFAULT_LINES = 250  # of Grep's output
MAX_LINES = 10_000  # of Grep's output
MAX_SHOWN_CHARS = 500  # of a line in Grep's output
MAX_LINE_BYTES = 1024 * 1024  # of a line that are searched
NOT_SEARCHED = (".git", "node_modules", ".venv")


def main() -> None:
    query = json.loads(sys.stdin.buffer.readline())
    try:
        output = "\n".join(_TOOLS[query["tool"]](query))
    except FileNotFoundError:
        sys.exit(f"{query['path']} does not exist")
    except OSError as error:
        sys.exit(f"{query['path']} cannot be used: {error.strerror}")
    except ValueError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(output.encode("utf-8", "replace"))  # a file name may be any bytes


class _File(NamedTuple):
    """A file that was found: the descriptor of its folder, and its name in it."""

    folder: int
    name: str
    parts: tuple[str, ...]  # of its path below the searched folder
    path: str  # in the output
    mtime: float = 0.0


def _glob(query: Mapping[str, Any]) -> Iterator[str]:
    with _open_root(query) as (_, _, root):
        if root is None:
            raise ValueError(f"{query['path']} is not a folder")
        found = _files(query["path"], root, (".git",), links=True)
        files = [(file.mtime, file.path) for file in found if matches_names(query["pattern"], file.parts)]
    yield from newest(files)


def newest(files: Sequence[tuple[float, str]]) -> Iterator[str]:
    """Yield the paths of the newest files, of which the times are given."""
    yield from (path for _, path in sorted(files, key=lambda file: (-file[0], file[1]))[:MAX_FILES])
    if len(files) > MAX_FILES:
        yield f"… [the {MAX_FILES} newest of {len(files):,} files]"


def _grep(query: Mapping[str, Any]) -> Iterator[str]:
    limit = min(query.get("head_limit", DEFAULT_LINES) or MAX_LINES, MAX_LINES)
    output = _grep_output(query)
    yield from islice(output, limit)
    if next(output, None) is not None:
        yield f"… [more than {limit:,} lines: raise `head_limit`, or make the search narrower]"


_TOOLS = {"Glob": _glob, "Grep": _grep}


def _grep_output(query: Mapping[str, Any]) -> Iterator[str]:
    expression = _compile(query["pattern"], re.IGNORECASE if query.get("-i") else 0)
    for path, file in _searched_files(query):
        matches = _matching_lines(file, expression)
        match query.get("output_mode", "files_with_matches"):
            case "content":
                for number, line in matches:
                    is_long = len(line) > MAX_SHOWN_CHARS
                    text = f"{line[:MAX_SHOWN_CHARS]} … [line truncated]" if is_long else line
                    yield f"{path}:{number}:{text}" if query.get("-n", True) else f"{path}:{text}"
            case "count":
                if count := sum(1 for _ in matches):
                    yield f"{path}:{count}"
            case _:
                if any(True for _ in matches):
                    yield path


def _compile(pattern: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"`pattern` is not a regular expression: {error}") from None


def _searched_files(query: Mapping[str, Any]) -> Iterator[tuple[str, BufferedReader]]:
    """Yield the files that can be read. Those of another machine follow the query on stdin."""
    for path, size in query.get("contents", ()):
        yield path, BufferedReader(BytesIO(sys.stdin.buffer.read(size)))
    for file in _found_files(query) if "contents" not in query else ():
        with (
            suppress(OSError),
            open_regular(file.name, file.folder) as opened,
        ):  # removed meanwhile, or not readable
            yield file.path, opened


def _found_files(query: Mapping[str, Any]) -> Iterator[_File]:
    path, glob = query["path"], query.get("glob")
    with _open_root(query) as (folder, name, root):
        if root is None:
            yield _File(folder, name, (), path)
            return
        found = _files(path, root, NOT_SEARCHED, links=False)
        yield from (file for file in found if not glob or matches_names(any_folder(glob), file.parts))


@contextmanager
def _open_root(query: Mapping[str, Any]) -> Iterator[tuple[int, str, int | None]]:
    """Open what is searched: its folder, its name in it, and itself; the last is None unless it is a folder."""
    with open_parent(query["resolved"]) as (folder, name):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            yield folder, name, None
            return
        root = open_folder((name,), folder)
        try:
            yield folder, name, root
        finally:
            os.close(root)


def _matching_lines(file: BufferedReader, expression: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    with suppress(OSError):  # of the disk
        if is_binary(file):
            return
        for number, line in enumerate(lines(file, MAX_LINE_BYTES), 1):
            text = line.decode("utf-8", "replace")
            if expression.search(text):
                yield number, text


def _files(path: str, root: int, skipped: tuple[str, ...], *, links: bool) -> Iterator[_File]:
    """Yield all files below a folder, by name; links to folders are not followed."""
    for place, folders, names, folder in os.fwalk(".", dir_fd=root):
        folders[:] = sorted(name for name in folders if name not in skipped)
        for name in sorted(names):
            try:
                info = os.stat(name, dir_fd=folder, follow_symlinks=links)
            except OSError:  # removed meanwhile, or a link to itself
                continue
            if stat.S_ISREG(info.st_mode):
                parts = (*place.split("/")[1:], name)
                yield _File(folder, name, parts, os.path.join(path, *parts), info.st_mtime)


# Other modules use these as well


def any_folder(glob: str) -> str:
    """Return the pattern that the `glob` of Grep stands for."""
    return glob if "/" in glob else f"**/{glob}"


def is_binary(file: BufferedReader) -> bool:
    return b"\0" in file.peek(8192)[:8192]


def lines(file: BufferedReader, max_bytes: int, until: float = math.inf) -> Iterator[bytes]:
    """Yield each line without its end, and at most `max_bytes` of it. Raises TimeoutError when the monotonic clock passes `until`."""
    while line := file.readline(max_bytes):
        yield line.removesuffix(b"\n").removesuffix(b"\r")
        while not line.endswith(b"\n") and (line := file.readline(max_bytes)):
            _raise_if_late(until)
        _raise_if_late(until)


def _raise_if_late(until: float) -> None:
    if time.monotonic() > until:
        raise TimeoutError


if __name__ == "__main__":
    main()
