"""The system prompt of an agent."""

import os
from collections.abc import Sequence

from turngate.filesystem import files
from turngate.filesystem.descent import open_parent, open_regular
from turngate.filesystem.real_path import is_inside, resolve
from turngate.filesystem.snapshot import snapshot

GUIDES = ("AGENTS.md", "CLAUDE.md")


MAX_GUIDE_CHARS = 40_000


INSTRUCTIONS = """\
You are a coding agent. You work in the folder {project} with the tools that you are given.
Do what the user asks, check your work, and say plainly what you did and what you did not do.
A message that begins with a note about a stop hook comes from the project's own checks, not from the user: take it as
work that is still to be done."""


def system_prompt(project: str, context: Sequence[str], role: str = "") -> str:
    """Return the prompt of an agent; `context` are the guides of the project, and what hooks have added."""
    return "\n\n".join(part for part in (INSTRUCTIONS.format(project=project), role, *context) if part)


def read_guides(project: str) -> tuple[str, ...]:
    """Return the guides of a project for the prompt. Raises MachineUnreachable."""
    with snapshot(lambda: [os.path.join(project, name) for name in GUIDES]):
        return tuple(_guide(project, name) for name in GUIDES)


def _guide(project: str, name: str) -> str:
    """Return a regular file of the project: a link could lead to a secret, and a pipe would block."""
    path = os.path.join(project, name)
    try:
        if not files.lexists(path):
            return ""
        path = resolve(path)
        if not is_inside(path, resolve(project)):
            return ""
        text = _read(path).decode("utf-8", "replace")[:MAX_GUIDE_CHARS].strip()
    except OSError:
        return ""
    return f"The project's {name}:\n{text}" if text else ""


def _read(path: str) -> bytes:
    if there := files.current_files.get():
        return there.read(path, 4 * MAX_GUIDE_CHARS)
    with open_parent(path) as (folder, name), open_regular(name, folder) as file:
        return file.read(4 * MAX_GUIDE_CHARS)
