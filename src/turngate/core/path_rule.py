"""Does a call of a file tool reach what the path in a permission rule names, such as `src/**` or `~/.ssh/**`?

Paths are compared as they are, and without their links. A search matches if it could come to such a file.
"""

import posixpath
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from turngate.core.text import wildcard_matches

# Returns the path without links, and with a slash at the end if it is a folder; `~/` is the home folder.
Locate = Callable[[str], str]

EDITORS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
SEARCHES = frozenset({"Grep", "Glob", "LS"})
_PATH_KEYS = ("file_path", "notebook_path", "path")


def covered_by(tool: str) -> tuple[str, ...]:
    """Return under which other name a rule with a path covers the tool.

    Claude Code: "Edit rules apply to all built-in tools that edit files. Claude will make a best-effort attempt to
    apply Read rules to all built-in tools that read files like Grep and Glob."
    """
    if tool in EDITORS:
        return ("Edit",)
    return ("Read",) if tool in SEARCHES else ()


def reaches_path(
    rule: str, tool: str, tool_input: Mapping[str, Any], project: str, locate: Locate | None = None
) -> bool:
    """Return whether a call of a tool may come to a file that the rule names."""
    paths = [path for key in _PATH_KEYS if isinstance(path := tool_input.get(key), str)]
    if tool not in SEARCHES:
        return any(_is_named(rule, path, project, locate) for path in paths)
    files = tool_input.get("pattern" if tool == "Glob" else "glob")
    files = files if isinstance(files, str) else ""
    roots = [posixpath.join(path, _literal(files)) if tool == "Glob" else path for path in paths or [project]]
    is_sought = not files or _may_be_equal(posixpath.basename(files), posixpath.basename(rule))
    return is_sought and any(_is_searched(rule, root, project, locate) for root in roots)


def _is_named(rule: str, path: str, project: str, locate: Locate | None) -> bool:
    places = _places(path, project, locate)
    if "/" not in rule:  # a file name anywhere
        return any(wildcard_matches(rule, posixpath.basename(place)) for place in places)
    home = {f"*{rule[1:]}"} if rule.startswith("~/") else set()
    patterns = {rule, *home, *_patterns(rule, project, locate)}
    return any(wildcard_matches(*pair) for pair in product(patterns, {path, *places}))


def _is_searched(rule: str, root: str, project: str, locate: Locate | None) -> bool:
    if locate and not locate(posixpath.join(project, root)).endswith("/"):  # a file, or nothing
        return _is_named(rule, root, project, locate)
    patterns = _patterns(rule, project, locate) if "/" in rule else {"*"}
    return any(_is_below(*pair) for pair in product(patterns, _places(root, project, locate)))


def _is_below(pattern: str, folder: str) -> bool:
    """Return whether the pattern matches a path below the folder: the one begins as the other does."""
    start, wildcard, _ = pattern.partition("*")
    folder = folder.rstrip("/") + "/"
    return start.startswith(folder) or bool(wildcard and folder.startswith(start))


def _places(path: str, project: str, locate: Locate | None) -> set[str]:
    """Return the absolute path as it is written, and without its links."""
    absolute = posixpath.join(project, path)
    real = {locate(absolute).rstrip("/") or "/"} if locate else set()
    return {posixpath.normpath(absolute), *real}


def _patterns(rule: str, project: str, locate: Locate | None) -> set[str]:
    """Return the absolute patterns of a rule, as it is written and without the links in it; `*` crosses folders."""
    if rule.startswith("~/"):
        rule = posixpath.join(locate("~/"), rule[2:]) if locate else f"*{rule[1:]}"
    elif rule.startswith("//"):
        rule = rule[1:]
    else:
        rule = posixpath.join(project, rule.removeprefix("./").removeprefix("/"))
    rule = rule.replace("/**/", "/*")
    start = _literal(rule)
    return {rule, posixpath.join(locate(start), rule[len(start) :])} if locate and start else {rule}


def _literal(pattern: str) -> str:
    """Return the folders at the start of a pattern, up to the first wildcard; of a path, all but its name."""
    end = min((place for mark in "*?[{" if (place := pattern.find(mark)) >= 0), default=len(pattern))
    return pattern[: pattern.rfind("/", 0, end) + 1]


def _may_be_equal(name: str, other: str) -> bool:
    """Return whether a file can have both names, in which `*` is a wildcard; other wildcards are not compared."""
    if any(mark in name for mark in "?[{!"):
        return True
    if "*" not in other:
        return wildcard_matches(name, other)
    if "*" not in name:
        return wildcard_matches(other, name)
    ends = name.rpartition("*")[2], other.rpartition("*")[2]
    return ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])
