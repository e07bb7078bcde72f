"""What `turngate install` has changed in a settings file: a private file in the state folder, to undo it exactly."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

from turngate._frozen import frozen
from turngate.filesystem.real_path import real_path
from turngate.hosts.install.settings_text import Path
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_local_bytes
from turngate.state.files import make_private_dir, open_regular_file, write_and_rename

MAX_RECORD_BYTES = 32 * 1024 * 1024  # a text as JSON, whose characters may be escaped


@frozen
class InstallRecord:
    """One settings file before the lines of Turngate were added."""

    before: str | None  # None: there was no file
    after: tuple[
        str, ...
    ]  # digests of the text with the lines; none if it was changed between two installations
    created: frozenset[Path]
    folders: tuple[str, ...] = ()  # that were made for it

    def restores(self, text: str) -> bool:
        """Return whether the text is exactly what was written, so that `before` is what was there."""
        return digest(text) in self.after


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record_path(state: str, path: str) -> str:
    """Return the record of a settings file."""
    name = hashlib.sha256(real_path(path).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(state, "installs", f"{name}.json")


def read_record(path: str) -> InstallRecord | None:
    """Return a record, or None if there is none that can be read."""
    try:
        value = json.loads(read_local_bytes(path, MAX_RECORD_BYTES))
        return InstallRecord(
            before=value["before"],
            after=tuple(value["after"]),
            created=frozenset(map(tuple, value["created"])),
            folders=tuple(value["folders"]),
        )
    except (OSError, NotARegularFile, FileTooLarge, ValueError, RecursionError, TypeError, KeyError):
        return None


def write_record(path: str, record: InstallRecord, file: str) -> None:
    """Write a record, private because settings hold keys and tokens. Raises OSError with its path."""
    value: dict[str, Any] = {
        "file": file,
        "before": record.before,
        "after": record.after,
        "created": _sorted(record.created),
        "folders": record.folders,
    }
    try:
        make_private_dir(os.path.dirname(path))
        temporary = f"{path}.new"
        fd = open_regular_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        write_and_rename(fd, temporary, path, json.dumps(value).encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _sorted(paths: Iterable[Path]) -> list[list[str]]:
    return sorted(map(list, paths))


def remove_record(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
