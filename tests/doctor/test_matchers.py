import pytest

from tests.support.builders import rule
from turngate.doctor.diagnosis import never_matches

TYPES = ("general-purpose", "Explore")


@pytest.mark.parametrize(
    ("event", "matcher"),
    [
        ("Stop", "Bash"),  # an event without a subject ignores it
        ("PreToolUse", None),
        ("PreToolUse", ""),
        ("PreToolUse", "*"),
        ("PreToolUse", "Bash"),
        ("PreToolUse", "Agent"),  # another name of Task
        ("PreToolUse", "Edit|Bsh"),
        ("PreToolUse", "Note.*|Wri.*"),
        ("PreToolUse", "mcp__github__.*"),
        ("PreToolUse", "mcp__github"),
        ("PreToolUse", "((("),  # invalid: the parser of the settings reports it
        ("SubagentStop", "Explore"),
        ("SessionStart", "startup|resume"),
        ("PreCompact", "auto"),
        ("SessionEnd", "other"),
    ],
)
def test_a_matcher_that_can_match(event: str, matcher: str | None) -> None:
    assert never_matches(rule(event=event, matcher=matcher), TYPES) is None


def test_a_matcher_that_cannot_match_is_explained() -> None:
    hook = rule(event="PostToolUse", matcher="Wrote.+")
    known = "Agent, AskUser, Bash, BashOutput, Edit, Glob, Grep, KillShell, Read, Task, TodoWrite, Write"
    assert never_matches(hook, TYPES) == (
        "its matcher 'Wrote.+' never matches: it is not a tool of Turngate",
        f"known: {known}",
        False,
    )


@pytest.mark.parametrize(
    ("event", "matcher", "noun"),
    [("PreToolUse", "WebFetch|WebSearch", "tool"), ("SessionEnd", "logout", "reason of a session's end")],
)
def test_a_matcher_for_claude_code_alone_may_be_meant(event: str, matcher: str, noun: str) -> None:
    message = f"its matcher {matcher!r} matches only a {noun} of Claude Code"
    assert never_matches(rule(event=event, matcher=matcher), TYPES) == (message, None, True)
