"""The supervisor: takes every run of a child from its registration to its end, whatever happens in between.

A run's row in the register says where it stands. `_advance` does the one thing that is next for a row in its state and
gives the row as it is then, so a run that another process left in the middle goes on exactly where it was.
"""

import asyncio
import functools
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from turngate.agent.children.judging import Judged, announcement, judge
from turngate.agent.children.limits import Limits
from turngate.agent.inbox import Entry
from turngate.core import events
from turngate.core.guard import new_guard
from turngate.core.messages import Message, Reply, Usage
from turngate.core.moments import context_of
from turngate.core.runs import LIVING, Run, SubagentStoppingContext, ended_event
from turngate.core.settings import Settings
from turngate.core.turn import SessionEvent, SubagentFinished, SubagentRedirected, SubagentStarted, TurnResult
from turngate.core.verdict import Verdict
from turngate.errors import TurngateError, UsageError
from turngate.plugins.observers import Plugins, SubagentStopPayload
from turngate.ports import World
from turngate.registry import Owner, Registry, RegistryError, new_id
from turngate.tasks import in_thread, is_cancelled, to_the_end

T = TypeVar("T")
Family = tuple[str, str]  # the session and the child of it that a run belongs to
LOOK = 0.2  # seconds between two looks at what other processes did
SWEEP = 60.0  # seconds between two sweeps
WRITE_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)  # seconds between tries of a transition that could not be written
STEER_EVERY = 2.0  # seconds between two steers of one child
STEER_LONGEST = 4000  # characters
STEERABLE = ("waiting", "running", "ended")


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a parent asks for."""

    kind: str
    prompt: str
    label: str = ""
    background: bool = False
    parent: str = ""
    parent_agent: str = ""
    depth: int = 1
    resume: str = ""  # the id of a child whose conversation goes on
    launch: Mapping[str, Any] = field(default_factory=dict)


class Child(Protocol):
    """A child's session, as the supervisor sees it."""

    messages: list[Message]
    transcript_path: str
    last_result: TurnResult | None

    async def open(self) -> None: ...
    async def take_turn(self, entry: Entry) -> TurnResult: ...
    async def close(self) -> None: ...
    def clear_queue(self) -> None: ...
    def hear_at_once(self, entry: Entry) -> None: ...
    def knows(self, key: str) -> bool: ...
    def add_context(self, text: str) -> None: ...
    def settle(self) -> None: ...


class Host(Protocol):
    """The session that children belong to, as the supervisor sees it."""

    project: str
    settings: Settings
    world: World
    plugins: Plugins

    def new_child(self, run: Run) -> Child: ...
    def transcript_of(self, run: Run) -> str: ...
    def parent_transcript_of(self, run: Run) -> str: ...
    def changing_tools(self) -> Collection[str]: ...
    async def ask(self, event: events.Event) -> Verdict: ...
    def emit(self, event: SessionEvent) -> None: ...
    def notice(self, text: str) -> None: ...
    def child_news(self, run: Run) -> None: ...


@dataclass
class _Live:
    """One chain of runs that this supervisor looks after."""

    run: Run
    final: "asyncio.Future[Run]"
    task: "asyncio.Task[None] | None" = None
    step: "asyncio.Task[Run] | None" = None
    child: Child | None = None
    called: "asyncio.Future[None] | None" = None  # it waits in line, or there is room for it now
    waiters: int = 0
    handed: asyncio.Event = field(default_factory=asyncio.Event)  # a waiter's conversation has the result
    released: bool = False  # nobody asks the hooks about it any more
    observed: bool = False  # the observers of `subagent_stop` were told
    began: float = field(default_factory=time.monotonic)
    steered: float = float("-inf")


