"""Finds matchers that match nothing that Turngate has: no tool, no agent type, no source of a session."""

from collections.abc import Collection, Iterable, Iterator
from typing import get_args, get_type_hints

from turngate.agent.tools import TOOLS
from turngate.core.constants import EVENTS
from turngate.core.conversation.tools import tool_names
from turngate.core.events.events import PreCompact, SessionEnd, SessionStart
from turngate.core.hooks.matcher import InvalidMatcher, NameMatcher, read_matcher
from turngate.core.settings import Rule
from turngate.core.text import describe_name
from turngate.settings.keys import closest_name
from turngate.settings.problem_log import did_you_mean

MCP_PREFIX = "mcp__"  # tools of MCP servers, which no list names
_MAX_LISTED = 15

# What only Claude Code has: a hook for it is not a mistake, and never runs here.
_OF_CLAUDE_CODE = {
    "tool_name": frozenset(
        [
            "AskUserQuestion",
            "EnterPlanMode",
            "ExitPlanMode",
            "LS",
            "LSP",
            "MultiEdit",
            "NotebookEdit",
            "NotebookRead",
            "Skill",
            "SlashCommand",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskOutput",
            "TaskStop",
            "TaskUpdate",
            "ToolSearch",
            "WebFetch",
            "WebSearch",
        ]
    ),
    "reason": frozenset({"logout", "resume", "bypass_permissions_disabled"}),
}
_NOUNS = {
    "tool_name": "tool",
    "agent_type": "agent type",
    "source": "source of a session",
    "trigger": "trigger of a compaction",
    "reason": "reason of a session's end",
}
_VALUES = {
    field: get_args(get_type_hints(event)[field])
    for event, field in ((SessionStart, "source"), (PreCompact, "trigger"), (SessionEnd, "reason"))
}


def known_subjects(event: str, agent_types: Iterable[str]) -> tuple[str, ...]:
    """Return everything that a matcher of this event can be compared with; () for an event without a subject."""
    match EVENTS[event]:
        case None:
            return ()
        case "tool_name":
            return tuple(dict.fromkeys(name for tool in TOOLS for name in tool_names(tool)))
        case "agent_type":
            return tuple(agent_types)
        case field:
            return _VALUES[field]


def never_matches(rule: Rule, agent_types: Iterable[str]) -> tuple[str, str | None, bool] | None:
    """Return why a matcher matches nothing, what to do, and whether that may be meant; None if it can match."""
    field = EVENTS[rule.event]
    if field is None or rule.matcher in (None, "", "*"):
        return None
    matcher = read_matcher(rule.matcher or "")
    known = known_subjects(rule.event, agent_types)
    if isinstance(matcher, InvalidMatcher) or any(map(matcher.matches, known)):
        return None  # an invalid one is reported where the settings are parsed
    if MCP_PREFIX in (rule.matcher or ""):
        return None
    shown = describe_name(repr(rule.matcher))
    if any(map(matcher.matches, _OF_CLAUDE_CODE.get(field, ()))):
        return f"its matcher {shown} matches only a {_NOUNS[field]} of Claude Code", None, True
    article = "an" if field == "agent_type" else "a"
    message = f"its matcher {shown} never matches: it is not {article} {_NOUNS[field]} of Turngate"
    return message, _hint(matcher.names if isinstance(matcher, NameMatcher) else (), known), False


def _hint(names: Collection[str], known: Collection[str]) -> str | None:
    close = (did_you_mean(closest_name(name, known, 0.6)) for name in names)
    listed = ", ".join(sorted(known)[:_MAX_LISTED]) + (" …" if len(known) > _MAX_LISTED else "")
    return next(filter(None, close), f"known: {listed}")


def sample_subjects(rule: Rule, agent_types: Iterable[str]) -> Iterator[str]:
    """Yield the subjects for which the hook runs."""
    matcher = read_matcher(rule.matcher or "")
    is_any = rule.matcher in (None, "", "*")
    yield from (name for name in known_subjects(rule.event, agent_types) if is_any or matcher.matches(name))
