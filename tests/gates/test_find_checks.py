"""Which commands the gates tests, lint, types and build stand for."""

import json

import pytest

from turngate.gates.find_checks import CheckCommand, ProjectFiles, find_check_commands, unreadable_files

PYPROJECT = """\
[project]
dependencies = ["httpx>=0.27"]
[dependency-groups]
dev = ["pytest>=8", "ruff", "mypy==1.11"]
"""
# Files of a project with their texts, and its commands.
PROJECTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "empty": ({}, {}),
    "a package without checks": ({"package.json": "{}"}, {}),
    "the test script of npm init": (
        {"package.json": json.dumps({"scripts": {"test": 'echo "Error: no test specified" && exit 1'}})},
        {},
    ),
    "npm": (
        {
            "package.json": json.dumps(
                {"scripts": {"test": "jest", "lint": "eslint .", "typecheck": "tsc", "build": "vite build"}}
            )
        },
        {
            "tests": "npm test",
            "lint": "npm run lint",
            "types": "npm run typecheck",
            "build": "npm run build",
        },
    ),
    "pnpm, by its lock file": (
        {"package.json": '{"scripts": {"test": "vitest run", "lint": "eslint ."}}', "pnpm-lock.yaml": ""},
        {"tests": "pnpm test", "lint": "pnpm run lint"},
    ),
    "yarn, by its name": (
        {"package.json": '{"packageManager": "yarn@4.1.0", "scripts": {"test": "jest"}}', "bun.lockb": ""},
        {"tests": "yarn test"},
    ),
    "bun has a test runner of its own": (
        {"package.json": '{"scripts": {"test": "vitest run"}}', "bun.lock": ""},
        {"tests": "bun run test"},
    ),
    "a test script that never ends": (
        {"package.json": '{"scripts": {"test": "jest --watch", "test:ci": "jest --ci"}}'},
        {"tests": "npm run test:ci"},
    ),
    "a test script that ends": (
        {"package.json": '{"scripts": {"test": "ng test --watch=false"}}'},
        {"tests": "npm test"},
    ),
    "a test script that ends only in CI": (
        {"package.json": '{"scripts": {"test": "react-scripts test"}}'},
        {"tests": "CI=true npm test"},
    ),
    "a linter that changes files": (
        {"package.json": '{"scripts": {"lint": "eslint --fix .", "lint:check": "eslint ."}}'},
        {"lint": "npm run lint:check"},
    ),
    "typescript without a script": (
        {"package.json": '{"devDependencies": {"typescript": "^5"}}', "tsconfig.json": "{}"},
        {"types": "npx --no-install tsc --noEmit"},
    ),
    "scripts that are not texts": ({"package.json": '{"scripts": {"test": ["jest"], "lint": 1}}'}, {}),
    "scripts that are not a table": ({"package.json": '{"scripts": "jest"}'}, {}),
    "a package that is not a table": ({"package.json": "[]"}, {}),
    "a broken package": ({"package.json": '{"scripts": {"test": "jest"'}, {}),
    "a package in a deep hole": ({"package.json": "[" * 200_000}, {}),
    "python, by its dependencies": (
        {"pyproject.toml": PYPROJECT},
        {"tests": "pytest -q", "lint": "ruff check", "types": "mypy ."},
    ),
    "python, by its tables": (
        {"pyproject.toml": '[tool.pytest.ini_options]\n[tool.ruff]\n[tool.mypy]\nfiles = ["src"]\n'},
        {"tests": "pytest -q", "lint": "ruff check", "types": "mypy"},
    ),
    "python, by other files": (
        {"setup.cfg": "[flake8]\n[tool:pytest]\n", "mypy.ini": ""},
        {"tests": "pytest -q", "lint": "flake8", "types": "mypy"},
    ),
    "a plugin of pytest is not pytest": ({"requirements.txt": "pytest-asyncio\nruff-lsp\n"}, {}),
    "python with uv": (
        {"pyproject.toml": PYPROJECT, "uv.lock": ""},
        {"tests": "uv run pytest -q", "lint": "uv run ruff check", "types": "uv run mypy ."},
    ),
    "python with its own environment": (
        {"requirements.txt": "pytest==8.0\n", ".venv/bin/pytest": ""},
        {"tests": ".venv/bin/pytest -q"},
    ),
    "python with pytest in its own environment only": (
        {"tests/test_prices.py": "", "venv/bin/pytest": ""},
        {"tests": "venv/bin/pytest -q"},
    ),
    "python without pytest": (
        {"tests/test_prices.py": ""},
        {"tests": "python3 -m unittest discover -s tests"},
    ),
    "django": ({"manage.py": "", "tests/test_prices.py": ""}, {"tests": "python3 manage.py test"}),
    "broken pyproject": (
        {"pyproject.toml": "[tool.pytest.ini_options\n", "conftest.py": ""},
        {"tests": "pytest -q"},
    ),
    "rust": (
        {"Cargo.toml": ""},
        {
            "tests": "cargo test",
            "lint": "cargo clippy --all-targets -- -D warnings",
            "types": "cargo check --all-targets",
            "build": "cargo build",
        },
    ),
    "go": ({"go.mod": ""}, {"tests": "go test ./...", "lint": "go vet ./...", "build": "go build ./..."}),
    "go with its usual linter": (
        {"go.mod": "", ".golangci.yml": ""},
        {"tests": "go test ./...", "lint": "golangci-lint run", "build": "go build ./..."},
    ),
    "make": (
        {"Makefile": ".PHONY: test lint\ntest lint: all\n\tpytest\nbuild := x\ntypecheck::\n\tmypy\n"},
        {"tests": "make test", "lint": "make lint", "types": "make typecheck"},
    ),
    "make's own order of files": (
        {"Makefile": "test:\n", "GNUmakefile": "check:\n"},
        {"tests": "make check"},
    ),
    "make comes before the tools that it calls": (
        {"Makefile": "test:\n", "pyproject.toml": PYPROJECT},
        {"tests": "make test", "lint": "ruff check", "types": "mypy ."},
    ),
}


