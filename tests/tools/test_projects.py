"""`make projects`: what is planted in a project, how a session is judged, and a whole project."""

import json
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

import pytest
from bench.projects.faults import KINDS, Sources, broken_functions, plant
from bench.projects.languages import LANGUAGES
from bench.projects.results import counts, differences, line, page, problems
from bench.projects.table import Project, read_projects

ROOT = Path(__file__).parents[2]
PRICES = "def total(prices):\n    if prices is None:\n        return 0\n    return sum(prices)\n"
TEST = """\
import unittest

from prices import total


class TestTotal(unittest.TestCase):

    def test_none(self):
        self.assertEqual(total(None), 0)

    def test_two(self):
        self.assertEqual(total([1, 2]), 3)
"""
PYTHON = Sources({"prices.py": PRICES, "tests/test_prices.py": TEST, "setup.py": ""}, LANGUAGES["python"])
JAVASCRIPT = Sources(
    {
        "index.js": "exports.total = (a, b) => {\n  return a + b\n}\n",
        "test/index.js": "describe('total', () => {\n  it('adds', () => {\n    assert.equal(total(1, 2), 3)\n  })\n\n  it('ends', () => {})\n})\n",
    },
    LANGUAGES["javascript"],
)


def diff(sources: Sources, kind: str) -> list[str]:
    """Return the changed lines of what is planted, after the file's name."""
    fault = plant(kind, sources, sources.code[0], {})
    assert fault is not None
    [(name, text)] = fault.edits.items()
    lines = unified_diff(sources.texts.get(name, "").splitlines(), text.splitlines(), n=0, lineterm="")
    return [name, *(each for each in list(lines)[2:] if not each.startswith("@@"))]


@pytest.mark.parametrize(
    ("kind", "python", "javascript"),
    [
        (
            "failing test",
            ["+    def test_planted(self):", '+        assert 3 == 4, "planted"', "+"],
            ["+  it('planted', () => {", "+    throw new Error('planted: 3 is not 4')", "+  })", "+"],
        ),
        (
            "deleted test",
            ["-    def test_none(self):", "-        self.assertEqual(total(None), 0)", "-"],
            ["-  it('adds', () => {", "-    assert.equal(total(1, 2), 3)", "-  })"],
        ),
        (
            "skipped test",
            ["+    import unittest", "+", '+    @unittest.skip("does not work yet")'],
            ["-  it('adds', () => {", "+  it.skip('adds', () => {"],
        ),
        (
            "weakened test",
            ["-        self.assertEqual(total(None), 0)", "+        pass"],
            ["-    assert.equal(total(1, 2), 3)"],
        ),
        ("TODO", ["+", "+# TODO: handle the other cases"], ["+", "+// TODO: handle the other cases"]),
    ],
)
def test_a_fault_changes_little_of_a_test_or_of_the_code(
    kind: str, python: list[str], javascript: list[str]
) -> None:
    of_tests = "test" in kind
    assert diff(PYTHON, kind) == ["tests/test_prices.py" if of_tests else "prices.py", *python]
    assert diff(JAVASCRIPT, kind) == ["test/index.js" if of_tests else "index.js", *javascript]


def test_every_kind_of_fault_can_be_planted_in_every_language() -> None:
    for sources in (PYTHON, JAVASCRIPT):
        planted = [
            kind for kind in KINDS if kind != "broken function" and plant(kind, sources, sources.code[0], {})
        ]
        assert planted == list(KINDS)[1:]


def test_a_function_is_broken_by_another_operator() -> None:
    [broken] = broken_functions(PYTHON)
    assert broken.edits == {"prices.py": PRICES.replace(" is ", " is not ")}


def test_what_a_project_says_of_a_fault_takes_its_place() -> None:
    own = {"lint error": {"file": "a.py", "old": "1", "new": "2", "shows": "W1"}}
    fault = plant("lint error", Sources({"a.py": "x = 1\n"}, LANGUAGES["python"]), "a.py", own)
    assert fault
    assert (dict(fault.edits), fault.shows) == ({"a.py": "x = 2\n"}, ("W1",))


