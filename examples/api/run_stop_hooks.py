import asyncio

from turngate import LocalShell, StopHookInput, StopHooksResult, SubagentStopHookInput, run_stop_hooks

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


async def main() -> None:
    for hook_input in (stop, subagent_stop):
        result: StopHooksResult = await run_stop_hooks(LocalShell(), ".", hook_input, trust=True)
        print(hook_input.hook_event_name, result.should_stop, result.continue_reason, result.warnings)


asyncio.run(main())
