"""`turngate doctor --prove` for the ready-made gates: each has a failure that it is shown to block."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.builders import write_settings
from turngate.cli.main import main
from turngate.doctor.proof.ready_made_gates import why_no_failure
from turngate.gates.library import GATES

TURNGATE = f"{sys.executable} -m turngate"
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


class Sample(NamedTuple):
    """A gate as a person configures it, the project that it passes in, and what it is shown to block."""

    words: str  # after `turngate gate`
    entry: dict[str, Any]  # of the settings
    blocks: str
    setup: Callable[[Path], None] = lambda _: None
    is_limit: bool = False  # it ends the turn


def with_test(project: Path) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "test_a.py").write_text("def test_a():\n    assert True\n")


def with_makefile(project: Path) -> None:
    (project / "src").mkdir()
    compiles = f"{sys.executable} -m compileall -q src"
    formats = f"{sys.executable} -m ruff format --check --no-cache --isolated src"
    (project / "src" / "a.py").write_text("A = 1\n")
    targets = {
        "test": PYTEST,
        "lint": compiles,
        "types": f"{sys.executable} -m mypy --cache-dir={os.devnull} src",
        "build": compiles,
        "format-check": formats,
    }
    (project / "Makefile").write_text("".join(f"{name}:\n\t{text}\n" for name, text in targets.items()))
    with_test(project)


def with_plan(project: Path) -> None:
    (project / "PLAN.md").write_text("# Plan\n\n- [x] one\n- [ ] two\n")


SAMPLES = {
    "command": Sample(f"-- {PYTEST}", {"command": PYTEST}, "a failing test", with_test),
    "tests": Sample("tests", {"gate": "tests"}, "a failing test", with_makefile),
    "lint": Sample("lint", {"gate": "lint"}, "a syntax error", with_makefile),
    "types": Sample("types", {"gate": "types"}, "a syntax error", with_makefile),
    "format": Sample("format", {"gate": "format"}, "a syntax error", with_makefile),
    "build": Sample("build", {"gate": "build"}, "a syntax error", with_makefile),
    "clean": Sample("clean", {"gate": "clean"}, "a dirty tree"),
    "todos": Sample("todos", {"gate": "todos"}, "an open task"),
    "checklist": Sample(
        "checklist PLAN.md",
        {"gate": "checklist", "options": {"files": ["PLAN.md"]}},
        "an open checklist item",
        with_plan,
    ),
    "plan": Sample(
        "plan PLAN.md",
        {"gate": "plan", "options": {"files": ["PLAN.md"]}},
        "an open checklist item",
        with_plan,
    ),
    "until": Sample(
        "until --promise FINISHED --max-iterations 3",
        {"gate": "until", "options": {"promise": "FINISHED", "maxIterations": 3}},
        "an answer without the promise",
    ),
    "evidence": Sample("evidence", {"gate": "evidence"}, "a claim without a test run"),
    "untouched": Sample(
        "untouched 'tests/**'",
        {"gate": "untouched", "options": {"globs": ["tests/**"]}},
        "a changed protected file",
        with_test,
    ),
    "no-stubs": Sample("no-stubs", {"gate": "no-stubs"}, "a stub"),
    "debug": Sample("debug", {"gate": "debug"}, "a breakpoint"),
    "suppressions": Sample("suppressions", {"gate": "suppressions"}, "a suppression"),
    "secrets": Sample("secrets", {"gate": "secrets"}, "a private key"),
    "size": Sample("size --max-lines 20", {"gate": "size", "options": {"maxLines": 20}}, "too many lines"),
    "touched": Sample(
        "touched --if 'src/**' --then CHANGELOG.md",
        {"gate": "touched", "options": {"if": ["src/**"], "then": ["CHANGELOG.md"]}},
        "a change without its documents",
    ),
    "outputs": Sample(
        "outputs 'out/*.md'", {"gate": "outputs", "options": {"globs": ["out/*.md"]}}, "empty output"
    ),
    "judge": Sample(
        "judge --prompt 'Is it done?'",
        {"gate": "judge", "options": {"prompt": "Is it done?"}},
        "a stop to which the judge says no (a scripted judge: the model itself was not asked)",
    ),
    "budget": Sample(
        "budget --tokens 1000 --minutes 30 --turns 5",
        {"gate": "budget", "options": {"tokens": 1000, "minutes": 30, "turns": 5}},
        "a conversation over its limit of tokens, a conversation over its limit of minutes and "
        "a conversation over its limit of turns",
        is_limit=True,
    ),
}
OBSERVERS = ("notify", "archive", "log")
ENTRIES: dict[str, dict[str, Any]] = {
    "archive": {"gate": "archive", "options": {"to": "archive"}},
    "log": {"gate": "log", "options": {"file": "log.jsonl"}},
}


@pytest.fixture
def repository(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


def prove(project: Path, hook: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code and the proof of the only hook."""
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [{"id": "gate", **hook}]}]}})
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "add", "-A"], cwd=project, check=True)
    subprocess.run(["git", *identity, "commit", "-qm", "first"], cwd=project, check=True)
    code = main(["doctor", "--prove", "--project", str(project)])
    lines = capsys.readouterr().out.splitlines()
    assert os.listdir(os.environ["TMPDIR"]) == []
    return code, lines[lines.index("Proofs, each in a copy of the project") + 1]


