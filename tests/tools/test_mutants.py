"""The runner of mutants tells a killed mutant from a survivor and from a stale row."""

from pathlib import Path

import pytest
from tools.mutants import Mutant, main, read_tables, select

from tests.support.paths import ROOT


def test_every_row_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in read_tables(ROOT)]
    assert (len(set(names)), [name for name in names if name.endswith("/")]) == (len(names), [])


SOURCE = """\
def double(number: int) -> int:
    return number * 2


def limit(number: int) -> int:
    return min(number, 10)


def wait() -> None:
    for _ in range(3):
        pass
"""

TESTS = """\
import subprocess
import sys

import pytest
from thing import double, limit, wait


@pytest.mark.req("S0-01")
def test_double_in_another_process() -> None:
    code = "import thing; print(thing.double(4))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={})
    assert done.stdout == "8\\n"


def test_limit() -> None:
    assert limit(3) == 3


def test_wait() -> None:
    wait()


def test_broken() -> None:
    assert double(1) == 3
"""

CONFTEST = """\
def pytest_addoption(parser):
    parser.addoption("--req")


def pytest_configure(config):
    config.addinivalue_line("markers", "req(*ids)")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--req"):
        items[:] = [item for item in items if item.get_closest_marker("req")]
"""

ROW = """
[[mutant]]
name = "{}"
file = "src/thing.py"
old = "{}"
new = "{}"
{}
"""

ROWS = [
    ("killed", "number * 2", "number * 3", 'tests = ["tests/test_thing.py::test_double_in_another_process"]'),
    ("killed-by-req", "number * 2", "number ** 2 - 1", 'req = "S0-01"'),
    ("survivor", "min(number, 10)", "number", 'tests = ["tests/test_thing.py::test_limit"]'),
    ("stale", "max(number, 10)", "number", 'tests = ["tests/test_thing.py::test_limit"]'),
    ("no-such-test", "min(number, 10)", "0", 'tests = ["tests/test_thing.py::test_limits"]'),
    ("red-before", "number * 2", "number", 'tests = ["tests/test_thing.py::test_broken"]'),
    ("not-python", "number * 2", "number *", 'tests = ["tests/test_thing.py::test_limit"]'),
    (
        "hangs",
        "range(3)",
        "iter(int, 1)",
        'tests = ["tests/test_thing.py::test_wait"]\ntimeout = 2\ntimeout_kills = true',
    ),
]


def small_tree(folder: Path) -> Path:
    files = {
        "src/thing.py": SOURCE,
        "tests/test_thing.py": TESTS,
        "tests/conftest.py": CONFTEST,
        "tests/mutants/small.toml": "".join(ROW.format(*row) for row in ROWS),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


EXPECTED = """\
ERROR     small/stale  (its `old` text occurs 0 times in src/thing.py, expected once)
ERROR     small/no-such-test  (there is no test tests/test_thing.py::test_limits)
ERROR     small/red-before  (tests/test_thing.py::test_broken fails without the mutation)
killed    small/killed
killed    small/killed-by-req
SURVIVED  small/survivor  (tests/test_thing.py::test_limit; exit code 0 of pytest)
ERROR     small/not-python  (its tests cannot be run: SyntaxError: invalid syntax)
killed    small/hangs  (no end after 2 s)
8 mutants: 3 killed, 1 survived, 4 errors
"""


def test_the_runner_tells_killed_survived_and_wrong_rows_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its runs of pytest need xdist only; to load all plugins takes most of the time of a run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    root = small_tree(tmp_path / "tree")
    code = main(["--root", str(root), "--workers", "2"])
    assert (code, capsys.readouterr().out) == (1, EXPECTED)
    assert (root / "src/thing.py").read_text() == SOURCE


def test_rows_can_be_chosen_by_table_and_by_name() -> None:
    rows = [
        Mutant(name=name, file="", old="", new="") for name in ("core/plan-a", "core/verdict", "cli/plan-b")
    ]
    chosen = {only: [row.name for row in select(rows, only)] for only in ("", "core", "plan-b, verdict")}
    assert chosen == {
        "": ["core/plan-a", "core/verdict", "cli/plan-b"],
        "core": ["core/plan-a", "core/verdict"],
        "plan-b, verdict": ["core/verdict", "cli/plan-b"],
    }
