"""A gate that is not asked has not passed: it waits only for subagents that work, and a turn that ends then says so."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.builders import rule, write_settings
from tests.support.cli import turngate as turngate_command
from tests.support.gates import claude_input
from tests.support.scripted_run import turngate
from tests.support.subagents import bash, parent, task
from turngate.agent import turn as agent_turn
from turngate.core.dialect import CLAUDE
from turngate.core.hooks.kinds import CommandHook, GateHook
from turngate.core.verdict.hook_run import HookOutput
from turngate.subagents.limits import SubagentLimits

SERVER = {"tool": "Bash", "input": {"command": "sleep 600", "run_in_background": True}}
BACK = task(description="lines", run_in_background=True)
WORKS = "a subagent works in the background"
WAITS = HookOutput("Stop", "g", "gate", "waiting", WORKS)


def failing_gate(project: Path, **fields: object) -> None:
    options = {"always": True, "allFailures": True}  # also where the session has changed nothing
    gate = {"type": "gate", "id": "g", "command": "exit 1", "options": options, **fields}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}, "turngate": {"limit": 1}})


@pytest.mark.req("X-17")
@pytest.mark.parametrize("fields", [{}, {"strict": True}])
def test_a_command_in_the_background_disables_no_gate(
    project: Path,
    fields: dict[str, object],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_turn, "COMMAND_WAIT_S", 0.0)
    failing_gate(project, **fields)
    words = ("go", "--permission-mode", "bypassPermissions", "--strict", "--trust")
    code, out, err = turngate(capfd, project, *words, replies=(SERVER, "All done.", "Still done."))
    assert (code, out) == (10, "Still done.\n")
    assert 'Turn ended after 1 continuation (the limit). Still blocked by: "g".' in err


def test_under_a_host_a_command_in_the_background_disables_no_gate(project: Path) -> None:
    failing_gate(project)
    shell = {"id": "b1", "type": "shell", "status": "running", "command": "sleep 600"}
    event = json.dumps(claude_input(project, background_tasks=[shell]))
    assert turngate_command("hooks", "approve", "--all", "--yes", "--project", str(project))[0] == 0
    code, out, _ = turngate_command("hook", stdin=event)
    assert (code, json.loads(out)) == (0, {"decision": "block", "reason": "`exit 1`: exit code 1"})


@pytest.mark.req("X-17")
def test_a_gate_that_waited_and_was_asked_later_is_enforced(project: Path) -> None:
    """The dialect asks while the subagent works, and once more after its report."""
    gate = GateHook(command="test -e done", id="g")
    sub = (bash("until [ -e asked ]; do sleep 0.01; done; touch done"), "counted")
    rules = (rule(gate), rule(CommandHook("touch asked", id="asked")))
    main = [BACK, "waiting", "home"]
    scene = parent(project, *sub, main=main, rules=rules, dialect=CLAUDE, allow=["Bash"], strict=True)
    result = scene.play()
    outcomes = [run.outcome for run in result.hook_outputs if (run.event, run.hook) == ("Stop", "g")]
    assert outcomes == ["waiting", "allow"]
    assert (result.success, result.ended_by, result.result, result.unenforced) == (
        True,
        "allowed",
        "home",
        (),
    )


@pytest.mark.req("X-17")
def test_a_gate_that_still_waits_at_the_end_is_not_enforced(project: Path) -> None:
    never = {"text": "late", "delay": 600}
    rules = (rule(GateHook(command="exit 1", id="g", strict=True)),)
    limits = SubagentLimits(wait=0.2)
    scene = parent(project, never, main=[BACK, "done"], rules=rules, children=limits, strict=True)
    result = scene.play()
    assert (result.success, result.ended_by, result.unenforced) == (False, "allowed", (WAITS,))
    assert f'hook "g" waits and was NOT enforced: {WORKS}' in result.notices


def test_in_plan_mode_a_gate_waits_and_strict_says_so(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    failing_gate(project)
    code, out, err = turngate(capfd, project, "go", "--permission-mode", "plan", "--strict", "--trust")
    assert (code, out) == (13, "answer 1\n")
    assert '! hook "g" waits and was NOT enforced: the agent is in plan mode' in err.splitlines()


def test_a_gate_that_is_a_command_hook_says_that_it_waits(project: Path) -> None:
    """The keys that only the engine of Turngate reads name it, and `blocking` does not make it block."""
    command = f"{sys.executable} -m turngate gate -- false"
    hook = {"type": "command", "command": command, "id": "g", "blocking": True}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [hook]}]}})
    event = json.dumps(claude_input(project, permission_mode="plan"))
    words = ("fire", "Stop", "--trust", "--json", "--strict", "--input", "-", "--project", str(project))
    code, out, _ = turngate_command(*words, stdin=event)
    result = json.loads(out)
    [run] = result["runs"]
    assert (code, result["verdict"], run["outcome"], run["reason"]) == (
        13,
        "stop",
        "waiting",
        "the agent is in plan mode",
    )
    assert result["unenforced"] == [{"hook": "g", "outcome": "waiting", "why": "the agent is in plan mode"}]
