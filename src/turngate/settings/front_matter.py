"""Reads the front matter of a Markdown file: flat fields and lists here, nested values such as hooks with PyYAML."""

import json
from collections.abc import Sequence
from typing import Any

from turngate.core.text import truncate
from turngate.extra_install import install_command

Value = str | list[str]
_BLOCK_MARKERS = (">", "|", ">-", "|-")


def split_front_matter(text: str) -> tuple[dict[str, Value], str]:
    """Return the fields between two lines of `---`, and the text after them."""
    lines, end = _find_end(text)
    return (_parse_fields(lines[1:end]), "\n".join(lines[end + 1 :])) if end else ({}, text)


def count_lines_before(text: str, body: str) -> int:
    """Return how many lines of a file are in front of the text after its front matter."""
    return len(text.splitlines()) - len(body.splitlines())


def is_unclosed(text: str) -> bool:
    """Return whether the text begins with a front matter that has no end."""
    return _find_end(text)[1] is None


def nested_lines(text: str, key: str) -> list[str] | None:
    """Return the lines of one key of the front matter, its own value first, or None if the key is missing."""
    lines, end = _find_end(text)
    start = next(
        (number for number, line in enumerate(lines[: end or 0]) if line.startswith(f"{key}:")), None
    )
    if start is None:
        return None
    block = [lines[start].partition(":")[2]]
    for line in lines[start + 1 : end]:
        if line.strip() and line[0] not in " -#":
            break
        block.append(line)
    return block


def _find_end(text: str) -> tuple[list[str], int | None]:
    """Return the lines of a text, and which of them ends the front matter; 0: there is none, None: it has no end."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return lines, 0
    return lines, next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)


def _parse_fields(lines: Sequence[str]) -> dict[str, Value]:
    """Parse the part of YAML that agent files use."""
    fields: dict[str, Value] = {}
    continued: dict[str, list[str]] = {}  # texts of several lines
    key = ""
    for line in lines:
        if line.strip() == "" or line.lstrip().startswith("#"):
            continue
        if line[0] not in " \t-" and ":" in line:
            key, _, value = line.partition(":")
            key = key.strip()
            fields[key] = "" if value.strip() in _BLOCK_MARKERS else _unquote(value)
            continued.pop(key, None)
        elif key and line.lstrip().startswith("- "):
            earlier = fields[key]
            item = _unquote(line.lstrip()[2:])
            if isinstance(earlier, list):
                earlier.append(item)
            else:
                fields[key] = [item]
        elif key and isinstance(text := fields[key], str):
            continued.setdefault(key, [text]).append(line.strip())
    texts = {key: " ".join(parts).strip() for key, parts in continued.items() if isinstance(fields[key], str)}
    return {**fields, **texts}


def as_text(value: Value | None) -> str:
    return value.strip() if isinstance(value, str) else ""


def as_names(value: Value | None) -> tuple[str, ...] | None:
    """Return a list of names, or None for a missing value and for `*`."""
    if value is None or value in ("", "*", ["*"]):
        return None
    items = value if isinstance(value, list) else value.strip("[]").split(",")
    return tuple(name for item in items if (name := _unquote(item)))


def _unquote(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


MAX_LEVELS = 20  # of mappings and sequences inside of each other
MAX_LINE_CHARS = 100  # of a line in a message


class NotUnderstood(ValueError):
    """Raised for a nested value that is not read; the message says why."""


def parse_nested(lines: Sequence[str]) -> Any:
    """Return the value of `nested_lines` as JSON would have it. Raises NotUnderstood.

    An alias, a tag or a key that is given twice is an error: a hook that is misread is worse than one that is reported.
    """
    try:
        import yaml  # noqa: PLC0415 - lazy: few files have nested values
    except ImportError:
        raise NotUnderstood(f"needs PyYAML; install it with: {install_command('agent')}") from None
    try:
        document = yaml.compose("hooks:" + "\n".join(lines), yaml.SafeLoader)
        return _json_value(document, set(), -1)["hooks"]
    except yaml.MarkedYAMLError as error:
        number = error.problem_mark.line if error.problem_mark else 0
        line = truncate(lines[min(number, len(lines) - 1)].strip(), MAX_LINE_CHARS)
        raise NotUnderstood(f"has a line that is not understood: {line}") from None
    except yaml.YAMLError as error:
        raise NotUnderstood(f"is not YAML: {truncate(str(error), MAX_LINE_CHARS)}") from None
    except RecursionError:
        raise NotUnderstood(f"has a line that is not understood: more than {MAX_LEVELS} levels") from None


def _json_value(node: Any, seen: set[int], level: int) -> Any:
    from yaml.constructor import ConstructorError  # noqa: PLC0415 - lazy: as above

    unsupported = ConstructorError(problem_mark=node.start_mark)
    if id(node) in seen or level > MAX_LEVELS:  # seen: the node of an alias
        raise unsupported
    seen.add(id(node))
    match node.id, node.tag.removeprefix("tag:yaml.org,2002:"):
        case "mapping", "map":
            values = {
                str(_json_value(key, seen, level + 1)): _json_value(value, seen, level + 1)
                for key, value in node.value
            }
            if len(values) < len(node.value):
                raise unsupported
            return values
        case "sequence", "seq":
            return [_json_value(item, seen, level + 1) for item in node.value]
        case "scalar", "null":
            return None
        case "scalar", "bool" | "int" | "float":
            try:
                return json.loads(node.value.lower())
            except ValueError:  # such as yes, 0x1F or .inf: a text, as in JSON
                return node.value
        case "scalar", "str" | "timestamp":
            return node.value
        case _:
            raise unsupported
