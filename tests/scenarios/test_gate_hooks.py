"""Whole sessions under a gate of the settings: blocked, repaired and allowed; at the limit; without progress."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, write_settings
from tests.support.cli import turngate as turngate_command
from tests.support.machines import Machine
from tests.support.scripted_run import turngate
from tests.support.sessions import (
    configured_session,
    configured_session_on,
    scripted_session,
    scripted_session_on,
)
from tests.support.subagents import parent, task
from turngate.core.events.stream_events import Continuation
from turngate.core.hooks.kinds import GateHook
from turngate.core.settings import Settings
from turngate.gates.session_goal import read_goals, set_goal

TESTS = "grep -q '2 + 2' sum.py || { echo 'FAILED test_sum: 5 is not 4'; exit 1; }"
REPAIR = {"tool": "Bash", "input": {"command": "echo 'print(2 + 2)' > sum.py"}}
LOOK = {"tool": "Glob", "input": {"pattern": "*"}}


EVERYTHING = {"always": True, "allFailures": True}  # also where the session has changed nothing


def gate(**fields: Any) -> dict[str, Any]:
    return {"hooks": {"Stop": [{"hooks": [{"type": "gate", **fields}]}]}}


@pytest.mark.req("S3-39", "X-37")
def test_the_agent_is_sent_the_failing_lines_repairs_and_may_stop(project: Path, machine: Machine) -> None:
    write_settings(project, "turngate", gate(command=TESTS, options=EVERYTHING))
    (project / "sum.py").write_text("print(2 + 3)\n")
    agent = configured_session_on(
        machine, project, "Done.", REPAIR, "Repaired.", dialect="turngate", allow=["Bash"]
    )
    result = agent.play()
    assert (result.outcome, result.ended_by, result.continuations, result.result, result.unenforced) == (
        "completed",
        "allowed",
        1,
        "Repaired.",
        (),
    )
    [continuation] = agent.of(Continuation)
    assert "FAILED test_sum: 5 is not 4" in continuation.prompt


@pytest.mark.req("S3-46")
def test_a_gate_that_always_fails_ends_at_the_limit(project: Path, machine: Machine) -> None:
    hook = GateHook(command="false", options=EVERYTHING, id="false")
    agent = scripted_session_on(machine, project, LOOK, "Done.", LOOK, "Done.", LOOK, "Done.", stop=hook)
    result = agent.play()
    assert (result.outcome, result.ended_by, result.continuations) == ("capped", "capped", 3)
    assert result.notices[-1] == 'Turn ended after 3 continuations (the limit). Still blocked by: "false".'


@pytest.mark.req("X-08")
def test_a_gate_whose_block_changes_nothing_ends_as_stalled(project: Path) -> None:
    settings = Settings(rules=(rule(GateHook(command="echo no; exit 1", options=EVERYTHING)),), limit=9)
    result = parent(project, main=["Done."], said={"limit": 9}, rules=settings.rules).play()
    assert (result.ended_by, result.continuations) == ("stalled", 3)


@pytest.mark.req("X-07")
def test_two_sessions_in_one_project_have_their_own_gates(project: Path, machine: Machine) -> None:
    """Each is blocked once by a gate that counts its own stops, although they stop at the same time."""
    hook = GateHook("until", options={"promise": "DONE", "maxIterations": 3})
    agents = [
        scripted_session_on(machine, project, "no", "no", "DONE", stop=hook, session_id=name)
        for name in ("a", "b")
    ]

    async def both() -> list[Any]:
        return list(await asyncio.gather(*(agent.turns("go") for agent in agents)))

    results = machine.run(both())
    assert [(each.ended_by, each.continuations) for each in results] == [("allowed", 2)] * 2


def test_a_gate_that_could_not_run_is_named_and_does_not_hold_the_agent(
    project: Path, machine: Machine
) -> None:
    hook = GateHook(command="no-such-program", options=EVERYTHING, id="tests")
    result = scripted_session_on(machine, project, "Done.", stop=hook).play()
    assert (result.outcome, result.continuations, [each.hook for each in result.unenforced]) == (
        "completed",
        0,
        ["tests"],
    )
    assert result.notices[0].startswith('hook "tests" failed and was NOT enforced: exit code 127')


@pytest.mark.req("C-18")
def test_a_gate_that_needs_more_continuations_than_the_limit_gets_them(project: Path) -> None:
    hook = GateHook("until", options={"promise": "DONE", "maxIterations": 7})
    replies = [each for _ in range(5) for each in (LOOK, "not yet")]
    agent = scripted_session(project, *replies, "DONE", stop=hook)
    result = agent.play()
    assert (result.ended_by, result.continuations) == ("allowed", 5)


@pytest.mark.req("C-18")
def test_a_project_cannot_raise_the_hard_limit_for_its_gate(project: Path) -> None:
    until = {"gate": "until", "options": {"promise": "DONE", "maxIterations": 30}}
    write_settings(project, "turngate", {**gate(**until), "turngate": {"hardLimit": 30}})
    replies = [each for _ in range(12) for each in (LOOK, "not yet")]
    agent = configured_session(project, *replies, dialect="turngate")
    result = agent.play()
    assert (result.ended_by, result.continuations) == ("capped", 10)
    assert any("continuations and gets 10, the hard limit" in notice for notice in result.notices)


@pytest.mark.req("C-18")
def test_a_gate_of_a_subagent_gets_continuations_too(project: Path) -> None:
    hook = GateHook("until", options={"promise": "DONE", "maxIterations": 6})
    sub = [each for _ in range(5) for each in (LOOK, "not yet")]
    scene = parent(project, *sub, "DONE", main=[task(), "home"], rules=[rule(hook, "SubagentStop")])
    result = scene.play()
    assert [(each.reason, each.redirects) for each in result.subagents] == [("complete", 5)]


def edit(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}}


def test_a_gate_compares_with_what_was_there_at_the_start_of_the_session(
    project: Path, machine: Machine
) -> None:
    """Without git, only the record of the start shows that a test was weakened."""
    (project / "tests").mkdir()
    test = project / "tests" / "test_sum.py"
    test.write_text("assert 2 + 2 == 4\n")
    write_settings(project, "turngate", gate(gate="untouched", options={"globs": ["tests/**"]}))
    weaken, restore = (
        edit("echo 'assert True' > tests/test_sum.py"),
        edit(f"echo 'assert 2 + 2 == 4' > {test}"),
    )
    agent = configured_session_on(
        machine, project, weaken, "Green.", restore, "Restored.", dialect="turngate", allow=["Bash"]
    )
    result = agent.play()
    assert (result.ended_by, result.continuations, result.result, result.unenforced) == (
        "allowed",
        1,
        "Restored.",
        (),
    )
    assert [run.rule.event for run in result.hook_runs] == ["SessionStart", "Stop", "Stop"]


def test_a_gate_that_also_records_is_one_hook_of_the_review(project: Path) -> None:
    write_settings(project, "turngate", gate(gate="untouched", options={"globs": ["tests/**"]}))
    _, out, _ = turngate_command("hooks", "--project", str(project))
    assert out.splitlines()[-1].startswith("1 hook, 1 pending")


def test_run_ends_with_12_where_a_hook_waits_for_the_user(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = json.dumps({"continue": False, "stopReason": "approve the plan", "waits": True})
    hook = {"type": "command", "command": f"echo '{answer}'"}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [hook]}]}})
    code, out, err = turngate(capfd, project, "go", "--trust", replies=("Done.",))
    assert (code, out) == (12, "Done.\n")
    assert err.startswith("! approve the plan\n")


def test_a_goal_is_proven_where_the_project_is(project: Path, machine: Machine, state: Path) -> None:
    set_goal(str(state), str(project), "session-1", "the file done exists", "test -e done")
    bash = {"tool": "Bash", "input": {"command": "touch done"}}
    agent = scripted_session_on(
        machine,
        project,
        "Done.",
        bash,
        "Now it is.",
        session_id="session-1",
        permission_mode="bypassPermissions",
    )
    result = agent.play()
    assert (result.ended_by, result.continuations, result.notices) == (
        "allowed",
        1,
        ("the goal is met, and cleared: the file done exists",),
    )
    assert read_goals(str(state)) == []
