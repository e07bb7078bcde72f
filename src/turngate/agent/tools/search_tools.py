"""The tools Glob and Grep, which run `search_process` as a program of its own."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from turngate.agent.tools import search_process
from turngate.agent.tools.tool import ToolContext, resolve_path
from turngate.aio.threads import run_in_thread
from turngate.core.conversation.tools import ToolFailed, ToolOutput, tool_spec
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import replace_surrogates, truncate_middle
from turngate.ports import HookRunContext
from turngate.runners.command import sanitize_env
from turngate.shells.local import run_process

TIMEOUT_S = 30.0
MAX_OUTPUT_CHARS = 30_000

GLOB = tool_spec(
    "Glob",
    f"Finds files by name, the newest first, at most {search_process.MAX_FILES}. `**` matches any folders, "
    "`{a,b}` for a or b: `src/**/*.{ts,tsx}`.",
    {
        "pattern": {"type": "string", "description": "Relative to `path`."},
        "path": {"type": "string", "description": "The folder to look in; the project if not given."},
    },
    required=("pattern",),
)
GREP = tool_spec(
    "Grep",
    "Searches the lines of files for a Python regular expression. Skips binary files, links, "
    f"{', '.join(search_process.NOT_SEARCHED)}.",
    {
        "pattern": {"type": "string", "description": "The regular expression."},
        "path": {"type": "string", "description": "A file or a folder; the project if not given."},
        "glob": {"type": "string", "description": "Only files like this: `*.py`, `src/**/*.{ts,tsx}`."},
        "output_mode": {
            "type": "string",
            "enum": ["files_with_matches", "content", "count"],
            "description": "The names of the files (if not given), the lines, or how many lines in each file.",
        },
        "-i": {"type": "boolean", "description": "Ignore case."},
        "-n": {"type": "boolean", "description": "With line numbers, in `content`; true if not given."},
        "head_limit": {
            "type": "integer",
            "minimum": 0,
            "description": f"Maximum number of lines of output; {search_process.DEFAULT_LINES} if not given.",
        },
    },
    required=("pattern",),
)


async def glob(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    root = args.get("path", context.project)
    pattern = args["pattern"].removeprefix(root.rstrip("/") + "/")
    if os.path.isabs(pattern) or ".." in pattern.split("/"):
        raise ToolFailed(f"`pattern` must stay below {root}: give another folder as `path`")
    found = await _search({"tool": "Glob", **args, "pattern": pattern}, context)
    return ToolOutput(found or "No files found", _files(found))


async def grep(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    found = await _search({"tool": "Grep", **args}, context)
    mode = args.get("output_mode", "files_with_matches")
    lines = {"content": found.rstrip("\n"), "numLines": len(found.splitlines())}
    response = {"mode": mode, **(_files(found) if mode == "files_with_matches" else lines)}
    return ToolOutput(found or "No matches found", response)


def _files(found: str) -> dict[str, Any]:
    """Return the files that were found, without the note that there are more."""
    names = [line for line in found.splitlines() if not line.startswith("…")]
    return {"filenames": names, "numFiles": len(names)}


async def _search(args: Mapping[str, Any], context: ToolContext) -> str:
    query = {"path": context.project, **args}
    query["resolved"] = await context.call(resolve_path, query["path"], context)
    env = sanitize_env(dict(context.environ if context.is_local else os.environ))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            search = _run(query, env) if context.is_local else _search_there(query, context, env)
            output = await search
    except TimeoutError:
        raise ToolFailed(f"the search was killed after {TIMEOUT_S:g} s: make it narrower") from None
    return truncate_middle(output, MAX_OUTPUT_CHARS)


async def _search_there(query: Mapping[str, Any], context: ToolContext, env: Mapping[str, str]) -> str:
    """Search the files of another machine: Grep with the same program, which gets their contents."""
    from turngate.agent.tools import remote_search as there  # noqa: PLC0415  # lazy: few projects need it

    found = await run_in_thread(there.find_files, context.files, query)
    if query["tool"] == "Glob":
        files = [(file.stat.st_mtime, there.shown_path(file.path, query)) for file in found]
        return replace_surrogates("\n".join(search_process.newest(files)))
    if text := there.text_of(query, found):
        words = (query["resolved"], text, *search_process.NOT_SEARCHED)
        names = await _run_there(("-c", there.FIND_TEXT, "sh", *words), query["path"], context)
        found = there.with_names(found, names.split("\n"), query)
    read = await run_in_thread(there.read_files, context.files, found, query)
    sizes = [(path, len(data)) for path, data in read]
    return await _run({**query, "contents": sizes}, env, b"".join(data for _, data in read))


async def _run_there(args: tuple[str, ...], path: str, context: ToolContext) -> str:
    hook, live = CommandHook("/bin/sh", args=args), HookRunContext()
    try:
        if context.world is not None:
            await context.world.shell.run(hook, cwd="/", env=context.world.environ, stdin=b"", live=live)
    except OSError as error:
        raise ToolFailed(f"{path} cannot be used: {error.strerror or error}") from None
    return live.stdout.data().decode("utf-8", "surrogateescape")


async def _run(query: Mapping[str, Any], env: Mapping[str, str], contents: bytes = b"") -> str:
    argv = (sys.executable, "-I", "-S", "-W", "ignore", "-X", "utf8", search_process.__file__)
    stdin = json.dumps(query).encode() + b"\n" + contents
    try:
        exited = await run_process(argv, cwd="/", env=env, stdin=stdin, live=HookRunContext())
    except OSError as error:
        raise ToolFailed(f"the search could not be started: {error.strerror or error}") from None
    if exited.code != 0:
        raise ToolFailed(exited.stderr.rstrip("\n").rpartition("\n")[2] or f"exit code {exited.code}")
    return exited.stdout
