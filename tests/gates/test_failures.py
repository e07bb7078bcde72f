"""What failed checks have printed: the failures with their names, and what an agent reads of them.

Each file of tests/data/tool_output is the real output of a tool, with what is made of it: the result, the names of the failures, and the reason.
"""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.failures import MAX_CHARS, Output, describe_failures, read_output
from turngate.gates.library.command import judge

RECORDED = Path(__file__).parents[1] / "data/tool_output"
PROJECT = "/home/user/shop"
TYPES, LINT = ("mypy", "pyright", "tsc", "rustc"), ("ruff", "flake8", "black", "eslint", "biome", "prettier")


class Recorded(NamedTuple):
    command: str
    report: Exited
    result: str
    names: list[str]
    reason: str


def read_recorded(name: str) -> Recorded:
    text = (RECORDED / f"{name}.txt").read_text()
    head, stdout, stderr, result, names, reason = re.split(r"^--- \w+\n", text, flags=re.MULTILINE)
    command, code = head.splitlines()
    report = Exited(int(code.removeprefix("exit code ")), stdout, stderr)
    return Recorded(
        command.removeprefix("$ "), report, result.strip(), names.splitlines(), reason.rstrip("\n")
    )


ALL = sorted(path.stem for path in RECORDED.glob("*.txt"))
TOOLS = sorted({name.rpartition("-")[0] for name in ALL if name.endswith("-failed")})


def read_names(name: str) -> Counter[str]:
    report = read_recorded(name).report
    return read_output(report.stdout, report.stderr, PROJECT).names


def judge_recorded(name: str) -> Decision:
    recorded, tool = read_recorded(name), name.partition("-")[0]
    check = "types" if tool in TYPES else "lint" if tool in LINT else "tests"
    return judge(CommandHook(command=recorded.command), recorded.report, check, PROJECT)


def result_of(decision: Decision) -> tuple[str, str]:
    match decision:
        case Block(reason):
            return "failed", reason
        case Fault(why):
            return "could not run", why
        case Allow():
            return "passed", ""
        case _:
            raise AssertionError(decision)


@pytest.mark.req("X-37")
@pytest.mark.parametrize("name", ALL)
def test_the_output_of_a_tool_gives_the_result_the_names_and_the_reason(name: str) -> None:
    recorded = read_recorded(name)
    result, reason = result_of(judge_recorded(name))
    names = sorted(read_names(name).elements()) if result == "failed" else []
    assert (result, names, reason) == (recorded.result, recorded.names, recorded.reason)


def test_twenty_tools_are_recorded() -> None:
    assert len(TOOLS) >= 20, TOOLS
    cases = Counter(name.rpartition("-")[2] for name in ALL)
    assert all(cases[each] >= 18 for each in ("failed", "passed", "crashed", "usage")), cases


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if f"{tool}-moved" in ALL])
def test_failures_keep_their_names_when_lines_move_and_tests_are_added(tool: str) -> None:
    assert read_names(f"{tool}-moved") == read_names(f"{tool}-failed")


@pytest.mark.parametrize(
    "name", [f"{tool}-{case}" for tool in TOOLS for case in ("more", "again") if f"{tool}-{case}" in ALL]
)
def test_one_more_failure_is_one_more_name_also_if_it_has_the_same_message(name: str) -> None:
    before, now = read_names(f"{name.rpartition('-')[0]}-failed"), read_names(name)
    assert ((now - before).total(), before - now) == (1, Counter())


def test_failed_tests_without_names_are_counted() -> None:
    assert read_names("pytest-quiet-more") - read_names("pytest-quiet") == Counter(
        ["a failed test without a name"]
    )


def test_files_that_cannot_be_collected_hide_other_failures() -> None:
    report = read_recorded("pytest-collection").report
    assert read_output(report.stdout, report.stderr).incomplete == "3 files could not be collected"


@pytest.mark.parametrize(
    "line",
    [
        'PHP Fatal error:  Uncaught Error: Class "Shop" not found in /home/user/shop/tests/ShopTest.php:14',
        "0 examples, 0 failures, 2 errors occurred outside of examples",
    ],
)
def test_tests_that_cannot_be_loaded_hide_other_failures(line: str) -> None:
    assert read_output(f"{line}\nmore\n", "").incomplete == " ".join(line.split())


def read(stdout: str, stderr: str = "") -> Output:
    return read_output(stdout, stderr)


