"""Run two hooks from Python: a command and a function.

Needs no network. Run it: python examples/gate.py
"""

import asyncio

from turngate import (
    Allow,
    Block,
    CallbackHook,
    CommandHook,
    Continue,
    LocalShell,
    Rule,
    Settings,
    StopEvent,
    World,
    ask_hooks,
)


def no_promises(event: StopEvent) -> Allow | Block:
    """A hook function may be sync, and then runs in a thread, or async; both are time-limited."""
    if "later" in str(event.last_assistant_message):
        return Block("You promise something for later. Do it now, or say why you cannot.")
    return Allow()


SETTINGS = Settings(
    rules=(
        Rule(
            "Stop",
            CommandHook("test -e gone.txt && echo 'Remove gone.txt.' >&2 && exit 2 || exit 0", timeout=10),
        ),
        Rule("Stop", CallbackHook(no_promises)),
    )
)


async def main() -> None:
    world = World(LocalShell(), project=".")
    for answer in ("Done; I will add the tests later.", "Done, with tests."):
        event = StopEvent(session_id="example", cwd=world.project, last_assistant_message=answer)
        verdict = await ask_hooks(event, SETTINGS, world)
        print(f"{answer!r}:", verdict.prompt if isinstance(verdict, Continue) else "allowed")


asyncio.run(main())
