"""The specification of a tool for a model, and the output of a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngate.core.messages import ToolSpec


@dataclass(frozen=True)
class ToolOutput:
    """The output of a tool, with more than a text."""

    text: str
    key: str = ""  # the chain of the subagent whose result this is; it is delivered once
    is_error: bool = False
    ends_turn: bool = False  # the agent has nothing more to do


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
