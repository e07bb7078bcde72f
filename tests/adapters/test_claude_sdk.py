"""Hooks as options of Claude's Agent SDK, tested with a program that records what it receives."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

from tests.support.paths import ROOT
from turngate import (
    Advise,
    AgentHook,
    Allow,
    Block,
    CallbackHook,
    CommandHook,
    Halt,
    HookGroup,
    HttpHook,
    InvalidOptions,
    Options,
    PromptHook,
    StopEvent,
)
from turngate.errors import UsageError
from turngate.extra_install import install_command

FAKE = ROOT / "tests" / "support" / "fake_claude.py"


def fake_program(project: Path) -> Path:
    program = project / "claude"
    program.write_text(f"#!{sys.executable}\n" + FAKE.read_text())
    program.chmod(0o755)
    return program


def heard(options: Options, project: Path, **base: Any) -> list[dict[str, Any]]:
    """Run one query of the SDK with these hooks. Return what the program was started with and each frame it received."""
    program = fake_program(project)
    theirs = options.for_claude(claude_agent_sdk.ClaudeAgentOptions(cli_path=program, cwd=project, **base))

    async def ask() -> str | None:
        said = None
        async for message in claude_agent_sdk.query(prompt="go", options=theirs):
            if isinstance(message, claude_agent_sdk.ResultMessage):
                said = message.result
        return said

    assert asyncio.run(ask()) == "done"
    return [json.loads(line) for line in (project / "heard").read_text().splitlines()]


def answers(frames: list[dict[str, Any]]) -> list[Any]:
    """Return the responses of the callbacks: a result, or the message of an error."""
    said = [frame["response"] for frame in frames if frame.get("type") == "control_response"]
    return [each["response"] if each["subtype"] == "success" else each["error"] for each in said]


def settings(frames: list[dict[str, Any]]) -> Any:
    arguments = frames[0]["arguments"]
    return json.loads(arguments[arguments.index("--settings") + 1])


def allow(event: StopEvent) -> None: ...


@pytest.mark.req("S2-11", "S2-34", "C-01")
def test_what_claude_code_runs_itself_travels_in_its_settings_in_seconds(project: Path) -> None:
    options = Options(
        {
            "Stop": [
                CommandHook("make test", timeout_ms=1500),
                {"type": "prompt", "prompt": "Is it done? $ARGUMENTS", "timeout": 20_000},
                AgentHook("Look around.", model="anthropic:claude-haiku-4-5"),
                HttpHook("http://localhost:1/", headers={"X": "$T"}, allowed_env_vars=("T",)),
                CallbackHook(allow),
            ],
            "SubagentStop": [HookGroup("coder", [PromptHook("Did it do its task?")])],
        },
        judge="anthropic:claude-sonnet-4-5",
    )
    frames = heard(options, project)
    assert settings(frames) == {
        "hooks": {
            "Stop": [
                {"hooks": [{"type": "command", "command": "make test", "timeout": 1.5}]},
                {
                    "hooks": [
                        {
                            "type": "prompt",
                            "prompt": "Is it done? $ARGUMENTS",
                            "timeout": 20,
                            "model": "claude-sonnet-4-5",
                        }
                    ]
                },
                {"hooks": [{"type": "agent", "prompt": "Look around.", "model": "claude-haiku-4-5"}]},
                {
                    "hooks": [
                        {
                            "type": "http",
                            "url": "http://localhost:1/",
                            "headers": {"X": "$T"},
                            "allowedEnvVars": ["T"],
                        }
                    ]
                },
            ],
            "SubagentStop": [
                {
                    "matcher": "coder",
                    "hooks": [
                        {"type": "prompt", "prompt": "Did it do its task?", "model": "claude-sonnet-4-5"}
                    ],
                }
            ],
        }
    }


@pytest.mark.req("S2-13", "S2-34")
def test_functions_are_callbacks_of_the_initialize_frame(project: Path) -> None:
    options = Options(
        {
            "Stop": [CallbackHook(allow, timeout=2.5), CommandHook("true"), CallbackHook(allow)],
            "PreToolUse": [HookGroup("Bash", [CallbackHook(allow)])],
        },
    )
    [initialize] = [f for f in heard(options, project) if f.get("type") == "control_request"]
    assert initialize["request"] == {
        "subtype": "initialize",
        "hooks": {
            "Stop": [
                {"matcher": None, "hookCallbackIds": ["hook_0"], "timeout": 2.5},
                {"matcher": None, "hookCallbackIds": ["hook_1"]},
            ],
            "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_2"]}],
        },
    }


async def later(event: StopEvent) -> Block:
    await asyncio.sleep(0)
    return Block(f"{event.name} of {event.session_id}, active: {event.stop_hook_active}", "and be quick")


async def theirs(told: dict[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
    return {"continue_": False, "stopReason": f"{told['hook_event_name']} {tool_use_id}"}


def broken(event: StopEvent) -> None:
    raise LookupError("no such check")


async def leaves(event: StopEvent) -> None:
    sys.exit(3)


def circular(event: StopEvent) -> dict[str, Any]:
    answer: dict[str, Any] = {"decision": "block", "reason": "go on"}
    answer["more"] = answer
    return answer


@pytest.mark.req("S2-13", "S2-32", "S2-34")
@pytest.mark.parametrize(
    ("event", "hook", "answer"),
    [
        ("Stop", CallbackHook(lambda _: None), {}),
        ("Stop", CallbackHook(lambda _: Allow(notice="fine")), {"systemMessage": "fine"}),
        ("Stop", CallbackHook(lambda _: Block("go on")), {"decision": "block", "reason": "go on"}),
        (
            "Stop",
            CallbackHook(later),
            {
                "decision": "block",
                "reason": "Stop of s-1, active: False",
                "hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "and be quick"},
            },
        ),
        (
            "SubagentStop",
            CallbackHook(lambda event: Block(event.subagent.type)),
            {"decision": "block", "reason": "coder"},
        ),
        (
            "Stop",
            CallbackHook(lambda _: Advise("look")),
            {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "look"}},
        ),
        ("Stop", CallbackHook(lambda _: Halt("enough")), {"continue": False, "stopReason": "enough"}),
        ("Stop", CallbackHook(theirs), {"continue": False, "stopReason": "Stop t-1"}),
        (
            "Stop",
            CallbackHook(lambda _: {"decision": "block", "reason": "no"}),
            {"decision": "block", "reason": "no"},
        ),
        (
            "PreToolUse",
            CallbackHook(lambda event: Block(f"not {event.tool_input['command']}")),
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": "not rm -r .",
                }
            },
        ),
        ("Stop", CallbackHook(broken), "LookupError: no such check"),
        ("Stop", CallbackHook(leaves), "SystemExit: 3"),
        (
            "Stop",
            CallbackHook(circular),
            "its result cannot be written as JSON: ValueError: Circular reference detected",
        ),
        (
            "Stop",
            CallbackHook(lambda _: {"systemMessage": "fine", "more": object()}),
            "its result cannot be written as JSON: TypeError: Object of type object is not JSON serializable",
        ),
        (
            "Stop",
            CallbackHook(lambda _: {"more": {7}}, mode="observe", id="watch"),
            {
                "systemMessage": "watch failed: its result cannot be written as JSON: "
                "TypeError: Object of type set is not JSON serializable"
            },
        ),
        (
            "Stop",
            CallbackHook(lambda _: {"decision": "block", "reason": "\ud800"}, blocking=True),
            {
                "decision": "block",
                "reason": "this check failed and must pass before you may stop: its result cannot be written as "
                "JSON: UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 33: "
                "surrogates not allowed",
            },
        ),
        ("Stop", CallbackHook(lambda _: 7), "it returned int; expected a decision, a dict or None"),
        (
            "Stop",
            CallbackHook(broken, blocking=True),
            {
                "decision": "block",
                "reason": "this check failed and must pass before you may stop: LookupError: no such check",
            },
        ),
        (
            "Stop",
            CallbackHook(lambda _: Block("go on"), mode="observe", id="watch"),
            {"systemMessage": "watch would have blocked: go on"},
        ),
    ],
)
def test_what_a_function_returns_comes_back_in_claude_codes_words(
    project: Path, event: str, hook: CallbackHook, answer: object
) -> None:
    assert answers(heard(Options({event: [hook]}), project)) == [answer]


def test_a_number_that_json_does_not_know_is_no_answer(project: Path) -> None:
    hook = CallbackHook(lambda _: {"decision": "block", "reason": "go on", "more": float("nan")})
    [said] = answers(heard(Options({"Stop": [hook]}), project))
    assert said.startswith("its result cannot be written as JSON: ValueError: Out of range float values")


def test_hooks_and_settings_that_are_there_already_stay(project: Path) -> None:
    async def first(told: Any, tool_use_id: str | None, context: Any) -> Any:
        return {"systemMessage": "first"}

    (project / "own.json").write_text('{"env": {"A": "1"}, "hooks": {"Stop": [{"hooks": []}]}}')
    frames = heard(
        Options({"Stop": [CommandHook("true"), CallbackHook(lambda _: Block("second"))]}),
        project,
        hooks={"Stop": [claude_agent_sdk.HookMatcher(hooks=[first])]},
        settings="own.json",
    )
    assert (settings(frames), answers(frames)) == (
        {
            "env": {"A": "1"},
            "hooks": {"Stop": [{"hooks": []}, {"hooks": [{"type": "command", "command": "true"}]}]},
        },
        [{"systemMessage": "first"}, {"decision": "block", "reason": "second"}],
    )


def test_what_claude_code_does_not_support_is_reported_at_once() -> None:
    options = Options(
        {
            "Stop": [
                CommandHook("true", mode="observe"),
                CommandHook("false", blocking=True, env={"A": "1"}, mode="gate"),
                PromptHook("?", transcript="digest"),
                CallbackHook(allow, detached=True),
                CommandHook("off", enabled=False, blocking=True),
                PromptHook("?", model="openai:gpt"),
                HookGroup("coder", [AgentHook("?", model="google:gemini")]),
                CommandHook("x", condition="Bash(git *)", shell="bash"),
                PromptHook("?", detached=True),
            ],
            "SubagentStop": [CommandHook("x", outcomes=("error",), detached=True)],
            "SessionEnd": [CallbackHook(allow), CommandHook("x")],
            "PreToolUse": [CommandHook("x", condition="Bash(git *)")],
        },
        model="openai:gpt",
        judge="openai:small",
        dialect="mux",
        limit=0,
    )
    with pytest.raises(InvalidOptions) as raised:
        options.for_claude({})
    assert str(raised.value) == (
        "17 problems in the options\n"
        "  Stop[0].mode: has no equivalent in Claude Code\n"
        "  Stop[1].blocking: has no equivalent in Claude Code\n"
        "  Stop[1].env: has no equivalent in Claude Code\n"
        "  Stop[2].transcript: has no equivalent in Claude Code\n"
        "  Stop[3].detached: has no equivalent in Claude Code\n"
        "  Stop[5].model: is 'openai:gpt', expected a model of Anthropic's for Claude Code\n"
        "  Stop[6].hooks[0].model: is 'google:gemini', expected a model of Anthropic's for Claude Code\n"
        "  Stop[7].condition: prevents a hook from running at a stop in Claude Code\n"
        "  Stop[7].shell: has no equivalent in Claude Code\n"
        "  Stop[8].detached: has no equivalent in Claude Code\n"
        "  SubagentStop[0].outcomes: has no equivalent in Claude Code\n"
        "  SessionEnd[0]: the SDK does not call functions at SessionEnd\n"
        "  model: is 'openai:gpt', expected a model of Anthropic's for Claude Code\n"
        "  judge: is 'openai:small', expected a model of Anthropic's for Claude Code\n"
        "  dialect: is 'mux', expected \"claude\" for Claude Code\n"
        "  limit: is 0, which Claude Code reads as no limit, expected 1 or more\n"
        "  base: is a dict, expected ClaudeAgentOptions"
    )


def test_what_claude_code_does_anyway_is_not_written() -> None:
    options = Options(
        {"Stop": [PromptHook("?", transcript="full", mode="gate", model="anthropic:claude-haiku-4-5")]},
        dialect="claude",
    )
    assert json.loads(options.for_claude().settings) == {
        "hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "?", "model": "claude-haiku-4-5"}]}]}
    }


@pytest.mark.parametrize(
    ("limit", "env", "told"),
    [
        (None, {"A": "1"}, {"A": "1"}),
        (2, {"A": "1"}, {"A": "1", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2"}),
        (2, {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "5"}, {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "5"}),
    ],
)
def test_the_limit_travels_in_a_variable_unless_the_base_has_it(
    limit: int | None, env: dict[str, str], told: dict[str, str]
) -> None:
    base = claude_agent_sdk.ClaudeAgentOptions(env=env)
    assert Options(limit=limit).for_claude(base).env == told


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            "gone.json",
            "file {project}/gone.json cannot be read: [Errno 2] No such file or directory: '{project}/gone.json'",
        ),
        ("{", " is not JSON at line 1, column 2: expecting property name enclosed in double quotes"),
        ("{'a': 1}", ' is not JSON at line 1, column 2: strings need double quotes (")'),
        ('{"hooks": []}', " must be an object whose `hooks` hold a list for each event"),
        ('{"hooks": {"Stop": {}}}', " must be an object whose `hooks` hold a list for each event"),
    ],
)
def test_settings_that_cannot_be_extended_are_named(settings: str, said: str, project: Path) -> None:
    base = claude_agent_sdk.ClaudeAgentOptions(settings=settings, cwd=project)
    with pytest.raises(UsageError) as raised:
        Options({"Stop": [CommandHook("true")]}).for_claude(base)
    told = said.format(project=project) if "project" in said else said
    assert str(raised.value) == f"the base options' settings{' ' if told[0] != ' ' else ''}{told}"


@pytest.mark.req("S2-14")
def test_matchers_of_the_sdk_are_understood_in_our_options() -> None:
    async def gate(told: Any, tool_use_id: str | None, context: Any) -> Any: ...

    with pytest.warns(DeprecationWarning, match="HookMatcher is deprecated"):
        options = Options({"Stop": [claude_agent_sdk.HookMatcher(hooks=[gate], timeout=5)]})  # type: ignore[list-item]
    assert options == Options({"Stop": [HookGroup(None, (CallbackHook(gate, timeout=5),))]})


@pytest.mark.req("S2-11", "S2-34", "S2-35")
def test_the_example_of_the_docs_runs_with_a_program_that_writes_down_what_it_hears(project: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "claude-agent-sdk.md").read_text()
    example = page.partition('```python title="with_claude.py"\n')[2].partition("```\n")[0]
    fake_program(project)
    path = f"{project}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=project,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    frames = [json.loads(line) for line in (project / "heard").read_text().splitlines()]
    assert (done.stdout, done.stderr, settings(frames), answers(frames)) == (
        "done\n",
        "",
        {
            "hooks": {
                "Stop": [
                    {"hooks": [{"type": "command", "command": "make test", "timeout": 300}]},
                    {
                        "hooks": [
                            {"type": "prompt", "prompt": "Is everything done that was asked for? $ARGUMENTS"}
                        ]
                    },
                ]
            }
        },
        [{}],
    )


@pytest.mark.parametrize(("event", "blocking"), [("PreToolUse", True), ("Stop", False)])
def test_a_matcher_of_the_sdk_that_blocks_when_it_fails_still_does(event: str, blocking: bool) -> None:
    async def gate(told: Any, tool_use_id: str | None, context: Any) -> Any: ...

    with pytest.warns(DeprecationWarning, match="HookMatcher is deprecated"):
        options = Options({event: [claude_agent_sdk.HookMatcher(hooks=[gate], on_failure="block")]})  # type: ignore[list-item]
    assert options == Options({event: [HookGroup(None, (CallbackHook(gate, blocking=blocking),))]})


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_without_the_sdk_a_sentence_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['claude_agent_sdk'] = None\n"
        "from turngate import Options\n"
        "try: Options().for_claude()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    command = install_command("claude")
    assert run(code) == f"UsageError for_claude needs Claude's Agent SDK: {command}\n"


def test_the_sdk_is_loaded_only_for_claude() -> None:
    code = "import sys; from turngate import Options; Options(); print('claude_agent_sdk' in sys.modules)"
    assert run(code) == "False\n"
