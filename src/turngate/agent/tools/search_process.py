"""Looks through files, as a program of its own: nothing but the end of its process ends a bad regular expression.

A thread could not be left alone with it: Python lets nobody else run while it matches. Knows nothing of the
package, so that it starts quickly.
"""

import errno
import json
import math
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from io import BufferedReader
from itertools import islice
from typing import Any

FILES = 100  # that Glob gives
HEAD = 250  # lines that Grep gives, if nobody says how many
MOST = 10_000  # lines that Grep gives at all
WIDTH = 500  # characters of a line that Grep shows
LINE = 1024 * 1024  # bytes of a line that are searched
CHOICES = 1000  # that a pattern's braces may make
NOT_SEARCHED = (".git", "node_modules", ".venv")


def main() -> int:
    asked = json.load(sys.stdin)
    try:
        found = "\n".join(_TOOLS[asked["tool"]](asked))
    except FileNotFoundError as error:
        sys.stderr.write(f"{error.filename} does not exist")
        return 1
    except (OSError, ValueError) as error:
        sys.stderr.write(str(error))
        return 1
    sys.stdout.buffer.write(found.encode("utf-8", "replace"))  # a name may be no text
    return 0


def _glob(asked: Mapping[str, Any]) -> Iterator[str]:
    root = asked["path"]
    if not stat.S_ISDIR(os.stat(root).st_mode):
        raise ValueError(f"{root} is not a folder")
    fits = _pattern(asked["pattern"])
    found = [(_mtime(path), path) for path in _files(root, (".git",), links=True) if fits(_parts(path, root))]
    found.sort(key=lambda one: (-one[0], one[1]))
    yield from (path for _, path in found[:FILES])
    if len(found) > FILES:
        yield f"… [the {FILES} newest of {len(found):,} files]"


def _grep(asked: Mapping[str, Any]) -> Iterator[str]:
    most = min(asked.get("head_limit", HEAD) or MOST, MOST)
    found = _matches(asked)
    yield from islice(found, most)
    if next(found, None) is not None:
        yield f"… [more than {most:,} lines: raise `head_limit`, or make the search narrower]"


_TOOLS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {"Glob": _glob, "Grep": _grep}


def _matches(asked: Mapping[str, Any]) -> Iterator[str]:
    wanted = _compiled(asked["pattern"], re.IGNORECASE if asked.get("-i") else 0)
    for path in _searched_files(asked["path"], asked.get("glob")):
        lines = _matching_lines(path, wanted)
        match asked.get("output_mode", "files_with_matches"):
            case "content":
                for number, line in lines:
                    shown = line if len(line) <= WIDTH else line[:WIDTH] + " … [line cut]"
                    yield f"{path}:{number}:{shown}" if asked.get("-n", True) else f"{path}:{shown}"
            case "count":
                if count := sum(1 for _ in lines):
                    yield f"{path}:{count}"
            case _:
                if any(True for _ in lines):
                    yield path


def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"`pattern` is no regular expression: {error}") from None


def _searched_files(root: str, glob: str | None) -> Iterator[str]:
    if not stat.S_ISDIR(os.stat(root).st_mode):
        yield root
        return
    fits = _pattern(glob if "/" in glob else f"**/{glob}") if glob else lambda _: True
    yield from (path for path in _files(root, NOT_SEARCHED, links=False) if fits(_parts(path, root)))


def _matching_lines(path: str, wanted: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    try:
        with open_regular(path) as file:
            if is_binary(file):
                return
            for number, line in enumerate(lines(file, LINE), 1):
                text = line.decode("utf-8", "replace")
                if wanted.search(text):
                    yield number, text
    except OSError:  # gone meanwhile, or not ours to read
        return


def _files(root: str, left_out: tuple[str, ...], *, links: bool) -> Iterator[str]:
    """All files below a folder, by name; links to folders are not followed."""
    folders = [root]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        inner = [e.path for e in entries if e.is_dir(follow_symlinks=False) and e.name not in left_out]
        folders += reversed(inner)
        yield from (e.path for e in entries if _is_file(e, links=links))


def _is_file(entry: "os.DirEntry[str]", *, links: bool) -> bool:
    try:
        return entry.is_file(follow_symlinks=links)
    except OSError:  # a link that leads to itself
        return False


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _parts(path: str, root: str) -> tuple[str, ...]:
    return tuple(path[len(root) :].strip("/").split("/"))


def _pattern(glob: str) -> Callable[[tuple[str, ...]], bool]:
    choices = list(islice(_choices(glob), CHOICES + 1))
    if len(choices) > CHOICES:
        raise ValueError(f"the braces in {glob[:WIDTH]!r} make more than {CHOICES} patterns")
    wanted = [tuple(part for part in choice.split("/") if part not in ("", ".")) for choice in choices]
    return lambda parts: any(_fits(parts, one) for one in wanted)


_BRACES = re.compile(r"\{([^{}]*)\}")


def _choices(glob: str) -> Iterator[str]:
    found = _BRACES.search(glob)
    if found is None:
        yield glob
        return
    for choice in found[1].split(","):
        yield from _choices(glob[: found.start()] + choice + glob[found.end() :])


def _fits(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return _fits(parts, wanted[1:]) or (bool(parts) and _fits(parts[1:], wanted))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])


# Also for Read and Edit


def open_regular(path: str) -> BufferedReader:
    """Opens a file, but no pipe, device or folder; never waits for somebody at the other end."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return open(fd, "rb")
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "it is not a regular file", path)


def is_binary(file: BufferedReader) -> bool:
    return b"\0" in file.peek(8192)[:8192]


def lines(file: BufferedReader, most: int, until: float = math.inf) -> Iterator[bytes]:
    """Each line without its end, and at most so many bytes of it, however long it is.

    Raises TimeoutError when the monotonic clock goes past `until`.
    """
    while line := file.readline(most):
        yield line.removesuffix(b"\n").removesuffix(b"\r")
        while not line.endswith(b"\n") and (line := file.readline(most)):
            _in_time(until)
        _in_time(until)


def _in_time(until: float) -> None:
    if time.monotonic() > until:
        raise TimeoutError


if __name__ == "__main__":
    sys.exit(main())
