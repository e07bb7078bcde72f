"""The gates of a project as a capability of pydantic-ai."""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

from pydantic_ai import DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BaseToolReturnPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_core import to_json
from pydantic_graph import End

from turngate.adapters.project_gates import GatedAgent, new_run, tool_result, tool_use, user_message
from turngate.core.conversation.messages import Message, Reply, Text, ToolResult, ToolResults, Usage


class StopGates(GatedAgent, AbstractCapability[Any]):
    """Hold an agent until the gates of a project pass: `Agent(model, capabilities=[StopGates()])`."""

    _run = ""
    _is_wrapped = False

    async def for_run(self, ctx: RunContext[Any]) -> "StopGates":
        """Return a copy with the state of one run."""
        of_run = copy(self)
        of_run._run = new_run()  # noqa: SLF001 - of a copy of this object
        return of_run

    async def before_run(self, ctx: RunContext[Any]) -> None:
        await self._gates.begin(ctx.conversation_id, self._run)

    async def wrap_node_run(self, ctx: RunContext[Any], *, node: Any, handler: Any) -> Any:
        self._is_wrapped = True
        try:
            return await handler(node)
        finally:
            self._is_wrapped = False

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """Refuse `run_stream`, which hands out the answer before it ends: a block would have no effect.

        It is the only way to run an agent that calls this outside of `wrap_node_run`.
        """
        if not self._is_wrapped:
            raise UserError(
                "StopGates cannot hold an agent that is run with `run_stream`, because pydantic-ai ignores a block there; "
                "use `run_stream_events`, `iter` or `run` with `event_stream_handler` instead"
            )
        return node

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        if not isinstance(result, End) or isinstance(result.data.output, DeferredToolRequests):
            return result  # the agent goes on, or waits for the user
        output = result.data.output
        answer = output if isinstance(output, str) else to_json(output, serialize_unknown=True).decode()
        prompt = await self._gates.ask(ctx.conversation_id, self._run, _read_messages(ctx.messages), answer)
        if prompt is not None:
            ctx.enqueue(prompt, priority="when_idle")
        return result


def _read_messages(messages: Iterable[ModelMessage]) -> Iterator[Message]:
    for message in messages:
        if isinstance(message, ModelResponse):
            yield _read_reply(message)
        elif isinstance(message, ModelRequest):
            yield from _read_request(message)


def _read_reply(message: ModelResponse) -> Reply:
    texts = [Text(part.content) for part in message.parts if isinstance(part, TextPart)]
    calls = [
        tool_use(part.tool_call_id, part.tool_name, part.args_as_dict())
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    used = message.usage
    usage = Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)
    identity = message.provider_response_id or ""
    return Reply((*texts, *calls), usage=usage, model=message.model_name or "", id=identity)


def _read_request(message: ModelRequest) -> Iterator[Message]:
    results: list[ToolResult] = []
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            yield user_message("\n".join(each for each in content if isinstance(each, str)))
        elif isinstance(part, BaseToolReturnPart):
            is_error = part.outcome != "success"
            results.append(tool_result(part.tool_call_id, part.model_response_str(), is_error=is_error))
        elif isinstance(part, RetryPromptPart) and part.tool_name:
            results.append(tool_result(part.tool_call_id, part.model_response(), is_error=True))
    if results:
        yield ToolResults(tuple(results))
