"""The life of one subagent, from its registration until its parent and the plugins know the result.

The registry row holds the state. `_advance` performs the one step that follows from it and returns the row as it is
afterward, so a run that a dead process left halfway continues without any code for recovery.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Literal

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import T, current_task_cancelled, finish_despite_cancel, run_in_thread
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import Reply, Usage, UserMessage
from turngate.core.conversation.subagent_run import LIVING_STATES, SubagentRun, changed_guard, with_unenforced
from turngate.core.events.events import SubagentStart
from turngate.core.events.stream_events import SubagentRedirected, SubagentStarted, TurnResult
from turngate.core.verdict.hook_run import HookOutput
from turngate.core.verdict.tool_effects import added_context
from turngate.errors import RegistryError, UsageError
from turngate.subagents import notifications
from turngate.subagents.git_files import SlotFolder
from turngate.subagents.host import SubagentHost, SubagentSession
from turngate.subagents.limits import ConcurrencySlots, SubagentLimits, SubagentOptions
from turngate.subagents.registry import Registry, RegistryWorker
from turngate.subagents.registry.statements import Transition
from turngate.subagents.stored_transcript import StoredTranscript
from turngate.subagents.subagent_stop import StopCheckResult, check_stop, has_stop_checks, hooks_of_redirect

Step = Transition | Literal["replace"]
MACHINE_FULL_RETRY_S = 0.2
FIRST_ANNOUNCE_PAUSE_S = 1.0
MAX_ANNOUNCE_PAUSE_S = 30.0
STATES_WITH_SLOT = ("running", "ended", "steering")
HALTED = ("halted", "checkpoint")  # ends of a turn by `continue: false`


@frozen(kw_only=True)
class LifecycleContext:
    """What the runs of one supervisor share while it is connected to the registry."""

    host: SubagentHost
    registry: Registry
    worker: RegistryWorker
    limits: SubagentLimits
    slots: ConcurrencySlots
    notify_parent: Callable[[SubagentRun], None]
    owner: str  # this process, as the registry knows it
    on_lost: Callable[[SubagentRun], None]  # called before the parent is told, so that its turn waits on
    options: SubagentOptions

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Write a transition, or read a row, in the registry's thread."""
        return await self.worker.transition(function, *arguments)


