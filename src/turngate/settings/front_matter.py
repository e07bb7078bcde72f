"""Read the front matter of a Markdown file: `key: value`, folded lines, and lists with dashes or brackets.

Parse the nested part of a front matter: hooks in the subset of YAML that agent files use.

Mappings, sequences and scalars in block style, and JSON in flow style. Anything else is an error, because a hook that is
misread is worse than one that is reported.
"""

import json
import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Value = str | list[str]
_BLOCK_MARKERS = (">", "|", ">-", "|-")


def split_front_matter(text: str) -> tuple[dict[str, Value], str]:
    """Return the fields between two lines of `---`, and the text after them."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return {}, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return {}, text
    return _parse_fields(lines[1:end]), "\n".join(lines[end + 1 :])


def count_lines_before(text: str, body: str) -> int:
    """Return how many lines of a file are in front of the text after its front matter."""
    return len(text.splitlines()) - len(body.splitlines())


def is_unclosed(text: str) -> bool:
    """Return whether the text begins with a front matter that has no end."""
    lines = text.lstrip("\ufeff").splitlines()
    return bool(lines) and lines[0].strip() == "---" and all(line.strip() != "---" for line in lines[1:])


def nested_lines(text: str, key: str) -> list[str] | None:
    """Return the lines of one key of the front matter, its own value first, or None if the key is missing."""
    lines = text.lstrip("\ufeff").splitlines()
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    start = next((number for number, line in enumerate(lines[:end]) if line.startswith(f"{key}:")), None)
    if not lines or lines[0].strip() != "---" or start is None:
        return None
    block = [lines[start].partition(":")[2]]
    for line in lines[start + 1 : end]:
        if line.strip() and line[0] not in " -#":
            break
        block.append(line)
    return block


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
_TOO_DEEP = f"more than {MAX_LEVELS} levels"


class NotUnderstood(ValueError):
    """Raised for a line that is not in the subset; the message is that line."""


class _Line(NamedTuple):
    indent: int
    text: str


def parse_block(lines: Sequence[str]) -> Any:
    """Return the value of an indented block. Raises NotUnderstood."""
    kept = deque(
        _Line(len(line) - len(line.lstrip(" ")), line.strip())
        for line in lines
        if line.strip() and not line.lstrip().startswith("#")
    )
    for line in lines:
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise NotUnderstood(repr(line))
    try:
        value = _scalar(kept[0].text) if len(kept) == 1 and kept[0].text[0] in "{[" else _parse_whole(kept)
    except RecursionError:
        raise NotUnderstood(_TOO_DEEP) from None
    if _is_deep(value):
        raise NotUnderstood(_TOO_DEEP)
    return value


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_LEVELS + 1):
        level = [item for each in level for item in _items(each)]
    return bool(level)


def _items(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


_KEY = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^\s"'\[\]{}#&*!|>%@`,:][^\s:]*)):(?:\s+(.*))?""")


# Each function takes its lines from the front of the deque, so that every line is read once on each level.


def _parse_whole(lines: deque[_Line]) -> Any:
    if not lines:
        return None
    value = _parse_sequence(lines) if lines[0].text.startswith("-") else _parse_mapping(lines)
    if lines:
        raise NotUnderstood(lines[0].text)
    return value


def _parse_sequence(lines: deque[_Line]) -> list[Any]:
    indent, items = lines[0].indent, list[Any]()
    while lines and lines[0].indent == indent and re.match(r"-(?:\s|$)", lines[0].text):
        text = lines.popleft().text
        first = text[1:].strip()
        if not first:
            items.append(_parse_whole(_take_deeper(lines, indent)))
        elif _KEY.fullmatch(first):
            body = _take_deeper(lines, indent)
            body.appendleft(_Line(indent + len(text) - len(text[1:].lstrip()), first))
            items.append(_parse_whole(body))
        else:
            items.append(_scalar(first))
    return items


def _parse_mapping(lines: deque[_Line]) -> dict[str, Any]:
    indent, values = lines[0].indent, dict[str, Any]()
    while lines and lines[0].indent == indent:
        text = lines.popleft().text
        match = _KEY.fullmatch(text)
        if match is None:
            raise NotUnderstood(text)
        key = match[1] or match[2] or match[3] or ""
        if key in values:
            raise NotUnderstood(text)
        if match[4] and not match[4].startswith("#"):
            values[key] = _scalar(match[4])
        else:
            values[key] = _parse_whole(_take_deeper(lines, indent, sequences=True))
    return values


def _take_deeper(lines: deque[_Line], indent: int, *, sequences: bool = False) -> deque[_Line]:
    """Take the leading lines below `indent`; a sequence may begin at the indent of its key."""
    body: deque[_Line] = deque()
    while lines:
        is_item = sequences and lines[0].indent == indent and lines[0].text.startswith("-")
        if lines[0].indent <= indent and not is_item:
            break
        body.append(lines.popleft())
    return body


_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
MAX_NUMBER_CHARS = 100  # a longer one is a text
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _scalar(text: str) -> Any:
    """Return a word, a number, a quoted string, JSON in brackets, or the text itself."""
    if text[:1] in '"[{':
        try:
            return json.loads(text)
        except ValueError:
            raise NotUnderstood(text) from None
    if text.startswith("'"):
        if len(text) < 2 or not text.endswith("'"):
            raise NotUnderstood(text)
        return text[1:-1].replace("''", "'")
    if text[0] in "&*!|>%@`":
        raise NotUnderstood(text)
    text = re.split(r"\s#", text, maxsplit=1)[0].strip()
    if text in _WORDS:
        return _WORDS[text]
    if len(text) < MAX_NUMBER_CHARS and _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text
