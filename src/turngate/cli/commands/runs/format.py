"""The output of `turngate runs`: a table, the details of one subagent, and both as JSON."""

import math
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from turngate.cli.commands.runs.summary import (
    MIN_ID_CHARS,
    SubagentSummary,
    state_label,
    unique_prefix_length,
)
from turngate.cli.console.streams import own_sequence
from turngate.core.conversation.subagent_run import LIVING_STATES, SubagentRun
from turngate.core.text import printable, strip_controls, truncate
from turngate.subagents.recorded_gates import describe_gates, recorded_gates

MAX_LINE_CHARS = 100
MAX_SECONDS = 100 * 365 * 86400.0  # a longer time is a mistake
UNKNOWN = "?"
STEERED = "steered by hand"  # as subagents/steering.py stores it
_COLUMNS = {"SUBAGENT": 30, "STATE": 13, "STARTED": 8, "TIME": 10, "REDIRECTS": 9, "SESSION": 8}
_DIM, _RESET = "\033[2m", "\033[0m"


# The table


def format_table(
    summaries: Sequence[SubagentSummary], now: float, *, with_runs: bool, colour: bool
) -> Iterator[str]:
    id_chars = unique_prefix_length(summaries)
    widths = {**_COLUMNS, "SUBAGENT": _COLUMNS["SUBAGENT"] - (id_chars - MIN_ID_CHARS)}
    yield "  " + _format_row("ID", id_chars, list(widths), widths)
    for summary in summaries:
        sequences = (_DIM, _RESET) if colour and not summary.is_open else ("", "")
        dim, reset = (own_sequence(each, sys.stdout) if each else "" for each in sequences)
        marker = "* " if summary.is_open else "  "
        cells = _cells(summary, now)
        yield dim + marker + _format_row(printable(summary.id)[:id_chars], id_chars, cells, widths) + reset
        for note in (*_notes(summary), *(_run_lines(summary) if with_runs else ())):
            yield dim + truncate(f"  {'':<{id_chars}}  {note}", MAX_LINE_CHARS) + reset
    yield ""
    yield _totals(summaries)


def _format_row(id_: str, id_chars: int, cells: Sequence[str], widths: dict[str, int]) -> str:
    texts = (
        f"  {truncate(cell, width):<{width}}" for cell, width in zip(cells, widths.values(), strict=True)
    )
    return (f"{id_:<{id_chars}}" + "".join(texts)).rstrip()


def _cells(summary: SubagentSummary, now: float) -> list[str]:
    return [
        summary.title,
        summary.state,
        _format_clock(summary.created, now),
        _format_seconds(summary.seconds(now)),
        _format_redirects(summary.last),
        printable(summary.last.parent)[: _COLUMNS["SESSION"]],
    ]


def _notes(summary: SubagentSummary) -> Iterator[str]:
    last = summary.last
    if last.parent_agent:
        yield f"started by subagent {printable(last.parent_agent)}"
    if why := _redirect_reason(last):
        yield why if why == STEERED else f"redirected: {why}"
    if last.error and last.outcome != "ok":
        yield f"{summary.state}: {printable(last.error)}"
    if status := _status(summary):
        yield status


def _status(summary: SubagentSummary) -> str:
    if summary.left:
        gates = describe_gates(recorded_gates(summary.last)) if summary.last.state in LIVING_STATES else ""
        where = f" where its gates are asked: {gates}" if gates else ""
        return f"its process died; `turngate runs recover` continues it{where}"
    return "its report waits until that session is resumed" if summary.has_unread_report else ""


def _run_lines(summary: SubagentSummary) -> Iterator[str]:
    for number, run in enumerate(summary.runs, 1):
        yield f"run {number}: {state_label(run)}{_format_duration(run)}: {printable(run.prompt)}"


def _totals(summaries: Sequence[SubagentSummary]) -> str:
    open_ = sum(summary.is_open for summary in summaries)
    left = sum(summary.left for summary in summaries)
    died = f", {left} of them left by a process that died" if left else ""
    return f"{open_} open (*){died}, {len(summaries) - open_} finished; details: `turngate runs show ID`"


# The details of one subagent


def format_details(summary: SubagentSummary, now: float) -> Iterator[str]:
    last = summary.last
    yield f"{summary.title}: {summary.state}"
    yield from _fields(_subagent_fields(summary, now))
    yield from _text("Task", last.task)
    for number, run in enumerate(summary.runs, 1):
        yield from _run_details(number, run, last.task)
    if last.state == "steering":
        yield from _text("\nNext prompt", last.next_prompt)
    if last.result:
        yield from _text("\nResult", last.result)
    if status := _status(summary):
        yield f"\n{status[0].upper()}{status[1:]}."


