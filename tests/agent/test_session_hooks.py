"""The other events of a session: what their hooks are told, and what they can do."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.machines import Machine
from tests.support.sessions import (
    SAVE_INPUT,
    ScriptedSession,
    block_first,
    configured_session_on,
    hang,
    lines,
    on_first,
    records,
    saved_inputs,
    say,
    scripted_session,
    scripted_session_on,
    specific,
    survives,
    wait_for_file,
)
from tests.support.timeouts import NEVER_S, POLL_INTERVAL_S, TIMEOUT_SCALES
from turngate.agent.agent_config import PermissionMode
from turngate.agent.session import Session
from turngate.core.conversation.messages import (
    ModelRequest,
    Reply,
    ToolResult,
    ToolResults,
    ToolUse,
    UserMessage,
)
from turngate.core.dialect import CLAUDE, DIALECTS, MUX, TURNGATE, Dialect
from turngate.core.events.events import OTHER_EVENTS
from turngate.core.events.stream_events import HookStarted, Notice, TextDelta, TurnResult
from turngate.core.hooks.kinds import CallbackHook, CommandHook
from turngate.core.settings import Rule
from turngate.core.text import describe_exception
from turngate.core.verdict.decisions import Advise
from turngate.core.verdict.hook_run import outcome
from turngate.models.scripted import ScriptedModel
from turngate.plugins.handlers import Plugins
from turngate.subagents import supervisor
from turngate.trust.load import load_settings


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}, **more}


def results(request: ModelRequest) -> list[ToolResult]:
    return [r for message in request.messages if isinstance(message, ToolResults) for r in message.results]


def one_result(agent: ScriptedSession) -> tuple[bool, str]:
    """How the only tool of a turn ended: did it fail, and what was the model told?"""
    [result] = results(agent.model.requests[-1])
    return result.is_error, result.content


# SessionStart


@pytest.mark.req("T-7", "S3-54")
@pytest.mark.parametrize("plans", [0, 1])
def test_a_session_starts_with_the_memory_hook_of_document_003_also_where_there_is_no_plan(
    project: Path, plans: int, machine: Machine
) -> None:
    if plans:
        (project / "docs" / "plans" / "a").mkdir(parents=True)
        memory = "".join(f"chunk {number} is open\n" for number in range(300))
        (project / "docs" / "plans" / "a" / "MEMORY.md").write_text(memory)
    hook = "cat docs/plans/*/MEMORY.md 2>/dev/null | head -100"
    agent = scripted_session_on(machine, project, "done", rules=[rule(hook, "SessionStart")])
    result = agent.play()
    loaded = re.findall(r"^chunk (\d+) is open$", agent.model.requests[0].system, re.MULTILINE)
    assert loaded == [str(number) for number in range(100 * plans)]
    assert (result.outcome, result.notices, agent.heard()) == ("completed", (), ["go"])


@pytest.mark.req("S3-06", "S0-105")
def test_a_session_says_how_it_starts(project: Path, machine: Machine) -> None:
    rules = [rule(SAVE_INPUT, "SessionStart")]

    async def start_reset_and_sum_up(agent: ScriptedSession) -> None:
        async with agent.session:
            await agent.session.send("one")
            await agent.session.reset()
            await agent.session.send("two")
            await agent.session.compact()

    machine.run(start_reset_and_sum_up(scripted_session_on(machine, project, rules=rules, session_id="s")))
    scripted_session_on(machine, project, rules=rules, session_id="s").play("three")
    assert saved_inputs(project, "hook_event_name", "source", "model") == [
        ("SessionStart", source, "scripted:script") for source in ("startup", "clear", "compact", "resume")
    ]


@pytest.mark.req("S3-06")
def test_a_matcher_chooses_the_kind_of_start(project: Path, machine: Machine) -> None:
    rules = [
        rule(SAVE_INPUT, "SessionStart", matcher="resume|clear"),
        rule("tee -a seen", "SessionStart", matcher="^start"),
    ]
    scripted_session_on(machine, project, rules=rules, session_id="s").play("one")
    scripted_session_on(machine, project, rules=rules, session_id="s").play("two")
    assert saved_inputs(project, "source") == ["startup", "resume"]


@pytest.mark.req("S3-06", "S3-42")
@pytest.mark.parametrize(
    "hook",
    ["echo 'we use tabs'", specific("SessionStart", additionalContext="we use tabs")],
    ids=["stdout", "additionalContext"],
)
def test_what_a_start_hook_prints_is_known_to_the_model_before_the_first_prompt(
    project: Path, hook: str, machine: Machine
) -> None:
    agent = scripted_session_on(machine, project, "done", rules=[rule(hook, "SessionStart")])
    agent.play("go", "on")
    assert [("we use tabs" in request.system) for request in agent.model.requests] == [True, True]
    assert agent.heard() == ["go", "agent: done", "on"]


@pytest.mark.req("S3-06", "S3-07")
def test_what_a_callback_advises_at_the_start_or_at_a_prompt_is_context(project: Path) -> None:
    texts = {"SessionStart": "we use tabs", "UserPromptSubmit": "it is Monday"}
    hook = CallbackHook(lambda event: Advise(texts[event.name]))
    agent = scripted_session(project, "done", rules=[rule(hook, event) for event in texts])
    agent.play("go")
    assert ("we use tabs" in agent.model.requests[0].system, agent.heard()) == (True, ["go", "it is Monday"])


@pytest.mark.req("S3-42", "S3-43")
@pytest.mark.parametrize(("memory", "known"), [("port 8080", "port 8080"), (None, "No active plans")])
def test_plan_memory_is_loaded_at_the_start_and_saved_at_the_stop(
    project: Path, memory: str | None, known: str, machine: Machine
) -> None:
    if memory:
        (project / "docs" / "plans" / "a").mkdir(parents=True)
        (project / "docs" / "plans" / "a" / "MEMORY.md").write_text(memory)
    load = "cat docs/plans/*/MEMORY.md 2>/dev/null || echo 'No active plans'"
    agent = scripted_session_on(
        machine, project, "done", stop="echo stopped >> state", rules=[rule(load, "SessionStart")]
    )
    agent.play()
    assert (known in agent.model.requests[0].system, lines(project / "state")) == (True, ["stopped"])


@pytest.mark.req("S3-06", "S0-105")
@pytest.mark.parametrize("variable", ["CLAUDE_ENV_FILE", "TURNGATE_ENV_FILE"])
def test_what_a_start_hook_exports_is_set_for_later_commands(
    project: Path, variable: str, machine: Machine
) -> None:
    exports = f"""printf 'export GREETING="good day"\\nexport PLAIN=1\\n' >> "${variable}" """
    agent = scripted_session_on(
        machine,
        project,
        bash('echo "$GREETING" $PLAIN'),
        "done",
        rules=[rule(exports, "SessionStart")],
        allow=["Bash"],
    )
    agent.play()
    assert one_result(agent) == (False, "good day 1")


def test_a_start_hook_may_put_a_folder_on_the_path(project: Path, machine: Machine) -> None:
    """Claude Code's own example: echo 'export PATH="$PATH:./node_modules/.bin"' >> "$CLAUDE_ENV_FILE"."""
    exports = """echo 'export PATH="$PATH:./node_modules/.bin"' >> "$CLAUDE_ENV_FILE" """
    agent = scripted_session_on(
        machine,
        project,
        bash("cat here; echo $PATH"),
        "done",
        rules=[rule(exports, "SessionStart")],
        allow=["Bash"],
    )
    (project / "here").write_text("found\n")
    agent.play()
    failed, said = one_result(agent)
    assert (failed, said.splitlines()[0], said.endswith(":./node_modules/.bin")) == (False, "found", True)


