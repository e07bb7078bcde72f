"""The session: ask the model, run its tools, ask again; when it would stop, ask the hooks."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from turngate.agent.loop import answer, last_reply
from turngate.agent.loop_context import TurnHalted
from turngate.agent.session_lifecycle import SessionLifecycle
from turngate.agent.turn import Turn
from turngate.agent.turn_end import missing_results, notify_plugins
from turngate.aio.cancellation import current_task_cancelled, finish_despite_cancel
from turngate.aio.threads import run_in_thread
from turngate.core import events
from turngate.core.effects import added_context, block_reasons
from turngate.core.inbox import InboxEntry
from turngate.core.loop_guard import ContinueTurn, EndTurn, LoopGuard, new_guard
from turngate.core.messages import Reply, ToolResults, UserMessage
from turngate.core.session_events import Continuation, Notice, SessionEvent, TurnEnd, TurnResult
from turngate.core.verdict import Stop
from turngate.errors import ModelError, UsageError

ANSWERABLE = (
    "allowed",
    "capped",
    "stalled",
    "question",
)  # ends after which a message that waits is still answered


class Session(SessionLifecycle):
    """An agent that works on a project under its stop hooks."""

    # The loop

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """One turn: from the user's message to the moment when control returns to the user."""
        return await self.run_turn(InboxEntry(prompt), skip_stop_hook=skip_stop_hook)

    async def run_turn(self, entry: InboxEntry, *, skip_stop_hook: bool = False) -> TurnResult:
        """The same with a message that may come from somebody else."""
        if self.running is not None:
            raise UsageError("this session is in the middle of a turn; `queue` adds a message to it")
        self.running = Turn(self._new_guard())
        self._over = over = asyncio.get_running_loop().create_future()
        try:
            return await self._whole_turn(entry, tell_stop=not (skip_stop_hook or self.skip_stop_hook))
        finally:
            over.set_result(None)

    async def _whole_turn(self, entry: InboxEntry, *, tell_stop: bool) -> TurnResult:
        self._task = asyncio.create_task(self._work(entry))
        passing = None
        try:
            end = await self._task
        except asyncio.CancelledError as error:
            end = EndTurn("interrupt")
            passing = (
                error if current_task_cancelled() else None
            )  # whoever waits for us is cancelled, and so is the turn
        except BaseException:  # ours, or a listener's: the turn ends in order all the same
            self._task = None
            await finish_despite_cancel(self.family.settled())
            await finish_despite_cancel(self._finish(EndTurn("error"), tell_stop=tell_stop))
            raise
        finally:
            self._task = None
        if end.ended_by == "interrupt":
            await finish_despite_cancel(self.family.end("interrupted"))
        await finish_despite_cancel(self.family.settled())
        result = await finish_despite_cancel(self._finish(end, tell_stop=tell_stop))
        if passing is not None:
            raise passing
        return result

    async def stream(self, prompt: str) -> AsyncIterator[SessionEvent]:
        """One turn as a stream of what happens in it; the last event is its `TurnEnd`."""
        happened: asyncio.Queue[SessionEvent] = asyncio.Queue()
        listener, self.listener = self.listener, happened.put_nowait
        turn = asyncio.create_task(self.send(prompt))
        try:
            while not turn.done() or not happened.empty():
                coming = asyncio.create_task(happened.get())
                await asyncio.wait({coming, turn}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done() and happened.empty():
                    coming.cancel()
                    break
                yield await coming
            await turn  # raises what went wrong
        finally:
            self.listener = listener
            turn.cancel()
            await asyncio.wait({turn})

    async def _work(self, entry: InboxEntry) -> EndTurn:
        try:
            await self.open()
            self._obey_the_start()
            kept, self._kept_continuations = self._kept_continuations, 0
            self.turn.guard, self.turn.continuations = self._new_guard(kept), kept
            self.inbox.put_all(await self.family.reports())
            self.inbox.put(entry)
            while True:
                end = await self._round()
                if end is not None and not (end.ended_by in ANSWERABLE and await self._more_to_come()):
                    return end
        except TurnHalted as halted:
            return EndTurn("halted", stop_reason=halted.reason)
        except ModelError as error:
            return await self._failed(error)
        except OSError as error:  # the disk is full, or gone
            return EndTurn("error", stop_reason=f"the conversation can not be written down: {error}")

    async def _round(self) -> EndTurn | None:
        """One message is answered, and then the gates are asked; None: there is more to do."""
        await asyncio.sleep(0)  # an interrupt that came meanwhile counts before anything is begun
        self.inbox.put_all(await self.family.reports())
        entry = self.inbox.take()
        if entry is not None and await self._taken(entry):
            end = await answer(self)
            if end is not None:
                return end
        if len(self.inbox) and self.settings.defers_to_user:
            return None  # the agent is not about to stop: something waits for an answer (C-31)
        waits = bool(self.family.waits()) and not self.settings.dialect.asks_while_waiting
        if waits and await self._report_comes():
            return None  # nor is it while its children work
        if self.role is not None:
            return EndTurn("allowed")  # a child's supervisor asks, when the run is over
        return await self._stop()

    async def _taken(self, entry: InboxEntry) -> bool:
        """A message that waited goes on waiting when the turn ends before it is heard."""
        try:
            return await self._hear(entry)
        except (asyncio.CancelledError, OSError):
            if entry.waited or (entry.key and not self.has_delivered(entry.key)):
                self.inbox.put_back(entry)
            raise

    async def _more_to_come(self) -> bool:
        """Is there a message that waits, or a child that still works and will report?"""
        return bool(len(self.inbox)) or await self._report_comes()

    async def _report_comes(self) -> bool:
        """Waits while children work in the background, but not for ever; True: something is to be looked at."""
        while not len(self.inbox):
            self.inbox.put_all(await self.family.reports())
            if len(self.inbox) or not self.family.waits() or self.turn.impatient:
                break
            if not await self.family.next_news():
                self.turn.impatient = True
                self.notice("children in the background are not waited for any longer")
        return bool(len(self.inbox))

    async def _stop(self) -> EndTurn | None:
        """The agent would stop. May it?"""
        turn = self.turn
        await run_in_thread(self.transcript.sync)  # the hooks read what we wrote
        verdict = await self.fire(self._stop_event())
        step = turn.guard.after(verdict)
        match step:
            case EndTurn(notice=notice):
                if notice:
                    self.notice(notice)
                return step
            case ContinueTurn() if self.spent:
                return self.out_of_turns()  # nobody could answer it any more
            case ContinueTurn() if self.inbox.goes_on:
                return None  # an earlier refusal is still to be answered; one at a time
            case ContinueTurn(prompt, guard):
                turn.guard, turn.continuations = guard, turn.continuations + 1
                self.inbox.put(InboxEntry(prompt, "stop_hook", guard))
                self.emit(Continuation(prompt, guard.continuations, guard.limit))
                return None

    # From outside

    def queue(self, prompt: str) -> None:
        """A message that the user types while the turn runs; it is answered after what is being answered."""
        self.inbox.put(InboxEntry(prompt, waited=True))
        self.family.stir()

    # The ends of a turn

    def _new_guard(self, kept: int = 0) -> LoopGuard:
        guard = new_guard(self.settings, self.world.environ, limit=self.limit)
        return replace(guard, count=kept, continuations=kept)

    async def _hear(self, entry: InboxEntry) -> bool:
        """The message reaches the conversation, unless the UserPromptSubmit hooks refuse it.

        A turn whose first message is refused is over; one that came later takes nothing with it.
        """
        turn = self.turn
        turn.question = None
        if entry.guard is not None:
            turn.guard = entry.guard
            self.say(
                UserMessage(entry.text, entry.origin),
                continuation=entry.guard.continuations,
                stopHookActive=True,
            )
            return True
        if entry.key:
            self.append_once(entry)
            if entry.origin == "subagent":
                turn.guard, turn.prompt_id = self._new_guard(), str(uuid.uuid4())
                await run_in_thread(self.transcript.sync)
                await self.family.took(entry.key)
            return True
        verdict = await self.fire(events.UserPromptSubmit(**self.common(), prompt=entry.text))
        refused = block_reasons(verdict.runs)
        if isinstance(verdict, Stop) and verdict.halted:
            raise TurnHalted(verdict.stop_reason)
        if refused is not None:
            self.notice(f"a hook refused the prompt: {refused}")
            if not turn.requests and not len(self.inbox):
                raise TurnHalted(refused)
            return False
        if turn.requests:  # a further message of the user's starts its own count (C-16)
            turn.guard, turn.prompt_id = self._new_guard(), str(uuid.uuid4())
        kept = {"continuation": turn.guard.continuations} if turn.guard.active else {}
        self.say(UserMessage(entry.text), **kept)
        context = added_context(verdict.runs, plain=True)
        if context:
            self.say(UserMessage(context, "context"), **kept)
        return True

    def _stop_event(self) -> events.StopEvent:
        turn = self.turn
        last = last_reply(self.messages)
        return events.StopEvent(
            **self.common(),
            stop_hook_active=turn.guard.active,
            last_assistant_message=last.texts if last else None,
            continuation_count=turn.guard.continuations,
            limit=turn.guard.limit,
            prompt_id=turn.prompt_id,
            usage={"input_tokens": turn.usage.input_tokens, "output_tokens": turn.usage.output_tokens},
            duration_ms=int(turn.elapsed * 1000),
            tool_calls=turn.tool_calls,
            background_tasks=self.family.tasks(),
        )

    async def _failed(self, error: ModelError) -> EndTurn:
        """A provider's error is no stop: no gate is asked, and StopFailure only watches."""
        said = f"the model failed ({error.kind}): {error}"
        self.notice(said)
        await self.fire(
            events.StopFailure(**self.common(), error=error.kind, last_assistant_message=str(error))
        )
        return EndTurn("error", stop_reason=said)

    async def _finish(self, end: EndTurn, *, tell_stop: bool) -> TurnResult:
        turn = self.turn
        try:
            self.inbox.drop_continuations()
            self._write_end(end)
            result = self.last_result = turn.result(
                end, session_id=self.id, transcript_path=self.transcript_path, model=self.model.name
            )
            for complaint in await self._told(result, turn.elapsed, tell_stop=tell_stop):
                self.emit(Notice(complaint))
        finally:
            self.running = None
        self.emit(TurnEnd(result))
        return result

    async def _told(self, result: TurnResult, elapsed: float, *, tell_stop: bool) -> Sequence[str]:
        """The observers are told; an interrupt ends their time."""
        telling = notify_plugins(self.plugins, result, self.messages, elapsed, tell_stop=tell_stop)
        self._telling = asyncio.create_task(telling)
        try:
            return await self._telling
        except asyncio.CancelledError:
            if current_task_cancelled():
                raise
            return ["the plugins were interrupted while they were told of the turn's end"]
        finally:
            self._telling = None

    def _write_end(self, end: EndTurn) -> None:
        if self.written is None:
            return
        try:
            self._answer_open_calls(end)
            why = end.notice or end.stop_reason
            self.written.write_record({"type": "turn_end", "ended_by": end.ended_by, "notice": why})
        except OSError as error:  # a full disk takes the record of the end, not the end
            self.notice(f"the end of the turn could not be written down: {error}")

    def _answer_open_calls(self, end: EndTurn) -> None:
        last = self.messages[-1] if self.messages else None
        if isinstance(last, Reply) and last.tool_uses:
            missing = missing_results(self.messages, self.turn.results, end)
            self.turn.results.extend(missing)
            self.add_tool_results(last.tool_uses)  # first in memory: a full disk leaves no gap there
            for result in missing:
                self.transcript.write_message(ToolResults((result,)))
