"""The OpenAI Agents SDK, with its `ScriptedModel`."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from agents import Agent, SQLiteSession, function_tool, handoff, set_tracing_disabled
from agents.exceptions import MaxTurnsExceeded
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from pydantic import BaseModel

from tests.support.frameworks import INPUT_TOKENS, OUTPUT_TOKENS, QUESTION, Ran, Script
from turngate.openai_agents import StopGates

__all__ = ("StopGates", "handoff")

set_tracing_disabled(True)

ABSENT = {
    "beside": "nothing else can continue a run: hooks only observe, and a guardrail raises",
}
LIMIT_ERROR: type[Exception] | None = MaxTurnsExceeded


class Answer(BaseModel):
    number: int


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _model(script: Script) -> ScriptedModel:
    def respond(call: Any) -> Any:
        items = [{"role": "user", "content": call.input}] if isinstance(call.input, str) else call.input
        say = script.reply(_text([each for each in items if each.get("role") == "user"][-1]["content"]))
        if say.tool == "Answer":
            return [assistant_message(json.dumps(dict(say.arguments)))]
        if say.tool:
            return [function_call(say.tool, dict(say.arguments), call_id=f"c{len(script.asked)}")]
        return [assistant_message(say.text)]

    used = Usage(
        requests=1,
        input_tokens=INPUT_TOKENS,
        output_tokens=OUTPUT_TOKENS,
        total_tokens=INPUT_TOKENS + OUTPUT_TOKENS,
    )
    return ScriptedModel([ModelStep.respond(respond) for _ in range(30)], default_usage=used)


def _agent(script: Script, tools: Sequence[Any] = (), **options: Any) -> Agent[Any]:
    return Agent(name="main", model=_model(script), tools=[*tools], **options)


def _ran(result: Any, streamed: str = "") -> Ran:
    items = [item for item in result.to_input_list() if "role" in item]
    texts = [_text(item["content"]) for item in items]
    return Ran(str(result.final_output), texts, result.context_wrapper.usage.output_tokens, streamed)


async def run(gates: Any, script: Script, *, tools: Sequence[Any] = (), requests: int | None = None) -> Ran:
    tools = [function_tool(tool, strict_mode=False) for tool in tools]
    return _ran(await gates.run(_agent(script, tools), QUESTION, max_turns=requests or 20))


def run_sync(gates: Any, script: Script) -> Ran:
    return _ran(gates.run_sync(_agent(script), QUESTION))


async def stream(gates: Any, script: Script) -> Ran:
    result, text = gates.run_streamed(_agent(script), QUESTION), ""
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
    return _ran(result, text)


async def run_structured(gates: Any, script: Script) -> Any:
    return (await gates.run(_agent(script, output_type=Answer), QUESTION)).final_output.model_dump()


async def run_twice(gates: Any, script: Script) -> Ran:
    """With a session, which keeps the history."""
    agent, session = _agent(script), SQLiteSession("s")
    await gates.run(agent, QUESTION, session=session)
    ran = _ran(await gates.run(agent, "again", session=session))
    items: Any = await session.get_items()
    return Ran(ran.answer, [_text(item["content"]) for item in items], None)


async def run_parent(gates: Any, child_gates: Any, script: Script, child_script: Script) -> Ran:
    child = Agent(name="helper", model=_model(child_script))

    @function_tool
    async def delegate() -> str:
        return str((await child_gates.run(child, "help")).final_output)

    return _ran(await gates.run(_agent(script, [delegate]), QUESTION))


async def run_handoff(gates: Any, script: Script, child_script: Script) -> tuple[Ran, str]:
    """The main agent hands the conversation over. Return who answered at last too."""
    child = Agent(name="expert", model=_model(child_script))
    result = await gates.run(_agent(script, handoffs=[child]), QUESTION)
    return _ran(result), result.last_agent.name


def start_stream(gates: Any, script: Script) -> tuple[Any, "asyncio.Task[None]"]:
    result = gates.run_streamed(_agent(script), QUESTION)

    async def read() -> None:
        async for _ in result.stream_events():
            pass

    return result, asyncio.create_task(read())
