"""The messages of a conversation, independent of the library that sends them to a model."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.text import CamelCaseAccess

# Where a user message comes from.
Origin = Literal["user", "stop_hook", "context", "summary", "subagent", "background"]
StopReason = Literal["end_turn", "tool_use", "max_tokens", "refusal"]
AgentRole = Literal["main", "sub", "judge"]  # which list of a scripted model answers; "sub" is a subagent


@frozen
class Text:
    text: str


@frozen
class ToolUse:
    id: str
    name: str
    input: Mapping[str, Any]


@frozen(kw_only=True)
class Usage(CamelCaseAccess):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0

    @property
    def total_input(self) -> int:
        """All tokens that were sent, cached or not."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens

    @property
    def total(self) -> int:
        return self.total_input + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(**{name: value + getattr(other, name) for name, value in vars(self).items()})


@frozen
class UserMessage:
    """A message to the model, except tool results."""

    text: str
    origin: Origin = "user"


@frozen
class Reply:
    blocks: tuple[Text | ToolUse, ...]
    stop_reason: StopReason = "end_turn"
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    id: str = ""
    cost: float | None = None  # US dollars, if the price of the model is known

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))


@frozen
class Evaluation:
    """What a hook used of its model, also when the evaluation failed."""

    model: str
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0  # US dollars; None if the price of a request is unknown

    def with_request(self) -> "Evaluation":
        """Count a request that was sent; its reply may never arrive."""
        return replace(self, requests=self.requests + 1, cost=None)

    def with_failure(self) -> "Evaluation":
        """Count a request that the provider did not answer, and does not charge."""
        return replace(self, requests=self.requests + 1)

    def with_reply(self, reply: Reply) -> "Evaluation":
        cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost
        return Evaluation(reply.model or self.model, self.requests + 1, self.usage + reply.usage, cost)


@frozen
class ToolResult:
    tool_use_id: str
    content: str
    is_error: bool = False


@frozen
class ToolResults:
    results: tuple[ToolResult, ...]


Message = UserMessage | Reply | ToolResults


@frozen
class ToolSpec:
    name: str
    description: str
    schema: Mapping[str, Any]


@frozen(kw_only=True)
class ModelRequest:
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    agent: AgentRole = "main"
    schema: Mapping[str, Any] | None = None  # JSON Schema of the expected answer
