"""The gate `coverage`: tests run the lines that were added, as the report of a coverage tool says."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from turngate.core.answers.report_types import Exited
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import show_path
from turngate.gates.project_files import read_file
from turngate.gates.session_changes import record_files, require_patches

REPORTS = (
    "coverage.xml",
    "lcov.info",
    "coverage/lcov.info",
    "coverage.json",
    "coverage/cobertura-coverage.xml",
)
NO_REPORT = f"there is no report: the tests have to write one of {', '.join(REPORTS)}"
ADVICE = "Write tests that run them."
_XML = re.compile(r'<class\b[^>]*?\bfilename="([^"]+)"|<line\b[^>]*?\bnumber="(\d+)"[^>]*?\bhits="(\d+)"')
# Prints the files that are newer than the report $1.
NEWER = 'report=$1; shift; for name do test ! -f "$name" || test ! "$name" -nt "$report" || printf "%s\\n" "$name"; done'


async def check_coverage(context: GateContext) -> Decision:
    patches = await require_patches(context, "the added lines are")
    added = {patch.path: {line.number for line in patch.added()} for patch in patches.files}
    names = [context.options["report"]] if context.options["report"] else REPORTS
    for name in names if any(added.values()) else ():
        if (text := await read_file(context.commands, name)) is not None:
            return await _judge(context, name, read_report(name, text), added)
    return Fault(NO_REPORT) if any(added.values()) else Allow()


async def _judge(
    context: GateContext, report: str, hits: Mapping[str, Mapping[int, bool]], added: Mapping[str, set[int]]
) -> Decision:
    known = {path: lines for path in added if (lines := _lines_of(path, hits))}
    newer = await context.commands.run_script(NEWER, report, *known)
    if isinstance(newer, Exited) and newer.stdout:
        name = show_path(newer.stdout.split("\n")[0])
        return Fault(f"{show_path(report)} is older than {name}: run the tests with coverage again")
    missed = {path: sorted(n for n in added[path] if lines.get(n) is False) for path, lines in known.items()}
    total = sum(number in lines for path, lines in known.items() for number in added[path])
    uncovered = sum(map(len, missed.values()))
    share = 100 * (total - uncovered) / total if total else 100
    if share >= context.options["min"]:
        return Allow()
    listed = [
        f"{show_path(path)}: {', '.join(_ranges(numbers))}" for path, numbers in missed.items() if numbers
    ]
    return Block(
        f"tests run {share:.0f}% of the {total} added lines, but at least {context.options['min']:g}% is required. "
        f"Not run:\n{list_findings(listed)}\n{ADVICE}"
    )


def _lines_of(path: str, hits: Mapping[str, Mapping[int, bool]]) -> Mapping[int, bool]:
    """Return what is known of a file; a report may name it from the root, or from a folder of sources."""
    ends = (name for name in hits if f"/{path}".endswith(f"/{name}") or f"/{name}".endswith(f"/{path}"))
    return hits.get(max(ends, key=len, default=""), {})


def read_report(name: str, text: str) -> dict[str, dict[int, bool]]:
    """Return for each file which of its lines were run: of Cobertura's XML, lcov, or the JSON of coverage.py."""
    found: dict[str, dict[int, bool]] = {}
    lines: dict[int, bool] = {}
    if name.endswith(".json"):
        try:
            for path, data in json.loads(text)["files"].items():
                found[path] = {
                    **dict.fromkeys(data["missing_lines"], False),
                    **dict.fromkeys(data["executed_lines"], True),
                }
        except (ValueError, LookupError, TypeError, AttributeError):
            return {}
        return found
    for path, number, count in _read_rows(name, text):
        if path:
            lines = found.setdefault(path.replace("\\", "/"), {})
        else:
            lines[int(number)] = lines.get(int(number), False) or count != "0"
    return found


def _read_rows(name: str, text: str) -> Iterator[tuple[str, str, str]]:
    if name.endswith(".xml"):
        yield from _XML.findall(text)
        return
    for match in re.finditer(r"^(?:SF:(.+)|DA:(\d+),(\d+).*)$", text, re.MULTILINE):
        yield match[1] or "", match[2] or "", match[3] or ""


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Yield `3` and `5-8`."""
    ends = [place for place, (one, two) in enumerate(pairwise(numbers)) if two != one + 1]
    for first, last in zip([0, *(place + 1 for place in ends)], [*ends, len(numbers) - 1], strict=True):
        yield str(numbers[first]) if first == last else f"{numbers[first]}-{numbers[last]}"


COVERAGE = Gate(
    name="coverage",
    summary="tests run the added lines",
    check=check_coverage,
    options=(
        GateOption(
            "min", "number", "the percentage of added lines that tests have to run", "PERCENT", default=80
        ),
        GateOption("report", "text", "the report file, if it has a different name", "FILE"),
    ),
    record=record_files,
)
