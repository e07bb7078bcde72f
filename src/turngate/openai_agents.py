"""The gates of a project around the runs of the OpenAI Agents SDK, which has no place inside a run that can continue it."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Literal

from agents import Agent, Runner, RunResult, RunResultStreaming, StreamEvent
from agents.run import DEFAULT_MAX_TURNS
from pydantic_core import to_json

from turngate.adapters.project_gates import (
    GatedAgent,
    ProjectGates,
    new_run,
    run_blocking,
    tool_result,
    tool_use,
    user_message,
)
from turngate.core.conversation.messages import Message, Reply, Text, ToolResults, Usage


class StopGates(GatedAgent):
    """Hold agents until the gates of a project pass: `await StopGates().run(agent, "…")` instead of `Runner.run(agent, "…")`."""

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
    """The stream of all runs until the gates pass; its other attributes are those of the current `RunResultStreaming`."""

    def __init__(self, turn: "_Turn", agent: Agent[Any], first_input: Any) -> None:
        self._turn, self._agent, self._input = turn, agent, first_input
        self._result: RunResultStreaming | None = None
        self._asking: asyncio.Task[Any] | None = None  # the gates
        self._is_cancelled = False

    async def stream_events(self) -> AsyncIterator[StreamEvent]:
        await self._turn.begin()
        agent, again = self._agent, self._input
        while again is not None and not self._is_cancelled:
            self._result = result = Runner.run_streamed(agent, again, **self._turn.options)
            async for event in result.stream_events():
                yield event
            agent, self._asking = result.last_agent, asyncio.create_task(self._turn.after(result))
            try:
                await asyncio.wait([self._asking])
                again = None if self._asking.cancelled() else self._asking.result()
            finally:
                self._asking.cancel()

    def cancel(self, mode: Literal["immediate", "after_turn"] = "immediate") -> None:
        """End the run, as the SDK does, and gates that run now."""
        self._is_cancelled = True
        if self._asking is not None:
            self._asking.cancel()
        if self._result is not None:
            self._result.cancel(mode)

    def __getattr__(self, name: str) -> Any:
        if self._result is None:
            raise AttributeError(f"the stream has not begun, so it has no attribute {name!r}")
        return getattr(self._result, name)


class _Turn:
    """What is counted over all runs for one prompt of the user."""

    def __init__(self, gates: ProjectGates, options: Mapping[str, Any]) -> None:
        self.options = dict(options)  # of the next run
        self._gates, self._run = gates, new_run()
        self._session = getattr(options.get("session"), "session_id", None) or options.get("conversation_id")
        self._earlier: list[Any] = []  # items that the next result does not have
        self._used: Any = None  # the usage of the earlier runs

    async def begin(self) -> None:
        await self._gates.begin(self._session, self._run)

    async def after(self, result: RunResult | RunResultStreaming) -> Any:
        """Return the input of the next run, or None if the agent may stop or waits for the user."""
        if self._used is not None:
            result.context_wrapper.usage.add(self._used)
        output, options = result.final_output, self.options
        if result.interruptions or output is None:
            return None
        answer = output if isinstance(output, str) else to_json(output, serialize_unknown=True).decode()
        items, used = [*self._earlier, *result.to_input_list()], result.context_wrapper.usage
        usage = Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)
        prompt = await self._gates.ask(self._session, self._run, _read_items(items, usage), answer)
        if prompt is None:
            return None
        self._used = used
        turns = options.get("max_turns", DEFAULT_MAX_TURNS)
        options["max_turns"] = turns and max(0, turns - len(result.raw_responses))
        by_response = any(map(options.get, ("previous_response_id", "auto_previous_response_id")))
        if by_response:
            options["previous_response_id"] = result.last_response_id
        if by_response or options.get("session") or options.get("conversation_id"):
            self._earlier = items
            return prompt
        return [*result.to_input_list(), {"role": "user", "content": prompt}]


def _read_items(items: Iterable[Any], usage: Usage) -> Iterator[Message]:
    """Yield the messages of a conversation, the last reply with the usage of all runs."""
    last = max((n for n, item in enumerate(items) if item.get("role") == "assistant"), default=None)
    for number, item in enumerate(items):
        match item:
            case {"type": "function_call", "call_id": identity, "name": name, "arguments": arguments}:
                yield Reply((tool_use(identity, name, arguments),))
            case {"type": "function_call_output", "call_id": identity, "output": output}:
                yield ToolResults((tool_result(identity, output),))
            case {"role": "assistant", "content": content}:
                yield Reply((Text(_text_of(content)),), usage=usage if number == last else Usage())
            case {"role": "user", "content": content}:
                yield user_message(_text_of(content))
            case _:  # such as reasoning
                pass


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content) if isinstance(content, list) else ""
