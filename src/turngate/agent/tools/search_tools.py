"""Finds files by their names and by what is in them."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from turngate.agent.tools import search_process as search
from turngate.agent.tools.arguments import real
from turngate.agent.tools.base import ToolContext
from turngate.core.text import truncate_middle
from turngate.core.tools import ToolFailed, tool_spec
from turngate.ports import RunContext
from turngate.runners import sanitize_env
from turngate.shells.process import run_process

SECONDS = 30.0
MOST_OUTPUT = 30_000  # characters

GLOB = tool_spec(
    "Glob",
    f"Finds files by name, the newest first, at most {search.FILES}. `**` stands for any folders, "
    "`{a,b}` for a or b: `src/**/*.{ts,tsx}`.",
    {
        "pattern": {"type": "string", "description": "Relative to `path`."},
        "path": {"type": "string", "description": "The folder to look in; the project if not given."},
    },
    required=("pattern",),
)
GREP = tool_spec(
    "Grep",
    "Searches the lines of files for a regular expression of Python's. Leaves out binary files, links, "
    + ", ".join(search.NOT_SEARCHED)
    + ".",
    {
        "pattern": {"type": "string", "description": "The regular expression."},
        "path": {"type": "string", "description": "A file or a folder; the project if not given."},
        "glob": {"type": "string", "description": "Only files like this: `*.py`, `src/**/*.{ts,tsx}`."},
        "output_mode": {
            "type": "string",
            "enum": ["files_with_matches", "content", "count"],
            "description": "The names of the files (if not given), the lines, or how many lines in each file.",
        },
        "-i": {"type": "boolean", "description": "Upper and lower case are the same."},
        "-n": {"type": "boolean", "description": "With line numbers, in `content`; true if not given."},
        "head_limit": {
            "type": "integer",
            "minimum": 0,
            "description": f"At most so many lines of output; {search.HEAD} if not given.",
        },
    },
    required=("pattern",),
)


async def glob(given: Mapping[str, Any], workplace: ToolContext) -> str:
    root = given.get("path", workplace.project)
    pattern = given["pattern"].removeprefix(root.rstrip("/") + "/")
    if os.path.isabs(pattern) or ".." in pattern.split("/"):
        raise ToolFailed(f"`pattern` must stay below {root}: give another folder as `path`")
    return await _searched({"tool": "Glob", **given, "pattern": pattern}, workplace) or "No files found"


async def grep(given: Mapping[str, Any], workplace: ToolContext) -> str:
    return await _searched({"tool": "Grep", **given}, workplace) or "No matches found"


async def _searched(given: Mapping[str, Any], workplace: ToolContext) -> str:
    asked = {"path": workplace.project, **given}
    real(asked["path"], workplace)
    argv = (sys.executable, "-I", "-S", "-W", "ignore", "-X", "utf8", search.__file__)
    env = sanitize_env(dict(workplace.environ))
    try:
        async with asyncio.timeout(SECONDS):
            exited = await run_process(
                argv, cwd="/", env=env, stdin=json.dumps(asked).encode(), live=RunContext()
            )
    except TimeoutError:
        raise ToolFailed(f"the search was ended after {SECONDS:g} s: make it narrower") from None
    except OSError as error:
        raise ToolFailed(f"the search could not be run: {error.strerror or error}") from None
    if exited.code != 0:
        raise ToolFailed(exited.stderr.rstrip("\n").rpartition("\n")[2] or f"exit code {exited.code}")
    found = exited.stdout
    return truncate_middle(found, MOST_OUTPUT, None) if len(found) > MOST_OUTPUT else found
