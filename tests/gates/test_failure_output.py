"""The useful part of the output of failed checks, and the names of failures."""

import pytest

from turngate.gates.failure_output import MAX_CHARS, failure_names, useful_output

NOISE = "\n".join(f"tests/test_{number}.py::test_x PASSED [ {number % 100}%]" for number in range(400))

# Each: what the tool prints about a failure, in the middle of much else.
FAILURES = {
    "pytest": "___________ test_price ___________\n>       assert price() == 2\nE       assert 1 == 2",
    "unittest": "FAIL: test_price (shop.Test)\nTraceback (most recent call last):\nAssertionError: 1 != 2",
    "jest": "  ● shop › price\n    expect(received).toBe(expected)",
    "vitest": " FAIL  src/shop.test.ts > price\nAssertionError: expected 1 to be 2",
    "node": "not ok 3 - price\n  ---\n  duration_ms: 1",
    "cargo": "---- price stdout ----\nthread 'price' panicked at src/lib.rs:3:5:\nassertion failed",
    "rustc": "error[E0308]: mismatched types\n --> src/lib.rs:2:5",
    "go": "--- FAIL: TestPrice (0.00s)\n    shop_test.go:9: got 1, want 2",
    "tsc": "src/shop.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    "eslint": "/shop/src/shop.js\n  3:7  error  'x' is not defined  no-undef",
    "ruff": "shop.py:1:8: F401 `os` imported but unused",
    "ruff since 0.9": "F401 [*] `os` imported but unused\n --> shop.py:1:8",
    "mypy": 'shop.py:3: error: Incompatible return value type (got "str", expected "int")',
    "make": "make: *** [Makefile:2: test] Error 1",
}


@pytest.mark.req("X-37")
@pytest.mark.parametrize("tool", FAILURES)
def test_the_failing_lines_are_found_between_thousands_of_others(tool: str) -> None:
    text = useful_output(f"{NOISE}\n{FAILURES[tool]}\n{NOISE}\nlast line", "")
    assert (FAILURES[tool] in text, text.endswith("\nlast line"), len(text) <= MAX_CHARS) == (
        True,
        True,
        True,
    )
    assert text.count("PASSED") < 40


def test_a_short_output_is_sent_whole_without_controls() -> None:
    assert (
        useful_output("\x1b[31mred\x1b[0m\r\nbusy 1%\rbusy 2%\n", "warning\x07\n") == "red\nbusy 2%\nwarning"
    )


def test_an_output_without_failing_lines_gives_its_end() -> None:
    text = useful_output("\n".join(f"line {number}" for number in range(5000)), "")
    assert (text.splitlines()[0], text.endswith("line 4998\nline 4999"), len(text) <= MAX_CHARS + 100) == (
        f"… [{5000 - len(text.splitlines()) + 1:,} lines left out] …",
        True,
        True,
    )


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        "E   x\n" * 2_000_000,
        "\0\x1b[" * 3_000_000,
        "\r" * 5_000_000,
        "a: error\n" * 1_000_000,
        (" " * 5000 + "\n") * 2000,
        "_" * 5_000_000,
    ],
    ids=["a line", "failures", "binary", "overwritten", "errors", "blanks", "underscores"],
)
def test_ten_megabytes_of_anything_give_a_short_reason(text: str) -> None:
    assert len(useful_output(text, text)) <= MAX_CHARS + 200


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("FAILED tests/test_a.py::test_b[1] - assert 1 == 2\n", {"tests/test_a.py::test_b[1]"}),
        ("FAIL: test_price (shop.Test)\n", {"test_price (shop.Test)"}),
        (
            "a.ts(3,7): error TS2322: No.\nb.ts(9,1): error TS1: X\n",
            {"a.ts error TS2322: No.", "b.ts error TS1: X"},
        ),
        ("shop.py:3: error: Bad\n", {"shop.py error: Bad"}),
        ("shop.py:1:8: F401 unused\n", {"shop.py F401 unused"}),
        ("    --- FAIL: TestPrice (0.01s)\n", {"TestPrice"}),
    ],
)
def test_a_failure_has_the_same_name_when_lines_have_moved(text: str, names: set[str]) -> None:
    assert failure_names(text, "") == names


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("no good\ntook 12 ms\n", "no good\ntook 9.5 ms\n", True),
        ("10:01:02 no good (1.2s)\n", "11:59:00 no good (0.9s)\n", True),
        ("3 of 90 checks failed\n", "57 of 90 checks failed\n", False),
        ("3 problems\n", "3 problems\nand one more\n", False),
        (
            "  3:7  error  'x' is not defined\n",
            "  3:7  error  'x' is not defined\n  9:7  error  'y'\n",
            False,
        ),
    ],
)
def test_an_output_without_names_is_the_same_only_if_it_is_equal_except_for_times(
    before: str, after: str, is_same: bool
) -> None:
    assert (failure_names(before, "") == failure_names(after, "")) is is_same
