"""Whether a check that succeeded has checked nothing, by what it has printed. Pure.

`EMPTY_RUNS` of `toolchains.py` has the lines. A tool may say so of one part and check another one, as cargo does of tests in
documentation: then something was checked.
"""

import re
from functools import cache

from turngate.core.text import one_line, strip_controls
from turngate.gates.toolchains import ALL_SKIPPED, EMPTY_RUNS, PROJECT_CHECKS

MAX_LINE_CHARS = 200
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
    return one_line(found[-1][0], MAX_LINE_CHARS) if found else None  # the last one: of the summary


def counts_tests(text: str) -> bool:
    """Return whether a text says that tests ran."""
    return _patterns("tests")[1].search(text) is not None


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
