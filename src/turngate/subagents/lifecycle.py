"""A chain of runs: one child, from its registration to the moment when everyone who should know has been told.

A run's row in the register says where it stands. `_advance` does the one thing that is next for a row in its state and
gives the row as it is then, so a run that another process left in the middle goes on exactly where it was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from turngate.aio.cancellation import current_task_cancelled, finish_despite_cancel
from turngate.aio.threads import run_in_thread
from turngate.core.inbox import InboxEntry
from turngate.core.messages import Reply, Usage
from turngate.core.session_events import SubagentRedirected
from turngate.core.subagent_run import LIVING, SubagentRun
from turngate.errors import RegistryError, UsageError
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.notifications import (
    deliver_announcement,
    finished,
    started,
    tell_ended,
    tell_start,
    tell_stop,
)
from turngate.subagents.protocols import SubagentHost, SubagentSession
from turngate.subagents.registry import Registry, RegistryWorker
from turngate.subagents.slots import ConcurrencySlots
from turngate.subagents.stop_check import Judged, announcement, has_stop_checks, judge

T = TypeVar("T")
FULL = 0.2  # seconds until a machine that has no room is asked again
HAVE_ROOM = ("running", "ended", "steering")  # a run's states in which it takes up room


@dataclass(frozen=True, kw_only=True)
class LifecycleContext:
    """What the runs of one supervisor share."""

    host: SubagentHost
    registry: Registry
    worker: RegistryWorker
    limits: SubagentLimits
    slots: ConcurrencySlots
    owner: str
    announcer: Callable[[SubagentRun], Awaitable[None]] | None
    trace: Callable[[str, SubagentRun], None]  # called after each step; crash tests kill the process there
    will_take_turn: Callable[[str], bool]


class RunLifecycle:
    def __init__(self, run: SubagentRun, context: LifecycleContext) -> None:
        self.run = run
        self.final: asyncio.Future[SubagentRun] = asyncio.get_running_loop().create_future()
        self.final.add_done_callback(
            lambda final: final.cancelled() or final.exception()
        )  # nobody has to look
        self.killed = False  # what is left to do for it is short
        self.waiters = 0
        self.handed = asyncio.Event()  # a waiter's conversation has the result, or never will
        self.steered = float("-inf")  # when it was steered by hand
        self._context = context
        self._host = context.host
        self._registry = context.registry
        self._child: SubagentSession | None = None
        self._step: asyncio.Task[SubagentRun] | None = None
        self._has_room = False
        self._failed = False  # a step of ours failed
        self._released = False  # nobody asks the hooks about it any more
        self._is_now(run)

    @property
    def family(self) -> tuple[str, str]:
        """The session, and the child of it, that this one belongs to."""
        return self.run.parent, self.run.parent_agent

    def disturb(self, run: SubagentRun) -> None:
        """It was killed or steered: what is being done for it ends, and the next step sees what the row says."""
        self.killed = self.killed or run.state == "killed"
        if self._step and self.run.state in LIVING and self.run.state != run.state:
            self._step.cancel()

    def release_waiters(self) -> None:
        """Whoever waited for the result does not any more: it comes as a message."""
        if self.final.done() and not self.handed.is_set():
            self.waiters = 0
            self.handed.set()

    async def follow(self) -> None:
        """Takes the chain to its end."""
        try:
            while self.run.state not in ("done", "given_up"):
                self._step = asyncio.create_task(self._next())
                try:
                    run = await self._step
                except asyncio.CancelledError:
                    if current_task_cancelled():
                        raise
                    await self._note_use()
                    run = await self._row()  # whoever ended this step has written down why
                self._is_now(run)
        except Exception as error:  # noqa: BLE001 - a parent never waits for a child that nobody looks after
            self._host.notice(f"the child {self.run.name} can not be looked after any more: {error}")
            if not self.final.done():
                self.final.set_exception(UsageError(f"the child {self.run.name} is lost: {error}"))
        finally:
            await finish_despite_cancel(self._leave())

    async def _leave(self) -> None:
        if self._step and not self._step.done():
            self._step.cancel()
            await asyncio.wait({self._step})
        if self._child:
            await self._child.close()
        if self._has_room:
            self._context.slots.leave(self.run)
        if not self.final.done():
            self.final.set_result(self.run)

    async def _next(self) -> SubagentRun:
        """A step that fails for a reason that nobody thought of is the end of the run, and its parent is told."""
        try:
            return await self._advance()
        except RegistryError:
            raise
        except Exception as error:
            if self._failed or self.run.state not in LIVING:
                raise
            self._failed = True
            return await self._bury(f"it was lost: {type(error).__name__}: {error}")

    async def _advance(self) -> SubagentRun:
        """What is next for a run in its state; gives the run as it is afterwards."""
        run, limits = self.run, self._context.limits
        if run.state in LIVING and (run.recoveries > limits.recoveries or run.rapid > limits.rapid):
            return await self._bury(f"it was lost: whoever ran it died {run.recoveries} times")
        match run.state:
            case "waiting":
                return await self._begin()
            case "running":
                return await self._work()
            case "ended":
                return await self._judge()
            case "steering":
                return await self._restart()
            case "final":
                return await self._hand_over()
            case "announced" | "killed":
                return await self._tell_ended()
            case _:
                return await self._row()

    # A run

    async def _begin(self) -> SubagentRun:
        """Waits for room: among the parent's children, and on the machine."""
        while True:
            await self._context.slots.wait(self.run)
            self._has_room = True
            most = self._context.limits.on_machine
            started = await self._transition(
                "started", self._registry.start, self.run, self._context.owner, most=most
            )
            if started.state != "waiting":
                return started
            self._context.slots.leave(self.run)
            self._has_room = False
            await self._context.worker.transition(self._registry.release_slots_of_dead)
            await asyncio.sleep(FULL)

    async def _work(self) -> SubagentRun:
        """The child works on the prompt of this run."""
        outcome, error = await self._attempt()
        self._context.trace("worked", self.run)
        spent = self._child.last_result if self._child else None
        return await self._transition(
            "ended",
            self._settle_and_end,
            self.run.id,
            self._context.owner,
            outcome,
            reason="complete" if outcome == "ok" else outcome,
            error=error,
            answer=_answer(self._child),
            usage=spent.usage if spent else Usage(),
            tool_calls=spent.tool_calls if spent else 0,
            tools=spent.tools if spent else (),
        )

    async def _attempt(self) -> tuple[Literal["ok", "error", "timeout"], str]:
        """How it went, and what was wrong; whatever goes wrong in a child is its outcome."""
        seconds = self._context.limits.seconds
        try:
            async with asyncio.timeout(seconds) as timer:
                self._child = self._child or self._host.new_session(self.run)
                self._child.last_result = None
                error = await self._turn(self._child)
        except Exception as failure:  # noqa: BLE001 - see above
            if isinstance(failure, TimeoutError) and timer.expired():
                return "timeout", f"it took longer than {seconds:g} s"
            return "error", str(failure) or type(failure).__name__
        return ("error", error) if error else ("ok", "")

    def _settle_and_end(self, *arguments: Any, **named: Any) -> SubagentRun | None:
        """Whoever is asked about it reads what it wrote; both in one go, as each of them waits for the disk.

        Where nobody is asked, what it wrote need not be on disk before its end is: the row has the answer.
        """
        if self._child and has_stop_checks(self._host):
            self._child.sync()
        return self._registry.end(*arguments, **named)

    async def _turn(self, child: SubagentSession) -> str:
        """One turn of the child; gives what was wrong with it."""
        await child.open()
        await self._hear_first(child)
        last = child.messages[-1] if child.messages else None
        if isinstance(last, Reply) and not last.tool_uses:
            return ""  # it had finished when its owner died
        result = await child.run_turn(self._entry)
        return (result.stop_reason or "it failed") if result.outcome == "error" else ""

    async def _hear_first(self, child: SubagentSession) -> None:
        """What this run is about is in its conversation, and its first one is told to the hooks."""
        if self.run.id == self.run.chain and not child.has_delivered(self.run.id):
            self._host.emit(started(self.run))
            if context := await tell_start(self._host, self.run):
                child.add_context(context)
        child.append_once(self._entry)

    @property
    def _entry(self) -> InboxEntry:
        return _entry(self.run.prompt, self.run.id, by_hook=self.run.by_hook)

    async def _judge(self) -> SubagentRun:
        """The child says that it is done. May it stop?"""
        run = self.run
        judged = Judged(max_steers=run.max_steers, reason=run.reason)
        self._context.trace("judging", run)
        if not self._released and has_stop_checks(self._host):
            run = await self._row()
            if run.state != "ended":
                return run  # a steer is under way already, or a kill
            judged = await judge(self._host, run)
        self._context.trace("judged", run)
        if judged.prompt is None:
            return await self._transition(
                "final",
                self._registry.finish,
                run.id,
                result=run.result,
                reason=judged.reason,
                announcement=announcement(run),
                max_steers=judged.max_steers,
            )
        marked = await self._transition(
            "marked",
            self._registry.request_redirect,
            run.id,
            judged.prompt,
            why=judged.why,
            counts=True,
            max_steers=judged.max_steers,
            guard={**(judged.guard or {}), "before": _without_past(run.guard)},
        )
        if marked.state == "steering" and marked.next_by_hook:
            self._host.emit(
                SubagentRedirected(run.agent_id, run.name, judged.why, marked.steer_count, marked.max_steers)
            )
        return marked

    async def _restart(self) -> SubagentRun:
        """Steer-restart, for hooks and people alike: abort, clear, settle, send, replace."""
        run, trace = self.run, self._context.trace
        try:
            trace("aborted", run)  # the step before this one was ended, if it had not ended by itself
            async with asyncio.timeout(self._context.limits.settle):
                child = self._child = self._child or self._host.new_session(run)
                await child.open()
            child.clear_inbox()
            trace("cleared", run)
            await self._hear_first(child)
            await run_in_thread(child.sync)
            trace("settled", run)
            child.append_once(_entry(run.next_prompt, run.next_id, by_hook=run.next_by_hook))
            await run_in_thread(child.sync)
            trace("sent", run)
            return await self._transition("replaced", self._registry.replace, run)
        except Exception as error:  # noqa: BLE001 - whatever it is, the child ends as if nobody had asked
            self._host.notice(f"the child {run.name} could not be sent on: {error}; it ends as it is")
            self._released = True
            return await self._transition(
                "unmarked",
                self._registry.cancel_redirect,
                run.id,
                counted=run.next_by_hook,
                error=f"it could not be sent on: {error}",
            )

    # The end of a chain

    async def _hand_over(self) -> SubagentRun:
        """The observers are told, then the parent gets the result: as its tool's result, or as a message."""
        await tell_stop(self._host, self.run)
        self._context.trace("observed", self.run)
        taken = False
        if self.waiters:
            if not self.final.done():
                self.final.set_result(self.run)
            await self.handed.wait()
            taken = self.waiters > 0
        elif not self._host.settings.announce_children:
            taken = True  # it stays in the register, and nobody is told
        elif error := await self._announce():
            return await self._give_up(error)
        parent = self.run.parent_agent
        to_root = bool(parent) and not self._context.will_take_turn(parent)
        announced = await self._transition(
            "announced", self._registry.announce, self.run.id, taken=taken, to_root=to_root
        )
        if not self.final.done():
            self.final.set_result(announced)
        self._host.on_subagent_change(announced)
        return announced

    async def _announce(self) -> str | None:
        context = self._context
        if context.announcer is None:
            return None
        count_attempt = partial(context.worker.transition, self._registry.count_attempt, self.run.id)
        return await deliver_announcement(context.announcer, self.run, context.limits, count_attempt)

    async def _give_up(self, error: str) -> SubagentRun:
        why = f"its result could not be announced: {error}"
        self._host.notice(
            f"the child {self.run.name} has finished, but {why}; `turngate runs show {self.run.id[:8]}` has it"
        )
        await self._told_ended(replace(self.run, error=why))
        return await self._transition("given up", self._registry.give_up, self.run.id, why)

    async def _bury(self, why: str) -> SubagentRun:
        """It can not be brought to an end: its parent is told that it is lost, and why."""
        self._host.notice(f"the child {self.run.name} is given up: {why}")
        word = announcement(replace(self.run, outcome="error", result=""), lost=why)
        return await self._transition(
            "buried",
            self._registry.finish_lost,
            self.run.id,
            self._context.owner,
            error=why,
            announcement=word,
        )

    async def _tell_ended(self) -> SubagentRun:
        if self.run.state == "killed":
            if self.run.started is not None:
                await tell_stop(self._host, self.run)
            if not self.final.done():
                self.final.set_result(self.run)
        if self._host.has_subagents(self.run.agent_id):
            await self._context.worker.transition(self._registry.reassign_to_root, self.run.agent_id)
        await self._told_ended(self.run)
        return await self._transition("done", self._registry.mark_done, self.run.id)

    async def _told_ended(self, run: SubagentRun) -> None:
        await tell_ended(self._host, run)
        self._context.trace("told", run)
        self._host.emit(finished(run))

    # Parts

    def _is_now(self, run: SubagentRun) -> None:
        """The chain has come to another row; a run that is over gives its room to the next in line."""
        self.run = run
        if self._has_room and run.state not in HAVE_ROOM:
            self._context.slots.leave(self.run)
            self._has_room = False
        elif not self._has_room and run.state in HAVE_ROOM:
            self._context.slots.enter(self.run)
            self._has_room = True

    async def _note_use(self) -> None:
        """What a run used counts, also when it was ended from outside."""
        spent = self._child.last_result if self._child else None
        if spent and self.run.state == "running":
            await self._context.worker.transition(
                self._registry.record_usage, self.run.id, spent.usage, spent.tool_calls, spent.tools
            )

    async def _transition(
        self, name: str, transition: Callable[..., SubagentRun | None], *arguments: object, **named: object
    ) -> SubagentRun:
        """Writes a transition; when somebody else was quicker, what they made of it."""
        changed = await self._context.worker.transition(partial(transition, *arguments, **named))
        if changed is None:
            return await self._row()
        self._context.trace(name, changed)
        return changed

    async def _row(self) -> SubagentRun:
        found = await self._context.worker.transition(self._registry.last, self.run.chain)
        if found is None:
            raise UsageError(f"the run {self.run.id} is no longer in the register")
        return found


def _without_past(guard: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in guard.items() if name != "before"}


def _entry(prompt: str, run: str, *, by_hook: bool) -> InboxEntry:
    return InboxEntry(prompt, "stop_hook" if by_hook else "user", key=run)


def _answer(child: SubagentSession | None) -> str:
    """The last answer; when it is blank, the last one that was not, marked as earlier."""
    replies = [message.text for message in child.messages if isinstance(message, Reply)] if child else []
    if replies and replies[-1].strip():
        return replies[-1]
    earlier = next((text for text in reversed(replies) if text.strip()), "")
    return f"[an earlier answer; the last one was empty]\n{earlier}" if earlier else ""