# UserPromptSubmit


@pytest.mark.req("S3-07")
@pytest.mark.parametrize(
    "hook",
    [say({"decision": "block", "reason": "no secrets please"}), "echo 'no secrets please' >&2; exit 2"],
    ids=["json", "exit 2"],
)
def test_a_prompt_that_is_blocked_reaches_the_user_and_not_the_model(
    project: Path, hook: str, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, "done", rules=[rule(hook, "UserPromptSubmit")], stop="touch stopped"
    )
    result = agent.play("my password is hunter2")
    assert (result.outcome, result.stop_reason, agent.model.requests, (project / "stopped").exists()) == (
        "halted",
        "no secrets please",
        [],
        False,
    )
    assert result.notices == ("a hook blocked the prompt: no secrets please",)
    assert "hunter2" not in Path(result.transcript_path).read_text()


@pytest.mark.req("S3-07")
@pytest.mark.parametrize(
    "hook",
    [
        "cat > seen; echo 'it is Monday'",
        "cat > seen; " + specific("UserPromptSubmit", additionalContext="it is Monday"),
    ],
    ids=["stdout", "additionalContext"],
)
def test_a_hook_may_add_to_the_prompt(project: Path, hook: str, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, "done", rules=[rule(hook, "UserPromptSubmit")])
    result = agent.play("what day is it?")
    assert agent.model.requests[0].messages == (
        UserMessage("what day is it?"),
        UserMessage("it is Monday", "context"),
    )
    assert saved_inputs(project) == [
        {
            "session_id": result.session_id,
            "transcript_path": agent.path_for_hooks(result.transcript_path),
            "cwd": str(project),
            "permission_mode": "default",
            "hook_event_name": "UserPromptSubmit",
            "prompt_id": saved_inputs(project, "prompt_id")[0],
            "prompt": "what day is it?",
        }
    ]


@pytest.mark.req("S3-07")
def test_a_prompt_that_the_user_queues_is_asked_about_too(project: Path, machine: Machine) -> None:
    block = """case "$(tee -a seen)" in *hunter2*) echo 'no secrets please' >&2; exit 2;; esac"""
    listen = on_first(TextDelta, lambda session: session.queue("my password is hunter2"))
    agent = scripted_session_on(
        machine, project, "answer {n}", rules=[rule(block, "UserPromptSubmit")], listen=listen
    )
    agent.play("hello")
    assert (saved_inputs(project, "prompt"), len(agent.model.requests)) == (
        ["hello", "my password is hunter2"],
        1,
    )


# PreToolUse


@pytest.mark.req("S3-08")
def test_a_hook_before_a_tool_gets_what_will_run_with_absolute_paths(project: Path, machine: Machine) -> None:
    (project / "a.txt").write_text("x")
    read = {"tool": "Read", "input": {"file_path": "a.txt"}}
    agent = scripted_session_on(machine, project, read, "done", rules=[rule(SAVE_INPUT, "PreToolUse")])
    agent.play()
    [told] = saved_inputs(project)
    assert {key: told[key] for key in ("hook_event_name", "tool_name", "tool_input", "tool_use_id")} == {
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": f"{project}/a.txt"},
        "tool_use_id": "tool-1",
    }


DENIALS = [
    specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="not here"),
    say({"decision": "block", "reason": "not here"}),
    "echo 'not here' >&2; exit 2",
]


@pytest.mark.req("S3-08")
@pytest.mark.parametrize("hook", DENIALS, ids=["deny", "block", "exit 2"])
def test_a_tool_that_a_hook_denies_does_not_run(project: Path, hook: str, machine: Machine) -> None:
    agent = scripted_session_on(
        machine,
        project,
        bash("touch ran"),
        "done",
        rules=[rule(hook, "PreToolUse")],
        permission_mode="bypassPermissions",
    )
    result = agent.play()
    assert (one_result(agent), (project / "ran").exists(), result.outcome) == (
        (True, "a hook blocked this: not here"),
        False,
        "completed",
    )


@pytest.mark.req("S3-08")
def test_a_hook_may_change_the_input_of_a_tool(project: Path, machine: Machine) -> None:
    change = specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "echo changed"})
    agent = scripted_session_on(
        machine, project, bash("echo original"), "done", rules=[rule(change, "PreToolUse")]
    )
    agent.play()
    assert one_result(agent) == (False, "changed")


