import math
from typing import Any

import pytest

from turngate.core.hooks import (
    AgentHook,
    CallbackHook,
    CommandHook,
    Hook,
    HttpHook,
    PromptHook,
    kind,
    label,
    text_of,
)


@pytest.mark.req("C-01")
def test_a_timeout_is_in_seconds_and_timeout_ms_in_milliseconds() -> None:
    assert CommandHook("x", timeout_ms=1500) == CommandHook("x", timeout=1.5)


@pytest.mark.req("C-01")
@pytest.mark.parametrize("seconds", [0, -1, math.nan])
def test_a_timeout_that_is_not_above_zero_is_the_callers_fault(seconds: Any) -> None:
    with pytest.raises(ValueError, match="a hook's timeout must be more than 0 seconds"):
        CommandHook("x", timeout=seconds)


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
    assert [(kind(hook), text_of(hook)) for hook in hooks] == [
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
