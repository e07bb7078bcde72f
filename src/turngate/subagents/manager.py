"""The subagents of one session: registry and supervisor on demand, and a watch for processes that died.

Both are opened when the first subagent starts, or when an earlier process left runs or results behind.

The subagents of a session that other processes run, because they adopted them after a crash.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from turngate._frozen import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.conversation.subagent_run import SubagentRun, names_of
from turngate.core.settings import Settings
from turngate.errors import TurngateError
from turngate.settings.agent_types import AgentType
from turngate.state.paths import REGISTRY_FILE, main_transcript_path
from turngate.state.process_stat import is_alive
from turngate.subagents.host import SubagentHost
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.listeners import ChangeListeners
from turngate.subagents.registry import (
    Registry,
    owner_is_gone,
    owners_with_open_runs,
    process_of,
)
from turngate.subagents.supervisor import KILL_WAIT_S, Supervisor


class RunsElsewhere:
    """The process that runs them puts their results into the registry, where this session finds them."""

    def __init__(
        self, session_id: str, state: str, listeners: ChangeListeners, notice: Callable[[str], None]
    ) -> None:
        self._session_id, self._state = session_id, state
        self._listeners, self._notice = listeners, notice
        self._runs: dict[str, SubagentRun] = {}  # by chain
        self._reported: set[str] = set()  # chains that the user knows of

    def __bool__(self) -> bool:
        return bool(self._runs)

    def has_others_than(self, runs: Sequence[SubagentRun]) -> bool:
        return not self._runs.keys() <= {run.chain for run in runs}

    def of(self, parent: str, parent_agent: str) -> list[SubagentRun]:
        """Return those that one agent has started."""
        return [
            run for run in self._runs.values() if (run.parent, run.parent_agent) == (parent, parent_agent)
        ]

    def read(
        self, registry: Registry, owner: str, is_own: Callable[[SubagentRun], bool]
    ) -> list[SubagentRun]:
        """Return the runs that a live process other than the owner runs. This blocks."""
        others = [run for run in registry.unfinished(self._session_id) if run.owner != owner and is_own(run)]
        gone = {each: owner_is_gone(self._state, each) for each in {run.owner for run in others}}
        return [run for run in others if not gone[run.owner]]

    def update(self, runs: Sequence[SubagentRun]) -> None:
        """Notify the agents whose subagents are no longer run elsewhere, and the user of those that are."""
        before, self._runs = self._runs, {run.chain: run for run in runs}
        for chain, run in before.items():
            if chain not in self._runs:
                self._listeners.notify(run)
        self._report([run for run in runs if run.chain not in self._reported])

    def _report(self, runs: Sequence[SubagentRun]) -> None:
        processes = {run.chain: process_of(run.owner) for run in runs}
        runs = [run for run in runs if (process := processes[run.chain]) is None or is_alive(process)]
        if not runs:
            return  # or another process is adopting those of a dead one in this moment
        self._reported.update(run.chain for run in runs)
        pids = {str(process.pid) for run in runs if (process := processes[run.chain])} - {str(os.getpid())}
        where = f"process {', '.join(sorted(pids))}" if pids else "another session"
        count = (
            "1 subagent of this session is"
            if len(runs) == 1
            else f"{len(runs)} subagents of this session are"
        )
        results = "its result arrives" if len(runs) == 1 else "their results arrive"
        self._notice(f"{count} continued by {where}: {names_of(runs)}; {results} here")


DEAD_OWNER_POLL_S = 0.5


@frozen(kw_only=True)
class SubagentOptions:
    """How a session runs its subagents; `announcer` and `on_step` are for tests and benchmarks."""

    limits: SubagentLimits | None = None  # None: the limits of the settings
    announcer: Callable[[SubagentRun], Awaitable[None]] | None = None  # called with every result
    on_step: Callable[[str, SubagentRun], None] | None = None  # called at every step of every run
    any_gates: bool = False  # continue runs of dead processes also if they live under other gates


class SubagentManager:
    """Belongs to a main session; the sessions of its subagents share it."""

    def __init__(
        self,
        host: SubagentHost,
        session_id: str,
        state: str,
        agent_types: Mapping[str, AgentType],
        options: SubagentOptions,
    ) -> None:
        self.state = state
        self.agent_types = agent_types
        self.limits = options.limits or limits_from(host.settings)
        self.listeners = ChangeListeners()
        self.running_supervisor: Supervisor | None = None
        self._host, self._session_id, self._options = host, session_id, options
        self.left: set[str] = set()  # chains of dead processes that were reported as left alone
        self.elsewhere = RunsElsewhere(session_id, state, self.listeners, host.notice)
        self._waits: set[str] = set()  # for the registry, that were reported
        self._starting = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    # Registry and supervisor

    async def open(self) -> bool:
        """Take over runs of processes that died. Return True if results wait for the main agent."""
        if not self._host.world.in_hook:
            self._watch = asyncio.create_task(self._watch_for_dead_owners())
        if not self._has_registry():
            return False
        try:
            supervisor = await self.supervisor()
            waiting = await run_in_thread(supervisor.registry.inbox, self._session_id)
            adopted = await supervisor.recover_and_notify()
            if adopted or waiting or await self._has_unfinished(supervisor):
                await self._look_elsewhere(supervisor)
            else:
                await self._stop()  # there are no subagents to look after
        except (TurngateError, OSError) as error:  # a session works without a registry
            self._host.notice(str(error))
            return False
        return bool(waiting)

    async def supervisor(self) -> Supervisor:
        async with self._starting:  # two tasks may ask at once
            if self.running_supervisor is None:
                registry = await run_in_thread(Registry, self.state, self._notice_from_thread())
                try:
                    self.running_supervisor = self._new_supervisor(registry)
                except BaseException:  # such as: its lock file cannot be made
                    registry.close()
                    raise
                self.running_supervisor.watch()
        return self.running_supervisor

    def _notice_from_thread(self) -> Callable[[str], None]:
        """Return a function for another thread that gives the user a notice, the same one only once."""
        loop = asyncio.get_running_loop()

        def show(text: str) -> None:
            if text not in self._waits:
                self._waits.add(text)
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._host.notice, text)

        return show

    async def _has_unfinished(self, supervisor: Supervisor) -> bool:
        """Return whether there are subagents of this session, also if no process may continue them: a reset ends them."""
        return bool(await supervisor.transition(supervisor.registry.unfinished, self._session_id))

    async def _look_elsewhere(self, supervisor: Supervisor) -> None:
        """Adopt the runs of a process that ended before its subagents count as ended, so that the turn waits on."""
        read = partial(self.elsewhere.read, supervisor.registry, supervisor.id, self.is_own)
        runs = await supervisor.transition(read)
        if self.elsewhere.has_others_than(runs):
            await supervisor.recover_and_notify()
            runs = await supervisor.transition(read)
        self.elsewhere.update(runs)

    async def _poll_elsewhere(self, changed: bool) -> bool:
        """Return whether this session waits for results of other processes."""
        if self.running_supervisor and (changed or self.elsewhere):
            await self._look_elsewhere(self.running_supervisor)
        return bool(self.elsewhere)

    def _new_supervisor(self, registry: Registry) -> Supervisor:
        return Supervisor(
            self._host,
            registry,
            self.limits,
            listeners=self.listeners,
            announcer=self._options.announcer,
            on_step=self._options.on_step,
            left=self.left,
            any_gates=self._options.any_gates,
            on_poll=self._poll_elsewhere,
        )

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait({self._watch})
        await self._stop()

    async def _stop(self) -> None:
        if self.running_supervisor:
            supervisor, self.running_supervisor = self.running_supervisor, None
            await supervisor.close()

    def is_own(self, run: SubagentRun) -> bool:
        """Return False for a run of a session with the same id whose dialect keeps another conversation for it."""
        dialect = str(run.launch.get("dialect") or self._host.settings.dialect.name)
        own = self._host.parent_transcript_path(run)
        return main_transcript_path(self.state, run.parent, dialect) == own

    # The turns of its agents

    def result_delivered(self, key: str) -> None:
        """The conversation of the parent has the result with this key, on disk."""
        if self.running_supervisor:
            self.running_supervisor.result_delivered(key)

    async def end_turn(self, session_id: str, agent_id: str, *, interrupted: bool) -> None:
        """Results that the turn did not take become messages. Wait until finished runs are announced."""
        if self.running_supervisor:
            self.running_supervisor.release_waiters(session_id, agent_id)
            if not agent_id:
                await self.running_supervisor.wait_for_finished(KILL_WAIT_S if interrupted else None)

    async def kill_all(self, session_id: str, agent_id: str, reason: str) -> None:
        if self.running_supervisor:
            await self.running_supervisor.kill_all(session_id, agent_id, reason)

    # Processes that died

    async def _watch_for_dead_owners(self) -> None:
        """Start a supervisor, which recovers the runs, when another process with open runs has died."""
        seen: float | None = None
        owners: list[str] = []
        while True:
            await asyncio.sleep(DEAD_OWNER_POLL_S)
            if self.running_supervisor is not None and self.running_supervisor.watching:
                continue
            changed = self._last_change()
            if changed != seen:
                seen = changed
                owners = await run_in_thread(self._owners)
            if any(owner_is_gone(self.state, owner) for owner in owners):
                seen, owners = None, []
                with contextlib.suppress(TurngateError, OSError):
                    (await self.supervisor()).watch()

    def _last_change(self) -> float | None:
        times = []
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                times.append(os.stat(os.path.join(self.state, REGISTRY_FILE + suffix)).st_mtime)
        return max(times, default=None)

    def _has_registry(self) -> bool:
        return os.path.exists(os.path.join(self.state, REGISTRY_FILE))

    def _owners(self) -> list[str]:
        if not self._has_registry():
            return []
        return owners_with_open_runs(self.state, self._host.world.location, self.left)


def limits_from(settings: Settings) -> SubagentLimits:
    limits = SubagentLimits()
    return replace(
        limits,
        at_once=limits.at_once if settings.children_at_once is None else settings.children_at_once,
        depth=limits.depth if settings.children_depth is None else settings.children_depth,
        seconds=limits.seconds if settings.child_seconds is None else settings.child_seconds,
    )
