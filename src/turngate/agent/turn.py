"""The loop of one turn: answer a message, ask the stop hooks, continue while a hook blocks or a message is waiting."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.agent.background import BackgroundCommands, Wakes
from turngate.agent.conversation import Conversation
from turngate.agent.loop_context import LoopContext
from turngate.agent.model_loop import run_model_loop
from turngate.agent.session_hooks import SessionHooks
from turngate.agent.turn_state import TurnHalted, end_at_checkpoint, halt_of, new_prompt_id
from turngate.core.conversation.checkpoints import APPROVED, REFUSED, parse_answer
from turngate.core.conversation.inbox import Inbox, InboxEntry
from turngate.core.conversation.messages import UserMessage
from turngate.core.events.events import StopEvent, StopFailure, UserPromptSubmit
from turngate.core.events.stream_events import Continuation
from turngate.core.settings import Settings
from turngate.core.text import describe_exception, one_line
from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, LoopGuard, describe_last_reason
from turngate.core.verdict.tool_effects import added_context
from turngate.core.verdict.verdict import Continue
from turngate.errors import ModelError
from turngate.subagents.announcements import Announcements
from turngate.subagents.host import SubagentRole
from turngate.tracing import TURN, open_span
from turngate.transcript.writer import TranscriptError

# Without a user, a turn that may end waits this long for commands in the background. A server never ends, so it
# is short. With a user the turn ends at once, and the end of a command begins the next one.
COMMAND_WAIT_S = 10.0

# A message that waits in the inbox is still answered if the turn would end in one of these ways.
CONTINUABLE_ENDS = ("allowed", "capped", "stalled")


@frozen(kw_only=True)
class Turn:
    context: LoopContext
    inbox: Inbox
    announcements: Announcements
    background: BackgroundCommands
    wakes: Wakes | None  # None: the turn does not wait for hooks in the background
    settings: Settings
    hooks: SessionHooks
    role: SubagentRole | None
    prepare: Callable[[], Awaitable[None]]  # opens the session
    new_guard: Callable[[], LoopGuard]  # for a message of the user

    async def run(self, entry: InboxEntry) -> EndTurn:
        try:
            with open_span("invoke_agent", self.context.conversation.session_id, TURN):
                await self.prepare()
                return await self._answer_from(entry)
        except TurnHalted as halted:
            end = EndTurn(halted.ended_by, stop_reason=halted.reason)
            if halted.hook_waits:
                self._open_checkpoint(end, hook_waits=True)
            return end
        except ModelError as error:
            return await self._fail(error)
        except TranscriptError as error:
            return EndTurn("error", stop_reason=f"the transcript cannot be written: {error}")
        except OSError as error:
            return EndTurn("error", stop_reason=f"the turn failed: {describe_exception(error)}")

    async def _answer_from(self, entry: InboxEntry) -> EndTurn:
        """Answer everything that waits, and this message: first if a question or a checkpoint is open, otherwise last."""
        if self.context.conversation.waits_for_user:
            self.inbox.put_first(entry)
            end = await self._answer_all()
            return end if end.ended_by not in CONTINUABLE_ENDS else await self._answer_first_messages() or end
        await self._take_announcements()
        end_before = await self._answer_first_messages()
        if end_before is None or end_before.ended_by in ("question", "checkpoint"):
            self.inbox.put(replace(entry, waited=end_before is not None))
        return end_before or await self._answer_all()

    async def _answer_first_messages(self) -> EndTurn | None:
        """Answer what SessionStart hooks say first, each up to its stop. Return how that ended the turn, if it did."""
        while (text := self.hooks.take_first_message()) is not None:
            self.inbox.put(InboxEntry(text, by_hook=True))
            end = await self._answer_all()
            if end.ended_by not in CONTINUABLE_ENDS:
                return end
        return None

    async def _fail(self, error: ModelError) -> EndTurn:
        """End the turn after a provider's error. That is not a stop: only StopFailure hooks run."""
        context, reason = self.context, f"the model failed ({error.kind}): {error}"
        context.notice(reason)
        event = StopFailure(**context.event_fields(), error=error.kind, last_assistant_message=str(error))
        await self.hooks.fire(event)
        return EndTurn("error", stop_reason=reason)

    async def _answer_all(self) -> EndTurn:
        while True:
            end = await self._answer_one()
            if end is None or (
                end.ended_by in CONTINUABLE_ENDS and await self._wait_for_announcement(commands=True)
            ):
                continue
            end = end if self.wakes is None else self.wakes.end_turn(end)
            if end.notice:
                self.context.notice(end.notice, describe_last_reason(end))
            return end

    async def _answer_one(self) -> EndTurn | None:
        """Answer one message, then ask the stop hooks. Return None if there is more to do."""
        await asyncio.sleep(0)  # let a pending interrupt take effect first
        await self._take_announcements()
        entry = self.inbox.pop()
        if entry is not None and await self._accept_or_requeue(entry):
            conversation, subagent_waits = self.context.conversation, self.context.turn.subagent_waits
            at_checkpoint = end_at_checkpoint(conversation) if subagent_waits else None
            end = at_checkpoint or await run_model_loop(self.context)
            if end is not None and end.ended_by == "checkpoint":
                self._open_checkpoint(end)
                return end
            if conversation.question is not None:
                self.inbox.drop_continuations()
                return end or await self._ask_despite_question()
            if end is not None:
                return end
        if len(self.inbox) and self.settings.defers_to_user:
            return None  # C-31: the agent is not about to stop while a message waits
        waits = bool(self.announcements.running_in_background())
        if waits and not self.settings.dialect.asks_while_waiting and await self._wait_for_announcement():
            return None  # the agent is not about to stop while its subagents work
        if self.role is not None:
            # The supervisor asks the hooks when the run is over, unless it ends at a checkpoint.
            checkpoint = self.role.agent_type.checkpoint
            return EndTurn("allowed" if checkpoint is None else "checkpoint", stop_reason=checkpoint)
        return await self._end_stage()

    # Messages

    async def _take_announcements(self) -> None:
        self.inbox.put_all(await self.announcements.take_new())
        self.inbox.put_all(self.background.take_ended())
        if self.wakes is not None:
            self.inbox.put_all(self.wakes.take())

    async def _wait_for_announcement(self, *, commands: bool = False) -> bool:
        """Wait for subagents, and for commands and hooks too, in the background. Return True if a message arrived."""
        while not len(self.inbox):
            await self._take_announcements()
            seconds = self._waiting_time(commands=commands)
            if len(self.inbox) or seconds <= 0:
                break
            if not await self.announcements.wait_for_change(seconds) and self._waits_for_subagents():
                self.context.turn.waited_too_long = True
                self.context.notice("stopped waiting for subagents in the background")
        return bool(len(self.inbox))

    def _waits_for_subagents(self) -> bool:
        return bool(self.announcements.running_in_background()) and not self.context.turn.waited_too_long

    def _waiting_time(self, *, commands: bool) -> float:
        """Return how many seconds the turn waits for a message from the background."""
        if self._waits_for_subagents():
            return self.announcements.max_wait
        if commands and self.wakes is not None and self.wakes.watch_running():
            return math.inf  # each hook ends with its own timeout
        turn = self.context.turn
        if not commands or not self.background.running:
            return 0.0
        if turn.waits_until is None:
            has_user = self.context.permissions.permit is not None
            turn.waits_until = time.monotonic() + (0.0 if has_user else COMMAND_WAIT_S)
        return turn.waits_until - time.monotonic()

    async def _accept_or_requeue(self, entry: InboxEntry) -> bool:
        """Put a message that waited back into the inbox if the turn ends before it is in the conversation."""
        try:
            return await self._accept(entry)
        except (asyncio.CancelledError, OSError):
            if entry.waited or (entry.key and not self.context.conversation.has_delivered(entry.key)):
                self.inbox.put_first(entry)
            raise

    async def _accept(self, entry: InboxEntry) -> bool:
        """Append the message to the conversation, unless UserPromptSubmit hooks block it."""
        turn, conversation = self.context.turn, self.context.conversation
        if entry.guard is not None:
            conversation.question = None  # open only if the dialect asks the hooks despite a question
            turn.guard = turn.guard.resume_continuation(entry.guard)
            meta = {"continuation": turn.guard.continuations, "stopHookActive": True}
            conversation.append(UserMessage(entry.text, entry.origin), **meta)
            for text in entry.context:
                conversation.append(UserMessage(text, "context"), **meta)
            return True
        if entry.origin == "background":
            return self._accept_report(entry)
        if entry.key:
            conversation.append_once(entry)
            if entry.origin == "subagent":
                turn.subagent_waits = turn.subagent_waits or bool(entry.waiting and entry.waiting.text)
                turn.receive_report()
                await conversation.sync_in_thread()
                await self.announcements.acknowledge(entry.key)
            return True
        return await self._accept_prompt(entry)

    def _accept_report(self, entry: InboxEntry) -> bool:
        """Append what a command or a hook in the background reports, unless it would exceed the limit of hooks."""
        turn = self.context.turn
        if entry.counts and not turn.guard.below_limit:
            text = one_line(entry.text, 200)
            self.context.notice(f"not answered, because of the limit of continuations: {text}")
            return False
        turn.receive_report(counts=entry.counts)
        turn.waits_until = None
        meta = {"continuation": turn.guard.continuations} if entry.counts else {}
        self.context.conversation.append(UserMessage(entry.text, entry.origin), **meta)
        return True

    async def _accept_prompt(self, entry: InboxEntry) -> bool:
        """Begin a new count with a message of the user. A turn whose first prompt is blocked is over; a later one is only dropped."""
        turn, conversation = self.context.turn, self.context.conversation
        earlier = turn.prompt_id
        if turn.requests:  # a further message of the user
            turn.prompt_id = new_prompt_id()
        verdict = await self.hooks.fire(UserPromptSubmit(**self.context.event_fields(), prompt=entry.text))
        dialect = self.context.dialect
        if halted := halt_of(verdict):
            turn.answer = dialect.halted_prompt.format(reason=halted.reason or "").removesuffix(": ")
            raise halted
        if isinstance(verdict, Continue):  # a block, or a hook whose failure blocks has failed
            turn.prompt_id = earlier
            self.context.notice(f"a hook blocked the prompt: {verdict.prompt}")
            if conversation.waits_for_user or not (turn.requests or len(self.inbox)):
                turn.answer = dialect.blocked_prompt.format(reason=verdict.prompt, prompt=entry.text)
                raise TurnHalted(verdict.prompt)
            return False
        if not entry.by_hook:  # C-16
            turn.guard = self.new_guard()
        meta = {"continuation": turn.guard.continuations} if turn.guard.continuations else {}
        for notice in entry.notices:
            self.context.notice(notice)
        _append_prompt(conversation, entry, meta)
        if added := added_context(verdict.runs, plain=True):
            conversation.append(UserMessage(added, "context"), **meta)
        return True

    # The stop

    async def _end_stage(self) -> EndTurn | None:
        """The agent would stop. If that is at a checkpoint, the turn waits for the user; otherwise the hooks decide."""
        conversation = self.context.conversation
        at_checkpoint = bool(conversation.waiting or conversation.workflow)
        if not at_checkpoint:
            end = await self._ask_to_stop()
        elif len(self.inbox):
            return None  # what came before the checkpoint is answered before it
        else:
            end = end_at_checkpoint(conversation)
        if end is not None:
            self._open_checkpoint(end, hook_waits=not at_checkpoint)
        return end

    def _open_checkpoint(self, end: EndTurn, *, hook_waits: bool = False) -> None:
        """Let the user's next message answer a checkpoint, unless a hook that waits before the agent has begun has kept the user's message back."""
        turn, conversation = self.context.turn, self.context.conversation
        begun = turn.requests or turn.subagent_waits
        if end.ended_by == "checkpoint" and begun and self.role is None:
            self.inbox.drop_continuations()
            conversation.checkpoint, conversation.hook_waits = end.stop_reason or "Continue?", hook_waits

    async def _ask_despite_question(self) -> EndTurn | None:
        """Ask the stop hooks although a question is open; unless they continue the turn, it waits for the answer."""
        end = await self._ask_to_stop()
        waits = end is not None and end.ended_by in CONTINUABLE_ENDS
        return replace(end, ended_by="question") if end and waits else end

    async def _ask_to_stop(self) -> EndTurn | None:
        """The agent would stop: ask the stop hooks. Return None if the turn continues."""
        turn = self.context.turn
        await self.context.conversation.sync_in_thread()  # the hooks read the transcript
        if notice := self.context.conversation.take_notice():
            self.context.notice(notice)
        verdict = await self.hooks.fire(self._stop_event(), turn.guard)
        step = turn.guard.after(verdict)
        match step:
            case EndTurn():
                self.hooks.clear_met_goal(verdict)
                return step
            case ContinueTurn() if self.context.requests_exhausted:
                return self.context.end_at_limit()
            case ContinueTurn() if self.inbox.count("stop_hook"):
                return None  # an earlier block is still to be answered; one at a time
            case ContinueTurn(prompt, guard, messages, notice):
                if notice:
                    self.context.notice(notice)
                turn.guard, turn.continuations = guard, turn.continuations + 1
                first, *context = messages or (prompt,)
                entry = InboxEntry(first, "stop_hook", guard, context=tuple(context))
                put = self.inbox.put if self.context.conversation.question is None else self.inbox.put_first
                put(entry)
                self.context.emit(Continuation(prompt, guard.continuations, guard.limit))
                return None

    def _stop_event(self) -> StopEvent:
        turn, last = self.context.turn, self.context.conversation.last_reply
        return StopEvent(
            **self.context.event_fields(),
            stop_hook_active=turn.guard.active,
            last_assistant_message=last.texts if last else None,
            continuation_count=turn.guard.continuations,
            limit=turn.guard.limit,
            usage={"input_tokens": turn.usage.input_tokens, "output_tokens": turn.usage.output_tokens},
            duration_ms=int(turn.elapsed * 1000),
            tool_calls=turn.tool_calls,
            background_tasks=[*self.announcements.background_tasks(), *self.background.background_tasks()],
        )


