"""Pattern 4, a memory: a session starts with the notes of earlier sessions and adds its own.

Needs no network. Run it: python examples/hooks/memory.py
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from turngate import (
    Advise,
    CallbackHook,
    Options,
    ScriptedModel,
    Session,
    StopEvent,
    UnsafePath,
    is_sensitive,
    safe_path,
)


def memory(project: str) -> Path:
    """Return the file. Its content is sent to a model, so a link to a file with secrets is an error."""
    path = safe_path(project, "MEMORY.md")
    if is_sensitive(path):
        raise UnsafePath("MEMORY.md leads to a file with secrets")
    return Path(path)


def recall(event: Any) -> Advise:
    file = memory(event.cwd)
    lines = file.read_text().splitlines()[:100] if file.exists() else ["No memory yet."]
    return Advise("\n".join(lines))


def remember(event: StopEvent) -> None:
    with memory(event.cwd).open("a") as file:
        file.write(f"- {event.last_text}\n")


OPTIONS = Options({"SessionStart": [CallbackHook(recall)], "Stop": [CallbackHook(remember)]})


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        for answer in ("The prices are in prices.py.", "The discount is in."):
            model = ScriptedModel({"main": [answer]})
            async with Session(project, model, OPTIONS.settings(), state=f"{project}/state") as session:
                await session.send("Go on.")
            print(model.requests[0].system.splitlines()[-1])
        print(Path(project, "MEMORY.md").read_text(), end="")


asyncio.run(main())
