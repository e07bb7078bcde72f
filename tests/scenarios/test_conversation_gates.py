"""Whole sessions under the gates that read the conversation, and under observers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.machines import Machine
from tests.support.scripted_run import as_json, turngate
from tests.support.sessions import (
    configured_session_on,
    scripted_session_on,
)
from turngate.core.events.stream_events import Continuation
from turngate.core.hooks.kinds import GateHook

PLAN = "## Phase 1: Parser\n- [ ] parse\n## Phase 2: Printer\n- [ ] print\n"


def bash(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}}


def todos(*statuses: str) -> dict[str, Any]:
    items = [{"content": f"task {number}", "status": status} for number, status in enumerate(statuses)]
    return {"tool": "TodoWrite", "input": {"todos": items}}


def gates(*hooks: dict[str, Any]) -> dict[str, Any]:
    return {"hooks": {"Stop": [{"hooks": [{"type": "gate", **hook} for hook in hooks]}]}}


@pytest.mark.req("T-6")
def test_the_agents_own_list_holds_it_until_all_of_it_is_done(project: Path, machine: Machine) -> None:
    agent = scripted_session_on(
        machine,
        project,
        todos("completed", "pending"),
        "Done.",
        todos("completed", "completed"),
        "Now it is done.",
        stop=GateHook("todos"),
    )
    result = agent.play()
    assert (result.ended_by, result.continuations, result.result) == ("allowed", 1, "Now it is done.")
    [continuation] = agent.of(Continuation)
    assert "1 of 2 tasks in your task list is open:\n- task 1\n" in continuation.prompt


@pytest.mark.req("T-2")
def test_a_claim_holds_the_agent_until_a_command_backs_it(project: Path, machine: Machine) -> None:
    """The gate's own words about tests are in the transcript at the second stop, and back nothing."""
    (project / "Makefile").write_text("test:\n\t@echo 1 passed\n")
    write_settings(project, "turngate", gates({"gate": "evidence"}))
    agent = configured_session_on(
        machine,
        project,
        bash("echo 1 > a.py"),
        "All tests pass.",
        "Really, all tests pass.",
        bash("make test"),
        "All tests pass.",
        dialect="turngate",
        allow=["Bash"],
    )
    result = agent.play()
    assert (result.ended_by, result.continuations) == ("allowed", 2)
    assert [each.prompt.count("and no command has checked it since") for each in agent.of(Continuation)] == [
        1,
        1,
    ]


@pytest.mark.req("S3-64")
def test_a_run_waits_after_each_phase_and_goes_on_with_the_users_message(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "PLAN.md").write_text(PLAN)
    write_settings(
        project,
        "turngate",
        gates({"gate": "plan", "options": {"files": ["PLAN.md"], "pauseBetweenPhases": True}}),
    )
    words = ("--session", "s1", "--allow", "Bash")
    first = bash("sed -i 's/. . parse/[x] parse/' PLAN.md")
    code, _, err = turngate(
        capfd, project, "Do what PLAN.md says.", *words, replies=("Later.", first, "Phase 1 is done.")
    )
    assert code == 12, err
    assert "Phase 1: Parser is complete; 1 task is open in Phase 2: Printer." in err
    second = bash("sed -i 's/. . print/[x] print/' PLAN.md")
    result = as_json(
        capfd, project, "Go on.", *words, "--resume", replies=("Nothing to do.", second, "All is done.")
    )
    assert (result["outcome"], result["continuations"], result["result"]) == ("completed", 1, "All is done.")


def test_a_budget_ends_a_turn_that_another_gate_would_hold(project: Path, machine: Machine) -> None:
    write_settings(
        project,
        "turngate",
        gates(
            {"command": "false", "options": {"always": True, "allFailures": True}},
            {"gate": "budget", "options": {"turns": 2, "perPrompt": True}},
        ),
    )
    agent = configured_session_on(machine, project, "one", "two", "three", dialect="turngate")
    result = agent.play()
    assert (result.outcome, result.ended_by, result.continuations) == ("halted", "halted", 1)
    assert result.stop_reason == "the budget of this prompt is used up: 2 of 2 turns"


def test_observers_see_every_stop_and_hold_none(project: Path, machine: Machine) -> None:
    write_settings(
        project,
        "turngate",
        gates(
            {"gate": "log", "options": {"file": "logs/stops.jsonl"}},
            {"gate": "archive", "options": {"to": "copies"}},
            {"gate": "notify", "command": "false"},
        ),
    )
    result = configured_session_on(machine, project, "Done.", dialect="turngate").play()
    assert (result.outcome, result.ended_by, result.continuations, result.unenforced) == (
        "completed",
        "allowed",
        0,
        (),
    )
    assert 'gate "notify": the command ended with exit code 1' in result.notices
    [line] = (project / "logs" / "stops.jsonl").read_text().splitlines()
    assert json.loads(line)["last_assistant_message"] == "Done."
    [copy] = (project / "copies").iterdir()
    assert '"Done."' in copy.read_text()
