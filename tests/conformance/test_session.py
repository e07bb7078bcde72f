"""The recorded runs of the real Claude Code (2.1.325) again: whole sessions, and a model on loopback."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.anthropic_server import AnthropicServer, playing
from tests.conformance.replay import (
    Case,
    Stage,
    recorded_command,
    recorded_session,
    replay_command,
    replay_session,
)
from tests.conformance.test_claude import CASES, DIFFERENT, LATER, REPLAYED

IN_A_SESSION = [*REPLAYED, *LATER["2"]]

THROUGH_THE_COMMAND = [
    "exit0_silent",
    "block_reason",
    "exit2_json_on_stderr",
    "continue_false_block",
    "block_forever_exit2",
    "block_then_tool",
    "block_max_turns",
    "api_error_400",
    "settings_malformed",
    "timeout_1",
    "merge_same_command",
    "additional_context_always",
]

SHOWS: dict[str, tuple[str, ...]] = {
    "block_with_tools_between": ("S0-20", "S0-30"),
    "block_then_tool": ("S0-20", "S0-30"),
    "api_error_400": ("X-18",),
}


@pytest.fixture
def stage(
    tmp_path: Path, project: Path, home: Path, state: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> Stage:
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or "ANTHROPIC" in name]:
        monkeypatch.delenv(name)
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, value)
    return Stage(root=tmp_path, project=project, home=home, state=state)


@pytest.fixture
def server(stage: Stage, case: Case, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicServer]:
    """The model of the case, where the client will look for it."""
    with playing(case.get("model_script")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
        yield server


def cases(names: Iterable[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(CASES[name], id=name, marks=[pytest.mark.req(*SHOWS[name])] if name in SHOWS else [])
            for name in names
        ],
    )


@cases(IN_A_SESSION)
def test_a_session_goes_as_it_went_in_claude_code(case: Case, stage: Stage, server: AnthropicServer) -> None:
    assert replay_session(case, stage, server) == recorded_session(case)


@cases(DIFFERENT)
def test_where_we_differ_on_purpose_only_that_differs(
    case: Case, stage: Stage, server: AnthropicServer
) -> None:
    here = {**recorded_session(case), **DIFFERENT[case["name"]]}
    assert replay_session(case, stage, server) == here


@cases(THROUGH_THE_COMMAND)
def test_the_command_goes_as_claude_code_went(case: Case, stage: Stage, server: AnthropicServer) -> None:
    assert replay_command(case, stage, server) == recorded_command(case)


def test_every_case_that_needs_only_a_session_is_replayed_in_one() -> None:
    waiting = [name for issue, names in LATER.items() if issue != "2" for name in names]
    assert sorted([*IN_A_SESSION, *DIFFERENT, *waiting]) == sorted(CASES)
    assert (len(IN_A_SESSION), len(DIFFERENT)) == (112, 1)
