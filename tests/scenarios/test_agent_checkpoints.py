"""A checkpoint in an agent type: its subagent works up to it, and the main agent's turn waits for the user."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.sessions import BLOCK_COMMAND, SAVE_INPUT, saved_inputs
from tests.support.subagents import parent
from turngate.core.conversation.messages import UserMessage
from turngate.core.conversation.workflow import CHECKPOINT_NOTE
from turngate.core.events.session_events import TurnResult
from turngate.project.files import LOCAL
from turngate.settings.agent_types import load_agent_types

PLANNER = """\
---
name: planner
description: plans
---
Draft a plan.

<checkpoint>
Present the draft.
</checkpoint>

Write PLAN.md.
"""
FIRST = f"Draft a plan.\n\nPresent the draft.\n\n{CHECKPOINT_NOTE}"
SECOND = "Draft a plan.\n\nPresent the draft.\n\nWrite PLAN.md."
WAITS = "subagent plan it waits at a checkpoint:\nthe draft"


@pytest.fixture(autouse=True)
def _agent_type(project: Path) -> None:
    path = project / ".turngate" / "agents" / "planner" / "AGENT.md"
    path.parent.mkdir(parents=True)
    path.write_text(PLANNER)


def task(**fields: Any) -> dict[str, Any]:
    given = {"prompt": "Plan.", "description": "plan it", "subagent_type": "planner", **fields}
    return {"tool": "Task", "input": given}


def ended(result: TurnResult) -> tuple[str, str, str | None]:
    return result.outcome, result.ended_by, result.checkpoint


def user_messages(scene: Any) -> list[str]:
    [*requests] = [each for each in scene.model.requests if each.agent == "main"]
    return [
        each.text for each in requests[-1].messages if isinstance(each, UserMessage) and each.origin == "user"
    ]


def instructions(scene: Any) -> list[str]:
    """Which instructions the subagent had, in each of its requests."""
    return [
        SECOND if SECOND in each.system else FIRST if FIRST in each.system else each.system
        for each in scene.model.requests
        if each.agent == "sub"
    ]


def resumed(project: Path, agent_id: str, *main: Any, sub: str = "written", **options: Any) -> Any:
    replies = [task(resume=agent_id, prompt="Go on."), *main]
    return parent(project, sub, main=replies, files=True, session_id="s", **options)


def draft(project: Path) -> str:
    """Run the subagent up to its checkpoint, and return its id."""
    scene = parent(project, "the draft", main=[task(), "never"], files=True, session_id="s")
    assert ended(scene.play("go")) == ("waiting", "checkpoint", WAITS)
    assert (instructions(scene), len([each for each in scene.model.requests if each.agent == "main"])) == (
        [FIRST],
        1,
    )
    [run] = scene.registered
    return str(run.agent_id)


@pytest.mark.req("S3-62", "X-17")
def test_yes_continues_the_subagent_with_the_instructions_after_its_checkpoint(project: Path) -> None:
    hook = [{"hooks": [{"type": "command", "command": SAVE_INPUT}]}]
    write_settings(project, "turngate", {"hooks": {"SubagentStop": hook, "Stop": hook}})
    agent_id = draft(project)
    assert not (project / "seen").exists()  # no hook is asked at a checkpoint
    scene = resumed(project, agent_id, "The plan is written.")
    assert ended(scene.play("yes")) == ("completed", "allowed", None)
    assert user_messages(scene) == [
        "go",
        f"The user has approved the checkpoint. Continue the subagent with Task and resume: {agent_id}",
    ]
    assert instructions(scene) == [SECOND]
    assert saved_inputs(project, "hook_event_name") == ["SubagentStop", "Stop"]


@pytest.mark.req("S3-62")
@pytest.mark.parametrize("answer", ["shorter", "yes, but shorter"])
def test_without_a_yes_the_subagent_stays_in_front_of_its_checkpoint(project: Path, answer: str) -> None:
    agent_id = draft(project)
    scene = resumed(project, agent_id, "never", sub="the draft")
    assert ended(scene.play(answer)) == ("waiting", "checkpoint", WAITS)
    assert (user_messages(scene), instructions(scene)) == (["go", answer], [FIRST])


@pytest.mark.req("S3-62", "S3-63")
def test_a_model_that_resumes_the_subagent_by_itself_does_not_pass_its_checkpoint(project: Path) -> None:
    hook = [{"hooks": [{"type": "command", "command": BLOCK_COMMAND}]}]
    write_settings(project, "turngate", {"hooks": {"SubagentStop": hook, "Stop": hook}})
    agent_id = draft(project)
    scene = resumed(project, agent_id, "never", sub="the draft")
    assert ended(scene.play("The agent says: yes")) == ("waiting", "checkpoint", WAITS)
    assert instructions(scene) == [FIRST]


def test_no_asks_no_model(project: Path) -> None:
    draft(project)
    scene = parent(project, "x", main=["x"], files=True, session_id="s")
    assert ended(scene.play("no")) == ("waiting", "checkpoint", None)
    assert scene.model.requests == []


def test_an_approval_is_for_one_subagent_and_one_checkpoint(project: Path) -> None:
    first = draft(project)
    resumed(project, first, "done").play("yes")
    scene = parent(project, "the draft", main=[task(), "never"], files=True, session_id="s")
    assert ended(scene.play("another one")) == ("waiting", "checkpoint", WAITS)
    [second] = {run.agent_id for run in scene.registered} - {first}
    again = resumed(project, second, "never", sub="the draft")
    assert ended(again.play("shorter")) == ("waiting", "checkpoint", WAITS)
    assert (instructions(scene), instructions(again)) == ([FIRST], [FIRST])


@pytest.mark.req("X-17")
def test_a_subagent_in_the_background_waits_too(project: Path) -> None:
    main = [task(run_in_background=True), "I wait for the plan.", "never"]
    scene = parent(project, "the draft", main=main, files=True, session_id="s")
    assert ended(scene.play("go")) == ("waiting", "checkpoint", WAITS)
    assert len([each for each in scene.model.requests if each.agent == "main"]) == 2


def test_a_workflow_stays_in_its_stage_when_a_subagent_is_approved(project: Path) -> None:
    command = project / ".turngate" / "commands" / "plan.md"
    command.parent.mkdir(parents=True)
    command.write_text("Plan.\nSTOP\nImplement.")
    scene = parent(project, "the draft", main=[task(), "planned"], files=True, session_id="s")

    async def turns() -> list[tuple[str, str, str | None]]:
        async with scene.session as session:
            return [ended(await session.run_command("/plan")), ended(await session.send("yes"))]

    assert asyncio.run(turns()) == [
        ("waiting", "checkpoint", WAITS),
        ("waiting", "checkpoint", "/plan waits at a checkpoint: STOP"),
    ]


def test_only_the_main_agent_starts_an_agent_type_with_a_checkpoint(project: Path) -> None:
    deep = task(subagent_type="general-purpose", prompt="Be deep.")
    scene = parent(project, task(), "could not", main=[deep, "done"], files=True)
    assert ended(scene.play("go")) == ("completed", "allowed", None)
    results = [json.dumps(str(each.messages)) for each in scene.model.requests if each.agent == "sub"]
    assert "planner has a checkpoint, so only the main agent can start it" in results[-1]


@pytest.mark.req("S3-62")
def test_a_checkpoint_that_is_not_clear_is_a_problem_of_the_file(project: Path) -> None:
    path = project / ".turngate" / "agents" / "planner" / "AGENT.md"
    path.write_text(PLANNER.replace("</checkpoint>", ""))
    agent_types, problems = load_agent_types(str(project), files=LOCAL)
    why = "the <checkpoint> in line 7 has no </checkpoint>; this agent type is not loaded"
    assert ("planner" in agent_types, problems) == (False, [f"{path} has an unclear checkpoint: {why}"])
