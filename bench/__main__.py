"""`make bench`: prints each ratio with its bound; a miss is printed too and is no failure of the command."""

import asyncio
import os
import platform

from bench import children, hooks, prompts, session, startup
from bench.measure import show


def main() -> None:
    load = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}; medians; ours / floor"
    )
    loop = asyncio.new_event_loop()
    for measured in (
        hooks.direct_command,
        hooks.shell_command,
        hooks.hundred_in_parallel,
        hooks.async_callback,
        hooks.no_hook,
    ):
        show([measured(loop)])
    loop.close()
    show([startup.fire_without_hooks()])
    show([startup.thousand_hooks()])
    show(session.to_the_hook_and_back())
    show([session.last_message()])
    show([session.two_hundred_at_once()])
    show([session.run_without_hooks()])
    show([children.durable_transition()])
    show(children.whole_child())
    show([children.transition_among_many()])
    show([children.take_over()])
    show(children.memory())
    show([prompts.input_in_tokens()])
    show([prompts.digest_of_200_megabytes()])


main()