def test_a_changed_input_alone_needs_permission_as_the_first_one_did(project: Path, machine: Machine) -> None:
    change = specific("PreToolUse", updatedInput={"command": "echo changed"})
    agent = scripted_session_on(
        machine, project, bash("echo original"), "done", rules=[rule(change, "PreToolUse")]
    )
    agent.play()
    assert one_result(agent)[0]


def test_a_hook_that_allows_stands_for_the_users_permission(project: Path, machine: Machine) -> None:
    allow = specific("PreToolUse", permissionDecision="allow")
    agent = scripted_session_on(machine, project, bash("echo ran"), "done", rules=[rule(allow, "PreToolUse")])
    agent.play()
    assert one_result(agent) == (False, "ran")


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize(("answer", "told"), [(True, "ran"), (False, "the user did not permit Bash")])
def test_a_hook_may_have_the_user_asked(
    project: Path, mode: PermissionMode, answer: bool, told: str, machine: Machine
) -> None:
    asked: list[tuple[ToolUse, str]] = []

    async def permit(use: ToolUse, name: str) -> bool:
        asked.append((use, name))
        return answer

    ask = specific("PreToolUse", permissionDecision="ask")
    agent = scripted_session_on(
        machine,
        project,
        bash("echo ran"),
        "done",
        rules=[rule(ask, "PreToolUse")],
        permit=permit,
        permission_mode=mode,
    )
    agent.play()
    assert (one_result(agent), asked) == (
        (not answer, told),
        [(ToolUse("tool-1", "Bash", {"command": "echo ran"}), "Bash")],
    )


NO_USER = "Bash needs permission, and there is no user to ask: a hook wants the user to be asked"
PERMISSIONS = [
    (["allow", "ask", "deny"], "a hook blocked this: 2"),
    (["allow", "ask"], f"{NO_USER}: 0 1"),
    (["ask", "allow"], f"{NO_USER}: 0 1"),
    (["deny", "allow"], "a hook blocked this: 0"),
]


@pytest.mark.req("S3-08")
@pytest.mark.parametrize(("words", "told"), PERMISSIONS)
def test_deny_comes_before_ask_and_ask_before_allow(
    project: Path, words: list[str], told: str, machine: Machine
) -> None:
    rules = [
        rule(specific("PreToolUse", permissionDecision=word, permissionDecisionReason=str(n)), "PreToolUse")
        for n, word in enumerate(words)
    ]
    agent = scripted_session_on(machine, project, bash("echo ran"), "done", rules=rules)
    agent.play()
    assert one_result(agent) == (True, told)


@pytest.mark.parametrize(
    ("matcher", "ran"),
    [
        ("Bash", False),
        ("Read|Bash", False),
        ("Read", True),
        ("Ba", True),
        ("^Ba", False),
        ("(", True),
        ("", False),
    ],
)
def test_a_matcher_chooses_the_tools(project: Path, matcher: str, ran: bool, machine: Machine) -> None:
    rules = [rule(DENIALS[0], "PreToolUse", matcher=matcher)]
    agent = scripted_session_on(machine, project, bash("touch ran"), "done", rules=rules, allow=["Bash"])
    agent.play()
    assert (project / "ran").exists() == ran


def test_what_a_hook_before_a_tool_adds_comes_with_the_result(project: Path, machine: Machine) -> None:
    rules = [rule(specific("PreToolUse", additionalContext="slow today"), "PreToolUse")]
    agent = scripted_session_on(machine, project, bash("echo ran"), "done", rules=rules, allow=["Bash"])
    agent.play()
    assert one_result(agent) == (False, "ran\n\nHook feedback: slow today")


@pytest.mark.req("C-29", "S3-08")
def test_a_guard_that_must_work_and_breaks_lets_no_tool_run(project: Path, machine: Machine) -> None:
    guard = CommandHook("exit 1", blocking=True)
    agent = scripted_session_on(
        machine, project, bash("touch ran"), "done", rules=[rule(guard, "PreToolUse")], allow=["Bash"]
    )
    agent.play()
    assert (one_result(agent)[0], (project / "ran").exists()) == (True, False)


@pytest.mark.req("C-29")
def test_a_guard_that_need_not_work_and_breaks_lets_the_tool_run_and_is_named(
    project: Path, machine: Machine
) -> None:
    rules = [rule("exit 1", "PreToolUse")]
    agent = scripted_session_on(machine, project, bash("echo ran"), "done", rules=rules, allow=["Bash"])
    result = agent.play()
    assert one_result(agent) == (False, "ran")
    assert result.notices == ('hook "exit 1" failed and was NOT enforced: exit code 1, nothing on stderr',)


# PermissionRequest


def decision(**fields: Any) -> str:
    return "tee -a seen | cat >/dev/null; " + json_only(
        {"hookEventName": "PermissionRequest", "decision": fields}
    )


def json_only(specific_output: dict[str, Any]) -> str:
    return f"echo '{json.dumps({'hookSpecificOutput': specific_output})}'"


async def never(_use: ToolUse, _name: str) -> bool:
    raise AssertionError("the user was asked")


ANSWERS = [
    (decision(behavior="allow"), (False, "ran")),
    (decision(behavior="allow", updatedInput={"command": "echo changed"}), (False, "changed")),
    (decision(behavior="deny", message="not now"), (True, "permission was denied: not now")),
    (decision(behavior="deny"), (True, "permission was denied: denied by a hook")),
]


@pytest.mark.req("S3-10")
@pytest.mark.parametrize(("hook", "told"), ANSWERS)
def test_a_hook_may_answer_in_place_of_the_dialog(
    project: Path, hook: str, told: tuple[bool, str], machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, bash("echo ran"), "done", rules=[rule(hook, "PermissionRequest")], permit=never
    )
    agent.play()
    assert one_result(agent) == told
    assert saved_inputs(project, "hook_event_name", "tool_name", "tool_input") == [
        ("PermissionRequest", "Bash", {"command": "echo ran"})
    ]


