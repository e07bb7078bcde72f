"""Which words of the user drop a goal."""

from pathlib import Path

import pytest

from tests.support.builders import stop_event
from tests.support.transcripts import IN_THE_FUTURE, talk
from turngate.gates.library.goal import MAX_WISH_CHARS, find_stand_down


def stand_down(tmp_path: Path, text: str) -> str | None:
    path = talk().user(text, timestamp=IN_THE_FUTURE).write(tmp_path / "transcript.jsonl")
    return find_stand_down(stop_event(transcript_path=path), 0.0)


@pytest.mark.parametrize(
    "text",
    [
        "forget the goal",
        "Forget about the goal!",
        "OK, please drop this goal for now and just commit.",
        "That is enough: cancel the goal",
        "Actually ignore my goal.",
        "I have changed my mind.\nYou can stop the goal now.",
        "Let's abandon the goal",
        "never mind the goal",
        "give up on the current goal",
        "! turngate goal clear",
        "`turngate goal clear`",
    ],
)
def test_the_user_drops_the_goal(tmp_path: Path, text: str) -> None:
    assert stand_down(tmp_path, text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "don't forget the goal",
        "Do not drop the goal!",
        "Never cancel the goal.",
        "Did you forget the goal?",
        "forget the goal?",
        "clear the goal line in the settings",
        "The button should read 'cancel the goal'",
        "forget the goals of last year",
        "The goal is to ignore errors",
        "remove goal_rule.py",
        "what does turngate goal clear do?",
        "",
        "forget the " * 100_000,
        "-" * 200_000,
        "please " * 100_000 + "!",
    ],
)
def test_other_sentences_do_not(tmp_path: Path, text: str) -> None:
    assert stand_down(tmp_path, text) is None


def test_the_words_are_quoted_on_one_short_line_without_controls(tmp_path: Path) -> None:
    words = stand_down(tmp_path, "Forget the goal and\t\x1b[31m" + "x" * 500)
    assert words == ("Forget the goal and " + "x" * 500)[: MAX_WISH_CHARS - 1] + "…"
