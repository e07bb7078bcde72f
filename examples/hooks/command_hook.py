"""Command hook: exit code 2 blocks, and stderr is the reason.

Needs no network. Run it: python examples/hooks/command_hook.py
"""

import asyncio
import tempfile

from turngate import CommandHook, Options, ScriptedModel, Session

CHECK = "test -e report.md || { echo 'Write report.md first.' >&2; exit 2; }"
OPTIONS = Options({"Stop": [CommandHook(CHECK, id="report", timeout=10)]})

# In place of a live model: it says that it is done, is blocked, and writes the report.
WRITE = {"tool": "Bash", "input": {"command": "echo 'All prices have a discount.' > report.md"}}
MODEL = ScriptedModel({"main": ["Done.", WRITE, "Done, and the report is written."]})


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
