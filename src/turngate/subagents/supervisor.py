"""The supervisor of a session's subagents: starts, kills and steers them, and adopts the runs of dead processes."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from turngate.aio.threads import finish_despite_cancel, run_in_thread
from turngate.core.conversation.subagent_run import LIVING_STATES, SubagentRun, names_of
from turngate.core.text import printable
from turngate.core.verdict.loop_guard import new_guard
from turngate.errors import RegistryError, TurngateError, UsageError
from turngate.gates.recorded_trees import NoTree
from turngate.settings.agent_types import AgentType
from turngate.state.paths import main_transcript_path
from turngate.subagents.git_files import send_files
from turngate.subagents.host import SubagentHost, subagent_transcript_path
from turngate.subagents.lifecycle import LifecycleContext, RunLifecycle
from turngate.subagents.limits import ConcurrencySlots, SubagentOptions, limits_from
from turngate.subagents.other_processes import RunsElsewhere
from turngate.subagents.recorded_gates import gates_of, left_notice, why_left
from turngate.subagents.registry import Registry, RegistryWorker, registry_exists
from turngate.subagents.registry.store import BEAT_S, HELD_S, LEASE_S
from turngate.subagents.registry.table import new_id
from turngate.subagents.stored_transcript import StoredTranscript
from turngate.subagents.workers import project_label, why_here

KILL_WAIT_S = 5.0  # an interrupt does not wait longer for the plugins that are told of the end
MAX_POLL_S = 2.0  # for changes; a file is looked at more often
DEAD_OWNER_POLL_S = 0.5  # of a session that is not connected
ABANDONED_POLL_S = LEASE_S  # the same for PostgreSQL
DELETE_INTERVAL_S = 60.0
RESUME_INTERVAL_S = 2.0
REGISTRY_ERROR_PAUSE_S = 5.0
EMPTY_CLAIM_PAUSE_S = 0.1  # of a worker: others have claimed what has woken it, and would each time


class Supervisor:
    """Belongs to a main session; the sessions of its subagents share it.

    It connects to the registry when the first subagent starts, or when an earlier process left runs or results behind.
    """

    def __init__(
        self,
        host: SubagentHost,
        session_id: str,
        state: str,
        agent_types: Mapping[str, AgentType],
        options: SubagentOptions,
    ) -> None:
        self.host, self.state, self.agent_types = host, state, agent_types
        self.limits = options.limits or limits_from(host.settings)
        self.listeners: dict[str, Callable[[], None]] = {}  # by agent, here; the id of the main agent is ""
        self.left: set[str] = set()  # chains that this process may not continue, which was reported
        self.elsewhere = RunsElsewhere(session_id, self.notify_parent, host.notice)
        self._session_id, self._options, self._setting = session_id, options, host.settings.registry
        self._open_registry = partial(Registry, state, setting=self._setting)
        self._context: LifecycleContext | None = None  # while it is connected
        self._connecting = asyncio.Lock()
        self._offered: dict[frozenset[str], float] = {}  # labels that a worker had then
        self._noticed: set[str] = set()  # what the user was told once, such as waits for the registry
        self._lifecycles: dict[str, RunLifecycle] = {}  # by chain
        self._tasks: dict[str, asyncio.Task[None]] = {}  # of the lifecycles
        self._watcher: asyncio.Task[None] | None = None  # of the registry, while there are runs
        self._lease_keeper: asyncio.Task[None] | None = None  # while it is connected
        self._owner_watcher: asyncio.Task[None] | None = None  # of other processes, while there are none
        self._slots = options.slots  # of a worker; 0: this process is none, or takes no more runs
        self._claiming: asyncio.Task[None] | None = None  # because a slot has become free

    # The registry

    async def open(self) -> bool:
        """Take over runs of processes that died. Return True if results wait for the main agent."""
        try:
            if not self.host.world.in_hook:
                self._owner_watcher = asyncio.create_task(self._watch_for_dead_owners())
            if not registry_exists(self.state, self._setting):
                return False
            context = await self.connect()
            waiting = await run_in_thread(context.registry.inbox, self._session_id)
            adopted = await self.recover_and_notify()
            # Runs of this session that no process may continue count as well: a reset ends them.
            unfinished = await context.call(context.registry.read, "unfinished", self._session_id)
            if adopted or waiting or unfinished:
                await self._look_elsewhere(context)
            else:
                await self._disconnect()  # there are no subagents to look after
        except (TurngateError, OSError) as error:  # a session works without a registry
            self.host.notice(str(error))
            return False
        return bool(waiting)

    async def connect(self) -> LifecycleContext:
        async with self._connecting:  # two tasks may ask at once
            if self._context is None:
                call_soon = asyncio.get_running_loop().call_soon_threadsafe
                registry = await run_in_thread(
                    self._open_registry, lambda text: call_soon(self._notice_once, text)
                )
                try:
                    join = partial(registry.join, slots=self._options.slots, labels=self._options.labels)
                    owner = await run_in_thread(join)
                except BaseException:  # such as: its lock file cannot be made
                    registry.close()
                    raise
                if registry.store.notice:
                    self.host.notice(registry.store.notice)
                self._context = LifecycleContext(
                    host=self.host,
                    registry=registry,
                    worker=RegistryWorker(registry),
                    limits=self.limits,
                    slots=ConcurrencySlots(self.limits.at_once),
                    notify_parent=self.notify_parent,
                    on_lost=self.elsewhere.add,
                    owner=owner,
                    options=self._options,
                )
                if registry.store.has_lease and (self._lease_keeper is None or self._lease_keeper.done()):
                    self._lease_keeper = asyncio.create_task(self._keep_lease())
                self.watch()
        return self._context

    def _notice_once(self, text: str) -> None:
        if text not in self._noticed:
            self._noticed.add(text)
            self.host.notice(text)

    async def close(self) -> None:
        """Stop all work as it is; another process can adopt the runs that are not finished."""
        for task in (self._owner_watcher, self._lease_keeper, self._claiming):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        await self._disconnect()

    async def _disconnect(self, *, leave: bool = True) -> None:
        """End all work as it is. Without `leave`, the owner counts as dead."""
        context, self._context = self._context, None
        if context is None:
            return
        tasks = [*self._tasks.values(), *([self._watcher] if self._watcher else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await finish_despite_cancel(asyncio.wait(tasks))
        if leave:
            with contextlib.suppress(RegistryError):  # then the owner counts as dead
                await finish_despite_cancel(context.worker.call(context.registry.leave, context.owner))
        await finish_despite_cancel(context.worker.close())

    def is_own(self, run: SubagentRun) -> bool:
        """Return False for a run of a session with the same id whose dialect keeps another conversation for it."""
        dialect = str(run.launch.get("dialect") or self.host.settings.dialect.name)
        own = self.host.parent_transcript_path(run)
        return main_transcript_path(self.state, run.parent, dialect) == own

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
        run_id, agent_id, now = new_id(), resume or f"a{new_id()[:16]}", time.time()
        workers = await self._workers_for(run_id, agent_type, depth, is_resumed=bool(resume))
        context = await self.connect()
        run = SubagentRun(
            id=run_id,
            chain=run_id,
            agent_id=agent_id,
            transcript=subagent_transcript_path(self.state, parent, agent_id),
            agent_type=agent_type,
            parent=parent,
            parent_agent=parent_agent,
            label=label,
            task=prompt,
            prompt=prompt,
            background=background,
            depth=depth,
            owner="" if workers else context.owner,
            created=now,
            begun=now,
            max_steers=new_guard(self.host.settings, self.host.world.own_environ, child=True).limit,
            launch={
                **(launch or {}),
                "project": self.host.world.location,
                "announce": self.host.settings.announce_children,
                "gates": gates_of(self.host, agent_type).as_json(),
                **workers,
            },
        )
        registering = asyncio.create_task(self._register(context, run))
        try:
            return await asyncio.shield(registering)
        except asyncio.CancelledError:  # the run may exist already
            with contextlib.suppress(TurngateError):
                await finish_despite_cancel(registering)
                await finish_despite_cancel(self.kill(run.id, "interrupted"))
            raise

    async def _workers_for(self, chain: str, name: str, depth: int, *, is_resumed: bool) -> dict[str, Any]:
        """Return the fields of `launch` by which workers may claim the subagent; empty: it runs here."""
        agent_type, world = self.agent_types.get(name) or AgentType(name), self.host.world
        place = agent_type.runs or self._options.runs
        if place == "here" or depth > 1:  # one below another runs where that one does
            return {}
        fields: dict[str, Any] = {}
        why = why_here(self.host, agent_type, self._setting, place, is_resumed=is_resumed)
        label = project_label(world)
        if not why and place == "git":
            try:
                label, fields["git"] = await run_in_thread(send_files, world.project, self.state, chain)
            except NoTree as error:
                why = str(error)
        if why:
            self._notice_once(f"subagents of the type {name} run here and not on workers: {why}")
            return {}
        labels = [label, *agent_type.labels]
        return {**fields, "workers": {"labels": labels, "at_once": self.limits.at_once}}

    async def _register(self, context: LifecycleContext, run: SubagentRun) -> SubagentRun:
        async with context.worker.lock:
            may_run = bool(run.owner) and context.slots.has_room(run.parent, run.depth)
            run = await context.worker.call(
                partial(context.registry.register, run, may_run=may_run, max_running=self.limits.on_machine)
            )
        self._options.on_step("registered", run)
        if run.is_for_workers:
            self.elsewhere.add(run)
            self.watch()
            await self._notice_missing_worker(context, run)
        else:
            self._start_lifecycle(run, context)
        return run

    async def _notice_missing_worker(self, context: LifecycleContext, run: SubagentRun) -> None:
        wanted = frozenset(run.launch["workers"]["labels"])
        if self._offered.get(wanted, 0.0) > time.monotonic() - LEASE_S:
            return
        offered = [{*json.loads(each["labels"])} for each in await context.call(context.registry.workers)]
        if any(wanted <= labels for labels in offered):
            self._offered[wanted] = time.monotonic()
        else:
            needs = ", ".join(map(printable, run.launch["workers"]["labels"]))
            self._notice_once(
                f"no worker is running that may take subagents with: {needs}; they wait for one"
            )

    async def result(self, chain: str) -> SubagentRun:
        """Wait for the end of a chain. The caller reports with `result_delivered` that it stored the result."""
        lifecycle = self._lifecycles.get(chain)
        if lifecycle is None:
            return await self._result_elsewhere(chain)
        lifecycle.waiters += 1
        try:
            return await asyncio.shield(lifecycle.result)
        except asyncio.CancelledError:
            lifecycle.waiters -= 1
            lifecycle.delivered.set()
            raise

    async def _result_elsewhere(self, chain: str) -> SubagentRun:
        """Wait for a run on a worker, however long the registry cannot be used."""
        while True:
            try:
                context = await self.connect()
                last = await context.call(context.registry.find, "last", chain)
                # Also when it has ended, so that its result counts as delivered.
                await self._look_elsewhere(context)
            except RegistryError:
                await asyncio.sleep(REGISTRY_ERROR_PAUSE_S)
                continue
            if last is None:
                raise UsageError(f"there is no run {chain}")
            if not (last.is_for_workers and last.state in (*LIVING_STATES, "final")):
                return last
            await self.elsewhere.wait_for_end(chain)

    def result_delivered(self, chain: str) -> None:
        """Note that the parent's conversation holds the result of this chain, on disk."""
        if lifecycle := self._lifecycles.get(chain):
            lifecycle.delivered.set()

    async def end_turn(self, parent: str, parent_agent: str, *, interrupted: bool) -> None:
        """Results that the turn did not take become messages. Wait until finished runs are announced."""
        for lifecycle in self._lifecycles.values():
            if lifecycle.parent_key == (parent, parent_agent):
                lifecycle.release_waiters()
        if not parent_agent:
            # Little is left to do for these.
            finished = [c for c, each in self._lifecycles.items() if each.result.done() or each.is_killed]
            await self._wait_for(finished, KILL_WAIT_S if interrupted else None)

    def running_in_background(self, parent: str, parent_agent: str = "") -> list[SubagentRun]:
        """Return the subagents of one agent that have no result yet and for which no tool call waits.

        The call of one that was adopted, or whose lifecycle was restarted, is gone, whatever it asked for. Those that
        another process runs are among them.
        """
        here = [
            each.current
            for each in self._lifecycles.values()
            if each.parent_key == (parent, parent_agent) and not (each.waiters or each.result.done())
        ]
        elsewhere = self.elsewhere.of(parent, parent_agent)
        return list({run.chain: run for run in (*elsewhere, *here)}.values())

    # Kill

    async def kill(self, run: str, reason: str = "killed") -> list[SubagentRun]:
        """End a run and everything it started, for good."""
        context = await self.connect()
        killed = await context.call(context.registry.kill, run, reason)
        self._notify_lifecycles(killed)
        return killed

    async def kill_all(self, parent: str, parent_agent: str, reason: str) -> None:
        """Kill everything that an agent has started, and wait until it has ended, or KILL_WAIT_S for slow plugins."""
        if (context := self._context) is not None:
            killed = await context.call(context.registry.kill, (parent, parent_agent), reason)
            self._notify_lifecycles(killed)
            await self._wait_for((run.chain for run in killed), KILL_WAIT_S)

    async def discard_results(self) -> None:
        """Drop the results for the main agent, whose conversation was reset."""
        if (context := self._context) is not None:
            await context.call(context.registry.discard_results, self._session_id)

    # Runs of dead processes

    async def recover(self) -> list[SubagentRun]:
        """Adopt the runs of owners that died, and continue them; a worker takes those that are for workers."""
        context = await self.connect()
        return await finish_despite_cancel(
            self._claim(context) if self._options.slots else self._adopt(context)
        )

    async def _claim(self, context: LifecycleContext) -> list[SubagentRun]:
        claimed: list[SubagentRun] = []
        context.registry.more_wait = True  # perhaps, since the last claim
        while context.registry.more_wait and len(self._lifecycles) < self._slots:
            async with context.worker.lock:
                take = partial(context.registry.claim, context.owner, self._options.labels, left=[*self.left])
                run = await context.worker.call(partial(take, max_running=self._slots))
                if run is None:
                    break
                if await self._start_or_refuse(run, context):
                    claimed.append(run)
        return claimed

    async def _start_or_refuse(self, run: SubagentRun, context: LifecycleContext) -> bool:
        """Start a run of this process, or give it up if this is a worker that does not ask its gates."""
        why = self.why_left(run) if self._options.slots else ""
        if not why:
            self._start_lifecycle(run, context)
            return True
        refused = f"a worker on {socket.gethostname()} leaves it to others: {why}"
        refuse = partial(context.registry.transition, "refuse", run.id, context.owner, error=refused)
        await context.worker.call(refuse)
        self._report_left(run)
        return False

    async def drain(self, seconds: float) -> bool:
        """Take no more runs. Return whether those that run have ended within this time."""
        self._slots = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait_until_idle()
        return not self._lifecycles

    async def _adopt(self, context: LifecycleContext) -> list[SubagentRun]:
        left: list[SubagentRun] = []

        def may_adopt(run: SubagentRun) -> bool:
            if self.why_left(run):
                left.append(run)
            return run not in left

        async with context.worker.lock:
            adopted = await context.worker.call(
                context.registry.take_over, context.owner, self.host.world.location, may_adopt
            )
        for run in left:
            self._report_left(run)
        for run in adopted:
            self._options.on_step("recovered", run)
            self._start_lifecycle(run, context)
        return adopted

    def why_left(self, run: SubagentRun) -> str:
        """Return why this process may not continue a run of another one, or "" if it may."""
        return "" if self._options.any_gates else why_left(run, self.host)

    def _report_left(self, run: SubagentRun) -> None:
        """Tell the user once that a run is left alone; the journal of its session has it as well."""
        if run.chain not in self.left:
            self.left.add(run.chain)
            self.host.warn(run, left_notice(run, self.why_left(run)))

    async def recover_and_notify(self) -> list[SubagentRun]:
        """Like `recover`, and notify the user.

        Does nothing inside a hook, where adopted subagents would run without their gates.
        """
        if self.host.world.in_hook:
            return []
        adopted = await self.recover()
        if adopted and not self._options.slots:
            count = "1 subagent" if len(adopted) == 1 else f"{len(adopted)} subagents"
            modes = [(self.host.permission_mode(run), run.launch.get("permission_mode")) for run in adopted]
            stricter = sorted({mode for mode, earlier in modes if earlier not in (None, mode)})
            mode = f" (permission mode: {', '.join(stricter)})" if stricter else ""
            self.host.notice(f"continuing {count} of a process that died: {names_of(adopted)}{mode}")
        return adopted

    # Watching other processes

    def watch(self) -> None:
        """Start to poll for kills, steers and deaths of other processes."""
        if self._context is not None and not self._is_watching:
            self._watcher = asyncio.create_task(self._watch(self._context))

    @property
    def _is_watching(self) -> bool:
        return self._watcher is not None and not self._watcher.done()

    async def _watch(self, context: LifecycleContext) -> None:
        registry, call = context.registry, context.worker.call
        wait = partial(context.worker.waiting.call, registry.wait_for_change)
        version, pause, reported = -1, 0.0, ""
        deleted_at, resumed_at = float("-inf"), time.monotonic()
        while True:
            try:
                previous, version = version, await wait(version, pause)
                pause = MAX_POLL_S
                if self.elsewhere or (version != previous and not self._options.slots):
                    await self._look_elsewhere(context)
                if may_resume := time.monotonic() - resumed_at > RESUME_INTERVAL_S:
                    resumed_at = time.monotonic()
                is_idle = may_resume and not (self.elsewhere or self._lifecycles or self._options.slots)
                if is_idle and await call(registry.find, "leftovers") is None:
                    return
                if may_resume or (self._lifecycles and version != previous):
                    await self._look_at_own(context, may_resume=may_resume)
                is_adopting = may_resume or self._options.slots or not registry.store.has_lease
                if is_adopting and not await self.recover_and_notify() and self._options.slots:
                    await asyncio.sleep(EMPTY_CLAIM_PAUSE_S)
                if time.monotonic() - deleted_at > DELETE_INTERVAL_S and not self._options.slots:
                    deleted_at = time.monotonic()
                    await call(registry.delete_finished)
            except (RegistryError, OSError, RuntimeError) as error:
                if str(error) != reported:
                    reported = str(error)
                    self.host.notice(f"subagents of other processes cannot be watched: {error}")
                await asyncio.sleep(REGISTRY_ERROR_PAUSE_S)

    async def _look_at_own(self, context: LifecycleContext, *, may_resume: bool) -> None:
        """Notify lifecycles of runs that others have killed, steered or taken over.

        `may_resume`: restart those that ended early, such as by a full disk or an interrupt.
        """
        registry, ours = context.registry, set(self._lifecycles)
        async with context.worker.lock:
            owned = await context.worker.call(registry.read, "owned", context.owner)
            for run in owned if may_resume else ():
                if run.chain not in self._lifecycles:
                    await self._start_or_refuse(run, context)
        self._notify_lifecycles([run for run in owned if run.state in ("killed", "steering")])
        for chain in ours - {run.chain for run in owned}:
            last = await context.worker.call(registry.find, "last", chain)
            if last is not None and last.owner != context.owner:
                self._notify_lifecycles([last])

    async def _keep_lease(self) -> None:
        """Show that this process lives. If that fails, cancel its work before another process takes it over."""
        kept_at = time.monotonic()
        while context := self._context:
            started, is_kept = time.monotonic(), True  # for now, if the registry cannot be used
            try:
                with contextlib.suppress(RegistryError, RuntimeError):
                    async with asyncio.timeout(kept_at + HELD_S - started):
                        is_kept = await run_in_thread(context.registry.beat, context.owner)
                        kept_at = started
            except TimeoutError:
                is_kept = False
            if not is_kept:
                await self._start_again()
                kept_at = time.monotonic()
            await asyncio.sleep(max(0.0, min(BEAT_S, kept_at + HELD_S - time.monotonic())))

    async def _start_again(self) -> None:
        """Continue as another owner, with the runs that no other process has taken over."""
        self.host.notice("the registry was not reached in time; subagents are cancelled until it is")
        lifecycles = [*self._lifecycles.values()]
        self.elsewhere.update([each.current for each in lifecycles])  # so that their parents wait on
        for each in lifecycles:
            each.give_way()
        await self._disconnect(leave=False)
        while self._context is None:
            with contextlib.suppress(TurngateError, OSError):
                context = await self.connect()
                await self.recover_and_notify()
                await self._look_elsewhere(context)
                return
            await asyncio.sleep(REGISTRY_ERROR_PAUSE_S)

    async def _look_elsewhere(self, context: LifecycleContext) -> None:
        """Adopt the runs of a process that ended before its subagents count as ended, so that the turn waits on."""
        read = partial(
            self.elsewhere.read, context.registry, context.owner, self.is_own, self._fetch_transcript
        )
        runs = await context.call(read)
        if not all(run.is_for_workers for run in self.elsewhere.gone(runs)):
            await self.recover_and_notify()
            runs = await context.call(read)
        self.elsewhere.update(runs)

    def _fetch_transcript(self, registry: Registry, run: SubagentRun) -> None:
        with contextlib.suppress(OSError):  # the registry has the result
            StoredTranscript(registry, self.host.transcript_path(run)).fetch(run, exact=False)

    async def _watch_for_dead_owners(self) -> None:
        """Connect, which recovers the runs, when another process with open runs has died."""
        registry: Registry | None = None
        try:
            while True:
                has_lease = registry is not None and registry.store.has_lease
                await asyncio.sleep(ABANDONED_POLL_S if has_lease else DEAD_OWNER_POLL_S)
                if self._context is not None and self._is_watching:
                    continue
                with contextlib.suppress(TurngateError, OSError):
                    if registry is None and registry_exists(self.state, self._setting):
                        registry = await run_in_thread(self._open_registry)
                    if registry is None:
                        continue
                    look = partial(registry.dead_owners, "-", self.host.world.location, [*self.left])
                    if await run_in_thread(look):
                        await self.connect()
                        self.watch()
        finally:
            if registry:
                await finish_despite_cancel(run_in_thread(registry.close))

    # Lifecycles

    async def wait_until_idle(self) -> None:
        """Wait until no chain is left."""
        while self._lifecycles:
            await self._wait_for(self._lifecycles)

    async def _wait_for(self, chains: Iterable[str], seconds: float | None = None) -> None:
        tasks = [self._tasks[chain] for chain in chains if chain in self._tasks]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _start_lifecycle(self, run: SubagentRun, context: LifecycleContext) -> None:
        lifecycle = self._lifecycles[run.chain] = RunLifecycle(run, context)
        task = self._tasks[run.chain] = asyncio.create_task(lifecycle.run())
        task.add_done_callback(lambda _: self._forget(lifecycle))
        self.watch()

    def _forget(self, lifecycle: RunLifecycle) -> None:
        run = lifecycle.current
        if self._lifecycles.get(run.chain) is lifecycle:
            del self._lifecycles[run.chain], self._tasks[run.chain]
        self.listeners.pop(run.agent_id, None)
        self.notify_parent(run)
        is_claiming = self._claiming is not None and not self._claiming.done()
        if self._slots and not is_claiming and self._context and self._context.registry.more_wait:
            self._claiming = asyncio.create_task(self._claim_again(self._context))

    async def _claim_again(self, context: LifecycleContext) -> None:
        with contextlib.suppress(RegistryError, RuntimeError):  # `_watch` reports it, and tries again
            await self._claim(context)

    def notify_parent(self, run: SubagentRun) -> None:
        """Notify the agent that started the run, or the main agent if that one is gone."""
        if listener := self.listeners.get(run.parent_agent) or self.listeners.get(""):
            listener()

    def _notify_lifecycles(self, changed: Collection[SubagentRun]) -> None:
        for run in changed:
            if lifecycle := self._lifecycles.get(run.chain):
                lifecycle.on_external_change(run)
