"""Samples of events: every hook has one that it runs for."""

import pytest

from tests.support.builders import rule
from turngate.core.constants import EVENTS
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.selection import plan
from turngate.core.settings import Rule, Settings
from turngate.doctor.proof.samples import sample_fields, sample_subject


def sample(of: Rule, **given: object) -> dict[str, object]:
    return sample_fields(of, given, project="/p", transcript="/t")


@pytest.mark.req("S3-51", "X-35")
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("matcher", [None, "*", ""])
def test_each_event_has_a_sample_for_which_its_hooks_run(event: str, matcher: str | None) -> None:
    hook = rule(CommandHook("x"), event, matcher=matcher)
    planned = plan(Settings(rules=(hook,)), read_event(event, sample(hook), cwd="/p"))
    assert planned.ask == (hook,)


@pytest.mark.parametrize(
    ("event", "matcher", "expected"),
    [
        ("PreToolUse", None, "Bash"),
        ("PreToolUse", "Write|Edit", "Write"),
        ("PreToolUse", "NoSuchTool", "NoSuchTool"),
        ("PreToolUse", "mcp__.*", "mcp__server__tool"),
        ("PreToolUse", "^Gr", "Grep"),
        ("PreToolUse", "^nothing$", "Bash"),
        ("PreToolUse", "(", "Bash"),
        ("SessionStart", "resume|clear", "resume"),
        ("PreCompact", "auto", "auto"),
        ("SessionEnd", "clear", "clear"),
        ("SubagentStop", "tester", "tester"),
        ("SubagentStart", None, "general-purpose"),
    ],
)
def test_a_sample_matches_the_matcher_if_possible(event: str, matcher: str | None, expected: str) -> None:
    assert sample_subject(event, matcher) == expected


def test_given_fields_stay_and_decide_about_the_others() -> None:
    hook = rule("x", "PreToolUse", matcher="Write")
    assert sample(hook, tool_name="Read", session_id="mine") == {
        "session_id": "mine",
        "transcript_path": "/t",
        "cwd": "/p",
        "tool_name": "Read",
        "tool_input": {"file_path": "/p/example.txt"},
        "tool_use_id": "toolu_sample",
    }


def test_a_hook_of_an_agent_file_gets_its_agent_type_and_outcome() -> None:
    hook = rule(CommandHook("x", outcomes=("error",)), "SubagentStop", agent_type="tester")
    fields = sample(hook)
    assert (fields["agent_type"], fields["outcome"]) == ("tester", "error")
