"""Compaction: a long conversation becomes its own summary."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from turngate.agent.loop_context import LoopContext, TurnHalted
from turngate.agent.model_request import ask
from turngate.core.effects import added_context, block_reasons
from turngate.core.events import PreCompact
from turngate.core.messages import Message, ModelRequest, Reply, ToolResults, Usage, UserMessage
from turngate.core.session_events import Compacted
from turngate.core.text import keep_ends
from turngate.core.verdict import Stop
from turngate.errors import ModelError
from turngate.ports import Model

PATIENCE = 10  # messages between two automatic compactions
PRINTED = 4000  # characters of one tool's result that the summary is made from
FULL = 0.85  # of the context: from here on the next answer may not fit
ASK = (
    "Write a summary of this conversation for yourself: what the user asked, what was decided and why, which files were "
    "changed and how, which commands were run and how they ended, and what is still to be done. You will go on from it alone."
)


def is_nearly_full(messages: Sequence[Message], model: Model) -> bool:
    """What the last answer took is known, and what tools printed since is estimated: about four characters a token.

    A message that waits to be answered does not count: it is kept as it is, so no summary makes it smaller.
    """
    if len(messages) < 2:
        return False
    place = next((n for n in reversed(range(len(messages))) if isinstance(messages[n], Reply)), -1)
    last = messages[place] if place >= 0 else None
    used = last.usage if isinstance(last, Reply) else Usage()
    known: int = sum(vars(used).values())
    since = [
        each
        for message in messages[place + 1 :]
        if isinstance(message, ToolResults)
        for each in message.results
    ]
    return known + sum(len(result.content) for result in since) // 4 > FULL * model.context


async def compact_if_full(desk: LoopContext, *, surely: bool = False) -> bool:
    """A compaction that fails, or does not help, is not tried again at once: somebody pays for each.

    `surely`: the provider says that the conversation does not fit.
    """
    wanted = surely or is_nearly_full(desk.messages, desk.model)
    if not wanted or len(desk.messages) < (2 if surely else max(2, desk.compact_again_at)):
        return False
    try:
        done = await compact(desk, "auto")
    except ModelError as error:
        desk.notice(f"the conversation could not be summed up: the model failed ({error.kind}): {error}")
        done = False
    desk.compact_again_at = len(desk.messages) + PATIENCE
    return done


async def compact(desk: LoopContext, trigger: Literal["manual", "auto"], instructions: str = "") -> bool:
    """Replaces the conversation by a summary of it; False: a hook prevented it, or there is nothing to sum up.

    The model that writes the summary is a helper: no stop is asked about it.
    """
    if not desk.messages:
        return False
    verdict = await desk.fire(PreCompact(**desk.common(), trigger=trigger, custom_instructions=instructions))
    refused = block_reasons(verdict.runs)
    if isinstance(verdict, Stop) and verdict.halted:
        if desk.in_turn:
            raise TurnHalted(verdict.stop_reason)
        refused = verdict.stop_reason or "a hook ended it"
    if refused is not None:
        desk.notice(f"a hook prevented the compaction: {refused}")
        return False
    wishes = "\n\n".join(
        part for part in (ASK, instructions, added_context(verdict.runs, plain=True)) if part
    )
    request = ModelRequest(
        messages=(*map(_shortened, desk.messages), UserMessage(wishes, "context")),
        tools=tuple(
            tool.spec for tool in desk.tools.values()
        ),  # a history with calls needs them; none is to be called
        agent=desk.agent,
    )
    reply = await ask(desk, request, lambda _: None)
    if not reply.text.strip() or reply.tool_uses or reply.stop_reason == "refusal":
        desk.notice("the conversation could not be summed up: the model gave no summary")
        return False
    asked, earlier = _last_prompt(desk.messages), list(desk.messages)
    desk.messages.clear()
    try:
        desk.say(UserMessage(f"This conversation was summed up:\n\n{reply.text}", "summary"))
        if asked and trigger == "auto":  # it must not get lost
            desk.say(UserMessage(asked.text, asked.origin), continuation=desk.turn.continuations)
    except OSError:
        desk.messages[:] = earlier
        raise
    await desk.begin("compact")
    desk.emit(Compacted(trigger, reply.text))
    return True


def _shortened(message: Message) -> Message:
    """A summary needs no whole file: what tools printed is cut, so that the request fits where the talk did not."""
    if not isinstance(message, ToolResults):
        return message
    return ToolResults(
        tuple(
            replace(each, content=keep_ends(each.content, PRINTED // 2, PRINTED // 2))
            for each in message.results
        )
    )


def _last_prompt(messages: Sequence[Message]) -> UserMessage | None:
    said = (m for m in reversed(messages) if isinstance(m, UserMessage) and m.origin in ("user", "stop_hook"))
    return next(said, None)