def _append_prompt(conversation: Conversation, entry: InboxEntry, meta: Mapping[str, Any]) -> None:
    """Append what a message of the user asks the agent to do. Raises TurnHalted if the user refuses.

    Only the user answers a question or a checkpoint, with the first message of the next turn; everything else waits
    behind the answer. The hooks are asked again at the next stop; only in the `claude` dialect a question asks them at
    once, and a block takes it back. At a checkpoint yes begins the next stage of a workflow or of a subagent, no ends it,
    and anything else is a message within the stage: the checkpoint opens again after it.
    """
    running, waiting = conversation.workflow, conversation.waiting
    is_open = conversation.checkpoint is not None and conversation.question is None
    # Neither a hook nor a message that was typed before it answers.
    is_answer = is_open and not (entry.by_hook or entry.waited or entry.workflow)
    answer = parse_answer(entry.text) if is_answer else None
    if entry.workflow is not None:
        conversation.append_prompt(entry.workflow.stages[0].prompt(is_first=True), entry.workflow, **meta)
    elif answer is None:
        conversation.append_prompt(entry.text, running, waiting, **meta)
    elif answer == "no":
        conversation.append_prompt(f"{entry.text}\n\n{REFUSED}", None, **meta)
        over = f"{running.name} is over" if running else "the agent does not continue"
        raise TurnHalted(f"{over}: you answered no at the checkpoint", "checkpoint")
    elif waiting and not conversation.hook_waits:  # the workflow of the main agent stays where it is
        ids = ", ".join(each.agent_id for each in waiting)
        text = f"{APPROVED} Continue the subagent with Task and resume: {ids}"
        conversation.append_prompt(text, running, key=conversation.approval_key(), **meta)
    elif running and not conversation.hook_waits:
        following = running.after_approval()
        conversation.append_prompt(following.stages[0].prompt(is_first=False), following, **meta)
    else:  # a hook waited in the middle of a stage
        conversation.append_prompt(APPROVED, running, waiting, **meta)
