"""How `turngate run -p` ends: a signal while the session closes, an answer that cannot be written."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.scripted_run import running, scripted, turngate
from tests.support.sessions import BLOCK_COMMAND, hang, survives, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.core.text import quote_name

SLOW_END: dict[str, Any] = stop_hooks(hang(), event="SessionEnd")

# A signal while the session closes


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)],
)
@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_signal_while_the_session_closes_ends_it_and_is_the_exit_code(
    project: Path, number: int, code: int, form: str
) -> None:
    write_settings(project, "turngate", SLOW_END)
    with running(project, "--output-format", form, replies=("done",)) as process:
        pid = wait_for_file_sync(project / "pid")
        process.send_signal(number)
        out, _ = process.communicate(timeout=HANG_TIMEOUT_S)
    answer = out if form == "text" else json.loads(out.splitlines()[-1])["result"]
    assert (process.returncode, answer.strip(), survives(pid)) == (code, "done", False)


def test_as_text_the_answer_does_not_wait_for_the_session_to_close(project: Path) -> None:
    write_settings(project, "turngate", SLOW_END)
    with running(project, replies=("done",)) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        closing = process.poll()
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=HANG_TIMEOUT_S)
    assert (said, closing, process.returncode) == ("done\n", None, 143)


def test_what_is_noticed_while_the_session_closes_stands_in_the_result(project: Path) -> None:
    detached: dict[str, Any] = {"async": True}
    write_settings(project, "claude", stop_hooks(hang(), **detached))
    words = ("--dialect", "claude", "--output-format", "json")
    with running(project, *words, replies=({"text": "done", "delay": 0.2},)) as process:
        out, _ = process.communicate(timeout=HANG_TIMEOUT_S)
    assert (process.returncode, json.loads(out)["notices"]) == (
        0,
        [f"background hooks killed because they were still running: {quote_name(hang())}"],
    )


@pytest.mark.parametrize(("words", "expected"), [((), 0), (("--strict",), 13)])
def test_a_hook_at_the_end_of_the_session_that_was_not_enforced_counts_with_strict(
    project: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], expected: int
) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1", event="SessionEnd", id="backup"))
    code, out, _ = turngate(capfd, project, "go", "--output-format", "json", *words)
    assert (code, [run["hook"] for run in json.loads(out)["unenforced"]]) == (expected, ["backup"])


def test_a_second_signal_does_not_disturb_the_cleaning_up(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(f"trap '' TERM; {hang()}", event="SessionEnd"))
    with running(project, "--output-format", "json", replies=("done",)) as process:
        pid = wait_for_file_sync(project / "pid")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT):
            process.send_signal(number)
            time.sleep(0.05)
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    assert (process.returncode, json.loads(out)["result"], err, survives(pid)) == (143, "done", "", False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_the_caller_ignores_is_ignored(project: Path, number: signal.Signals) -> None:
    write_settings(project, "turngate", stop_hooks("echo $$ > pid; sleep 0.5"))
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with running(project, replies=("done",)) as process:
            wait_for_file_sync(project / "pid")
            process.send_signal(number)
            out, _ = process.communicate(timeout=HANG_TIMEOUT_S)
    finally:
        signal.signal(number, before)
    assert (process.returncode, out) == (0, "done\n")


# An answer that is lost


def through_a_shell(project: Path, redirected: str, *replies: Any, words: str = "") -> tuple[int, str]:
    command = f"{sys.executable} -m turngate run -p go --session s --project {project} {words}"
    model = scripted(project, *replies or ("done",))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} --model {model} {redirected}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
@pytest.mark.parametrize(
    ("redirected", "why"),
    [("> /dev/full", "No space left on device"), (">&-", "it is closed"), ("| true", "Broken pipe")],
)
def test_a_lost_answer_is_74_and_one_sentence(
    project: Path, state: Path, form: str, redirected: str, why: str
) -> None:
    slowly = {"text": "done", "delay": 0.3}
    kept = f"it is kept in {state}/sessions/s/chat.jsonl"
    said = f"turngate: the answer could not be written to stdout ({why}); {kept}\n"
    assert through_a_shell(project, redirected, slowly, words=f"--output-format {form}") == (74, said)


def test_a_reader_that_goes_away_after_the_first_line_is_reported_too(project: Path) -> None:
    slowly = {"text": "a long answer " * 20, "word_delay": 0.02}
    code, _ = through_a_shell(project, "| head -1", slowly, words="--output-format stream-json")
    assert code == 74


def test_the_turns_own_code_wins_over_a_lost_answer(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCK_COMMAND))
    code, err = through_a_shell(project, "> /dev/full", words="--limit 0")
    assert (code, "the answer could not be written to stdout" in err) == (10, True)
