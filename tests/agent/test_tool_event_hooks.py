"""What guards a tool or a prompt: judges on events that are not a stop, failures that block, and `if`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, write_settings
from tests.support.machines import Machine, ThisMachine
from tests.support.servers.http import serve_answers
from tests.support.sessions import configured_session_on, make_session, specific
from turngate.agent.session import Session
from turngate.core.answers.judge import ACTION_INSTRUCTIONS, INSTRUCTIONS
from turngate.core.conversation.messages import ToolResult, ToolResults
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import AgentHook, CommandHook, Hook, HttpHook, PromptHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.hook_run import outcome
from turngate.models.scripted import ScriptedModel

NO = '{"ok": false, "reason": "no"}'
YES = '{"ok": true, "reason": "fine"}'
TOUCH = {"tool": "Bash", "input": {"command": "touch ran"}}
ALL = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
JUDGES = pytest.mark.parametrize("hook", [PromptHook("ok?"), AgentHook("ok?")], ids=["prompt", "agent"])


def answer(hook: Hook, text: str) -> Any:
    """The judge's answer in the form of the hook's kind."""
    ok, reason = text == YES, "fine" if text == YES else "no"
    is_agent = isinstance(hook, AgentHook)
    return {"tool": "StructuredOutput", "input": {"ok": ok, "reason": reason}} if is_agent else text


def play(
    project: Path,
    *rules: Rule,
    judge: Any = YES,
    main: Any = (TOUCH, "done"),
    dialect: Dialect = TURNGATE,
    allow: Any = ("Bash",),
    machine: Machine | None = None,
) -> tuple[TurnResult, ScriptedModel]:
    machine = machine or ThisMachine()
    model = ScriptedModel({"main": list(main), "judge": [judge]})
    settings = Settings(rules=rules, dialect=dialect)
    session = make_session(machine, project, model, settings, allow=list(allow))

    async def turn() -> TurnResult:
        async with session:
            return await session.send("go")

    return machine.run(turn()), model


def tool_results(model: ScriptedModel) -> list[ToolResult]:
    messages = [request for request in model.requests if request.agent == "main"][-1].messages
    return [each for message in messages if isinstance(message, ToolResults) for each in message.results]


def ending(result: TurnResult) -> tuple[str, str | None]:
    return result.ended_by, result.stop_reason


# Judges


def test_in_claude_a_prompt_hook_that_says_no_before_a_tool_ends_the_turn(project: Path) -> None:
    result, model = play(project, rule(PromptHook("ok?"), "PreToolUse"), judge=NO, dialect=CLAUDE)
    assert (ending(result), (project / "ran").exists()) == (("halted", "no"), False)
    assert [request.agent for request in model.requests] == ["main", "judge"]


def test_in_claude_an_agent_hook_that_says_no_blocks_the_tool_alone(project: Path) -> None:
    hook = AgentHook("ok?")
    result, model = play(project, rule(hook, "PreToolUse"), judge=answer(hook, NO), dialect=CLAUDE)
    assert (ending(result), (project / "ran").exists()) == (("allowed", None), False)
    said = "a hook blocked this: Agent hook condition was not met: no"
    assert [each.content for each in tool_results(model)] == [said]


@JUDGES
@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=lambda dialect: dialect.name)
def test_elsewhere_the_call_is_blocked_and_the_agent_gets_the_reason(
    project: Path, hook: Hook, dialect: Dialect
) -> None:
    result, model = play(project, rule(hook, "PreToolUse"), judge=answer(hook, NO), dialect=dialect)
    assert (ending(result), (project / "ran").exists()) == (("allowed", None), False)
    [given] = tool_results(model)
    assert (given.content, given.is_error) == ("a hook blocked this: no", True)


@ALL
@JUDGES
def test_a_judge_that_agrees_lets_the_tool_run(project: Path, hook: Hook, dialect: Dialect) -> None:
    result, _ = play(project, rule(hook, "PreToolUse"), judge=answer(hook, YES), dialect=dialect)
    assert (ending(result), (project / "ran").exists()) == (("allowed", None), True)


@ALL
@JUDGES
def test_a_judge_that_says_no_to_a_prompt_ends_the_turn_before_the_model_is_asked(
    project: Path, hook: Hook, dialect: Dialect
) -> None:
    result, model = play(project, rule(hook, "UserPromptSubmit"), judge=answer(hook, NO), dialect=dialect)
    in_claude = "no" if isinstance(hook, PromptHook) else "Agent hook condition was not met: no"
    assert ending(result) == ("halted", in_claude if dialect is CLAUDE else "no")
    assert {request.agent for request in model.requests} == {"judge"}


@JUDGES
def test_a_judge_of_a_tools_result_gives_feedback_and_a_prompt_hook_in_claude_ends_the_turn(
    project: Path, hook: Hook
) -> None:
    given = rule(hook, "PostToolUse")
    result, model = play(project, given, judge=answer(hook, NO))
    assert (ending(result), "no" in tool_results(model)[0].content) == (("allowed", None), True)
    result, _ = play(project, given, judge=answer(hook, NO), dialect=CLAUDE)
    assert ending(result) == (("halted", "no") if isinstance(hook, PromptHook) else ("allowed", None))


def test_in_claude_continue_on_block_gives_the_reason_to_the_agent_instead(project: Path) -> None:
    hook = PromptHook("ok?", continue_on_block=True)
    result, model = play(project, rule(hook, "PostToolUse"), judge=NO, dialect=CLAUDE)
    assert (ending(result), "no" in tool_results(model)[0].content) == (("allowed", None), True)


@JUDGES
@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
def test_a_judge_that_says_no_to_a_permission_denies_it(project: Path, hook: Hook, dialect: Dialect) -> None:
    given = rule(hook, "PermissionRequest")
    result, model = play(project, given, judge=answer(hook, NO), dialect=dialect, allow=())
    assert (ending(result), (project / "ran").exists()) == (("allowed", None), False)
    [denied] = tool_results(model)
    assert (denied.content.startswith("permission was denied: "), denied.content.endswith("no")) == (
        True,
        True,
    )


@JUDGES
def test_a_judge_that_agrees_does_not_grant_a_permission(project: Path, hook: Hook) -> None:
    play(project, rule(hook, "PermissionRequest"), judge=answer(hook, YES), allow=())
    assert not (project / "ran").exists()


def test_a_judge_knows_whether_it_is_asked_about_a_stop(project: Path) -> None:
    _, before = play(project, rule(PromptHook("ok?"), "PreToolUse"))
    _, at_stop = play(project, rule(PromptHook("ok?"), "Stop"))
    asked = [request.system for model in (before, at_stop) for request in model.requests]
    assert [text for text in asked if "You judge" in text] == [ACTION_INSTRUCTIONS, INSTRUCTIONS]


# Failures that block


FAILS = {
    "exit 1": CommandHook("exit 1", on_failure="block"),
    "no such program": CommandHook("./nowhere", on_failure="block"),
    "too slow": CommandHook("sleep 60", timeout=0.2, on_failure="block"),
    "a condition that is not a rule": CommandHook("true", condition="Bash((", on_failure="block"),
}


@ALL
@pytest.mark.parametrize("hook", FAILS.values(), ids=FAILS)
def test_a_guard_that_fails_blocks_the_tool_where_it_says_so(
    project: Path, hook: Hook, dialect: Dialect, machine: Machine
) -> None:
    result, model = play(project, rule(hook, "PreToolUse"), dialect=dialect, machine=machine)
    assert not (project / "ran").exists()
    [given] = tool_results(model)
    assert given.is_error
    assert given.content.startswith("a hook blocked this: this check failed and must pass first: ")
    assert [outcome(run) for run in result.hook_runs] == ["timeout" if hook.timeout else "failed"]


def test_a_blocking_guard_whose_condition_is_not_a_rule_blocks_the_tool(project: Path) -> None:
    play(project, rule(CommandHook("true", condition="Bash((", blocking=True), "PreToolUse"))
    assert not (project / "ran").exists()


@ALL
@pytest.mark.parametrize("event", ["UserPromptSubmit", "PermissionRequest"])
def test_a_prompt_or_a_permission_is_blocked_as_well(project: Path, event: str, dialect: Dialect) -> None:
    hook = CommandHook("exit 1", on_failure="block")
    result, _ = play(project, rule(hook, event), dialect=dialect, allow=())
    assert not (project / "ran").exists()
    said = "this check failed and must pass first: exit code 1, nothing on stderr"
    if event == "UserPromptSubmit":
        assert ending(result) == ("halted", said)
    else:
        assert ending(result) == ("allowed", None)


@ALL
def test_a_failed_guard_of_a_permission_overrides_a_hook_that_allows(project: Path, dialect: Dialect) -> None:
    allows = specific("PermissionRequest", decision={"behavior": "allow"})
    rules = [rule(hook, "PermissionRequest") for hook in (CommandHook("exit 1", on_failure="block"), allows)]
    _, model = play(project, *rules, dialect=dialect, allow=())
    assert not (project / "ran").exists()
    said = "a hook blocked this: this check failed and must pass first: exit code 1, nothing on stderr"
    assert [each.content for each in tool_results(model)] == [said]


@ALL
def test_a_check_of_a_tools_result_that_fails_is_feedback_where_it_says_so(
    project: Path, dialect: Dialect
) -> None:
    _, model = play(project, rule(CommandHook("exit 1", on_failure="block"), "PostToolUse"), dialect=dialect)
    [given] = tool_results(model)
    assert "this check failed and must pass first: exit code 1, nothing on stderr" in given.content


@ALL
def test_a_check_before_a_compaction_that_fails_blocks_it_where_it_says_so(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    guard = rule(CommandHook("exit 1", on_failure="block"), "PreCompact")
    model = ScriptedModel({"main": ["done"]})
    notices: list[str] = []
    settings = Settings(rules=(guard,), dialect=dialect)
    session = make_session(
        machine, project, model, settings, on_event=lambda event: notices.append(str(event))
    )

    async def compact() -> bool:
        async with session:
            await session.send("go")
            return await session.compact()

    assert machine.run(compact()) is False
    assert any("a hook blocked the compaction: this check failed and must pass" in text for text in notices)


@ALL
def test_an_endpoint_that_fails_blocks_the_tool_where_it_says_so(project: Path, dialect: Dialect) -> None:
    with serve_answers({"status": 500, "body": ""}) as endpoint:
        play(project, rule(HttpHook(endpoint.url, on_failure="block"), "PreToolUse"), dialect=dialect)
    assert not (project / "ran").exists()


@pytest.mark.parametrize(("dialect", "requests"), [(TURNGATE, 4), (CLAUDE, 1)], ids=["turngate", "claude"])
def test_at_a_stop_claude_ignores_it_and_turngate_holds_the_agent(
    project: Path, dialect: Dialect, requests: int, machine: Machine
) -> None:
    hook = CommandHook("exit 1", on_failure="block")
    _, model = play(project, rule(hook), main=("done",), dialect=dialect, machine=machine)
    assert len(model.requests) == requests


@ALL
def test_without_it_a_guard_that_fails_is_reported_and_the_tool_runs(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    result, _ = play(project, rule("exit 1", "PreToolUse"), dialect=dialect, machine=machine)
    assert (project / "ran").exists()
    assert result.notices == ('hook "exit 1" failed and was NOT enforced: exit code 1, nothing on stderr',)


def test_a_guard_that_all_hooks_are_switched_off_with_does_not_block(project: Path) -> None:
    guard = rule(CommandHook("exit 1", on_failure="block"), "PreToolUse", family="claude")
    model = ScriptedModel({"main": [TOUCH, "done"]})
    settings = Settings(rules=(guard,), switched_off={"claude": "x.json"}, dialect=CLAUDE)

    async def turn() -> None:
        async with Session(str(project), model, settings, allow=["Bash"]) as session:
            await session.send("go")

    asyncio.run(turn())
    assert (project / "ran").exists()


# Conditions


@ALL
@pytest.mark.parametrize(
    ("condition", "blocked"),
    [("Bash(touch *)", True), ("Bash(git *)", False), ("Bash", True), ("Edit(*)", False), (None, True)],
)
def test_a_guard_with_a_condition_runs_only_for_calls_that_match_it(
    project: Path, condition: str | None, blocked: bool, dialect: Dialect
) -> None:
    guard = CommandHook("echo no >&2; exit 2", condition=condition)
    play(project, rule(guard, "PreToolUse"), dialect=dialect)
    assert (project / "ran").exists() is not blocked


def test_a_condition_is_read_from_the_settings(project: Path, machine: Machine) -> None:
    entries = [
        {"type": "command", "command": f"echo {name} >> asked", "if": condition}
        for name, condition in (("touch", "Bash(touch:*)"), ("git", "Bash(git:*)"))
    ]
    write_settings(project, "claude", {"hooks": {"PreToolUse": [{"hooks": entries}]}})
    agent = configured_session_on(machine, project, TOUCH, "done", dialect="claude", allow=["Bash"])
    agent.play()
    assert (project / "asked").read_text() == "touch\n"


# Two names of one tool


@ALL
@pytest.mark.parametrize("name", ["Task", "Agent"])
def test_a_guard_that_compares_the_name_of_a_tool_gets_one_name(
    project: Path, name: str, dialect: Dialect
) -> None:
    own = "Agent" if dialect is CLAUDE else "Task"
    guard = f'grep -q \'"tool_name":"{own}"\' || exit 0; echo "no subagents" >&2; exit 2'
    task = {"tool": name, "input": {"prompt": "Look around."}}
    hook = CommandHook(guard)
    result, model = play(project, rule(hook, "PreToolUse"), main=(task, "done"), dialect=dialect)
    (blocked,) = tool_results(model)
    assert blocked.content.startswith("a hook blocked this: ")
    assert result.subagents == ()


def test_every_tool_event_has_the_same_name_of_a_tool(project: Path) -> None:
    events = ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolBatch")
    answers = {
        "PreToolUse": specific("PreToolUse", permissionDecision="ask"),
        "PermissionRequest": specific("PermissionRequest", decision={"behavior": "allow"}),
    }
    rules = [
        rule(CommandHook(f"cat >> seen; echo >> seen; {answers.get(event, 'true')}"), event)
        for event in events
    ]
    model = ScriptedModel(
        {"main": [{"tool": "Agent", "input": {"prompt": "Look."}}, "done"], "sub": ["seen"]}
    )

    async def turn() -> None:
        async with Session(str(project), model, Settings(rules=tuple(rules))) as session:
            await session.send("go")

    asyncio.run(turn())
    seen = [json.loads(line) for line in (project / "seen").read_text().split("\n") if line]
    names = [call["tool_name"] for each in seen for call in each.get("tool_calls", [each])]
    assert ([each["hook_event_name"] for each in seen], names) == ([*events], ["Task"] * 4)
