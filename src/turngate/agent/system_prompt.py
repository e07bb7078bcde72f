"""The system prompt, and the environment that SessionStart hooks set."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from string import Template

from turngate.state.files import open_regular_file

GUIDES = ("AGENTS.md", "CLAUDE.md")
MAX_GUIDE_CHARS = 40_000

INSTRUCTIONS = """\
You are a coding agent. You work in the folder {project} with the tools that you are given.
Do what the user asks, check your work, and say plainly what you did and what you did not do.
A message that begins with a note about a stop hook comes from the project's own checks, not from the user: take it as
work that is still to be done."""


def system_prompt(project: str, context: Sequence[str], role: str = "") -> str:
    parts = [
        INSTRUCTIONS.format(project=project),
        role,
        *(_guide(project, name) for name in GUIDES),
        *context,
    ]
    return "\n\n".join(part for part in parts if part)


def _guide(project: str, name: str) -> str:
    """Return a regular file of the project: a link could lead to a secret, and a pipe would block."""
    path = os.path.join(project, name)
    if not os.path.lexists(path):
        return ""
    path, root = os.path.realpath(path), os.path.realpath(project)
    if os.path.commonpath((path, root)) != root:
        return ""
    try:
        with open(open_regular_file(path, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_GUIDE_CHARS).strip()
    except OSError:
        return ""
    return f"The project's {name}:\n{text}" if text else ""


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
