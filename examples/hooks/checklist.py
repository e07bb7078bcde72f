"""Pattern 2, a checklist: block while a task in TODO.md is open.

Needs no network. Run it: python examples/hooks/checklist.py
"""

import asyncio
import re
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


def all_ticked(event: StopEvent) -> Block | None:
    """Block without looking at `stop_hook_active`: the loop guard limits the continuations."""
    try:
        todo = Path(safe_path(event.cwd, "TODO.md"))  # the reason is sent to a model, so not through any link
    except UnsafePath as error:
        return Block(str(error))
    if is_sensitive(todo):
        return Block("TODO.md leads to a file with secrets. Replace it.")
    tasks = re.findall(r"- \[ \] (.+)", todo.read_text()) if todo.exists() else []
    return Block(f"{len(tasks)} tasks are open: {', '.join(tasks)}") if tasks else None


OPTIONS = Options({"Stop": [CallbackHook(all_ticked)]})


def shell(command: str) -> dict[str, object]:
    return {"tool": "Bash", "input": {"command": command}}


MODEL = ScriptedModel(
    {
        "main": [
            shell("printf -- '- [x] prices\\n- [ ] discount\\n- [ ] tests\\n' > TODO.md"),
            "Done.",
            shell("sed -i 's/\\[ \\]/[x]/' TODO.md"),
            "Now everything is done.",
        ]
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(
            project, MODEL, OPTIONS.settings(), state=f"{project}/state", allow=("Bash",)
        ) as session:
            result = await session.send("Add a discount to the prices.")
    for output in result.hook_outputs:
        print(f"{output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
