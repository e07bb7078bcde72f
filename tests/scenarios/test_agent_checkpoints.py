"""A checkpoint in an agent type: its subagent works up to it, and the main agent's turn waits for the user."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.cli import start_turngate, turngate
from tests.support.machines import Machine, ThisMachine
from tests.support.paths import ROOT
from tests.support.scripted_run import scripted
from tests.support.sessions import (
    BLOCK_COMMAND,
    SAVE_INPUT,
    hang,
    kill_leftovers,
    records,
    saved_inputs,
    wait_for_file,
    wait_for_file_sync,
)
from tests.support.subagents import Parent, bash, parent, parent_on
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.conversation.checkpoints import CHECKPOINT_NOTE, REFUSED
from turngate.core.conversation.messages import UserMessage
from turngate.core.events.stream_events import TextDelta, TurnResult
from turngate.project.files import LOCAL
from turngate.settings.agent_types import load_agent_types
from turngate.transcript.resume import read_conversation

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
ALL = pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
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


def resumed(project: Path, agent_id: str, *main: Any, sub: Any = "written", **options: Any) -> Any:
    replies = [task(resume=agent_id, prompt="Go on."), *main]
    return session(project, sub, main=replies, **options)


def session(project: Path, *sub: Any, machine: Machine | None = None, **options: Any) -> Any:
    """Return the session with the project's agent types and hooks, begun or resumed."""
    return parent_on(machine or ThisMachine(), project, *sub, files=True, session_id="s", **options)


def draft(project: Path, **options: Any) -> str:
    """Run the subagent up to its checkpoint, and return its id."""
    scene = session(project, "the draft", main=[task(), "never"], **options)
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
    scene = session(project, "x", main=["x"])
    assert ended(scene.play("no")) == ("waiting", "checkpoint", None)
    assert scene.model.requests == []


# A question at the checkpoint

LOOK = {"tool": "Glob", "input": {"pattern": "*"}}
OPEN = ("waiting", "checkpoint", WAITS)
DONE = ("completed", "allowed", None)


def continued(agent_id: str) -> str:
    return f"The user has approved the checkpoint. Continue the subagent with Task and resume: {agent_id}"


def results(scene: Any, *prompts: str) -> list[tuple[str, str, str | None]]:
    """Send these messages in one session, a slash command as one, and return how their turns ended."""

    async def turns() -> list[tuple[str, str, str | None]]:
        async with scene.session as session:
            return [
                ended(await (session.run_command if prompt.startswith("/") else session.send)(prompt))
                for prompt in prompts
            ]

    found: list[tuple[str, str, str | None]] = scene.machine.run(turns())
    return found


@ALL
@pytest.mark.req("S3-62", "S3-63", "X-17")
def test_a_question_leaves_the_checkpoint_open_and_a_later_yes_continues(project: Path, dialect: str) -> None:
    hook = [{"hooks": [{"type": "command", "command": SAVE_INPUT}]}]
    write_settings(project, "turngate", {"hooks": {"SubagentStop": hook, "Stop": hook}})
    write_settings(project, "mux", {"hooks": {"SubagentStop": hook, "Stop": hook}})
    write_settings(project, "claude", {"hooks": {"SubagentStop": hook, "Stop": hook}})
    main = [task(), LOOK, "It has two.", "In the first.", task(resume="AGENT", prompt="Go on."), "Written."]
    scene = session(project, "the draft", "written", main=main, dialect=dialect, trust=True)
    questions = "How many chunks?", "Where is the form?"
    assert results(scene, "go", *questions, "Yes.") == [OPEN, OPEN, OPEN, DONE]
    assert user_messages(scene) == ["go", *questions, continued(scene.model.agent)]
    assert instructions(scene) == [FIRST, SECOND]
    assert saved_inputs(project, "hook_event_name") == ["SubagentStop", "Stop"]


@pytest.mark.req("S3-62")
def test_a_question_leaves_the_checkpoint_open_and_a_later_no_ends_it(project: Path) -> None:
    scene = session(project, "the draft", main=[task(), "It has two.", "You are welcome."])
    refused = ("waiting", "checkpoint", None)
    assert results(scene, "go", "How many chunks?", "no", "yes") == [OPEN, OPEN, refused, DONE]
    assert user_messages(scene) == ["go", "How many chunks?", f"no\n\n{REFUSED}", "yes"]
    assert instructions(scene) == [FIRST]


@pytest.mark.req("S3-62")
def test_the_subagent_that_answers_the_question_is_asked_about_once(project: Path) -> None:
    """The main agent passes the question on; what the user approves is the new draft."""
    ask = task(resume="AGENT", prompt="Shorter.")
    main = [task(), ask, ask, "Written."]
    scene = session(project, "the draft", "short", "written", main=main)
    again = ("waiting", "checkpoint", "subagent plan it waits at a checkpoint:\nshort")
    assert results(scene, "go", "shorter", "yes") == [OPEN, again, DONE]
    assert instructions(scene) == [FIRST, FIRST, SECOND]


