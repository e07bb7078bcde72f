"""The end of a turn: every tool call has a result, and everyone who should know is told once."""

from collections.abc import Sequence

from turngate.core.loop_guard import EndTurn
from turngate.core.messages import Message, Reply, ToolResult, Usage
from turngate.core.session_events import TurnResult
from turngate.plugins.handlers import Plugins, StopPayload


def missing_results(
    messages: Sequence[Message], kept: Sequence[ToolResult], end: EndTurn
) -> tuple[ToolResult, ...]:
    """What tools that were not run, or not to their end, are said to have given: providers refuse a gap."""
    last = messages[-1] if messages else None
    if not isinstance(last, Reply):
        return ()
    known = {result.tool_use_id for result in kept}
    lost = f"no result: the turn was ended ({end.ended_by}) while this was to run or ran"
    return tuple(ToolResult(use.id, lost, is_error=True) for use in last.tool_uses if use.id not in known)


async def notify_plugins(
    plugins: Plugins, result: TurnResult, messages: Sequence[Message], elapsed: float, *, tell_stop: bool
) -> list[str]:
    """Once, at the final end, with what the whole turn used; what they do changes nothing. Gives their faults."""
    await plugins.tell("conversation", tuple(messages))
    if tell_stop:
        good = result.outcome not in ("error", "interrupted")
        payload = StopPayload(
            session_id=result.session_id,
            result=result,
            usage=result.usage if good else Usage(),
            turns_count=result.model_requests if good else 0,
            tool_calls_count=result.tool_calls if good else 0,
            duration=elapsed if good else 0,
            model=result.model.replace(":", "/", 1),
            continuations=result.continuations,
            ended_by=result.ended_by,
            partial_usage=result.usage,
            elapsed=elapsed,
        )
        await plugins.tell("stop", payload)
    return plugins.take_errors()
