"""Compaction: a long conversation becomes its own summary."""

from collections.abc import Sequence
from typing import Literal

from turngate.agent.asking import ask
from turngate.agent.desk import Desk, TurnHalted
from turngate.core.events import PreCompact
from turngate.core.messages import Message, ModelRequest, Reply, Said
from turngate.core.moments import context_of, refusal_of
from turngate.core.turn import Compacted
from turngate.core.verdict import Stop
from turngate.errors import ModelError
from turngate.ports import Model

PATIENCE = 10  # messages between two automatic compactions of which the first failed
FULL = 0.85  # of the context: from here on the next answer may not fit
ASK = (
    "Write a summary of this conversation for yourself: what the user asked, what was decided and why, which files were "
    "changed and how, which commands were run and how they ended, and what is still to be done. You will go on from it alone."
)


def nearly_full(messages: Sequence[Message], model: Model) -> bool:
    last = next((message for message in reversed(messages) if isinstance(message, Reply)), None)
    if last is None or len(messages) < 4:
        return False
    used = last.usage
    read = used.input_tokens + used.cache_read_input_tokens + used.cache_creation_input_tokens
    return read + used.output_tokens > FULL * model.context


async def compact_if_full(desk: Desk) -> None:
    """A compaction that fails is not tried again at once: each try is a request that somebody pays for."""
    if len(desk.messages) < desk.compact_again_at or not nearly_full(desk.messages, desk.model):
        return
    try:
        done = await compact(desk, "auto")
    except ModelError as error:
        desk.notice(f"the conversation could not be summed up: the model failed ({error.kind}): {error}")
        done = False
    desk.compact_again_at = 0 if done else len(desk.messages) + PATIENCE


async def compact(desk: Desk, trigger: Literal["manual", "auto"], instructions: str = "") -> bool:
    """Replaces the conversation by a summary of it; False: a hook prevented it, or there is nothing to sum up.

    The model that writes the summary is a helper: no stop is asked about it.
    """
    if not desk.messages:
        return False
    verdict = await desk.fire(PreCompact(**desk.common(), trigger=trigger, custom_instructions=instructions))
    refused = refusal_of(verdict.runs)
    if isinstance(verdict, Stop) and verdict.halted:
        if desk.in_turn:
            raise TurnHalted(verdict.stop_reason)
        refused = verdict.stop_reason or "a hook ended it"
    if refused is not None:
        desk.notice(f"a hook prevented the compaction: {refused}")
        return False
    wishes = "\n\n".join(part for part in (ASK, instructions, context_of(verdict.runs, plain=True)) if part)
    request = ModelRequest(
        messages=(*desk.messages, Said(wishes, "context")),
        tools=tuple(
            tool.spec for tool in desk.tools.values()
        ),  # a history with calls needs them; none is to be called
        agent=desk.agent,
    )
    reply = await ask(desk, request, lambda _: None)
    if not reply.text.strip() or reply.tool_uses or reply.stop_reason == "refusal":
        desk.notice("the conversation could not be summed up: the model gave no summary")
        return False
    asked = _last_prompt(desk.messages)
    desk.messages.clear()
    desk.say(Said(f"This conversation was summed up:\n\n{reply.text}", "summary"))
    if asked and trigger == "auto":
        desk.say(Said(asked.text, asked.origin), continuation=desk.turn.continuations)  # it must not get lost
    await desk.begin("compact")
    desk.emit(Compacted(trigger, reply.text))
    return True


def _last_prompt(messages: Sequence[Message]) -> Said | None:
    said = (m for m in reversed(messages) if isinstance(m, Said) and m.origin in ("user", "stop_hook"))
    return next(said, None)