@pytest.mark.req("S3-10")
@pytest.mark.parametrize("hook", ["echo no >&2; exit 2", "true", "exit 1", "echo allow"])
def test_without_an_answer_of_the_hook_the_user_is_asked(project: Path, hook: str, machine: Machine) -> None:
    asked: list[str] = []

    async def permit(_use: ToolUse, name: str) -> bool:
        asked.append(name)
        return True

    agent = scripted_session_on(
        machine, project, bash("echo ran"), "done", rules=[rule(hook, "PermissionRequest")], permit=permit
    )
    agent.play()
    assert (one_result(agent), asked) == ((False, "ran"), ["Bash"])


@pytest.mark.parametrize(
    ("answer", "told"),
    [(True, (False, "ran")), (False, (True, "the user did not permit Bash")), (None, (True, "no user"))],
)
@pytest.mark.parametrize("changed", [{}, {"updatedInput": {"command": "echo changed"}}])
def test_a_hook_does_not_answer_for_the_user_what_another_hook_left_open_by_mistake(
    project: Path, changed: dict[str, Any], answer: bool | None, told: tuple[bool, str], machine: Machine
) -> None:
    asked: list[str] = []

    async def permit(_use: ToolUse, name: str) -> bool:
        asked.append(name)
        return answer is True

    unreadable = specific("PreToolUse", permissionDecision="denied")
    rules = [
        rule(unreadable, "PreToolUse"),
        rule(decision(behavior="allow", **changed), "PermissionRequest"),
    ]
    agent = scripted_session_on(
        machine, project, bash("echo ran"), "done", rules=rules, permit=permit if answer is not None else None
    )
    agent.play()
    is_error, text = one_result(agent)
    assert (is_error, told[1] in text, asked) == (told[0], True, ["Bash"] if answer is not None else [])


def test_a_hook_still_denies_for_the_user_what_another_hook_left_open_by_mistake(
    project: Path, machine: Machine
) -> None:
    unreadable = specific("PreToolUse", permissionDecision="denied")
    rules = [
        rule(unreadable, "PreToolUse"),
        rule(decision(behavior="deny", message="no"), "PermissionRequest"),
    ]
    agent = scripted_session_on(machine, project, bash("echo ran"), "done", rules=rules, permit=never)
    agent.play()
    assert one_result(agent) == (True, "permission was denied: no")


def test_a_denial_may_interrupt_the_turn(project: Path, machine: Machine) -> None:
    hook = decision(behavior="deny", message="stop it", interrupt=True)
    agent = scripted_session_on(
        machine,
        project,
        bash("touch ran"),
        "done",
        rules=[rule(hook, "PermissionRequest")],
        stop="touch stopped",
    )
    result = agent.play()
    assert (result.outcome, result.stop_reason, len(agent.model.requests)) == ("halted", "stop it", 1)
    assert not (project / "ran").exists()
    assert not (project / "stopped").exists()


def test_a_tool_that_needs_no_permission_runs_without_a_question(project: Path, machine: Machine) -> None:
    (project / "a.txt").write_text("x")
    rules = [rule(SAVE_INPUT, "PermissionRequest")]
    scripted_session_on(
        machine, project, {"tool": "Read", "input": {"file_path": "a.txt"}}, "done", rules=rules, permit=never
    ).play()
    assert lines(project / "seen") == []


# PostToolUse


@pytest.mark.req("S3-09")
def test_a_hook_after_a_tool_gets_its_result(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine, project, bash("echo ran"), "done", rules=[rule(SAVE_INPUT, "PostToolUse")], allow=["Bash"]
    )
    agent.play()
    fields = ("hook_event_name", "tool_name", "tool_input", "tool_use_id")
    assert saved_inputs(project, *fields) == [("PostToolUse", "Bash", {"command": "echo ran"}, "tool-1")]
    assert saved_inputs(project, "tool_response")[0]["stdout"] == "ran"


FEEDBACK = [
    say({"decision": "block", "reason": "format it"}),
    "echo 'format it' >&2; exit 2",
    specific("PostToolUse", additionalContext="format it"),
]


@pytest.mark.req("S3-09", "S3-44")
@pytest.mark.parametrize("hook", FEEDBACK, ids=["block", "exit 2", "additionalContext"])
def test_feedback_after_a_tool_goes_to_the_model_with_the_result(
    project: Path, hook: str, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, bash("echo ran"), "done", rules=[rule(hook, "PostToolUse")], allow=["Bash"]
    )
    agent.play()
    assert one_result(agent) == (False, "ran\n\nHook feedback: format it")


@pytest.mark.req("S3-09")
@pytest.mark.parametrize(
    "reply",
    [bash("exit 3"), {"tool": "Nothing", "input": {}}, {"tool": "Read", "input": {"file_path": "absent"}}],
    ids=["failed", "unknown", "absent"],
)
def test_a_tool_that_fails_has_no_hook_afterwards(
    project: Path, reply: dict[str, Any], machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, reply, "done", rules=[rule(SAVE_INPUT, "PostToolUse")], allow=["Bash"]
    )
    agent.play()
    assert (one_result(agent)[0], lines(project / "seen")) == (True, [])


@pytest.mark.req("S3-44")
def test_a_formatter_after_each_edit_works_without_any_other_hook(project: Path, machine: Machine) -> None:
    shout = """f=$(sed 's/.*"file_path":"\\([^"]*\\)".*/\\1/'); tr a-z A-Z < "$f" > t && mv t "$f" """
    write = {"tool": "Write", "input": {"file_path": "a.txt", "content": "hello"}}
    write_settings(
        project,
        "claude",
        {"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": shout}]}]}},
    )
    configured_session_on(
        machine, project, write, "done", dialect="claude", permission_mode="acceptEdits"
    ).play()
    assert (project / "a.txt").read_text() == "HELLO"


# SessionEnd, StopFailure


@pytest.mark.req("S3-14")
def test_a_session_says_how_it_ends(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, rules=[rule(SAVE_INPUT, "SessionEnd")])

    async def end() -> None:
        async with agent.session:
            await agent.session.send("go")
            await agent.session.reset()
            await agent.session.close("prompt_input_exit")

    machine.run(end())
    assert saved_inputs(project, "hook_event_name", "reason") == [
        ("SessionEnd", "clear"),
        ("SessionEnd", "prompt_input_exit"),
    ]


