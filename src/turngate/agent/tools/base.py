"""What a tool is, and where it works."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from turngate.core.messages import ToolSpec
from turngate.core.tools import ToolOutput


@dataclass
class ToolContext:
    """Where the tools of one session work, and what they remember."""

    project: str  # absolute
    environ: dict[str, str]  # for Bash
    extra_paths: tuple[str, ...] = ()  # folders outside of the project that are allowed
    start_subagent: Callable[[Mapping[str, Any]], Awaitable[ToolOutput]] | None = None
    todos: list[dict[str, Any]] = field(default_factory=list)
    seen: dict[str, float] = field(default_factory=dict)  # files that were read, and how old they were then


@dataclass(frozen=True)
class Tool:
    spec: ToolSpec
    run: Callable[
        [Mapping[str, Any], ToolContext], "Awaitable[str | ToolOutput]"
    ]  # takes what `absolute` gave
    changes: bool = False  # changes things
    edits: bool = False  # changes files only
    paths: tuple[str, ...] = ()  # the inputs that are paths
    parallel: bool = False  # several that an answer asks for in a row run at once


class UserQuestion(Exception):
    """The agent has a question, and waits for its user."""

    def __init__(self, question: str, options: tuple[str, ...] = ()) -> None:
        super().__init__(question)
        self.question = question
        self.options = options
