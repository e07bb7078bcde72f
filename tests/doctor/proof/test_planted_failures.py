from pathlib import Path

import pytest

from turngate.doctor.proof.planted_failures import Gate, failures_for, gate_text
from turngate.doctor.proof.samples import conversation


def planted(project: Path, text: str) -> list[tuple[str, str]]:
    """Return what would be planted for a gate, and where."""
    gate = Gate(gate_text(text, [], str(project)), str(project), str(project / "transcript"))
    failures, reasons = failures_for(gate)
    return [*((each.what, each.where) for each in failures), *(("cannot", reason) for reason in reasons)]


def write(project: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


PLACES: dict[str, tuple[dict[str, str], str, str]] = {
    "nothing is there": ({}, "pytest", "test_turngate_planted.py"),
    "a folder of tests": ({"tests/a.py": ""}, "pytest -x", "tests/test_turngate_planted.py"),
    "its old name": ({"tests/a.py": ""}, "py.test -q", "tests/test_turngate_planted.py"),
    "a folder that is named": (
        {"tests/a.py": "", "unit/b.py": ""},
        "pytest -q unit",
        "unit/test_turngate_planted.py",
    ),
    "a file that is named": ({"test_a.py": ""}, "pytest test_a.py::test_x >&2", "test_a.py"),
    "pyproject.toml": (
        {"pyproject.toml": '[tool.pytest.ini_options]\ntestpaths = ["checks"]\n', "checks/a.py": ""},
        "python3 -m pytest",
        "checks/test_turngate_planted.py",
    ),
    "pytest.ini": (
        {"pytest.ini": "[pytest]\npython_files = check_*.py other.py\n"},
        "uv run pytest || exit 2",
        "check_turngate_planted.py",
    ),
    "setup.cfg": (
        {"setup.cfg": "[tool:pytest]\ntestpaths = a\n", "a/b.py": ""},
        "pytest",
        "a/test_turngate_planted.py",
    ),
    "broken configuration": ({"pyproject.toml": "[", "tox.ini": "]"}, "pytest", "test_turngate_planted.py"),
    "make": ({"Makefile": "check:\n\tpytest\n"}, "make check", "test_turngate_planted.py"),
    "Django": ({}, "python manage.py test", "test_turngate_planted.py"),
    "npm": (
        {"package.json": '{"scripts": {"test": "vitest run"}}', "src/a.js": ""},
        "npm test",
        "src/turngate-planted.test.js",
    ),
    "mocha": ({}, "npx mocha", "test/turngate-planted.test.js"),
    "another folder": ({"app/tests/a.py": ""}, "cd app && pytest -q", "app/tests/test_turngate_planted.py"),
    "another folder for unittest": (
        {"app/a.py": ""},
        "cd app\npython -m unittest",
        "app/test_turngate_planted.py",
    ),
    "another folder for Node": ({"web/a.js": ""}, "cd web; npx vitest run", "web/turngate-planted.test.js"),
    "another folder for make": (
        {"app/Makefile": "t:\n\tpytest\n", "app/tests/a.py": ""},
        "cd app && make t",
        "app/tests/test_turngate_planted.py",
    ),
    "another folder for cargo": (
        {"core/Cargo.toml": "[package]\n"},
        "cd core && cargo test",
        "core/tests/turngate_planted.rs",
    ),
    "a question whether it is installed": (
        {"app/tests/a.py": ""},
        "command -v pytest >/dev/null || exit 0\ncd app\npytest -q",
        "app/tests/test_turngate_planted.py",
    ),
    "cargo": ({"Cargo.toml": "[package]\n"}, "cargo test --quiet", "tests/turngate_planted.rs"),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_failing_test_is_planted_where_it_is_found(case: str, project: Path) -> None:
    files, text, where = PLACES[case]
    write(project, files)
    assert planted(project, text) == [("a failing test", where)]


@pytest.mark.parametrize(
    ("files", "text", "where"),
    [
        ({"go.mod": ""}, "go vet ./...", "turngate_planted/planted.go"),
        ({"go.mod": ""}, "go build ./... && golangci-lint run", "turngate_planted/planted.go"),
        ({"Cargo.toml": "[package]\n"}, "cargo clippy -- -D warnings", "src/bin/turngate_planted.rs"),
        ({"core/Cargo.toml": "[package]\n"}, "cd core; cargo check", "core/src/bin/turngate_planted.rs"),
        ({"a.js": ""}, "npx eslint .", "turngate-planted.js"),
        ({"src/a.ts": ""}, "npx --no-install tsc --noEmit", "src/turngate-planted.js"),
        ({"package.json": '{"scripts": {"lint": "eslint ."}}'}, "npm run lint", "turngate-planted.js"),
        ({"src/a.py": ""}, "mypy", "src/turngate_planted.py"),
        ({"src/a.py": "", "b.py": ""}, "mypy b.py", "b.py"),
        ({"pyproject.toml": '[tool.mypy]\nfiles = ["a.py"]\n', "a.py": "", "src/b.py": ""}, "mypy", "a.py"),
        ({"mypy.ini": "[mypy]\nfiles = gone, lib\n", "lib/a.py": ""}, "mypy", "lib/turngate_planted.py"),
        ({"ruff.toml": 'include = ["app/**/*.py"]\n', "app/x/a.py": ""}, "ruff check", "app/x/a.py"),
    ],
)
def test_a_syntax_error_is_planted_where_it_is_found(
    files: dict[str, str], text: str, where: str, project: Path
) -> None:
    write(project, files)
    assert planted(project, text) == [("a syntax error", where)]


@pytest.mark.parametrize(
    ("key", "value"), [("packages", '["shop"]'), ("modules", '["shop"]'), ("files", '["gone.py"]')]
)
def test_a_linter_whose_files_are_not_known_is_not_tried(key: str, value: str, project: Path) -> None:
    write(project, {"pyproject.toml": f"[tool.mypy]\n{key} = {value}\n", "src/a.py": ""})
    said = f"its mypy checks only what its configuration names ({key})"
    assert planted(project, "mypy") == [("cannot", said)]


def test_a_failing_test_of_go_is_a_package_of_its_own(project: Path) -> None:
    assert planted(project, "go test ./...") == [("a failing test", "turngate_planted/planted_test.go")]


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "notify-send done",
        "cat pytest.ini",
        "npm test",  # without a package.json
        "cargo test",  # without a package
        "cargo build",
        "[ -f x ] || exit 2",
        "grep TODO NOTES.md",
        'grep -q latest "$CLAUDE_TRANSCRIPT_PATH"',
        "git commit -m x",
        "#!/bin/sh\n# later: run pytest and git status\ntrue",
        "which pytest",
        "git log --status",
        "cargo build && ./run test",
        "node app.js --test",
    ],
)
def test_nothing_is_planted_for_a_gate_that_is_not_understood(text: str, project: Path) -> None:
    assert planted(project, text) == []


