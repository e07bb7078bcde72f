"""Tool calls of a hostile model: arguments of any shape, and paths that lead out of the project."""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any, NamedTuple

from bench.fuzz.files import scratch_folder
from bench.fuzz.target import Target
from bench.fuzz.values import json_value, some, text
from turngate.agent.tools import TOOLS
from turngate.agent.tools.tool import Tool, ToolContext, check_arguments
from turngate.core.conversation.tools import ToolFailed, ToolOutput

SECRET = "the secret outside of the project"
IN_PROCESS = ("Read", "Write", "Edit", "TodoWrite", "AskUser", "BashOutput", "KillShell", "Task")
SEARCHES = ("Glob", "Grep")  # start a process each
SEARCH_SHARE = 0.005
PATHS = [
    *(
        "a.txt",
        "b/c.txt",
        "",
        ".",
        "..",
        "../outside/secret",
        "out/secret",
        "loop/x",
        "self/self/a.txt",
        "b/../../outside/new",
    ),
    *(
        "out/new",
        "dangling",
        "a.txt/x",
        "~/x",
        "//etc/passwd",
        "/proc/self/environ",
        "/proc/1/exe",
        "/dev/zero",
        "fifo",
        "b",
    ),
]


class Call(NamedTuple):
    tool: str
    args: Any


@cache
def project() -> str:
    """Return a project with links to the outside, in circles and to nowhere."""
    folder = os.path.join(scratch_folder(), "hostile")
    outside = os.path.join(scratch_folder(), "outside")
    os.makedirs(os.path.join(folder, "b"))
    os.makedirs(outside)
    with open(os.path.join(outside, "secret"), "w", encoding="utf-8") as file:
        file.write(SECRET)
    links = {"out": outside, "loop": "loop", "self": ".", "dangling": os.path.join(outside, "new")}
    for name, target in links.items():
        os.symlink(target, os.path.join(folder, name))
    os.mkfifo(os.path.join(folder, "fifo"))
    return folder


def make_call(random: Random) -> Call:
    name = random.choice(SEARCHES if random.random() < SEARCH_SHARE else IN_PROCESS)
    schema = TOOLS[name].spec.schema
    args = {key: some(random, _argument(random, key, field)) for key, field in schema["properties"].items()}
    for key in [*args]:
        if key not in schema["required"] and random.random() < 0.4:
            del args[key]
    if random.random() < 0.1:
        args[text(random)] = json_value(random, depth=2)
    return Call(name, some(random, args, 0.05))


def _argument(random: Random, key: str, schema: Mapping[str, Any]) -> Any:
    if key in ("file_path", "path"):
        path = random.choice([*PATHS, text(random), "a/" * 1990])
        return random.choice([path, os.path.join(project(), path), f"{path}/{random.choice(PATHS)}"])
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema["type"]:
        case "integer":
            return random.choice([0, 1, 2, -1, 10**9, 1.0, 1e308, 10**400])
        case "boolean":
            return random.choice([True, False])
        case "array":
            return [_argument(random, "", schema["items"]) for _ in range(random.randint(0, 3))]
        case "object":
            return {
                name: _argument(random, name, inner) for name, inner in schema.get("properties", {}).items()
            }
        case _:
            return random.choice(["a", "", "**/*", "(a+)+$", "{a,b}{c,d}", text(random)])


def check_call(value: Call) -> None:
    """It fails with a sentence, or it works; nothing outside of the project is read or written."""
    _remove_new_files()
    context = ToolContext(project(), {"PATH": os.environ["PATH"]})
    context.read_files[_fill()] = os.stat(_fill()).st_mtime
    said = _output(value, context)
    assert SECRET not in said, "the secret was read"
    said.encode()
    assert os.listdir(os.path.join(scratch_folder(), "outside")) == ["secret"], "a file outside was written"


def _output(value: Call, context: ToolContext) -> str:
    """Return what the model gets of the call."""
    tool = TOOLS[value.tool]
    try:
        args = check_arguments(tool, value.args, context)
        return asyncio.run(_run(tool, args, context)).text
    except ToolFailed as failed:
        return str(failed)


async def _run(tool: Tool, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    return await tool.run(args, context)


def _remove_new_files() -> None:
    """Remove what earlier calls wrote, so that a failure is repeated by its seed alone."""
    kept = {"b", "out", "loop", "self", "dangling", "fifo"}
    new = [os.path.join(project(), name) for name in os.listdir(project()) if name not in kept]
    new += [os.path.join(project(), "b", name) for name in os.listdir(os.path.join(project(), "b"))]
    if new:
        subprocess.run(["rm", "-rf", "--", *new], check=True)  # shutil.rmtree recurses, and folders are deep


def _fill() -> str:
    """Return a file of the project that the agent has read."""
    path = os.path.join(project(), "a.txt")
    if not os.path.isfile(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("one\ntwo\n")
    return path


TARGETS = (Target("tool-inputs", make_call, check_call),)
