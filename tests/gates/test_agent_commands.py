"""What the agent's own commands were."""

import pytest

from turngate.gates.agent_commands import CHECKS, runs_check, simple_commands, succeeded, written_path
from turngate.gates.conversation import ToolCall

# Commands, and which checks they run.
CHECK_COMMANDS = {
    "pytest -q": ["tests"],
    "cd x && .venv/bin/python -m pytest tests/ -q 2>&1 | tail -5": ["tests"],
    "npm test": ["tests"],
    "npm run build": ["build"],
    "npm run lint": ["lint"],
    "npm run typecheck": ["types"],
    "npm run test:unit -- --run": ["tests"],
    "npx jest": ["tests"],
    "npx tsc && npx eslint .": ["build", "lint", "types"],
    "cargo test --all": ["build", "tests", "types"],
    "go test ./...": ["build", "tests", "types"],
    "mvn -q verify": ["build", "tests"],
    "./gradlew build": ["build", "tests"],
    "make": ["build"],
    "make test": ["tests"],
    "make check": ["build", "lint", "tests", "types"],
    "ruff check . && mypy src": ["lint", "types"],
    "uv run --frozen pytest": ["tests"],
    "FOO='a b' timeout 60 pytest": ["tests"],
    "bash -lc 'cd x; pytest -q'": ["tests"],
    "./run_tests.sh": ["tests"],
    "cat > a.py <<'EOF'\nmake\nEOF\npytest": ["tests"],
    "gh pr checks": ["build", "lint", "tests", "types"],
    # Not a check
    "cat tests/test_a.py": [],
    "echo pytest": [],
    "grep -r pytest .": [],
    "git commit -m 'tests pass; pytest'": [],
    "pytest --collect-only": [],
    "pip install pytest": [],
    "npm install": [],
    "vim pytest.ini": [],
    "": [],
}


@pytest.mark.parametrize("command", CHECK_COMMANDS)
def test_which_checks_a_command_runs(command: str) -> None:
    found = {kind for step in simple_commands(command) for kind in CHECKS if runs_check(step.text, kind)}
    assert sorted(found) == CHECK_COMMANDS[command]


WRITES = {
    "sed -i 's/a/b/' src/a.py": "src/a.py",
    "echo x > a.py": "a.py",
    "cat <<EOF > b.py\nx\nEOF": "b.py",
    "cp a.py b.py": "b.py",
    "git checkout -- a.py": "a.py",
    # Not a change that a check depends on
    "pytest > /dev/null 2>&1": None,
    "pytest 2>&1 | tee out.log": None,
    "echo 'a > b.py'": None,
    "make 2> err.txt": None,
    "ls >&2": None,
    "git commit -m x": None,
    "cat a >> CHANGELOG.md": None,
    "echo x > /tmp/a.py": None,
}


@pytest.mark.parametrize("command", WRITES)
def test_what_a_command_changes(command: str) -> None:
    written = [written_path(step.text) for step in simple_commands(command)]
    assert next(filter(None, written), None) == WRITES[command]


# Commands, their output, and whether the tests in them succeeded.
OUTCOMES = {
    ("pytest", "1 passed"): True,
    ("pytest && echo FAILED", "FAILED"): True,  # the exit code of a whole chain decides
    ("pytest | tail -2", "2 passed"): True,
    ("pytest | tail -2", "1 failed, 1 passed"): False,
    ("set -o pipefail; pytest | tail -2", "the word FAILED"): True,
    ("pytest || true", "FAILED tests/test_a.py"): False,
    ("pytest; echo done", "sh: pytest: command not found\ndone"): False,
    ("pytest", None): False,
}


@pytest.mark.parametrize(("command", "output"), OUTCOMES)
def test_whether_a_check_succeeded(command: str, output: str | None) -> None:
    call = ToolCall(name="Bash", input={"command": command}, result=output)
    steps = [*simple_commands(command)]
    place = next(place for place, step in enumerate(steps) if step.text == "pytest")
    assert succeeded(call, steps, place) is OUTCOMES[command, output]


def test_a_check_that_failed_or_runs_in_the_background_did_not_succeed() -> None:
    steps = [*simple_commands("pytest")]
    failed = ToolCall(name="Bash", input={"command": "pytest"}, result="1 passed", is_error=True)
    background = ToolCall(
        name="Bash", input={"command": "pytest", "run_in_background": True}, result="started"
    )
    assert not succeeded(failed, steps, 0)
    assert not succeeded(background, steps, 0)


HOSTILE = (
    *(
        "'" * 100_000,
        "a=" * 50_000,
        "<<A\n" * 20_000,
        "<<A\n" + "\n" * 100_000,
        "npm " * 20_000,
        "(" * 100_000,
    ),
    *("> " * 50_000, "sudo " * 20_000, "test" * 25_000, "make test-" + "a-" * 50_000, " " * 100_000 + "x"),
)


def test_a_hostile_command_takes_bounded_time() -> None:
    for text in HOSTILE:
        for step in simple_commands(text):
            written_path(step.text)
            for kind in CHECKS:
                runs_check(step.text, kind)
