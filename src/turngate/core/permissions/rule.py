"""Permission rules of Claude Code, such as `Bash(git commit *)` or `Edit(src/**)`: the `if` of a hook on a tool event.

A rule is a filter and not a boundary: where a call cannot be told apart for certain, it matches, and the hook runs.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from turngate._frozen import frozen
from turngate.core.conversation.tools import DEFAULT_AGENT_TYPE, resolve_tool, tool_names
from turngate.core.text import wildcard_matches

MAX_RULE_CHARS = 2_000


@frozen
class PermissionRule:
    """The tool's name, in which `*` is a wildcard, and what its input must match; None: every call of the tool."""

    tool: str
    content: str | None = None


_RULE = re.compile(r"([A-Za-z_*][\w*.:-]*)\s*(?:\((.*)\))?", re.DOTALL)


@lru_cache(maxsize=1024)
def read_rule(text: str) -> PermissionRule | None:
    """Return the rule, or None if the text is not a rule."""
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
    from turngate.core.permissions.paths import FILE_TOOLS  # noqa: PLC0415  # few hooks have an `if`

    if tool in FILE_TOOLS and (content.startswith("!") or any(mark in content for mark in "$\\")):
        return "`$`, a backslash and a leading `!` have no meaning in a path"
    return None


def rule_matches(
    rule: PermissionRule,
    tool: str,
    tool_input: Mapping[str, Any],
    project: str,
    locate: Callable[[str], str] | None = None,
) -> bool:
    """Return whether a call of the tool with this input matches the rule; `locate` is that of `path_rule`."""
    content = rule.content
    names = tool_names(tool)
    if content is None:
        return any(wildcard_matches(rule.tool, name) for name in names)
    from turngate.core.permissions.paths import FILE_TOOLS, covered_by, reaches_path  # noqa: PLC0415  # few hooks have an `if`

    if not any(wildcard_matches(rule.tool, name) for name in (*names, *covered_by(tool))):
        return False
    is_other = tool in FILE_TOOLS or resolve_tool(tool) in ("Task", "WebFetch")
    if not is_other and isinstance(command := tool_input.get("command"), str):
        from turngate.core.permissions.bash import command_matches  # noqa: PLC0415  # as above

        return command_matches(content, command)
    if reaches_path(content, tool, tool_input, project, locate):
        return True
    if content.startswith("domain:") and isinstance(url := tool_input.get("url"), str):
        return _host_matches(content.removeprefix("domain:"), url)
    return resolve_tool(tool) == "Task" and _agent_type_matches(content, tool_input)


# Agent types and URLs


def _agent_type_matches(pattern: str, tool_input: Mapping[str, Any]) -> bool:
    """A subagent that is resumed keeps its type, which the call does not name."""
    agent_type = tool_input.get("subagent_type") or DEFAULT_AGENT_TYPE
    return bool(tool_input.get("resume")) or wildcard_matches(pattern, str(agent_type))


def _host_matches(pattern: str, url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True
    return wildcard_matches(pattern.lower(), host.lower())
