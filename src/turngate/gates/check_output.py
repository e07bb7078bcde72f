"""What a check that succeeded has printed: how many tests have passed and were skipped, or that it has checked nothing.

The counts are compared with the last run of the project that passed. `toolchains.py` has the lines.
"""

import json
import os
import re
from functools import cache
from typing import NamedTuple

from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.text import one_line, strip_controls
from turngate.gates.gate import GateContext
from turngate.gates.stored_state import read_json, state_path, write_file
from turngate.gates.toolchains import ALL_SKIPPED, EMPTY_RUNS, PROJECT_CHECKS, SKIPPED_TEST, TEST_COUNTS
from turngate.project.checkouts import in_main_checkout
from turngate.project.files import LOCAL

MAX_WORDS_CHARS = 200
MAX_NAMES = 5  # of tests that are skipped, in a message
MAX_LINE_CHARS = 300
# A command that is one of these tools prints something, whatever its tests do.
_RUNNER = r"(?:\w+ run |python3? -m |npx (?:-\S+ )*)?(?:\S*/)?(?:pytest|py\.test|unittest|jest|vitest|mocha|rspec|phpunit)(?!\S)[^|>]*$"


class Counted(NamedTuple):
    passed: int
    skipped: int
    skipped_names: tuple[str, ...] = ()  # where the tool prints them


def count_tests(output: str) -> Counted | None:
    """Return how many tests the output counts, of all tools and programs that print a number. None: it does not say so."""
    text = "\n".join(line[:MAX_LINE_CHARS] for line in strip_controls(output).split("\n"))
    total = None
    for row in TEST_COUNTS:
        if passed := _numbers(row.passed, text):
            failed = sum(_numbers(row.failed, text)) if row.failed else 0
            before = total or Counted(0, 0)
            skipped = before.skipped + sum(_numbers(row.skipped, text))
            total = Counted(before.passed + max(0, sum(passed) - failed), skipped)
    names = (next(filter(None, groups)) for groups in re.findall(SKIPPED_TEST, text, re.MULTILINE))
    return total and total._replace(skipped_names=tuple(dict.fromkeys(names)))


def _numbers(pattern: str, text: str) -> list[int]:
    return [*map(int, re.findall(pattern, text, re.MULTILINE))]


def describe_fewer(before: Counted, now: Counted) -> str | None:
    """Return that fewer tests have passed than at the last pass, or that more were skipped."""
    parts = []
    if now.passed < before.passed:
        parts.append(
            f"{now.passed} test{'s' * (now.passed != 1)} passed, and {before.passed} at the last pass"
        )
    if now.skipped > before.skipped:
        new = [name for name in now.skipped_names if name not in before.skipped_names][:MAX_NAMES]
        names = f" ({', '.join(new)})" if new else ""
        parts.append(f"{now.skipped} were skipped{names}, and {before.skipped} at the last pass")
    return "; ".join(parts) or None


def describe_missing_count(
    context: GateContext, command: str, counted_as: str, report: Exited | TimedOut
) -> str | None:
    """Return why tests that have succeeded have not run: none is counted, although some were at the last pass. That is said once."""
    output = f"{report.stdout}\n{report.stderr}"
    if not output.strip() and re.match(_RUNNER, command):
        return "it checked nothing: it printed nothing"
    place = (context.state_folder or "", context.project, counted_as)
    before = last_pass(*place) if context.state_folder and not count_tests(output) else None
    if before is None:
        return None
    write_file(_path(*place), "null")
    return f"it printed no number of tests, and {before.passed} tests passed at the last pass"


def last_pass(state: str, project: str, command: str, at_start: object = None) -> Counted | None:
    """Return what the last pass counted, or what was recorded at the session's start if that is more: an agent may run fewer tests on its own."""
    stored = read_json(_path(state, project, command))
    found, before = _read_counted(stored), _read_counted(at_start)
    return before if before and (found is None or before.passed > found.passed) else found


def _read_counted(stored: object) -> Counted | None:
    match stored:
        case [int(passed), int(skipped), [*names]]:
            return Counted(passed, skipped, tuple(map(str, names)))
        case _:
            return None


def store_pass(state: str, project: str, command: str, counted: Counted) -> None:
    write_file(_path(state, project, command), json.dumps(counted))


def _path(state: str, project: str, command: str) -> str:
    """Return a file of the project: all its sessions share it, and all checkouts of its repository."""
    main = in_main_checkout(os.path.realpath(project), LOCAL)
    return state_path(state, f"project {main}", "", f"tests of {command}")


# Nothing was checked. A tool may say so of one part and check another one, as cargo does of tests in documentation

# What make and the programs that start scripts print of themselves.
_HEADINGS = re.compile(r"\s*$|[>$] |(?:\S*/)?g?make\b|ninja\b|(?:npm|pnpm|yarn|bun)\b|Done in ")


def describe_empty_run(output: str, check: str | None) -> str | None:
    """Return the words that say that nothing was checked, or None. `check`: the kind of check, "other", or None for any."""
    text = strip_controls(output)
    nothing, something, alone = _patterns(check)
    skipped = _any([*ALL_SKIPPED] if check == "tests" or check not in PROJECT_CHECKS else [])
    has_run = something.search(skipped.sub("", text))
    found = [] if has_run else [*nothing.finditer(text), *skipped.finditer(text)]
    if not found and all(map(_HEADINGS.match, text.split("\n"))):
        found = [*alone.finditer(text)]
    return one_line(found[-1][0], MAX_WORDS_CHARS) if found else None  # the last one: of the summary


def counts_tests(text: str) -> bool:
    counted = count_tests(text)
    return _patterns("tests")[1].search(text) is not None or (counted is not None and counted.passed > 0)


@cache
def _patterns(check: str | None) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return what says that nothing was checked, that something was, and the former if nothing else is printed."""
    is_any = check not in PROJECT_CHECKS
    rows = [row for row in EMPTY_RUNS if is_any or check in row.checks]
    nothing = [row.nothing for row in rows if not row.is_alone]
    something = [row.something for row in rows if row.something]
    alone = [row.nothing for row in rows if row.is_alone and check != "other"]
    return _any(nothing), _any(something), _any(alone)


def _any(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns) or r"(?!)", re.MULTILINE | re.IGNORECASE)
