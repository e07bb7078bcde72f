"""The file in which SessionStart hooks set environment variables.

It is in the folder of the session. Hooks on another machine get a copy there, which is read back when they have ended.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from io import StringIO
from string import Template

from turngate.aio.threads import run_in_thread
from turngate.core.constants import ENV_FILE_VARIABLES
from turngate.ports import ConnectionLost, World
from turngate.project.files import LOCAL, Files, MachineUnreachable
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.state.files import make_private_dir, open_regular_file
from turngate.state.paths import session_folder

MAX_BYTES = 256 * 1024  # of the file, and of one variable; `shlex` takes seconds for a longer word


def env_file(state: str, session_id: str) -> str:
    """Return the file to which SessionStart hooks append `export K=V` lines."""
    return os.path.join(session_folder(state, session_id), "env")


async def send_env_file(world: World, path: str) -> None:
    """If hooks run on another machine, copy the file there, and let its variables name the copy. Raises UnusableEnvFile."""
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
    with open(open_regular_file(path, os.O_WRONLY | os.O_CREAT | flag), "wb") as file:
        file.write(data)


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
    variables = dict(environ)
    for line in StringIO(text, newline=None):
        match = _EXPORT.match(line)
        for name, value in _assignments(match[1]) if match else ():
            exports[name] = variables[name] = Template(value).safe_substitute(variables)
            if len(exports[name]) > MAX_BYTES:  # lines such as `A=$A$A` would fill the memory
                raise UnusableEnvFile(path, f"expands to more than {MAX_BYTES // 1024} KiB")
    return exports


def _read(path: str, files: Files) -> str:
    try:
        # No process can be started with a NUL character in its environment. A shell leaves it out too.
        return read_bytes(path, MAX_BYTES, files).decode("utf-8", "replace").replace("\0", "")
    except FileNotFoundError:
        return ""
    except FileTooLarge:
        raise UnusableEnvFile(path, f"is larger than {MAX_BYTES // 1024} KiB") from None
    except NotARegularFile as error:
        raise UnusableEnvFile(path, str(error)) from None
    except (OSError, MachineUnreachable) as error:
        raise UnusableEnvFile(path, f"cannot be read: {getattr(error, 'strerror', error)}") from None


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the assignments of `A=1 B='x y'` up to the first word that is none, such as a comment."""
    try:
        words = shlex.split(text)
    except ValueError:  # an unclosed quote
        words = []
    for word in words or [text.strip()]:
        match = _ASSIGNMENT.fullmatch(word)
        if match is None:
            return
        yield match[1], match[2]
