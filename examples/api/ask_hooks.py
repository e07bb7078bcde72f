import asyncio

from turngate import (
    CommandHook,
    Continue,
    HookOutput,
    HookRun,
    LocalShell,
    Options,
    Stop,
    StopEvent,
    Subagent,
    Workspace,
    World,
    ask_hooks,
    load_settings,
)


async def main() -> None:
    world = World(LocalShell(), project=".")
    hook = CommandHook(
        "test -s CHANGELOG.md || { echo 'The changelog is missing.' >&2; exit 2; }", id="changelog"
    )
    options = Options({"Stop": [hook], "SubagentStop": [CommandHook("true")]})
    settings = options.settings(load_settings(world.project))  # the project's own hooks come first

    verdict = await ask_hooks(StopEvent(session_id="s-1", cwd=world.project), settings, world)
    assert isinstance(verdict, Continue)
    print(verdict.prompt)
    run: HookRun = verdict.runs[0]
    output: HookOutput = verdict.hook_outputs[0]
    print(run.rule.hook.id, output.outcome, output.said)

    subagent = Subagent(id="a-1", type="Explore")
    verdict = await ask_hooks(StopEvent(session_id="s-1", subagent=subagent), settings, world)
    assert isinstance(verdict, Stop)
    print("halted:", verdict.halted)
    await world.close()


asyncio.run(main())
assert Workspace is World  # another name for it
