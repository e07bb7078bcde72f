"""Where each value of a JSON text is, comments and trailing commas included. Pure: text → positions."""

import re
from collections.abc import Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any

from turngate._frozen import frozen
from turngate.core.text import describe_syntax_error

_SKIPPED = re.compile(r"(?:[\ufeff \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.+-])")
_MAX_DIGITS = 1000  # int() takes 4300 at most
_DECODER = JSONDecoder()  # of strings
_WORDS = {"true": True, "false": False, "null": None}


class NotJson(ValueError):
    """Raised for a text that is not JSON, even with comments; the message says where and why."""


@frozen
class Item:
    """A member of an object, or an item of an array."""

    start: int  # of its key, or of its value
    key: str | None
    node: "Node"
    comma: int | None  # the position of the comma behind it


@frozen
class Node:
    """One value, and where it is: `text[start:end]`."""

    start: int
    end: int
    value: Any
    items: tuple[Item, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.items

    def member(self, key: str) -> Item | None:
        return next((item for item in self.items if item.key == key), None)


def read_json_text(text: str) -> Node | None:
    """Return the value of a text, or None if it holds only blanks and comments. Raises NotJson."""
    scanner = _Scanner(text)
    try:
        start = scanner.skip(0)
        if start == len(text):
            return None
        node = scanner.value(start)
        end = scanner.skip(node.end)
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    if end < len(text):
        raise scanner.error("Extra data", end)
    return node


def skip_blanks_and_comments(text: str, position: int) -> int:
    match = _SKIPPED.match(text, position)
    return match.end() if match else position


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, position: int) -> int:
        end = skip_blanks_and_comments(self.text, position)
        if self.text.startswith("/*", end):
            raise self.problem("this comment has no end", end)
        return end

    def error(self, cause: str, position: int) -> NotJson:
        return NotJson(describe_syntax_error(self.text, JSONDecodeError(cause, self.text, position)))

    def problem(self, cause: str, position: int) -> NotJson:
        column = position - self.text.rfind("\n", 0, position)
        return NotJson(f"line {self.text.count(chr(10), 0, position) + 1}, column {column}: {cause}")

    def value(self, start: int) -> Node:
        match self.text[start : start + 1]:
            case "{":
                items = tuple(self.members(start))
                value: Any = {item.key: item.node.value for item in items}
                return Node(start, self.end_of(start, items), value, items)
            case "[":
                items = tuple(self.elements(start))
                return Node(start, self.end_of(start, items), [item.node.value for item in items], items)
            case '"':
                value, end = self.string(start)
                return Node(start, end, value)
            case _:
                if not (found := _SCALAR.match(self.text, start)):
                    raise self.error("Expecting value", start)
                return Node(start, found.end(), _scalar(found[0]))

    def string(self, start: int) -> tuple[str, int]:
        try:
            value, end = _DECODER.raw_decode(self.text, start)
        except JSONDecodeError as error:
            raise self.error(error.msg, error.pos) from None
        return str(value), end

    def members(self, start: int) -> Iterator[Item]:
        seen = set()
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "}":
            if self.text[position : position + 1] != '"':
                raise self.error("Expecting property name enclosed in double quotes", position)
            key, end = self.string(position)
            if key in seen:
                raise self.problem(f'the key "{key}" is there twice in one object', position)
            seen.add(key)
            colon = self.skip(end)
            if self.text[colon : colon + 1] != ":":
                raise self.error("Expecting ':' delimiter", colon)
            node = self.value(self.skip(colon + 1))
            comma = self.comma(node.end, "}")
            yield Item(position, key, node, comma)
            position = self.skip(node.end if comma is None else comma + 1)

    def elements(self, start: int) -> Iterator[Item]:
        position = self.skip(start + 1)
        while self.text[position : position + 1] != "]":
            node = self.value(position)
            comma = self.comma(node.end, "]")
            yield Item(position, None, node, comma)
            position = self.skip(node.end if comma is None else comma + 1)

    def comma(self, end: int, bracket: str) -> int | None:
        position = self.skip(end)
        if self.text[position : position + 1] not in (",", bracket):
            raise self.error("Expecting ',' delimiter", position)
        return position if self.text[position] == "," else None

    def end_of(self, start: int, items: tuple[Item, ...]) -> int:
        """Return the position behind the closing bracket."""
        if not items:
            return self.skip(start + 1) + 1
        last = items[-1]
        return self.skip(last.node.end if last.comma is None else last.comma + 1) + 1


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if text.lstrip("-").isdigit() and len(text) <= _MAX_DIGITS else float(text)
