"""The gate `outputs`: the deliverables of an agent exist, are new and are not empty."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from turngate.core.answers.report_types import Exited
from turngate.core.globs import matches_glob, matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import show_path
from turngate.gates.project_files import FOREIGN_FOLDERS, stdout_of
from turngate.gates.run_commands import FilesUnreadable
from turngate.gates.session_changes import session_start

PROBLEM = "the project's files cannot be listed"
UNKNOWN_START = "when the agent has begun is not known, so the files may be old"
MAX_NAMES = 3  # of one glob
MAX_TIME = 2**32  # of files, on some file systems

# Prints each file with what is wrong with it. $1: the start, as for `touch -t`; $2: the least number of bytes.
# Also ignored files: what is built often is.
LIST_OUTPUTS = f"""\
start=$(mktemp)
trap 'rm -f "$start"' EXIT
TZ=UTC0 touch -t "$1" "$start" || exit
find . {FOREIGN_FOLDERS} -prune -o -type f \\( -size -"$2"c -exec printf 'small %s\\0' {{}} + \\
    -o -newer "$start" -exec printf 'good %s\\0' {{}} + -o -exec printf 'old %s\\0' {{}} + \\)
"""


async def check_outputs(context: GateContext) -> Decision:
    start = None if context.options["any-age"] else await _find_start(context)
    files = await _list_outputs(context, start or 0)
    problems = list(_find_problems(context.options["globs"], files, context.options["min-bytes"]))
    if problems:
        return Block(f"these outputs are missing:\n{list_findings(problems)}\nWrite them before you finish.")
    return Allow(UNKNOWN_START if start is None and not context.options["any-age"] else None)


async def record_time(context: GateContext) -> Mapping[str, Any]:
    return {"time": await _read_clock(context)}


def _find_problems(globs: Sequence[str], files: Mapping[str, str], min_bytes: int) -> Iterator[str]:
    """Yield what is wrong with each glob that names no good file."""
    words = {
        "small": "is empty" if min_bytes <= 1 else f"has less than {min_bytes} bytes",
        "old": "is older than this session",
    }
    for glob in globs:
        names = [name for name in files if matches_glob(glob, name) and matches_globs(globs, name)]
        if glob.startswith("!") or any(files[name] == "good" for name in names):
            continue
        if not names:
            yield f"{show_path(glob)}: there is no such file"
        for name in names[:MAX_NAMES]:
            yield f"{show_path(name)} {words[files[name]]}"


async def _find_start(context: GateContext) -> float | None:
    """Return when the agent has begun, by the clock of the machine with the project."""
    began = session_start(context)
    if began is not None:
        return await _read_clock(context) - (context.now - began)
    recorded = (context.state.start or {}).get("time")
    return float(recorded) if isinstance(recorded, int | float) else None


async def _read_clock(context: GateContext) -> int:
    text = stdout_of(await context.commands.run_script("date +%s"), "the clock cannot be read").strip()
    if not text.isdecimal():
        raise FilesUnreadable(f"the clock cannot be read: {text!r}")
    return int(text)


async def _list_outputs(context: GateContext, start: float) -> dict[str, str]:
    """Return what each file is: good, old or small. Files that cannot be listed are not there for this gate."""
    moment = datetime.fromtimestamp(min(max(start, 0), MAX_TIME), UTC).strftime("%Y%m%d%H%M.%S")
    report = await context.commands.run_script(LIST_OUTPUTS, moment, str(int(context.options["min-bytes"])))
    if isinstance(report, Exited) and report.code == 1 and report.stdout:
        report = Exited(0, report.stdout, truncated=report.truncated)
    entries = (entry.partition(" ./") for entry in stdout_of(report, PROBLEM).split("\0") if entry)
    return {name: state for state, _, name in sorted(entries, key=lambda entry: entry[2])}


OUTPUTS = Gate(
    name="outputs",
    summary="the agent's deliverables exist, are new and are not empty",
    check=check_outputs,
    options=(
        GateOption("min-bytes", "number", "minimum size of a file in bytes", "N", default=1),
        GateOption("any-age", "flag", "a file may be older than the session"),
    ),
    operands=GateOption("globs", "texts", "each has to match at least one output", "GLOB…", required=True),
    record=record_time,
)
