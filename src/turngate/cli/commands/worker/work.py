"""The work of `turngate worker`: a session that is never opened hosts the subagents that it claims."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from turngate.agent.agent_session import AgentSession
from turngate.agent.session import Session
from turngate.aio.threads import finish_despite_cancel
from turngate.cli.commands.run.session import find_model
from turngate.cli.commands.worker.clone import open_slots
from turngate.cli.console.conversation_text import counted, format_notice, format_redirect
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.signals import run_loop
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
from turngate.plugins.handlers import load_plugins
from turngate.ports import World
from turngate.settings.load import report_unreachable
from turngate.shells.local import LocalShell
from turngate.state.paths import state_folder
from turngate.subagents.git_files import SlotFolder, git_label, is_git_url
from turngate.subagents.limits import Claims, SubagentOptions, limits_from
from turngate.subagents.workers import project_label


def run_worker(options: argparse.Namespace) -> int:
    options.plugin_dir = []
    place, worker = options.project or "", _Worker(options)
    places: list[tuple[World, SlotFolder | None]] = []
    if is_git_url(place):
        with show_if_slow(f"getting the files of {git_label(place)}"):
            slots = open_slots(place, state_folder(), options.slots)
        places = [(World(LocalShell(), slot.folder), slot) for slot in slots]
    elif not place.startswith("ssh://"):
        places = [(World(LocalShell(), project_folder(options.project, options.dialect)), None)]
    run_loop(worker.run(places), worker.on_signal)
    return 128 + worker.signal if worker.signal else 0


class _Worker:
    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._drain, self._stop = asyncio.Event(), asyncio.Event()
        self.signal = 0  # that ended it, unless it has drained

    def on_signal(self, number: signal.Signals) -> None:
        """The first SIGTERM drains; any other signal ends the work."""
        if number == signal.SIGTERM and not self._drain.is_set():
            self._drain.set()
        elif not self._stop.is_set():
            self.signal = number
            self._stop.set()

    async def run(self, places: Sequence[tuple[World, SlotFolder | None]]) -> None:
        """Offer each place to the sessions; without one, the location over SSH."""
        async with AsyncExitStack() as stack:
            hosts: list[AgentSession] = []
            for world, slot in places or [(await connect(self._options.project), None)]:
                await stack.enter_async_context(world)
                make = report_unreachable(world.files)(partial(self._new_host, world, slot))
                hosts.append(await world.call(make))
                stack.push_async_callback(finish_despite_cancel, hosts[-1].close_unopened())
            ended = asyncio.create_task(self._stop.wait())
            work = asyncio.create_task(self._work(hosts))
            try:
                await asyncio.wait({ended, work}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()  # raises what went wrong
            finally:
                work.cancel()
                await asyncio.wait({work})
                ended.cancel()

    def _new_host(self, world: World, slot: SlotFolder | None) -> AgentSession:
        options, settings = self._options, load_given_settings(self._options, world)
        for problem in settings.not_loaded:
            _say(f"! {problem}" + (f"\n  → {problem.hint}" if problem.hint else ""))
        is_open = options.permission_mode == "bypassPermissions"
        labels = (slot.label if slot else project_label(world), *options.label)
        claims = Claims(slots=1 if slot else options.slots, labels=labels)
        limits = replace(limits_from(settings), depth=0)
        session = Session(
            world,
            find_model(options.model or settings.model, settings),
            settings,
            on_event=_print_event,
            # Each subagent keeps its own permissions, which are not laxer. It starts none: a worker's role may not.
            permission_mode=options.permission_mode,
            allow=TOOL_NAMES if is_open else (),
            trust=options.trust,
            children=SubagentOptions(limits=limits, claims=claims, folder=slot),
            plugins=load_plugins(settings.plugins),
            models=None if options.model else lambda name: find_model(name or settings.model, settings),
        )
        return session._agent  # noqa: SLF001 - only its parts are used

    async def _work(self, hosts: Sequence[AgentSession]) -> None:
        options = self._options
        await asyncio.gather(*(host.subagents.connect() for host in hosts))
        where = ", ".join(host.resources.world.location for host in hosts)
        _say(f"worker ready: {counted(options.slots, 'slot')} for {where}; SIGTERM drains, Ctrl-C ends it")
        await self._drain.wait()
        _say(f"draining: no more subagents are claimed; those that run have {options.drain:g} s")
        if not all(await asyncio.gather(*(host.subagents.drain(options.drain) for host in hosts))):
            self.signal = signal.SIGTERM


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
