import asyncio

from turngate import (
    BaseHookInput,
    LocalShell,
    StopHookInput,
    StopHooksResult,
    SubagentStopHookInput,
    run_stop_hooks,
)

stop = StopHookInput(
    session_id="s-1",
    transcript_path="",
    cwd=".",
    permission_mode="default",
    hook_event_name="Stop",
    stop_hook_active=False,
)
subagent_stop = SubagentStopHookInput(
    session_id="s-1",
    transcript_path="",
    cwd=".",
    permission_mode="default",
    stop_hook_active=False,
    agent_id="a-1",
    agent_type="Explore",
)


def describe(hook_input: BaseHookInput) -> str:
    return f"{hook_input.session_id} ({hook_input.permission_mode})"


async def main() -> None:
    for hook_input in (stop, subagent_stop):
        result: StopHooksResult = await run_stop_hooks(LocalShell(), ".", hook_input, trust=True)
        print(hook_input.hook_event_name, describe(hook_input), result.should_stop, result.continue_reason)


asyncio.run(main())
