"""A different question for each stop: of the main agent, of an exploring subagent, of a working one.

Needs no network. Run it: python examples/hooks/different_stops.py
"""

import asyncio
import tempfile

from turngate import HookGroup, Options, PromptHook, ScriptedModel, Session

OPTIONS = Options(
    {
        "Stop": [PromptHook("Is everything done that the user asked for?")],
        "SubagentStop": [
            HookGroup("Explore", [PromptHook("Does the answer name the files it rests on?")]),
            HookGroup("general-purpose", [PromptHook("Was the work checked?")]),
        ],
    },
    timeout_ms=30_000,
)


def task(agent_type: str) -> dict[str, object]:
    args = {"description": agent_type, "prompt": "Go.", "subagent_type": agent_type}
    return {"tool": "Task", "input": args}


MODEL = ScriptedModel(
    {
        "main": [task("Explore"), task("general-purpose"), "All of it is done."],
        "sub": ["It is in prices.py.", "Done and checked."],
        "judge": ['{"ok": true, "reason": "Yes."}'],
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(project, MODEL, OPTIONS.settings(), state=f"{project}/state") as session:
            result = await session.send("Find the prices and add a discount.")
    for output in result.hook_outputs:
        if output.outcome != "skipped":  # its matcher is for the other agent type
            print(f"{output.event}: {output.hook} {output.said}")


asyncio.run(main())
