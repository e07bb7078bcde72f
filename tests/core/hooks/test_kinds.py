import math
from typing import Any

import pytest

from turngate.core.hooks.kinds import (
    AgentHook,
    CallbackHook,
    CommandHook,
    Hook,
    HttpHook,
    PromptHook,
    hook_text,
    label,
)


@pytest.mark.req("C-01")
def test_a_timeout_is_in_seconds_and_timeout_ms_in_milliseconds() -> None:
    assert CommandHook("x", timeout_ms=1500) == CommandHook("x", timeout=1.5)


@pytest.mark.req("C-01")
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ({"timeout": 0}, "timeout must be a number of seconds above 0, not 0"),
        ({"timeout": -1}, "timeout must be a number of seconds above 0, not -1"),
        ({"timeout": math.nan}, "timeout must be a number of seconds above 0, not nan"),
        ({"timeout": math.inf}, "timeout must be a number of seconds above 0, not inf"),
        ({"timeout": "5"}, "timeout must be a number of seconds above 0, not '5'"),
        ({"timeout": True}, "timeout must be a number of seconds above 0, not True"),
        ({"timeout": [5]}, "timeout must be a number of seconds above 0, not a list"),
        (
            {"timeout": 10**5000},
            "timeout must be a number of seconds above 0, not a number of more than 60 digits",
        ),
        ({"timeout_ms": 0}, "timeout_ms must be a whole number of milliseconds above 0, not 0"),
        ({"timeout_ms": 1.5}, "timeout_ms must be a whole number of milliseconds above 0, not 1.5"),
        ({"timeout_ms": "5"}, "timeout_ms must be a whole number of milliseconds above 0, not '5'"),
        ({"timeout_ms": True}, "timeout_ms must be a whole number of milliseconds above 0, not True"),
        (
            {"timeout_ms": 10**400},
            "timeout_ms must be a whole number of milliseconds above 0, not a number of more than 60 digits",
        ),
    ],
)
def test_an_invalid_timeout_raises_value_error(limit: Any, said: str) -> None:
    with pytest.raises(ValueError, match="a hook's timeout") as raised:
        CommandHook("x", **limit)
    assert str(raised.value) == f"a hook's {said}"


@pytest.mark.req("C-01")
def test_two_units_of_a_timeout_raise_value_error() -> None:
    with pytest.raises(ValueError, match="give timeout") as raised:
        CommandHook("x", timeout=1, timeout_ms=1000)
    assert str(raised.value) == "give timeout (seconds) or timeout_ms (milliseconds), not both"


def test_every_kind_has_its_name_and_its_words() -> None:
    hooks: list[Hook] = [
        CommandHook("make test"),
        CommandHook("make", args=("-s", "test")),
        PromptHook("done?"),
        AgentHook("look"),
        HttpHook("http://x"),
        CallbackHook(len),
        CallbackHook(len, name="length"),
    ]
    assert [(hook.kind, hook_text(hook)) for hook in hooks] == [
        ("command", "make test"),
        ("command", "make -s test"),
        ("prompt", "done?"),
        ("agent", "look"),
        ("http", "http://x"),
        ("callback", "len"),
        ("callback", "length"),
    ]


def test_a_label_is_one_short_line_and_an_id_comes_first() -> None:
    assert [
        label(CommandHook("a\n  b")),
        label(CommandHook("x" * 100)),
        label(CommandHook("x", id="tests")),
    ] == [
        "a b",
        "x" * 79 + "…",
        "tests",
    ]
