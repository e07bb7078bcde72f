"""What git prints, as values: names of files, lists of changes, patches. Any name and any content may occur in them."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from turngate._frozen_dataclass import frozen

# filtered: only a filter of git could tell whether the file differs from a commit
ChangeKind = Literal["added", "deleted", "modified", "renamed", "filtered"]

_ESCAPES = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_ESCAPE = re.compile(r"((?:\\[0-7]{3})+)|\\(.)", re.DOTALL)
_RAW_LINE = re.compile(r":(\d{6}) (\d{6}) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*\t(.*)")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@frozen
class Change:
    """One file that differs from what it was; paths are relative to the project."""

    path: str
    kind: ChangeKind
    old_path: str | None = None  # of a file that was renamed
    old_mode: str = ""  # as git writes it, such as 100755; without git empty
    mode: str = ""
    is_same_content: bool = False  # only its mode has changed


class Line(NamedTuple):  # of which there may be many
    """One line of a patch, with its number in the file as it is now; a removed line has that of the line after it."""

    number: int
    text: str
    kind: Literal["added", "removed", "kept"]


@frozen
class FilePatch:
    path: str
    lines: tuple[Line, ...]

    def added(self) -> Iterator[Line]:
        return (line for line in self.lines if line.kind == "added")

    def removed(self) -> Iterator[Line]:
        return (line for line in self.lines if line.kind == "removed")


def unquote_path(text: str) -> str:
    """Return the name of a file that git has quoted as in C; bytes that are not UTF-8 become surrogates."""
    if not (len(text) > 1 and text.startswith('"') and text.endswith('"')):
        return text
    return _ESCAPE.sub(_unescape, text[1:-1])


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        data = bytes(int(number, 8) & 0xFF for number in match[1].split("\\")[1:])
        return data.decode("utf-8", "surrogateescape")
    return _ESCAPES.get(match[2], match[0])


def read_changes(text: str) -> tuple[Change, ...]:
    kinds: dict[str, ChangeKind] = {"A": "added", "C": "added", "D": "deleted", "R": "renamed"}
    changes = []
    for match in filter(None, map(_RAW_LINE.fullmatch, text.split("\n"))):
        old_mode, mode, old_id, new_id, status, names = match.groups()
        paths = [unquote_path(name) for name in names.split("\t")]
        kind, old_path = kinds.get(status, "modified"), paths[0] if status == "R" else None
        is_same = old_id == new_id
        changes.append(Change(paths[-1], kind, old_path, old_mode, mode, is_same_content=is_same))
    return tuple(changes)


def read_filtered(text: str) -> tuple[str, ...]:
    """Return the files that only a filter could compare, in the output of our scripts."""
    lines = (line.partition("\t") for line in text.split("\n"))
    return tuple(unquote_path(name) for mark, _, name in lines if mark == "filtered")


def read_patches(text: str) -> tuple[FilePatch, ...]:
    """Return the patches in the output of `git diff --patch`. One that was truncated ends where the text ends."""
    lines = text.split("\n")
    patches: list[tuple[str, list[Line]]] = []
    place, old = 0, ""
    while place < len(lines):
        line = lines[place]
        place += 1
        if line.startswith("--- "):
            old = _read_name(line)
        elif line.startswith("+++ "):
            patches.append((_read_name(line) or old, []))
        elif patches and (hunk := _HUNK.match(line)):
            read, place = _read_hunk(lines, place, hunk)
            patches[-1][1].extend(read)
    return tuple(FilePatch(path, tuple(read)) for path, read in patches)


def _read_name(line: str) -> str:
    """Return the path in a line such as `+++ b/name`, or nothing for /dev/null."""
    name = unquote_path(line[4:].removesuffix("\t"))
    return "" if name == "/dev/null" else name[2:]


def _read_hunk(lines: Sequence[str], place: int, hunk: re.Match[str]) -> tuple[list[Line], int]:
    """Return the lines of a hunk and the place after it. The header says how many there are: content may look like one."""
    old_left, new_left = int(hunk[2] or 1), int(hunk[4] or 1)
    number = int(hunk[3]) + (new_left == 0)
    read: list[Line] = []
    while place < len(lines) and (old_left or new_left):
        mark, text = lines[place][:1], lines[place][1:].removesuffix("\r")
        place += 1
        if mark == "+":
            read.append(Line(number, text, "added"))
        elif mark == "-":
            read.append(Line(number, text, "removed"))
        elif mark == " ":
            read.append(Line(number, text, "kept"))
        else:  # \ No newline at end of file
            continue
        old_left -= mark != "+"
        new_left -= mark != "-"
        number += mark != "-"
    return read, place


def show_path(path: str) -> str:
    """Return a path for a message: as it is, or quoted with escapes if it is not printable or has quotes or blanks."""
    if path and path.isprintable() and not any(char in path for char in " \"'\\"):
        return path
    shown = path.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else _escape(char) for char in shown) + '"'


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # a byte that is not UTF-8
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")
