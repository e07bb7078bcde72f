"""Reads one JSON file of settings or of a plugin, and describes why it cannot be read."""

import errno
import json
from collections import Counter
from typing import Any, NamedTuple

from turngate.core.constants import reject_constant
from turngate.core.text import COMMENT, describe_syntax_error
from turngate.project.files import Files
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

MAX_FILE_BYTES = 4 * 1024 * 1024


class JsonFile(NamedTuple):
    value: Any
    duplicates: list[str]  # the keys that occur twice in one object


_COMMENT_HINT = 'remove it, or write it as a key that begins with _ or //: "_comment": "…"'


class UnreadableFile(Exception):
    """Raised for a file whose value cannot be read; the message says why."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def read_json(path: str, files: Files) -> JsonFile:
    """Return the value of a file, an object without keys if it is empty. Raises UnreadableFile or FileNotFoundError."""
    try:
        text = read_bytes(path, MAX_FILE_BYTES, files).decode("utf-8-sig")
    except NotARegularFile as error:
        raise UnreadableFile(str(error), error.hint) from None
    except FileTooLarge:
        raise UnreadableFile(f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB") from None
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from None
    except (FileNotFoundError, NotADirectoryError):
        if files.islink(path):
            raise UnreadableFile("is a link to a file that does not exist") from None
        raise FileNotFoundError from None
    except OSError as error:
        message, hint = f"cannot be read: {error.strerror}", None
        if error.errno == errno.ELOOP:
            message = "is a link that leads back to itself, or through too many links"
            hint = "repair the link, or remove it"
        elif isinstance(error, PermissionError):
            hint = "check its permissions"
        raise UnreadableFile(message, hint) from None
    return parse_json(text)


def parse_json(text: str) -> JsonFile:
    """Return the value of a text. Raises UnreadableFile."""
    duplicates: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            duplicates.update(dict.fromkeys(name for name, count in counts.items() if count > 1))
        return value

    try:
        given = text if text.strip() else "{}"
        value = json.loads(given, parse_constant=reject_constant, object_pairs_hook=collect)
        return JsonFile(value, list(duplicates))
    except json.JSONDecodeError as error:
        message = describe_syntax_error(text, error)
        raise UnreadableFile(message, _COMMENT_HINT if message.endswith(COMMENT) else None) from None
    except RecursionError:
        raise UnreadableFile("not readable: it is nested too deeply") from None
    except ValueError as error:
        raise UnreadableFile(f"not JSON: {error}") from None
