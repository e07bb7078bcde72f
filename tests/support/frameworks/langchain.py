"""LangChain's agents and deepagents, with the chat model for tests of langchain-core."""

import asyncio
from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent
from deepagents.middleware.rubric import RubricMiddleware
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from pydantic import BaseModel

from tests.support.frameworks import INPUT_TOKENS, OUTPUT_TOKENS, QUESTION, Ran, Script
from turngate.langchain import StopGates

__all__ = ("StopGates",)

ABSENT: dict[str, str] = {}
LIMIT_ERROR: type[Exception] | None = GraphRecursionError


class Answer(BaseModel):
    number: int


class _Model(GenericFakeChatModel):
    script: Any

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        say = self.script.reply(str([each for each in messages if isinstance(each, HumanMessage)][-1].text))
        calls = [{"name": say.tool, "args": dict(say.arguments), "id": "1"}] if say.tool else []
        used = {
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        message = AIMessage(say.text, tool_calls=calls, usage_metadata=used)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _model(script: Script) -> Any:
    return _Model(messages=iter(()), script=script)


def _agent(gates: Any, script: Script, tools: Sequence[Any] = (), **options: Any) -> Any:
    return create_agent(_model(script), [*tools], middleware=[gates], **options)


def _input(text: str = QUESTION) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def _ran(state: Any) -> Ran:
    messages = state["messages"]
    texts = [str(each.text) for each in messages if isinstance(each, HumanMessage | AIMessage) and each.text]
    used = sum(
        (each.usage_metadata or {}).get("output_tokens", 0)
        for each in messages
        if isinstance(each, AIMessage)
    )
    return Ran(str(messages[-1].text), texts, used)


async def run(gates: Any, script: Script, *, tools: Sequence[Any] = (), requests: int | None = None) -> Ran:
    # A step is one node: the gates are asked in two of them, and each request is one.
    config = {"recursion_limit": 2 * requests} if requests else {}
    return _ran(await _agent(gates, script, tools).ainvoke(_input(), config))


def run_sync(gates: Any, script: Script) -> Ran:
    return _ran(_agent(gates, script).invoke(_input()))


async def stream(gates: Any, script: Script) -> Ran:
    text, answer = "", ""
    async for mode, chunk in _agent(gates, script).astream(_input(), stream_mode=["messages", "values"]):
        if mode == "messages" and isinstance(chunk[0], AIMessage):
            text += str(chunk[0].text)
        elif mode == "values":
            answer = str(chunk["messages"][-1].text)
    return Ran(answer, streamed=text)


async def run_structured(gates: Any, script: Script) -> Any:
    agent = _agent(gates, script, response_format=ToolStrategy(Answer))
    return (await agent.ainvoke(_input()))["structured_response"].model_dump()


async def run_twice(gates: Any, script: Script) -> Ran:
    """With a checkpointer, which keeps the history of a thread."""
    agent, config = _agent(gates, script, checkpointer=InMemorySaver()), {"configurable": {"thread_id": "t"}}
    await agent.ainvoke(_input(), config)
    return _ran(await agent.ainvoke(_input("again"), config))


async def run_parent(gates: Any, child_gates: Any, script: Script, child_script: Script) -> Ran:
    helper = {
        "name": "helper",
        "description": "helps",
        "system_prompt": "help",
        "model": _model(child_script),
        "middleware": [child_gates],
    }
    script.replies[0] = type(script.replies[0])(
        tool="task", arguments={"description": "help", "subagent_type": "helper"}
    )
    agent = create_deep_agent(_model(script), middleware=[gates], subagents=[helper])  # type: ignore[list-item]
    return _ran(await agent.ainvoke(_input()))


async def run_beside(gates: Any, script: Script, *, is_first: bool) -> Ran:
    """Beside the middleware of deepagents that lets a model grade the answer: here it wants another one, once."""
    verdicts = iter(["needs_revision", *["satisfied"] * 9])

    class _Grader(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            return self

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            result = next(verdicts)
            criterion = {"name": "short", "passed": result == "satisfied", "gap": "shorter"}
            arguments = {"result": result, "explanation": "shorter", "criteria": [criterion]}
            call = {"name": "GraderResponse", "args": arguments, "id": "1"}
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])

    rubric = RubricMiddleware(model=_Grader(messages=iter(())), system_prompt="grade")
    middleware = [rubric, gates] if is_first else [gates, rubric]
    agent = create_agent(_model(script), [], middleware=middleware)
    return _ran(await agent.ainvoke({**_input(), "rubric": "- short"}))


async def run_in_loop(gates: Any, script: Script) -> Ran:
    """Call the agent without `await` in a program that has a running event loop."""
    await asyncio.sleep(0)
    return run_sync(gates, script)
