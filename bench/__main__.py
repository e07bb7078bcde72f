"""`make bench`: prints each ratio with its bound. A missed bound is marked and does not fail the command."""

import asyncio
import os
import platform

from bench import (
    acp,
    gates,
    history,
    hook_command,
    hooks,
    live,
    prompts,
    resume,
    sessions,
    ssh,
    startup,
    subagents,
)
from bench.measure import show

HOOK_BENCHMARKS = (
    hooks.direct_command,
    hooks.shell_command,
    hooks.plain_command,
    hooks.parallel_hooks,
    hooks.async_callback,
    hooks.no_hook,
    hooks.hook_that_ignores_sigterm,
)


def main() -> None:
    load = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}; medians; ours / floor"
    )
    loop = asyncio.new_event_loop()
    for benchmark in HOOK_BENCHMARKS:
        show([benchmark(loop)])
    loop.close()
    show(startup.fire_without_hooks())
    show([startup.load_many_hooks(), startup.review_hooks()])
    show([*gates.cached_answer(), gates.tree_state()])
    show(hook_command.hook_of_a_host())
    show(hook_command.stop_in_a_large_project())
    show(acp.pipe())
    show(sessions.stop_hook_latency())
    show([sessions.last_assistant_message()])
    show([sessions.concurrent_sessions()])
    show([sessions.run_without_hooks()])
    show(live.live_run())
    show(resume.resumed_conversation())
    show([subagents.durable_transition()])
    show(subagents.whole_subagent())
    show([subagents.transition_among_many()])
    show([subagents.takeover()])
    show(subagents.memory())
    show([prompts.judge_input()])
    show([prompts.digest_time()])
    show([history.past_stops()])
    show(ssh.remote_hooks())


if __name__ == "__main__":
    main()
