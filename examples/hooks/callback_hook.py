"""Callback hook: a function of your own program decides, sync or async.

Needs no network. Run it: python examples/hooks/callback_hook.py
"""

import asyncio
import tempfile

from turngate import Allow, Block, CallbackHook, Options, ScriptedModel, Session, StopEvent


def no_promises(event: StopEvent) -> Allow | Block:
    """Return a decision, a dict with the JSON that a command would print, or None to pass."""
    if "later" in event.last_text:
        return Block("You promise something for later. Do it now.")
    return Allow("no promises")


OPTIONS = Options({"Stop": [CallbackHook(no_promises, timeout=5)]})
MODEL = ScriptedModel({"main": ["Done; I will add the tests later.", "Done, with tests."]})


async def main() -> None:
    with tempfile.TemporaryDirectory() as project:
        async with Session(project, MODEL, OPTIONS.settings(), state=f"{project}/state") as session:
            result = await session.send("Add a discount to the prices.")
    for output in result.hook_outputs:
        print(f"{output.outcome}: {output.said}")
    print(f"{result.outcome}: {result.result}")


asyncio.run(main())
