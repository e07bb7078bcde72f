"""A ready-made gate as a Python function, wherever functions are accepted."""

import asyncio
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest

from tests.support.builders import stop_event, subagent_stop
from tests.support.gates import ELSEWHERE, OtherShell, claude_input
from tests.support.sessions import scripted_session
from tests.support.subagents import parent, task
from turngate import (
    Allow,
    Block,
    CallbackHook,
    Fault,
    GateCallback,
    GateHook,
    InvalidOptions,
    LocalShell,
    Options,
    Plugins,
    StopEvent,
    StopHookInput,
    UsageError,
    World,
    ask_hooks,
    gate_callback,
)
from turngate.core.events.events import PreToolUse, SessionStart
from turngate.core.verdict.decisions import Decision

FAILS = "echo 'FAILED test_total'; exit 1"
REASON = f"`{FAILS}`: exit code 1\nFAILED test_total"


def decide(gate: GateCallback, event: StopEvent) -> Decision:
    return asyncio.run(gate(event))


def at(project: Path, **fields: Any) -> StopEvent:
    return stop_event(cwd=str(project), session_id="fire", **fields)


def test_a_gate_answers_an_event_with_a_decision(project: Path) -> None:
    gates = [gate_callback(command=command) for command in ("true", FAILS, "no-such-program")]
    assert [decide(gate, at(project)) for gate in gates] == [
        Allow(),
        Block(REASON),
        Fault("exit code 127: /bin/sh: 1: no-such-program: not found"),
    ]


def test_a_gate_that_could_not_run_blocks_if_it_is_strict(project: Path) -> None:
    gate = gate_callback("command", command="no-such-program", strict=True)
    why = "exit code 127: /bin/sh: 1: no-such-program: not found"
    assert decide(gate, at(project)) == Block(f'gate "command" could not run: {why}')


def test_a_program_is_given_with_its_arguments(project: Path) -> None:
    gate = gate_callback(command="sh", args=["-c", "exit 3"])
    assert decide(gate, at(project)) == Block("`sh -c 'exit 3'`: exit code 3")


def test_the_project_and_the_shell_can_be_given(project: Path) -> None:
    (project / "here").touch()
    of_folder = gate_callback(command="test -e here", project=project)
    elsewhere = gate_callback(command="test -e here", project=ELSEWHERE, shell=OtherShell(project))
    assert [decide(gate, stop_event(cwd="/")) for gate in (of_folder, elsewhere)] == [Allow(), Allow()]


def test_a_gate_ends_by_itself(project: Path) -> None:
    decision = decide(gate_callback(command="sleep 3600", timeout=1), at(project))
    assert isinstance(decision, Fault)


def test_the_secrets_of_the_environment_are_hidden(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "sesame-open-1234")
    gate = gate_callback(command="echo $API_TOKEN; exit 1")
    assert decide(gate, at(project)) == Block("`echo $API_TOKEN; exit 1`: exit code 1\n…")


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "gate": (
        {"gate": "untill", "promise": "DONE"},
        '`gate` is "untill", which is not a gate; did you mean "until"?',
    ),
    "option": (
        {"gate": "until", "promise": "DONE", "max_iteration": 3},
        '`options.maxIteration` is not an option of the gate until; did you mean "maxIterations"?',
    ),
    "value": (
        {"gate": "until", "promise": "DONE", "max_iterations": "many"},
        '`options.maxIterations` is "many", expected a number, 0 or more',
    ),
    "no command": (
        {},
        '`command` is missing, expected the command of the gate command; name a gate, such as "gate": "tests"',
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_where_the_gate_is_made(case: str) -> None:
    arguments, message = MISTAKES[case]
    with pytest.raises(UsageError) as raised:
        gate_callback(**arguments)
    assert str(raised.value) == message


def test_options_have_python_names_and_none_is_the_default() -> None:
    gate = gate_callback("until", promise="DONE", max_iterations=20, max_minutes=None)
    assert gate.hook == GateHook("until", options={"promise": "DONE", "maxIterations": 20}, timeout=600.0)


def test_it_is_named_after_its_gate() -> None:
    gate = gate_callback("until", promise="DONE")
    assert (repr(gate), gate.__name__) == ('<gate "until (promise: DONE)">', "until (promise: DONE)")
    assert inspect.iscoroutinefunction(type(gate).__call__)


# The dict of Claude's SDK


CLAUDE: dict[str, tuple[str, dict[str, Any]]] = {
    "passed": ("true", {}),
    "failed": (FAILS, {"decision": "block", "reason": REASON}),
    "could not run": (
        "no-such-program",
        {
            "systemMessage": 'gate "command" could not run: exit code 127: /bin/sh: 1: no-such-program: not found; '
            "it was NOT enforced"
        },
    ),
}


@pytest.mark.parametrize("case", CLAUDE)
def test_it_takes_the_three_arguments_of_claudes_sdk_and_answers_in_its_contract(
    project: Path, case: str
) -> None:
    command, answer = CLAUDE[case]
    gate = gate_callback(command=command)
    assert asyncio.run(gate(claude_input(project), None, {"signal": None})) == answer


def test_it_is_a_callback_of_claudes_sdk(project: Path) -> None:
    gate = gate_callback(command=FAILS)
    matcher = claude_agent_sdk.HookMatcher(hooks=[gate])
    assert matcher.hooks == [gate]
    options = Options({"Stop": [CallbackHook(gate, timeout=600)]}).for_claude()
    [ours] = (options.hooks or {})["Stop"]
    answer = asyncio.run(ours.hooks[0](claude_input(project), None, {"signal": None}))
    assert (answer, ours.timeout) == ({"decision": "block", "reason": REASON}, 600)


def test_a_gate_hook_for_claude_names_the_callback_to_use() -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options({"Stop": [GateHook(command="make")]}).for_claude()
    assert [problem.message for problem in raised.value.problems] == [
        "the hook kind 'gate' has no equivalent in Claude Code: use CallbackHook(gate_callback(…))"
    ]


# Other events


def test_at_another_event_it_is_not_enforced() -> None:
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={})
    assert asyncio.run(gate_callback(command="true")(event)) == Fault(
        "a gate answers at Stop, SubagentStop, TaskCompleted, TeammateIdle, not at PreToolUse"
    )