NOISE = "\n".join(f"tests/test_{number}.py::test_x PASSED [ {number % 100}%]" for number in range(400))
# Each: what a tool prints about a failure, in the middle of much else.
FAILURES = {
    "cargo": "---- price stdout ----\nthread 'price' panicked at src/lib.rs:3:5:\nassertion failed",
    "rustc": "error[E0308]: mismatched types\n --> src/lib.rs:2:5",
    "go": "--- FAIL: TestPrice (0.00s)\n    shop_test.go:9: got 1, want 2",
    "tsc": "src/shop.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
    "ruff": "shop.py:1:8: F401 `os` imported but unused",
    "rubocop": "Rakefile:26:3: W: Lint/UselessAssignment: Useless assignment to variable - unused.",
    "ruff since 0.9": "F401 [*] `os` imported but unused\n --> shop.py:1:8",
    "mypy": 'shop.py:3: error: Incompatible return value type (got "str", expected "int")',
    "make": "make: *** [Makefile:2: test] Error 1",
    "another tool": "ERROR in step 3: the price is wrong",
}


@pytest.mark.req("X-37")
@pytest.mark.parametrize("tool", FAILURES)
def test_the_failing_lines_are_found_between_thousands_of_others(tool: str) -> None:
    noise = NOISE.replace("PASSED", "ok") if tool in ("make", "another tool") else NOISE
    text = describe_failures(read(f"{noise}\n{FAILURES[tool]}\n\n{noise}\nlast line"))
    assert (FAILURES[tool] in text, text.endswith("\nlast line"), len(text) <= MAX_CHARS) == (
        True,
        True,
        True,
    )
    assert text.count("::test_x") < 40


def test_a_short_output_is_sent_whole_without_controls() -> None:
    output = read("\x1b[31mred\x1b[0m\r\nbusy 1%\rbusy 2%\n", "warning\x07\n")
    assert describe_failures(output) == "red\nbusy 2%\nwarning"


def test_an_output_without_failing_lines_gives_its_end() -> None:
    text = describe_failures(read("\n".join(f"line {number}" for number in range(5000))))
    assert (text.splitlines()[0], text.endswith("line 4998\nline 4999"), len(text) <= MAX_CHARS + 100) == (
        f"… [{5000 - len(text.splitlines()) + 1:,} lines left out] …",
        True,
        True,
    )


def test_the_same_error_is_shown_once_and_the_other_places_are_named() -> None:
    error = "E   SyntaxError: invalid syntax"
    names = [f"test_{number}.py" for number in range(30)]
    blocks = [
        f"___ ERROR collecting {name} ___\n{name}:1: in <module>\n    import shop\n{error}" for name in names
    ]
    text = "\n".join([*blocks, "=== short test summary info ===", *(f"ERROR {name}" for name in names)])
    shown = describe_failures(read(text + "\n=== 30 errors in 0.1s ==="), limit=800)
    assert shown.startswith(
        f"test_0.py\ntest_0.py:1: in <module>\n{error}\n\n29 more:\n- test_1.py (test_1.py:1)\n"
    )
    assert (shown.count(error), shown.endswith("=== 30 errors in 0.1s ===")) == (1, True)


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
        "FAILED a.py::b - c\n" * 500_000,
        "  1) a\n  3 failing\n" * 100_000,
        "a.py:1:1: F401 x\n" * 500_000,
        "--- FAIL: TestPadding (1.00s)\n"
        + f"    id_test.go:79: String() = c6e5, want c6e4 {list(range(30))}\n" * 70_000,
    ],
    ids=[
        "a line",
        "failures",
        "binary",
        "overwritten",
        "errors",
        "blanks",
        "underscores",
        "pytest",
        "mocha",
        "flake8",
        "go test",
    ],
)
def test_ten_megabytes_of_anything_give_a_short_reason(text: str) -> None:
    assert len(describe_failures(read(text, text))) <= MAX_CHARS + 200


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("no good\ntook 12 ms\n", "no good\ntook 9.5 ms\n", True),
        ("10:01:02 no good (1.2s)\n", "11:59:00 no good (0.9s)\n", True),
        ("no good\n", "no good\nnpm notice New major version of npm available! 10.9.3 -> 12.2.0\n", True),
        ("3 of 90 checks failed\n", "57 of 90 checks failed\n", False),
        ("3 problems\n", "3 problems\nand one more\n", False),
        ("shop.py:3: error: Bad\n", "shop.py:9: error: Bad\n", True),
        (
            'a.py:3: error: Name "x" already defined on line 1\n',
            'a.py:5: error: Name "x" already defined on line 2\n',
            True,
        ),
        ("shop.py:3: error: Bad\n", "shop.py:3: error: Bad\nshop.py:4: error: Bad\n", False),
        ("shop.js\n  3:7  error  'x'\n", "shop.js\n  3:7  error  'x'\n  9:7  error  'y'\n", False),
    ],
)
def test_outputs_are_compared_by_names_and_without_names_as_a_whole_except_for_times_and_noise(
    before: str, after: str, is_same: bool
) -> None:
    assert (read(before).names == read(after).names) is is_same


