"""One message is answered: ask the model, run its tools, ask again, until it has nothing more to do."""

from collections.abc import Sequence
from dataclasses import replace

from turngate.agent.compaction import compact_if_full
from turngate.agent.loop_context import LoopContext
from turngate.agent.model_request import ask
from turngate.agent.tool_calls import run_tools
from turngate.core.loop_guard import EndTurn
from turngate.core.messages import Message, ModelRequest, Reply, ToolResult, ToolResults, ToolUse
from turngate.core.session_events import StreamEnd, TextDelta
from turngate.errors import ModelError

CUT_ANSWERS = 3  # how often an answer that was cut off is asked for again
CUT_CALL = "not run: your answer was cut off at its limit of tokens before this call was whole; make it again, shorter"


async def answer(desk: LoopContext) -> EndTurn | None:
    """None: the model has said all that it has to say. Raises TurnHalted and ModelError."""
    tries = 0
    while True:
        turn = desk.turn
        if desk.spent:
            return desk.out_of_turns()
        await compact_if_full(desk)
        reply = await _asked(desk)
        if reply.stop_reason == "refusal":
            raise ModelError("refusal", reply.text or "the model refused to answer")
        if reply.stop_reason == "max_tokens":
            tries += 1
            turn.answer = told(desk, reply) or turn.answer
            _cut(desk, reply, again=tries <= CUT_ANSWERS)
            continue
        if not reply.tool_uses and not reply.text.strip():
            tries += 1
            if tries == 1:  # an empty answer may be an accident, once
                continue
        desk.say(reply)
        turn.answer = told(desk, reply) or turn.answer
        if not reply.tool_uses:
            desk.emit(StreamEnd(reply, stop_hook_active=turn.guard.active))
            return None
        await run_tools(desk, reply.tool_uses)
        turn.guard = turn.guard.after_tool_call()
        if turn.question is not None:  # it waits for the user, and nobody pushes it past that
            return None if desk.settings.dialect.asks_while_waiting else EndTurn("question")


async def _asked(desk: LoopContext) -> Reply:
    """The next answer; a conversation that does not fit is summed up, once, and sent again."""
    try:
        return await ask(desk, _request(desk), lambda text: desk.emit(TextDelta(text)))
    except ModelError as error:
        if error.kind != "context" or not await compact_if_full(desk, surely=True):
            raise
    return await ask(desk, _request(desk), lambda text: desk.emit(TextDelta(text)))


def _request(desk: LoopContext) -> ModelRequest:
    return ModelRequest(
        messages=tuple(desk.messages),
        system=desk.system(),
        tools=tuple(tool.spec for tool in desk.tools.values()),
        agent=desk.agent,
    )


def _cut(desk: LoopContext, reply: Reply, *, again: bool) -> None:
    """An answer at its limit of tokens is asked for again; the tools that it names may be half a call each."""
    if not again:
        desk.say(
            replace(reply, blocks=tuple(block for block in reply.blocks if not isinstance(block, ToolUse)))
        )
        raise ModelError("invalid", "the model's answer was cut off at its limit of tokens, again and again")
    if reply.tool_uses:
        desk.say(reply)
        desk.say(ToolResults(tuple(ToolResult(use.id, CUT_CALL, is_error=True) for use in reply.tool_uses)))


def told(desk: LoopContext, reply: Reply) -> str:
    """The answer as a result: all of its text, or in Claude Code's way its last block."""
    if desk.settings.dialect.last_text_block_only:
        return reply.texts[-1].strip() if reply.texts else ""
    return reply.text if reply.text.strip() else ""


def last_reply(messages: Sequence[Message]) -> Reply | None:
    return next((message for message in reversed(messages) if isinstance(message, Reply)), None)
