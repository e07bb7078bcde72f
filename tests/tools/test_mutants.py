"""The runner of mutants tells a killed mutant from a survivor and from a stale row."""

from pathlib import Path

import pytest
from tools.mutants import Mutant, Tree, main, read_tables, select

from tests.support.paths import ROOT


def test_every_row_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in read_tables(ROOT)]
    assert (len(set(names)), [name for name in names if name.endswith("/")]) == (len(names), [])


EXAMPLE = """\
import sys


def limit(number: int) -> int:
    return number + 1


sys.exit(limit(3))
"""

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


def test_example() -> None:
    assert subprocess.run([sys.executable, "examples/sample.py"]).returncode == 4
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
function = "{}"
old = "{}"
new = "{}"
{}
"""

KILLED = 'tests = ["test_double_in_another_process"]'
ROWS = [
    ("killed", "double", "number * 2", "number * 3", KILLED),
    ("killed-by-req", "thing:double", "number * 2", "number ** 2 - 1", 'req = "S0-01"'),
    ("survivor", "limit", "min(number, 10)", "number", 'tests = ["test_limit"]'),
    ("stale", "limit", "max(number, 10)", "number", 'tests = ["test_limit"]'),
    ("no-such-function", "halve", "number * 2", "number", KILLED),
    ("two-functions", "size", "1", "2", KILLED),
    ("no-such-test", "limit", "min(number, 10)", "0", 'tests = ["test_limits"]'),
    ("in-an-example", "sample:limit", "number + 1", "number", 'tests = ["test_example"]'),
    ("red-before", "double", "number * 2", "number", 'tests = ["test_broken"]'),
    ("not-python", "double", "number * 2", "number *", 'tests = ["test_limit"]'),
    (
        "hangs",
        "wait",
        "range(3)",
        "iter(int, 1)",
        'tests = ["test_wait"]\ntimeout = 2\ntimeout_kills = true',
    ),
]


def small_tree(folder: Path) -> Path:
    files = {
        "src/thing.py": SOURCE,
        "examples/sample.py": EXAMPLE,
        "src/one/size.py": "size = 1\n",
        "src/two/size.py": "size = 1\n",
        "tests/test_thing.py": TESTS,
        "tests/conftest.py": CONFTEST,
        "tests/mutants/small.toml": "".join(ROW.format(*row) for row in ROWS),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


EXPECTED = """\
ERROR     small/stale  (its `old` text occurs 0 times in limit, expected once)
ERROR     small/no-such-function  (there is no halve)
ERROR     small/two-functions  (size is in src/one/size.py, src/two/size.py; put the module before a colon)
ERROR     small/no-such-test  (there is no test_limits)
ERROR     small/red-before  (tests/test_thing.py::test_broken fails without the mutation)
killed    small/killed
killed    small/killed-by-req
SURVIVED  small/survivor  (tests/test_thing.py::test_limit; exit code 0 of pytest)
killed    small/in-an-example
ERROR     small/not-python  (its tests cannot be run: SyntaxError: invalid syntax)
killed    small/hangs  (no end after 2 s)
11 mutants: 4 killed, 1 survived, 6 errors
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
        Mutant(name=name, function="", old="", new="")
        for name in ("core/plan-a", "core/verdict", "cli/plan-b")
    ]
    chosen = {only: [row.name for row in select(rows, only)] for only in ("", "core", "plan-b, verdict")}
    assert chosen == {
        "": ["core/plan-a", "core/verdict", "cli/plan-b"],
        "core": ["core/plan-a", "core/verdict"],
        "plan-b, verdict": ["core/verdict", "cli/plan-b"],
    }


def test_a_marker_in_a_table_of_the_support_modules_is_searched_for_in_all_tests(tmp_path: Path) -> None:
    (tmp_path / "tests/support").mkdir(parents=True)
    (tmp_path / "tests/support/cases.py").write_text('CASES = {"S0-89": ["echo"]}\n')
    (tmp_path / "tests/test_a.py").write_text('@pytest.mark.req("S0-88", "S0-89")\ndef test_a(): ...\n')
    tree = Tree(tmp_path)
    words = [tree.words_of(req) for req in ("S0-88", "S0-89", "S0-90")]
    assert words == [("-x", "--req", "S0-88", "tests/test_a.py"), ("-x", "--req", "S0-89", "tests"), ()]
