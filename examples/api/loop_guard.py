import asyncio

from turngate import (
    Block,
    CallbackHook,
    ContinueTurn,
    EndTurn,
    GoHome,
    GoOn,
    LocalShell,
    LoopGuard,
    Options,
    StopEvent,
    World,
    ask_hooks,
    new_guard,
)


async def main() -> None:
    """The loop of a host that has an agent of its own; `Session` has one already."""
    world = World(LocalShell(), project=".")
    settings = Options({"Stop": [CallbackHook(lambda _: Block("Two tests fail."), name="tests")]}).settings()
    guard: LoopGuard = new_guard(settings, world.environ, limit=2)
    while True:
        event = StopEvent(session_id="s-1", stop_hook_active=guard.active)
        step = guard.after(await ask_hooks(event, settings, world))
        if isinstance(step, EndTurn):
            break
        print("continue:", step.prompt.splitlines()[-1])
        guard = step.guard.after_tool_call()  # the agent works on it
    print(step.ended_by, "|", step.notice)


asyncio.run(main())
assert (GoOn, GoHome) == (ContinueTurn, EndTurn)  # deprecated names
