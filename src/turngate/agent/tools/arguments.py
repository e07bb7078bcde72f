"""What a model gave to a tool: checked, and with absolute paths that lead where they may."""

import os
import reprlib
from collections.abc import Mapping
from typing import Any

from turngate.agent.tools.base import Tool, ToolContext
from turngate.core.tools import ToolFailed


def absolute(tool: Tool, given: Mapping[str, Any], workplace: ToolContext) -> dict[str, Any]:
    """The input as hooks see it and as the tool takes it. Raises ToolFailed, with a sentence for the model."""
    checked: dict[str, Any] = _checked("input", given, tool.spec.schema)
    for name in tool.paths:
        if name in checked:
            checked[name] = _full(checked[name], workplace)
            real(checked[name], workplace)
    return checked


def real(path: str, workplace: ToolContext) -> str:
    """Where a path leads through all links; what does not exist yet lies where its folder really is.

    Raises ToolFailed when that is not allowed.
    """
    try:
        where = os.path.realpath(path)
        allowed = [os.path.realpath(_full(folder, workplace)) for folder in ("", *workplace.extra_paths)]
    except RecursionError:
        raise ToolFailed(f"{path} is a chain of too many links") from None
    if any(os.path.commonpath((where, folder)) == folder for folder in allowed):
        return where
    raise ToolFailed(f"{path} is not allowed: it lies outside of the project {workplace.project}")


def _full(path: str, workplace: ToolContext) -> str:
    if "\0" in path:
        raise ToolFailed(f"{path!r} is no path: it holds a NUL character")
    full = os.path.normpath(os.path.join(workplace.project, os.path.expanduser(path)))
    return "/" + full.lstrip("/")  # normpath keeps a second slash


_TYPES: Mapping[str, tuple[type, str]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (Mapping, "an object"),
}


def _checked(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    """The part of JSON Schema that our tools use."""
    kind = schema["type"]
    wanted, called = _TYPES[kind]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, wanted) and isinstance(value, bool) == (kind == "boolean")
    if not fits:
        raise ToolFailed(f"`{name}` must be {called}, not {reprlib.repr(value)}")
    if value not in schema.get("enum", (value,)):
        raise ToolFailed(f"`{name}` must be one of {', '.join(schema['enum'])}, not {reprlib.repr(value)}")
    if "minimum" in schema and value < schema["minimum"]:
        raise ToolFailed(f"`{name}` must be at least {schema['minimum']}, not {value}")
    match kind:
        case "string":
            return _text(name, value)
        case "array":
            return [_checked(f"{name}[{n}]", item, schema["items"]) for n, item in enumerate(value)]
        case "object":
            return _fields("" if name == "input" else f"{name}.", value, schema)
        case _:
            return value


def _text(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ToolFailed(f"`{name}` can not be written as UTF-8: it holds half a character") from None
    return value


def _fields(place: str, given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Models give null for what they leave out."""
    known = schema["properties"]
    there = {name: value for name, value in given.items() if value is not None}
    for name in schema["required"]:
        if name not in there:
            raise ToolFailed(f"`{place}{name}` is missing")
    if schema.get("additionalProperties") is False:
        for name in there.keys() - known.keys():
            raise ToolFailed(f"there is no {reprlib.repr(name)}; there is {', '.join(known)}")
    return {n: _checked(f"{place}{n}", v, known[n]) if n in known else v for n, v in there.items()}
