"""What the agent's own commands were."""

import pytest

from tests.support.measures import count_calls, cpu_limit
from turngate.gates.agent_commands import find_check, find_kinds, run_commands, succeeded, written_path
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
    # Whatever runs it
    "docker compose exec -T web pytest -q": ["tests"],
    "docker exec app sh -c 'cd x && npm test'": ["tests"],
    "kubectl exec pod -- pytest": ["tests"],
    "ssh -p 22 host 'cd app && make test'": ["tests"],
    "conda run -n dev python -m pytest": ["tests"],
    "nix develop -c mypy src": ["types"],
    "doppler run -- npm test": ["tests"],
    "coverage run -m pytest": ["tests"],
    "npx --yes vitest run": ["tests"],
    "python manage.py test": ["tests"],
    "python tests/runtests.py queries": ["tests"],
    "bash scripts/run-tests.sh": ["tests"],
    "./scripts/lint": ["lint"],
    "php artisan test": ["tests"],
    "make -C build check": ["build", "lint", "tests", "types"],
    "pnpm --filter api test": ["tests"],
    "npx nx affected -t build": ["build"],
    "earthly +test": ["tests"],
    "node --test": ["tests"],
    "gh pr checks": ["build", "lint", "tests", "types"],
    # Not a check
    "cat tests/test_a.py": [],
    "echo pytest": [],
    "grep -r pytest .": [],
    "git commit -m 'tests pass; pytest'": [],
    "pytest --collect-only": [],
    "pytest --markers": [],
    "pytest --fixtures": [],
    "pytest --setup-plan": [],
    "make -n test": [],
    "make -kn test": [],
    "make --just-print test": [],
    "make -t test": [],
    "ninja -n": [],
    "nox -l": [],
    "ctest -N": [],
    "go test -list . ./...": [],
    "ruff clean": [],
    "pre-commit install": [],
    "pip install pytest": [],
    "npm install": [],
    "vim pytest.ini": [],
    "npm ci": [],
    "uv add --dev pytest": [],
    "test -f tests": [],
    "mkdir tests": [],
    "python train.py --split test": [],
    "command -v pytest": [],
    "": [],
}


@pytest.mark.parametrize("command", CHECK_COMMANDS)
def test_which_checks_a_command_runs(command: str) -> None:
    found = {kind for step in run_commands(command) for kind in find_kinds(step.text)}
    assert sorted(found) == CHECK_COMMANDS[command]


def test_the_first_kind_of_a_line_is_its_check() -> None:
    assert [find_check(line) for line in ("ruff check && pytest", "mypy src", "ls")] == [
        "tests",
        "types",
        None,
    ]


