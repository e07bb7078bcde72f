"""Pattern 3, a pipeline: each child is checked by itself, and the whole only ends with all its parts. Run it:
python examples/hooks/pipeline.py"""

import asyncio
import tempfile
from pathlib import Path

from turngate import Block, CallbackHook, Options, ScriptedModel, Session, StopEvent

CHUNKS = ("parser", "printer")
done: set[str] = set()


def chunk_is_there(event: StopEvent) -> Block | None:
    """At SubagentStop: the child says which chunk it wrote, and its file is there."""
    name = event.last_text.split()[0]
    if not Path(event.cwd, f"{name}.py").exists():
        return Block(f"{name}.py is not there. Write it.")
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
    for child in result.subagents:
        print(f"{child.label}: {child.outcome}, sent back {child.redirects} times")
    for output in result.hook_outputs:
        print(f"{output.event} {output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
