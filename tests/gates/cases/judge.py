"""The cases of the gate `judge`, which asks a scripted model.

It runs no command of the user: output is the judge's answer, and a file is the one with the question.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.gates.cases.checklist import RUNNING
from tests.support.builders import write_settings
from tests.support.gates import GateCase, blocked, could_not_run
from tests.support.git_projects import make_repository, write
from tests.support.transcripts import talk

YES = '{"ok": true, "reason": "they ran"}'
NO = '{"ok": false, "reason": "run the tests"}'
QUESTION = "Did the tests run?"
WORDS = ("judge", "--prompt", QUESTION)
NO_ANSWER = "its answer is neither JSON with `ok` or `decision` nor approve or block: 'I do not know'"
NO_MODEL = (
    "it is unavailable: no judge model is configured: "
    "give the hook a `model`, the settings a `judge`, or set ANTHROPIC_API_KEY"
)
THEY_RAN = {"systemMessage": 'gate "judge": they ran'}


def judged(
    *answers: Any, files: Mapping[str, str | bytes] | None = None, **fields: Any
) -> Callable[[Path], Mapping[str, Any]]:
    """Return the setup of a project whose settings name a judge that gives these answers."""

    def setup(project: Path) -> Mapping[str, Any]:
        script = project.parent / "judge.json"
        script.write_text(json.dumps({"judge": list(answers)}))
        write_settings(project, "turngate", {"turngate": {"judge": f"scripted:{script}"}})
        write(project, files or {})
        talk().says("Done.").write(project.parent / "transcript.jsonl")
        return fields

    return setup


def _in_a_repository(project: Path) -> Mapping[str, Any]:
    make_repository(project, {"a.py": "1"})
    return judged(NO)(project)


CASES = (
    GateCase("passed", WORDS, judged(YES), THEY_RAN),
    GateCase("failed", WORDS, judged(NO), blocked("run the tests")),
    GateCase("failed, with git", WORDS, _in_a_repository, blocked("run the tests")),
    GateCase(
        "an agent that a hook already continues is blocked too",
        WORDS,
        judged(NO, stop_hook_active=True),
        blocked("run the tests"),
    ),
    GateCase(
        "an answer that is not one",
        WORDS,
        judged("I do not know"),
        could_not_run("judge", NO_ANSWER),
    ),
    GateCase(
        "an answer that is not one blocks a strict gate",
        (*WORDS, "--strict"),
        judged("I do not know"),
        blocked(f'gate "judge" could not run: {NO_ANSWER}'),
    ),
    GateCase(
        "the model fails",
        WORDS,
        judged({"error": "overloaded"}),
        could_not_run("judge", "its model did not answer: overloaded"),
    ),
    GateCase("an empty project", WORDS, lambda _: None, could_not_run("judge", NO_MODEL)),
    GateCase(
        "a blank and a line break in the name of the question's file",
        ("judge", "--prompt-file", "my question\n.md"),
        judged(NO, files={"my question\n.md": QUESTION}),
        blocked("run the tests"),
    ),
    GateCase(
        "no file with the question",
        ("judge", "--prompt-file", "my question\n.md"),
        judged(NO),
        could_not_run("judge", 'there is no file "my question\\n.md" in the project'),
    ),
    GateCase(
        "10 MB of answer",
        WORDS,
        judged({"text": "x" * 10_000_000}),
        could_not_run("judge", "its answer has 10,000,000 characters, the limit is 200,000"),
    ),
    GateCase(
        "a binary answer, and a binary question",
        ("judge", "--prompt-file", "q"),
        judged(json.dumps({"ok": False, "reason": "a\0\x1b[31mb"}), files={"q": bytes(range(256))}),
        blocked("a\0\x1b[31mb"),
    ),
    GateCase(
        "its own timeout",
        (*WORDS, "--timeout", "1"),
        judged({"text": YES, "delay": 600}),
        could_not_run("judge", "the judge did not answer within 1 s"),
    ),
    GateCase(
        "a waiting agent is left alone",
        WORDS,
        judged(NO, background_tasks=RUNNING),
        {"systemMessage": 'gate "judge" waits: a subagent works in the background; it was NOT enforced'},
    ),
)