class Supervisor:
    def __init__(
        self, host: Host, registry: Registry, limits: Limits | None = None, *,
        announcer: Callable[[Run], Awaitable[None]] | None = None,
        on_step: Callable[[str, Run], None] | None = None,
        everywhere: bool = False,
    ) -> None:  # fmt: skip
        self.host = host
        self.registry = registry
        self.limits = limits or Limits()
        self.owner = Owner(registry.owners)
        self.owner.take()
        self._announcer = announcer
        self._on_step = on_step
        self._project = None if everywhere else host.project
        self._live: dict[str, _Live] = {}
        self._busy: Counter[Family] = Counter()  # children that run, by whose they are
        self._in_line: dict[Family, deque[_Live]] = defaultdict(deque)
        self._writing = asyncio.Lock()  # one transition at a time: the register takes no more
        self._watching: asyncio.Task[None] | None = None
        if registry.fault:
            host.notice(registry.fault)

    # From outside

    async def spawn(self, order: Order) -> Run:
        """Registers a child and starts it as soon as there is room. Raises RegistryError: then nothing was started."""
        if order.depth > self.limits.depth:
            raise UsageError(f"a child at depth {order.depth} is too deep; the limit is {self.limits.depth}")
        identity = new_id()
        guard = new_guard(self.host.settings, self.host.world.environ, child=True)
        run = Run(
            id=identity, chain=identity, agent_id=order.resume or f"a{new_id()[:16]}", agent_type=order.kind,
            parent=order.parent, parent_agent=order.parent_agent, label=order.label, task=order.prompt,
            prompt=order.prompt, background=order.background, depth=order.depth, owner=self.owner.id,
            created=time.time(), max_steers=guard.limit, launch={**order.launch, "project": self.host.project},
        )  # fmt: skip
        run = replace(run, transcript=self.host.transcript_of(run))
        async with self._writing:
            may_run = self._busy[_family(run)] < self.limits.at_once
            register = functools.partial(
                self.registry.register, run, may_run=may_run, most=self.limits.on_machine
            )
            run = await in_thread(register)
        self._step("registered", run)
        self._follow(run)
        return run

    async def result(self, chain: str) -> Run:
        """Waits for the end of a chain of runs; whoever waits must say `handed` when it has kept the result."""
        live = self._live.get(chain)
        if live is None:
            ended = await in_thread(self.registry.last, chain)
            if ended is None:
                raise UsageError(f"there is no run {chain}")
            return ended
        live.waiters += 1
        try:
            return await asyncio.shield(live.final)
        except asyncio.CancelledError:
            live.waiters -= 1
            live.handed.set()
            raise

    def handed(self, chain: str) -> None:
        """The parent's conversation has the result of this chain, on disk."""
        if live := self._live.get(chain):
            live.handed.set()

    def let_go(self, parent: str, parent_agent: str = "") -> None:
        """The turn that waited for these results is over: what it has not kept comes as a message."""
        for live in self._live.values():
            if _family(live.run) == (parent, parent_agent) and live.final.done() and not live.handed.is_set():
                live.waiters = 0
                live.handed.set()

    async def kill(self, run: str, reason: str = "killed") -> list[Run]:
        """Ends a run and everything below it, for good."""
        killed = await self._written(self.registry.kill, run, reason)
        self._notice_changes(killed)
        return killed

    async def kill_all(self, parent: str, parent_agent: str, reason: str) -> list[Run]:
        """Ends everything that a session, or a child of it, has started, and waits until it has ended."""
        killed = await self._written(self.registry.kill_all, parent, parent_agent, reason)
        self._notice_changes(killed)
        tasks = [live.task for run in killed if (live := self._live.get(run.chain)) and live.task]
        if tasks:
            await asyncio.wait(tasks)
        return killed

    async def steer(self, run: str, prompt: str, *, by: str) -> Run:
        """A new prompt for a child that works; raises UsageError when that is not allowed, or too late."""
        now = await in_thread(self.registry.get, run)
        if now is None:
            raise UsageError(f"there is no run {run}")
        live = self._live.get(now.chain)
        since = time.monotonic() - live.steered if live else float("inf")
        check_steer(now, prompt, by=by, since=since)
        marked = await in_thread(steer_mark, self.registry, now, prompt)
        if live:
            live.steered = time.monotonic()
        self._notice_changes([marked])
        return marked

    def running(self, parent: str, parent_agent: str = "", *, background: bool | None = None) -> list[Run]:
        """The children of one agent whose result is still to come."""
        return [
            live.run
            for live in self._live.values()
            if _family(live.run) == (parent, parent_agent)
            and background in (None, live.run.background)
            and not live.final.done()
        ]

    async def recover(self) -> list[Run]:
        """Takes over what owners that died have left, and goes on with it."""
        adopted: list[Run] = []
        for dead in await in_thread(self.registry.orphans, self.owner.id):
            adopted += await in_thread(self.registry.adopt, dead, self.owner.id, self._project)
        for run in adopted:
            self._step("recovered", run)
            self._follow(run)
        return adopted

    def watch(self) -> None:
        """From now on other processes' kills and steers are noticed, and what they leave is taken over."""
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())

    async def settled(self) -> None:
        """Waits for the chains whose result is there already; what is left to do for them is short."""
        tasks = [live.task for live in self._live.values() if live.final.done() and live.task]
        if tasks:
            await asyncio.wait(tasks)

    async def idle(self) -> None:
        """Waits until there is nothing left to look after."""
        while self._live:
            await asyncio.wait([live.task for live in self._live.values() if live.task])

    async def close(self) -> None:
        """Lets go of everything as it is; what is not finished is taken over by the next who looks."""
        tasks = [live.task for live in self._live.values() if live.task]
        tasks += [self._watching] if self._watching else []
        for task in tasks:
            task.cancel()
        if tasks:
            await to_the_end(asyncio.wait(tasks))
        self.owner.release()
        await to_the_end(in_thread(self.registry.close))

    # A chain of runs

    def _follow(self, run: Run) -> None:
        live = _Live(run, asyncio.get_running_loop().create_future())
        self._busy[_family(run)] += run.state == "running"
        live.final.add_done_callback(
            lambda final: final.cancelled() or final.exception()
        )  # nobody has to look
        self._live[run.chain] = live
        live.task = asyncio.create_task(self._look_after(live))
        self.watch()

    async def _look_after(self, live: _Live) -> None:
        try:
            while live.run.state not in ("done", "given_up"):
                live.step = asyncio.create_task(self._advance(live))
                try:
                    run = await live.step
                except asyncio.CancelledError:
                    if is_cancelled():
                        raise
                    run = await self._now(live.run)  # whoever ended this step has written down why
                self._is_now(live, run)
        except Exception as error:  # noqa: BLE001 - a parent never waits for a child that nobody looks after
            self.host.notice(f"the child {live.run.name} can not be looked after any more: {error}")
            if not live.final.done():
                live.final.set_exception(UsageError(f"the child {live.run.name} is lost: {error}"))
        finally:
            if live.step and not live.step.done():
                live.step.cancel()
                await to_the_end(asyncio.wait({live.step}))
            if live.child:
                await to_the_end(live.child.close())
            self._live.pop(live.run.chain, None)
            if not live.final.done():
                live.final.set_result(live.run)
            self._is_now(live, replace(live.run, state="done"))
            self.host.child_news(live.run)

    async def _advance(self, live: _Live) -> Run:
        """What is next for a run in its state; gives the run as it is afterwards."""
        run = live.run
        if run.state in LIVING and self._lost_too_often(run):
            return await self._bury(live)
        match run.state:
            case "waiting":
                return await self._begin(live)
            case "running":
                return await self._work(live)
            case "ended":
                return await self._judge(live)
            case "steering":
                return await self._restart(live)
            case "final":
                return await self._hand_over(live)
            case "announced" | "killed":
                return await self._tell_ended(live)
            case _:
                return await self._now(run)

    async def _begin(self, live: _Live) -> Run:
        """Waits for room: among the parent's children, and on the machine."""
        family = _family(live.run)
        while True:
            live.called = asyncio.get_running_loop().create_future()
            self._in_line[family].append(live)
            self._call_next(family)
            await live.called
            start = functools.partial(
                self.registry.start, live.run, self.owner.id, most=self.limits.on_machine
            )
            now = await self._written(start) or await self._now(live.run)
            if now.state != "waiting":
                self._step("started", now)
                return now
            await asyncio.sleep(LOOK)  # the machine is full
            self._is_now(live, now)

    def _call_next(self, family: Family) -> None:
        """The next in line may start, if there is room among its siblings; until it has, the room is kept for it."""
        line = self._in_line.get(family)
        while line and self._busy[family] < self.limits.at_once:
            live = line.popleft()
            if live.called and not live.called.done():
                self._busy[family] += 1
                live.called.set_result(None)
        if not line:
            self._in_line.pop(family, None)

    def _is_now(self, live: _Live, run: Run) -> None:
        """A chain has come to another state; who waits for its room is called."""
        family = _family(run)
        had_room = live.run.state == "running" or (live.called is not None and _was_called(live.called))
        self._busy[family] += (run.state == "running") - had_room
        live.run, live.called = run, None
        self._call_next(family)
        if not self._busy[family]:
            del self._busy[family]

    async def _work(self, live: _Live) -> Run:
        """The child works on the prompt of this run."""
        outcome, reason, error = "ok", "complete", ""
        child, answer = live.child, ""
        try:
            async with asyncio.timeout(self.limits.seconds) as timer:
                child = live.child = live.child or self.host.new_child(live.run)
                outcome, error = await self._turn(child, live.run)
        except TimeoutError:
            if not timer.expired():
                raise
            outcome, reason, error = "timeout", "timeout", f"it took longer than {self.limits.seconds:g} s"
        except Exception as failure:  # noqa: BLE001 - whatever goes wrong in a child is its outcome
            outcome, reason, error = "error", "error", str(failure) or type(failure).__name__
        reason = "error" if outcome == "error" else reason
        self._step("worked", live.run)
        spent = child.last_result if child else None
        if child:
            answer = _answer(child)
            await in_thread(child.settle)  # whoever is asked about it reads what it wrote
        end = functools.partial(
            self.registry.end, live.run.id, self.owner.id, outcome, reason=reason, error=error, answer=answer,  # type: ignore[arg-type]
            usage=spent.usage if spent else Usage(), tool_calls=spent.tool_calls if spent else 0, tools=spent.tools if spent else (),
        )  # fmt: skip
        ended = await self._written(end)
        if ended:
            self._step("ended", ended)
        return ended or await self._now(live.run)

    async def _turn(self, child: Child, run: Run) -> tuple[str, str]:
        """One turn of the child: how it ended, and what was wrong."""
        await child.open()
        if not child.messages:
            await self._tell_start(child, run)
        last = child.messages[-1] if child.messages else None
        if child.knows(run.id) and isinstance(last, Reply) and not last.tool_uses:
            return "ok", ""  # it had finished when its owner died
        result = await child.take_turn(_entry(run.prompt, run.id, by_hook=run.by_hook))
        return ("error", result.stop_reason or "it failed") if result.outcome == "error" else ("ok", "")

    async def _tell_start(self, child: Child, run: Run) -> None:
        self.host.emit(SubagentStarted(run.agent_id, run.agent_type, run.label))
        verdict = await self.host.ask(
            events.SubagentStart(
                session_id=run.parent, transcript_path=self.host.parent_transcript_of(run), cwd=self.host.project,
                agent_id=run.agent_id, agent_type=run.agent_type,
            )
        )  # fmt: skip
        if context := context_of(verdict.runs, plain=False):
            child.add_context(context)

    async def _judge(self, live: _Live) -> Run:
        """The child says that it is done. May it stop?"""
        judged = Judged(max_steers=live.run.max_steers, reason=live.run.reason)
        if not live.released:
            self._step("judging", live.run)
            judged = await judge(self.host, live.run)
            self._step("judged", live.run)
        if judged.prompt is not None:
            mark = functools.partial(
                self.registry.mark, live.run.id, judged.prompt, why=judged.why, counts=True,
                max_steers=judged.max_steers, guard=judged.guard,
            )  # fmt: skip
            marked = await self._written(mark)
            if marked:
                self._step("marked", marked)
                self.host.emit(
                    SubagentRedirected(
                        marked.agent_id, marked.name, judged.why, marked.steer_count, marked.max_steers
                    )
                )
            return marked or await self._now(live.run)
        finish = functools.partial(
            self.registry.finish, live.run.id, result=live.run.result, reason=judged.reason,
            announcement=announcement(live.run), max_steers=judged.max_steers,
        )  # fmt: skip
        final = await self._written(finish)
        if final:
            self._step("final", final)
        return final or await self._now(live.run)

    async def _restart(self, live: _Live) -> Run:
        """Steer-restart, for hooks and people alike: abort, clear, settle, send, replace."""
        run = live.run
        try:
            self._step("aborted", run)  # the step before this one was ended, if it had not ended by itself
            async with asyncio.timeout(self.limits.settle):
                child = live.child = live.child or self.host.new_child(run)
                await child.open()
            child.clear_queue()
            self._step("cleared", run)
            await in_thread(child.settle)
            self._step("settled", run)
            child.hear_at_once(_entry(run.next_prompt, run.next_id, by_hook=run.next_by_hook))
            await in_thread(child.settle)
            self._step("sent", run)
            replaced = await self._written(self.registry.replace, run)
        except (TurngateError, OSError, TimeoutError) as error:
            self.host.notice(f"the child {run.name} could not be sent on: {error}; it ends as it is")
            live.released = True
            return await self._written(
                functools.partial(self.registry.unmark, run.id, counted=run.next_by_hook)
            ) or (await self._now(run))
        if replaced:
            self._step("replaced", replaced)
        return replaced or await self._now(run)

    # The end of a chain

    async def _hand_over(self, live: _Live) -> Run:
        """The observers are told, then the parent gets the result: as its tool's result, or as a message."""
        await self._tell_stop(live)
        self._step("observed", live.run)
        taken = False
        if live.waiters:
            if not live.final.done():
                live.final.set_result(live.run)
            await live.handed.wait()
            taken = live.waiters > 0
        elif error := await self._delivered(live):
            return await self._give_up(live, error)
        parent = live.run.parent_agent
        to_root = bool(parent) and all(other.run.agent_id != parent for other in self._live.values())
        announced = await self._written(
            functools.partial(self.registry.announce, live.run.id, taken=taken, to_root=to_root)
        )
        if announced:
            self._step("announced", announced)
        if not live.final.done():
            live.final.set_result(announced or live.run)
        self.host.child_news(live.run)
        return announced or await self._now(live.run)

    async def _delivered(self, live: _Live) -> str | None:
        """Tells whoever wants to be told besides the parent's inbox, again and again; what went wrong at last."""
        if self._announcer is None:
            return None
        since, pause = live.run.ended or time.time(), 1.0
        while True:
            try:
                async with asyncio.timeout(self.limits.announce_call):
                    await self._announcer(live.run)
            except Exception as error:  # noqa: BLE001 - foreign code
                said = f"{type(error).__name__}: {error}"
            else:
                return None
            tries = await self._written(self.registry.tried, live.run.id)
            if tries >= self.limits.announce_tries or time.time() - since > self.limits.announce_expiry:
                return said
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
            pause = min(pause * 2, 30.0)

    async def _give_up(self, live: _Live, error: str) -> Run:
        why = f"its result could not be announced: {error}"
        self.host.notice(
            f"the child {live.run.name} has finished, but {why}; `turngate runs show {live.run.id[:8]}` has it"
        )
        given_up = await self._written(self.registry.give_up, live.run.id, why)
        await self._told_ended(given_up or live.run)
        return given_up or await self._now(live.run)

    async def _tell_stop(self, live: _Live) -> None:
        """Once for each child that was started, with what all of its runs used."""
        if live.observed:
            return
        live.observed = True
        run = live.run
        usage = run.spent + run.usage
        payload = SubagentStopPayload(
            parent_session_id=run.parent, agent_id=run.agent_id, agent_type=run.agent_type, result=run, usage=usage,
            total_tool_calls=run.tool_calls, total_duration=time.time() - run.created,
            model=str(run.launch.get("model", "")).replace(":", "/", 1), transcript_path=self.host.transcript_of(run),
            continuations=run.steer_count, outcome=run.outcome or "error",
        )  # fmt: skip
        await self.host.plugins.tell("subagent_stop", payload)
        self._complain()

    async def _tell_ended(self, live: _Live) -> Run:
        if live.run.state == "killed":
            await self._tell_stop(live)
            if not live.final.done():
                live.final.set_result(live.run)
        await self._told_ended(live.run)
        done = await self._written(self.registry.told, live.run.id)
        if done:
            self._step("done", done)
        return done or await self._now(live.run)

    async def _told_ended(self, run: Run) -> None:
        context = SubagentStoppingContext(
            agent_id=run.agent_id, run_id=run.id, child_session_key=run.agent_id,
            requester_session_key=run.parent_agent or run.parent,
        )  # fmt: skip
        await self.host.plugins.tell("subagent_ended", ended_event(run), context)
        self._complain()
        self._step("told", run)
        seconds = time.time() - run.created
        self.host.emit(
            SubagentFinished(run.agent_id, run.name, run.outcome or "error", run.steer_count, seconds)
        )

    def _complain(self) -> None:
        for complaint in self.host.plugins.complaints:
            self.host.notice(complaint)
        self.host.plugins.complaints.clear()

    # Owners that died

    def _lost_too_often(self, run: Run) -> bool:
        return run.recoveries > self.limits.recoveries or run.rapid > self.limits.rapid

    async def _bury(self, live: _Live) -> Run:
        """It was taken over too often: its parent is told that it is lost, and why."""
        run = live.run
        why = f"it was lost: whoever ran it died {run.recoveries} times"
        self.host.notice(f"the child {run.name} is given up: {why}")
        bury = functools.partial(
            self.registry.bury, run.id, self.owner.id, error=why, announcement=announcement(run, lost=why)
        )
        buried = await self._written(bury)
        if buried:
            self._step("buried", buried)
        return buried or await self._now(run)

    async def _watch(self) -> None:
        """What other processes did to our runs, what dead ones left, and what can be forgotten."""
        version, others, swept = -1, [""], 0.0
        while True:
            try:
                now = await in_thread(lambda: self.registry.version)
                if now != version:
                    version = now
                    await self._compare()
                    others = await in_thread(self.registry.orphans, self.owner.id)
                if others:
                    await self.recover()
                    others = await in_thread(self.registry.orphans, self.owner.id)
                if time.monotonic() - swept > SWEEP:
                    swept = time.monotonic()
                    await in_thread(self.registry.sweep)
            except RegistryError as error:
                self.host.notice(str(error))
                await asyncio.sleep(SWEEP)
            await asyncio.sleep(LOOK)

    async def _compare(self) -> None:
        self._notice_changes(await in_thread(self.registry.disturbed, self.owner.id))

    # Parts

    def _notice_changes(self, changed: Collection[Run]) -> None:
        """A step that works on a run which is killed or steered ends; the next one sees what the row says."""
        for run in changed:
            live = self._live.get(run.chain)
            if live and live.step and live.run.state in LIVING and live.run.state != run.state:
                live.step.cancel()

    async def _now(self, run: Run) -> Run:
        found = await self._written(self.registry.get, run.id)
        if found is None:
            raise UsageError(f"the run {run.id} is no longer in the register")
        return found

    async def _written(self, transition: Callable[..., T], *arguments: object) -> T:
        """A transition, tried again while the disk or another process is in the way."""
        for pause in (*WRITE_PAUSES, None):
            try:
                async with self._writing:
                    return await in_thread(transition, *arguments)
            except RegistryError:
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    def _step(self, name: str, run: Run) -> None:
        if self._on_step:
            self._on_step(name, run)


