"""What the model knows before the conversation begins."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from string import Template

from turngate.state.files import open_regular_file

GUIDES = ("AGENTS.md", "CLAUDE.md")
MOST = 40_000  # characters of one guide

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
    """A file of the project's, and nothing that lies elsewhere: a link could lead to a secret, a pipe to nothing."""
    path = os.path.join(project, name)
    if not os.path.lexists(path):
        return ""
    path, home = os.path.realpath(path), os.path.realpath(project)
    if os.path.commonpath((path, home)) != home:
        return ""
    try:
        with open(open_regular_file(path, os.O_RDONLY), encoding="utf-8", errors="replace") as file:
            text = file.read(MOST).strip()
    except OSError:
        return ""
    return f"The project's {name}:\n{text}" if text else ""


_EXPORT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*=.*)", re.ASCII)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)


def read_exports(path: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The lines `export K=V …` that SessionStart hooks appended to their file; `$NAME` in them is expanded."""
    found: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                match = _EXPORT.match(line)
                for name, value in _assigned(match[1]) if match else ():
                    found[name] = Template(value).safe_substitute({**environ, **found})
    except OSError:
        return {}
    return found


def _assigned(text: str) -> Iterator[tuple[str, str]]:
    """`A=1 B='x y'` up to the first word that is none of this kind, such as a comment."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that nobody closed
        words = [text.strip()]
    for word in words:
        match = _ASSIGNED.fullmatch(word)
        if match is None:
            return
        yield match[1], match[2]
