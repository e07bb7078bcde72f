"""Pattern 3, a pipeline: each subagent is checked, and the main agent stops only when all parts exist.

Needs no network. Run it: python examples/hooks/pipeline.py
"""

import asyncio
import tempfile
from pathlib import Path

from turngate import (
    Block,
    CallbackHook,
    Options,
    ScriptedModel,
    Session,
    StopEvent,
    UnsafePath,
    is_sensitive,
    safe_path,
)

CHUNKS = ("parser", "printer")
done: set[str] = set()


def chunk_is_there(event: StopEvent) -> Block | None:
    """Check at SubagentStop that the file exists which the subagent says it wrote."""
    name = event.last_text.partition(" ")[0]
    try:
        path = safe_path(event.cwd, f"{name}.py")  # the name is the model's: it could be ../../x
    except UnsafePath as error:
        return Block(f"Begin your answer with the name of the chunk: {error}.")
    if is_sensitive(path):
        return Block(f"{name}.py usually holds secrets, so it is not a chunk.")
    if not Path(path).exists():
        return Block(f"{name}.py does not exist. Write it.")
    done.add(name)
    return None


def all_chunks(_: StopEvent) -> Block | None:
    missing = [name for name in CHUNKS if name not in done]
    return Block(f"These chunks are missing: {', '.join(missing)}") if missing else None


OPTIONS = Options({"SubagentStop": [CallbackHook(chunk_is_there)], "Stop": [CallbackHook(all_chunks)]})


def task(name: str) -> dict[str, object]:
    return {"tool": "Task", "input": {"description": name, "prompt": f"Write the {name}."}}


def write(name: str) -> dict[str, object]:
    return {"tool": "Bash", "input": {"command": f"echo pass > {name}.py"}}


MODEL = ScriptedModel(
    {
        "main": [task("parser"), "Done.", task("printer"), "Done, all of it."],
        "sub": [
            "parser is written",
            write("parser"),
            "parser is written now",
            write("printer"),
            "printer is written",
        ],
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(
            project, MODEL, OPTIONS.settings(), state=f"{project}/state", allow=("Bash",)
        ) as session:
            result = await session.send("Write a parser and a printer.")
    for subagent in result.subagents:
        print(f"{subagent.label}: {subagent.outcome}, redirects: {subagent.redirects}")
    for output in result.hook_outputs:
        print(f"{output.event} {output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
