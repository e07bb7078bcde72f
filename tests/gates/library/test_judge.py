"""The gate `judge`: a scripted model answers, in this process and as a process of its own."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gates.cases.checklist import RUNNING
from tests.gates.cases.judge import NO, QUESTION, YES
from tests.support.builders import settings, stop_event, write_settings
from tests.support.gates import (
    answer_of_process,
    answer_with_shell,
    blocked,
    claude_input,
    could_not_run,
)
from tests.support.transcripts import talk
from turngate.core.hooks.kinds import GateHook
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.engine import ask_hooks
from turngate.models.scripted import ScriptedModel
from turngate.ports import World
from turngate.shells.local import LocalShell


def script(project: Path, *answers: str) -> str:
    path = project.parent / "judge.json"
    path.write_text(json.dumps({"judge": list(answers)}))
    return f"scripted:{path}"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([YES], {"systemMessage": 'gate "judge": they ran'}),
        ([NO], blocked("run the tests")),
        (["I do not know"], None),
        ([{"error": "overloaded"}], None),
    ],
)
def test_a_judge_as_a_process(answers: list[Any], expected: dict[str, Any] | None, project: Path) -> None:
    talk().says("Done.").write(project.parent / "transcript.jsonl")
    words = ("judge", "--prompt", QUESTION, "--model", script(project, *answers))
    code, answer, err = answer_of_process(words, claude_input(project))
    assert (code, err) == (0, "")
    if expected is None:  # it could not run, which never blocks
        assert answer["systemMessage"].startswith('gate "judge" could not run: ')
    else:
        assert answer == expected


def test_the_judge_of_the_settings_answers_a_question_of_a_file(project: Path) -> None:
    write_settings(project, "turngate", {"turngate": {"judge": script(project, NO)}})
    (project / "review me.md").write_text(f"{QUESTION}\n")
    answer = answer_of_process(("judge", "--prompt-file", "review me.md"), claude_input(project))
    assert answer == (0, blocked("run the tests"), "")


PROBLEMS = {
    ("judge",): "it has no question: give --prompt or --prompt-file",
    ("judge", "--prompt", " "): "it has no question: give --prompt or --prompt-file",
    ("judge", "--prompt-file", "gone.md"): "there is no file gone.md in the project",
    ("judge", "--prompt", "x", "--transcript", "all"): (
        "--transcript is 'all'; expected none, last, digest or full"
    ),
}


@pytest.mark.parametrize("words", PROBLEMS)
def test_a_judge_that_could_not_run(words: tuple[str, ...], project: Path) -> None:
    assert answer_of_process(words, claude_input(project)) == (0, could_not_run("judge", PROBLEMS[words]), "")
    strict = answer_with_shell((*words, "--strict"), claude_input(project), project)
    assert strict == blocked(f'gate "judge" could not run: {PROBLEMS[words]}')


def test_without_a_model_the_stop_is_not_held(project: Path) -> None:
    words = ("judge", "--prompt", QUESTION)
    missing = could_not_run("judge", "there is no model to ask")
    assert answer_with_shell(words, claude_input(project), project) == missing
    code, answer, err = answer_of_process((*words, "--model", "scripted:/gone.json"), claude_input(project))
    assert (code, err) == (0, "")
    assert answer["systemMessage"].startswith('gate "judge" could not run: it is unavailable: ')


def test_a_waiting_agent_is_not_judged(project: Path) -> None:
    answer = answer_with_shell(
        ("judge", "--prompt", QUESTION), claude_input(project, background_tasks=RUNNING), project
    )
    assert answer == {
        "systemMessage": 'gate "judge" waits: a subagent works in the background; it was NOT enforced'
    }


def decide(project: Path, model: ScriptedModel, answer: str = "Done.", **options: Any) -> Decision:
    """Return the decision of the gate in this process."""
    world = World(LocalShell(), str(project), judge=lambda _: model)
    event = stop_event(
        session_id="s1",
        cwd=str(project),
        transcript_path=str(project.parent / "transcript.jsonl"),
        last_assistant_message=answer,
    )
    hook = GateHook(gate="judge", options={"prompt": QUESTION, **options})
    [run] = asyncio.run(ask_hooks(event, settings(hook), world)).runs
    return run.decision


def test_it_sees_a_digest_of_the_conversation_unless_told_otherwise(project: Path) -> None:
    talk().runs("pytest -q", "2 passed").write(project.parent / "transcript.jsonl")
    model = ScriptedModel({"judge": [YES]})
    assert decide(project, model) == Allow(notice='gate "judge": they ran')
    decide(project, model, transcript="none")
    seen = ["$ pytest -q" in str(request.messages) for request in model.requests]
    assert seen == [True, False]


def test_a_yes_holds_while_the_tree_is_unchanged(project: Path) -> None:
    model = ScriptedModel({"judge": [YES, NO]})
    (project / "a.py").write_text("1")
    assert decide(project, model) == Allow(notice='gate "judge": they ran')
    assert decide(project, model, "Something else.") == Allow(notice='gate "judge": they ran')
    assert len(model.requests) == 1
    (project / "a.py").write_text("2")
    assert decide(project, model) == Block("run the tests")


def test_a_no_holds_until_the_agent_changes_or_says_something(project: Path) -> None:
    model = ScriptedModel({"judge": [NO, YES]})
    assert decide(project, model) == Block("run the tests")
    again = decide(project, model)
    assert isinstance(again, Block)
    assert again.reason.startswith("run the tests\n\nThis is the same result")
    assert len(model.requests) == 1
    assert decide(project, model, "They are in CI.") == Allow(notice='gate "judge": they ran')


def test_an_answer_that_failed_is_not_stored(project: Path) -> None:
    model = ScriptedModel({"judge": [{"error": "overloaded"}, {"error": "overloaded"}, YES]})
    assert isinstance(decide(project, model), Fault)
    assert decide(project, model) == Allow(notice='gate "judge": they ran')
