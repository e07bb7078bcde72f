"""pydantic-ai, with its `FunctionModel`."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, UsageLimits
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UsageLimitExceeded, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage
from pydantic_graph import End

from tests.support.frameworks import INPUT_TOKENS, OUTPUT_TOKENS, QUESTION, Ran, Script
from turngate.pydantic_ai import StopGates

__all__ = ("StopGates", "UserError")

ABSENT: dict[str, str] = {}
LIMIT_ERROR: type[Exception] | None = UsageLimitExceeded


class Answer(BaseModel):
    number: int


def _texts(messages: Sequence[ModelMessage]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, TextPart | UserPromptPart)]


def _model(script: Script) -> FunctionModel:
    def asked(messages: list[ModelMessage]) -> str:
        """Return what the user has said since the last reply."""
        texts: list[str] = []
        for message in messages:
            if isinstance(message, ModelResponse):
                texts = []
            texts += [str(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
        return "\n".join(texts)

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        say = script.reply(asked(messages))
        tool = info.output_tools[0].name if say.tool == "Answer" else say.tool
        part = ToolCallPart(tool, dict(say.arguments)) if tool else TextPart(say.text)
        usage = RequestUsage(input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS)
        return ModelResponse(parts=[part], usage=usage)

    async def stream(
        messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        yield script.reply(asked(messages)).text

    return FunctionModel(reply, stream_function=stream)


def _agent(
    gates: Any, script: Script, tools: Sequence[Any] = (), others: Sequence[Any] = (), **options: Any
) -> Any:
    return Agent(_model(script), capabilities=[*others[:1], gates, *others[1:]], tools=tools, **options)


def _ran(result: Any) -> Ran:
    return Ran(str(result.output), _texts(result.all_messages()), result.usage.output_tokens)


async def run(gates: Any, script: Script, *, tools: Sequence[Any] = (), requests: int | None = None) -> Ran:
    limits = UsageLimits(request_limit=requests or 50)
    return _ran(await _agent(gates, script, tools).run(QUESTION, usage_limits=limits))


def run_sync(gates: Any, script: Script) -> Ran:
    return _ran(_agent(gates, script).run_sync(QUESTION))


async def stream(gates: Any, script: Script) -> Ran:
    text, result = "", None
    async with _agent(gates, script).run_stream_events(QUESTION) as events:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                text += event.part.content
            elif isinstance(event, PartDeltaEvent):
                text += getattr(event.delta, "content_delta", None) or ""
            result = getattr(event, "result", result)
    return Ran(result.output, streamed=text)  # type: ignore[union-attr]


async def run_structured(gates: Any, script: Script) -> Any:
    result = await _agent(gates, script, output_type=Answer).run(QUESTION)
    return result.output.model_dump()


async def run_twice(gates: Any, script: Script) -> Ran:
    agent = _agent(gates, script)
    first = await agent.run(QUESTION)
    return _ran(await agent.run("again", message_history=first.all_messages()))


async def run_parent(gates: Any, child_gates: Any, script: Script, child_script: Script) -> Ran:
    child = _agent(child_gates, child_script)

    async def delegate() -> str:
        return str((await child.run("help")).output)

    return _ran(await _agent(gates, script, [delegate]).run(QUESTION))


class _AsksOnce(AbstractCapability[Any]):
    """Another capability that continues the run, once."""

    def __init__(self) -> None:
        self.asked = False

    async def after_node_run(self, ctx: Any, *, node: Any, result: Any) -> Any:
        if isinstance(result, End) and not self.asked:
            self.asked = True
            ctx.enqueue("shorter", priority="when_idle")
        return result


async def run_beside(gates: Any, script: Script, *, is_first: bool) -> Ran:
    others = [_AsksOnce()]
    agent = Agent(_model(script), capabilities=[*others, gates] if is_first else [gates, *others])
    return _ran(await agent.run(QUESTION))
