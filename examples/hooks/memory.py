"""Pattern 4, a memory: a session starts with the notes of earlier sessions and adds its own.

Needs no network. Run it: python examples/hooks/memory.py
"""

import asyncio
import tempfile
from pathlib import Path

from turngate import CallbackHook, CommandHook, Options, ScriptedModel, Session, StopEvent


def remember(event: StopEvent) -> None:
    with Path(event.cwd, "MEMORY.md").open("a") as file:
        file.write(f"- {event.last_text}\n")


OPTIONS = Options(
    {
        "SessionStart": [
            CommandHook("head -n 100 MEMORY.md 2>/dev/null || echo 'No memory yet.'", timeout=5)
        ],
        "Stop": [CallbackHook(remember)],
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        for answer in ("The prices are in prices.py.", "The discount is in."):
            model = ScriptedModel({"main": [answer]})
            async with Session(project, model, OPTIONS.settings(), state=f"{project}/state") as session:
                await session.send("Go on.")
            print(model.requests[0].system.splitlines()[-1])
        print(Path(project, "MEMORY.md").read_text(), end="")


asyncio.run(main())
