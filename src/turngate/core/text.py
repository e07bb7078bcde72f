"""Truncate, describe and clean texts; imports nothing of Turngate."""

import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

MAX_DESCRIPTION_CHARS = 60
MAX_URL_CHARS = 300
MAX_ERROR_CHARS = 1000
MAX_SHOWN_LINE_CHARS = 300

# Truncate


def truncate(text: str, limit: int, note: str | None = None) -> str:
    """Return at most `limit` characters, the last of them an ellipsis if any are left out; or a `note`, which does not count, in its place."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if note is None else text[:limit] + note


def omission_note(count: int, unit: str) -> str:
    return f"\n… [{count:,} {unit} left out] …\n"


def keep_ends(text: str, head: int, tail: int, note: str | None = None) -> str:
    """Return the first `head` and the last `tail` characters, with the note between them; its `{:,}` is the number of those left out."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    middle = omission_note(left_out, "characters") if note is None else note.format(left_out)
    return text[:head] + middle + text[len(text) - tail :]


def truncate_middle(text: str, limit: int, saved_as: str | None = None) -> str:
    """Return the ends of a text that is longer than `limit`, and a note; together at most `limit` characters."""
    if len(text) <= limit:
        return text
    where = f"the whole text is in {saved_as}" if saved_as else "the whole text could not be kept"
    note = f"\n… [about {len(text) - limit:,} characters left out; {where}] …\n"
    room = max(0, limit - len(note))
    return text[: (room + 1) // 2] + note + text[len(text) - room // 2 :]


def truncate_bytes(text: str, limit: int) -> str:
    """Return at most `limit` bytes of UTF-8 from the beginning of a text."""
    data = text[: limit + 1].encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return data[: max(0, limit - 4)].decode("utf-8", "ignore") + " …"


def truncate_bytes_left(text: str, limit: int) -> str:
    """Return at most `limit` bytes of UTF-8 from the end of a text."""
    data = text[-limit - 1 :].encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return "… " + data[len(data) - max(0, limit - 4) :].decode("utf-8", "ignore")


def truncate_bytes_middle(text: str, limit: int) -> str:
    """Return about `limit` bytes of UTF-8, a third of them from the beginning."""
    size = len(text.encode("utf-8", "replace"))
    return replace_surrogates(text) if size <= limit else join_ends(text, text, limit, size - limit)


def join_ends(head: str, tail: str, limit: int, left_out: int) -> str:
    """Return the beginning of `head`, a note about `left_out` bytes, and the end of `tail`."""
    note = f"[… {left_out:,} bytes in the middle are left out …]"
    first, last = truncate_bytes(head, limit // 3), truncate_bytes_left(tail, limit - limit // 3)
    return f"{first}\n\n{note}\n\n{last}"


# Describe


def describe(value: Any) -> str:
    """Return a Python value in the words of an error message."""
    match value:
        case Mapping():
            return "a dict"
        case list() | tuple():
            return "a list"
        case int() if abs(value) >= 10**60:  # repr() raises for an integer of more than 4300 digits
            return "a number of more than 60 digits"
        case str() | int() | float() | None:
            return truncate(repr(value), MAX_DESCRIPTION_CHARS)
        case _:
            return f"of the type {type(value).__name__}"


def describe_json(value: Any) -> str:
    """Return a JSON value in the words of an error message."""
    match value:
        case dict():
            return "an object"
        case None:
            return "null"
        case str() | bool() | float():
            # json.dumps() leaves no lone surrogate: it escapes what is not ASCII.
            return truncate(json.dumps(value), MAX_DESCRIPTION_CHARS)
        case _:
            return describe(value)


def describe_name(name: str) -> str:
    """Return the key of a JSON object for a message: truncated, lone surrogates escaped."""
    return truncate(name.encode("utf-8", "backslashreplace").decode("utf-8"), MAX_DESCRIPTION_CHARS)


def quote_name(name: str) -> str:
    """Return a name in quotes that it does not contain, as `repr` does, but double ones where possible."""
    if '"' not in name:
        return f'"{name}"'
    return f"'{name}'" if "'" not in name else '"' + name.replace('"', '\\"') + '"'


def describe_url(url: str) -> str:
    """Return a URL for a message: on one line, without a user name and a password."""
    if "@" in url:
        url = re.sub(r"//[^/?#]*@", "//…@", url)
    return truncate(printable(url[:1000]), MAX_URL_CHARS)


def describe_exception(raised: BaseException) -> str:
    """Return the type and the truncated message of an exception."""
    try:
        message = str(raised)[:MAX_ERROR_CHARS]
    except Exception:  # noqa: BLE001 - `__str__` of another program's exception may raise
        message = ""
    return f"{type(raised).__name__}: {message}" if message else type(raised).__name__


# Clean


def one_line(text: str, limit: int | None = None) -> str:
    """Return a text with each run of white space as one blank, truncated to `limit` characters."""
    line = " ".join(text.split())
    return line if limit is None else truncate(line, limit)


def first_lines(text: str, limit: int, rest: str) -> list[str]:
    """Return at most `limit` lines of a text without controls, then how many were left out; `rest`: where they are."""
    lines = strip_controls(text).strip().splitlines() or [""]
    shown = [truncate(line, MAX_SHOWN_LINE_CHARS) for line in lines[:limit]]
    left_out = len(lines) - limit
    return [*shown, f"… {left_out} more lines; {rest}"] if left_out > 0 else shown


# Sequences first, then single characters: controls except newline and tab, marks that change the direction of the
# text, and characters that are not visible. The joiners U+200C and U+200D stay: Persian and emoji need them.
_CONTROLS = (
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
    r"|[\U000e0000-\U000e007f]"
)
_ASCII_CONTROLS = bytes((*range(0x09), *range(0x0B, 0x20), 0x7F))


def strip_controls(text: str) -> str:
    """Remove what moves the cursor, changes the terminal's state, reverses the order of characters or is invisible. See `SafeStream`."""
    if text.isascii() and len(data := text.encode()) == len(data.translate(None, _ASCII_CONTROLS)):
        return text  # as most texts: fast, because transcripts are long
    shown = re.sub(_CONTROLS, "", text.replace("\r\n", "\n")).replace("\u2028", " ").replace("\u2029", " ")
    return shown if shown.isascii() else replace_surrogates(shown)


def printable(text: str) -> str:
    """Return a text on one line, without terminal control characters."""
    return one_line(strip_controls(text))


def indent(text: str) -> str:
    """Indent every line by two blanks, so that none of them looks like a heading of Turngate."""
    return "\n".join("  " + line for line in text.splitlines())


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates: JSON and Python allow them in a string, UTF-8 does not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def wildcard_matches(pattern: str, text: str) -> bool:
    """Return whether the text matches; `*` stands for any characters, and nothing else has a meaning."""
    return fnmatchcase(text, re.sub(r"[?\[]", r"[\g<0>]", pattern))


BLANKS = "\ufeff \t\r\n"  # around JSON
COMMENT = "comments are not allowed in JSON"


def describe_syntax_error(text: str, error: json.JSONDecodeError) -> str:
    """Return line, column and cause, with better words for common mistakes than those of the json module."""
    position, cause = error.pos, error.msg[0].lower() + error.msg[1:]
    rest = text[position:].lstrip()
    before = text[:position].rstrip()
    if rest.startswith(("//", "/*", "#")):
        cause = COMMENT
    elif (rest[:1] in ("}", "]") and before.endswith(",")) or "trailing comma" in cause:
        # Python 3.13 points at the comma, older versions behind it.
        position = text.rindex(",", 0, position + 1)
        cause = "a comma before the closing bracket is not allowed in JSON"
    elif error.msg == "Extra data":
        cause = "there is more text after the JSON value"
    elif error.msg.startswith("Unterminated string"):
        cause = "this string has no closing quote"
    elif rest.startswith("'"):
        cause = 'strings need double quotes (")'
    line = text.count("\n", 0, position) + 1
    return f"not JSON at line {line}, column {position - text.rfind(chr(10), 0, position)}: {cause}"


def json_problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    return "nested too deeply"


def is_truncated(body: str, error: Exception) -> bool:
    """Return whether the JSON is valid up to the end of the text."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.pos >= len(body) or error.msg.startswith("Unterminated string")


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


class CamelCaseAccess:
    """Also offers each field in camel case: `event.lastAssistantMessage`."""

    def __getattr__(self, name: str) -> Any:
        field = snake_case(name)
        if field == name or field.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return getattr(self, field)


@lru_cache(maxsize=4096)
def closest_word(word: str, known: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches  # noqa: PLC0415 # lazy: few hooks misspell their decision

    return next(iter(get_close_matches(word.strip().lower()[:40], known, 1, 0.7)), None)
