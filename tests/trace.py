"""Prints which tests show which requirement, and fails where one that is due has none."""

import argparse
import contextlib
import io
import os
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

Tests = Mapping[str, Counter[str]]  # by ID: each test function and how many cases of it carry the ID


@dataclass(frozen=True)
class Requirement:
    id: str
    says: str
    issue: int
    due: int


def main() -> int:
    options = arguments()
    issue = options.issue
    requirements = read_requirements()
    tests = collect()
    shown = [each for each in requirements if issue is None or each.due <= issue]
    shown = draw(shown, tests, options.draw, options.seed) if options.draw else shown
    for requirement in shown:
        print_requirement(requirement, tests)
    problems = [*unknown(requirements, tests), *(uncovered(shown, tests) if issue is not None else ())]
    print("\n" + "\n".join(problems or [summary(shown, tests, issue)]))
    return 1 if problems else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--issue", type=int, metavar="N", help="only what is due with issue N; fail if untested"
    )
    parser.add_argument("--draw", type=int, metavar="N", help="only N requirements, chosen at random")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    return parser.parse_args()


def read_requirements() -> list[Requirement]:
    """An ID is due with the issue that finishes it, unless it names an earlier one."""
    entries = tomllib.loads((ROOT / "tests" / "requirements.toml").read_text("utf-8"))
    return [
        Requirement(key, each["says"], each["issue"], each.get("due", each["issue"]))
        for key, each in entries.items()
    ]


def draw(requirements: list[Requirement], tests: Tests, number: int, seed: int) -> list[Requirement]:
    """Choose among the requirements that have a test; the same seed gives the same ones."""
    tested = sorted((each for each in requirements if each.id in tests), key=lambda each: each.id)
    return random.Random(seed).sample(tested, min(number, len(tested)))


def collect() -> Tests:
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)  # instead of tests/, where this file would hide the module trace
    collector = Collector()
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = pytest.main(
            ["--collect-only", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", str(ROOT / "tests")],
            plugins=[collector],
        )
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"{said.getvalue()}\nThe tests could not be collected.")
    if collector.only_slow:
        sys.exit(f"No test of `make test` shows {', '.join(sorted(collector.only_slow))}.")
    return collector.tests


class Collector:
    def __init__(self) -> None:
        self.tests: dict[str, Counter[str]] = {}
        self.only_slow: set[str] = set()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for name in marked(item):
                self.tests.setdefault(name, Counter())[function(item)] += 1
        daily = (marked(item) for item in session.items if not item.get_closest_marker("slow"))
        self.only_slow = self.tests.keys() - set[str]().union(*daily)


def marked(item: pytest.Item) -> set[str]:
    return {str(name) for marker in item.iter_markers("req") for name in marker.args}


def function(item: pytest.Item) -> str:
    """The node id without the parameters of one case."""
    return item.nodeid.split("[", 1)[0]


def print_requirement(requirement: Requirement, tests: Tests) -> None:
    functions = tests.get(requirement.id, Counter())
    number = functions.total()
    print(f"{requirement.id:<7} issue {requirement.issue}  {number} test{'' if number == 1 else 's'}")
    print(f"    {requirement.says}")
    for name, cases in functions.items():
        print(f"    {name}" + (f" ({cases} cases)" if cases > 1 else ""))


def unknown(requirements: list[Requirement], tests: Tests) -> Iterator[str]:
    known = {each.id for each in requirements}
    for name, functions in tests.items():
        if name not in known:
            yield f"{name!r}, named by {', '.join(functions)}, is not in tests/requirements.toml."


def uncovered(due: list[Requirement], tests: Tests) -> Iterator[str]:
    for each in due:
        if each.id not in tests:
            yield f"{each.id} is due with issue {each.due} and no test carries it."


def summary(shown: list[Requirement], tests: Tests, issue: int | None) -> str:
    covered = sum(each.id in tests for each in shown)
    if issue is None:
        return f"{covered} of {len(shown)} requirements have a test."
    return f"{len(shown)} requirements are due with issue {issue}, and all of them are covered."


if __name__ == "__main__":
    sys.exit(main())