@pytest.mark.req("S3-14")
def test_a_session_that_ends_by_an_error_says_so_too(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, rules=[rule(SAVE_INPUT, "SessionEnd", matcher="other")])

    async def fail() -> None:
        async with agent.session:
            await agent.session.send("go")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        machine.run(fail())
    assert saved_inputs(project, "reason") == ["other"]


@pytest.mark.req("S3-14")
def test_a_session_that_is_cancelled_says_so_too(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine, project, {"text": "x", "delay": NEVER_S}, rules=[rule(SAVE_INPUT, "SessionEnd")]
    )

    async def cancel() -> None:
        turns = asyncio.ensure_future(agent.turns("go"))
        while not agent.model.requests:
            await asyncio.sleep(POLL_INTERVAL_S)
        turns.cancel()
        await turns

    with pytest.raises(asyncio.CancelledError):
        machine.run(cancel())
    assert saved_inputs(project, "reason") == ["other"]


def test_session_end_hooks_have_a_short_time_limit(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(machine, project, rules=[rule(hang(), "SessionEnd")])
    agent.play()
    [notice] = [event.text for event in agent.of(Notice)]
    assert notice.endswith("timed out after 1.5 s and was NOT enforced")
    assert not (project / "pid").exists() or not survives((project / "pid").read_text().strip())


def test_a_stop_failure_only_watches(project: Path, machine: Machine) -> None:
    rules = [rule(say({"decision": "block", "reason": "try again"}), "StopFailure")]
    agent = scripted_session_on(machine, project, {"error": "auth"}, rules=rules)
    assert (agent.play().outcome, len(agent.model.requests)) == ("error", 1)


# All events


HALT = say({"continue": False, "stopReason": "enough"})


@pytest.mark.parametrize(
    ("event", "requests", "ran"),
    [
        ("UserPromptSubmit", 0, False),
        ("PreToolUse", 1, False),
        ("PermissionRequest", 1, False),
        ("PostToolUse", 1, True),
        ("Stop", 2, True),
    ],
)
@pytest.mark.req("U-04")
def test_continue_false_ends_the_turn_at_each_event(
    project: Path, event: str, requests: int, ran: bool, machine: Machine
) -> None:
    options: dict[str, Any] = {} if event == "PermissionRequest" else {"allow": ["Bash"]}
    agent = scripted_session_on(
        machine, project, bash("touch ran"), "done", rules=[rule(HALT, event)], **options
    )
    result = agent.play()
    assert (result.outcome, result.stop_reason, len(agent.model.requests), (project / "ran").exists()) == (
        "halted",
        "enough",
        requests,
        ran,
    )


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest", "PostToolUse"])
def test_after_a_halt_every_tool_call_has_its_result(project: Path, event: str, machine: Machine) -> None:
    """Providers refuse a conversation in which one is missing."""
    hook = f"[ -e once ] || {{ touch once; {HALT}; }}"
    options: dict[str, Any] = {} if event == "PermissionRequest" else {"allow": ["Bash"]}
    agent = scripted_session_on(machine, project, bash("true"), "done", rules=[rule(hook, event)], **options)
    agent.play("go", "on")
    used = [use.id for m in agent.model.requests[-1].messages if isinstance(m, Reply) for use in m.tool_uses]
    assert [result.tool_use_id for result in results(agent.model.requests[-1])] == used == ["tool-1"]


@pytest.mark.parametrize(
    "event",
    [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ],
)
def test_a_system_message_goes_to_the_user_and_never_to_the_model(
    project: Path, event: str, machine: Machine
) -> None:
    options: dict[str, Any] = {"permit": yes} if event == "PermissionRequest" else {"allow": ["Bash"]}
    agent = scripted_session_on(
        machine, project, bash("true"), "done", rules=[rule(say({"systemMessage": "psst"}), event)], **options
    )
    agent.play()
    assert agent.of(Notice) == [Notice("psst")]
    assert "psst" not in repr(agent.model.requests)


@pytest.mark.req("C-23", "S0-105")
def test_all_events_of_a_turn_come_in_their_order(project: Path, machine: Machine) -> None:
    rules = [rule(f"echo {name} >> log", name) for name in ("Stop", *OTHER_EVENTS)]
    agent = scripted_session_on(
        machine, project, bash("true"), bash("exit 3"), "done", rules=rules, permit=yes
    )

    async def turn_and_compaction() -> None:
        async with agent.session:
            await agent.session.send("go")
            await agent.session.compact()

    machine.run(turn_and_compaction())
    assert lines(project / "log") == [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUse",
        "PostToolBatch",
        "PreToolUse",
        "PermissionRequest",
        "PostToolUseFailure",
        "PostToolBatch",
        "Stop",
        "PreCompact",
        "SessionStart",
        "SessionEnd",
    ]


async def yes(_use: ToolUse, _name: str) -> bool:
    return True


@pytest.mark.req("C-23")
def test_a_stop_needs_no_other_event(project: Path, machine: Machine) -> None:
    write_settings(project, "mux", stop_hooks("echo stop >> log"))
    agent = configured_session_on(machine, project, bash("true"), "done", permission_mode="bypassPermissions")
    agent.play()
    assert ([event.event for event in agent.of(HookStarted)], lines(project / "log")) == (["Stop"], ["stop"])


@pytest.mark.req("U-08", "U-19")
def test_with_hooks_switched_off_nothing_is_asked(project: Path, machine: Machine) -> None:
    def asked(*, hooks: bool) -> list[str]:
        agent = scripted_session_on(
            machine, project, bash("true"), "done", rules=rules, hooks=hooks, allow=["Bash"]
        )
        assert agent.play().outcome == "completed"
        return lines(project / "log")

    rules = [rule("echo $TURNGATE_EVENT >> log", name) for name in ("Stop", *OTHER_EVENTS)]
    assert asked(hooks=False) == []
    assert "Stop" in asked(hooks=True)


def test_the_runs_of_all_hooks_of_a_turn_are_in_its_result(project: Path, machine: Machine) -> None:
    rules = [rule("true", "UserPromptSubmit"), rule("exit 1", "PostToolUse"), rule(block_first(1))]
    result = scripted_session_on(machine, project, bash("true"), "done", rules=rules, allow=["Bash"]).play()
    assert [(run.rule.event, outcome(run)) for run in result.hook_runs] == [
        ("UserPromptSubmit", "allow"),
        ("PostToolUse", "failed"),
        ("Stop", "block"),
        ("Stop", "allow"),
    ]


# The hooks' words on disk


def outputs(result: TurnResult) -> list[dict[str, Any]]:
    return [record for record in records(result.transcript_path) if record["type"] == "hook_output"]


@pytest.mark.parametrize("said", ["all well", "hello {"])
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.req("S0-38", "S0-89", "S3-19")
def test_what_a_hook_prints_is_kept_in_the_transcript(
    project: Path, dialect: Dialect, said: str, machine: Machine
) -> None:
    hook = f"echo '{said}'"
    agent = scripted_session_on(machine, project, "done", stop=hook, dialect=dialect)
    result = agent.play()
    assert outputs(result) == [{"type": "hook_output", "event": "Stop", "hook": hook, "stdout": f"{said}\n"}]
    assert (result.outcome, result.notices, agent.heard()) == ("completed", (), ["go"])


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("suppress", [True, False, None])
@pytest.mark.req("S0-48", "S3-26")
def test_a_hook_may_keep_its_output_off_the_transcript(
    project: Path, state: Path, dialect: Dialect, suppress: bool | None, machine: Machine
) -> None:
    """The journal has it in any case. Claude Code reads the key and does nothing with it."""
    said = {"systemMessage": "fine"} | ({} if suppress is None else {"suppressOutput": suppress})
    result = scripted_session_on(machine, project, "done", rules=[rule(say(said))], dialect=dialect).play()
    kept = [json.loads(record["stdout"]) for record in outputs(result)]
    assert kept == ([] if suppress and dialect is not CLAUDE else [said])
    journal = records(str(state / "sessions" / result.session_id / "journal.jsonl"))
    assert [json.loads(each["stdout"]) for each in journal if each["kind"] == "hook"] == [said]


# Permission modes


def tool(name: str) -> dict[str, Any]:
    inputs = {
        "Bash": {"command": "touch new.txt"},
        "Write": {"file_path": "new.txt", "content": "x"},
        "Edit": {"file_path": "old.txt", "old_string": "old", "new_string": "new"},
        "Read": {"file_path": "old.txt"},
        "Glob": {"pattern": "*.txt"},
        "Grep": {"pattern": "old"},
        "TodoWrite": {"todos": [{"content": "x", "status": "pending"}]},
    }
    return {"name": name, "input": inputs[name]}


LOOKING = ["Read", "Glob", "Grep", "TodoWrite"]
MODES: list[tuple[PermissionMode, list[str], list[str]]] = [
    ("default", [], LOOKING),
    ("default", ["Bash"], [*LOOKING, "Bash"]),
    ("default", ["Write", "Edit"], [*LOOKING, "Write", "Edit"]),
    ("acceptEdits", [], [*LOOKING, "Write", "Edit"]),
    ("plan", [], LOOKING),
    ("bypassPermissions", [], [*LOOKING, "Bash", "Write", "Edit"]),
]


@pytest.mark.parametrize(("mode", "allow", "may"), MODES)
def test_each_permission_mode_lets_its_tools_run(
    project: Path, mode: PermissionMode, allow: list[str], may: list[str], machine: Machine
) -> None:
    (project / "old.txt").write_text("old")
    names = [*LOOKING, "Write", "Edit", "Bash"]
    agent = scripted_session_on(
        machine, project, {"tools": [tool(name) for name in names]}, "done", permission_mode=mode, allow=allow
    )
    agent.play()
    ran = {
        name
        for name, result in zip(names, results(agent.model.requests[-1]), strict=True)
        if not result.is_error
    }
    assert ran == set(may)


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("default", "Bash needs permission, and there is no user to ask; start with --allow Bash"),
        ("plan", "Bash is not allowed in plan mode: read only, and describe the change"),
    ],
)
def test_the_model_gets_the_reason_why_a_tool_may_not_run(
    project: Path, mode: PermissionMode, told: str
) -> None:
    agent = scripted_session(project, bash("true"), "done", permission_mode=mode)
    agent.play()
    assert one_result(agent) == (True, told)


