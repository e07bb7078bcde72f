"""Tool, and ToolContext, which every tool gets."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from turngate.agent.background_commands import BackgroundCommands
from turngate.core.frozen import frozen
from turngate.core.messages import ToolSpec
from turngate.core.tools import ToolOutput
from turngate.filesystem.real_path import real_path


@dataclass
class ToolContext:
    """The folders, the environment and the state that the tools of one agent share."""

    project: str  # absolute
    environ: dict[str, str]  # for Bash
    extra_paths: tuple[str, ...] = ()  # allowed folders outside of the project
    background: BackgroundCommands | None = None  # None: Bash cannot run commands in the background
    start_subagent: Callable[[Mapping[str, Any]], Awaitable[ToolOutput]] | None = None
    todos: list[dict[str, Any]] = field(default_factory=list)
    read_files: dict[str, float] = field(default_factory=dict)  # path and modification time when it was read
    # The project and the extra paths, resolved once: a command of the agent could replace them by links.
    allowed_folders: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.allowed_folders = tuple(
            real_path(os.path.normpath(os.path.join(self.project, os.path.expanduser(folder))))
            for folder in ("", *self.extra_paths)
        )


@frozen
class Tool:
    spec: ToolSpec
    # Takes the arguments that `check_arguments` returned.
    run: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutput]]
    changes: bool = False  # has effects
    edits: bool = False  # has effects on files only
    paths: tuple[str, ...] = ()  # the arguments that are paths
    parallel: bool = False  # neighbouring calls in one reply run at once


class UserQuestion(Exception):
    """The agent has a question, and waits for its user."""

    def __init__(self, question: str, options: tuple[str, ...] = ()) -> None:
        super().__init__(question)
        self.question = question
        self.options = options
