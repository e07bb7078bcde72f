"""A test is slow by where it is and what it needs, and each requirement keeps a test of every day."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.tiers import SAMPLED, SLOW, mark_slow


class Item:
    """The part of a collected test that the rules look at."""

    def __init__(self, nodeid: str, *reqs: str, fixture: str = "home", **params: str) -> None:
        self.nodeid = nodeid
        self.fixturenames = (fixture,)
        self.callspec = SimpleNamespace(params=params)
        self.marks = {"req": [pytest.mark.req(*reqs).mark]}

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return self.marks.get(name, [])

    def add_marker(self, name: str) -> None:
        self.marks[name] = []


def slow_of(*items: Any) -> list[bool]:
    mark_slow(items)
    return ["slow" in item.marks for item in items]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Item("tests/core/test_text.py::test_a"), False),
        (Item("tests/scenarios/test_two_processes.py::test_a"), True),
        (Item("tests/models/test_openai.py::test_a[pydantic-ai]"), True),
        (Item("tests/agent/test_conversation.py::test_a", fixture="own_server"), True),
        (
            Item("tests/test_docs.py::test_what_a_page_shows_is_what_happens[docs/reference/settings.md]"),
            True,
        ),
        (Item("tests/test_docs.py::test_what_a_page_shows_is_what_happens[README.md]"), False),
    ],
)
def test_a_test_is_slow_by_its_place_its_name_and_its_fixtures(item: Item, *, expected: bool) -> None:
    assert slow_of(item) == [expected]


def test_one_in_five_of_the_cases_over_ssh_is_of_every_day() -> None:
    cases = [Item(f"tests/agent/test_tools.py::test_{number}[ssh]", machine="ssh") for number in range(100)]
    assert 10 < slow_of(*cases).count(False) < 30


def test_a_requirement_that_only_slow_tests_show_keeps_the_first_of_them() -> None:
    file = "tests/scenarios/test_two_processes.py"
    items = [
        Item(f"{file}::test_a[ssh]", "C-1", machine="ssh"),
        Item(f"{file}::test_b", "C-1", "C-2"),
        Item(f"{file}::test_c", "C-1", "C-3"),
        Item("tests/core/test_text.py::test_a", "C-3"),
    ]
    assert slow_of(*items) == [True, False, True, False]


@pytest.mark.parametrize("pattern", [each for each in (*SLOW, *SAMPLED) if each.startswith("tests/")])
def test_every_pattern_names_tests_that_exist(pattern: str) -> None:
    file = pattern.partition("::")[0].removesuffix("*")
    assert list(ROOT.glob(f"{file}*"))
