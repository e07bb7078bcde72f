"""The work of `turngate worker`: a session that is never opened hosts the subagents that it claims."""

import argparse
import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from turngate.agent.agent_session import AgentSession
from turngate.aio.threads import finish_despite_cancel
from turngate.cli.commands.run.session import new_subagent_host
from turngate.cli.commands.worker.clone import open_slots
from turngate.cli.console.conversation_text import counted, format_notice, format_redirect
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.signals import run_until_signal
from turngate.cli.project import project_folder
from turngate.cli.workspace import connect, load_given_settings
from turngate.core.conversation.tools import TOOL_NAMES
from turngate.core.events.stream_events import (
    Notice,
    SessionEvent,
    SubagentFinished,
    SubagentRedirected,
    SubagentStarted,
)
from turngate.core.text import printable
from turngate.ports import World
from turngate.settings.load import report_unreachable
from turngate.shells.local import LocalShell
from turngate.state.paths import state_folder
from turngate.subagents.git_files import SlotFolder, git_label, is_git_url
from turngate.subagents.limits import SubagentOptions, limits_from
from turngate.subagents.workers import project_label


def run_worker(options: argparse.Namespace) -> int:
    place, drain = options.project or "", asyncio.Event()
    slots: list[SlotFolder] = []
    if is_git_url(place):
        with show_if_slow(f"getting the files of {git_label(place)}"):
            slots = open_slots(place, state_folder(), options.slots)
    elif not place.startswith("ssh://"):
        options.project = project_folder(options.project, options.dialect)
    ended = run_until_signal(_work(options, slots, drain), drain=drain)
    return 128 + ended if ended else 0


async def _work(options: argparse.Namespace, slots: list[SlotFolder], drain: asyncio.Event) -> int:
    """Offer the project to the sessions: one that is in git in each slot, another one where it is.

    Return SIGTERM if subagents have not ended in time, or 0.
    """
    async with AsyncExitStack() as stack:
        hosts: list[AgentSession] = []
        for slot in slots or (None,):
            if slot or not options.project.startswith("ssh://"):
                world = World(LocalShell(), slot.folder if slot else options.project)
            else:
                world = await connect(options.project)
            await stack.enter_async_context(world)
            make = report_unreachable(world.files)(partial(_new_host, options, world, slot))
            hosts.append(await world.call(make))
            stack.push_async_callback(finish_despite_cancel, hosts[-1].close_unopened())
        await asyncio.gather(*(host.subagents.connect() for host in hosts))
        where = ", ".join(host.resources.world.location for host in hosts)
        _say(f"worker ready: {counted(options.slots, 'slot')} for {where}; SIGTERM drains, Ctrl-C ends it")
        await drain.wait()
        _say(f"draining: no more subagents are claimed; those that run have {options.drain:g} s")
        drained = await asyncio.gather(*(host.subagents.drain(options.drain) for host in hosts))
    return 0 if all(drained) else signal.SIGTERM


def _new_host(options: argparse.Namespace, world: World, slot: SlotFolder | None) -> AgentSession:
    settings = load_given_settings(options, world)
    children = SubagentOptions(
        limits=replace(limits_from(settings), depth=0),  # it starts no others: a worker's role may not
        slots=1 if slot else options.slots,
        labels=(slot.label if slot else project_label(world), *options.label),
        folder=slot,
    )
    return new_subagent_host(
        options,
        world,
        settings,
        [settings.model or ""],
        on_event=_print_event,
        # Each subagent keeps its own permissions, which are not laxer.
        permission_mode=options.permission_mode,
        allow=TOOL_NAMES if options.permission_mode == "bypassPermissions" else (),
        children=children,
    )


def _print_event(event: SessionEvent) -> None:
    match event:
        case Notice(text, hint):
            _say(format_notice(text, hint)[0])
        case SubagentStarted(agent_id, agent_type, label):
            _say(f"claimed {agent_id}: {printable(label or agent_type)}")
        case SubagentRedirected(_, name, why, count, limit):
            _say(format_redirect(name, why, count, limit))
        case SubagentFinished(agent_id, outcome=outcome):
            _say(f"ended {agent_id}: {outcome}")
        case _:
            pass


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
