"""The work of `turngate worker`: a session that is never opened hosts the subagents that it claims."""

import argparse
import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from turngate.agent.agent_session import AgentSession
from turngate.agent.session import Session
from turngate.aio.cancellation import finish_despite_cancel
from turngate.cli.commands.run.session import find_model
from turngate.cli.console.conversation_text import counted, format_notice, format_redirect
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
from turngate.subagents.limits import Claims, SubagentOptions, limits_from
from turngate.subagents.workers import project_label


def run_worker(options: argparse.Namespace) -> int:
    options.plugin_dir, is_remote = [], (options.project or "").startswith("ssh://")
    here = None if is_remote else World(LocalShell(), project_folder(options.project, options.dialect))
    worker = _Worker(options)
    run_loop(worker.run(here), worker.on_signal)
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

    async def run(self, here: World | None) -> None:
        async with AsyncExitStack() as stack:
            world = here or await connect(self._options.project)
            await stack.enter_async_context(world)
            host = await world.call(report_unreachable(world.files)(partial(self._new_host, world)))
            ended = asyncio.create_task(self._stop.wait())
            work = asyncio.create_task(self._work(host))
            try:
                await asyncio.wait({ended, work}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()  # raises what went wrong
            finally:
                work.cancel()
                await asyncio.wait({work})
                ended.cancel()
                await finish_despite_cancel(host.close_unopened())

    def _new_host(self, world: World) -> AgentSession:
        options, settings = self._options, load_given_settings(self._options, world)
        for problem in settings.not_loaded:
            _say(f"! {problem}" + (f"\n  → {problem.hint}" if problem.hint else ""))
        is_open = options.permission_mode == "bypassPermissions"
        claims = Claims(slots=options.slots, labels=(project_label(world), *options.label))
        session = Session(
            world,
            find_model(options.model or settings.model, settings),
            settings,
            on_event=_print_event,
            # Each subagent keeps its own permissions, which are not laxer. It starts none: a worker's role may not.
            permission_mode=options.permission_mode,
            allow=TOOL_NAMES if is_open else (),
            trust=options.trust,
            children=SubagentOptions(limits=replace(limits_from(settings), depth=0), claims=claims),
            plugins=load_plugins(settings.plugins),
            models=None if options.model else lambda name: find_model(name or settings.model, settings),
        )
        return session._agent  # noqa: SLF001 - only its parts are used

    async def _work(self, host: AgentSession) -> None:
        options, supervisor = self._options, host.subagents
        await supervisor.connect()
        where = host.resources.world.location
        _say(f"worker ready: {counted(options.slots, 'slot')} for {where}; SIGTERM drains, Ctrl-C ends it")
        await self._drain.wait()
        _say(f"draining: no more subagents are claimed; those that run have {options.drain:g} s")
        if not await supervisor.drain(options.drain):
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
