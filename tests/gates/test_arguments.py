"""The words of `turngate gate`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.core.hooks.kinds import CommandHook
from turngate.errors import UsageError
from turngate.gates.arguments import GateArguments, parse_gate_words
from turngate.gates.library import GATES

NO_OPTIONS = {
    "if-changed": (),
    "always": False,
    "all-failures": False,
    "baseline": False,
    "reason-chars": 2500,
    "firm": False,
}


@pytest.mark.parametrize(
    ("words", "options", "command"),
    [
        (["--", "pytest", "-q"], {}, CommandHook(command="pytest", args=("-q",))),
        (["--", "npm test && npm run lint"], {}, CommandHook(command="npm test && npm run lint")),
        (["--", "a|b"], {}, CommandHook(command="a|b")),
        (["--", "./check"], {}, CommandHook(command="./check", args=())),
        (
            ["--if-changed", "src/**", "tests/**", "--", "true"],
            {"if-changed": ("src/**", "tests/**")},
            CommandHook(command="true", args=()),
        ),
        (
            ["command", "--if-changed=a", "--if-changed", "b", "c", "--baseline", "--", "true", "--", "x"],
            {"if-changed": ("a", "b", "c"), "baseline": True},
            CommandHook(command="true", args=("--", "x")),
        ),
    ],
)
def test_options_and_the_command_are_read(
    words: list[str], options: dict[str, Any], command: CommandHook
) -> None:
    expected = GateArguments(GATES["command"], {**NO_OPTIONS, **options}, command)
    assert parse_gate_words(words) == expected


def test_the_options_of_every_gate_are_read() -> None:
    words = ["tests", "--strict", "--timeout", "2.5", "--exit-code", "--project", "shop"]
    assert parse_gate_words(words) == GateArguments(
        GATES["tests"],
        {**NO_OPTIONS, "related": False},
        strict=True,
        timeout=2.5,
        exit_code=True,
        project="shop",
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["test"], "'test' is not a gate; did you mean tests?"),
        (
            ["tests", "--if-chnged", "x"],
            "the gate tests has no option --if-chnged; did you mean --if-changed?",
        ),
        (["tests", "-q"], "the gate tests has no option -q"),
        (["tests", "src"], "the gate tests does not take 'src'; a command follows after --"),
        (["tests", "--timeout", "0"], "--timeout must be a number of seconds above 0"),
        (["tests", "--timeout", "soon"], "--timeout must be a number, not 'soon'"),
        (["tests", "--strict=yes"], "--strict takes no value"),
        (["tests", "--if-changed"], "--if-changed needs a value"),
    ],
)
def test_a_mistake_is_named(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_gate_words(words)
    assert str(raised.value) == message


WORDS = st.one_of(
    st.text(max_size=5),
    st.sampled_from([*GATES, "--", "--strict", "--timeout", "--if-changed", "1", "nan", "--project", "--x="]),
)


@given(st.lists(WORDS, max_size=6))
def test_any_words_are_arguments_or_wrong_usage(words: list[str]) -> None:
    try:
        arguments = parse_gate_words(words)
    except UsageError:
        return
    assert arguments.gate.name in GATES
