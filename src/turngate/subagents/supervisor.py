"""The supervisor of a process: starts subagents, kills and steers them, and adopts the runs of dead processes."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.conversation.subagent_run import SubagentRun, names_of
from turngate.core.verdict.loop_guard import new_guard
from turngate.errors import RegistryError, TurngateError, UsageError
from turngate.subagents.gates import gates_of, left_notice, why_left
from turngate.subagents.host import SubagentHost
from turngate.subagents.lifecycle import LifecycleContext, RunLifecycle
from turngate.subagents.limits import ConcurrencySlots, SubagentLimits
from turngate.subagents.listeners import ChangeListeners
from turngate.subagents.registry import Owner, Registry, RegistryWorker, new_id
from turngate.subagents.steering import check_steer, request_steer

T = TypeVar("T")
KILL_WAIT_S = 5.0  # an interrupt does not wait longer for the plugins that are told of the end
REGISTRY_POLL_S = 0.2
DELETE_INTERVAL_S = 60.0
RESUME_INTERVAL_S = 2.0
REGISTRY_ERROR_PAUSE_S = 5.0


class Supervisor:
    def __init__(
        self,
        host: SubagentHost,
        registry: Registry,
        limits: SubagentLimits | None = None,
        *,
        listeners: ChangeListeners | None = None,
        announcer: Callable[[SubagentRun], Awaitable[None]] | None = None,
        on_step: Callable[[str, SubagentRun], None] | None = None,
        left: set[str] | None = None,
        any_gates: bool = False,
        on_poll: Callable[[bool], Awaitable[bool]] | None = None,
    ) -> None:
        self.host = host
        self.registry = registry
        self.limits = limits or SubagentLimits()
        self._listeners = listeners or ChangeListeners()
        self.owner = Owner(registry.owners)
        self.owner.acquire()
        self._slots = ConcurrencySlots(self.limits.at_once)
        self._worker = RegistryWorker(registry)
        self._on_step = on_step
        self._left = set[str]() if left is None else left  # chains that were reported as left alone
        self._any_gates = any_gates
        self._on_poll = on_poll  # gets whether another process wrote; returns whether to go on with polling
        self._lifecycles: dict[str, RunLifecycle] = {}  # by chain
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._watcher: asyncio.Task[None] | None = None
        self._context = LifecycleContext(
            host=host,
            registry=registry,
            worker=self._worker,
            limits=self.limits,
            slots=self._slots,
            listeners=self._listeners,
            owner=self.id,
            announcer=announcer,
            trace=self.trace,
            will_take_turn=self.will_take_turn,
        )
        if registry.notice:
            host.notice(registry.notice)

    @property
    def id(self) -> str:
        return self.owner.id

    # Start and result

    async def spawn(
        self,
        agent_type: str,
        prompt: str,
        *,
        label: str = "",
        background: bool = False,
        parent: str = "",
        parent_agent: str = "",
        depth: int = 1,
        resume: str = "",
        launch: Mapping[str, Any] | None = None,
    ) -> SubagentRun:
        """Register a subagent and start it once a slot is free; `resume` is the id of one to continue.

        Raises RegistryError, and then nothing was started.
        """
        if depth > self.limits.depth:
            raise UsageError(f"depth {depth} is too deep for a subagent; the limit is {self.limits.depth}")
        run_id, now = new_id(), time.time()
        run = SubagentRun(
            id=run_id,
            chain=run_id,
            agent_id=resume or f"a{new_id()[:16]}",
            agent_type=agent_type,
            parent=parent,
            parent_agent=parent_agent,
            label=label,
            task=prompt,
            prompt=prompt,
            background=background,
            depth=depth,
            owner=self.id,
            created=now,
            begun=now,
            max_steers=new_guard(self.host.settings, self.host.world.own_environ, child=True).limit,
            launch={
                **(launch or {}),
                "project": self.host.world.location,
                "announce": self.host.settings.announce_children,
                "gates": gates_of(self.host, agent_type).as_json(),
            },
        )
        return await self._register_or_kill(replace(run, transcript=self.host.transcript_path(run)))

    async def _register_or_kill(self, run: SubagentRun) -> SubagentRun:
        """Register a run; if the caller is cancelled meanwhile, the run may exist already and is killed."""
        registering = asyncio.create_task(self._register(run))
        try:
            return await asyncio.shield(registering)
        except asyncio.CancelledError:
            with contextlib.suppress(TurngateError):
                await finish_despite_cancel(registering)
                await finish_despite_cancel(self.kill(run.id, "interrupted"))
            raise

    async def _register(self, run: SubagentRun) -> SubagentRun:
        async with self._worker.lock:
            may_run = self._slots.has_room(run)
            run = await self._worker.call(
                partial(self.registry.register, run, may_run=may_run, max_running=self.limits.on_machine)
            )
        self.trace("registered", run)
        self._start_lifecycle(run)
        return run

    async def result(self, chain: str) -> SubagentRun:
        """Wait for the end of a chain. The caller reports with `result_delivered` that it stored the result."""
        lifecycle = self._lifecycles.get(chain)
        if lifecycle is None:
            ended = await self._worker.call(self.registry.last, chain)
            if ended is None:
                raise UsageError(f"there is no run {chain}")
            return ended
        lifecycle.waiters += 1
        try:
            return await asyncio.shield(lifecycle.result)
        except asyncio.CancelledError:
            lifecycle.waiters -= 1
            lifecycle.delivered.set()
            raise

    def result_delivered(self, chain: str) -> None:
        """Note that the parent's conversation holds the result of this chain, on disk."""
        if lifecycle := self._lifecycles.get(chain):
            lifecycle.delivered.set()

    def release_waiters(self, parent: str, parent_agent: str = "") -> None:
        """Announce results as messages if the turn that waited for them ended without storing them."""
        for lifecycle in self._lifecycles.values():
            if lifecycle.parent_key == (parent, parent_agent):
                lifecycle.release_waiters()

    def running_in_background(self, parent: str, parent_agent: str = "") -> list[SubagentRun]:
        """Return the subagents of one agent that have no result yet and for which no tool call waits.

        The call of one that was adopted, or whose lifecycle was restarted, is gone, whatever it asked for.
        """
        return [
            lifecycle.current
            for lifecycle in self._lifecycles.values()
            if lifecycle.parent_key == (parent, parent_agent)
            and not lifecycle.waiters
            and not lifecycle.result.done()
        ]

    def will_take_turn(self, agent_id: str) -> bool:
        """Return whether this subagent takes another turn in this process."""
        return any(
            lifecycle.current.agent_id == agent_id
            and lifecycle.current.state in ("waiting", "running", "steering")
            for lifecycle in self._lifecycles.values()
        )

    # Kill and steer

    async def kill(self, run: str, reason: str = "killed") -> list[SubagentRun]:
        """End a run and everything it started, for good."""
        killed = await self.transition(self.registry.kill, run, reason)
        self._notify_lifecycles(killed)
        return killed

    async def kill_all(self, parent: str, parent_agent: str, reason: str) -> list[SubagentRun]:
        """Kill everything that an agent has started, and wait until it has ended, or KILL_WAIT_S for slow plugins."""
        killed = await self.transition(self.registry.kill_all, parent, parent_agent, reason)
        self._notify_lifecycles(killed)
        await self._wait_for((run.chain for run in killed), KILL_WAIT_S)
        return killed

    async def steer(self, run: str, prompt: str, *, by: str) -> SubagentRun:
        """Give a working subagent a new prompt. Raises UsageError if that is not allowed, or too late."""
        row = await self.transition(self.registry.get, run)
        if row is None:
            raise UsageError(f"there is no run {run}")
        lifecycle = self._lifecycles.get(row.chain)
        since = time.monotonic() - lifecycle.steered_at if lifecycle else float("inf")
        check_steer(row, prompt, by=by, since=since)
        steering = await self.transition(request_steer, self.registry, row, prompt)
        if lifecycle:
            lifecycle.steered_at = time.monotonic()
        self._notify_lifecycles([steering])
        return steering

    # Runs of dead processes

    async def recover(self) -> list[SubagentRun]:
        """Adopt the runs of owners that died, and continue them."""
        adopted: list[SubagentRun] = []
        for owner in await self._worker.call(self.registry.other_owners, self.id):
            adopted += await finish_despite_cancel(self._adopt(owner))
        return adopted

    async def _adopt(self, owner: str) -> list[SubagentRun]:
        left: list[SubagentRun] = []

        def may_adopt(run: SubagentRun) -> bool:
            if self.why_left(run):
                left.append(run)
            return run not in left

        async with self._worker.lock:
            adopted = await self._worker.call(
                self.registry.adopt, owner, self.id, self.host.world.location, may_adopt
            )
        for run in left:
            self._report_left(run)
        for run in adopted:
            self.trace("recovered", run)
            self._start_lifecycle(run)
        return adopted

    def why_left(self, run: SubagentRun) -> str:
        """Return why this process may not continue a run of another one, or "" if it may."""
        return "" if self._any_gates else why_left(run, self.host)

    def _report_left(self, run: SubagentRun) -> None:
        """Tell the user once that a run is left alone; the journal of its session has it as well."""
        if run.chain not in self._left:
            self._left.add(run.chain)
            self.host.warn(run, left_notice(run, self.why_left(run)))

    async def recover_and_notify(self) -> list[SubagentRun]:
        """Like `recover`, and notify the user.

        Does nothing inside a hook, where adopted subagents would run without their gates.
        """
        if self.host.world.in_hook:
            return []
        adopted = await self.recover()
        if adopted:
            count = "1 subagent" if len(adopted) == 1 else f"{len(adopted)} subagents"
            modes = sorted({self.host.permission_mode(run) for run in adopted if self._is_restricted(run)})
            mode = f" (permission mode: {', '.join(modes)})" if modes else ""
            self.host.notice(f"continuing {count} of a process that died: {names_of(adopted)}{mode}")
        return adopted

    def _is_restricted(self, run: SubagentRun) -> bool:
        mode = self.host.permission_mode(run)
        return bool(run.launch.get("permission_mode", mode) != mode)

    async def _resume_own(self) -> None:
        """Restart the lifecycles of this process's runs that ended early, such as by a full disk or an interrupt."""
        async with self._worker.lock:
            owned = await self._worker.call(self.registry.owned, self.id)
        for run in owned:
            if run.chain not in self._lifecycles:
                self._start_lifecycle(run)

    # Watching other processes

    def watch(self) -> None:
        """Start to poll for kills, steers and deaths of other processes."""
        if not self.watching:
            self._watcher = asyncio.create_task(self._watch())

    @property
    def watching(self) -> bool:
        return self._watcher is not None and not self._watcher.done()

    async def _watch(self) -> None:
        version, check_owners, reported = -1, False, ""
        deleted_at, resumed_at = float("-inf"), time.monotonic()
        while True:
            try:
                previous, version = version, await self._worker.call(self.registry.version)
                waits = self._on_poll is not None and await self._on_poll(version != previous)
                if not waits and not self._lifecycles and await self._worker.call(self.registry.is_empty):
                    return
                if time.monotonic() - resumed_at > RESUME_INTERVAL_S:
                    resumed_at = time.monotonic()
                    await self._resume_own()
                if version != previous:
                    self._notify_lifecycles(await self._worker.call(self.registry.changed_by_others, self.id))
                    check_owners = True
                if check_owners:
                    await self.recover_and_notify()
                    check_owners = bool(await self._worker.call(self.registry.other_owners, self.id))
                if time.monotonic() - deleted_at > DELETE_INTERVAL_S:
                    deleted_at = time.monotonic()
                    await self._worker.call(self.registry.delete_finished)
            except (RegistryError, OSError, RuntimeError) as error:
                if str(error) != reported:
                    reported = str(error)
                    self.host.notice(f"subagents of other processes cannot be watched: {error}")
                await asyncio.sleep(REGISTRY_ERROR_PAUSE_S)
            await asyncio.sleep(REGISTRY_POLL_S)

    # Waiting and closing

    async def wait_for_finished(self, seconds: float | None = None) -> None:
        """Wait for the chains that have a result or are killed; little is left to do for them."""
        await self._wait_for(
            [
                chain
                for chain, lifecycle in self._lifecycles.items()
                if lifecycle.result.done() or lifecycle.is_killed
            ],
            seconds,
        )

    async def wait_until_idle(self) -> None:
        """Wait until no chain is left."""
        while self._lifecycles:
            await self._wait_for(self._lifecycles)

    async def close(self) -> None:
        """Stop all work as it is; another process can adopt the runs that are not finished."""
        tasks = [*self._tasks.values(), *([self._watcher] if self._watcher else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await finish_despite_cancel(asyncio.wait(tasks))
        await finish_despite_cancel(self._leave())

    async def _leave(self) -> None:
        """Give up the open runs. If that fails, the lock file stays, and the owner counts as dead."""
        try:
            await self._worker.call(self.registry.leave, self.id)
        except RegistryError:
            self.owner.unlock()
        await self._worker.close()
        self.owner.release()

    async def _wait_for(self, chains: Iterable[str], seconds: float | None = None) -> None:
        tasks = [self._tasks[chain] for chain in chains if chain in self._tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    # Lifecycles

    def trace(self, step: str, run: SubagentRun) -> None:
        if self._on_step:
            self._on_step(step, run)

    async def transition(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._worker.transition(function, *arguments)

    def _start_lifecycle(self, run: SubagentRun) -> None:
        lifecycle = self._lifecycles[run.chain] = RunLifecycle(run, self._context)
        task = self._tasks[run.chain] = asyncio.create_task(lifecycle.run())
        task.add_done_callback(lambda _: self._forget(lifecycle))
        self.watch()

    def _forget(self, lifecycle: RunLifecycle) -> None:
        run = lifecycle.current
        if self._lifecycles.get(run.chain) is lifecycle:
            del self._lifecycles[run.chain], self._tasks[run.chain]
        self._listeners.remove(run.agent_id)
        self._listeners.notify(run)

    def _notify_lifecycles(self, changed: Collection[SubagentRun]) -> None:
        for run in changed:
            if lifecycle := self._lifecycles.get(run.chain):
                lifecycle.on_external_change(run)
