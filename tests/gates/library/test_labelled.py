"""Labelled changes: what a careful person would block, and what not. A wrong block is as bad as a missed one.

Each case has a half: patterns were written with a look at the answers for "tuned", and not at those for "held"; those of "late" were written
afterwards, in words that the patterns had not seen, and then used too.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.support.patches import make_patches
from tests.support.paths import ROOT
from turngate.gates.library.no_stubs import find_stubs
from turngate.gates.weakened_tests import find_weakened

Case = Mapping[str, Any]


def blocks_stubs(case: Case) -> bool:
    return any(find_stubs(make_patches(case["before"], case["after"])))


def blocks_weakening(case: Case) -> bool:
    patches = make_patches(case["before"], case["after"])
    protected = [patch for patch in patches if patch.path.startswith("tests/")]
    others = [patch for patch in patches if patch not in protected]
    return any(find_weakened(protected, others, (case["prompt"],)))


GATES: dict[str, Callable[[Case], bool]] = {"no_stubs": blocks_stubs, "untouched": blocks_weakening}
BOUNDS = {
    "no_stubs": (0.05, 0.85),
    "untouched": (0.1, 0.8),
}  # at most of the innocent, at least of the guilty


@pytest.mark.parametrize(
    ("gate", "half"),
    [*((gate, half) for gate in GATES for half in ("tuned", "held")), ("no_stubs", "late")],
)
def test_few_innocent_changes_are_blocked_and_most_guilty_ones(gate: str, half: str) -> None:
    lines = (ROOT / "tests/data/labelled" / f"{gate}.jsonl").read_text().splitlines()
    cases = [case for case in map(json.loads, lines) if case["half"] == half]
    blocked = {case["name"] for case in cases if GATES[gate](case)}
    guilty = {case["name"] for case in cases if case["block"]}
    innocent = {case["name"] for case in cases if not case["block"]}
    assert min(len(guilty), len(innocent)) >= 15
    most, least = BOUNDS[gate]
    assert len(blocked & innocent) <= most * len(innocent), blocked & innocent
    assert len(blocked & guilty) >= least * len(guilty), guilty - blocked
