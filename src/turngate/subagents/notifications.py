"""Who is told of a child: hooks when it starts, plugins when it stops and when it has ended, and the screen."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

from turngate.core.effects import added_context
from turngate.core.events import SubagentStart
from turngate.core.messages import Usage
from turngate.core.plugin_events import ended_event, stopping_context
from turngate.core.session_events import SubagentFinished, SubagentStarted
from turngate.core.subagent_run import SubagentRun
from turngate.plugins.handlers import SubagentStopPayload
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.protocols import SubagentHost

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two tries to announce


def started(run: SubagentRun) -> SubagentStarted:
    return SubagentStarted(run.agent_id, run.agent_type, run.label)


def finished(run: SubagentRun) -> SubagentFinished:
    return SubagentFinished(
        agent_id=run.agent_id,
        label=run.name,
        outcome=run.outcome or "error",
        redirects=run.steer_count,
        seconds=run.total_seconds,
        agent_type=run.agent_type,
        reason=run.reason,
    )


async def tell_start(host: SubagentHost, run: SubagentRun) -> str:
    """What the hooks want the child to know."""
    event = SubagentStart(
        session_id=run.parent,
        transcript_path=host.parent_transcript_path(run),
        cwd=host.project,
        agent_id=run.agent_id,
        agent_type=run.agent_type,
    )
    return added_context((await host.ask_hooks(event)).runs, plain=False)


async def tell_stop(host: SubagentHost, run: SubagentRun) -> None:
    """Once for each child that was started, with what all of its runs used."""
    whole = replace(run, usage=run.spent + run.usage, spent=Usage())
    payload = SubagentStopPayload(
        parent_session_id=run.parent,
        agent_id=run.agent_id,
        agent_type=run.agent_type,
        result=whole,
        usage=whole.usage,
        total_tool_calls=run.tool_calls,
        total_duration=run.total_seconds,
        model=str(run.launch.get("model", "")).replace(":", "/", 1),
        transcript_path=host.transcript_path(run),
        continuations=run.steer_count,
        outcome=run.outcome or "error",
    )
    await host.plugins.tell("subagent_stop", payload)
    _complain(host)


async def tell_ended(host: SubagentHost, run: SubagentRun) -> None:
    await host.plugins.tell("subagent_ended", ended_event(run), stopping_context(run))
    _complain(host)


def _complain(host: SubagentHost) -> None:
    for complaint in host.plugins.take_errors():
        host.notice(complaint)


async def deliver_announcement(
    announcer: Callable[[SubagentRun], Awaitable[None]],
    run: SubagentRun,
    limits: SubagentLimits,
    count_attempt: Callable[[], Awaitable[int]],
) -> str | None:
    """Call the announcer with exponential back-off. Return the last error, or None once it succeeds."""
    pause = FIRST_PAUSE
    while True:
        try:
            async with asyncio.timeout(limits.announce_call):
                await announcer(run)
        except Exception as error:  # noqa: BLE001 - foreign code
            failure = f"{type(error).__name__}: {error}"
        else:
            return None
        attempts = await count_attempt()
        age = time.time() - (run.ended or time.time())
        if attempts >= limits.announce_tries or age > limits.announce_expiry:
            return failure
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
        pause = min(pause * 2, LONGEST_PAUSE)
