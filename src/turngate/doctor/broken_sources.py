"""Syntax errors for a build: in the source files of a project, but not in the scripts that start it."""

import os
import re
from itertools import islice

from turngate.doctor.git_in_copy import MARK
from turngate.doctor.walk import walk_files

MAX_SEARCHED_FILES = 20_000
MAX_BROKEN_FILES = 2_000
MAX_BYTES = 1024 * 1024  # of a file that is changed
_SOURCES = re.compile(
    r"\.(?:c|cc|cpp|cxx|cs|ex|go|java|js|jsx|mjs|cjs|kt|m|py|rs|scala|svelte|swift|ts|tsx|vue|zig)",
    re.IGNORECASE,
)
_CONFIGURATION = re.compile(r"\.config\.\w+$|^setup\.py$|^build\.rs$")
_STARTED = re.compile(r"\b(?:node|deno run|bun|tsx|ts-node|python[\d.]*|ruby)[ \t]+([\w./-]+)")
_ERROR = f"\n// {MARK}\n)(\n".encode()  # nothing that a compiler accepts


def broken_sources(project: str, text: str) -> dict[str, bytes]:
    """Return the source files with a syntax error at the end of each, without those that the text itself starts."""
    started = {os.path.normpath(path) for path in _STARTED.findall(text)}
    paths = (path for path in islice(walk_files(project), MAX_SEARCHED_FILES) if _is_source(path))
    broken: dict[str, bytes] = {}
    for path in islice((path for path in paths if path not in started), MAX_BROKEN_FILES):
        full = os.path.join(project, path)
        if os.path.getsize(full) < MAX_BYTES:
            with open(full, "rb") as file:
                broken[path] = file.read() + _ERROR
    return broken


def _is_source(path: str) -> bool:
    name = os.path.basename(path)
    return bool(_SOURCES.fullmatch(os.path.splitext(name)[1])) and not _CONFIGURATION.search(name)
