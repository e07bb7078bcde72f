"""How `turngate run -p` ends: closing is cut by a signal, an answer is lost, a journal can not be written."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands.test_run import next_line, running, scripted
from tests.support.builders import stop_hooks, write_settings
from tests.support.sessions import REFUSE, hang, lines, survives, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.commands.log import JournalTail
from turngate.state import journal as journal_module
from turngate.state.journal import Journal

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
        ["background hooks killed because they were still running: 1"],
    )


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


def test_a_reader_that_goes_away_after_the_first_line_is_told_of_too(project: Path) -> None:
    slowly = {"text": "a long answer " * 20, "word_delay": 0.02}
    code, _ = through_a_shell(project, "| head -1", slowly, words="--output-format stream-json")
    assert code == 74


def test_the_turns_own_code_wins_over_a_lost_answer(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE))
    code, err = through_a_shell(project, "> /dev/full", words="--limit 0")
    assert (code, "the answer could not be written to stdout" in err) == (10, True)


# The journal is in nobody's way


def numbers(*paths: Path) -> list[int]:
    return [json.loads(line)["number"] for path in paths for line in lines(path)]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/full")])
def test_a_journal_that_is_no_plain_file_is_a_fault_and_stops_nothing(
    project: Path, state: Path, make: Callable[[Path], Any]
) -> None:
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    make(folder / "journal.jsonl")
    write_settings(project, "turngate", stop_hooks("true"))
    with running(project, "--session", "s", replies=("done",)) as process:
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    said = f"! the journal could not be written ({folder}/journal.jsonl: "
    assert (process.returncode, out, err[: len(said)], err.count("\n")) == (0, "done\n", said, 1)


WRITE_MUCH = """
import sys
from turngate.state import journal
journal.MAX_JOURNAL_BYTES = 40_000
kept = journal.Journal(sys.argv[1])
for number in range(300):
    kept.record("s", {"number": int(sys.argv[2]) + number})
kept.close()
assert kept.fault is None, kept.fault
"""


def test_processes_that_fill_one_journal_together_put_it_aside_once(state: Path) -> None:
    words = [sys.executable, "-c", WRITE_MUCH, str(state)]
    writers = [subprocess.Popen([*words, str(start)]) for start in (0, 1000, 2000)]
    assert [writer.wait(timeout=HANG_TIMEOUT_S) for writer in writers] == [0, 0, 0]
    folder = state / "sessions" / "s"
    found = numbers(folder / "journal.1.jsonl", folder / "journal.jsonl")
    expected = [start + number for start in (0, 1000, 2000) for number in range(300)]
    assert (sorted(found), len(list(folder.iterdir()))) == (expected, 2)


def test_a_process_that_is_stopped_while_it_writes_holds_up_nobody(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "LOCK_TIMEOUT_S", 0.1)
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    with (folder / "journal.jsonl").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        journal = Journal(str(state))
        journal.record("s", {"number": 1})
        journal.close()
    assert (numbers(folder / "journal.jsonl"), journal.fault) == ([1], None)


FILL = """
import resource, sys
from turngate.state.journal import Journal
kept = Journal(sys.argv[1])
kept.record("s", {"number": 1})
kept.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (150, resource.RLIM_INFINITY))
kept.record("s", {"number": 2, "long": "x" * 200})
kept.close()
print(kept.fault)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
kept.record("s", {"number": 3})
kept.close()
"""


def test_a_full_disk_is_a_fault_and_the_next_line_stands_alone(state: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(state)], capture_output=True, text=True, check=True
    )
    first, half, third = lines(state / "sessions" / "s" / "journal.jsonl")
    assert [json.loads(line)["number"] for line in (first, third)] == [1, 3]
    assert (len(first) + 1 + len(half), "File too large" in done.stdout) == (150, True)


@pytest.mark.parametrize("session", [5, None, b"x", ("a",)])
def test_an_id_that_is_no_text_does_not_end_the_writer(state: Path, session: Any) -> None:
    journal = Journal(str(state))
    journal.record(session, {"number": 1})
    journal.record("s", {("a", "b"): "no key of JSON's"})  # type: ignore[dict-item]
    journal.record("s", {"number": 2})
    journal.close()
    found = numbers(*sorted((state / "sessions").glob("*/journal.jsonl")))
    assert (sorted(found), "keys must be str" in str(journal.fault)) == ([1, 2], True)


# The log follows it


def test_the_log_misses_nothing_when_the_journal_is_put_aside_and_keeps_half_lines(tmp_path: Path) -> None:
    newest, older = tmp_path / "journal.jsonl", tmp_path / "journal.1.jsonl"
    tail = JournalTail(str(tmp_path))

    def write(*texts: str) -> None:
        with newest.open("a") as file:
            file.write("".join(texts))

    def put_aside() -> None:
        newest.replace(older)

    def news() -> list[Any]:
        return [line["n"] for line in tail.new_records()]

    found = [news()]
    write('{"n":1}\n{"n"')
    found.append(news())
    write(":2}\n", '{"n":"é')
    found.append(news())
    write('"}\n{"n":3}\n')
    put_aside()
    write('{"n":4}\n')
    found.append(news())
    for number in (5, 6, 7):  # twice between two looks
        write(f'{{"n":{number}}}\n', "no JSON\n[]\n")
        if number < 7:
            put_aside()
    found.append(news())
    tail.close()
    assert found == [[], [1], [2], ["é", 3, 4], [5, 6, 7]]


def test_the_log_ends_when_nobody_reads_it_any_more(state: Path) -> None:
    journal = Journal(str(state))
    journal.record("s", {"kind": "verdict", "event": "Stop", "verdict": "stop"})
    journal.close()
    words = [sys.executable, "-m", "turngate", "log", "--follow", "--session", "s"]
    following = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert next_line(following).endswith(b"  Stop: allowed\n")
        assert following.stdout is not None
        following.stdout.close()
        journal.record("s", {"kind": "verdict", "event": "Stop", "verdict": "stop"})
        journal.close()
        assert following.wait(timeout=HANG_TIMEOUT_S) == 0
    finally:
        following.kill()
        following.wait()