def test_in_plan_mode_no_permission_for_a_change_is_requested(project: Path) -> None:
    agent = scripted_session(project, bash("true"), "done", permission_mode="plan", permit=never)
    agent.play()
    assert one_result(agent)[0]


# What the model knows


def test_the_projects_guides_are_given_to_the_model(project: Path, machine: Machine) -> None:
    (project / "AGENTS.md").write_text("Use tabs.\n")
    (project / "CLAUDE.md").write_text("Run make.\n")
    agent = scripted_session_on(machine, project, "done")
    agent.play()
    assert agent.model.requests[0].system.endswith(
        "\n\nThe project's AGENTS.md:\nUse tabs.\n\nThe project's CLAUDE.md:\nRun make."
    )


def test_a_guide_that_cannot_be_read_is_left_out(project: Path, machine: Machine) -> None:
    (project / "AGENTS.md").mkdir()
    (project / "CLAUDE.md").write_bytes(b"caf\xe9")
    agent = scripted_session_on(machine, project, "done")
    agent.play()
    assert agent.model.requests[0].system.endswith("The project's CLAUDE.md:\ncaf�")


def test_the_settings_environment_is_there_for_commands_and_for_hooks(
    project: Path, machine: Machine
) -> None:
    agent = scripted_session_on(
        machine,
        project,
        bash("echo $COLOR"),
        "done",
        stop="echo $COLOR > hook",
        env={"COLOR": "red"},
        allow=["Bash"],
    )
    agent.play()
    assert (one_result(agent), lines(project / "hook")) == ((False, "red"), ["red"])


# Forgetting


