"""The supervisor: starts children, looks after their chains of runs, and takes over what dead processes left."""

import asyncio
import contextlib
import functools
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.loop_guard import new_guard
from turngate.core.subagent_run import SubagentRun
from turngate.errors import RegistryError, TurngateError, UsageError
from turngate.subagents.lifecycle import LifecycleContext, RunLifecycle
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.protocols import SubagentHost
from turngate.subagents.registry import Owner, Registry, RegistryWorker, new_id
from turngate.subagents.slots import ConcurrencySlots
from turngate.subagents.steering import check_steer, mark_for_steer

T = TypeVar("T")
LOOK = 0.2  # seconds between two looks at what other processes did
SWEEP = 60.0  # seconds between two sweeps
FORGOTTEN = 2.0  # seconds between two looks for runs of ours that nobody looks after
TROUBLE = 5.0  # seconds that a register which can not be used is left alone


class Supervisor:
    def __init__(
        self,
        host: SubagentHost,
        registry: Registry,
        limits: SubagentLimits | None = None,
        *,
        announcer: Callable[[SubagentRun], Awaitable[None]] | None = None,
        on_step: Callable[[str, SubagentRun], None] | None = None,
    ) -> None:
        self.host = host
        self.registry = registry
        self.limits = limits or SubagentLimits()
        self.slots = ConcurrencySlots(self.limits.at_once)
        self.owner = Owner(registry.owners)
        self.owner.acquire()
        self._on_step = on_step
        self._chains: dict[str, RunLifecycle] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._worker = RegistryWorker(registry)
        self._context = LifecycleContext(
            host=host,
            registry=registry,
            worker=self._worker,
            limits=self.limits,
            slots=self.slots,
            owner=self.id,
            announcer=announcer,
            trace=self.trace,
            will_take_turn=self.will_take_turn,
        )
        self._watching: asyncio.Task[None] | None = None
        if registry.fault:
            host.notice(registry.fault)

    @property
    def id(self) -> str:
        return self.owner.id

    # Children

    async def spawn(
        self,
        kind: str,
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
        """Registers a child and starts it as soon as there is room; `resume` names one whose conversation goes on.

        Raises RegistryError: then nothing was started.
        """
        if depth > self.limits.depth:
            raise UsageError(f"a child at depth {depth} is too deep; the limit is {self.limits.depth}")
        identity, now = new_id(), time.time()
        guard = new_guard(self.host.settings, self.host.world.environ, child=True)
        run = SubagentRun(
            id=identity,
            chain=identity,
            agent_id=resume or f"a{new_id()[:16]}",
            agent_type=kind,
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
            max_steers=guard.limit,
            launch={**(launch or {}), "project": self.host.project},
        )
        registering = asyncio.create_task(
            self._register(replace(run, transcript=self.host.transcript_path(run)))
        )
        try:
            return await asyncio.shield(registering)
        except asyncio.CancelledError:  # nobody wants it any more, and it may be there already
            with contextlib.suppress(TurngateError):
                run = await finish_despite_cancel(registering)
                await finish_despite_cancel(self.kill(run.id, "interrupted"))
            raise

    async def _register(self, run: SubagentRun) -> SubagentRun:
        async with self._worker.lock:
            may_run = self.slots.has_room(run)
            run = await self._worker.call(
                functools.partial(self.registry.register, run, may_run=may_run, most=self.limits.on_machine)
            )
        self.trace("registered", run)
        self._follow(run)
        return run

    async def result(self, chain: str) -> SubagentRun:
        """Waits for the end of a chain of runs; whoever waits must say `handed` when it has kept the result."""
        found = self._chains.get(chain)
        if found is None:
            ended = await self._worker.call(self.registry.last, chain)
            if ended is None:
                raise UsageError(f"there is no run {chain}")
            return ended
        found.waiters += 1
        try:
            return await asyncio.shield(found.final)
        except asyncio.CancelledError:
            found.waiters -= 1
            found.handed.set()
            raise

    def result_delivered(self, chain: str) -> None:
        """The parent's conversation has the result of this chain, on disk."""
        if found := self._chains.get(chain):
            found.handed.set()

    def release_waiters(self, parent: str, parent_agent: str = "") -> None:
        """The turn that waited for results is over: what it has not kept comes as a message."""
        for chain in self._chains.values():
            if chain.family == (parent, parent_agent):
                chain.release_waiters()

    def running(
        self, parent: str, parent_agent: str = "", *, background: bool | None = None
    ) -> list[SubagentRun]:
        """The children of one agent whose result is still to come."""
        return [
            chain.run
            for chain in self._chains.values()
            if chain.family == (parent, parent_agent)
            and background in (None, chain.run.background)
            and not chain.final.done()
        ]

    def will_take_turn(self, agent: str) -> bool:
        """Will this child take another turn, here?"""
        return any(
            chain.run.agent_id == agent and chain.run.state in ("waiting", "running", "steering")
            for chain in self._chains.values()
        )

    # Kill and steer

    async def kill(self, run: str, reason: str = "killed") -> list[SubagentRun]:
        """Ends a run and everything below it, for good."""
        killed = await self.transition(self.registry.kill, run, reason)
        self._disturb(killed)
        return killed

    async def kill_all(self, parent: str, parent_agent: str, reason: str) -> list[SubagentRun]:
        """Ends everything that a session, or a child of it, has started, and waits until it has ended."""
        killed = await self.transition(self.registry.kill_all, parent, parent_agent, reason)
        self._disturb(killed)
        await self._ended(run.chain for run in killed)
        return killed

    async def steer(self, run: str, prompt: str, *, by: str) -> SubagentRun:
        """A new prompt for a child that works; raises UsageError when that is not allowed, or too late."""
        now = await self.transition(self.registry.get, run)
        if now is None:
            raise UsageError(f"there is no run {run}")
        chain = self._chains.get(now.chain)
        since = time.monotonic() - chain.steered if chain else float("inf")
        check_steer(now, prompt, by=by, since=since)
        marked = await self.transition(mark_for_steer, self.registry, now, prompt)
        if chain:
            chain.steered = time.monotonic()
        self._disturb([marked])
        return marked

    # From one process to the next

    async def recover(self) -> list[SubagentRun]:
        """Takes over what owners that died have left, and goes on with it."""
        adopted: list[SubagentRun] = []
        for dead in await self._worker.call(self.registry.other_owners, self.id):
            adopted += await finish_despite_cancel(self._adopt(dead))
        return adopted

    async def _adopt(self, dead: str) -> list[SubagentRun]:
        async with self._worker.lock:
            adopted = await self._worker.call(self.registry.adopt, dead, self.id, self.host.project)
        for run in adopted:
            self.trace("recovered", run)
            self._follow(run)
        return adopted

    async def _follow_all(self) -> None:
        """Runs of ours that nobody looks after, because of a full disk or an interrupt, are looked after again."""
        async with self._worker.lock:
            ours = await self._worker.call(self.registry.owned, self.id)
        for run in ours:
            if run.chain not in self._chains:
                self._follow(run)

    async def recover_and_notify(self) -> list[SubagentRun]:
        """The same, and says so. Below a hook nobody is asked, so others' children are left to those who ask their gates."""
        if self.host.world.in_hook:
            return []
        adopted = await self.recover()
        if adopted:
            names = ", ".join(run.name for run in adopted[:5]) + (", …" if len(adopted) > 5 else "")
            self.host.notice(f"{len(adopted)} subagent(s) of a process that is gone go on here: {names}")
        return adopted

    def watch(self) -> None:
        """From now on other processes' kills and steers are noticed, and what they leave is taken over."""
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    @property
    def watching(self) -> bool:
        return self._watching is not None and not self._watching.done()

    async def wait_for_finished(self) -> None:
        """Waits for the chains that have a result or are killed; what is left to do for them is short."""
        await self._ended(
            [name for name, chain in self._chains.items() if chain.final.done() or chain.killed]
        )

    async def wait_until_idle(self) -> None:
        """Waits until there is nothing left to look after."""
        while self._chains:
            await self._ended(self._chains)

    async def close(self) -> None:
        """Lets go of everything as it is; what is not finished is taken over by the next who looks."""
        tasks = [*self._tasks.values(), *([self._watching] if self._watching else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await finish_despite_cancel(asyncio.wait(tasks))
        await finish_despite_cancel(self._worker.close())  # what is being written is written first
        self.owner.release()

    async def _watch(self) -> None:
        """What other processes did to our runs, what dead ones left, and what can be forgotten."""
        version, others, swept, looked = -1, False, float("-inf"), time.monotonic()
        while True:
            try:
                if not self._chains and await self._worker.call(self.registry.is_empty):
                    return
                if time.monotonic() - looked > FORGOTTEN:
                    looked = time.monotonic()
                    await self._follow_all()
                now = await self._worker.call(self.registry.version)
                if now != version:
                    version = now
                    self._disturb(await self._worker.call(self.registry.changed_by_others, self.id))
                    others = True
                if others:
                    await self.recover_and_notify()
                    others = bool(await self._worker.call(self.registry.other_owners, self.id))
                if time.monotonic() - swept > SWEEP:
                    swept = time.monotonic()
                    await self._worker.call(self.registry.delete_finished)
            except (RegistryError, OSError, RuntimeError) as error:
                self.host.notice(f"children of other processes can not be seen: {error}")
                await asyncio.sleep(TROUBLE)
            await asyncio.sleep(LOOK)

    # For chains, and parts

    def trace(self, name: str, run: SubagentRun) -> None:
        if self._on_step:
            self._on_step(name, run)

    async def transition(self, function: Callable[..., T], *arguments: object) -> T:
        """A transition, tried again while the disk or another process is in the way."""
        return await self._worker.transition(function, *arguments)

    def _follow(self, run: SubagentRun) -> None:
        chain = self._chains[run.chain] = RunLifecycle(run, self._context)
        task = self._tasks[run.chain] = asyncio.create_task(chain.follow())
        task.add_done_callback(lambda _: self._forget(chain))
        self.watch()

    def _forget(self, chain: RunLifecycle) -> None:
        if self._chains.get(chain.run.chain) is chain:
            del self._chains[chain.run.chain], self._tasks[chain.run.chain]
        self.host.on_subagent_gone(chain.run)
        self.host.on_subagent_change(chain.run)

    def _disturb(self, changed: Collection[SubagentRun]) -> None:
        for run in changed:
            if chain := self._chains.get(run.chain):
                chain.disturb(run)

    async def _ended(self, chains: Iterable[str]) -> None:
        tasks = [self._tasks[name] for name in chains if name in self._tasks]
        if tasks:
            await asyncio.wait(tasks)