class RunLifecycle:
    """One chain of runs; `current` is the run that it has reached."""

    def __init__(self, run: SubagentRun, context: LifecycleContext) -> None:
        self.current = run
        self.result: asyncio.Future[SubagentRun] = asyncio.get_running_loop().create_future()
        # Retrieve the exception, because asyncio warns about one that no caller awaits.
        self.result.add_done_callback(lambda result: result.cancelled() or result.exception())
        self.is_killed = False
        self.is_lost = False  # another process owns the run now, or may own it soon
        self.waiters = 0
        self.delivered = asyncio.Event()  # the waiter's conversation holds the result, or never will
        self._context = context
        self._host = context.host
        self._registry = context.registry
        self._trace = context.options.on_step  # called after each step; crash tests kill the process there
        self._session: SubagentSession | None = None  # made on demand
        self._unenforced: list[HookOutput] = []  # gates, until they are recorded
        self._task: asyncio.Task[SubagentRun] | None = None
        self._has_slot = False
        self._step_failed = False
        self._folder: SlotFolder | None = None  # once this chain has it for itself
        self._transcript: StoredTranscript | None = None  # of one on a worker, once it is here with its files
        self._undelivered: StopCheckResult | None = None  # the redirect of a hook that could not be delivered
        self._update_slot(run)

    @property
    def parent_key(self) -> tuple[str, str]:
        """Return the session and the subagent within it ("" for the main agent) that started this one."""
        return self.current.parent, self.current.parent_agent

    def on_external_change(self, run: SubagentRun) -> None:
        """Cancel the current step after a kill or a steer; the next step starts from the new row."""
        if run.owner != self._context.owner:
            self.give_way()
            return
        self.is_killed = self.is_killed or run.state == "killed"
        if self._task and self.current.state in LIVING_STATES and self.current.state != run.state:
            self._task.cancel()

    def give_way(self) -> None:
        """End here, without a word to the registry: the run is another process's, and the work is cancelled."""
        self.is_lost = True
        if self._task:
            self._task.cancel()

    def release_waiters(self) -> None:
        """Announce a result as a message if the turn that waited for it ended without storing it."""
        if self.result.done() and not self.delivered.is_set():
            self.waiters = 0
            self.delivered.set()

    async def run(self) -> None:
        """Take the chain to its end."""
        try:
            while not self.is_lost and self.current.state not in ("done", "given_up"):
                self._update_slot(await self._run_step())
            if self.is_lost and not self.result.done():
                self._context.on_lost(self.current)
                lost = f"subagent {self.current.name} is continued by another process"
                self.result.set_exception(UsageError(f"{lost}; its result arrives as a message"))
        except Exception as error:  # noqa: BLE001 - a parent must never wait for a chain that has stopped
            self._host.warn(self.current, f"subagent {self.current.name} cannot continue: {error}")
            if not self.result.done():
                self.result.set_exception(UsageError(f"subagent {self.current.name} is lost: {error}"))
        finally:
            await finish_despite_cancel(self._close())

    async def _run_step(self) -> SubagentRun:
        """Run one step as a task, so that `on_external_change` can cancel it without ending the chain.

        An unexpected failure ends the run, and its parent gets an announcement.
        """
        self._task = asyncio.create_task(self._advance())
        try:
            return await self._task
        except asyncio.CancelledError:
            if current_task_cancelled():
                raise
            if self.is_lost:
                return self.current
            await self._record_usage()
            return await self._reload()
        except RegistryError:
            raise
        except Exception as error:
            if self._step_failed or self.current.state not in LIVING_STATES:
                raise
            self._step_failed = True
            return await self._give_up_lost(f"it was lost: {type(error).__name__}: {error}")

    async def _close(self) -> None:
        if self._task and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._session:
            await self._session.close()
        if self._has_slot:
            self._context.slots.leave(self.current)
        if self._folder:
            self._folder.lock.release()
        self._settle(self.current)

    async def _advance(self) -> SubagentRun:
        run, limits = self.current, self._context.limits
        if run.state in LIVING_STATES and (run.recoveries > limits.recoveries or run.rapid > limits.rapid):
            return await self._give_up_lost(f"it was lost: its process died {run.recoveries} times")
        if run.is_for_workers and run.state in ("running", "ended", "steering") and not self._transcript:
            await self._fetch()
        steps = {
            "waiting": self._start,
            "running": self._run_subagent,
            "ended": self._check_stop,
            "steering": self._restart,
            "final": self._deliver_result,
            "announced": self._finish,
            "killed": self._finish,
        }
        return await steps.get(run.state, self._reload)()

    # One run

    async def _start(self) -> SubagentRun:
        """Wait for a slot of the session and for one on the machine."""
        context = self._context
        while True:
            await context.slots.wait(self.current)
            self._has_slot = True
            limit = {"depth": self.current.depth, "max_running": context.limits.on_machine}
            run = await self._transition("started", "start", **limit)
            if run.state != "waiting":
                return run
            context.slots.leave(self.current)
            self._has_slot = False
            await asyncio.sleep(MACHINE_FULL_RETRY_S)

    async def _fetch(self) -> None:
        """Get the transcript of a subagent for workers, and its files if its project is in git."""
        run, folder = self.current, self._context.options.folder
        transcript = StoredTranscript(self._registry, self._host.transcript_path(run))
        if (run.state, run.id) != ("running", run.chain):  # otherwise nothing is stored yet
            await self._context.call(partial(transcript.fetch, run, exact=folder is not None))
        if folder:
            if not self._folder:
                await folder.lock.acquire()
                self._folder = folder
            await finish_despite_cancel(run_in_thread(folder.fetch, run))
        self._transcript = transcript

    async def _run_subagent(self) -> SubagentRun:
        """Let the subagent work on the prompt of this run."""
        outcome, error = await self._attempt()
        if self._folder and (wrong := await run_in_thread(self._folder.push, self.current)):
            outcome, error = "error", wrong
        self._trace("worked", self.current)
        turn = self._last_turn
        checkpoint = self._session.checkpoint if self._session and outcome == "ok" else None
        # Without a turn, the stage was finished when its process died.
        at_stage_end = checkpoint is not None and (turn is None or turn.stop_reason == checkpoint)
        halted = turn.ended_by if turn and turn.ended_by in HALTED else "checkpoint" if at_stage_end else None
        if turn and halted and turn.stop_reason:
            self._host.notice(f"subagent {self.current.name}: {turn.stop_reason}")
        return await self._transition(
            "ended",
            "end",
            outcome=outcome,
            reason=halted or ("complete" if outcome == "ok" else outcome),
            error=error,
            result=self._last_answer(),
            usage=turn.usage if turn else Usage(),
            tool_calls=turn.tool_calls if turn else 0,
            tools=turn.tools if turn else (),
            guard=changed_guard(self.current, self._take_unenforced(), is_at_stage_end=at_stage_end),
        )

    def _write(self, transition: Step, values: Mapping[str, object]) -> SubagentRun | None:
        """Sync the transcript before recording the end, because SubagentStop hooks read it.

        One thread hop for both disk writes. Without stop checks no sync is needed: the row holds the answer.
        """
        if transition == "end" and self._session and has_stop_checks(self._host):
            self._session.conversation.sync()
        if transition == "replace":
            return self._registry.replace(self.current)
        registry = (
            self._transcript if self._transcript and transition in ("end", "finish") else self._registry
        )
        return registry.transition(transition, self.current.id, self._context.owner, **values)

    # The session of the subagent

    async def _attempt(self) -> tuple[Literal["ok", "error", "timeout"], str]:
        """Run one turn. Return its outcome and the error, whatever the session raises."""
        run, seconds = self.current, self._context.limits.seconds
        try:
            async with asyncio.timeout(seconds) as timer:
                session = self._session = self._session or self._host.new_session(run)
                session.last_result = None
                error = await self._run_turn(session, run)
        except Exception as failure:  # noqa: BLE001 - the failure is this run's outcome
            if isinstance(failure, TimeoutError) and timer.expired():
                return "timeout", f"it took longer than {seconds:g} s"
            return "error", str(failure) or type(failure).__name__
        return ("error", error) if error else ("ok", "")

    async def _run_turn(self, session: SubagentSession, run: SubagentRun) -> str:
        """Run one turn and return its error, or an empty string."""
        await session.open()
        await self._deliver_prompt(session, run)
        messages = session.conversation.messages
        last = messages[-1] if messages else None
        if isinstance(last, Reply) and not last.tool_uses:
            return ""  # the turn was complete when its process died
        try:
            result = await session.run_turn(_inbox_entry(run.prompt, run.id, by_hook=run.by_hook))
        finally:
            self._unenforced += session.last_result.unenforced if session.last_result else ()
        return (result.stop_reason or "it failed") if result.outcome == "error" else ""

    async def _deliver_prompt(self, session: SubagentSession, run: SubagentRun) -> None:
        """Add the prompt to the conversation; fire SubagentStart before the first prompt of a chain."""
        conversation = session.conversation
        if run.id == run.chain and not conversation.has_delivered(run.id):
            self._host.emit(SubagentStarted(run.agent_id, run.agent_type, run.label), run)
            fields = notifications.event_fields(self._host, run)
            event = SubagentStart(**fields, agent_id=run.agent_id, agent_type=run.agent_type)
            verdict = await self._host.ask_hooks(event, run)
            self._unenforced += verdict.unenforced
            if context := added_context(verdict.runs, plain=False):
                conversation.append(UserMessage(context, "context"))
        conversation.append_once(_inbox_entry(run.prompt, run.id, by_hook=run.by_hook))

    async def _deliver_next_prompt(self, run: SubagentRun) -> None:
        """Put the prompt of the run that replaces `run` into the conversation, on disk."""
        self._trace("aborted", run)  # the previous step was cancelled, or had ended by itself
        async with asyncio.timeout(self._context.limits.settle):
            session = self._session = self._session or self._host.new_session(run)
            await session.open()
        session.inbox.clear()
        self._trace("cleared", run)
        await self._deliver_prompt(session, run)
        await session.conversation.sync_in_thread()
        self._trace("synced", run)
        session.conversation.append_once(_inbox_entry(run.next_prompt, run.next_id, by_hook=run.next_by_hook))
        await session.conversation.sync_in_thread()
        self._trace("sent", run)

    @property
    def _last_turn(self) -> TurnResult | None:
        return self._session.last_result if self._session else None

    def _take_unenforced(self) -> tuple[HookOutput, ...]:
        """Return the gates that were not enforced since the last call."""
        taken, self._unenforced = self._unenforced, []
        return tuple(taken)

    def _last_answer(self) -> str:
        """Return the last answer; if it is blank, the last one that is not, marked as earlier."""
        messages = self._session.conversation.messages if self._session else ()
        replies = [message.text for message in messages if isinstance(message, Reply)]
        if replies and replies[-1].strip():
            return replies[-1]
        earlier = next((text for text in reversed(replies) if text.strip()), "")
        return f"[an earlier answer; the last one was empty]\n{earlier}" if earlier else ""

    # Stop check and restart

    async def _check_stop(self) -> SubagentRun:
        """The subagent wants to stop: ask hooks and plugins, then finish the run or request a redirect."""
        run = self.current
        check = self._undelivered or StopCheckResult(max_steers=run.max_steers, reason=run.reason)
        self._trace("checking", run)
        halted = run.reason in HALTED  # C-06: by `continue: false` of a hook in the middle of the run
        if not self._undelivered and not halted and has_stop_checks(self._host):
            run = await self._reload()
            if run.state != "ended":
                return run  # killed or steered in the meantime
            exhausted = self._session is not None and self._session.requests_exhausted
            check = await check_stop(self._host, run, exhausted=exhausted)
        self._trace("checked", run)
        return await (self._allow_stop(run, check) if check.prompt is None else self._redirect(run, check))

    async def _allow_stop(self, run: SubagentRun, check: StopCheckResult) -> SubagentRun:
        changes = await run_in_thread(self._folder.changes, run) if self._folder else ""
        final = await self._transition(
            "final",
            "finish",
            result=run.result + changes,
            reason=check.reason,
            announcement=notifications.announcement(replace(run, result=run.result + changes)),
            max_steers=check.max_steers,
            guard=changed_guard(run, check.unenforced, check.blocked_by),
        )
        if self._folder and not changes and final.state == "final":
            await run_in_thread(self._folder.remove, run)
        return final

    async def _redirect(self, run: SubagentRun, check: StopCheckResult) -> SubagentRun:
        previous = with_unenforced(run.guard, check.unenforced)
        previous.pop("before", None)
        kept = {name: value for name, value in previous.items() if name == "unenforced"}
        steering = await self._transition(
            "redirect_requested",
            "redirect",
            prompt=check.prompt,
            why=check.why,
            counts=True,
            max_steers=check.max_steers,
            guard={**(check.guard or {}), **kept, "before": previous},
        )
        if steering.state == "steering" and steering.next_by_hook:
            counts = steering.steer_count, steering.max_steers
            self._host.emit(SubagentRedirected(run.agent_id, run.name, check.why, *counts), run)
        return steering

    async def _restart(self) -> SubagentRun:
        """Replace this run by one with the new prompt, whether a hook redirects or a person steers."""
        run = self.current
        try:
            await self._deliver_next_prompt(run)
            return await self._transition("replaced", "replace")
        except Exception as error:  # noqa: BLE001 - any failure ends the subagent, as blocked if a hook redirects it
            failure = f"the new prompt could not be delivered: {error}"
            self._host.warn(run, f"subagent {run.name} stops with its last answer: {failure}")
            if run.next_by_hook:  # a person's steer that fails leaves the decision to the hooks
                self._undelivered = StopCheckResult(
                    max_steers=run.max_steers, reason="capped", blocked_by=hooks_of_redirect(run)
                )
            guard = run.guard.get("before") if run.next_by_hook else run.guard
            values = {"counted": run.next_by_hook, "guard": guard, "error": failure}
            return await self._transition("redirect_cancelled", "cancel_redirect", **values)

    # The end of the chain

    async def _deliver_result(self) -> SubagentRun:
        """Notify plugins, then give the result to the parent: to its waiting tool call, or as a message."""
        await notifications.notify_stop(self._host, self.current)
        self._trace("stop_notified", self.current)
        # Of the session that started it, not of this one. If False, the result stays in the registry.
        taken = not self.current.launch.get("announce", self._host.settings.announce_children)
        if self.waiters:
            self._settle(self.current)
            await self.delivered.wait()
            taken = self.waiters > 0  # whether the tool call stored it; not if its turn is interrupted
        elif not taken and (error := await self._announce()):
            return await self._give_up(error)
        announced = await self._transition("announced", "announce", taken=taken)
        self._settle(announced)
        self._context.notify_parent(announced)
        return announced

    async def _announce(self) -> str | None:
        """Call the custom announcer, if there is one, with exponential back-off. Return its last error."""
        context, run, pause = self._context, self.current, FIRST_ANNOUNCE_PAUSE_S
        while announcer := context.options.announcer:
            try:
                async with asyncio.timeout(context.limits.announce_call):
                    await announcer(run)
            except Exception as error:  # noqa: BLE001 - foreign code
                failure = f"{type(error).__name__}: {error}"
            else:
                break
            counted = await context.call(self._write, "attempt", {})
            is_last = counted is not None and counted.attempts >= context.limits.announce_tries
            if is_last or time.time() - (run.ended or time.time()) > context.limits.announce_expiry:
                return failure
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
            pause = min(pause * 2, MAX_ANNOUNCE_PAUSE_S)
        return None

    def _settle(self, run: SubagentRun) -> None:
        """Give the result to those who wait for it, once."""
        if not self.result.done():
            self.result.set_result(run)

    async def _give_up(self, error: str) -> SubagentRun:
        run = self.current
        why = f"its result could not be announced: {error}"
        prints = f"`turngate runs show {run.id[:8]}` prints it"
        self._host.warn(run, f"subagent {run.name} has finished, but {why}; {prints}")
        await self._notify_ended(replace(run, error=why))
        return await self._transition("given_up", "give_up", error=why)

    async def _give_up_lost(self, why: str) -> SubagentRun:
        """End a run that cannot continue; the announcement tells its parent that it is lost, and why."""
        run = self.current
        self._host.warn(run, f"subagent {run.name} is given up: {why}")
        text = notifications.announcement(replace(run, outcome="error", result=""), lost=why)
        return await self._transition("lost", "lost", error=why, announcement=text)

    async def _finish(self) -> SubagentRun:
        run = self.current
        if run.state == "killed":
            if run.started is not None:
                await notifications.notify_stop(self._host, run)
            self._settle(run)
        await self._notify_ended(run)
        return await self._transition("done", "done")

    async def _notify_ended(self, run: SubagentRun) -> None:
        await notifications.notify_ended(self._host, run, self._take_unenforced())
        self._trace("end_notified", run)

    # State

    def _update_slot(self, run: SubagentRun) -> None:
        """Move to `run`, and take or release the slot that its state needs."""
        self.current = run
        needs_slot = run.state in STATES_WITH_SLOT
        if self._has_slot and not needs_slot:
            self._context.slots.leave(run)
        elif needs_slot and not self._has_slot:
            self._context.slots.enter(run.parent, run.depth)
        self._has_slot = needs_slot

    async def _record_usage(self) -> None:
        """Record what a run used before it was ended from outside."""
        turn = self._last_turn
        if turn and self.current.state == "running":
            used = {"usage": turn.usage, "tool_calls": turn.tool_calls, "tools": turn.tools}
            await self._context.call(self._write, "usage", used)

    async def _transition(self, step: str, transition: Step, **values: object) -> SubagentRun:
        """Write a transition and return the new row, or the row that another writer made first."""
        changed = await self._context.call(self._write, transition, values)
        if changed is None:
            return await self._reload()
        self._trace(step, changed)
        return changed

    async def _reload(self) -> SubagentRun:
        run = await self._context.call(self._registry.find, "last", self.current.chain)
        if run is None:
            raise UsageError(f"run {self.current.id} is no longer in the registry")
        self.is_lost = self.is_lost or run.owner != self._context.owner
        return run


def _inbox_entry(prompt: str, run: str, *, by_hook: bool) -> InboxEntry:
    return InboxEntry(prompt, "stop_hook" if by_hook else "user", key=run)
