"""The gates of a project around the runs of the OpenAI Agents SDK, which has no place inside a run that can continue it."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from agents import Agent, Runner, RunResult, RunResultStreaming, StreamEvent
from agents.run import DEFAULT_MAX_TURNS
from pydantic_core import to_json

from turngate.adapters.project_gates import (
    OnNotice,
    ProjectGates,
    new_run,
    run_blocking,
    tool_result,
    tool_use,
    user_message,
)
from turngate.core.conversation.messages import Message, Reply, Text, ToolResults, Usage

_BY_SERVER = ("conversation_id", "previous_response_id", "auto_previous_response_id")


class StopGates:
    """Hold agents until the gates of a project pass: `await StopGates().run(agent, "…")` instead of `Runner.run(agent, "…")`.

    `agent`: the name of a subagent, whose stops are SubagentStop. `limit`: continuations per run, instead of that of the
    settings. `on_notice` gets what the user has to know, such as a gate that was not enforced; by default, it is logged.
    """

    def __init__(
        self,
        project: str = ".",
        agent: str | None = None,
        limit: int | None = None,
        on_notice: OnNotice | None = None,
    ) -> None:
        self._gates = ProjectGates(project, agent, limit, on_notice)

    async def run(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:  # noqa: A002
        """Do what `Runner.run` does, with the same arguments, until the gates pass. The usage is that of all runs."""
        turn = _Turn(self._gates, options)
        await turn.begin()
        result = await Runner.run(starting_agent, input, **options)
        while (again := await turn.after(result)) is not None:
            result = await Runner.run(result.last_agent, again, **turn.options)
        return result

    def run_sync(self, starting_agent: Agent[Any], input: Any, **options: Any) -> RunResult:  # noqa: A002
        """Do what `Runner.run_sync` does, with the same arguments, until the gates pass."""
        turn = _Turn(self._gates, options)
        run_blocking(turn.begin())
        result = Runner.run_sync(starting_agent, input, **options)
        while (again := run_blocking(turn.after(result))) is not None:
            result = Runner.run_sync(result.last_agent, again, **turn.options)
        return result

    def run_streamed(self, starting_agent: Agent[Any], input: Any, **options: Any) -> "GatedStream":  # noqa: A002
        """Do what `Runner.run_streamed` does, with the same arguments, until the gates pass.

        What was streamed of an answer that is then rejected cannot be taken back.
        """
        return GatedStream(_Turn(self._gates, options), starting_agent, input)


class GatedStream:
    """The stream of all runs until the gates pass. Its other attributes are those of the current run's `RunResultStreaming`."""

    def __init__(self, turn: "_Turn", agent: Agent[Any], first_input: Any) -> None:
        self._turn = turn
        self._result: RunResultStreaming = Runner.run_streamed(agent, first_input, **turn.options)

    async def stream_events(self) -> AsyncIterator[StreamEvent]:
        await self._turn.begin()
        while True:
            async for event in self._result.stream_events():
                yield event
            again = await self._turn.after(self._result) if self._result.is_complete else None
            if again is None:
                return
            self._result = Runner.run_streamed(self._result.last_agent, again, **self._turn.options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)


class _Turn:
    """What is counted over all runs for one prompt of the user."""

    def __init__(self, gates: ProjectGates, options: Mapping[str, Any]) -> None:
        self.options = dict(options)  # of the next run
        self._gates, self._run = gates, new_run()
        self._session = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        self._earlier: list[
            Any
        ] = []  # items that the next result does not have, because the server or a session has them
        self._used: Any = None  # the usage of the earlier runs

    async def begin(self) -> None:
        await self._gates.begin(self._session, self._run)

    async def after(self, result: RunResult | RunResultStreaming) -> Any:
        """Return the input of the next run, or None if the agent may stop or waits for the user."""
        if self._used is not None:
            result.context_wrapper.usage.add(self._used)
        if result.interruptions or result.final_output is None:
            return None
        output = result.final_output
        answer = output if isinstance(output, str) else to_json(output, serialize_unknown=True).decode()
        items = [*self._earlier, *result.to_input_list()]
        messages = list(_read_items(items, result))
        prompt = await self._gates.ask(self._session, self._run, messages, answer)
        if prompt is None:
            return None
        self._used = result.context_wrapper.usage
        turns = self.options.get("max_turns", DEFAULT_MAX_TURNS)
        if turns is not None:
            self.options["max_turns"] = max(0, turns - len(result.raw_responses))
        message = {"role": "user", "content": prompt}
        if not (self.options.get("session") or any(map(self.options.get, _BY_SERVER))):
            return [*result.to_input_list(), message]
        if (
            result.last_response_id
            and not self.options.get("conversation_id")
            and "session" not in self.options
        ):
            self.options["previous_response_id"] = result.last_response_id
        self._earlier = items
        return [message]


def _read_items(items: Iterable[Any], result: RunResult | RunResultStreaming) -> Iterator[Message]:
    """Yield the messages of a conversation. What the last run has used is in a record of its own, the last one."""
    for item in items:
        match item:
            case {"type": "function_call", "call_id": identity, "name": name, "arguments": arguments}:
                yield Reply((tool_use(identity, name, arguments),))
            case {"type": "function_call_output", "call_id": identity, "output": output}:
                yield ToolResults((tool_result(identity, output),))
            case {"role": "assistant", "content": content}:
                yield Reply((Text(_text_of(content)),))
            case {"role": "user", "content": content}:
                yield user_message(_text_of(content))
    used = result.context_wrapper.usage
    yield Reply((), usage=Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens))


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "\n".join(
        part.get("text") or json.dumps(part, default=str) for part in parts if isinstance(part, dict)
    )