def test_a_reset_forgets_the_conversation_but_not_the_session(project: Path) -> None:
    agent = scripted_session(project, "answer {n}")

    async def both() -> tuple[TurnResult, TurnResult]:
        async with agent.session:
            before = await agent.session.send("one")
            await agent.session.reset()
            return before, await agent.session.send("two")

    before, after = asyncio.run(both())
    assert (agent.heard(), before.transcript_path) == (["two"], after.transcript_path)
    again = scripted_session(project, "answer {n}", session_id=after.session_id)
    again.play("three")
    assert again.heard() == ["two", "agent: answer 2", "three"]


def test_a_rule_may_come_from_python_beside_the_settings_own(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("echo file >> log"))
    settings = load_settings(str(project)).with_rules(Rule("Stop", rule("echo python >> log").hook))
    asyncio.run(_send(Session(str(project), ScriptedModel({"main": ["done"]}), settings)))
    assert sorted(lines(project / "log")) == ["file", "python"]


async def _send(session: Session) -> None:
    async with session:
        await session.send("go")


# Context beside a block


def test_in_the_claude_dialect_the_model_gets_context_beside_a_block_as_a_second_message(
    project: Path, machine: Machine
) -> None:
    answer = {
        "decision": "block",
        "reason": "run the tests",
        "hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "use pytest"},
    }
    hook = f"[ -e asked ] || {{ touch asked; {say(answer)}; }}"
    agent = scripted_session_on(machine, project, "one", "two", stop=hook, dialect=CLAUDE)
    agent.play()
    feedback = UserMessage("Stop hook feedback:\nrun the tests", "stop_hook")
    context = UserMessage(
        "<system-reminder>\nStop hook additional context: use pytest\n</system-reminder>", "context"
    )
    assert agent.model.requests[-1].messages[-2:] == (feedback, context)


# The first message


def test_a_message_of_a_session_start_hook_is_answered_up_to_its_stop_before_the_prompt(
    project: Path, machine: Machine
) -> None:
    rules = [
        rule(specific("SessionStart", initialUserMessage="read the notes"), "SessionStart"),
        rule(SAVE_INPUT, "UserPromptSubmit"),
    ]
    agent = scripted_session_on(machine, project, "read", "done", stop=SAVE_INPUT, rules=rules)
    result = agent.play("go", "on")
    assert agent.heard() == ["read the notes", "agent: read", "go", "agent: done", "on"]
    fields = ("hook_event_name", "prompt_id")
    events = [(name, prompt_id) for name, prompt_id in saved_inputs(project, *fields)]
    assert [name for name, _ in events] == ["UserPromptSubmit", "Stop"] * 3
    assert (len({prompt_id for _, prompt_id in events}), result.result) == (3, "done")


def test_a_prompt_is_not_answered_if_the_first_message_halts_the_turn(
    project: Path, machine: Machine
) -> None:
    rules = [
        rule(specific("SessionStart", initialUserMessage="read the notes"), "SessionStart"),
        rule(say({"continue": False, "stopReason": "enough"}), "UserPromptSubmit"),
    ]
    agent = scripted_session_on(machine, project, rules=rules)
    result = agent.play("go")
    assert (result.ended_by, result.stop_reason, agent.model.requests) == ("halted", "enough", [])


# Hooks in the background


