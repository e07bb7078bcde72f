"""Does a call of a file tool reach what the path in a permission rule names, such as `src/**` or `~/.ssh/**`?

Paths are compared as they are, and without their links. A search matches if it could come to such a file.
"""

import posixpath
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from typing import Any

from turngate.core.permissions.globs import expand_braces
from turngate.core.text import wildcard_matches

# Returns the path without links, and with a slash at the end if it is a folder; `~/` is the home folder.
Locate = Callable[[str], str]

EDITORS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
SEARCHES = frozenset({"Grep", "Glob", "LS"})
FILE_TOOLS = EDITORS | SEARCHES | {"Read"}
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
    is_sought = not files or _may_be_sought(posixpath.basename(files), rule, project, locate)
    return any(
        _is_named(rule, root, project, locate) or (is_sought and _is_searched(rule, root, project, locate))
        for root in roots
    )


def _is_named(rule: str, path: str, project: str, locate: Locate | None) -> bool:
    """Return whether the rule names the path or, as in a .gitignore, a folder above it."""
    places = _places(path, project, locate)
    return any(_is_any(each, path, places, project, locate) for each in _alternatives(rule))


def _is_any(rule: str, path: str, places: set[str], project: str, locate: Locate | None) -> bool:
    if "/" not in rule:  # the name of a file or a folder anywhere
        roots = _places(project, project, locate)
        names = {name for place in places for name in _names_below(place, roots)}
        return any(_matches(rule, name) for name in names)
    home = {f"*{rule[1:]}"} if rule.startswith("~/") else set()
    patterns = {rule, *home, *_patterns(rule, project, locate)}
    patterns |= {f"{pattern}/*" for pattern in patterns}
    return any(_matches(*pair) for pair in product(patterns, {path, *places}))


def _names_below(place: str, roots: set[str]) -> list[str]:
    """Return the names in a path, without those of the folders above the project."""
    root = next((each for each in roots if place.startswith(f"{each}/")), "")
    return place[len(root) :].split("/")[1:]


@lru_cache(maxsize=1024)
def _alternatives(rule: str) -> tuple[str, ...]:
    """Return the rule without a slash at its end, and each alternative of `{a,b}` in it; with too many, all paths."""
    rule = _ROOTS.get(rule) or rule.rstrip("/")
    alternatives = expand_braces(rule)
    return ("**",) if alternatives is None else (rule, *alternatives)


_ROOTS = {".": "./**", "./": "./**", "/": "/**", "//": "//**", "~": "~/**", "~/": "~/**"}


def _is_searched(rule: str, root: str, project: str, locate: Locate | None) -> bool:
    if locate and not locate(posixpath.join(project, root)).endswith("/"):  # a file, or nothing
        return _is_named(rule, root, project, locate)
    alternatives = _alternatives(rule)
    if any("/" not in each for each in alternatives):
        return True
    patterns = {pattern for each in alternatives for pattern in _patterns(each, project, locate)}
    patterns |= {f"{pattern}/*" for pattern in patterns}
    return any(_is_below(*pair) for pair in product(patterns, _places(root, project, locate)))


def _is_below(pattern: str, folder: str) -> bool:
    """Return whether the pattern matches a path below the folder: the one begins as the other does."""
    start, wildcard, _ = re.sub(r"[?\[]", "*", pattern).partition("*")
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
    rule = re.sub(r"^/+", "/", posixpath.normpath(rule))
    rule = re.sub(r"(?:/\*\*)+/", "/*", rule)
    start = _literal(rule)
    return {rule, posixpath.join(locate(start), rule[len(start) :])} if locate and start else {rule}


def _literal(pattern: str) -> str:
    """Return the folders at the start of a pattern, up to the first wildcard; of a path, all but its name."""
    end = min((place for mark in "*?[{" if (place := pattern.find(mark)) >= 0), default=len(pattern))
    return pattern[: pattern.rfind("/", 0, end) + 1]


def _may_be_sought(name: str, rule: str, project: str, locate: Locate | None) -> bool:
    """Return whether a search for files with a name can find one that the rule names, or one in a folder of the rule."""
    if rule.endswith("/") or (locate and locate(posixpath.join(project, rule)).endswith("/")):
        return True
    return _may_be_equal(name, posixpath.basename(rule))


def _may_be_equal(name: str, other: str) -> bool:
    """Return whether a file can have both names, in which `*` is a wildcard; other wildcards are not compared."""
    if any(mark in name + other for mark in "?[{!"):
        return True
    if "*" not in other:
        return wildcard_matches(name, other)
    if "*" not in name:
        return wildcard_matches(other, name)
    ends = name.rpartition("*")[2], other.rpartition("*")[2]
    return ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])


_TOKEN = re.compile(r"\*+|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
MAX_PATH_CHARS = 4096  # no longer path can be opened on Linux


def _matches(pattern: str, text: str) -> bool:
    """Return whether the text matches; besides `*` there are `?` and `[…]`, which may also be meant literally.

    After a mismatch only the last `*` is extended, so the time is bounded by the product of the lengths.
    """
    if wildcard_matches(pattern, text) or len(text) > MAX_PATH_CHARS:
        return True
    if "?" not in pattern and "[" not in pattern:
        return False
    tokens = _TOKEN.findall(pattern)
    place = number = retry = 0
    star = -1
    while place < len(text):
        token = tokens[number] if number < len(tokens) else ""
        if token.startswith("*"):
            star, retry, number = number, place, number + 1
        elif token and _is_character(token, text[place]):
            place, number = place + 1, number + 1
        elif star >= 0:
            retry += 1
            place, number = retry, star + 1
        else:
            return False
    return all(token.startswith("*") for token in tokens[number:])


def _is_character(piece: str, character: str) -> bool:
    if piece == "?" or len(piece) > 1:
        return character != "/" and fnmatchcase(character, piece.replace("[^", "[!", 1))
    return piece == character
