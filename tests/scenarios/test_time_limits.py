"""A check that ended at its time limit is not paid for at every stop: it runs again when a file or its limit has changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.cli import turngate
from tests.support.gates import answer_of_process, blocked, claude_input, could_not_run
from tests.support.git_projects import commit, make_repository, write
from tests.support.sessions import lines
from turngate.gates.baseline import Known

HANGS = "echo run >> ../runs; echo 3 of 9; sleep 600"
ENDED = "it did not end within {} s; the end of its output: 3 of 9"
AGAIN = f"not run again until a file changes or its timeout is raised: on these files {ENDED}"


def stop(project: Path, *words: str) -> dict[str, Any]:
    code, answer, err = answer_of_process(words, claude_input(project))
    assert (code, err) == (0, "")
    return answer


def runs(project: Path) -> int:
    return len(lines(project / "../runs"))


def test_it_is_not_run_again_until_a_file_changes_and_a_commit_changes_none(project: Path) -> None:
    make_repository(project, {"a.py": ""})
    words = ("--timeout", "0.7", "--", HANGS)
    first = could_not_run("command", ENDED.format(0.7))
    again = could_not_run("command", AGAIN.format(0.7))
    assert [stop(project, *words), stop(project, *words), runs(project)] == [first, again, 1]
    write(project, {"a.py": "x"})
    assert [stop(project, *words), runs(project)] == [first, 2]
    commit(project)
    assert [stop(project, *words), runs(project)] == [again, 2]


def test_it_is_run_again_once_its_timeout_is_raised(project: Path) -> None:
    make_repository(project, {"a.py": ""})
    command = "echo run >> ../runs; test -e ../second || { touch ../second; sleep 600; }"
    assert "did not end" in stop(project, "--timeout", "0.7", "--", command)["systemMessage"]
    assert [stop(project, "--timeout", "60", "--", command), runs(project)] == [{}, 2]


def test_a_strict_gate_blocks_without_running_it_again(project: Path) -> None:
    make_repository(project, {"a.py": ""})
    words = ("--strict", "--timeout", "0.7", "--", HANGS)
    reasons = [ENDED.format(0.7), AGAIN.format(0.7)]
    assert [stop(project, *words) for _ in reasons] == [
        blocked(f'gate "command" could not run: {reason}') for reason in reasons
    ]
    assert runs(project) == 1


def test_the_gate_tests_says_that_there_is_an_option_for_that(project: Path) -> None:
    make_repository(project, {"a.py": ""})
    words = ("tests", "--timeout", "0.7", "--", HANGS)
    stop(project, *words)
    hint = "is raised (`related` runs the tests of a change first):"
    why = AGAIN.format(0.7).replace("is raised:", hint)
    assert [stop(project, *words), runs(project)] == [could_not_run("tests", f"`{HANGS}`: {why}"), 1]


def test_the_short_limit_of_a_host_is_a_limit_like_any_other(project: Path) -> None:
    """Qwen Code gives up on a hook after 60 seconds; a shorter time stands for that."""
    make_repository(project, {"a.py": ""})
    hooks = [{"type": "gate", "command": HANGS, "timeout": 600}]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    fields = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(project), "stop_hook_active": False}

    def ask() -> str:
        code, out, _ = turngate("hook", "--host", "qwen", "--timeout", "2", stdin=json.dumps(fields))
        assert code == 0
        message: str = json.loads(out)["systemMessage"]
        return message

    first, again = ask(), ask()
    assert ("the end of its output: 3 of 9" in first, "not run again" in first) == (True, False)
    assert ("the end of its output: 3 of 9" in again, "not run again" in again) == (True, True)
    assert runs(project) == 1


def test_a_secret_at_the_end_of_the_output_is_hidden_each_time(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "s3cr3tvalue9988")
    make_repository(project, {"a.py": ""})
    words = ("--timeout", "0.7", "--", "echo key $MY_API_KEY; sleep 600")
    shown = [stop(project, *words)["systemMessage"].rpartition("output: ")[2] for _ in range(2)]
    assert shown == ["key …; it was NOT enforced"] * 2


@pytest.mark.parametrize(
    ("seconds", "left", "is_too_slow"),
    [
        (None, 1.0, False),  # it has ended
        (54.0, 54.2, True),  # the same limit is never quite the same
        (54.0, 59.0, False),
        (14.0, 54.0, False),  # it had waited for another agent
        (14.0, 13.0, True),
        (0.5, 0.7, True),
        (54.0, float("inf"), False),  # a person waits as long as it takes
    ],
)
def test_how_much_more_time_is_another_try(seconds: float | None, left: float, is_too_slow: bool) -> None:
    assert Known(None, seconds=seconds).is_too_slow(left) is is_too_slow
