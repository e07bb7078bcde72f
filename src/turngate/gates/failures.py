"""What a failed check has printed: its failures, what an agent reads of them, or that the check could not run at all. Pure.

`toolchains.py` knows how tools print failures, and `core/answers/missing_programs.py` what they print if a program, a script or a target is
not there. The output decides which reader is used, and not the command: `make test` may run several tools.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice

from turngate._frozen_dataclass import frozen
from turngate.core.answers.missing_programs import MISSING
from turngate.core.text import keep_ends, one_line, strip_controls, truncate
from turngate.gates.toolchains import FAILURE_READERS, INCOMPLETE, NOT_CONFIGURED, SUMMARY, FailureReader

MAX_CHARS = 2500  # of what an agent is sent
MAX_FAILURE_CHARS = 1500  # of one failure
MAX_LINE_CHARS = 400
MAX_SEARCHED_LINES = 200_000
MAX_BLOCK_LINES = 80  # of one failure
HEAD_LINES = 10  # where a tool that prints its whole help begins it
MAX_FAILURES = 2000
MAX_WHOLE_LINES = 2000  # of an output that is sent whole, without what is noise
LAST_LINES = 12  # the summary, or the message of a tool that does not start
LINES_BEFORE, LINES_AFTER = 1, 4  # around a line with an error
CANNOT_EXECUTE, NOT_FOUND = 126, 127  # exit codes of a shell
MAX_WHY_CHARS = 300

# Only a check prints these, and not a shell or make.
_REPORTED = re.compile(
    r"(?:FAILED|ERROR)\s\S|FAILED: |(?:FAIL|ERROR): |FAIL\s+\S|E\s{2,}\S|\s*(?:●|✕|✖|×)\s\S|\s*not ok \d|test\s.*\.\.\.\s+FAILED|\s*--- FAIL:"
    r"|AssertionError\b|\s*[1-9]\d* (?:failing|failed|failures?|errors?)\b"
)
# For tools that have no reader.
_ERROR = re.compile(
    r"(?i)\s*(?:●|✕|✖|×|not ok)\s|E\s{2,}\S|.{0,120}(?:\b|_)(?:errors?|fail(?:ed|ing|ures?)?|fatal|panic(?:ked)?|exception|traceback|undefined)\b"
    r"|(?:\w+\.)*\w*(?:Error|Exception)\b"
)
# For two runs of the same check, of which the lines are compared.
_COMPLAINT = re.compile(
    rf"{_ERROR.pattern}|.{{0,200}}\b(?:(?:un)?expected|mismatch\w*|differ(?:s|ent)?|wrong|invalid|missing|cannot|broken|violat\w+|denied|abort\w*"
    r"|core dumped|not (?:ok|found|equal|a)|(?:has|have|is|are|does|do) (?:not?|too)|no such)\b|\s*[✗✘❌]"
)
# Numbers of tests that have passed, or of all tests, and of lines.
_NEUTRAL_NUMBER = re.compile(
    r"(?i)\b\d+(?= (?:tests? )?(?:passed|passing|ok)\b| tests?\b(?! fail))|(?<=[\w)]:)\d+|(?<=\bline )\d+"
)
_SUMMARY, _INCOMPLETE, _NOT_CONFIGURED = map(re.compile, (SUMMARY, INCOMPLETE, NOT_CONFIGURED))
# Frames of dependencies and of the language itself, tests that have passed, and what only a machine reads.
_NOISE = re.compile(
    r"\s*(?:at |async |new |❯ |File \"|#?\d+[: ] |[\w$.<>#\[\] ]+ \(|\S+:\d+)?.{0,200}?"
    r"(?:(?<![\w'\"])(?:\S*[/\\])?(?:node_modules|site-packages|dist-packages)[/\\]\S+:\d+|/lib/python\d[^'\"]*(?::\d+|\", line)|\(?node:(?:internal|async_hooks|events|timers)|/rustc/|/usr/lib/go|<frozen |\bat [\w. ]+ \(<anonymous>\))"
    r"|\s*(?:✓|✔|√)\s|\s*ok \d+ |test \S.* \.\.\. (?:ok|ignored)$|.*(?:::\S+ PASSED|\bPASSED\s+\[ *\d+%\])|PASS \S|\s*--- PASS:|ok\s+\S+\s+[\d.(]"
    r"|\s+(?:duration_ms|failureType|operator|generatedMessage|exitCode|signal|code|type): ?|\s*(?:at )?(?:async |new )?(?:Safe)?Promise\b|-{70}$"
    r"|# Subtest: |\s*● Console$|\S+\.py [.sx]+\s+\[ *\d+%\]$|npm (?:notice|warn)\b|=+ (?:short test summary info|FAILURES|ERRORS) =+$"
)
_CODE_BELOW = re.compile(r"\s*(?:File \"|\S+:\d+: in )")  # of a frame of Python
# What differs from run to run: a duration with its unit, a time of day, a date, an address in memory.
_TIME = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|secs?|seconds?|m|min|minutes?)\b"
    r"|\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b|\b\d{4}-\d{2}-\d{2}\b|\b0x[0-9a-f]+\b"
)
_GO_TEST = re.compile(r"=== (?:RUN|CONT|NAME|PAUSE) +(\S*)")
_GO_RESULT = re.compile(r"\s*--- (?:FAIL|PASS|SKIP): (\S+) ")
_OTHER_LINE = re.compile(r"\b(line)s? \d+")  # "already defined on line 7"
WITHOUT_NAME = "(an output without names of failures)"


@frozen
class Failure:
    """One failure. Its name is the same in another run, whatever lines have moved; several may have the same name."""

    name: str
    text: str  # what was printed of it; the first line says what it is
    path: str = ""
    line: int = 0
    error: str = ""  # equal for failures with the same cause


@frozen
class Output:
    """What a check has printed."""

    lines: tuple[str, ...]
    left_out: int  # lines before them
    failures: tuple[Failure, ...] = ()
    incomplete: str | None = None  # why more failures may be there
    taken: frozenset[int] = frozenset()  # the numbers of the lines that are part of a failure

    @property
    def names(self) -> Counter[str]:
        """What identifies the failures in two runs. If none has a name, the lines about errors stand for them, else the whole output, without times and noise."""
        if self.failures:
            return Counter(each.name for each in self.failures)
        lines = [_NEUTRAL_NUMBER.sub("#", _TIME.sub("#", line.strip())) for line in _clean(self.lines)]
        errors = [line for line in lines if _COMPLAINT.match(line)][:MAX_FAILURES]
        return Counter(f"{WITHOUT_NAME} {_short_hash(each)}" for each in errors or ["\n".join(lines)])

    @property
    def unnamed_errors(self) -> dict[str, str]:
        """The lines about errors that belong to no failure, by what is the same in another run: that a coverage is too low, an error outside of tests."""
        rest = _clean(line for number, line in enumerate(self.lines) if number not in self.taken)
        # Lines that name a file with failures, such as headings, are about these.
        files = {each.path or each.name.partition(" ")[0] for each in self.failures}
        files = {file for file in files if "." in file or "/" in file}
        about = re.compile("|".join(map(re.escape, sorted(files))) or r"(?!)")
        rest = [line for line in rest if not about.search(line) and not _SUMMARY.match(line)]
        errors = (line.strip() for line in rest if _COMPLAINT.match(line))
        known = ((re.sub(r"\d+", "#", _TIME.sub("#", line)), line) for line in islice(errors, MAX_FAILURES))
        return {_short_hash(key): line for key, line in known}

    def without(self, known: Counter[str]) -> tuple[Failure, ...]:
        """Return the failures that are not among the known ones; of equal names, those above their number."""
        left = Counter(known)
        new = []
        for each in self.failures:
            left[each.name] -= 1
            new += [each] if left[each.name] < 0 else []
        return tuple(new)


def read_output(stdout: str, stderr: str, project: str = "") -> Output:
    """Read the failures. Paths below the folder of the project are shown without it."""
    lines, left_out = _lines(stdout, stderr)
    if project:
        lines = [line.replace(f"{project.rstrip('/')}/", "") if project in line else line for line in lines]
    lines = _logs_below_results(lines)
    taken: set[int] = set()
    failures = _read_pytest(lines, taken)
    found = {""}
    text = "\n".join(lines)
    for reader in FAILURE_READERS:
        if reader.tools not in found and _search(reader.start).search(text):
            read = list(_read(reader, lines, taken))
            found |= {reader.tools} if read else set()
            failures += read
    # One place that is reported twice, as by cargo for a library and its tests, is one failure.
    unique = dict.fromkeys(failures[:MAX_FAILURES])
    more = f"more than {MAX_FAILURES:,} failures" if len(failures) > MAX_FAILURES else None
    return Output(tuple(lines), left_out, tuple(unique), _find_incomplete(lines) or more, frozenset(taken))


def _logs_below_results(lines: list[str]) -> list[str]:
    """Move what `go test -v` has logged of a test below the line that says that it failed, as without `-v`."""
    if not any(line.startswith("=== RUN ") for line in lines):
        return lines
    ordered: list[str] = []
    logs: dict[str, list[str]] = {}
    test = ""
    for line in lines:
        if begun := _GO_TEST.match(line):
            test = begun[1]
            ordered.append(line)
        elif ended := _GO_RESULT.match(line):
            test = ""
            ordered += (line, *logs.pop(ended[1], ()))
        elif test:
            logs.setdefault(test, []).append(line)
        else:
            ordered.append(line)
    return ordered + [line for each in logs.values() for line in each]


def describe_failures(
    output: Output, failures: Sequence[Failure] | None = None, limit: int = MAX_CHARS
) -> str:
    """Return what an agent reads of all failures, or of these: a short output as it is; else the first ones whole, the names of the others, the summary."""
    if failures is None:
        if len(output.lines) <= MAX_WHOLE_LINES:
            whole = "\n".join(_without_repeats(_clean(output.lines)))
            if len(whole) <= limit:
                return whole
        failures = output.failures
    if not failures:
        return _useful_lines(output, limit)
    footer = _within(_find_footer(output), limit // 5, from_end=True)
    room = limit - sum(map(len, footer)) - len(footer) - 40
    shown: list[str] = []
    rest: list[Failure] = []
    errors: set[str] = set()
    for each in failures:
        text = keep_ends(each.text, MAX_FAILURE_CHARS * 3 // 4, MAX_FAILURE_CHARS // 4)
        is_known = each.error in errors
        if is_known or (shown and sum(map(len, shown)) + len(text) > room * 3 // 4):
            rest.append(each)
        else:
            shown.append(text)
            errors |= {each.error} if each.error else set()
    parts = ["\n\n".join(shown) if any("\n" in text for text in shown) else "\n".join(shown)]
    if rest:
        titles = _within([f"- {_title(each)}" for each in rest], room - len(parts[0]), from_end=False)
        more = [f"- and {len(rest) - len(titles)} more"] if len(titles) < len(rest) else []
        parts.append("\n".join([f"{len(rest)} more:", *titles, *more]))
    return "\n\n".join([*parts, "\n".join(footer)]).strip()


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def has_failures(output: Output) -> bool:
    """Return whether the output reports failures of a check: then the check has run."""
    return any(map(_REPORTED.match, output.lines))


def missing_program(code: int, output: Output, stderr: str) -> str | None:
    """Return what is not there or not configured, which no agent can change, or None if the command has failed in another way."""
    ends = (*output.lines[:HEAD_LINES], *output.lines[-MAX_BLOCK_LINES:])
    lines = [line.strip() for line in ends if line.strip()]
    said = next((number for number, line in enumerate(lines) if _NOT_CONFIGURED.fullmatch(line)), None)
    if said is not None and not output.failures:
        return f"exit code {code}: {one_line(' '.join(lines[said : said + 2 if lines[said].endswith(':') else said + 1]), MAX_WHY_CHARS)}"
    if has_failures(output):
        return None
    lines = [line.strip() for line in stderr[-20_000:].splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("from ")]  # frames of Ruby
    missing = next((line for line in lines[-LAST_LINES:] if re.fullmatch(MISSING, line)), None)
    if missing is not None:
        return f"exit code {code}: {one_line(missing, MAX_WHY_CHARS)}"
    if code in (CANNOT_EXECUTE, NOT_FOUND):
        last = one_line(lines[-1], MAX_WHY_CHARS) if lines else "a program was not found"
        return f"exit code {code}: {last}"
    return None


_PYTEST_NAME = re.compile(r"(?P<kind>FAILED|ERROR) (?P<name>\S+?\.py(?:::.*?)?)(?: - (?P<why>.*))?$")
_PYTEST_HEADER = re.compile(r"_{3,} (?P<name>\S.*?) _{3,}$")
_PYTEST_END = re.compile(r"={3,} |_{3,} .* _{3,}$")
_PYTEST_PLACE = re.compile(r"(?P<path>[^\s:]+\.py):(?P<line>\d+): (?:in |\w+)")
_PYTEST_COUNT = re.compile(r"(?:=+ )?([1-9]\d*) failed\b.* in [\d.]+s")
_PYTEST_PREFIX = re.compile(r"ERROR (?:at (?:setup|teardown) of|collecting) ")


def _read_pytest(lines: list[str], taken: set[int]) -> list[Failure]:
    """Read the failures with their names in the summary; where it is switched off, with those of their headings."""
    blocks: dict[str, list[list[int]]] = {}  # by their headings, which tests of several files may have
    names: list[tuple[str, str, str]] = []  # the heading, the whole name, and the message
    current: list[int] | None = None
    for number, line in enumerate(lines):
        if found := _PYTEST_HEADER.match(line):
            current = []
            blocks.setdefault(_PYTEST_PREFIX.sub("", found["name"]), []).append(current)
            taken.add(number)
        elif _PYTEST_END.match(line):
            current = None
        elif found := _PYTEST_NAME.match(line):
            current = None
            path, _, rest = found["name"].partition("::")
            names.append((rest.replace("::", ".") if rest else path, found["name"], found["why"] or ""))
            taken.add(number)
        elif current is not None:
            current.append(number)
            taken.add(number)
    all_blocks = [(key, block) for key, several in blocks.items() for block in several]
    if not names and not any(lines[each].startswith("E  ") for _, block in all_blocks for each in block):
        count = sum(int(found[1]) for line in lines if (found := _PYTEST_COUNT.match(line)))
        return [
            Failure("a failed test without a name", f"failed test {each + 1}")
            for each in range(min(count, MAX_FAILURES))
        ]
    failures = []
    for key, name, why in (names or [(key, key, "") for key, _ in all_blocks])[:MAX_FAILURES]:
        block = [lines[each] for each in (blocks[key].pop(0) if blocks.get(key) else ())]
        kept = [line for line in block if line.startswith((">", "E ")) or _PYTEST_PLACE.match(line)]
        kept = _clean(kept[-MAX_BLOCK_LINES:])
        errors = "\n".join(line for line in kept if line.startswith("E ")) or why
        places = [found for line in kept if (found := _PYTEST_PLACE.match(line))]
        place = (places[-1]["path"], int(places[-1]["line"])) if places else ("", 0)
        failures.append(Failure(name, "\n".join([name, *(kept or filter(None, [why]))]), *place, errors))
    return failures


def _read(reader: FailureReader, lines: list[str], taken: set[int]) -> Iterator[Failure]:
    for found, about, block in _split(reader, lines, frozenset(taken)):
        heading = _match(reader.heading or "").match(lines[about]) if about is not None else None
        if failure := _make_failure(reader, found, heading, [lines[each] for each in block]):
            taken.update(block, () if about is None else (about,))
            yield failure


def _split(
    reader: FailureReader, lines: list[str], taken: frozenset[int]
) -> Iterator[tuple[re.Match[str], int | None, list[int]]]:
    """Yield the first line of each failure, the number of the heading above it, and those of its lines."""
    numbers = iter(range(len(lines)))
    if reader.after:
        next(filter(lambda each: _match(reader.after or "").match(lines[each]), numbers), None)
    found: re.Match[str] | None = None
    about: int | None = None
    block: list[int] = []
    for number in numbers:
        line = lines[number]
        if reader.until and _match(reader.until).match(line):
            break
        begun = None if number in taken else _match(reader.start).match(line)
        headed = _match(reader.heading).match(line) if reader.heading and not begun else None
        if found:
            end = reader.end.replace("{indent}", found.groupdict().get("indent") or "")
            if begun or headed or number in taken or not end or _match(end).match(line):
                yield found, about, block
                found = None
        about = number if headed else about
        if begun:
            found, block = begun, [number]
        elif found:
            block.append(number)
    if found:
        yield found, about, block


def _make_failure(
    reader: FailureReader, found: re.Match[str], about: re.Match[str] | None, block: list[str]
) -> Failure | None:
    groups, first = found.groupdict(), block[0].strip()
    name, below = groups.get("name") or "", block[1:]
    while reader.title_end and below and not name.endswith(reader.title_end):
        name, below = f"{name} {below[0].strip()}", below[1:]
    places = map(_match(reader.place).match, below) if reader.place else ()
    place = next((each for each in places if each and not _NOISE.match(each.string)), None)
    is_failure = (place or not reader.needs_place) and (below or not reader.needs_line)
    if not is_failure or (reader.ignore and any(map(_match(reader.ignore).match, (block[0], *below)))):
        return None
    heading = about.groupdict() if about else {}
    at = place.groupdict() if place else groups if groups.get("path") else heading
    path, line = at.get("path") or "", groups.get("line") or at.get("line") or heading.get("line") or 0
    # A test has a name of its own; the path is part of that of a complaint, which other files may have too.
    is_named = groups.get("path") or reader.needs_place or reader.is_named_by_place
    file = heading.get("path") or (path if is_named else "")
    title = " ".join(name.rstrip(reader.title_end or "").split())
    if heading and not groups.get("path"):
        first = f"{heading['path']}{f':{line}' if groups.get('line') else ''}: {title}"
    elif reader.title_end:
        first = title
    if len(below) > MAX_BLOCK_LINES:
        below = [line for _, line in _around_errors(below[:-LAST_LINES])][:MAX_BLOCK_LINES] + below[
            -LAST_LINES:
        ]
    body = _clean(below)
    while body and not body[-1].strip():
        body.pop()
    while body and not body[0].strip():
        body.pop(0)
    error = "\n".join(each for each in body if not (reader.place and _match(reader.place).match(each)))
    full = _OTHER_LINE.sub(r"\1", " ".join(dict.fromkeys(filter(None, (file, title)))))
    return Failure(full, "\n".join([first, *body]), path, int(line), error)


def _title(failure: Failure) -> str:
    first = one_line(failure.text.partition("\n")[0], MAX_WHY_CHARS)
    has_place = not failure.path or re.search(rf"{re.escape(failure.path)}[:(]{failure.line}\b", first)
    return first if has_place else f"{first} ({failure.path}:{failure.line})"


def _find_incomplete(lines: Iterable[str]) -> str | None:
    for line in lines:
        if found := _INCOMPLETE.match(line):
            if count := found["count"]:
                return f"{count} file{'s' * (count != '1')} could not be collected"
            return one_line(line, MAX_WHY_CHARS)
    return None


def _clean(lines: Iterable[str]) -> list[str]:
    """Return the lines without frames of dependencies, tests that have passed, and repeated blank lines."""
    kept: list[str] = []
    hidden: int | None = None  # the indentation of a frame whose code is left out
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if hidden is not None and indent > hidden and line.strip():
            continue
        hidden = None
        if _NOISE.match(line):
            hidden = indent if _CODE_BELOW.match(line) else None
        elif line.strip() or (kept and kept[-1].strip()):
            kept.append(line)
    return kept


def _without_repeats(lines: list[str]) -> list[str]:
    """Leave out paragraphs of several lines that come again, as node prints each failure twice."""
    seen: set[str] = set()
    kept: list[str] = []
    for paragraph in re.split(r"\n[ \t]*(?=\n)", "\n".join(lines)):
        key = "\n".join(line.strip() for line in paragraph.strip("\n").split("\n"))
        if key not in seen or "\n" not in key:
            kept.append(paragraph)
        seen.add(key)
    return "\n".join(kept).strip("\n").split("\n")


def _find_footer(output: Output) -> list[str]:
    """Return the summary, and the last lines that belong to no failure."""
    rest = [line for number, line in enumerate(output.lines) if number not in output.taken]
    summary = [line for line in dict.fromkeys(rest) if _SUMMARY.match(line) and not _NOISE.match(line)][-4:]
    last = [line for line in _clean(rest[-MAX_BLOCK_LINES:]) if line.strip()]
    shown = [line for line in last if line in summary or line in last[-2:]]
    return list(dict.fromkeys([*(line for line in summary if line not in last), *shown]))


def _useful_lines(output: Output, limit: int) -> str:
    """Return lines with errors and those around them, and the end."""
    lines, before = list(output.lines), output.left_out
    end = max(0, len(lines) - LAST_LINES)
    last = _within(lines[end:], limit // 3, from_end=True)
    chosen = list(_around_errors(lines[:end]))
    if not chosen:
        kept = _within(lines, limit, from_end=True)
        return "\n".join([f"… [{before + len(lines) - len(kept):,} lines left out] …", *kept])
    room = limit - sum(map(len, last)) - LAST_LINES
    found = _within([line for _, line in chosen], room, from_end=False)
    numbers = [*(number for number, _ in chosen[: len(found)]), *range(len(lines) - len(last), len(lines))]
    return _join_with_gaps(zip((before + number for number in numbers), found + last, strict=True))


def _lines(stdout: str, stderr: str) -> tuple[list[str], int]:
    """Return the last lines of both, as they were seen last and without control characters, and how many came before them."""
    text = "\n".join(part.rstrip() for part in (stdout, stderr) if part.strip())
    lines = text.replace("\r\n", "\n").split("\n")
    shown = (line.rstrip("\r").rpartition("\r")[2] for line in lines[-MAX_SEARCHED_LINES:])
    clean = [truncate(strip_controls(line[: 4 * MAX_LINE_CHARS]), MAX_LINE_CHARS).rstrip() for line in shown]
    return clean, len(lines) - len(clean)


def _around_errors(lines: list[str]) -> Iterator[tuple[int, str]]:
    shown_until = 0
    for number, line in enumerate(lines):
        if _ERROR.match(line):
            first, last = max(shown_until, number - LINES_BEFORE), min(len(lines), number + 1 + LINES_AFTER)
            yield from ((each, lines[each]) for each in range(first, last))
            shown_until = max(shown_until, last)


def _within(lines: list[str], room: int, *, from_end: bool) -> list[str]:
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


@cache
def _match(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def _search(pattern: str) -> re.Pattern[str]:
    return re.compile(f"^(?:{pattern})", re.MULTILINE)