@pytest.mark.req("S3-62")
def test_the_checkpoint_stays_open_in_a_session_that_is_resumed(project: Path, machine: Machine) -> None:
    agent_id = draft(project, machine=machine)
    asked = session(project, main=["It has two."], machine=machine)
    assert ended(asked.play("How many chunks?")) == OPEN
    again = session(project, main=["In the first."], machine=machine)
    assert ended(again.play("Where is the form?")) == OPEN
    scene = resumed(project, agent_id, "Written.", machine=machine)
    assert ended(scene.play("yes")) == DONE
    assert user_messages(scene)[1:] == ["How many chunks?", "Where is the form?", continued(agent_id)]
    assert (instructions(asked), instructions(again), instructions(scene)) == ([], [], [SECOND])


@pytest.mark.req("S3-62")
@pytest.mark.parametrize("text", ["/go", "/clear"])
def test_another_command_ends_it(project: Path, text: str) -> None:
    command = project / ".turngate" / "commands" / "go.md"
    command.parent.mkdir(parents=True)
    command.write_text("Go.")
    draft(project)
    scene = session(project, main=["Gone.", "Hello."])

    async def turns() -> tuple[str, str, str | None]:
        async with scene.session as session:
            await session.open()
            await (session.reset() if text == "/clear" else session.run_command(text))
            return ended(await session.send("yes"))

    assert scene.machine.run(turns()) == DONE
    assert user_messages(scene)[-1] == "yes"


@pytest.mark.req("S3-62")
def test_a_summary_of_the_conversation_leaves_it_open(project: Path) -> None:
    agent_id = draft(project)
    scene = session(project, main=["a summary", "It has two."])

    async def turns() -> tuple[str, str, str | None]:
        async with scene.session as session:
            await session.open()
            await session.compact("")
            return ended(await session.send("How many chunks?"))

    assert scene.machine.run(turns()) == OPEN
    again = resumed(project, agent_id, "Written.")
    assert (ended(again.play("yes")), instructions(again)) == (DONE, [SECOND])


@pytest.mark.req("S3-62")
def test_an_interrupt_of_the_answer_leaves_the_subagent_in_front_of_its_checkpoint(project: Path) -> None:
    """As in a workflow: the next message is one within the stage, and the checkpoint opens again after it."""
    agent_id = draft(project)

    def interrupt(event: Any, scene: Parent) -> None:
        if isinstance(event, TextDelta):
            scene.session.interrupt()

    scene = session(project, main=["It has two."], listen=interrupt)
    assert ended(scene.play("How many chunks?")) == ("interrupted", "interrupt", None)
    again = session(project, main=["Sorry, it has two."])
    assert results(again, "yes") == [OPEN]
    last = resumed(project, agent_id, "Written.")
    assert (ended(last.play("yes")), instructions(last)) == (DONE, [SECOND])


@pytest.mark.req("S3-62")
def test_an_interrupt_of_what_runs_beside_it_leaves_the_subagent_in_front_of_its_checkpoint(
    project: Path, machine: Machine
) -> None:
    both = {"tools": [{"name": each["tool"], "input": each["input"]} for each in (task(), bash(hang()))]}
    scene = session(project, "the draft", main=[both, "never"], allow=["Bash"], machine=machine)

    async def interrupt(scene: Parent) -> None:
        await wait_for_file(project / "pid")
        scene.session.interrupt()

    assert ended(scene.during(interrupt)) == ("interrupted", "interrupt", None)
    [agent_id] = {run.agent_id for run in scene.registered}
    again = session(project, main=["It is drafted."], machine=machine)
    assert ended(again.play("And?")) == OPEN
    last = resumed(project, agent_id, "Written.", machine=machine)
    assert (ended(last.play("yes")), instructions(last)) == (DONE, [SECOND])


@pytest.mark.req("S3-62")
def test_a_process_that_is_killed_while_it_answers_leaves_the_checkpoint_of_the_subagent(
    project: Path,
) -> None:
    agent_id = draft(project)
    words = ("run", "--project", str(project), "--session", "s", "--allow", "Bash", "--model")
    with start_turngate(*words, scripted(project, bash(hang())), "-p", "How many chunks?") as process:
        wait_for_file_sync(project / "pid")
        process.send_signal(signal.SIGKILL)
        process.communicate()
    kill_leftovers(project)
    code, out, err = turngate(*words, scripted(project, "It has two."), "-p", "yes")
    assert (code, out, err.splitlines()[:2]) == (12, "It has two.\n", [f"! {WAITS[:-10]}", "  the draft"])
    last = resumed(project, agent_id, "Written.")
    assert (ended(last.play("yes")), instructions(last)) == (DONE, [SECOND])