@pytest.mark.parametrize("option", ["-k fast", "-m 'not slow'", "--lf", "--deselect=x"])
def test_a_selection_of_tests_is_not_guessed(option: str, project: Path) -> None:
    name = option.partition(" ")[0].partition("=")[0]
    assert planted(project, f"pytest {option}") == [("cannot", f"its pytest runs only some tests ({name})")]


@pytest.mark.parametrize(
    "pattern", ["'- [ ]'", r"'\[ \]'", r"'^\s*- \[\s\]'", r"'\[[[:space:]]\]'", r"'\[[ ]\]'", r"\[\ \]"]
)
def test_an_open_item_is_found_in_its_usual_forms(pattern: str, project: Path) -> None:
    write(project, {"docs/plan.md": "- [x] one\n"})
    text = f'grep -c {pattern} "$CLAUDE_PROJECT_DIR"/docs/plan.md'
    assert planted(project, text) == [("an open checklist item", "docs/plan.md")]


def test_a_checklist_outside_of_the_project_is_left_alone(project: Path) -> None:
    assert planted(project, "grep -e '- [ ]' ../other/plan.md && exit 2") == []


@pytest.mark.parametrize(
    "text",
    [
        "git status --porcelain",
        "git diff --quiet",
        'git -C "$CLAUDE_PROJECT_DIR" status',
        "git --no-pager -c core.quotepath=off ls-files -m",
        'subprocess.run(["git", "status", "--porcelain"], check=True)',
        "execSync('git diff --name-only')",
    ],
)
def test_a_question_to_git_is_found_in_its_usual_forms(text: str, project: Path) -> None:
    assert planted(project, text) == [("a dirty tree", "turngate-planted.txt")]


def test_a_target_of_a_makefile_that_runs_no_tests_is_not_expected_to(project: Path) -> None:
    write(project, {"Makefile": "test:\n\tpytest\n\nlint:\n\tshellcheck *.sh\n"})
    assert planted(project, "make lint") == []


def test_a_long_text_is_searched_in_a_moment(project: Path) -> None:
    text = "git " + "-c a=b " * 20_000 + "pytest" + " -" * 50_000 + "\n" + "[ " * 100_000 + "transcript_path"
    assert planted(project, text) == [
        ("a failing test", "test_turngate_planted.py"),
        ("a session without a test run", "the conversation"),
    ]


def test_the_conversation_has_a_test_run_or_none() -> None:
    assert (b"make test" in conversation(), b"tool_name" in conversation(ran_tests=False)) == (True, False)