def _run_details(number: int, run: SubagentRun, task: str) -> Iterator[str]:
    cause = "" if not run.replaces else ", redirected by a hook" if run.by_hook else f", {STEERED}"
    yield f"\nRun {number} ({run.id[:8]}{cause}): {state_label(run)}{_format_duration(run)}"
    yield from _fields(_run_fields(run))
    if run.prompt != task:
        yield from _text("  Prompt", run.prompt, "    ")


def _fields(fields: dict[str, str]) -> Iterator[str]:
    return (f"  {name:<14}{printable(value)}" for name, value in fields.items() if value)


def _subagent_fields(summary: SubagentSummary, now: float) -> dict[str, str]:
    last, gates = summary.last, recorded_gates(summary.last)
    return {
        "id": summary.id,
        "subagent": last.agent_id,
        "session": last.parent,
        "parent": last.parent_agent,
        "project": summary.project,
        "model": str(last.launch.get("model", "")),
        "gates": describe_gates(gates) if gates.hooks or gates.names else "none: started without hooks",
        "started": _format_time("%Y-%m-%d %H:%M:%S", summary.created),
        "time": _format_seconds(summary.seconds(now)),
        "redirects": _format_redirects(last) if last.steer_count else "",
        "last reason": _redirect_reason(last),
        "recoveries": str(last.recoveries or ""),
        "transcript": last.transcript,
    }


def _run_fields(run: SubagentRun) -> dict[str, str]:
    usage = run.usage
    has_tokens = usage.input_tokens or usage.output_tokens
    return {
        "outcome": run.outcome or "",
        "reason": run.reason,
        "error": run.error,
        "tokens": f"{usage.input_tokens} in, {usage.output_tokens} out" if has_tokens else "",
        "tools": ", ".join(run.tools),
    }


def _text(name: str, text: str, indent: str = "  ") -> Iterator[str]:
    yield f"{name}:"
    yield textwrap.indent(strip_controls(text).rstrip() or "(nothing)", indent)


# JSON


def summary_json(summary: SubagentSummary, *, with_runs: bool) -> dict[str, Any]:
    last = summary.last
    return {
        "id": summary.id,
        "agent_id": last.agent_id,
        "agent_type": last.agent_type,
        "label": last.label,
        "state": last.state,
        "open": summary.is_open,
        "left": summary.left,
        "outcome": last.outcome,
        "reason": last.reason,
        "error": last.error,
        "redirects": last.steer_count,
        "limit": last.max_steers,
        "why": last.steer_why,
        "session": last.parent,
        "parent_agent": last.parent_agent,
        "project": summary.project,
        "gates": _gates_json(last),
        "background": last.background,
        "depth": last.depth,
        "created": _finite(summary.created),
        "ended": None if summary.is_open else _finite(last.ended),
        "task": last.task,
        "result": last.result,
        "report": "unread" if summary.has_unread_report else "read" if last.taken is not None else None,
        "transcript_path": last.transcript,
        **({"runs": [_run_json(run) for run in summary.runs]} if with_runs else {}),
    }


def _gates_json(run: SubagentRun) -> dict[str, Any]:
    gates = recorded_gates(run)
    return {"dialect": gates.dialect or None, "hooks": gates.hooks, "names": list(gates.names)}


def _run_json(run: SubagentRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "state": run.state,
        "prompt": run.prompt,
        "by_hook": run.by_hook,
        "created": _finite(run.created),
        "seconds": _finite(run.seconds),
        "outcome": run.outcome,
        "reason": run.reason,
        "error": run.error,
        "result": run.result,
        "usage": asdict(run.usage),
        "tools": list(run.tools),
    }


def _finite(number: float | None) -> float | None:
    """Return a number that JSON has, or None."""
    return number if number is not None and math.isfinite(number) else None


# Values


def _redirect_reason(run: SubagentRun) -> str:
    """Return why the chain was last redirected, without the line that marks a hook's prompt."""
    lines = (line for line in run.steer_why.split("\n") if not line.startswith("[Stop hook "))
    return printable(" ".join(lines))


def _format_redirects(run: SubagentRun) -> str:
    if not run.steer_count:
        return "-"
    return f"{run.steer_count} of {'any' if run.max_steers is None else run.max_steers}"


def _format_duration(run: SubagentRun) -> str:
    return "" if run.seconds is None else f" after {_format_seconds(run.seconds)}"


def _format_clock(then: float, now: float) -> str:
    is_today = _format_time("%Y-%m-%d", then) == _format_time("%Y-%m-%d", now)
    return _format_time("%H:%M:%S" if is_today else "%b %d", then)


def _format_time(form: str, then: float) -> str:
    """Return a time that any program may have written to the registry, or UNKNOWN if it is not one."""
    try:
        return time.strftime(form, time.localtime(then)) if then > 0 else UNKNOWN
    except (OverflowError, ValueError, OSError):
        return UNKNOWN


def _format_seconds(seconds: float) -> str:
    if not 0 <= seconds < MAX_SECONDS:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{int(seconds)} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // (24 * 60)} d {minutes // 60 % 24} h"
