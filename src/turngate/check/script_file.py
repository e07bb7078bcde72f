"""Reads the script of a hook, and its language."""

import contextlib
import os
import re
import shlex
from typing import NamedTuple

from turngate.core.shell.invocation import language_of
from turngate.project.files import Files
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes, read_local_bytes

MAX_SCRIPT_BYTES = 128 * 1024  # a larger script is not read
_HEAD_BYTES = 4096  # in which a binary has a null character

_RUNNERS = {"uv": "python", "bun": "node", "deno": "node"}
_EXTENSIONS = {
    **dict.fromkeys((".sh", ".bash"), "shell"),
    ".py": "python",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts"), "node"),
    **dict.fromkeys((".rb", ".pl", ".php"), "other"),
}


class Script(NamedTuple):
    path: str
    text: str
    shebang: str | None  # the first line without `#!`

    @property
    def interpreter(self) -> tuple[str, str]:
        """The program of the `#!` line and the rest of the line: the kernel splits it once."""
        words = (self.shebang or "").strip(" \t").split(None, 1)
        return (words[0], words[1] if len(words) > 1 else "") if words else ("", "")

    @property
    def language(self) -> str | None:
        """By the `#!` line, else by the extension."""
        program, rest = self.interpreter
        if self.shebang is None:
            return _EXTENSIONS.get(os.path.splitext(self.path)[1])
        program = env_program(rest) or "" if os.path.basename(program) == "env" else program
        name = os.path.basename(program).strip()
        return language_of(name) or _RUNNERS.get(name)


def read_script(path: str, files: Files) -> Script | None:
    """Return a script, or None for a binary, a large or an unreadable file."""
    try:
        data = read_bytes(path, MAX_SCRIPT_BYTES, files)
    except (OSError, NotARegularFile, FileTooLarge):
        return None
    if b"\0" in data:
        return None
    text = data.decode("utf-8", "replace")
    first = text.split("\n", 1)[0]
    return Script(path, text, first[2:] if first.startswith("#!") else None)


def is_large_text(path: str) -> bool:
    """Return whether `read_script` does not read the file because of its size alone."""
    try:
        read_local_bytes(path, MAX_SCRIPT_BYTES)
    except FileTooLarge:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return b"\0" not in file.read(_HEAD_BYTES)
    except (OSError, NotARegularFile):
        pass
    return False


def env_program(arguments: str) -> str | None:
    """Return the program that `#!/usr/bin/env ARGUMENTS` starts; None if there is none."""
    if not re.match(r"-\w*S|--split-string", arguments):
        return arguments.strip() or None
    try:
        words = shlex.split(re.sub(r"^(?:-\w*S|--split-string=?)\s*", "", arguments))
    except ValueError:
        return None
    return next((word for word in words if not word.startswith("-") and "=" not in word), None)
