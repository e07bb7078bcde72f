"""The events around a tool call: what their hooks are given, and what their answers change."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.machines import Machine, ThisMachine
from tests.support.sessions import (
    SAVE_INPUT,
    ScriptedSession,
    lines,
    saved_inputs,
    say,
    scripted_session,
    scripted_session_on,
    specific,
)
from turngate.core.conversation.messages import ModelRequest, ToolResult, ToolResults, ToolUse
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule

ALL = pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command, **more}}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": name, "input": arguments}


def results(request: ModelRequest) -> list[ToolResult]:
    return [r for message in request.messages if isinstance(message, ToolResults) for r in message.results]


def last_result(agent: ScriptedSession) -> tuple[bool, str]:
    """Return whether the last tool call failed, and what the model read."""
    result = results(agent.model.requests[-1])[-1]
    return result.is_error, result.content


def play(project: Path, *replies: Any, **options: Any) -> ScriptedSession:
    """Take a turn on this machine."""
    return play_on(ThisMachine(), project, *replies, **options)


def play_on(machine: Machine, project: Path, *replies: Any, **options: Any) -> ScriptedSession:
    agent = scripted_session_on(
        machine, project, *replies, "done", permission_mode="bypassPermissions", **options
    )
    agent.play()
    return agent


# The input of a PostToolUse hook

NOTHING_PRINTED = {"interrupted": False, "isImage": False, "noOutputExpected": False}
READ = call("Read", file_path="a.txt")
RESPONSES: list[tuple[str, list[dict[str, Any]], dict[str, Any]]] = [
    ("Bash", [bash("echo out; echo err >&2")], {"stdout": "out", "stderr": "err", **NOTHING_PRINTED}),
    ("silent Bash", [bash("true")], {"stdout": "", "stderr": "", **NOTHING_PRINTED}),
    (
        "Read",
        [call("Read", file_path="a.txt", offset=2)],
        {
            "type": "text",
            "file": {"filePath": "{project}/a.txt", "content": "two", "numLines": 1, "startLine": 2},
        },
    ),
    (
        "Write",
        [call("Write", file_path="b.txt", content="x")],
        {
            "type": "create",
            "filePath": "{project}/b.txt",
            "content": "x",
            "structuredPatch": [],
            "originalFile": None,
            "userModified": False,
        },
    ),
    (
        "Write again",
        [READ, call("Write", file_path="a.txt", content="x")],
        {"type": "update", "filePath": "{project}/a.txt", "content": "x", "userModified": False},
    ),
    (
        "Edit",
        [READ, call("Edit", file_path="a.txt", old_string="one", new_string="1")],
        {
            "filePath": "{project}/a.txt",
            "oldString": "one",
            "newString": "1",
            "replaceAll": False,
            "userModified": False,
        },
    ),
    ("Glob", [call("Glob", pattern="*.txt")], {"filenames": ["{project}/a.txt"], "numFiles": 1}),
    ("Glob without a match", [call("Glob", pattern="*.x")], {"filenames": [], "numFiles": 0}),
    (
        "Grep",
        [call("Grep", pattern="two")],
        {"mode": "files_with_matches", "filenames": ["{project}/a.txt"], "numFiles": 1},
    ),
    (
        "Grep of lines",
        [call("Grep", pattern="two", output_mode="content")],
        {"mode": "content", "content": "{project}/a.txt:2:two", "numLines": 1},
    ),
    (
        "TodoWrite",
        [call("TodoWrite", todos=[{"content": "a", "status": "pending"}])],
        {"oldTodos": [], "newTodos": [{"content": "a", "status": "pending"}]},
    ),
    (
        "Task",
        [call("Task", prompt="look", description="d")],
        {"status": "completed", "agentId": "{agent}", "content": [{"type": "text", "text": "found it"}]},
    ),
]


@pytest.mark.parametrize(("calls", "response"), [pytest.param(*row[1:], id=row[0]) for row in RESPONSES])
def test_a_hook_gets_the_response_of_each_tool_as_an_object(
    project: Path, calls: list[dict[str, Any]], response: dict[str, Any], machine: Machine
) -> None:
    (project / "a.txt").write_text("one\ntwo\n")
    play_on(machine, project, *calls, rules=[rule(SAVE_INPUT, "PostToolUse")], sub=["found it"])
    given = saved_inputs(project, "tool_response")[-1]
    names = {"{project}": str(project), "{agent}": given.get("agentId", "")}
    expected = json.dumps(response)
    for name, value in names.items():
        expected = expected.replace(name, value)
    assert given == json.loads(expected)


TOOL_EVENTS = ("PreToolUse", "PermissionRequest", "PostToolUse")


@ALL
def test_the_events_of_a_tool_call_belong_to_the_prompt_of_its_stop(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    names = ("UserPromptSubmit", *TOOL_EVENTS, "Stop", "SessionEnd")
    rules = [rule(SAVE_INPUT, name) for name in names]
    grant = rule(specific("PermissionRequest", decision={"behavior": "allow"}), "PermissionRequest")
    scripted_session_on(machine, project, bash("true"), "done", rules=[*rules, grant], dialect=dialect).play()
    given = saved_inputs(project, "hook_event_name", "prompt_id")
    assert given == [(name, given[0][1]) for name in names]


@ALL
def test_each_prompt_has_an_id_of_its_own(project: Path, dialect: Dialect) -> None:
    rules = [rule(SAVE_INPUT, "UserPromptSubmit")]
    scripted_session(project, "done", rules=rules, dialect=dialect).play("one", "two")
    first, second = saved_inputs(project, "prompt_id")
    assert first != second


def test_a_hook_after_a_tool_gets_how_long_the_tool_took(project: Path, machine: Machine) -> None:
    play_on(machine, project, bash("sleep 0.3"), rules=[rule(SAVE_INPUT, "PostToolUse")])
    [given] = saved_inputs(project)
    assert given["duration_ms"] >= 300


# A tool that fails


@ALL
@pytest.mark.req("S3-09")
def test_a_tool_that_fails_fires_its_own_event_and_not_post_tool_use(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    rules = [rule(SAVE_INPUT, "PostToolUse"), rule(SAVE_INPUT, "PostToolUseFailure")]
    play_on(machine, project, bash("echo half; exit 3"), bash("true"), rules=rules, dialect=dialect)
    failed, succeeded = saved_inputs(project)
    fields = ("hook_event_name", "tool_name", "tool_input", "tool_use_id", "error", "is_interrupt")
    assert [failed[field] for field in fields] == [
        "PostToolUseFailure",
        "Bash",
        {"command": "echo half; exit 3"},
        "tool-1",
        "exit code 3\nhalf",
        False,
    ]
    assert (type(failed["duration_ms"]), succeeded["hook_event_name"]) == (int, "PostToolUse")


NOT_RUN = {
    "an unknown tool": (call("Nothing"), []),
    "a wrong argument": (call("Read", path=1), []),
    "a block": (bash("true"), [rule("echo no >&2; exit 2", "PreToolUse")]),
}


@pytest.mark.parametrize(("reply", "rules"), NOT_RUN.values(), ids=NOT_RUN)
def test_a_call_that_did_not_run_fires_no_event_after_it(
    project: Path, reply: dict[str, Any], rules: list[Rule], machine: Machine
) -> None:
    after = [rule(SAVE_INPUT, name) for name in ("PostToolUse", "PostToolUseFailure")]
    play_on(machine, project, reply, rules=[*rules, *after])
    assert saved_inputs(project) == []


@pytest.mark.parametrize(
    "hook",
    [specific("PostToolUseFailure", additionalContext="try again"), "echo 'try again' >&2; exit 2"],
    ids=["additionalContext", "exit 2"],
)
def test_feedback_on_a_failure_goes_to_the_model_with_the_error(
    project: Path, hook: str, machine: Machine
) -> None:
    agent = play_on(machine, project, bash("exit 3"), rules=[rule(hook, "PostToolUseFailure")])
    assert last_result(agent) == (True, "exit code 3\n(no output)\n\nHook feedback: try again")


def test_a_matcher_chooses_the_tool_that_failed(project: Path, machine: Machine) -> None:
    rules = [rule(SAVE_INPUT, "PostToolUseFailure", matcher="Read|Write")]
    play_on(machine, project, bash("exit 3"), call("Read", file_path="absent"), rules=rules)
    assert saved_inputs(project, "tool_name") == ["Read"]


# The output that the model gets instead

REPLACEMENTS: dict[str, tuple[Any, str]] = {
    "a text": ("REDACTED", "REDACTED"),
    "an empty text": ("", ""),
    "the object of Bash": (
        {"stdout": "REDACTED", "stderr": "warning", "interrupted": False},
        "REDACTED\nwarning",
    ),
    "blocks": ([{"type": "text", "text": "REDACTED"}, {"type": "text", "text": "more"}], "REDACTED\nmore"),
    "another object": ({"key": "a"}, '{"key": "a"}'),
}


@ALL
@pytest.mark.parametrize(("given", "text"), REPLACEMENTS.values(), ids=REPLACEMENTS)
def test_the_model_gets_the_output_that_a_hook_puts_in_its_place(
    project: Path, given: Any, text: str, dialect: Dialect
) -> None:
    hook = rule(specific("PostToolUse", updatedToolOutput=given), "PostToolUse")
    agent = play(project, bash("echo SECRET"), rules=[hook], dialect=dialect)
    assert last_result(agent) == (False, text)
    assert "SECRET" not in Path(agent.session.transcript_path).read_text().partition('"tool_result"')[2]


def test_a_hook_that_observes_does_not_replace_an_output(project: Path) -> None:
    hook = CommandHook(specific("PostToolUse", updatedToolOutput="REDACTED"), mode="observe")
    agent = play(project, bash("echo out"), rules=[rule(hook, "PostToolUse")])
    assert last_result(agent) == (False, "out")


def test_of_two_replacements_the_last_one_counts(project: Path) -> None:
    rules = [rule(specific("PostToolUse", updatedToolOutput=text), "PostToolUse") for text in ("one", "two")]
    assert last_result(play(project, bash("true"), rules=rules)) == (False, "two")


# All calls of one reply

BATCH = {"tools": [{"name": "Bash", "input": {"command": f"echo {n}"}} for n in (1, 2)]}


@ALL
def test_the_calls_of_one_reply_fire_one_event_when_all_are_finished(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    play_on(
        machine, project, BATCH, bash("exit 3"), rules=[rule(SAVE_INPUT, "PostToolBatch")], dialect=dialect
    )
    first, second = saved_inputs(project, "tool_calls")
    assert first == [
        {
            "tool_name": "Bash",
            "tool_input": {"command": f"echo {n}"},
            "tool_use_id": given["tool_use_id"],
            "tool_response": str(n),
        }
        for n, given in enumerate(first, 1)
    ]
    assert [given["tool_response"] for given in second] == ["exit code 3\n(no output)"]


def test_context_after_a_batch_goes_to_the_model_with_the_next_request(
    project: Path, machine: Machine
) -> None:
    hook = rule(specific("PostToolBatch", additionalContext="use tabs"), "PostToolBatch")
    agent = play_on(machine, project, BATCH, rules=[hook])
    assert agent.heard()[-2:] == ["tool: 1 + 2", "use tabs"]


@pytest.mark.parametrize(
    "hook",
    ["echo 'enough' >&2; exit 2", say({"decision": "block", "reason": "enough"})],
    ids=["exit 2", "block"],
)
def test_a_block_after_a_batch_ends_the_turn_before_the_next_request(
    project: Path, hook: str, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        BATCH,
        "never",
        rules=[rule(hook, "PostToolBatch")],
        permission_mode="bypassPermissions",
    )
    result = agent.play()
    assert (result.ended_by, result.stop_reason, len(agent.model.requests)) == ("halted", "enough", 1)


# A call that a hook defers

DEFER = rule(
    specific("PreToolUse", permissionDecision="defer", permissionDecisionReason="ask Ann"), "PreToolUse"
)


@ALL
def test_a_deferred_call_ends_the_turn_and_is_not_run(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        bash("touch ran"),
        "never",
        stop=SAVE_INPUT,
        rules=[DEFER],
        dialect=dialect,
        permission_mode="bypassPermissions",
    )
    result = agent.play()
    ended = (result.ended_by, result.outcome, result.stop_reason, len(agent.model.requests))
    assert ended == ("tool_deferred", "waiting", "a hook deferred Bash: ask Ann", 1)
    assert result.deferred_tool_use == ToolUse("tool-1", "Bash", {"command": "touch ran"})
    assert (lines(project / "seen"), (project / "ran").exists()) == ([], False)


def test_the_next_message_tells_the_model_that_its_call_was_deferred(project: Path) -> None:
    agent = scripted_session(project, bash("true"), "done", rules=[DEFER])
    agent.play("one", "two")
    assert agent.heard()[-2:] == [
        "tool: not run: a hook deferred this call; make it again when the user asks you to continue",
        "two",
    ]


@pytest.mark.parametrize("other", ["ask", "allow"])
def test_a_deferral_is_stronger_than_other_permissions(project: Path, other: str) -> None:
    rules = [rule(specific("PreToolUse", permissionDecision=other), "PreToolUse"), DEFER]
    result = scripted_session(project, bash("true"), rules=rules).play()
    assert result.ended_by == "tool_deferred"


def test_a_denial_is_stronger_than_a_deferral(project: Path) -> None:
    deny = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="no")
    agent = play(project, bash("true"), rules=[DEFER, rule(deny, "PreToolUse")])
    assert last_result(agent) == (True, "a hook blocked this: no")


@pytest.mark.parametrize(("answer", "ran"), [(True, True), (False, False)])
def test_with_a_user_a_deferred_call_asks_the_user(project: Path, answer: bool, ran: bool) -> None:
    async def permit(use: ToolUse, name: str) -> bool:
        return answer

    options: dict[str, Any] = {"permit": permit, "permission_mode": "bypassPermissions"}
    result = scripted_session(project, bash("touch ran"), "done", rules=[DEFER], **options).play()
    assert (result.ended_by, (project / "ran").exists()) == ("allowed", ran)


def test_in_a_subagent_a_deferred_call_fails(project: Path, machine: Machine) -> None:
    agent = play_on(
        machine,
        project,
        call("Task", prompt="look"),
        rules=[replace(DEFER, matcher="Bash")],
        sub=[bash("touch ran"), "gave up"],
    )
    [request] = [r for r in agent.model.requests if r.agent == "sub"][1:]
    [result] = results(request)
    assert (result.is_error, result.content, last_result(agent)) == (
        True,
        "not run: a hook deferred Bash: ask Ann, and a subagent cannot wait for the user",
        (False, "gave up"),
    )


# What a hook's process gets


def test_in_the_claude_dialect_a_hook_finds_the_session_in_its_environment(
    project: Path, machine: Machine
) -> None:
    names = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_EFFORT", "CLAUDE_PID")
    echo = " ".join(f"${name}" for name in names)
    scripted_session_on(machine, project, stop=f"echo {echo} > seen", dialect=CLAUDE, session_id="s-1").play()
    assert lines(project / "seen") == [f"1 s-1 sdk-cli medium {os.getpid()}"]


@ALL
def test_the_hooks_of_a_subagent_get_the_mode_and_the_prompt_of_the_session(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    names = ("PreToolUse", "SubagentStart", "PreToolUse", "SubagentStop", "Stop")
    rules = [rule(SAVE_INPUT, name) for name in dict.fromkeys(names)]
    task = call("Task", prompt="look", run_in_background=False)
    play_on(machine, project, task, rules=rules, sub=[bash("true"), "found it"], dialect=dialect)
    given = saved_inputs(project)
    mode = [each.get("permission_mode", "none") for each in given]
    mine = "bypassPermissions"
    start, stop = ("none", mine) if dialect is CLAUDE else (mine, "default")  # of the subagent
    assert [each["hook_event_name"] for each in given] == list(names)
    assert {each["prompt_id"] for each in given} == {given[0]["prompt_id"]}
    assert mode == [mine, start, mine, stop, mine]
