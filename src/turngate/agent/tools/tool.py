"""Tool, ToolContext, which every tool gets, and the check of the arguments of a call, which makes its paths absolute."""

import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.agent.background import BackgroundCommands
from turngate.aio.threads import T
from turngate.core.conversation.messages import ToolSpec
from turngate.core.conversation.tools import ToolFailed, ToolOutput
from turngate.core.text import describe_json, truncate
from turngate.ports import World
from turngate.project.files import LOCAL, Files, FileVersion, MachineUnreachable
from turngate.project.safe_paths import is_inside


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


# Arguments

MAX_PATH_BYTES = 4096  # Linux takes no longer ones


def check_arguments(tool: Tool, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Return the arguments as hooks and the tool get them. It reads files of the project. Raises ToolFailed."""
    checked: dict[str, Any] = _check("input", args, tool.spec.schema)
    for name in tool.paths:
        if name in checked:
            checked[name] = _absolute(checked[name], context)
            resolve_path(checked[name], context)
    return checked


def resolve_path(path: str, context: ToolContext) -> str:
    """Return the path with all links resolved. Raises ToolFailed if it is outside of the allowed folders."""
    if len(os.fsencode(path)) > MAX_PATH_BYTES:
        too_long = os.strerror(errno.ENAMETOOLONG)
        raise ToolFailed(f"{truncate(path, MAX_PATH_BYTES)} cannot be used: {too_long}")
    try:
        resolved = context.files.resolve(path)
    except OSError as error:
        raise ToolFailed(f"{path} cannot be used: {error.strerror}") from None
    except MachineUnreachable as error:
        raise ToolFailed(f"{path} cannot be used: {error}") from None
    if any(is_inside(resolved, folder) for folder in context.allowed_folders):
        return resolved
    raise ToolFailed(f"{path} is not allowed: it is outside of the project {context.project}")


def _absolute(path: str, context: ToolContext) -> str:
    if "\0" in path:
        raise ToolFailed(f"{truncate(path, MAX_PATH_BYTES)!r} is not a path: it has a NUL character")
    absolute = os.path.normpath(os.path.join(context.project, context.files.expand_home(path)))
    return "/" + absolute.lstrip("/")  # normpath keeps a second slash


_TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "an integer"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (Mapping, "an object"),
}


def _check(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    """Check the part of JSON Schema that the tools use."""
    kind = schema["type"]
    expected, description = _TYPES[kind]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, expected) and isinstance(value, bool) == (kind == "boolean")
    if not fits:
        raise ToolFailed(f"`{name}` must be {description}, not {describe_json(value)}")
    if value not in schema.get("enum", (value,)):
        raise ToolFailed(f"`{name}` must be one of {', '.join(schema['enum'])}, not {describe_json(value)}")
    if "minimum" in schema and value < schema["minimum"]:
        raise ToolFailed(f"`{name}` must be at least {schema['minimum']}, not {value}")
    match kind:
        case "string":
            try:
                value.encode()
            except UnicodeEncodeError:
                what = "cannot be encoded as UTF-8: it has half a surrogate pair"
                raise ToolFailed(f"`{name}` {what}") from None
            return value
        case "array":
            return [_check(f"{name}[{n}]", item, schema["items"]) for n, item in enumerate(value)]
        case "object":
            return _check_fields("" if name == "input" else f"{name}.", value, schema)
        case _:
            return value


def _check_fields(prefix: str, values: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema["properties"]
    # Models send null for "not set".
    present = {name: value for name, value in values.items() if value is not None}
    for name in schema["required"]:
        if name not in present:
            raise ToolFailed(f"`{prefix}{name}` is missing")
    if schema.get("additionalProperties") is False:
        for name in present.keys() - properties.keys():
            expected = f"expected one of {', '.join(properties)}"
            raise ToolFailed(f"unknown argument {describe_json(name)}, {expected}")
    return {
        name: _check(f"{prefix}{name}", value, properties[name]) if name in properties else value
        for name, value in present.items()
    }
