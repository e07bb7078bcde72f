"""The names of a tool, its specification for a model, and its output."""

import json
from collections.abc import Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.checkpoints import WaitingAgent
from turngate.core.conversation.messages import ToolSpec

# The tools of the built-in agent; `agent/tools` implements them.
TOOL_NAMES = tuple("Bash BashOutput KillShell Read Write Edit Glob Grep TodoWrite AskUser Task".split())
READ_ONLY = ("Read", "Glob", "Grep")
# Other names under which a model may call a tool, and under which hooks, rules and lists may name it.
TOOL_ALIASES: Mapping[str, str] = {"Agent": "Task"}
DEFAULT_AGENT_TYPE = "general-purpose"  # of a Task call that names none


def resolve_tool(name: str) -> str:
    return TOOL_ALIASES.get(name, name)


def tool_names(name: str) -> tuple[str, ...]:
    """Return all names of a tool, its own one first."""
    own = resolve_tool(name)
    return (own, *(alias for alias, tool in TOOL_ALIASES.items() if tool == own))


@frozen
class ToolOutput:
    text: str  # for the model
    response: Any = None  # for hooks, `tool_response`: the output as an object; None: the text
    key: str = ""  # the chain of the subagent whose result this is; it is delivered once
    is_error: bool = False
    ends_turn: bool = False  # the agent has nothing more to do
    question: str | None = None  # which the user answers with the next message
    waiting: WaitingAgent | None = None  # whether the subagent waits for the user's approval; None: as before
    change: tuple[str, str] | None = None  # the text of a file before and after, for the user


def response_text(response: Any) -> str:
    """Return a tool's response as the text for the model; hooks may give any JSON as `updatedToolOutput`."""
    match response:
        case str():
            return response
        case {"stdout": str(stdout), **rest}:
            stderr = rest.get("stderr")
            return "\n".join(part for part in (stdout, stderr) if isinstance(part, str) and part)
        case [{"type": "text", "text": str()}, *_]:
            return "\n".join(str(block.get("text", "")) for block in response if isinstance(block, dict))
        case _:
            return json.dumps(response, ensure_ascii=False)


class ToolFailed(Exception):
    """The tool did not do what the model asked for; the text is for the model."""


def tool_spec(
    name: str, description: str, properties: Mapping[str, Any], *, required: tuple[str, ...]
) -> ToolSpec:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)
