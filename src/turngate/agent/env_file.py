"""The file in which SessionStart hooks set environment variables.

It is in the folder of the session. Hooks on another machine get a copy there, which is read back when they have ended.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from string import Template

from turngate.aio.threads import run_in_thread
from turngate.core.constants import ENV_FILE_VARIABLES
from turngate.ports import ConnectionLost, World
from turngate.project.files import LOCAL, Files, MachineUnreachable
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.state.files import make_private_dir, open_regular_file, write_all
from turngate.state.paths import session_folder

MAX_BYTES = 1024 * 1024  # of the file, and of what is inserted by `$NAME`


def env_file(state: str, session_id: str) -> str:
    """Return the file to which SessionStart hooks append `export K=V` lines."""
    return os.path.join(session_folder(state, session_id), "env")


async def send_env_file(world: World, path: str) -> None:
    """If hooks run on another machine, copy the file there, and let its variables name the copy.

    Raises UnusableEnvFile.
    """
    if world.copies is None:
        return
    try:
        await run_in_thread(_write, path, b"", os.O_APPEND)  # it exists, so that its copy does
        copy = await world.copies.copy(path)
    except OSError as error:
        lost = isinstance(error, ConnectionLost)
        why = "the connection was lost" if lost else error.strerror or error
        raise UnusableEnvFile(path, f"could not be copied to {world.machine}: {why}") from None
    world.environ = {**world.environ, **dict.fromkeys(ENV_FILE_VARIABLES, copy)}


async def load_exports(world: World, path: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the file, or of its copy on another machine. Raises UnusableEnvFile."""
    copy = world.environ.get(ENV_FILE_VARIABLES[0], path)
    if world.copies is None or copy == path:
        return await run_in_thread(read_exports, path, environ)
    text = await world.with_files(_read, copy)
    if text:  # otherwise the connection was lost, and the copy with it
        with contextlib.suppress(OSError):  # a resumed session has not these variables, but this one has
            await run_in_thread(_write, path, text.encode(), os.O_TRUNC)
    return _parse_exports(text, copy, environ)


def _write(path: str, data: bytes, flag: int) -> None:
    make_private_dir(os.path.dirname(path))
    fd = open_regular_file(path, os.O_WRONLY | os.O_CREAT | flag)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


_EXPORT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*=.*)", re.ASCII)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)


class UnusableEnvFile(Exception):
    """Raised for a file from which no variables are set; the message is for the user."""

    def __init__(self, path: str, why: str) -> None:
        advice = "so no variables are set from it; check the SessionStart hooks"
        super().__init__(f"the environment file {path} {why}, {advice}")


def read_exports(path: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Read the lines `export K=V …` that SessionStart hooks appended to their file, and expand `$NAME` in them.

    Raises UnusableEnvFile.
    """
    return _parse_exports(_read(path, LOCAL), path, environ)


def _parse_exports(text: str, path: str, environ: Mapping[str, str]) -> dict[str, str]:
    exports: dict[str, str] = {}
    variables = _Variables(environ)
    try:
        for line in StringIO(text, newline=None):
            match = _EXPORT.match(line)
            for name, value in _assignments(match[1]) if match else ():
                exports[name] = variables[name] = Template(value).safe_substitute(variables)
    except _ExpandsTooFar:
        raise UnusableEnvFile(path, f"expands to more than {MAX_BYTES // 1024**2} MiB") from None
    return exports


def _read(path: str, files: Files) -> str:
    try:
        # No process can be started with a NUL character in its environment. A shell leaves it out too.
        return read_bytes(path, MAX_BYTES, files).decode("utf-8", "replace").replace("\0", "")
    except FileNotFoundError:
        return ""
    except FileTooLarge:
        raise UnusableEnvFile(path, f"is larger than {MAX_BYTES // 1024**2} MiB") from None
    except NotARegularFile as error:
        raise UnusableEnvFile(path, str(error)) from None
    except OSError as error:
        raise UnusableEnvFile(path, f"cannot be read: {error.strerror}") from None
    except MachineUnreachable as error:
        raise UnusableEnvFile(path, f"cannot be read: {error}") from None


class _ExpandsTooFar(Exception):
    """Raised when a file inserts too many characters by `$NAME`."""


class _Variables(dict[str, str]):
    """Counts what is inserted into all lines: twelve lines such as `A=$A$A` would fill the memory."""

    room = MAX_BYTES

    def __getitem__(self, name: str) -> str:
        value = super().__getitem__(name)
        self.room -= len(value)
        if self.room < 0:
            raise _ExpandsTooFar
        return value


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the assignments of `A=1 B='x y'` up to the first word that is none, such as a comment."""
    for word in _words(text) or [text.strip()]:
        match = _ASSIGNMENT.fullmatch(word)
        if match is None:
            return
        yield match[1], match[2]


_PIECE = re.compile(
    r"""
    (?P<space>[ \t\r\n]+) | (?P<plain>[^ \t\r\n'"\\]+) | '(?P<single>[^']*)'
    | "(?P<double>[^"\\]*(?:\\.[^"\\]*)*)" | \\(?P<escaped>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def _words(text: str) -> list[str]:
    """Split as `shlex.split` does, which takes minutes for a word of 1 MiB; return nothing for an unclosed quote."""
    words: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None:
            return []
        position = piece.end()
        if piece.lastgroup == "space":
            words.append([])
        else:
            words[-1].append(_unquoted(piece))
    return ["".join(word) for word in words if word]


def _unquoted(piece: re.Match[str]) -> str:
    content = piece[piece.lastgroup or 0]
    return re.sub(r'\\(["\\])', r"\1", content) if piece.lastgroup == "double" else content