def proved(blocks: str, *, is_limit: bool = False) -> tuple[int, str]:
    what = f"ends the turn with {blocks}, as a limit does" if is_limit else f"blocks {blocks}"
    return 0, f'  proved         Stop[0].hooks[0] "gate": {what}'


def cannot_prove(why: str) -> tuple[int, str]:
    return 0, f'  cannot prove   Stop[0].hooks[0] "gate": {why}'


def test_every_gate_whose_failure_can_be_planted_has_a_sample_below() -> None:
    """The tests below prove each gate of SAMPLES, as a command and in the settings."""
    assert {name for name, gate in GATES.items() if why_no_failure(gate) is None} == {*SAMPLES}
    assert all(GATES[name].is_observer for name in OBSERVERS)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_gate_in_a_command_is_shown_to_block(
    name: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = SAMPLES[name]
    sample.setup(repository)
    hook = {"type": "command", "command": f"{TURNGATE} gate {sample.words}"}
    assert prove(repository, hook, capsys) == proved(sample.blocks, is_limit=sample.is_limit)


@pytest.mark.parametrize("type_", ["gate", "command"])
def test_a_check_that_is_red_without_a_planted_failure_is_not_proved(
    type_: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a session, what fails at its start does not block."""
    with_makefile(repository)
    (repository / "src" / "a.py").write_text("A  =  1\n")
    hook = {"type": "gate", "gate": "format"}
    code, said = prove(
        repository, hook if type_ == "gate" else {"type": type_, "command": f"{TURNGATE} gate format"}, capsys
    )
    start = '  NOT PROVED     Stop[0].hooks[0] "gate": it blocks even without a planted failure: `make format-check`: '
    assert (code, said.startswith(start)) == (13, True)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_gate_in_the_settings_is_shown_to_block(
    name: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample = SAMPLES[name]
    sample.setup(repository)
    hook = {"type": "gate", **sample.entry}
    assert prove(repository, hook, capsys) == proved(sample.blocks, is_limit=sample.is_limit)


@pytest.mark.parametrize("name", OBSERVERS)
def test_an_observer_is_named(name: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = {"type": "gate", **ENTRIES.get(name, {"gate": name})}
    _, line = prove(repository, hook, capsys)
    assert (0, line) == cannot_prove("it is an observer: it never blocks")


@pytest.mark.parametrize("limit", [{"maxIterations": 1}, {"maxIterations": 5, "maxMinutes": 0}], ids=str)
def test_until_is_a_limit_in_its_last_iteration(
    limit: dict[str, int], repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "gate", "gate": "until", "options": {"promise": "FINISHED", **limit}}
    assert prove(repository, hook, capsys) == proved("an answer without the promise", is_limit=True)


@pytest.mark.parametrize(
    "options",
    [{"tokens": 1}, {"turns": 1}, {"minutes": 5}, {"tokens": 9, "turns": 1, "perPrompt": True}],
    ids=str,
)
def test_each_limit_of_a_budget_ends_the_turn(
    options: dict[str, int], repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [name for name in options if name != "perPrompt"]
    over = " and ".join(f"a conversation over its limit of {name}" for name in names)
    hook = {"type": "gate", "gate": "budget", "options": options}
    assert prove(repository, hook, capsys) == proved(over, is_limit=True)


def test_the_judge_of_the_settings_is_not_asked(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would need a network, or has a script of one answer."""
    hook = {"type": "gate", **SAMPLES["judge"].entry}
    hook["options"] = {**hook["options"], "model": "scripted:/no/such/file.json"}
    assert prove(repository, hook, capsys) == proved(SAMPLES["judge"].blocks)


def test_a_judge_without_its_question_is_not_proved(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "gate", "gate": "judge", "options": {"promptFile": "none.md"}}
    why = "it does not work in a copy of the project: there is no file none.md in the project"
    assert prove(repository, hook, capsys)[1] == cannot_prove(why)[1]


@pytest.mark.parametrize(
    ("gate", "options", "why"),
    [
        ("checklist", {"files": ["none.md"]}, "there is no file none.md in the project"),
        ("checklist", {"files": ["PLAN.md", "none.md"]}, "there is no file none.md in the project"),
        ("checklist", {"files": ["PLAN.md"], "section": "Later"}, "PLAN.md has no section 'Later'"),
        ("plan", {"files": ["none.md"]}, "there is no file none.md in the project"),
    ],
    ids=str,
)
def test_a_list_that_is_not_there_proves_nothing(
    gate: str, options: dict[str, Any], why: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_plan(repository)
    hook = {"type": "gate", "gate": gate, "options": options}
    assert prove(repository, hook, capsys)[1] == cannot_prove(f"it could not run as it is: {why}")[1]


def test_a_build_of_an_unknown_compiler_is_not_tried(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repository / "Makefile").write_text("build:\n\tnpx vite build\n")
    why = "it is not known what `make build` checks"
    assert prove(repository, {"type": "gate", "gate": "build"}, capsys) == cannot_prove(why)


@pytest.mark.parametrize(
    "entry",
    [
        {"gate": "checklist", "options": {"files": ["PLAN.md"], "section": "Plan"}},
        {"gate": "checklist", "options": {"files": ["docs/*.md"]}},
        {"gate": "checklist", "options": {"files": ["PLAN.md"], "ifTouched": True}},
        {"gate": "outputs", "options": {"globs": ["out/**/*.{md,txt}", "report.md"], "minBytes": 500}},
        {"gate": "touched", "options": {"if": ["*.py", "!docs/**"], "then": ["docs"]}},
    ],
    ids=lambda entry: json.dumps(entry["options"]),
)
def test_options_are_considered(
    entry: dict[str, Any], repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_plan(repository)
    (repository / "docs").mkdir()
    (repository / "docs" / "tasks.md").write_text("- [ ] one\n")
    code, line = prove(repository, {"type": "gate", **entry}, capsys)
    assert (code, line.split()[0]) == (0, "proved")


def test_a_gate_whose_command_is_not_known(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "it is not known what `true` checks"
    assert prove(repository, {"type": "gate", "command": "true"}, capsys) == cannot_prove(said)


def test_the_paths_of_a_gate_lead_into_the_copy(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A gate that names the folder of the project must not run there."""
    with_test(repository)
    command = f"cd {repository} && {PYTEST}"
    assert prove(repository, {"type": "gate", "command": command}, capsys) == proved("a failing test")


def test_a_gate_that_lets_the_failure_pass_is_not_proved(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_test(repository)
    command = f"{PYTEST} tests/test_a.py::test_a"
    code, line = prove(repository, {"type": "gate", "command": command}, capsys)
    said = "it allowed a stop with a failing test planted at tests/test_a.py"
    assert (code, line) == (13, f'  NOT PROVED     Stop[0].hooks[0] "gate": {said}')
