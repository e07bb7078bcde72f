"""Past stops of six programs: the gates block exactly the stops that they should."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.host_transcripts import HOSTS, HostTranscript
from tests.support.paths import ROOT
from turngate.core.hooks.kinds import GateHook
from turngate.doctor.past_stops import judge_transcript

RECORDED = ROOT / "tests" / "data" / "transcripts"
HOOKS = ROOT / "tests" / "hosts" / "recorded"
Step = Callable[[HostTranscript], None]


def prompt(text: str = "Fix the parser.") -> Step:
    return lambda to: to.prompt(text)


def says(text: str) -> Step:
    return lambda to: to.says(text)


def edits(path: str = "a.py") -> Step:
    return lambda to: to.edits(path)


def runs(command: str = "pytest -q", output: str = "3 passed", code: int = 0) -> Step:
    return lambda to: to.runs(command, output, code)


def plans(*states: str) -> Step:
    return lambda to: to.plans(*states)


def feedback(text: str = "You have edited a.py, and no command has checked it since.") -> Step:
    return lambda to: to.feedback(text)


FAILS = runs(output="1 failed", code=1)
NONE, EVIDENCE, TODOS = (), ("evidence",), ("todos",)
# What happens, and for each stop the gates that block it.
CONVERSATIONS: dict[str, tuple[list[Step], list[tuple[str, ...]]]] = {
    "checked": ([prompt(), edits(), runs(), says("All tests pass.")], [NONE]),
    "not checked": ([prompt(), edits(), says("All tests pass.")], [EVIDENCE]),
    "the check failed": ([prompt(), edits(), FAILS, says("Done.")], [EVIDENCE]),
    "checked before the edit": ([prompt(), runs(), edits(), says("Done.")], [EVIDENCE]),
    "failed, then passed": ([prompt(), edits(), FAILS, edits(), runs(), says("Done.")], [NONE]),
    "nothing done": ([prompt("What is a parser?"), says("It reads text.")], [NONE]),
    "only looked": ([prompt("Where is it?"), runs("ls", "a.py"), says("In a.py.")], [NONE]),
    "an open task": ([prompt(), plans("completed", "pending"), says("The first step is done.")], [TODOS]),
    "no open task": ([prompt(), plans("in_progress"), plans("completed"), says("Finished.")], [NONE]),
    "both": ([prompt(), plans("pending"), edits(), says("Done.")], [("evidence", "todos")]),
    "the user complains": (
        [prompt(), edits(), says("Done."), prompt("It is red."), runs(), says("Now it is green.")],
        [EVIDENCE, NONE],
    ),
    "a hook blocked": (
        [prompt(), edits(), says("Done."), feedback(), runs(), says("Checked: 3 passed.")],
        [EVIDENCE, NONE],
    ),
    "several prompts": (
        [
            *[prompt("Hello."), says("Hello!")],
            *[prompt(), edits(), runs(), says("Done.")],
            *[prompt("And the other one?"), edits("b.py"), says("Done as well.")],
        ],
        [NONE, NONE, EVIDENCE],
    ),
    "interrupted": ([prompt(), edits(), prompt("Stop."), says("I have stopped.")], [NONE]),
}
GATES = (GateHook("evidence"), GateHook("todos"))


def blocks(path: str, host: str) -> list[tuple[str, ...]]:
    session = judge_transcript(path, "", GATES, None, 0)
    assert session.error == ""
    return [
        tuple(each.gate for each in stop.decisions if each.outcome == "would block") for stop in session.stops
    ]


def test_there_are_enough_conversations() -> None:
    assert len(CONVERSATIONS) * len(HOSTS) + len(FILES) >= 60 + 20


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_exactly_the_expected_stops_are_blocked(name: str, host: str, tmp_path: Path) -> None:
    steps, expected = CONVERSATIONS[name]
    transcript = HOSTS[host]()
    for step in steps:
        step(transcript)
    assert blocks(transcript.write(tmp_path / "t.jsonl"), host) == expected


FILES = {
    RECORDED / "codex.jsonl": [NONE] * 2,
    HOOKS / "codex" / "transcript.jsonl": [NONE] * 2,
    HOOKS / "copilot" / "transcript.jsonl": [NONE] * 2,
    HOOKS / "gemini" / "transcript.jsonl": [NONE] * 2,
    HOOKS / "qwen" / "transcript.jsonl": [NONE] * 2,
    RECORDED / "copilot.jsonl": [NONE] * 3,
    RECORDED / "gemini.jsonl": [NONE] * 3,
    RECORDED / "qwen.jsonl": [NONE] * 3,
    HOOKS / "claude" / "transcript.jsonl": [NONE] * 2,
}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name + path.stem)
def test_recorded_conversations_are_judged(path: Path) -> None:
    assert blocks(str(path), "") == FILES[path]
