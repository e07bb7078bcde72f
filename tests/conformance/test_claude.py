"""The `claude` dialect against recorded runs of the real Claude Code (2.1.325)."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conformance.cases import CASES, DIFFERENT, LATER, REPLAYED, WAITING
from tests.support.machines import Machine, skip_without_sshd
from tests.support.replay import Case, Stage, recorded, replay

SHOWS: dict[str, tuple[str, ...]] = {
    "three_parallel": ("C-05",),
    "continue_false_block": ("S0-46",),
    "x_env_cap_settings": ("S0-30",),
    "merge_same_command": ("X-14",),
    "dup_command_timeout": ("X-14",),
    "x_dup_timeout_first": ("X-14",),
    "x_dup_if": ("X-14",),
    "ignore_sigterm": ("X-11",),
    "x_timeout_setsid_child": ("X-11",),
    "bg_child_pipes": ("X-11",),
    "bg_child_detached": ("X-11",),
    "invalid_utf8": ("X-12",),
    "sub_matcher_match": ("X-15",),
    "sub_matcher_nomatch": ("X-15",),
}


@pytest.fixture
def stage(
    tmp_path: Path, project: Path, home: Path, state: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> Stage:
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, value)
    return Stage(root=tmp_path, project=project, home=home, state=state)


def cases(names: Iterable[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(CASES[name], id=name, marks=[pytest.mark.req(*SHOWS[name])] if name in SHOWS else [])
            for name in names
        ],
    )


@pytest.mark.req("S0-105")
@cases(REPLAYED)
def test_a_turn_goes_as_it_went_in_claude_code(case: Case, stage: Stage, machine: Machine) -> None:
    if case["name"] == "bg_child_pipes_block":
        skip_without_sshd(machine)
    assert replay(case, stage, machine=machine) == recorded(case)


def _asks_one_child(case: Case) -> bool:
    """Only SubagentStop hooks, and one child that the parent waits for."""
    return (
        case["settings"]["project"]["hooks"].keys() == {"SubagentStop"}
        and "tool" in case["model_script"]["main"][0]
    )


@cases(name for name in LATER["3"] if _asks_one_child(CASES[name]))
def test_a_subagent_is_held_as_it_was_in_claude_code(case: Case, stage: Stage) -> None:
    assert replay(case, stage, agent="sub") == recorded(case, agent="sub")


@cases(DIFFERENT)
def test_where_we_differ_on_purpose_only_that_differs(case: Case, stage: Stage) -> None:
    assert replay(case, stage) == {**recorded(case), **DIFFERENT[case["name"]]}


def test_every_recorded_case_is_replayed_or_waits_for_an_issue_or_differs_on_purpose() -> None:
    listed = [*REPLAYED, *WAITING, *DIFFERENT]
    assert sorted(listed) == sorted(CASES)
    waiting = {issue: len(names) for issue, names in LATER.items()}
    assert (len(REPLAYED), waiting, len(DIFFERENT)) == (
        126,
        {"2": 10, "3": 18, "4": 23, "11": 24},
        2,
    )
