"""Write a line to a file at every stop; the hooks only observe and never block.

Needs no network. Run it: python examples/hooks/telemetry.py
"""

import asyncio
import json
import tempfile
from pathlib import Path

from turngate import CallbackHook, Options, ScriptedModel, Session, StopEvent


def telemetry(log: Path) -> Options:
    def write_line(event: StopEvent) -> None:
        subagent = event.subagent.type if event.subagent else None
        entry = {
            "event": event.name,
            "subagent": subagent,
            "tool_calls": event.tool_calls,
            "stop_hook_active": event.stop_hook_active,
        }
        with log.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    return Options(
        {"Stop": [CallbackHook(write_line)], "SubagentStop": [CallbackHook(write_line)]}, mode="observe"
    )


TASK = {"tool": "Task", "input": {"description": "look", "prompt": "Look.", "subagent_type": "Explore"}}
MODEL = ScriptedModel({"main": [TASK, "Done."], "sub": ["Found it."]})


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        log = Path(project, "telemetry.jsonl")
        settings = telemetry(log).settings()
        async with Session(project, MODEL, settings, state=f"{project}/state") as session:
            await session.send("Find the prices.")
        print(log.read_text(), end="")


asyncio.run(main())
