"""Compaction: by hand, by itself near the limit of the context, and what hooks have to say about it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.machines import Machine
from tests.support.sessions import (
    SAVE_INPUT,
    ScriptedSession,
    block_first,
    lines,
    records,
    saved_inputs,
    say,
    scripted_session,
    scripted_session_on,
)
from turngate.agent.compaction import SUMMARY_PROMPT
from turngate.core.conversation.messages import UserMessage
from turngate.core.events.stream_events import Compacted, Notice

SUMMARY = "Summary of the conversation so far:\n\n"


async def talk_and_compact(agent: ScriptedSession, instructions: str = "") -> bool:
    async with agent.session:
        await agent.session.send("one")
        done = await agent.session.compact(instructions)
        await agent.session.send("two")
        return done


@pytest.mark.req("S3-13", "C-32")
def test_a_conversation_becomes_its_own_summary(project: Path) -> None:
    agent = scripted_session(project, "answer", "we built a house", "answer", stop="echo Stop >> log")
    assert asyncio.run(talk_and_compact(agent, "keep the colors"))
    assert agent.heard(1) == ["one", "agent: answer", f"{SUMMARY_PROMPT}\n\nkeep the colors"]
    assert agent.heard() == [f"{SUMMARY}we built a house", "two"]
    assert agent.of(Compacted) == [Compacted("manual", "we built a house")]
    assert lines(project / "log") == ["Stop", "Stop"]  # of the two turns


@pytest.mark.req("S3-13")
def test_a_hook_runs_before_and_its_words_join_the_instructions(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine, project, "answer {n}", rules=[rule(f"{SAVE_INPUT}; echo keep the names", "PreCompact")]
    )
    machine.run(talk_and_compact(agent, "keep the colors"))
    assert saved_inputs(project, "hook_event_name", "trigger", "custom_instructions") == [
        ("PreCompact", "manual", "keep the colors")
    ]
    assert agent.heard(1)[-1] == f"{SUMMARY_PROMPT}\n\nkeep the colors\n\nkeep the names"


PREVENTED = [
    ("echo not now >&2; exit 2", "a hook blocked the compaction: not now"),
    (say({"decision": "block", "reason": "not now"}), "a hook blocked the compaction: not now"),
]


@pytest.mark.req("S3-13")
@pytest.mark.parametrize(("hook", "said"), PREVENTED, ids=["exit 2", "block"])
def test_a_hook_may_prevent_it(project: Path, hook: str, said: str, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, "answer {n}", rules=[rule(hook, "PreCompact")])
    assert not machine.run(talk_and_compact(agent))
    assert agent.heard() == ["one", "agent: answer 1", "two"]
    assert agent.of(Notice) == [Notice(said)]


def test_continue_false_prevents_it_too(project: Path, machine: Machine) -> None:
    halt = say({"continue": False, "stopReason": "not now"})
    agent = scripted_session_on(machine, project, "answer {n}", rules=[rule(halt, "PreCompact")])
    assert not machine.run(talk_and_compact(agent))


@pytest.mark.parametrize(("matcher", "done"), [("auto", True), ("manual", False), ("manual|auto", False)])
def test_a_matcher_chooses_the_trigger(project: Path, matcher: str, done: bool, machine: Machine) -> None:
    rules = [rule("echo no >&2; exit 2", "PreCompact", matcher=matcher)]
    assert (
        machine.run(talk_and_compact(scripted_session_on(machine, project, "answer {n}", rules=rules)))
        == done
    )


def test_an_empty_conversation_is_left_alone(project: Path) -> None:
    agent = scripted_session(project, rules=[rule(SAVE_INPUT, "PreCompact")])

    async def at_once() -> bool:
        async with agent.session:
            return await agent.session.compact()

    assert (asyncio.run(at_once()), agent.model.requests, lines(project / "seen")) == (False, [], [])


@pytest.mark.parametrize(
    "reply",
    [
        {"texts": []},
        {"text": " "},
        {"tool": "Read", "input": {"file_path": "x"}},
        {"text": "no", "stop_reason": "refusal"},
    ],
    ids=["nothing", "blank", "a tool", "a refusal"],
)
def test_a_summary_that_says_nothing_replaces_nothing(project: Path, reply: dict[str, Any]) -> None:
    agent = scripted_session(project, "answer", reply, "answer")
    assert not asyncio.run(talk_and_compact(agent))
    assert agent.heard()[:2] == ["one", "agent: answer"]


# By itself


LONG = {"tool": "Bash", "input": {"command": "printf '%5000s' x"}}
BIG = "x" * 4400


def crowded(project: Path, *replies: Any, **options: Any) -> ScriptedSession:
    """A model whose context is nearly full after one long result or answer."""
    return scripted_session(project, *replies, context=1200, allow=["Bash"], **options)


@pytest.mark.req("S0-66", "S3-13", "C-32", "X-16")
def test_near_the_limit_it_happens_by_itself_and_no_stop_is_asked_about_it(project: Path) -> None:
    replies = [BIG, "the summary", "done"]
    agent = crowded(
        project, *replies, stop="echo Stop >> log", rules=[rule("echo PreCompact >> log", "PreCompact")]
    )
    agent.play("look", "go on")
    assert agent.heard(1)[-1] == SUMMARY_PROMPT
    assert agent.heard(2) == [f"{SUMMARY}the summary", "go on"]
    assert lines(project / "log") == ["Stop", "PreCompact", "Stop"]
    assert agent.of(Compacted) == [Compacted("auto", "the summary")]


@pytest.mark.req("S3-13")
def test_what_is_being_worked_on_survives(project: Path) -> None:
    agent = crowded(project, "hello", LONG, "the summary", "done")
    result = agent.play("hi", "look")
    assert agent.heard() == [f"{SUMMARY}the summary", "look"]
    assert (result.outcome, result.result) == ("completed", "done")


@pytest.mark.req("S0-80")
def test_a_turn_that_was_summed_up_in_the_middle_keeps_its_count(project: Path) -> None:
    """A process that dies afterwards must find it in the transcript."""
    agent = crowded(project, BIG, "the summary", "two", stop=f"tee -a seen >/dev/null; {block_first(1)}")
    result = agent.play("look")
    assert agent.heard()[-1] == "[Stop hook requested continuation]\nrun the tests"
    assert saved_inputs(project, "continuation_count") == [0, 1]
    said = [r for r in records(result.transcript_path) if r.get("origin") == "stop_hook"]
    assert [record.get("continuation") for record in said] == [1, 1]


def test_a_hook_that_prevents_it_lets_the_turn_continue_as_it_is(project: Path) -> None:
    rules = [rule("echo not now >&2; exit 2", "PreCompact", matcher="auto")]
    agent = crowded(project, LONG, "looked", "done", rules=rules)
    result = agent.play("look", "go on")
    assert (result.result, agent.heard()[0], len(agent.model.requests)) == ("done", "look", 3)


def test_a_resumed_session_continues_from_the_summary(project: Path) -> None:
    agent = scripted_session(project, "answer", "we built a house", "answer", session_id="s")
    asyncio.run(talk_and_compact(agent))
    again = scripted_session(project, "answer", session_id="s")
    again.play("three")
    assert again.heard() == [f"{SUMMARY}we built a house", "two", "agent: answer", "three"]


def test_the_summary_is_marked_in_the_transcript(project: Path) -> None:
    agent = scripted_session(project, "answer", "we built a house", "answer", session_id="s")
    asyncio.run(talk_and_compact(agent))
    [record] = [r for r in records(agent.session.transcript_path) if r.get("origin") == "summary"]
    assert (record["isMeta"], record["message"]["content"]) == (True, f"{SUMMARY}we built a house")


def test_a_model_that_fails_at_the_summary_is_reported_and_the_turn_continues(project: Path) -> None:
    agent = crowded(project, BIG, {"error": "auth"}, "done")
    result = agent.play("look", "go on")
    assert (result.outcome, result.result, result.model_requests) == ("completed", "done", 2)
    assert agent.of(Notice) == [
        Notice("the conversation could not be compacted: the model failed (auth): auth")
    ]
    assert agent.heard()[0] == "look"


def test_a_compaction_that_fails_is_not_tried_again_at_every_request(project: Path) -> None:
    look = {"tool": "Glob", "input": {"pattern": "*"}}
    agent = crowded(project, BIG, {"error": "auth"}, look, look, look, "done")
    result = agent.play("look", "go on")
    assert (result.outcome, result.model_requests) == ("completed", 5)
    assert len(agent.of(Notice)) == 1


def test_a_summary_is_asked_for_again_while_the_provider_is_overloaded_and_is_counted(project: Path) -> None:
    agent = crowded(project, BIG, {"error": "overloaded"}, "the summary", "done", retries=(0.0,))
    result = agent.play("look", "go on")
    assert (result.outcome, result.result, result.model_requests) == ("completed", "done", 3)
    assert agent.heard() == [f"{SUMMARY}the summary", "go on"]


def test_the_context_of_a_start_hook_is_kept_after_a_compaction(project: Path, machine: Machine) -> None:
    rules = [rule("echo we use tabs", "SessionStart", matcher="startup")]
    agent = scripted_session_on(machine, project, "answer {n}", rules=rules)
    machine.run(talk_and_compact(agent))
    assert "we use tabs" in agent.model.requests[-1].system


def test_the_summary_does_not_count_as_a_message_of_the_user(project: Path) -> None:
    agent = scripted_session(project, "answer", "we built a house", "answer")
    asyncio.run(talk_and_compact(agent))
    assert agent.model.requests[-1].messages[0] == UserMessage(f"{SUMMARY}we built a house", "summary")


@pytest.mark.req("U-03")
def test_hooks_may_keep_lessons_and_costs(project: Path, machine: Machine) -> None:
    cost = """sed 's/.*"output_tokens":\\([0-9]*\\).*/\\1/' >> costs"""
    lessons = """tail -n 5 "$TURNGATE_TRANSCRIPT_PATH" | grep -o 'lesson: [a-z ]*' > lessons"""
    agent = scripted_session_on(
        machine, project, "lesson: measure twice", stop=cost, rules=[rule(lessons, "PreCompact")]
    )
    machine.run(talk_and_compact(agent))
    assert lines(project / "lessons") == ["lesson: measure twice"]
    assert [int(tokens) > 0 for tokens in lines(project / "costs")] == [True, True]
