"""The gates of a project as a middleware of LangChain's agents, which deepagents are too."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables.config import ensure_config

from turngate.adapters.project_gates import (
    GatedAgent,
    new_run,
    run_blocking,
    tool_result,
    tool_use,
    user_message,
)
from turngate.core.conversation.messages import Message, Reply, Text, ToolResults, Usage


class _State(AgentState[Any]):
    turngate_run: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class StopGates(GatedAgent, AgentMiddleware[_State, Any, Any]):
    """Hold an agent until the gates of a project pass: `create_agent(model, tools, middleware=[StopGates()])`."""

    state_schema = _State

    def before_agent(self, state: _State, runtime: Any) -> dict[str, Any]:
        return run_blocking(self._begin(_thread_id()))

    async def abefore_agent(self, state: _State, runtime: Any) -> dict[str, Any]:
        return await self._begin(_thread_id())

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: _State, runtime: Any) -> dict[str, Any] | None:
        return run_blocking(self._ask(_thread_id(), state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: _State, runtime: Any) -> dict[str, Any] | None:
        return await self._ask(_thread_id(), state)

    async def _begin(self, session: str | None) -> dict[str, Any]:
        run = new_run()
        await self._gates.begin(session, run)
        return {"turngate_run": run}

    async def _ask(self, session: str | None, state: _State) -> dict[str, Any] | None:
        messages = state["messages"]
        last = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
        answer = str(last.text) if last else ""
        run = state.get("turngate_run") or new_run()  # none in a checkpoint from before the gates
        prompt = await self._gates.ask(session, run, _read_messages(messages), answer)
        if prompt is None:
            return None
        return {"messages": [HumanMessage(prompt)], "jump_to": "model", "turngate_run": run}


def _thread_id() -> str | None:
    """Return the id of the conversation, if the agent has a checkpointer."""
    thread = ensure_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


def _read_messages(messages: Iterable[AnyMessage]) -> Iterator[Message]:
    for message in messages:
        if isinstance(message, AIMessage):
            yield _read_reply(message)
        elif isinstance(message, ToolMessage):
            is_error = message.status == "error"
            yield ToolResults((tool_result(message.tool_call_id, str(message.text), is_error=is_error),))
        elif isinstance(message, HumanMessage):
            yield user_message(str(message.text))


def _read_reply(message: AIMessage) -> Reply:
    texts = [Text(str(message.text))] if message.text else []
    calls = [tool_use(call["id"], call["name"], call["args"]) for call in message.tool_calls]
    used: Any = message.usage_metadata or {}
    usage = Usage(input_tokens=used.get("input_tokens", 0), output_tokens=used.get("output_tokens", 0))
    model = str(message.response_metadata.get("model_name", ""))
    return Reply((*texts, *calls), usage=usage, model=model, id=message.id or "")
