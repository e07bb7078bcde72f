"""The recorded runs of the real Claude Code (2.1.325) again: whole sessions, and a model on loopback."""

import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.conformance.cases import CASES, DIFFERENT, LATER, REPLAYED
from tests.support.replay import (
    Case,
    Stage,
    as_child,
    model_script,
    recorded_command,
    recorded_session,
    replay_command,
    replay_session,
    who_asks,
)
from tests.support.servers.anthropic import AnthropicServer, serve_script
from tests.support.servers.http import serve_answers

IN_A_SESSION = [*REPLAYED, *LATER["2"], *LATER["3"], *LATER["4"], *LATER["11"]]

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
    "sub_exit0",
    "sub_exit2",
    "sub_block_forever_cap2",
    "sub_context",
    "sub_background",
    "sub_two_parallel",
    "prompt_not_ok_noreason",
    "prompt_and_command",
    "agent_not_ok",
    "agent_text",
    "http_block",
    "http_500",
]

# What a hook may say and how it is counted, once more at a child's stop.
ALSO_FOR_CHILDREN = [
    "exit0_text",
    "block_reason",
    "block_no_reason",
    "decision_allow",
    "block_forever_exit2",
    "block_forever_cap0",
    "block_forever_cap1",
    "block_with_tools_between",
    "block_then_tool",
    "continue_false_noreason",
    "continue_false_block",
    "continue_true_block",
    "continue_string",
    "system_message_block",
    "additional_context_always",
    "additional_context_wrong_event",
    "json_unknown_keys_block",
    "json_invalid",
    "json_truncated",
    "json_bom",
    "invalid_utf8",
    "exit2_empty",
    "exit2_stdout_only",
    "exit2_json_stdout_stderr",
    "exit1_empty",
    "exit1_block_json",
    "exit1_continue_false_json",
    "killed_sigkill",
    "missing_command",
    "approve_plus_block",
    "stop_active_alternating",
    "timeout_half",
    "empty_answer",
    "x_exit2_bad_schema",
    "x_block_reason_null",
    "x_two_texts",
]

SHOWS: dict[str, tuple[str, ...]] = {
    "block_with_tools_between": ("S0-20", "S0-30"),
    "block_then_tool": ("S0-20", "S0-30"),
    "api_error_400": ("X-18",),
    "sub_exit2": ("S3-37", "C-17"),
    "sub_block_forever": ("S3-37",),
    "sub_matcher_match": ("X-15",),
    "sub_matcher_nomatch": ("X-15",),
    "prompt_not_ok_forever": ("S2-01", "S3-33"),
    "prompt_impossible": ("X-38",),
    "prompt_timeout": ("S2-17", "S2-19"),
    "agent_timeout": ("S2-19",),
}


@pytest.fixture
def stage(
    tmp_path: Path, project: Path, home: Path, state: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    for name in [name for name in os.environ if name.lower().endswith("_proxy") or "ANTHROPIC" in name]:
        monkeypatch.delenv(name)
    for name, value in case.get("env", {}).items():
        monkeypatch.setenv(name, value)
    with serve_answers(*case["http"]) if "http" in case else nullcontext() as endpoint:
        yield Stage(root=tmp_path, project=project, home=home, state=state, endpoint=endpoint)


@pytest.fixture
def server(stage: Stage, case: Case, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicServer]:
    """The model of the case, where the client will look for it."""
    with serve_script(model_script(case, stage), who_asks) as server:
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


OLD_MODEL = pytest.mark.filterwarnings(
    "ignore:The model 'claude-sonnet-4-5' is deprecated:DeprecationWarning"
)


@OLD_MODEL
@cases(IN_A_SESSION)
def test_a_session_goes_as_it_went_in_claude_code(case: Case, stage: Stage, server: AnthropicServer) -> None:
    assert replay_session(case, stage, server) == recorded_session(case)


# One case of each kind of request: what a session is told and does does not depend on the client.
THROUGH_PYDANTIC_AI = [
    "exit0_silent",
    "block_reason",
    "block_then_tool",
    "block_with_tools_between",
    "additional_context_always",
    "continue_false_block",
    "api_error_400",
    "empty_answer",
    "sub_exit2",
    "sub_two_parallel",
    "prompt_not_ok_noreason",
    "agent_not_ok",
]


@OLD_MODEL
@cases(THROUGH_PYDANTIC_AI)
def test_a_session_goes_as_it_went_in_claude_code_also_through_pydantic_ai(
    case: Case, stage: Stage, server: AnthropicServer
) -> None:
    model = "pydantic-ai:anthropic:claude-sonnet-5-5"
    assert replay_session(case, stage, server, model) == recorded_session(case)


ANSWERS = {"sandbox_bad": {"answer": "answer 9"}}


@cases(DIFFERENT)
def test_where_we_differ_on_purpose_only_that_differs(
    case: Case, stage: Stage, server: AnthropicServer
) -> None:
    here = {**recorded_session(case), **DIFFERENT[case["name"]], **ANSWERS.get(case["name"], {})}
    assert replay_session(case, stage, server) == here


@cases(THROUGH_THE_COMMAND)
def test_the_command_goes_as_claude_code_went(case: Case, stage: Stage, server: AnthropicServer) -> None:
    assert replay_command(case, stage, server) == recorded_command(case)


@pytest.mark.req("S3-37")
@pytest.mark.parametrize("case", [pytest.param(as_child(CASES[name]), id=name) for name in ALSO_FOR_CHILDREN])
def test_a_subagents_stop_goes_as_the_main_agents_went(
    case: Case, stage: Stage, server: AnthropicServer
) -> None:
    assert replay_session(case, stage, server) == recorded_session(case)


WHO_IS_ASKED = {
    "prompt_ok_string": "claude-sonnet-5-5",  # the address is not Anthropic's own, so only the session's is known there
    "prompt_model": "claude-sonnet-4-5",
    "prompt_model_alias": "sonnet",
    "prompt_small_fast_env": "my-small-model",
    "prompt_haiku_env": "my-haiku-model",
}


@OLD_MODEL
@pytest.mark.req("S3-29")
@cases(WHO_IS_ASKED)
def test_a_prompt_hook_asks_the_model_that_claude_code_asked(
    case: Case, stage: Stage, server: AnthropicServer
) -> None:
    replay_session(case, stage, server)
    asked = [body["model"] for body, who in zip(server.requests, server.agents, strict=True) if who == "hook"]
    assert asked == [WHO_IS_ASKED[case["name"]]]


def test_every_case_that_needs_only_a_session_is_replayed_in_one() -> None:
    assert sorted([*IN_A_SESSION, *DIFFERENT]) == sorted(CASES)
    assert (len(IN_A_SESSION), len(DIFFERENT)) == (201, 2)
