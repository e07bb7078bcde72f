"""`turngate run` on a disk that is full, without a reader, and quit in the middle: nothing is lost in silence."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.scripted_run import scripted
from tests.support.sessions import hang, kill_leftovers, message_text, survives, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.transcript.resume import read_conversation

FULL = "[Errno 27] File too large"
LOUD = "printf '%3000d' 1"
LOST_WORDS = f'! the output of hook "{LOUD}" could not be written to the transcript: {FULL}\n'


def command(project: Path, *words: str, replies: tuple[Any, ...]) -> str:
    model = scripted(project, *replies)
    return (
        f"{sys.executable} -m turngate run --session s --project {project} --model {model} {' '.join(words)}"
    )


def shell(line: str, said: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        input=said,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    return done.returncode, done.stdout, done.stderr


def in_little_room(
    project: Path, *words: str, said: str = "", replies: tuple[Any, ...] = ("done",)
) -> tuple[int, str, str]:
    """No file gets larger than 2 KiB: a turn fits into it, and what a loud hook prints does not."""
    return shell(f"ulimit -f 2; {command(project, *words, replies=replies)}", said)


def kept(state: Path) -> list[str]:
    return [message_text(message) for message in read_conversation(f"{state}/sessions/s/chat.jsonl").messages]


def no_journal(state: Path) -> str:
    why = f"the journal could not be written ({state}: File too large)"
    return f"! {why}; set TURNGATE_STATE to another folder\n"


# A full disk outside of a turn


def test_words_of_the_last_hook_that_do_not_fit_take_nothing_of_the_answer(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(LOUD, event="SessionEnd"))
    assert in_little_room(project, "-p", "go") == (0, "done\n", LOST_WORDS + no_journal(state))
    assert kept(state) == ["go", "agent: done"]


def test_words_of_the_last_hook_that_do_not_fit_take_nothing_of_the_result_as_json(
    project: Path, state: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(LOUD, event="SessionEnd"))
    code, out, err = in_little_room(project, "-p", "go", "--output-format", "json")
    result = json.loads(out)
    notices = [line.removeprefix("! ") for line in (LOST_WORDS + no_journal(state)).splitlines()]
    assert (code, result["result"], result["notices"], err) == (0, "done", notices, "")


def test_words_of_the_first_hook_that_do_not_fit_end_the_turn_in_order(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks(LOUD, event="SessionStart"))
    ended = (
        f"! the end of the turn could not be written to the transcript: {FULL}\n"
        f"! turn ended (error): the transcript cannot be written: {FULL}\n"
    )
    assert in_little_room(project, "-p", "go") == (20, "", LOST_WORDS + ended + no_journal(state))


def test_words_of_the_first_hook_that_do_not_fit_leave_a_conversation(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(LOUD, event="SessionStart"))
    code, out, err = in_little_room(project, said="/help\n")
    assert (code, out, err[: len(LOST_WORDS)], "fault" in err) == (0, "", LOST_WORDS, False)


def test_a_summary_that_does_not_fit_leaves_the_conversation_as_it_was(project: Path, state: Path) -> None:
    answers = ("one", "a summary " * 300)
    assert in_little_room(project, said="hi\n/compact\n", replies=answers) == (
        0,
        "one\n",
        f"! {FULL}\n",
    )
    assert kept(state) == ["hi", "agent: one"]


def test_a_conversation_that_cannot_be_forgotten_on_disk_continues(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks(LOUD, event="SessionEnd"))
    code, out, err = in_little_room(project, said="hi\n/clear\n")
    assert (code, out) == (0, "done\n")
    assert err == f"{LOST_WORDS}! {FULL}\n{LOST_WORDS}{no_journal(state)}"


# Answers that are lost


@pytest.mark.parametrize(
    ("redirected", "why"),
    [("> /dev/full", "No space left on device"), (">&-", "it is closed"), ("| true", "Broken pipe")],
)
def test_answers_of_a_conversation_that_are_lost_are_74_and_a_sentence(
    project: Path, state: Path, redirected: str, why: str
) -> None:
    line = command(project, redirected, replies=("one", {"text": "two", "delay": 0.3}))
    said = f"turngate: answers could not be written to stdout ({why})\n"
    assert shell(line, "hi\nagain\n") == (74, "", said)
    assert kept(state) == ["hi", "agent: one", "again", "agent: two"]


# A conversation that is quit


@contextmanager
def conversing(project: Path, said: str) -> Iterator[subprocess.Popen[str]]:
    """A conversation through a pipe that stays open."""
    process = subprocess.Popen(
        command(project, replies=("done",)).split(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(said)
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.communicate()
        kill_leftovers(project)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGQUIT, 131), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_in_a_conversation_leaves_no_hook_behind(project: Path, number: int, code: int) -> None:
    write_settings(project, "turngate", stop_hooks(hang()))
    with conversing(project, "hi\n") as process:
        pid = wait_for_file_sync(project / "pid")
        process.send_signal(number)
        assert (process.wait(timeout=HANG_TIMEOUT_S), survives(pid)) == (code, False)


# Guides of the project


def test_a_guide_that_is_a_pipe_holds_up_no_run(project: Path) -> None:
    os.mkfifo(project / "AGENTS.md")
    words = command(project, "-p", "go", replies=("done",)).split()
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_TIMEOUT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