@pytest.mark.req("S3-62", "X-22")
def test_a_subagent_whose_process_dies_at_its_checkpoint_waits_there_all_the_same(
    project: Path,
) -> None:
    code = (
        "import os, sys, pathlib; from tests.scenarios.test_agent_checkpoints import session, task\n"
        "die = lambda name, run: name == 'worked' and os.kill(os.getpid(), 9)\n"
        "session(pathlib.Path(sys.argv[1]), 'the draft', main=[task()], on_step=die).play('go')"
    )
    words = [sys.executable, "-c", code, str(project)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=False, timeout=HANG_TIMEOUT_S)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"")
    scene = session(project, main=["I look.", "never"])
    assert ended(scene.play("Where are we?")) == OPEN
    [run] = scene.session._agent.conversation.waiting
    last = resumed(project, run.agent_id, "Written.")
    assert (ended(last.play("yes")), instructions(last)) == (DONE, [SECOND])


@pytest.mark.parametrize("damaged", [None, "all", ["x"], [{}], [{"agent_id": 1}], [{"agent_id": "a"}]])
def test_a_record_that_was_damaged_approves_nothing(project: Path, damaged: Any) -> None:
    agent_id = draft(project)
    scene = session(project, main=["x"])
    path = Path(scene.session.transcript_path)
    changed = [{**each, "waiting": damaged} if "waiting" in each else each for each in records(str(path))]
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in changed))
    again = resumed(project, agent_id, "never", sub="the draft")
    assert (ended(again.play("yes")), instructions(again)) == (OPEN, [FIRST])


# A hook that waits before the checkpoint

ASK_ONCE = """\
cat > /dev/null; [ -e asked ] || { touch asked; echo '{"continue": false, "stopReason": "look first", "waits": true}'; }
"""


@pytest.mark.req("S3-62", "S3-64")
def test_a_yes_to_a_hook_does_not_approve_the_checkpoint_that_the_subagent_has_not_reached(
    project: Path,
) -> None:
    hook = [{"matcher": "Glob", "hooks": [{"type": "command", "command": ASK_ONCE}]}]
    write_settings(project, "turngate", {"hooks": {"PreToolUse": hook}})
    resume = task(resume="AGENT", prompt="Go on.")
    main = [task(), resume, resume, "Written."]
    scene = session(project, LOOK, "the draft", "written", main=main, trust=True)
    hook_waits = ("waiting", "checkpoint", "subagent plan it waits at a checkpoint")
    assert results(scene, "go", "yes", "yes") == [hook_waits, OPEN, DONE]
    assert instructions(scene) == [FIRST, FIRST, SECOND]


@pytest.mark.req("S3-62", "S3-64")
def test_a_yes_to_a_hook_of_the_main_agent_does_not_approve_the_subagent_that_waits(project: Path) -> None:
    hook = [{"matcher": "Glob", "hooks": [{"type": "command", "command": ASK_ONCE}]}]
    write_settings(project, "turngate", {"hooks": {"PreToolUse": hook}})
    main = [task(), LOOK, "It has two.", task(resume="AGENT", prompt="Go on."), "Written."]
    scene = session(project, "the draft", "written", main=main, trust=True)
    hook_waits = ("waiting", "checkpoint", "look first")
    assert results(scene, "go", "How many chunks?", "yes", "yes") == [OPEN, hook_waits, OPEN, DONE]
    approved = "The user has approved the checkpoint."
    assert user_messages(scene)[1:] == ["How many chunks?", approved, continued(scene.model.agent)]


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


@pytest.mark.req("S3-64")
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
def test_a_subagent_that_finishes_after_a_message_no_longer_waits(project: Path, background: bool) -> None:
    """A hook has let it wait once; the hook is asked again when the subagent has worked on the message."""
    hook = [{"hooks": [{"type": "command", "command": ASK_ONCE}]}]
    write_settings(project, "turngate", {"hooks": {"SubagentStop": hook}})
    first = task(subagent_type="general-purpose")
    again = {
        "tool": "Task",
        "input": {"resume": "AGENT", "prompt": "Fix it.", "run_in_background": background},
    }
    main = [first, again, *["I wait."] * background, "Fixed.", "You are welcome."]
    scene = session(project, "written", "fixed", main=main, trust=True)
    waits = ("waiting", "checkpoint", "subagent plan it waits at a checkpoint:\nwritten")
    assert results(scene, "go", "fix the typo", "yes") == [waits, DONE, DONE]
    assert user_messages(scene) == ["go", "fix the typo", "yes"]
    stored = read_conversation(scene.session.transcript_path)
    assert (stored.checkpoint, stored.waiting) == (None, ())