def _was_called(called: "asyncio.Future[None]") -> bool:
    return called.done() and not called.cancelled()


def _family(run: Run) -> Family:
    return run.parent, run.parent_agent


def _entry(prompt: str, run: str, *, by_hook: bool) -> Entry:
    return Entry(prompt, "stop_hook" if by_hook else "user", key=run)


def _answer(child: Child) -> str:
    """The last answer; when it is blank, the last one that was not, marked as earlier."""
    replies = [message for message in child.messages if isinstance(message, Reply)]
    if replies and replies[-1].text.strip():
        return replies[-1].text
    earlier = next((reply.text for reply in reversed(replies) if reply.text.strip()), "")
    return f"[an earlier answer; the last one was empty]\n{earlier}" if earlier else ""


def check_steer(run: Run, prompt: str, *, by: str, since: float = float("inf")) -> None:
    """The guard rails of a steer by hand; raises UsageError with what is wrong."""
    if by == run.agent_id:
        raise UsageError("a child can not steer itself")
    if by not in ("user", run.parent, run.parent_agent):
        raise UsageError(f"only whoever started the run {run.id} may steer it")
    if not prompt.strip():
        raise UsageError("a steer needs a prompt")
    if len(prompt) > STEER_LONGEST:
        raise UsageError(f"a steer may have {STEER_LONGEST} characters, not {len(prompt)}")
    if run.state not in STEERABLE:
        raise UsageError(f"the run {run.id} is already finished ({run.outcome or run.state})")
    if since < STEER_EVERY:
        raise UsageError(
            f"this child was steered {since:.1f} s ago; wait {STEER_EVERY:g} s between two steers"
        )


def steer_mark(registry: Registry, run: Run, prompt: str) -> Run:
    """Marks a run for a steer-restart by hand, which counts against no limit."""
    marked = registry.mark(
        run.id, prompt, why="steered by hand", counts=False, max_steers=run.max_steers, states=STEERABLE
    )
    if marked is None:
        raise UsageError(f"the run {run.id} is already finished, or is being steered already")
    return marked
