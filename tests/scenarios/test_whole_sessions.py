"""Statements of the documents about hooks and models, each seen in a whole session and not in one function."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, script, stop_hooks, write_settings
from tests.support.paths import ROOT
from tests.support.sessions import (
    SAVE_INPUT,
    block_first,
    configured_session,
    lines,
    records,
    saved_inputs,
    say,
    scripted_session,
)
from tests.support.subagents import bash, parent, tasks
from tests.support.timeouts import NEVER_S
from turngate.core.conversation.messages import UserMessage
from turngate.core.dialect import DIALECTS, Dialect
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import CommandHook, PromptHook
from turngate.models.scripted import ScriptedModel

PREFIX = "[Stop hook requested continuation]\n"


def hook_output(result: TurnResult) -> list[tuple[str, str]]:
    """Return the event and the text of what hooks printed, as it is in the transcript."""
    return [
        (each["event"], each["stdout"])
        for each in records(result.transcript_path)
        if each["type"] == "hook_output"
    ]


def sent(model: ScriptedModel) -> str:
    """Return everything that the model received in its requests."""
    return "\n".join(f"{request.system}\n{request.messages}" for request in model.requests)


# Prompt hooks


@pytest.mark.req("S2-16", "S2-29")
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_prompt_hook_that_exceeds_its_limit_lets_the_agent_stop_and_the_user_is_warned(
    project: Path, dialect: Dialect
) -> None:
    late = {"text": '{"ok": false, "reason": "no"}', "delay": NEVER_S}
    agent = scripted_session(
        project, stop=PromptHook("?", timeout_ms=200, id="judge"), judge=[late], dialect=dialect
    )
    result = agent.play()
    assert (result.ended_by, result.continuations, result.notices) == (
        "allowed",
        0,
        ('hook "judge" timed out after 0.2 s and was NOT enforced',),
    )


@pytest.mark.req("S3-04")
def test_a_command_hook_and_a_prompt_hook_both_hold_the_agent_back(project: Path) -> None:
    linter = CommandHook(block_first(1, "it failed"), id="linter")
    agent = scripted_session(
        project,
        stop=linter,
        rules=[rule(PromptHook("?", id="judge"))],
        judge=['{"ok": false, "reason": "no test ran"}', '{"ok": true, "reason": ""}'],
    )
    result = agent.play()
    asked = [request.agent for request in agent.model.requests]
    assert (result.ended_by, result.continuations, asked) == (
        "allowed",
        1,
        ["main", "judge", "main", "judge"],
    )
    assert agent.model.requests[2].messages[-1] == UserMessage(
        PREFIX + "linter: it failed\n\njudge: no test ran", "stop_hook"
    )


# What a hook prints


@pytest.mark.req("S3-19")
def test_what_a_passing_stop_hook_prints_is_in_the_transcript(project: Path) -> None:
    result = scripted_session(project, stop="echo 12 tests passed").play()
    assert (result.ended_by, hook_output(result)) == ("allowed", [("Stop", "12 tests passed\n")])


@pytest.mark.req("S3-26")
def test_suppressed_output_is_not_in_the_transcript_and_a_message_for_the_user_is_not_in_a_request(
    project: Path,
) -> None:
    quiet = {"suppressOutput": True, "systemMessage": "two tests are slow"}
    blocks = say({**quiet, "decision": "block", "reason": "run the tests"})
    agent = scripted_session(project, stop=f"[ -e asked ] && echo again || {{ touch asked; {blocks}; }}")
    result = agent.play()
    assert (result.continuations, result.notices) == (1, ("two tests are slow",))
    assert hook_output(result) == [("Stop", "again\n")]
    assert ("run the tests" in sent(agent.model), "two tests are slow" in sent(agent.model)) == (True, False)


# What a hook decides


@pytest.mark.req("S3-24")
def test_the_reason_of_a_block_is_the_next_message_to_the_model(project: Path) -> None:
    blocks = say({"decision": "block", "reason": "the changelog is missing"})
    agent = scripted_session(project, stop=f"[ -e asked ] || {{ touch asked; {blocks}; }}")
    agent.play("fix it")
    assert agent.heard() == ["fix it", "agent: done", PREFIX + "the changelog is missing"]


@pytest.mark.req("S3-25", "C-06")
@pytest.mark.parametrize("decision", [{}, {"decision": "block", "reason": "not yet"}], ids=["alone", "block"])
@pytest.mark.parametrize("other", ["true", "echo not yet >&2; exit 2"], ids=["other passes", "other blocks"])
@pytest.mark.parametrize("proceed", [True, False], ids=["continue", "halt"])
def test_continue_false_ends_the_turn_whatever_any_hook_decides(
    project: Path, decision: dict[str, Any], other: str, proceed: bool
) -> None:
    halt = CommandHook(say({"continue": proceed, "stopReason": "enough", **decision}), id="halt")
    agent = scripted_session(project, stop=halt, rules=[rule(other)])
    result = agent.play()
    blocked = bool(decision) or other != "true"
    if not proceed:
        assert (result.ended_by, result.stop_reason, len(agent.model.requests)) == ("halted", "enough", 1)
    else:
        assert (result.ended_by, len(agent.model.requests) > 1) == (
            "capped" if blocked else "allowed",
            blocked,
        )
    assert "enough" not in sent(agent.model)


# What a hook receives


@pytest.mark.req("C-14")
def test_a_stop_hook_receives_the_last_answer_of_the_agent(project: Path) -> None:
    hook = f"{SAVE_INPUT}; {block_first(1)}"
    scripted_session(project, {"texts": ["so,", "first answer"]}, "second answer", stop=hook).play()
    assert saved_inputs(project, "last_assistant_message") == ["so,\nfirst answer", "second answer"]


@pytest.mark.req("S3-27")
def test_the_documents_loop_prevention_script_holds_a_session_back_once(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin" / "npm", "#!/bin/sh\necho npm >> ran; exit 1\n")
    # The script reads one field with jq; this stands in for it, so that the test needs no jq.
    reads = "import json, sys; print(str(json.load(sys.stdin)['stop_hook_active']).lower())"
    script(tmp_path / "bin" / "jq", f'#!/bin/sh\nexec python3 -c "{reads}"\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    sample = (ROOT / "tests" / "data" / "seeds" / "003_loop_prevention.sh").read_text()
    hook = script(project / ".claude" / "hooks" / "stop.sh", sample)
    write_settings(project, "claude", stop_hooks(str(hook)))
    result = configured_session(project, "answer {n}", dialect="turngate").play()
    assert (result.ended_by, result.continuations, result.result) == ("allowed", 1, "answer 2")
    assert lines(project / "ran") == ["npm"]  # at the second stop the flag is set, and the script approves


@pytest.mark.req("S3-30")
def test_an_empty_matcher_matches_every_tool_and_every_stop(project: Path) -> None:
    group = {"matcher": "", "hooks": [{"type": "command", "command": SAVE_INPUT}]}
    write_settings(
        project, "claude", {"hooks": {"PreToolUse": [group], "Stop": [group], "SessionStart": [group]}}
    )
    look = {"tool": "Glob", "input": {"pattern": "*"}}
    configured_session(project, bash("true"), look, "done", dialect="turngate", allow=["Bash"]).play()
    assert saved_inputs(project, "hook_event_name") == ["SessionStart", "PreToolUse", "PreToolUse", "Stop"]


# Sessions and tools


@pytest.mark.req("S3-06")
def test_what_a_start_hook_prints_is_known_to_the_model_again_after_a_resume(project: Path) -> None:
    rules = [rule("echo 'we use tabs'", "SessionStart")]
    first = scripted_session(project, rules=rules, session_id="s")
    first.play("one")
    second = scripted_session(project, rules=rules, session_id="s")
    second.play("two")
    assert second.heard() == ["one", "agent: done", "two"]
    assert ["we use tabs" in each.model.requests[-1].system for each in (first, second)] == [True, True]


@pytest.mark.req("S3-09")
def test_after_tools_of_which_one_fails_only_the_other_has_its_hook(project: Path) -> None:
    both = {"tools": [{"name": "Bash", "input": {"command": each}} for each in ("exit 3", "echo ran")]}
    rules = [rule(SAVE_INPUT, "PostToolUse")]
    scripted_session(project, both, "done", rules=rules, allow=["Bash"]).play()
    assert saved_inputs(project, "tool_input") == [{"command": "echo ran"}]


@pytest.mark.req("S3-09")
def test_after_a_subagent_that_failed_the_parent_has_no_hook(project: Path) -> None:
    failed = {"error": "authentication", "message": "wrong key"}
    scene = parent(project, failed, rules=[rule(SAVE_INPUT, "PostToolUse")])
    scene.play()
    assert (scene.heard("main")[-1].startswith("tool: The subagent failed"), lines(project / "seen")) == (
        True,
        [],
    )


@pytest.mark.req("S3-03")
def test_three_subagents_of_one_answer_work_at_the_same_time(project: Path) -> None:
    """Each one waits until all three have begun, so that none could finish before the others start."""
    meet = "echo here >> begun; until [ $(wc -l < begun) -ge 3 ]; do sleep 0.05; done; echo met >> met"
    main = [tasks({}, {}, {}), "home"]
    scene = parent(project, bash(meet), bash(meet), bash(meet), "found", main=main, allow=["Bash"])
    result = scene.play()
    assert (result.ended_by, result.result, lines(project / "met")) == ("allowed", "home", ["met"] * 3)
    assert scene.heard("main")[-1] == "tool: found + found + found"
