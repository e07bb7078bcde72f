"""A model reads a digest of the session and comments on it; the hook only observes and never blocks.

Needs no network. Run it: python examples/hooks/session_analysis.py
"""

import asyncio
import tempfile

from turngate import Options, PromptHook, ScriptedModel, Session

ANALYZE = "Summarize in one sentence the request and the work, and name the biggest remaining risk."
OPTIONS = Options({"Stop": [PromptHook(ANALYZE, transcript="digest", timeout=45)]}, mode="observe")

MODEL = ScriptedModel(
    {
        "main": [
            {"tool": "Bash", "input": {"command": "echo 'TOTAL = 7' > prices.py"}},
            "The prices are there.",
        ],
        "judge": [
            '{"ok": false, "reason": "A price list was asked for and written; no test reads it, which is the risk."}'
        ],
    }
)


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(
            project, MODEL, OPTIONS.settings(), state=f"{project}/state", allow=("Bash",)
        ) as session:
            result = await session.send("Write a price list.")
    for output in result.hook_outputs:
        print(f"{output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
