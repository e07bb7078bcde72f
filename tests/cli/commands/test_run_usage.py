"""Wrong usage of `turngate run` is one sentence and exit code 64."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.scripted_run import scripted, turngate
from tests.support.sessions import lines
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.env_file import read_exports
from turngate.cli.main import main


def refused(capfd: pytest.CaptureFixture[str], project: Path, *words: str) -> str:
    """Return the message about a wrong call."""
    code, out, err = turngate(capfd, project, "go", *words)
    assert (code, out, err.count("\n"), err.startswith("turngate: ")) == (64, "", 1, True)
    return err.removeprefix("turngate: ").removesuffix("\n")


@pytest.mark.parametrize("name", ["foo", "anthropic:", ":x"])
def test_a_model_without_a_provider_is_wrong_usage_with_and_without_the_extra(
    project: Path, name: str
) -> None:
    """`-S` and an empty path for the packages: pydantic-ai cannot be imported."""
    said = (
        f"turngate: the model {name!r} is not of the form PROVIDER:NAME, such as anthropic:claude-sonnet-5-5; "
        "scripted:FILE replays a script\n"
    )
    words = ["-m", "turngate", "run", "-p", "go", "--model", name, "--project", str(project)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for options in ([], ["-S"]):
        done = subprocess.run(
            [sys.executable, *options, *words], env=environ, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (64, "", said)


# Scripts

SCRIPTS: list[tuple[Any, str]] = [
    ({"main": [{"tools": [5]}]}, "reply 1 of the script's 'main': tool 1 must be an object, not 5"),
    (
        {"main": [{"tools": [{"name": "Bash"}, {}]}]},
        "reply 1 of the script's 'main': tool 2's name must be the name of a tool, not None",
    ),
    (
        {"main": [{"tools": [{"name": "Bash", "input": None}]}]},
        "reply 1 of the script's 'main': tool 1's input must be an object, not None",
    ),
    (
        {"main": [{"tools": 5}]},
        """reply 1 of the script's 'main': tools must be a list of objects like {"name": "Bash", "input": {}}, not 5""",
    ),
    ({"main": ["a", {"texts": 5}]}, "reply 2 of the script's 'main': texts must be a list of texts, not 5"),
    ({"main": [{"texts": [5]}]}, "reply 1 of the script's 'main': texts must be a list of texts, not [5]"),
    ({"main": [{"text": 5}]}, "reply 1 of the script's 'main': text must be a text, not 5"),
    ({"main": [{"tool": 5}]}, "reply 1 of the script's 'main': tool must be the name of a tool, not 5"),
    (
        {"main": [{"tool": "Bash", "input": None}]},
        "reply 1 of the script's 'main': input must be an object, not None",
    ),
    (
        {"sub": [{"tool": "Bash", "input": [1]}]},
        "reply 1 of the script's 'sub': input must be an object, not [1]",
    ),
    (
        {"main": [{"delay": "x"}]},
        "reply 1 of the script's 'main': delay must be a number of seconds, not 'x'",
    ),
    ({"main": [{"delay": -1}]}, "reply 1 of the script's 'main': delay must be a number of seconds, not -1"),
    (
        {"main": [{"delay": float("nan")}]},
        "reply 1 of the script's 'main': delay must be a number of seconds, not nan",
    ),
    (
        {"judge": [{"word_delay": "x"}]},
        "reply 1 of the script's 'judge': word_delay must be a number of seconds, not 'x'",
    ),
    ({"main": [{"repeat": "x"}]}, "reply 1 of the script's 'main': repeat must be a whole number, not 'x'"),
    (
        {"main": [{"stop_reason": 5}]},
        "reply 1 of the script's 'main': stop_reason must be one of end_turn, tool_use, max_tokens, refusal, not 5",
    ),
    ({"main": ["a"], "context": "x"}, "the script's context must be a number of tokens, not 'x'"),
]


@pytest.mark.parametrize(("script", "said"), SCRIPTS)
def test_a_bad_script_is_rejected_before_anything_begins(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str], script: Any, said: str
) -> None:
    path = project.parent / "bad.json"
    path.write_text(json.dumps(script))
    assert refused(capfd, project, "--model", f"scripted:{path}") == said
    assert not state.exists()


# Places


def in_the_way(state: Path) -> None:
    state.write_text("")


def link_to_nowhere(state: Path) -> None:
    state.symlink_to("/proc/nowhere")


@pytest.mark.parametrize("spoil", [in_the_way, link_to_nowhere])
@pytest.mark.parametrize("words", [[], ["--session", "s"]])
def test_a_state_folder_that_cannot_be_made_is_rejected(
    project: Path,
    state: Path,
    capfd: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
    words: list[str],
) -> None:
    spoil(state)
    said = refused(capfd, project, *words)
    assert said.startswith(str(state))
    assert said.endswith("; repair it, or set TURNGATE_STATE to another folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("place", ["", "sessions", "sessions/s", "sessions/s/chat.jsonl"])
def test_a_state_that_cannot_be_written_is_rejected(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str], place: str
) -> None:
    path = state / place
    if place.endswith("jsonl"):
        path.parent.mkdir(parents=True)
        path.touch()
    else:
        path.mkdir(parents=True)
    path.chmod(0o500)
    assert "Permission denied; repair it" in refused(capfd, project, "--session", "s")


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/full")])
@pytest.mark.parametrize("name", ["chat.jsonl", "lock"])
def test_a_session_whose_files_are_no_files_is_rejected(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str], make: Callable[[Path], Any], name: str
) -> None:
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    make(folder / name)
    assert refused(capfd, project, "--session", "s").startswith(f"{folder}/{name} cannot be used: ")