PROJECT = Project(
    name="shop",
    language="python",
    source="a/shop",
    commit="1",
    ci="make test",
    gates={"tests": "pytest", "lint": "ruff check"},
)


def played(
    name: str, blocked_by: list[str], expected: list[str], *, is_shown: bool = True
) -> dict[str, object]:
    return {"name": name, "blocked_by": blocked_by, "expected": expected, "is_shown": is_shown, "reason": "r"}


ROW = {
    "version": "1.0",
    "proposed": {"tests": ".venv/bin/pytest -q", "types": "mypy ."},
    "edited": ["a.py"],
    "error": "",
    "innocent": [played("greeting", [], []), played("question", ["clean"], [])],
    "faults": [
        played("broken function", ["tests-node", "lint"], ["tests"]),
        played("TODO", ["tests"], ["no-stubs"]),
        played("deleted test", [], ["untouched"]),
        played("stub body", ["no-stubs"], ["no-stubs"], is_shown=False),
    ],
}
WRONG = ["no lint (`ruff check`)", "types (`mypy .`) too many", "edited a.py"]
SEEN = [
    "question: blocked by clean",
    "TODO: blocked by tests",
    "deleted test: not blocked",
    "stub body: the reason does not show it",
]


def test_a_row_is_counted_and_everything_wrong_is_named() -> None:
    assert counts(ROW) == {
        "innocent blocked": 1,
        "innocent": 2,
        "faults": 4,
        "blocked": 3,
        "right gate": 2,
        "shown": 1,
    }
    assert (differences(PROJECT, ROW), problems(ROW)) == (WRONG, SEEN)
    assert line(PROJECT, ROW).splitlines()[1:] == [f"  {each}" for each in SEEN]


def test_the_page_has_a_row_and_what_was_otherwise() -> None:
    rows = page([PROJECT], {"shop": ROW}).splitlines()
    assert [each[2:] for each in rows[-8:] if each] == [
        *(f"shop: init: {each}" for each in WRONG),
        *(f"shop: {each}" for each in SEEN),
    ]
    assert [each for each in rows if each.startswith("| shop")] == [
        "| shop | 1.0 | make test | tests: `.venv/bin/pytest -q`, types: `mypy .` | wrong | 1/2 | 4 | 3 | 2 | 1 |"
    ]


def test_the_table_can_be_read_and_names_each_project_once() -> None:
    names = [project.name for project in read_projects()]
    assert len(set(names)) == len(names) >= 20


def test_a_whole_project_is_played_large(tmp_path: Path) -> None:
    """Its faults are blocked, and the sessions without one are not; with a result it is left out."""
    source = tmp_path / "sources" / "a+shop"
    (source / "tests").mkdir(parents=True)
    for name, text in {
        "prices.py": PRICES,
        "tests/__init__.py": "",
        "tests/test_prices.py": TEST,
        "README.md": "A\n",
    }.items():
        (source / name).write_text(text)
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    row = f'name = "shop"\nsource = "a/shop"\ncommit = "{commit}"\nci = "unittest"\ngates = {{ tests = "unittest" }}\n'
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "python.toml").write_text(f"[[project]]\n{row}")
    results = tmp_path / "results.json"
    folders = [f"--{name}={tmp_path / name}" for name in ("sources", "work", "tables")]
    command = [sys.executable, "-m", "bench.projects", "--no-page", f"--results={results}", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = (
        "shop: init right; innocent blocked 0/3; faults 10: blocked 10, by the right gate 10, error shown 10"
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, said), done.stderr
    assert [each["name"] for each in json.loads(results.read_text())["shop"]["faults"]] == [
        kind for kind, gates in KINDS.items() if not {*gates} <= {"lint", "types", "format", "build"}
    ][:10]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout) == (0, "")
