"""Compaction: a long conversation is replaced by its summary."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from turngate.agent.loop_context import LoopContext, ask_model
from turngate.agent.turn_state import halt_of
from turngate.core.conversation.messages import Message, ModelRequest, Reply, ToolResults, Usage, UserMessage
from turngate.core.events.events import PreCompact
from turngate.core.events.stream_events import Compacted
from turngate.core.text import keep_ends
from turngate.core.verdict.tool_effects import added_context
from turngate.core.verdict.verdict import Continue, Verdict
from turngate.errors import ModelError
from turngate.ports import Model

MIN_MESSAGES_BETWEEN = 10  # messages between two automatic compactions
MAX_RESULT_CHARS = 4000  # of one tool result in the request for the summary
COMPACT_AT_FRACTION = 0.85  # of the context window; above it the next answer may not fit
CHARS_PER_TOKEN = 4  # a rough estimate
SUMMARY_PROMPT = (
    "Write a summary of this conversation for yourself: what the user asked, what was decided and why, which files were "
    "changed and how, which commands were run and how they ended, and what is still to be done. You will continue with nothing but this summary."
)


def is_nearly_full(messages: Sequence[Message], model: Model) -> bool:
    """Estimate what the last reply and the tool results since use. A message that waits for its answer does not count: it is kept as it is."""
    if len(messages) < 2:
        return False
    last = next((n for n in reversed(range(len(messages))) if isinstance(messages[n], Reply)), -1)
    reply = messages[last] if last >= 0 else None
    usage = reply.usage if isinstance(reply, Reply) else Usage()
    tokens: int = sum(vars(usage).values())
    results = [message.results for message in messages[last + 1 :] if isinstance(message, ToolResults)]
    since = sum(len(result.content) for each in results for result in each)
    return tokens + since // CHARS_PER_TOKEN > COMPACT_AT_FRACTION * model.context


async def compact_if_full(context: LoopContext, *, overflow: bool = False) -> bool:
    """Compact a conversation that is nearly full, or too long for the provider (`overflow`). Each attempt costs a request, so the next one waits."""
    conversation = context.conversation
    needed = overflow or is_nearly_full(conversation.messages, context.model)
    shortest = 2 if overflow else max(2, conversation.compact_again_at)
    if not needed or len(conversation.messages) < shortest:
        return False
    try:
        done = await compact(context, "auto")
    except ModelError as error:
        context.notice(f"the conversation could not be compacted: the model failed ({error.kind}): {error}")
        done = False
    conversation.compact_again_at = len(conversation.messages) + MIN_MESSAGES_BETWEEN
    return done


async def compact(context: LoopContext, trigger: Literal["manual", "auto"], instructions: str = "") -> bool:
    """Replace the conversation by a summary, without stop hooks. Return False if a hook blocked it or there is nothing to summarize."""
    if not context.conversation.messages:
        return False
    event = PreCompact(**context.event_fields(), trigger=trigger, custom_instructions=instructions)
    verdict = await context.fire(event)
    if (blocked := _block_reason(verdict, trigger)) is not None:
        context.notice(f"a hook blocked the compaction: {blocked}")
        return False
    parts = (SUMMARY_PROMPT, instructions, added_context(verdict.runs, plain=True))
    summary = await _summarize(context, "\n\n".join(part for part in parts if part))
    if not summary:
        context.notice("the conversation could not be compacted: the model returned no summary")
        return False
    _restart(context, summary, keep_prompt=trigger == "auto")
    if context.on_compacted:
        await context.on_compacted()
    context.emit(Compacted(trigger, summary))
    return True


def _block_reason(verdict: Verdict, trigger: str) -> str | None:
    if halted := halt_of(verdict):
        if trigger == "auto":  # a turn is running
            raise halted
        return halted.reason or "a hook ended it"
    return verdict.prompt if isinstance(verdict, Continue) else None


async def _summarize(context: LoopContext, prompt: str) -> str:
    messages = map(_with_short_results, context.conversation.messages)
    request = ModelRequest(
        messages=(*messages, UserMessage(prompt, "context")),
        tools=tuple(tool.spec for tool in context.tools.values()),  # providers want the tools of past calls
        agent=context.agent,
    )
    reply = await ask_model(context, request, lambda _: None)
    if not reply.text.strip() or reply.tool_uses or reply.stop_reason == "refusal":
        return ""
    return reply.text


def _restart(context: LoopContext, summary: str, *, keep_prompt: bool) -> None:
    """Start over with the summary and, within a turn, the prompt that is being answered."""
    past = reversed(context.conversation.messages)
    prompts = (m for m in past if isinstance(m, UserMessage) and m.origin in ("user", "stop_hook"))
    prompt = next(prompts, None) if keep_prompt else None
    first = UserMessage(f"Summary of the conversation so far:\n\n{summary}", "summary")
    meta = {"continuation": context.turn.guard.continuations}
    context.conversation.restart((first, {}), *([(prompt, meta)] if prompt else []))


def _with_short_results(message: Message) -> Message:
    """Truncate tool results, so that the request for the summary fits where the conversation did not."""
    if not isinstance(message, ToolResults):
        return message
    half = MAX_RESULT_CHARS // 2
    results = (replace(each, content=keep_ends(each.content, half, half)) for each in message.results)
    return ToolResults(tuple(results))
