"""Answer one message: ask the model, run its tools, ask again, until it has nothing more to do."""

from dataclasses import replace

from turngate.agent.compaction import compact_if_full
from turngate.agent.loop_context import LoopContext, ask_model
from turngate.agent.tool_calls import run_tools
from turngate.agent.turn_state import end_at_checkpoint
from turngate.core.conversation import messages
from turngate.core.conversation.messages import ModelRequest, Reply, ToolResult, ToolResults, ToolUse
from turngate.core.events.stream_events import StreamEnd, TextDelta
from turngate.core.verdict.loop_guard import EndTurn
from turngate.errors import ModelError

MAX_TRUNCATED_REPLIES = 3  # requests for a new answer after one that hit its token limit
REFUSED = (
    "The provider's safety filter stopped your last answer and withheld the rest of it; tool calls in it did not run. "
    "Continue without the content that it stopped."
)
TRUNCATED_CALL = "not run: your answer was truncated at its token limit before this call was complete; make it again, shorter"


async def run_model_loop(context: LoopContext) -> EndTurn | None:
    """Return None once the model has nothing more to do. Raises TurnHalted and ModelError."""
    turn, conversation = context.turn, context.conversation
    tries = 0
    while True:
        if context.requests_exhausted:
            return context.end_at_limit()
        for text in context.take_late_context():
            conversation.append(messages.UserMessage(text, "context"))
        await compact_if_full(context)
        reply = await _next_reply(context)
        if reply.stop_reason == "refusal":
            _continue_after_refusal(context, reply)
            continue
        if reply.stop_reason == "max_tokens":
            tries += 1
            turn.answer = result_text(context, reply) or turn.answer
            _keep_truncated(context, reply, retry=tries <= MAX_TRUNCATED_REPLIES)
            continue
        if not reply.tool_uses and not reply.text.strip():
            tries += 1
            if tries == 1:  # retry once: a provider may return an empty answer by mistake
                continue
        conversation.append(reply)
        turn.answer = result_text(context, reply) or turn.answer
        if not reply.tool_uses:
            context.emit(StreamEnd(reply, stop_hook_active=turn.guard.active))
            return None
        if await run_tools(context, reply.tool_uses):
            return None
        turn.guard = turn.guard.after_tool_call()
        if turn.subagent_waits:
            return end_at_checkpoint(conversation)
        if conversation.question is not None:  # a stop hook must not push the agent past its question
            return None if context.dialect.asks_while_waiting else EndTurn("question")


async def _next_reply(context: LoopContext) -> Reply:
    """Ask the model; a conversation that does not fit is compacted once and sent again."""
    try:
        return await _ask(context)
    except ModelError as error:
        if error.kind != "context" or not await compact_if_full(context, overflow=True):
            raise
    return await _ask(context)


async def _ask(context: LoopContext) -> Reply:
    request = ModelRequest(
        messages=tuple(context.conversation.messages),
        system=await context.system_prompt(),
        tools=tuple(tool.spec for tool in context.tools.values()),
        agent=context.agent,
    )
    return await ask_model(context, request, lambda text: context.emit(TextDelta(text)))


def _continue_after_refusal(context: LoopContext, reply: Reply) -> None:
    """Tell the model to continue without what was refused, where the dialect does so and it is the first time."""
    refused = ModelError("refusal", reply.text or "the model refused to answer")
    if context.turn.was_refused or not context.dialect.asks_after_refusal:
        raise refused
    context.turn.was_refused = True
    context.notice(f"the model refused to answer ({refused}); asking once more")
    if reply.text.strip():
        context.conversation.append(replace(reply, blocks=(messages.Text(reply.text),)))
    context.conversation.append(messages.UserMessage(REFUSED, "context"))


def _keep_truncated(context: LoopContext, reply: Reply, *, retry: bool) -> None:
    """Answer the tool calls of a truncated reply with an error, because any of them may be incomplete."""
    append = context.conversation.append
    if not retry:
        append(replace(reply, blocks=tuple(b for b in reply.blocks if not isinstance(b, ToolUse))))
        raise ModelError("invalid", "the model's answers were repeatedly truncated at their token limit")
    if reply.tool_uses:
        append(reply)
        results = (ToolResult(use.id, TRUNCATED_CALL, is_error=True) for use in reply.tool_uses)
        append(ToolResults(tuple(results)))


def result_text(context: LoopContext, reply: Reply) -> str:
    """Return the text of a reply as the turn's result: all of it, or as in Claude Code its last block."""
    if context.dialect.last_text_block_only:
        return reply.texts[-1].strip() if reply.texts else ""
    return reply.text if reply.text.strip() else ""
