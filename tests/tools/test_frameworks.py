"""The page with the results of `make frameworks` has every case of the suite, and none that fails."""

import ast
import re

from tools import frameworks

from tests.adapters import test_stop_gates as suite
from tests.support.paths import ROOT


def test_the_page_has_every_case_and_none_failed() -> None:
    tree = ast.parse((ROOT / frameworks.SUITE).read_text())
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    cases = [each.name for each in functions if "framework" in {each.arg for each in each.args.args}]
    rows = re.findall(
        r"^\| (.+?) \| (.+) \|$", frameworks.PAGE.read_text().partition("| case |")[2], re.MULTILINE
    )
    written = sorted(
        name.removeprefix("test_").replace("_", " ") for name in cases if name.startswith("test_")
    )
    assert [name for name, _ in rows] == written, "run `make frameworks`"
    assert {cell for _, cells in rows for cell in cells.split(" | ") if not cell.isdigit()} == {"passes"}


def test_the_tool_runs_every_framework_of_the_suite() -> None:
    assert [*frameworks.FRAMEWORKS] == [*suite.FRAMEWORKS]


def test_each_framework_has_an_extra_with_a_lower_bound() -> None:
    requirements = [frameworks.requirement_of(extra) for extra, _ in frameworks.FRAMEWORKS.values()]
    assert [
        each for each in requirements if not re.fullmatch(r"[\w-]+(?:\[.*\])?>=[\d.]+,<[\d.]+", each)
    ] == []
