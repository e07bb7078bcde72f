"""Permission rules of Claude Code, such as `Bash(git commit *)` or `Edit(src/**)`: the `if` of a hook on a tool event.

A rule is a filter and not a boundary: where a call cannot be told apart for certain, it matches, and the hook runs.
Paths are compared as they are, and without their links. A search matches if it could come to such a file.
"""

import posixpath
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.tools import DEFAULT_AGENT_TYPE, resolve_tool, tool_names
from turngate.core.globs import expand_braces
from turngate.core.text import wildcard_matches

MAX_RULE_CHARS = 2_000
# Returns the path without links, and with a slash at the end if it is a folder; `~/` is the home folder.
Locate = Callable[[str], str]


@frozen
class PermissionRule:
    """The tool's name, in which `*` is a wildcard, and what its input must match; None: every call of the tool."""

    tool: str
    content: str | None = None


_RULE = re.compile(r"([A-Za-z_*][\w*.:-]*)\s*(?:\((.*)\))?", re.DOTALL)


@lru_cache(maxsize=1024)
def read_rule(text: str) -> PermissionRule | None:
    match = _RULE.fullmatch(text.strip()) if len(text) <= MAX_RULE_CHARS else None
    if match is None or (match[2] is not None and _ends_early(match[2])):
        return None
    content = match[2].strip() if match[2] is not None else None
    return PermissionRule(match[1], None if content in ("", "*") else content)


def _ends_early(content: str) -> bool:
    """Return whether the parenthesis before the content is closed in it, as in `Bash(a)|Bash(b)`: not one rule."""
    depth = 0
    for mark in re.findall(r"\\.|[()]", content):
        depth += {"(": 1, ")": -1}.get(mark, 0)
        if depth < 0:
            return True
    return False


def why_never(rule: PermissionRule) -> str | None:
    """Return why no call can match the rule, or None."""
    tool, content = resolve_tool(rule.tool), rule.content or ""
    if tool == "WebFetch" and content and not content.startswith("domain:"):
        return "it must be domain:HOST"
    if tool in FILE_TOOLS and (content.startswith("!") or any(mark in content for mark in "$\\")):
        return "`$`, a backslash and a leading `!` have no meaning in a path"
    return None


def rule_matches(
    rule: PermissionRule, tool: str, tool_input: Mapping[str, Any], project: str, locate: Locate | None = None
) -> bool:
    content, names = rule.content, tool_names(tool)
    if content is None:
        return any(wildcard_matches(rule.tool, name) for name in names)
    if not any(wildcard_matches(rule.tool, name) for name in (*names, *covered_by(tool))):
        return False
    is_other = tool in FILE_TOOLS or resolve_tool(tool) in ("Task", "WebFetch")
    if not is_other and isinstance(command := tool_input.get("command"), str):
        from turngate.core.permissions.bash import command_matches  # noqa: PLC0415 # lazy: few hooks have an `if`

        return command_matches(content, command)
    if reaches_path(content, tool, tool_input, project, locate):
        return True
    if content.startswith("domain:") and isinstance(url := tool_input.get("url"), str):
        return _host_matches(content.removeprefix("domain:"), url)
    # A subagent that is resumed keeps its type, which the call does not name.
    agent_type = str(tool_input.get("subagent_type") or DEFAULT_AGENT_TYPE)
    is_type = bool(tool_input.get("resume")) or wildcard_matches(content, agent_type)
    return is_type and resolve_tool(tool) == "Task"


def _host_matches(pattern: str, url: str) -> bool:
    from urllib.parse import urlsplit  # noqa: PLC0415 # lazy: few rules are about an address

    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    return wildcard_matches(pattern.lower(), host.lower())


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
    is_named = any(_is_named(rule, root, project, locate) for root in roots)
    return is_named or (is_sought and any(_is_searched(rule, root, project, locate) for root in roots))


def _is_named(rule: str, path: str, project: str, locate: Locate | None) -> bool:
    """Return whether the rule names the path or, as in a .gitignore, a folder above it."""
    places = _places(path, project, locate)
    return any(_is_any(each, path, places, project, locate) for each in _alternatives(rule))


def _is_any(rule: str, path: str, places: set[str], project: str, locate: Locate | None) -> bool:
    if "/" not in rule:  # the name of a file or a folder anywhere
        roots = _places(project, project, locate)
        names = set()  # without those of the folders above the project
        for place in places:
            root = next((each for each in roots if place.startswith(f"{each}/")), "")
            names.update(place[len(root) :].split("/")[1:])
        return any(_matches(rule, name) for name in names)
    home = {f"*{rule[1:]}"} if rule.startswith("~/") else set()
    patterns = {rule, *home, *_patterns(rule, project, locate)}
    patterns |= {f"{pattern}/*" for pattern in patterns}
    return any(_matches(*pair) for pair in product(patterns, {path, *places}))


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


MAX_PATH_CHARS = 4096  # no longer path can be opened on Linux


def _matches(pattern: str, text: str) -> bool:
    """Return whether the text matches; besides `*` there are `?` and `[…]`, which may also be meant literally."""
    if wildcard_matches(pattern, text) or len(text) > MAX_PATH_CHARS:
        return True
    return fnmatchcase(text, pattern.replace("[^", "[!"))
