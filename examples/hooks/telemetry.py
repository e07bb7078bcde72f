"""Every stop leaves a line in a file, and nothing is ever refused. Run it: python examples/hooks/telemetry.py"""

import asyncio
import json
import tempfile
from pathlib import Path

from turngate import CallbackHook, Options, ScriptedModel, Session, StopEvent


def telemetry(log: Path) -> Options:
    def note(event: StopEvent) -> None:
        child = event.subagent.type if event.subagent else None
        entry = {
            "event": event.name,
            "child": child,
            "tool_calls": event.tool_calls,
            "again": event.stop_hook_active,
        }
        with log.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    return Options({"Stop": [CallbackHook(note)], "SubagentStop": [CallbackHook(note)]}, mode="observe")


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
