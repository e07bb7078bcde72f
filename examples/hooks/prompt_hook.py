"""Prompt hook: a small model, the judge, decides.

Needs no network. Run it: python examples/hooks/prompt_hook.py
"""

import asyncio
import tempfile

from turngate import Options, PromptHook, ScriptedModel, Session

QUESTION = "Did the agent say that it ran the tests, and how they ended? The stop: $ARGUMENTS"
OPTIONS = Options({"Stop": [PromptHook(QUESTION, timeout=30)]})

# In place of live models. A judge answers in JSON; its reason is sent to the agent.
MODEL = ScriptedModel(
    {
        "main": ["The discount is in.", "I ran the tests: 12 passed."],
        "judge": [
            '{"ok": false, "reason": "Run the tests and report the result."}',
            '{"ok": true, "reason": "The tests were run."}',
        ],
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(project, MODEL, OPTIONS.settings(), state=f"{project}/state") as session:
            result = await session.send("Add a discount to the prices.")
    for output in result.hook_outputs:
        print(f"{output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
