"""A judge reviews the implementation against its plan, with the three questions of document 003.

Needs no network. Run it: python examples/hooks/plan_review.py
"""

import asyncio
import tempfile

from turngate import Options, PromptHook, ScriptedModel, Session

REVIEW = (
    "Review the implementation against the plan in docs/plans/. Verify each task is truly complete, not just "
    "'code compiles'. Check: 1) Does the code match plan requirements? 2) Are all edge cases handled? "
    "3) Is the MEMORY.md accurate? $ARGUMENTS"
)
OPTIONS = Options({"Stop": [PromptHook(REVIEW)]})
MODEL = ScriptedModel(
    {
        "main": ["The parser is done.", "The parser is done; empty input has its own test now."],
        "judge": [
            '{"ok": false, "reason": "The plan asks for empty input, and nothing handles it."}',
            '{"ok": true, "reason": "The plan is met."}',
        ],
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(project, MODEL, OPTIONS.settings(), state=f"{project}/state") as session:
            result = await session.send("Implement the plan.")
    for output in result.hook_outputs:
        print(f"{output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
