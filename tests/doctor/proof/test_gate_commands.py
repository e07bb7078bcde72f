from pathlib import Path

import pytest

from turngate.doctor.proof.planted_failures import folder_at, gate_text

MAKEFILE = """\
PY := python3
.PHONY: test lint

all: lint
\techo all

test: build
\tpytest -q

lint:
\truff check .
\tmypy

build: test ; echo build
a.o: %.c
\tcc a
"""


@pytest.mark.parametrize(
    ("command", "recipes"),
    [
        ("make test >&2 || exit 2", ["pytest -q", "echo build"]),
        ("make -j2 lint", ["ruff check .", "mypy"]),
        ("make", ["echo all", "ruff check .", "mypy"]),
        ('subprocess.run(["make", "lint"])', ["ruff check .", "mypy"]),
        ("make -s lint V=1 && make test", ["ruff check .", "mypy", "pytest -q", "echo build"]),
        ("make deploy", []),
        ("cmake test", []),
    ],
)
def test_a_makefile_adds_the_recipes_of_the_targets_that_are_made(
    command: str, recipes: list[str], project: Path
) -> None:
    (project / "Makefile").write_text(MAKEFILE)
    assert gate_text(command, [], str(project)).split("\n") == [command, *recipes]


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("npm test", ["vitest run"]),
        ("npm run lint && npm run test", ["eslint .", "vitest run"]),
        ("pnpm check", ["npm run lint && yarn test", "eslint .", "vitest run"]),
        ('spawn("npm", ["run", "lint"])', ["eslint ."]),
        ("npm run loop", ["npm run loop"]),
        ("npm ci", []),
        ("npm run gone", []),
    ],
)
def test_a_package_adds_the_scripts_that_are_run(command: str, scripts: list[str], project: Path) -> None:
    (project / "package.json").write_text(
        '{"scripts": {"test": "vitest run", "lint": "eslint .", "check": "npm run lint && yarn test", '
        '"loop": "npm run loop", "number": 5}}'
    )
    assert gate_text(command, [], str(project)).split("\n") == [command, *scripts]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"scripts": []}', '{"scripts": {"test": ["x"]}}'])
def test_a_package_that_cannot_be_read_adds_nothing(content: str, project: Path) -> None:
    (project / "package.json").write_text(content)
    assert gate_text("npm test", [], str(project)) == "npm test"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("HERE", ""),
        ("cd app && HERE", "app"),
        ("cd ./app/ && HERE", "app"),
        ('cd "$CLAUDE_PROJECT_DIR"/app\nHERE', "app"),
        ("cd ${TURNGATE_PROJECT_DIR:-.} && HERE", ""),
        ('cd "$CLAUDE_PROJECT_DIR/app" || exit 1\nHERE', "app"),
        ("cd app\ncd deep; HERE", "app/deep"),
        ("cd app && true; cd .. && HERE", ""),
        ("HERE; cd app", ""),
        ("cd gone && HERE", ""),
        ("cd ../.. && HERE", ""),
        ('cd "$(git rev-parse --show-toplevel)" && HERE', ""),
        ("cd app && cd /tmp && HERE", ""),
    ],
)
def test_the_folder_in_which_a_part_of_a_gate_runs(text: str, folder: str, project: Path) -> None:
    (project / "app" / "deep").mkdir(parents=True)
    assert folder_at(text, text.index("HERE"), str(project)) == folder


def test_recipes_are_those_of_the_folder(project: Path) -> None:
    (project / "app").mkdir()
    (project / "app" / "Makefile").write_text("test:\n\tpytest\n")
    (project / "Makefile").write_text("test:\n\ttrue\n")
    assert gate_text("cd app && make test", [], str(project)).split("\n") == [
        "cd app && make test",
        "cd $TURNGATE_PROJECT_DIR/app",
        "pytest",
    ]
    assert gate_text("make -C app test", [], str(project)) == "make -C app test"


def test_scripts_are_a_part_of_the_gate(project: Path) -> None:
    (project / "check.sh").write_text("make lint\n")
    (project / "Makefile").write_text(MAKEFILE)
    text = gate_text("./check.sh", [str(project / "check.sh"), str(project / "gone")], str(project))
    assert text.split() == ["./check.sh", "make", "lint", "ruff", "check", ".", "mypy"]
