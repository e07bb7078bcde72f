"""The cases of the gate `dependencies`. It runs no command of the user."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.gates import GateCase, blocked
from tests.support.git_projects import files, repository, steps
from tests.support.transcripts import talk

WORDS = ("dependencies",)
PYPROJECT = '[project]\nname = "x"\nversion = "1"\ndependencies = [{}]\n'
BEFORE = {
    "package.json": json.dumps({"name": "x", "version": "1.0.0", "dependencies": {"react": "18"}}, indent=1),
    "pyproject.toml": PYPROJECT.format('"httpx>=0.27"'),
    "requirements.txt": "flask==3.0  # web\n",
    "go.mod": "module x\n\nrequire (\n\tgithub.com/a/b v1.0.0\n)\n",
}
START = steps(repository(BEFORE))


def after(prompt: str, contents: Mapping[str, str]) -> Callable[[Path], Mapping[str, Any]]:
    def says(project: Path) -> None:
        talk().user(prompt).says("Done.").write(project.parent / "transcript.jsonl")

    return steps(files(contents), says)


def found(*findings: str) -> dict[str, str]:
    listed = "\n".join(f"- {each}" for each in findings)
    return blocked(
        f"the user has not asked for these dependencies:\n{listed}\nUndo these changes, or ask the user first."
    )


PACKAGE = json.dumps({"name": "x", "version": "1.0.0", "dependencies": {"react": "19", "left-pad": "1"}})
CASES = [
    GateCase(
        "failed: in all manifests",
        WORDS,
        after(
            "Show the dates in local time.",
            {
                "package.json": PACKAGE,
                "pyproject.toml": PYPROJECT.format('"httpx>=0.27", "arrow"'),
                "requirements.txt": "# none\n",
                "go.mod": BEFORE["go.mod"].replace("\n)", "\n\tgithub.com/c/d v0.1.0\n)"),
                "Cargo.toml": '[dependencies]\nserde = "1"\n[dev-dependencies.rstest]\nversion = "0.2"\n',
            },
        ),
        found(
            "Cargo.toml: rstest was added",
            "Cargo.toml: serde was added",
            "go.mod: github.com/c/d was added",
            "package.json: left-pad was added",
            "package.json: react has another version",
            "pyproject.toml: arrow was added",
            "requirements.txt: flask was removed",
        ),
        START,
    ),
    GateCase(
        "passed: the rest of a manifest",
        WORDS,
        after(
            "Release it.",
            {
                "package.json": BEFORE["package.json"].replace("1.0.0", "1.1.0"),
                "pyproject.toml": BEFORE["pyproject.toml"].replace('version = "1"', 'version = "2"'),
                "requirements.txt": "# the web\nflask==3.0\n",
            },
        ),
        {},
        START,
    ),
    GateCase(
        "passed: the user has named it",
        WORDS,
        after("Use Arrow for the dates.", {"pyproject.toml": PYPROJECT.format('"httpx>=0.27", "arrow"')}),
        {},
        START,
    ),
    GateCase(
        "passed: the user speaks of dependencies",
        WORDS,
        after("Upgrade what is old.", {"package.json": PACKAGE}),
        {},
        START,
    ),
    GateCase(
        "failed: the user does not want any",
        WORDS,
        after(
            "Format the dates without new dependencies. Do not use arrow, only the standard library.",
            {"pyproject.toml": PYPROJECT.format('"httpx>=0.27", "arrow"')},
        ),
        found("pyproject.toml: arrow was added"),
        START,
    ),
    GateCase(
        "passed: a manifest that is not valid, and one that is the input of a test",
        WORDS,
        after("Go on.", {"x/package.json": "{", "tests/fixtures/package.json": PACKAGE}),
        {},
        START,
    ),
]