VERBOSE_GO = """\
=== RUN   TestFine
    shop_test.go:8: a note
--- PASS: TestFine (0.00s)
=== RUN   TestTotal
    shop_test.go:12: got 3, want 4
--- FAIL: TestTotal (0.00s)
=== RUN   TestParts
=== RUN   TestParts/first
    shop_test.go:20: no first
=== RUN   TestParts/second
    shop_test.go:24: no second
--- FAIL: TestParts (0.00s)
    --- FAIL: TestParts/first (0.00s)
    --- FAIL: TestParts/second (0.00s)
FAIL
FAIL\texample.com/shop\t0.003s
"""


def test_what_go_logs_before_a_failure_is_shown_with_it() -> None:
    assert [(each.name, each.path, each.line, each.text) for each in read(VERBOSE_GO).failures] == [
        ("TestTotal", "shop_test.go", 12, "--- FAIL: TestTotal (0.00s)\n    shop_test.go:12: got 3, want 4"),
        ("TestParts", "", 0, "--- FAIL: TestParts (0.00s)"),
        (
            "TestParts/first",
            "shop_test.go",
            20,
            "--- FAIL: TestParts/first (0.00s)\n    shop_test.go:20: no first",
        ),
        (
            "TestParts/second",
            "shop_test.go",
            24,
            "--- FAIL: TestParts/second (0.00s)\n    shop_test.go:24: no second",
        ),
    ]


def test_tests_of_two_files_with_one_name_are_told_apart_in_tap() -> None:
    block = "not ok {} - works\n  ---\n  location: '/home/user/shop/{}.test.js:1:1'\n  error: '{}'\n  ...\n"
    before = read_output(block.format(1, "b", "long ago"), "", PROJECT)
    after = read_output(block.format(1, "a", "just now") + block.format(2, "b", "long ago"), "", PROJECT)
    assert [each.name for each in after.without(before.names)] == ["a.test.js works"]


def test_of_a_long_block_the_lines_with_errors_and_the_end_are_shown() -> None:
    """A test program that CTest starts prints what it likes."""
    lines = [f"[pass] value {number}" for number in range(300)]
    lines[150] = "[fail] value 150 [3][4]"
    text = "\n".join(
        ["1/1 Test #1: values ....***Failed  0.2 sec", *lines, "", "0% tests passed, 1 tests failed out of 1"]
    )
    [failure] = read(text).failures
    around = [f"[pass] value {number}" for number in range(151, 155)]
    assert failure.text.split("\n") == [
        "1/1 Test #1: values ....***Failed  0.2 sec",
        "[pass] value 149",
        "[fail] value 150 [3][4]",
        *around,
        *(f"[pass] value {number}" for number in range(289, 300)),
    ]


LONG_FUNCTION = "\n".join(f"        line_{number}()" for number in range(200))
SAME_HEADING = f"""\
________________________ TestSerializer.test_max_age ________________________

    def unsign(self, value):
{LONG_FUNCTION}
>       raise SignatureExpired("Signature age 1 > 10 seconds")
E       shop.SignatureExpired: Signature age 1 > 10 seconds

src/shop/timed.py:142: SignatureExpired
________________________ TestSerializer.test_max_age ________________________

    def test_max_age(self):
>       assert 1 == 2
E       assert 1 == 2

tests/test_url_safe.py:7: AssertionError
=========================== short test summary info ============================
FAILED tests/test_timed.py::TestSerializer::test_max_age
FAILED tests/test_url_safe.py::TestSerializer::test_max_age
2 failed, 3 passed in 0.05s
"""


def test_pytest_tells_the_error_below_a_long_function_and_tests_with_one_heading_apart() -> None:
    assert [each.text for each in read_output(SAME_HEADING, "").failures] == [
        """\
tests/test_timed.py::TestSerializer::test_max_age
>       raise SignatureExpired("Signature age 1 > 10 seconds")
E       shop.SignatureExpired: Signature age 1 > 10 seconds
src/shop/timed.py:142: SignatureExpired""",
        """\
tests/test_url_safe.py::TestSerializer::test_max_age
>       assert 1 == 2
E       assert 1 == 2
tests/test_url_safe.py:7: AssertionError""",
    ]
