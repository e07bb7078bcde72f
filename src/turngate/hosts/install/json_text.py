"""A JSON text with comments: where each value is, and edits that leave every other character as it is. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import Any

from turngate._frozen_dataclass import frozen
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


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, position: int) -> int:
        end = _end_of_match(_SKIPPED, self.text, position)
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
                items, end = self.items(start, "}")
                value: Any = {item.key: item.node.value for item in items}
                return Node(start, end, value, items)
            case "[":
                items, end = self.items(start, "]")
                return Node(start, end, [item.node.value for item in items], items)
            case '"':
                value, end = self.string(start)
                return Node(start, end, value)
            case _:
                if not (found := _SCALAR.match(self.text, start)):
                    raise self.error("Expecting value", start)
                word = found[0]
                is_integer = word.lstrip("-").isdigit() and len(word) <= _MAX_DIGITS
                number = int if is_integer else float
                return Node(start, found.end(), _WORDS[word] if word in _WORDS else number(word))

    def string(self, start: int) -> tuple[str, int]:
        try:
            value, end = _DECODER.raw_decode(self.text, start)
        except JSONDecodeError as error:
            raise self.error(error.msg, error.pos) from None
        return str(value), end

    def items(self, start: int, bracket: str) -> tuple[tuple[Item, ...], int]:
        """Return the members of an object, or the items of an array, and the position behind its closing bracket."""
        found: list[Item] = []
        seen = set()
        position = self.skip(start + 1)
        while self.text[position : position + 1] != bracket:
            key, at = self.key(position) if bracket == "}" else (None, position)
            if key is not None and key in seen:
                raise self.problem(f'the key "{key}" is there twice in one object', position)
            seen.add(key)
            node = self.value(at)
            after = self.skip(node.end)
            if self.text[after : after + 1] not in (",", bracket):
                raise self.error("Expecting ',' delimiter", after)
            comma = after if self.text[after] == "," else None
            found.append(Item(position, key, node, comma))
            position = self.skip(node.end if comma is None else comma + 1)
        return tuple(found), position + 1

    def key(self, position: int) -> tuple[str, int]:
        """Return the key of a member, and where its value begins."""
        if self.text[position : position + 1] != '"':
            raise self.error("Expecting property name enclosed in double quotes", position)
        key, end = self.string(position)
        colon = self.skip(end)
        if self.text[colon : colon + 1] != ":":
            raise self.error("Expecting ':' delimiter", colon)
        return key, self.skip(colon + 1)


BLANKS = "\ufeff \t\r\n"
_COMMENTS_ON_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)

NewItem = tuple[str | None, Any]  # the key, None in an array, and the value


Edit = tuple[int, int, str]  # where a part of the text begins and ends, and what replaces it


def rewrite(text: str, root: Node | None, value: Any) -> str:
    """Return the text for the value of `root`, which was changed in its place; what is the same keeps its characters.

    A text without a value gets one. Raises NotJson if it cannot be changed safely: comments in unusual places are the risk.
    """
    style = _style_of(text, root)
    if root is None:
        start = style.newline if text.strip(BLANKS) and not text.endswith(("\n", "\r")) else ""
        return text + start + style.format((None, value), before="", multiline=True) + style.newline
    parts, position = [], 0
    for start_of_edit, end, new in sorted(_edits(text, root, style), key=lambda edit: edit[0]):
        parts += [text[position:start_of_edit], new]
        position = end
    rewritten = "".join((*parts, text[position:]))
    again = read_json_text(rewritten)
    if again is None or again.value != value:
        raise NotJson("a comment is in an unusual place")
    return rewritten


def _edits(text: str, node: Node, style: "_TextStyle") -> Iterator[Edit]:
    """Yield what makes an object or an array what its value is now; `items` are what it was. Those at one position are in order."""
    if isinstance(node.value, dict):
        members: dict[str | None, Any] = {**node.value}
        pairs = [(item, members.pop(item.key)) for item in node.items if item.key in members]
        new = [*members.items()]
    else:
        values, known = [*node.value], {id(item.node.value) for item in node.items}
        # What was not in the array is in the place of an item that is gone.
        pairs = [
            (item, values.pop(0))
            for item in node.items
            if values and (values[0] is item.node.value or id(values[0]) not in known)
        ]
        new = [(None, each) for each in values]
    for item, value in pairs:
        if value is item.node.value and isinstance(value, dict | list):
            yield from _edits(text, item.node, style)
        elif value != item.node.value:
            start, end = item.node.start, item.node.end
            multiline = "\n" in text[start:end]
            yield (
                start,
                end,
                style.format((None, value), before=_line_indent(text, start), multiline=multiline),
            )
    kept = {item.start for item, _ in pairs}
    yield from _remove(text, node, [item for item in node.items if item.start not in kept])
    yield from _append(text, node, new, style)


@frozen
class JsonStyle:
    """How a formatter prints JSON."""

    indent: str = "  "
    width: int = 80
    tab_width: int = 2


def format_json(value: Any, style: JsonStyle, before: str = "", start: str = "", end: str = "") -> str:
    """Return a value as prettier and biome print it. `before`: the indentation; `start`, `end`: what else is on its line.

    An object stays open that begins with a new line; a list of texts is closed where it fits.
    """
    text = json.dumps(value, ensure_ascii=False)
    inner = before + style.indent
    if isinstance(value, dict) and value:
        last = list(value)[-1]
        starts = {key: f"{inner}{json.dumps(key, ensure_ascii=False)}: " for key in value}
        ends = {key: "" if key == last else "," for key in value}
        lines = [
            f"{starts[key]}{format_json(each, style, inner, starts[key], ends[key])}{ends[key]}"
            for key, each in value.items()
        ]
        return "{\n" + "\n".join(lines) + f"\n{before}}}"
    if isinstance(value, list) and value:
        is_open = any(isinstance(each, dict | list) for each in value)
        if is_open or len((start + text + end).expandtabs(style.tab_width)) > style.width:
            items = (f"{inner}{format_json(each, style, inner, inner)}" for each in value)
            return "[\n" + ",\n".join(items) + f"\n{before}]"
    return text


@frozen
class _TextStyle:
    """How a text is written, so that what is added looks the same."""

    newline: str
    indent: str
    is_multiline: bool
    is_compact: bool  # `{"a":1}`

    def format(self, item: NewItem, *, before: str, multiline: bool) -> str:
        """Return an item; `before` is the indentation of its line."""
        key, value = item
        colon = ":" if self.is_compact and not multiline else ": "
        name = "" if key is None else json.dumps(key, ensure_ascii=False) + colon
        if not multiline:
            separators = (",", ":") if self.is_compact else (", ", ": ")
            return name + json.dumps(value, ensure_ascii=False, separators=separators)
        return name + format_json(value, JsonStyle(self.indent), before, before + name).replace(
            "\n", self.newline
        )


def _style_of(text: str, root: Node | None) -> _TextStyle:
    first = text.find("\n")
    newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
    if root is None or not root.items:
        return _TextStyle(newline, "  ", is_multiline=True, is_compact=False)
    is_multiline = "\n" in text[root.start : root.end]
    is_compact = text[root.items[0].node.start - 1] not in BLANKS
    return _TextStyle(newline, next(_indents(text, root), "  "), is_multiline, is_compact)


def _indents(text: str, node: Node) -> Iterator[str]:
    """Yield by how much the items of each container are indented."""
    outer = _line_indent(text, node.start)
    for item in node.items:
        inner = _line_indent(text, item.start)
        if _is_first_on_line(text, item) and inner.startswith(outer) and inner != outer:
            yield inner[len(outer) :]
        yield from _indents(text, item.node)


def _line_indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _blanks_start(text: str, position: int) -> int:
    """Return where the blanks before this position begin."""
    return len(text[:position].rstrip(BLANKS))


def _is_first_on_line(text: str, item: Item) -> bool:
    return "\n" in text[_blanks_start(text, item.start) : item.start]


# Add


def _append(text: str, node: Node, new: Sequence[NewItem], style: _TextStyle) -> list[Edit]:
    """Return the edits that add items at the end of a container."""
    if not new or not node.items:
        return _fill(text, node, new, style) if new else []
    last = node.items[-1]
    own_line = _is_first_on_line(text, last)
    multiline = "\n" in text[node.start : node.end]
    before = _line_indent(text, last.start)
    separator = style.newline + before if own_line else "" if style.is_compact else " "
    items = [separator + style.format(item, before=before, multiline=multiline) for item in new]
    if last.comma is not None:
        position = last.comma + 1
        new_text = "".join(f"{item}," for item in items)
    else:
        position = last.node.end
        new_text = ",".join(items)
    # Comments on this line are about what is before them.
    end = _end_of_match(_COMMENTS_ON_LINE, text, position) if own_line else position
    comma = [] if last.comma is not None else [(position, position, ",")]
    return [*comma, (end, end, new_text)]


def _end_of_match(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _fill(text: str, node: Node, new: Sequence[NewItem], style: _TextStyle) -> list[Edit]:
    """Return the edit that adds items to a container without any; a comment in it stays before them."""
    closing = node.end - 1
    position = _blanks_start(text, closing)
    if not style.is_multiline and "\n" not in text[position:closing]:
        items = [style.format(item, before="", multiline=False) for item in new]
        return [(closing, closing, ("," if style.is_compact else ", ").join(items))]
    outer = _line_indent(text, node.start)
    before = style.newline + outer + style.indent
    items = [before + style.format(item, before=outer + style.indent, multiline=True) for item in new]
    if "\n" in text[position:closing]:
        return [(position, position, ",".join(items))]
    return [(closing, closing, ",".join(items) + style.newline + outer)]


# Remove


def _remove(text: str, node: Node, removed: Sequence[Item]) -> list[Edit]:
    """Return the edits that take items out of a container, each with its comma and the blanks before it."""
    if not removed:
        return []
    kept = [item for item in node.items if item not in removed]
    gaps = list(_gaps(node))
    if not kept and not any(text[start:end].strip(BLANKS) for start, end in gaps):
        return [(node.start + 1, node.end - 1, "")]
    edits = []
    for item in node.items:
        if item in removed:
            before = next(gap for gap in gaps if gap[1] == item.start)
            edits.append((_removal_start(text, item, before), item.node.end, ""))
            edits += _without_comma(item)
    last = node.items[-1]
    if kept and last in removed and last.comma is None:
        edits += _without_comma(kept[-1])
    return edits


def _without_comma(item: Item) -> list[Edit]:
    return [] if item.comma is None else [(item.comma, item.comma + 1, "")]


def _gaps(node: Node) -> Iterator[tuple[int, int]]:
    """Yield where blanks and comments can be: before each item, before its comma, and before the closing bracket."""
    position = node.start + 1
    for item in node.items:
        yield position, item.start
        position = item.node.end
        if item.comma is not None:
            yield position, item.comma
            position = item.comma + 1
    yield position, node.end - 1


def _removal_start(text: str, item: Item, before: tuple[int, int]) -> int:
    """Return where the blanks before an item begin, without the end of a line comment that would go on otherwise."""
    start = _blanks_start(text, item.start)
    comments = _COMMENT.findall(text[before[0] : before[1]])
    end = item.node.end if item.comma is None else item.comma + 1
    if not comments or comments[-1].startswith("/*") or text[end : end + 1] in ("\r", "\n"):
        return start
    return text.find("\n", start, item.start) + 1 or start
