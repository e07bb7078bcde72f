"""Agent hook: a small agent that can only read the project decides.

Needs no network. Run it: python examples/hooks/agent_hook.py
"""

import asyncio
import tempfile

from turngate import AgentHook, Options, ScriptedModel, Session

OPTIONS = Options({"Stop": [AgentHook("Does CHANGES.md name what was done?", timeout=60)]})

LOOK = {"tool": "Glob", "input": {"pattern": "CHANGES.md"}}
READ = {"tool": "Read", "input": {"file_path": "CHANGES.md"}}


def answer(*, ok: bool, reason: str) -> dict[str, object]:
    return {"tool": "StructuredOutput", "input": {"ok": ok, "reason": reason}}


WRITE = {"tool": "Bash", "input": {"command": "echo '- a discount' > CHANGES.md"}}
MODEL = ScriptedModel(
    {
        "main": ["Done.", WRITE, "Done, and CHANGES.md names it."],
        "judge": [
            LOOK,
            answer(ok=False, reason="There is no CHANGES.md."),
            READ,
            answer(ok=True, reason="CHANGES.md names the discount."),
        ],
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
