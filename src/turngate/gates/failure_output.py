"""What a failed check has printed: the failing lines, or that the check could not run at all. Pure.

`toolchains.py` knows what tools print of failures, and `core/answers/missing_programs.py` what they print if a program,
a script or a target is not there.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator

from turngate.core.answers.missing_programs import MISSING
from turngate.core.text import one_line, strip_controls, truncate
from turngate.gates.toolchains import OUTPUT_LINES

MAX_CHARS = 6000  # of what an agent is sent
MAX_WHOLE_CHARS = 2500  # a shorter output is sent as it is
MAX_LINE_CHARS = 400
MAX_SEARCHED_LINES = 200_000
LAST_LINES = 12  # the summary, or the message of a tool that does not start
LINES_BEFORE, LINES_AFTER = 1, 4  # around a failing line
CANNOT_EXECUTE, NOT_FOUND = 126, 127  # exit codes of a shell
MAX_WHY_CHARS = 300

_FAILING, _REPORTED = (
    re.compile("|".join(line.pattern for line in lines))
    for lines in (
        [line for line in OUTPUT_LINES if line.is_shown],
        [line for line in OUTPUT_LINES if line.is_report],
    )
)
_NAMED = tuple(re.compile(line.name) for line in OUTPUT_LINES if line.name)

# What differs from run to run: a duration with its unit, a time of day, a date, an address in memory.
_TIME = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|m|min|minutes?)\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b|\b\d{4}-\d{2}-\d{2}\b|\b0x[0-9a-f]+\b"
)
WHOLE_OUTPUT = "(an output without names of failures)"


def useful_output(stdout: str, stderr: str) -> str:
    """Return at most MAX_CHARS of the output: the failing lines with some context, and the end."""
    lines, before = _lines(stdout, stderr)
    whole = "\n".join(lines)
    if len(whole) <= MAX_WHOLE_CHARS:
        return whole
    end = max(0, len(lines) - LAST_LINES)
    last = _within(lines[end:], MAX_CHARS // 3, from_end=True)
    chosen = list(_around_failures(lines[:end]))
    if not chosen:
        kept = _within(lines, MAX_CHARS, from_end=True)
        return "\n".join([f"… [{before + len(lines) - len(kept):,} lines left out] …", *kept])
    room = MAX_CHARS - sum(map(len, last)) - LAST_LINES
    found = _within([line for _, line in chosen], room, from_end=False)
    numbers = [*(number for number, _ in chosen[: len(found)]), *range(len(lines) - len(last), len(lines))]
    return _join_with_gaps(zip((before + number for number in numbers), found + last, strict=True))


def failure_names(stdout: str, stderr: str) -> frozenset[str]:
    """Return what identifies each failure, so that those of two runs can be compared.

    If no failure has a name, the whole output stands for it, without times: any other number may be what has changed.
    """
    lines, _ = _lines(stdout, stderr)
    named = {" ".join(found.groups()) for line in lines if (found := _name_in(line))}
    if named:
        return frozenset(named)
    text = "\n".join(_TIME.sub("#", line.strip()) for line in lines)
    return frozenset({f"{WHOLE_OUTPUT} {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"})


def has_failing_lines(stdout: str, stderr: str) -> bool:
    """Return whether the output reports failures of a check: then the check has run."""
    lines, _ = _lines(stdout, stderr)
    return any(_REPORTED.match(line) or _name_in(line) for line in lines)


def missing_program(code: int, stdout: str, stderr: str) -> str | None:
    """Return what is not there, or None if the command has failed in another way: also if it reports failures.

    An agent that is blocked because of it could not change that.
    """
    if has_failing_lines(stdout, stderr):
        return None
    lines = [line.strip() for line in stderr[-20_000:].splitlines() if line.strip()]
    said = next((line for line in lines[-LAST_LINES:] if re.fullmatch(MISSING, line)), None)
    if said is not None:
        return f"exit code {code}: {one_line(said, MAX_WHY_CHARS)}"
    if code in (CANNOT_EXECUTE, NOT_FOUND):
        last = one_line(lines[-1], MAX_WHY_CHARS) if lines else "a program was not found"
        return f"exit code {code}: {last}"
    return None


def _name_in(line: str) -> re.Match[str] | None:
    return next(filter(None, (pattern.match(line) for pattern in _NAMED)), None)


def _lines(stdout: str, stderr: str) -> tuple[list[str], int]:
    """Return the last lines of both, without control characters, and how many came before them.

    Of a line that was overwritten, it is what was seen last.
    """
    text = "\n".join(part.rstrip() for part in (stdout, stderr) if part.strip())
    lines = text.replace("\r\n", "\n").split("\n")
    shown = (line.rstrip("\r").rpartition("\r")[2] for line in lines[-MAX_SEARCHED_LINES:])
    clean = [truncate(strip_controls(line[: 4 * MAX_LINE_CHARS]), MAX_LINE_CHARS).rstrip() for line in shown]
    return clean, len(lines) - len(clean)


def _around_failures(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the failing lines and those around them, with their numbers."""
    shown_until = 0
    for number, line in enumerate(lines):
        if _FAILING.match(line):
            first, last = max(shown_until, number - LINES_BEFORE), min(len(lines), number + 1 + LINES_AFTER)
            yield from ((each, lines[each]) for each in range(first, last))
            shown_until = max(shown_until, last)


def _within(lines: list[str], room: int, *, from_end: bool) -> list[str]:
    """Return as many lines as there is room for."""
    kept: list[str] = []
    for line in reversed(lines) if from_end else lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1] if from_end else kept


def _join_with_gaps(numbered: Iterable[tuple[int, str]]) -> str:
    parts: list[str] = []
    next_number = 0
    for number, line in numbered:
        if number > next_number:
            left_out = number - next_number
            parts.append(f"… [{left_out:,} line{'s' * (left_out != 1)} left out] …")
        parts.append(line)
        next_number = number + 1
    return "\n".join(parts)
