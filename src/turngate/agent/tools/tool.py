"""Tool, and ToolContext, which every tool gets."""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.agent.background import BackgroundCommands
from turngate.aio.threads import T
from turngate.core.conversation.messages import ToolSpec
from turngate.core.conversation.tools import ToolOutput
from turngate.ports import World
from turngate.project.files import LOCAL, Files, FileVersion


@dataclass
class ToolContext:
    """The folders, the environment and the state that the tools of one agent share."""

    project: str  # absolute
    environ: dict[str, str]  # for Bash
    extra_paths: tuple[str, ...] = ()  # allowed folders outside of the project
    background: BackgroundCommands | None = None  # None: Bash cannot run commands in the background
    start_subagent: Callable[[Mapping[str, Any]], Awaitable[ToolOutput]] | None = None
    todos: list[dict[str, Any]] = field(default_factory=list)
    read_files: dict[str, FileVersion] = field(default_factory=dict)  # path and version when it was read
    world: World | None = None  # None: everything is on this machine
    # The project and the extra paths, resolved once: a command of the agent could replace them by links.
    allowed_folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.is_local:
            self.allowed_folders = resolve_folders(self)

    @property
    def files(self) -> Files:
        return LOCAL if self.world is None else self.world.files

    @property
    def is_local(self) -> bool:
        return not self.files.machine

    async def prepare(self) -> None:
        """Resolve the folders of a project on another machine, before the first command of the agent."""
        if not self.is_local and not self.allowed_folders:
            self.allowed_folders = await self.call(resolve_folders, self)

    async def call(self, function: Callable[..., T], *args: object) -> T:
        """Call a function that reads files of the project: see `World.call`."""
        return function(*args) if self.world is None else await self.world.call(function, *args)


def resolve_folders(context: ToolContext) -> tuple[str, ...]:
    """Return the project and the extra paths without links."""
    names = [context.files.expand_home(folder) for folder in ("", *context.extra_paths)]
    paths = [os.path.normpath(os.path.join(context.project, name)) for name in names]
    return tuple(map(context.files.realpath, paths))


@frozen
class Tool:
    spec: ToolSpec
    # Takes the arguments that `check_arguments` returned.
    run: Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutput]]
    changes: bool = False  # has effects
    edits: bool = False  # has effects on files only
    paths: tuple[str, ...] = ()  # the arguments that are paths
    parallel: bool = False  # neighboring calls in one reply run at once