def project_files(texts: dict[str, str]) -> ProjectFiles:
    return ProjectFiles(frozenset(texts), texts)


@pytest.mark.parametrize("name", PROJECTS)
def test_the_files_of_a_project_name_its_checks(name: str) -> None:
    texts, expected = PROJECTS[name]
    commands: dict[str, str] = {}
    for found in find_check_commands(project_files(texts)):
        commands.setdefault(found.check, found.command)
    assert commands == expected


def test_a_project_of_two_kinds_has_commands_of_both() -> None:
    files = project_files({"package.json": '{"scripts": {"test": "jest"}}', "pytest.ini": ""})
    assert find_check_commands(files) == [
        CheckCommand("tests", "npm test", "npm", "package.json", "node"),
        CheckCommand("tests", "pytest -q", "pytest", "pytest.ini", "python"),
    ]


def test_the_program_is_what_has_to_be_there() -> None:
    files = project_files({"pytest.ini": "", "venv/bin/pytest": "", "ruff.toml": "", "poetry.lock": ""})
    assert find_check_commands(files) == [
        CheckCommand("tests", "venv/bin/pytest -q", "venv/bin/pytest", "pytest.ini", "python"),
        CheckCommand("lint", "poetry run ruff check", "poetry", "ruff.toml", "python"),
    ]


def test_files_that_cannot_be_read_are_named() -> None:
    files = project_files(
        {"package.json": '{\n"scripts": {', "pyproject.toml": "a = [\n", "composer.json": "{}"}
    )
    assert unreadable_files(files) == {
        "package.json": "it is not JSON (line 2)",
        "pyproject.toml": "it is not TOML (Invalid value (at end of document))",
    }