@pytest.mark.parametrize(
    ("dialect", "context"),
    [
        (TURNGATE, ["Feedback of a PostToolUse hook: use tabs"]),
        (CLAUDE, ["<system-reminder>\nPostToolUse hook additional context: use tabs\n</system-reminder>"]),
        (MUX, []),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_context_of_a_hook_in_the_background_goes_with_a_later_request(
    project: Path, dialect: Dialect, context: list[str], machine: Machine
) -> None:
    answer = {
        "decision": "block",
        "reason": "ignored",
        "systemMessage": "formatted",
        "hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "use tabs"},
    }
    hook = rule(CommandHook(say(answer), detached=True), "PostToolUse")
    glob = {"tool": "Glob", "input": {"pattern": "*"}}
    agent = scripted_session_on(machine, project, glob, "done", rules=[hook], dialect=dialect)

    async def wait_for_run() -> None:
        async with agent.session:
            await agent.session.send("go")
            await wait_for_background(agent.session)
            await agent.session.send("on")

    machine.run(wait_for_run())
    heard = [text for text in agent.heard() if "use tabs" in text]
    assert (heard, "formatted" in [notice.text for notice in agent.of(Notice)]) == (context, True)


async def wait_for_background(session: Session) -> None:
    async with asyncio.timeout(NEVER_S):
        while session._agent.resources.world.background:
            await asyncio.sleep(POLL_INTERVAL_S)


@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
def test_the_end_of_a_session_waits_for_a_background_hook_with_async_rewake(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    hook = CommandHook("sleep 0.7; touch ended; exit 2", detached=True, rewake=True)
    result = scripted_session_on(machine, project, "done", stop=hook, dialect=dialect).play()
    assert (result.ended_by, result.model_requests, (project / "ended").exists()) == ("allowed", 1, True)


async def permit_all(*_: object) -> bool:
    return True


USER: dict[str, Any] = {"permit": permit_all}  # with a user, a turn does not wait for hooks in the background


async def answer_wakes(agent: ScriptedSession) -> list[TurnResult | None]:
    """Take a turn for a prompt, then one whenever a hook in the background wakes the agent."""
    async with agent.session:
        results: list[TurnResult | None] = [await agent.session.send("go")]
        await wait_for_background(agent.session)
        while agent.session.has_background_results:
            results.append(await agent.session.answer_background())
            await wait_for_background(agent.session)
    return results


@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
def test_exit_code_2_of_a_background_hook_with_async_rewake_starts_a_turn(
    project: Path, dialect: Dialect, machine: Machine
) -> None:
    command = "mkdir once || exit 0; echo two tests fail >&2; exit 2"
    hook = CommandHook(command, id="tests", detached=True, rewake=True)
    agent = scripted_session_on(machine, project, "done", "fixed", stop=hook, dialect=dialect, **USER)
    _, woken = machine.run(answer_wakes(agent))
    assert woken is not None
    assert (woken.result, agent.heard()) == (
        "fixed",
        ["go", "agent: done", 'Stop hook blocking error from command "Stop": two tests fail'],
    )
    assert [notice.text for notice in agent.of(Notice)] == ['hook "tests" in the background wakes the agent']


def test_a_background_hook_wakes_the_agent_only_as_often_as_a_hook_can_block(
    project: Path, machine: Machine
) -> None:
    hook = CommandHook("echo no >&2; exit 2", id="tests", detached=True, rewake=True)
    agent = scripted_session_on(machine, project, "done", stop=hook, limit=2, **USER)
    results = machine.run(answer_wakes(agent))
    limit = 'hook "tests" in the background does not wake the agent: 2 continuations are the limit'
    assert (len(results), agent.of(Notice)[-1].text) == (3, limit)


def test_a_tool_call_does_not_let_a_background_hook_wake_the_agent_more_often(
    project: Path, machine: Machine
) -> None:
    hook = CommandHook("echo no >&2; exit 2", id="tests", detached=True, rewake=True)
    call = {"tool": "Bash", "input": {"command": "true"}}
    replies = [call, "done"] * 8
    agent = scripted_session_on(
        machine, project, *replies, stop=hook, limit=2, dialect=CLAUDE, allow=["Bash"], **USER
    )
    assert len(machine.run(answer_wakes(agent))) == 3


@pytest.mark.parametrize(
    ("command", "rewake"),
    [("echo no >&2; exit 2", False), ("echo no >&2; exit 1", True), (say({"decision": "block"}), True)],
    ids=["without asyncRewake", "another exit code", "a decision in JSON"],
)
def test_other_ends_of_a_background_hook_start_no_turn(
    project: Path, command: str, rewake: bool, machine: Machine
) -> None:
    hook = CommandHook(command, detached=True, rewake=rewake)
    agent = scripted_session_on(machine, project, "done", stop=hook, dialect=CLAUDE, **USER)
    assert len(machine.run(answer_wakes(agent))) == 1


def test_a_user_who_is_faster_than_a_woken_agent_is_answered_after_it(
    project: Path, machine: Machine
) -> None:
    command = "mkdir once || exit 0; echo two tests fail >&2; exit 2"
    agent = scripted_session_on(
        machine, project, "done", stop=CommandHook(command, detached=True, rewake=True), **USER
    )

    async def two_prompts() -> None:
        async with agent.session:
            await agent.session.send("go")
            await wait_for_background(agent.session)
            await agent.session.send("on")

    machine.run(two_prompts())
    woken = 'Stop hook blocking error from command "Stop": two tests fail'
    assert agent.heard() == ["go", "agent: done", woken, "agent: done", "on"]


def test_a_block_of_a_subagent_by_a_background_hook_is_named(project: Path, machine: Machine) -> None:
    hook = CommandHook("echo two tests fail >&2; exit 2", id="tests", detached=True, rewake=True)
    task = {"tool": "Task", "input": {"description": "look", "prompt": "look", "subagent_type": "Explore"}}
    agent = scripted_session_on(
        machine, project, task, "done", sub=["seen"], rules=[rule(hook, "SubagentStop")]
    )
    agent.play()
    assert [notice.text for notice in agent.of(Notice)] == [
        'hook "tests" in the background blocked a subagent, which it does not wake: two tests fail'
    ]


def test_the_wait_for_a_background_hook_ends_with_its_timeout(project: Path, machine: Machine) -> None:
    def starts_within(limit: float) -> bool:
        hook = CommandHook(hang(), detached=True, rewake=True, timeout=limit)
        scripted_session_on(machine, project, "done", stop=hook, dialect=CLAUDE).play()
        return (project / "pid").exists()

    assert any(starts_within(float(scale)) for scale in TIMEOUT_SCALES)
    assert not survives((project / "pid").read_text().strip())


@pytest.mark.parametrize("error", [TimeoutError("no answer"), OSError(5, "bad tty")], ids=["timeout", "os"])
def test_an_error_of_the_permission_callback_is_not_taken_for_one_of_the_transcript(
    project: Path, error: OSError
) -> None:
    async def permit(*_: object) -> bool:
        raise error

    bash = {"tool": "Bash", "input": {"command": "touch ran"}}
    result = scripted_session(project, bash, "done", permit=permit).play()
    why = f"the turn failed: {describe_exception(error)}"
    assert (result.ended_by, result.stop_reason, (project / "ran").exists()) == ("error", why, False)


def test_a_session_start_hook_that_was_interrupted_runs_again_with_the_next_prompt(
    project: Path, machine: Machine
) -> None:
    hook = f"echo x >> runs; [ -e pid ] && exit 0; {hang()}"
    agent = scripted_session_on(machine, project, "done", rules=[rule(hook, "SessionStart")])

    async def interrupted_then_answered() -> tuple[str, str]:
        async with agent.session as session:
            first = asyncio.create_task(session.send("one"))
            await wait_for_file(project / "pid")
            session.interrupt()
            return (await first).ended_by, (await session.send("two")).ended_by

    ended = machine.run(interrupted_then_answered())
    assert (ended, lines(project / "runs")) == (("interrupt", "allowed"), ["x", "x"])


def test_an_interrupt_does_not_wait_for_a_plugin_that_is_told_of_the_end_of_a_subagent(
    project: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    monkeypatch.setattr(supervisor, "KILL_WAIT_S", 0.1)
    plugins, asked = Plugins(), asyncio.Event()
    plugins.limit = NEVER_S

    async def never_ends(*_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    plugins.on("subagent_ended", never_ends)
    task = {"tool": "Task", "input": {"prompt": "look", "run_in_background": False}}
    slow = {"tool": "Bash", "input": {"command": hang()}}
    options: dict[str, Any] = {"plugins": plugins, "permission_mode": "bypassPermissions"}
    agent = scripted_session_on(machine, project, task, "done", sub=[slow], **options)

    async def interrupted() -> str:
        async with agent.session as session:
            turn = asyncio.create_task(session.send("go"))
            await wait_for_file(project / "pid")
            session.interrupt()
            ended_by = (await turn).ended_by
            await asked.wait()
            return ended_by

    assert machine.run(interrupted()) == "interrupt"