@pytest.mark.parametrize("words", [["run", "-p", "go"], ["fire", "Stop"], ["check"]])
def test_a_current_folder_that_was_removed_is_rejected(tmp_path: Path, words: list[str]) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    command = f"rmdir {folder}; exec {sys.executable} -P -m turngate {' '.join(words)}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_TIMEOUT_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        64,
        "",
        "turngate: the current folder no longer exists; change to another one, or give --project an absolute path\n",
    )


CLOSED = "which is closed; give"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run -p -", f"turngate: - reads the prompt from stdin, {CLOSED} the prompt as an argument\n"),
        ("fire Stop --input -", f"turngate: --input - reads the event from stdin, {CLOSED} a file instead\n"),
    ],
)
def test_a_closed_stdin_is_rejected(project: Path, words: str, said: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m turngate {words} --project {project} <&-"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    assert (done.returncode, done.stdout, done.stderr) == (64, "", said)


def test_a_prompt_that_is_not_utf_8_is_still_read(project: Path) -> None:
    words = [sys.executable, "-m", "turngate", "run", "-p", "-", "--project", str(project)]
    done = subprocess.run(
        [*words, "--model", scripted(project, "done")], input=b"caf\xe9", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"done\n", b"")


# Options


def test_a_tool_that_does_not_exist_cannot_be_allowed(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = refused(capfd, project, "--allow", "Bash", "--allow", "Nope")
    assert said.startswith("--allow Nope: there is no such tool; the tools are Bash, ")
    assert {"Read", "Write", "Edit", "Task", "Agent"} <= set(said.rpartition("the tools are ")[2].split(", "))


@pytest.mark.parametrize("name", ["Bash", "Task", "Agent"])
def test_a_tool_that_exists_can_be_allowed(
    project: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    assert turngate(capfd, project, "go", "--allow", name) == (0, "answer 1\n", "")


def test_a_session_that_is_not_known_can_be_named_but_not_resumed(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert refused(capfd, project, "--resume", "--session", "x") == (
        "there is no session x to resume; `turngate sessions` lists them"
    )
    assert turngate(capfd, project, "go", "--session", "x") == (0, "answer 1\n", "")
    assert turngate(capfd, project, "go", "--resume", "--session", "x") == (0, "answer 1\n", "")


def test_a_folder_that_is_added_may_be_written_to(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    places = [tmp_path / name for name in ("one", "two", "three")]
    for place in places:
        place.mkdir()
    writes = [{"tool": "Write", "input": {"file_path": f"{place}/a.txt", "content": "x"}} for place in places]
    words = ("--add-dir", str(places[0]), "--add-dir", os.path.relpath(places[1]), "--allow", "Write")
    turngate(capfd, project, "go", *words, replies=(*writes, "done"))
    assert [lines(place / "a.txt") for place in places] == [["x"], ["x"], []]


@pytest.mark.parametrize("name", ["absent", "file"])
def test_a_folder_that_is_added_must_exist(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "file").touch()
    said = refused(capfd, project, "--add-dir", f"{tmp_path}/{name}")
    assert said == f"--add-dir {tmp_path}/{name}: there is no such folder; give one that exists"


def test_the_help_names_the_new_option_and_the_code_of_a_lost_answer(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    out = capfd.readouterr().out
    assert ("--add-dir DIR" in out, "74  the answer could not be written" in out) == (True, True)


# What SessionStart hooks export

EXPORTS: list[tuple[str, dict[str, str]]] = [
    ("export A=1 B=2", {"A": "1", "B": "2"}),
    ("""export A="x y" B='z'""", {"A": "x y", "B": "z"}),
    ("A=1 B='two words'", {"A": "1", "B": "two words"}),
    ("export A=1 # B=2", {"A": "1"}),
    ("export A=1 B=$A:$HERE", {"A": "1", "B": "1:here"}),
    ("export A= B=x=y", {"A": "", "B": "x=y"}),
    ("export A='open", {"A": "'open"}),
    ("echo A=1", {}),
    ("export A=1\r\nexport B=2\r\n", {"A": "1", "B": "2"}),
    ("export A='x\x0by\u2028z'", {"A": "x\x0by\u2028z"}),
]


@pytest.mark.parametrize(("line", "found"), EXPORTS)
def test_every_value_of_an_export_counts(tmp_path: Path, line: str, found: dict[str, str]) -> None:
    path = tmp_path / "env"
    path.write_text(line + "\n")
    assert read_exports(str(path), {"HERE": "here"}) == found
