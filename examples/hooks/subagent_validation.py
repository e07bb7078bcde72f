"""A judge checks the work of a subagent before its parent gets the result.

Needs no network. Run it: python examples/hooks/subagent_validation.py
"""

import asyncio
import tempfile

from turngate import HookGroup, Options, PromptHook, ScriptedModel, Session

VALIDATE = "This subagent was asked to count the tests. Does its last answer hold a number? $ARGUMENTS"
OPTIONS = Options({"SubagentStop": [HookGroup("general-purpose", [PromptHook(VALIDATE)])]})

TASK = {
    "tool": "Task",
    "input": {"description": "count", "prompt": "Count the tests.", "subagent_type": "general-purpose"},
}
MODEL = ScriptedModel(
    {
        "main": [TASK, "There are 12 tests."],
        "sub": ["I have counted them.", "There are 12."],
        "judge": [
            '{"ok": false, "reason": "Say how many there are."}',
            '{"ok": true, "reason": "12 is a number."}',
        ],
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(project, MODEL, OPTIONS.settings(), state=f"{project}/state") as session:
            result = await session.send("How many tests are there?")
    for output in result.hook_outputs:
        print(f"{output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