def test_at_the_start_of_a_session_it_passes(project: Path) -> None:
    start = SessionStart(session_id="s", cwd=str(project))
    assert asyncio.run(gate_callback(command="false")(start)) == Allow()


def test_it_takes_the_input_of_document_002(project: Path) -> None:
    stop = StopHookInput(
        session_id="s",
        transcript_path="/t",
        cwd=str(project),
        permission_mode="default",
        hook_event_name="Stop",
        stop_hook_active=False,
    )
    assert asyncio.run(gate_callback(command=FAILS)(stop)) == Block(REASON)


# Where functions are accepted


def test_it_is_a_callback_hook(project: Path) -> None:
    options = Options({"Stop": [CallbackHook(gate_callback(command=FAILS))]})
    world = World(LocalShell(), str(project))
    verdict = asyncio.run(ask_hooks(at(project), options.settings(), world))
    assert [(each.hook, each.outcome, each.said) for each in verdict.hook_outputs] == [
        (FAILS, "block", REASON)
    ]


def test_a_session_is_held_by_it(project: Path) -> None:
    write = {"tool": "Write", "input": {"file_path": "done", "content": "x"}}
    gate = CallbackHook(gate_callback(command="test -e done || { echo no file; exit 1; }"))
    agent = scripted_session(project, "done", write, "really done", stop=gate, allow=["Write"])
    result = agent.play()
    assert (result.ended_by, result.continuations, result.result) == ("allowed", 1, "really done")


def test_it_is_a_handler_of_plugins(project: Path) -> None:
    plugins = Plugins()
    plugins.on("subagent_stopping", gate_callback(command="test -e done", project=project))
    write = {"tool": "Write", "input": {"file_path": "done", "content": "x"}}
    scene = parent(
        project, "done", write, "really done", main=[task(), "home"], plugins=plugins, allow=["Write"]
    )
    result = scene.play()
    assert [(each.outcome, each.redirects) for each in result.subagents] == [("ok", 1)]


def test_a_plugin_whose_gate_could_not_run_is_reported(project: Path) -> None:
    plugins = Plugins()
    plugins.on("subagent_stopping", gate_callback(command="no-such-program", project=project))
    result = parent(project, "done", main=[task(), "home"], plugins=plugins).play()
    assert [each.outcome for each in result.subagents] == ["ok"]
    assert any('gate "command" could not run: exit code 127' in text for text in result.notices)


def test_each_agent_has_its_own_state(project: Path) -> None:
    gate = gate_callback(command=FAILS)
    events = [stop_event(cwd=str(project)), replace(subagent_stop(), cwd=str(project))]
    assert [decide(gate, event) for event in events] == [Block(REASON)] * 2
