"""The file in which SessionStart hooks set environment variables."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from string import Template

from turngate.state.paths import session_folder


def env_file(state: str, session_id: str) -> str:
    """Return the file to which SessionStart hooks append `export K=V` lines."""
    return os.path.join(session_folder(state, session_id), "env")


_EXPORT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*=.*)", re.ASCII)


_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)


def read_exports(path: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Read the lines `export K=V …` that SessionStart hooks appended to their file, and expand `$NAME` in them."""
    exports: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = _EXPORT.match(line)
                for name, value in _assignments(match[1]) if match else ():
                    exports[name] = Template(value).safe_substitute({**environ, **exports})
    except OSError:
        return {}
    return exports


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the assignments of `A=1 B='x y'` up to the first word that is none, such as a comment."""
    try:
        words = shlex.split(text)
    except ValueError:  # an unclosed quote
        words = [text.strip()]
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is None:
            return
        yield match[1], match[2]
