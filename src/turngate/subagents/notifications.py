"""Who is told of a child: hooks when it starts, plugins when it stops and when it has ended, and the screen."""

import asyncio
import random
import time
from dataclasses import replace

from turngate.core.effects import added_context
from turngate.core.events import SubagentStart
from turngate.core.messages import Usage
from turngate.core.plugin_events import ended_event, stopping_context
from turngate.core.session_events import SubagentFinished, SubagentStarted
from turngate.core.subagent_run import Run
from turngate.plugins.handlers import SubagentStopPayload
from turngate.subagents.protocols import Office
from turngate.subagents.stop_check import StopCheckHost

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two tries to announce


def started(run: Run) -> SubagentStarted:
    return SubagentStarted(run.agent_id, run.agent_type, run.label)


def finished(run: Run) -> SubagentFinished:
    return SubagentFinished(
        agent_id=run.agent_id,
        label=run.name,
        outcome=run.outcome or "error",
        redirects=run.steer_count,
        seconds=run.total_seconds,
        agent_type=run.agent_type,
        reason=run.reason,
    )


async def tell_start(host: StopCheckHost, run: Run) -> str:
    """What the hooks want the child to know."""
    event = SubagentStart(
        session_id=run.parent,
        transcript_path=host.parent_transcript_of(run),
        cwd=host.project,
        agent_id=run.agent_id,
        agent_type=run.agent_type,
    )
    return added_context((await host.ask(event)).runs, plain=False)


async def tell_stop(host: StopCheckHost, run: Run) -> None:
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
        transcript_path=host.transcript_of(run),
        continuations=run.steer_count,
        outcome=run.outcome or "error",
    )
    await host.plugins.tell("subagent_stop", payload)
    _complain(host)


async def tell_ended(host: StopCheckHost, run: Run) -> None:
    await host.plugins.tell("subagent_ended", ended_event(run), stopping_context(run))
    _complain(host)


def _complain(host: StopCheckHost) -> None:
    for complaint in host.plugins.take_errors():
        host.notice(complaint)


async def deliver_announcement(office: Office, run: Run) -> str | None:
    """Tells whoever wants to be told besides the parent's inbox, again and again; gives what went wrong at last."""
    if office.announcer is None:
        return None
    limits, pause = office.limits, FIRST_PAUSE
    while True:
        try:
            async with asyncio.timeout(limits.announce_call):
                await office.announcer(run)
        except Exception as error:  # noqa: BLE001 - foreign code
            said = f"{type(error).__name__}: {error}"
        else:
            return None
        tries = await office.write(office.registry.tried, run.id)
        age = time.time() - (run.ended or time.time())
        if tries >= limits.announce_tries or age > limits.announce_expiry:
            return said
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
        pause = min(pause * 2, LONGEST_PAUSE)
