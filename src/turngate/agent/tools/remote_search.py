"""What Glob and Grep need of the files of another machine: their names, and for Grep their contents."""

import errno
import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from turngate.agent.tools.search_process import NOT_SEARCHED, any_folder
from turngate.core.conversation.tools import ToolFailed
from turngate.core.globs import matches_names
from turngate.project.files import Files, FoundFile, MachineUnreachable

MAX_FILES = 20_000
MAX_DEPTH = 200  # of folders
MAX_BYTES = 64 * 1024 * 1024
# An expression that is its own text: every file that it matches has this text.
_TEXT = re.compile(r"(?:\\b|\^)?([\w :/,;@%&=<>!\"'-]+)(?:\\b|\$)?", re.ASCII)
# `FOLDER TEXT NAME…`: the names of the files that have a text, one on each line, without those in folders of these names.
FIND_TEXT = """\
cd -P -- "$1" && text=$2 || exit 0; shift 2
for name do shift; set -- "$@" -o -name "$name"; done; shift
find . -type d ! -name . \\( "$@" \\) -prune -o -type f -exec grep -lF -e "$text" {} +
exit 0"""


def find_files(files: Files, query: Mapping[str, Any]) -> list[FoundFile]:
    """Return the files that a search is about; for Grep, `path` may be one. Raises ToolFailed."""
    is_glob, glob = query["tool"] == "Glob", query["pattern"]
    if not is_glob:
        glob = any_folder(query["glob"]) if query.get("glob") else ""
    try:
        found, _ = files.tree(query["resolved"], (".git",) if is_glob else NOT_SEARCHED, MAX_DEPTH)
        found = [file for file in found if is_glob or not file.is_link]  # Grep leaves links out
        return [file for file in found if not glob or matches_names(glob, _parts(file.path, query))]
    except ValueError as error:
        raise ToolFailed(str(error)) from None
    except NotADirectoryError:
        if is_glob:
            raise ToolFailed(f"{query['path']} is not a folder") from None
        return [FoundFile(query["resolved"], os.stat_result((0,) * 10), is_link=False)]
    except FileNotFoundError:
        raise ToolFailed(f"{query['path']} does not exist") from None
    except (OSError, MachineUnreachable) as error:
        raise _failed(query, error) from None


def _parts(path: str, query: Mapping[str, Any]) -> list[str]:
    """Return the names in the path below the searched folder."""
    return path[len(query["resolved"].rstrip("/")) :].split("/")[1:]


def shown_path(path: str, query: Mapping[str, Any]) -> str:
    return os.path.join(query["path"], *_parts(path, query))


def text_of(query: Mapping[str, Any], found: Sequence[FoundFile]) -> str:
    """Return a text that every file with a match has; "" if the expression is not only a text, or one file is searched."""
    is_folder = bool(found) and found[0].path != query["resolved"]
    text = _TEXT.fullmatch(query["pattern"]) if is_folder and not query.get("-i") else None
    return text[1] if text else ""


def with_names(
    found: Sequence[FoundFile], names: Collection[str], query: Mapping[str, Any]
) -> list[FoundFile]:
    """Keep only the files with these names below the searched folder; one with a newline may be any of them."""
    kept = {f"{query['resolved'].rstrip('/')}/{name.removeprefix('./')}" for name in names}
    return [file for file in found if file.path in kept or "\n" in file.path]


def read_files(files: Files, found: Sequence[FoundFile], query: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Return the paths and the contents, in the order of the output. Raises ToolFailed."""
    if len(found) > MAX_FILES:
        raise _too_much(query, f"{len(found):,} files")
    if (size := sum(file.stat.st_size for file in found)) > MAX_BYTES:
        raise _too_much(query, f"{size / 1024 / 1024:,.0f} MiB to search")
    try:
        read = files.fetch([file.path for file in found], MAX_BYTES + 1) if found else {}
    except (OSError, MachineUnreachable) as error:
        raise _failed(query, error) from None
    if sum(map(len, read.values())) > MAX_BYTES:
        raise _too_much(query, f"more than {MAX_BYTES // 1024 // 1024} MiB")
    by_folder = sorted((_parts(path, query)[:-1], path) for path in read)
    return [(shown_path(path, query), read[path]) for _, path in by_folder]


def _failed(query: Mapping[str, Any], error: OSError | MachineUnreachable) -> ToolFailed:
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return _too_much(query, "too many files")
    why = getattr(error, "strerror", None) or error
    return ToolFailed(f"{query['path']} cannot be used: {why}")


def _too_much(query: Mapping[str, Any], what: str) -> ToolFailed:
    program, narrower = ("find", "`path`") if query["tool"] == "Glob" else ("grep", "`path` or `glob`")
    return ToolFailed(
        f"{query['path']} has {what}, which is too much for {query['tool']} on another machine: "
        f"make it narrower with {narrower}, or use `{program}` in Bash"
    )
