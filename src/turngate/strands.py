"""The gates of a project as a hook provider of Strands Agents."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, HookProvider, HookRegistry

from turngate.adapters.project_gates import GatedAgent, new_run, tool_result, tool_use, user_message
from turngate.core.conversation.messages import Message, Reply, Text, ToolResults, Usage

_RUN, _CONTINUES = "turngate_run", "turngate_continues"  # in the state of an invocation
_STOPS = ("end_turn", "stop_sequence")  # the agent has nothing more to do: it neither waits nor has failed


class StopGates(GatedAgent, HookProvider):
    """Hold an agent until the gates of a project pass: `Agent(model=model, hooks=[StopGates()])`."""

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        registry.add_callback(BeforeInvocationEvent, self._begin)
        registry.add_callback(AfterInvocationEvent, self._ask)

    async def _begin(self, event: BeforeInvocationEvent) -> None:
        state = event.invocation_state
        if state.pop(_CONTINUES, False):  # each continuation is an invocation of its own
            return
        state[_RUN] = new_run()
        await self._gates.begin(None, state[_RUN])

    async def _ask(self, event: AfterInvocationEvent) -> None:
        result, state = event.result, event.invocation_state
        if result is None:  # the event of `structured_output` is the same as after an error
            self._gates.notify(
                "the gates were NOT enforced: there was an error, or `structured_output` was called"
            )
        if result is None or (result.stop_reason not in _STOPS and result.structured_output is None):
            return
        if event.resume is None:
            answer = str(result).strip()
            event.resume = await self._gates.ask(
                None, state[_RUN], _read_messages(event.agent.messages), answer
            )
        if event.resume is not None:  # also if another hook continues it: then it is not about to stop
            state[_CONTINUES] = True


def _read_messages(messages: Iterable[Mapping[str, Any]]) -> Iterator[Message]:
    for message in messages:
        blocks = message["content"]
        texts = [block["text"] for block in blocks if "text" in block]
        if message["role"] == "assistant":
            calls = [block["toolUse"] for block in blocks if "toolUse" in block]
            uses = [tool_use(call["toolUseId"], call["name"], call["input"]) for call in calls]
            used: Mapping[str, int] = (message.get("metadata") or {}).get("usage") or {}
            cached = used.get("cacheReadInputTokens", 0) + used.get("cacheWriteInputTokens", 0)
            sent, received = used.get("inputTokens", 0) + cached, used.get("outputTokens", 0)
            usage = Usage(input_tokens=sent, output_tokens=received)
            yield Reply((*map(Text, texts), *uses), usage=usage)
            continue
        results = []
        for result in [block["toolResult"] for block in blocks if "toolResult" in block]:
            parts = [part.get("text") or json.dumps(part, default=str) for part in result["content"]]
            is_error = result["status"] != "success"
            results.append(tool_result(result["toolUseId"], "\n".join(parts), is_error=is_error))
        if results:
            yield ToolResults(tuple(results))
        if texts:
            yield user_message("\n".join(texts))
