"""What of an environment a process can be given."""

import pytest

from turngate.runners.command import MAX_ENVIRONMENT_BYTES, MAX_VARIABLE_BYTES, sanitize_env

PLAIN = {"PATH": "/bin", "EMPTY": "", "LANG": "C"}


@pytest.mark.parametrize(
    "bad",
    [
        {"NUL": "a\0b"},
        {"N\0L": "a"},
        {"a=b": "c"},
        {"": "nameless"},
        {"HALF": "\ud800"},
        {"LONG": "x" * MAX_VARIABLE_BYTES},
        {"WIDE": "\u00e9" * (MAX_VARIABLE_BYTES // 2)},
    ],
)
def test_one_bad_variable_is_left_out_and_the_others_are_passed(bad: dict[str, str]) -> None:
    assert (sanitize_env({**PLAIN, **bad}), sanitize_env({**bad, **PLAIN}), sanitize_env(PLAIN)) == (
        PLAIN,
        PLAIN,
        PLAIN,
    )


def test_where_the_room_is_short_the_later_variables_come_first() -> None:
    many = {f"V{number}": "x" * (MAX_VARIABLE_BYTES - 100) for number in range(15)}
    kept = sanitize_env(many)
    assert (list(kept), len(kept) * MAX_VARIABLE_BYTES) == (
        [f"V{number}" for number in range(14, 4, -1)],
        MAX_ENVIRONMENT_BYTES,
    )
