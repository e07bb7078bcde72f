"""Strands Agents. It has no model for tests; a class with its interface is the usual one."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import AfterInvocationEvent, HookProvider, HookRegistry
from strands.models import Model

from tests.support.frameworks import INPUT_TOKENS, OUTPUT_TOKENS, QUESTION, Ran, Script
from turngate.strands import StopGates

__all__ = ("StopGates",)

ABSENT = {
    "interrupt": "Strands waits for its thread, so that the gate ends first, at the latest at its timeout"
}
LIMIT_ERROR: type[Exception] | None = None  # the result says so


class Answer(BaseModel):
    number: int


class _Model(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        yield {"output": Answer(number=1)}

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        users = [each for each in messages if each["role"] == "user" and "text" in each["content"][-1]]
        say = self.script.reply(users[-1]["content"][-1]["text"])
        yield {"messageStart": {"role": "assistant"}}
        if say.tool:
            use = {"name": say.tool, "toolUseId": f"c{len(self.script.asked)}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(dict(say.arguments))}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": say.text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if say.tool else "end_turn"}}
        used = {
            "inputTokens": INPUT_TOKENS,
            "outputTokens": OUTPUT_TOKENS,
            "totalTokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        yield {"metadata": {"usage": used, "metrics": {"latencyMs": 1}}}


def _agent(gates: Any, script: Script, tools: Sequence[Any] = (), others: Sequence[Any] = ()) -> Agent:
    return Agent(model=_Model(script), hooks=[gates, *others], tools=[*tools], callback_handler=None)


def _ran(result: Any, agent: Agent) -> Ran:
    blocks = [block for message in agent.messages for block in message["content"]]
    used = result.metrics.accumulated_usage["outputTokens"]
    return Ran(str(result).strip(), [block["text"] for block in blocks if "text" in block], used)


async def run(gates: Any, script: Script, *, tools: Sequence[Any] = (), requests: int | None = None) -> Ran:
    agent = _agent(gates, script, [tool(each) for each in tools])
    options: Any = {"limits": {"turns": requests}} if requests else {}
    return _ran(await agent.invoke_async(QUESTION, **options), agent)


def run_sync(gates: Any, script: Script) -> Ran:
    agent = _agent(gates, script)
    return _ran(agent(QUESTION), agent)


async def stream(gates: Any, script: Script) -> Ran:
    text, agent, result = "", _agent(gates, script), None
    async for event in agent.stream_async(QUESTION):
        text += event.get("data", "")
        result = event.get("result", result)
    return Ran(str(result).strip(), streamed=text)


async def run_structured(gates: Any, script: Script) -> Any:
    result = await _agent(gates, script).invoke_async(QUESTION, structured_output_model=Answer)
    return result.structured_output.model_dump()  # type: ignore[union-attr]


async def run_twice(gates: Any, script: Script) -> Ran:
    agent = _agent(gates, script)
    await agent.invoke_async(QUESTION)
    return _ran(await agent.invoke_async("again"), agent)


async def run_parent(gates: Any, child_gates: Any, script: Script, child_script: Script) -> Ran:
    child = _agent(child_gates, child_script)

    @tool
    async def delegate() -> str:
        """Ask the helper."""
        return str(await child.invoke_async("help")).strip()

    agent = _agent(gates, script, [delegate])
    return _ran(await agent.invoke_async(QUESTION), agent)


class _AsksOnce(HookProvider):
    """Another hook that continues the agent, once."""

    asked = False

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        registry.add_callback(AfterInvocationEvent, self.ask)

    def ask(self, event: AfterInvocationEvent) -> None:
        if not self.asked and event.resume is None:
            self.asked, event.resume = True, "shorter"


async def run_beside(gates: Any, script: Script, *, is_first: bool) -> Ran:
    hooks = [_AsksOnce(), gates] if is_first else [gates, _AsksOnce()]
    agent = Agent(model=_Model(script), hooks=hooks, callback_handler=None)
    return _ran(await agent.invoke_async(QUESTION), agent)


async def run_in_loop(gates: Any, script: Script) -> Ran:
    await asyncio.sleep(0)
    return run_sync(gates, script)


async def run_without_stop(gates: Any, script: Script) -> None:
    await _agent(gates, script).structured_output_async(Answer, QUESTION)
