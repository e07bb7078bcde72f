"""The arguments of `turngate fire` that are read without argparse mean what argparse reads in them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turngate.cli.fire_arguments import read_fire_arguments
from turngate.cli.parser import build_parser
from turngate.errors import UsageError

FIXED = {"command": "fire", "version": None}  # set by the parser of all commands
OPTIONS = ["--trust", "--strict", "--json", "--project", "--dialect", "--input", "--settings", "--plugin-dir"]
WORDS = st.sampled_from(OPTIONS) | st.sampled_from(
    ["mux", "claude", "-", "--", "", ".", "{}", "-x", "-1", "--proj", "--project=.", "Stop", "stop", "a b"]
)


@pytest.mark.parametrize(
    "words",
    [
        ["Stop"],
        ["SubagentStop", "--trust"],
        ["Stop", "--strict", "--json", "--dialect", "claude"],
        ["PreToolUse", "--input", "-", "--project", "a b", "--project", ".."],
        ["Stop", "--input", '{"cwd": "/"}'],
    ],
)
def test_usual_arguments_are_read_without_argparse(words: list[str]) -> None:
    options = read_fire_arguments(["fire", *words])
    assert options is not None
    assert {**FIXED, **vars(options)} == vars(build_parser(["fire"]).parse_args(["fire", *words]))


@given(event=st.sampled_from(["Stop", "SubagentStop", "stop", "Unknown"]), words=st.lists(WORDS, max_size=5))
@example(event="Stop", words=["--project", "--trust"])
@example(event="Stop", words=["--input", ""])
def test_arguments_that_argparse_rejects_or_reads_otherwise_are_left_to_it(
    event: str, words: list[str]
) -> None:
    argv = ["fire", event, *words]
    options = read_fire_arguments(argv)
    try:
        parsed = vars(build_parser(argv).parse_args(argv))
    except UsageError:
        assert options is None
    else:
        assert options is None or {**FIXED, **vars(options)} == parsed


@pytest.mark.parametrize("argv", [[], ["fire"], ["check"], ["fire", "--help"], ["fire", "Stop", "-h"]])
def test_other_commands_and_help_are_left_to_argparse(argv: list[str]) -> None:
    assert read_fire_arguments(argv) is None