WRITES = {
    "sed -i 's/a/b/' src/a.py": "src/a.py",
    "echo x > a.py": "a.py",
    "cat <<EOF > b.py\nx\nEOF": "b.py",
    "cp a.py b.py": "b.py",
    "! sed -i 's/a/b/' src/a.py": "src/a.py",
    "if sed -i 's/a/b/' src/a.py; then true; fi": "src/a.py",
    # Not an edit of source
    "git checkout -- a.py": None,
    "git pull": None,
    "rm scratch.py": None,
    "echo x > .gitignore": None,
    "echo x >> settings.toml": None,
    "sed -i 's/1.12/1.13/' go.mod": None,
    "echo 'gem \"rake\"' >> Gemfile": None,
    "git checkout -b feature": None,
    "git switch -c feature": None,
    "git stash list": None,
    "git merge-base a b": None,
    "git reset HEAD a.py": None,
    "git restore --staged a.py": None,
    "git apply --check a.diff": None,
    "git diff > my.patch": None,
    "rm -rf build": None,
    "rm -f .coverage": None,
    "rm -rf src/__pycache__/": None,
    "echo $((3>2))": None,
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
    written = [written_path(step.text) for step in run_commands(command)]
    assert next(filter(None, written), None) == WRITES[command]


# Commands, what they print, and whether they back a claim of the kind.
OUTCOMES: dict[tuple[str, str, str | None], bool] = {
    ("tests", "pytest", ""): True,
    ("tests", "pytest && echo FAILED", "FAILED"): True,  # the exit code of a whole chain decides
    ("tests", "cd x || exit 1; pytest", "12 passed"): True,
    ("tests", "set -o pipefail; pytest | tail -2", "the word FAILED"): True,
    ("tests", "set -e\npytest\necho done", "done"): True,
    ("tests", "cd a\npytest -q\ngit status", "12 passed in 0.1s\nOn branch main"): True,
    ("tests", "for each in a b; do (cd $each && pytest); done", "2 passed\n3 passed"): True,
    ("tests", "pytest -q; echo exit=$?", "exit=0"): True,
    ("tests", "ctest -V", ""): True,
    ("tests", "pytest -n 4", ""): True,
    ("tests", "make -C tests -j4 test", ""): True,
    ("tests", "gh pr checks", "tests\tpass\t1m"): True,
    ("build", "mvn clean install", ""): True,
    ("build", "mvn -DskipTests package", ""): True,
    ("build", "make", "make: Nothing to be done for 'all'."): True,
    ("tests", "make test", "make[1]: Nothing to be done for 'all'.\n./run.sh\nall is well"): True,
    ("build", "cargo test", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed"): True,
    # Something hides the exit code, and the output shows a success
    ("tests", "pytest | tail -2", "2 passed"): True,
    ("tests", "pytest > log; tail -1 log", "==== 2 passed in 0.1s ===="): True,
    ("tests", "python -m unittest 2>&1 | tail -3", "Ran 3 tests in 0.1s\n\nOK"): True,
    ("tests", "go test ./... | tail", "?   \tx/a\t[no test files]\nok  \tx/b\t0.1s"): True,
    (
        "tests",
        "cargo test | tail",
        "test result: ok. 3 passed; 0 failed\nrunning 0 tests\ntest result: ok. 0 passed",
    ): True,
    ("tests", "npx mocha | tail", "  3 passing (12ms)"): True,
    ("tests", "rspec | tail", "3 examples, 0 failures"): True,
    ("tests", "mvn verify | tail", "[INFO] BUILD SUCCESS"): True,
    ("lint", "ruff check . | tail -3", "All checks passed!"): True,
    ("types", "mypy src; true", "Success: no issues found in 3 source files"): True,
    ("types", "npx tsc --noEmit 2>&1 | head -20", ""): True,  # it prints nothing if all is well
    ("types", "cd web && npx tsc --noEmit 2>&1 | head -20", ""): True,
    ("types", "cd web && npx tsc --noEmit | head; git status", "On branch main"): True,
    ("lint", "npm ci && npx eslint . | tail", ""): True,
    ("lint", "npx eslint . | tail", ""): True,
    ("tests", "make check | tail", "# TOTAL: 3\n# PASS:  3\n# SKIP:  0\n# FAIL:  0\n# ERROR: 0"): True,
    ("tests", "./unit_test | tail -1", "[  PASSED  ] 12 tests."): True,
    ("tests", "pytest -n auto | tail -1", "\x1b[32m\x1b[1m812 passed\x1b[0m\x1b[32m in 12.31s\x1b[0m"): True,
    ("tests", "xcodebuild test | xcbeautify", "Test Succeeded"): True,
    ("tests", "./gradlew :app:testDebugUnitTest -q", ""): True,
    ("build", "npm run build 2>&1 | tail -5", "built in 3.1s"): True,
    # or a failure,
    ("tests", "pytest | tail -2", "1 failed, 1 passed"): False,
    ("tests", "pytest || true", "FAILED tests/test_a.py"): False,
    ("tests", "pytest; echo done", "sh: pytest: command not found\ndone"): False,
    ("tests", "make test || echo ok", "make: *** [Makefile:2: test] Error 1\nok"): False,
    ("types", "npx tsc | head", "src/a.ts(3,5): error TS2322: Type"): False,
    ("build", "dotnet build | tail -3", "a.cs(3,5): error CS1002: ; expected\n    1 Error(s)"): False,
    ("tests", "vendor/bin/phpunit | tail -2", "FAILURES!\nTests: 12, Assertions: 24, Failures: 1."): False,
    ("types", "cd web && npx tsc | head; true", "sh: cd: web: No such file or directory"): False,
    ("lint", "npx eslint . | head -3", "/p/a.js\n  3:5  error  'x' is not defined"): False,
    ("tests", "gh run list", "completed\tfailure\tfix"): False,
    # or neither.
    ("tests", "pytest > /dev/null; true", ""): False,
    ("tests", "false && pytest; true", ""): False,
    ("tests", "pytest || true", ""): False,
    ("tests", "pytest > /dev/null || echo ok", "ok"): False,  # these are the words of echo
    ("tests", "pytest > /dev/null; echo 12 passed", "12 passed"): False,
    ("tests", "pytest -k nothing || true", "no tests ran in 0.1s"): False,
    ("types", "npx tsc > log; true", ""): False,
    ("types", "npx tsc | wc -l", "0"): False,
    ("types", "false && npx tsc; true", ""): False,
    ("lint", "ruff check --exit-zero", "a.py:1:1: F401 unused"): False,
    ("tests", "gh run list", ""): False,
    ("tests", "if true; then pytest; fi", "12 passed"): True,
    # It may not run, or the line succeeds if it fails
    ("tests", "! pytest", ""): False,
    ("tests", "time ! pytest", ""): False,
    ("tests", "! (cd x && pytest)", ""): False,
    ("tests", "true || pytest", ""): False,
    ("tests", "true || echo | pytest", ""): False,
    ("tests", "true || (cd x && pytest)", ""): False,
    ("tests", "pytest & true", ""): False,
    ("tests", "pytest && echo ok & true", "ok"): False,
    ("tests", "if false; then pytest; fi", ""): False,
    ("tests", "if false\nthen\n  pytest\nfi", ""): False,
    ("tests", "while false; do pytest; done", ""): False,
    ("tests", "set -e; if false; then pytest; fi", ""): False,
    ("tests", "pytest(){ :; }; pytest", ""): False,
    ("tests", "function pytest { :; }; pytest", ""): False,
    ("tests", "alias pytest=true; pytest", ""): False,
    ("tests", "exit 0; pytest", ""): False,
    ("tests", "bash -c '! pytest'", ""): False,
    # No test ran
    ("tests", "go test ./...", "?   \tx/a\t[no test files]"): False,
    ("tests", "python -m unittest", "Ran 0 tests in 0.0s\n\nOK"): False,
    ("tests", "make test", "make: 'test' is up to date."): False,
    ("tests", "make test | tail", "make: Nothing to be done for 'test'."): False,
    ("lint", "make lint", "make: 'lint' is up to date."): False,
    (
        "lint",
        "ruff check",
        "warning: No Python files found under the given path(s)\nAll checks passed!",
    ): False,
    ("tests", "npm test", "\n> node --test\n\n# tests 0\n# pass 0\n# fail 0"): False,
    ("tests", "npx mocha", "\n  0 passing (0ms)\n"): False,
    ("tests", "pytest -q", "1 skipped in 1.86s"): False,
    ("tests", "ctest", "No tests were found!!!"): False,
    ("tests", "npx jest --passWithNoTests", "No tests found, exiting with code 0"): False,
    ("tests", "cargo test nothing", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed"): False,
    ("tests", "mvn -DskipTests verify", ""): False,
    ("tests", "pytest", None): False,
}


def backs(kind: str, command: str, output: str | None) -> bool:
    call = ToolCall(name="Bash", input={"command": command}, result=output)
    steps = run_commands(command)
    places = [place for place, step in enumerate(steps) if kind in find_kinds(step.text)]
    return any(succeeded(call, steps, place, frozenset([kind])) for place in places)


@pytest.mark.parametrize(("kind", "command", "output"), OUTCOMES)
def test_whether_a_check_succeeded(kind: str, command: str, output: str | None) -> None:
    assert backs(kind, command, output) is OUTCOMES[kind, command, output]


def test_a_check_that_failed_or_runs_in_the_background_did_not_succeed() -> None:
    steps = run_commands("pytest")
    failed = ToolCall(name="Bash", input={"command": "pytest"}, result="1 passed", is_error=True)
    background = ToolCall(
        name="Bash", input={"command": "pytest", "run_in_background": True}, result="started"
    )
    assert not succeeded(failed, steps, 0, frozenset(["tests"]))
    assert not succeeded(background, steps, 0, frozenset(["tests"]))


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


HOSTILE_OUTPUT = (
    "\n",
    " ",
    "1",
    "ok ",
    "ok\n",
    "0 tests ",
    "error",
    "1 passed",
    "a b\n",
    "\tpass",
    "*** ",
    "1:1 ",
)


@pytest.mark.parametrize("text", HOSTILE_OUTPUT)
def test_the_work_on_a_hostile_output_and_its_commands_is_bounded(text: str) -> None:
    def look(times: int) -> None:
        backs("tests", "pytest; true", "x" + text * times)
        backs("tests", "; pytest" * (times // 5), text * times)

    with cpu_limit(30):
        some = count_calls(lambda: look(10_000))
        assert count_calls(lambda: look(20_000)) < 1.1 * some


@pytest.mark.parametrize(
    "text",
    [
        *HOSTILE,
        "make -" + "n" * 100_000 + "-",
        "make " + "-n- " * 30_000,
        "if " * 30_000,
        "$((" * 30_000,
        "git reset " + "-a " * 30_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_the_work_on_a_hostile_command_is_bounded(text: str) -> None:
    def look(command: str) -> None:
        for step in run_commands(command):
            written_path(step.text)
            find_kinds(step.text)

    with cpu_limit(30):
        some = count_calls(lambda: look(text))
        assert count_calls(lambda: look(text * 2)) < 1.1 * some
