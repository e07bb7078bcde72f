"""The output of `turngate runs`: a table, the details of one subagent, and both as JSON."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from turngate.cli.commands.runs.summary import (
    MIN_ID_CHARS,
    SubagentSummary,
    state_label,
    unique_prefix_length,
)
from turngate.cli.console.conversation_text import format_time
from turngate.cli.console.streams import paint
from turngate.core.conversation.subagent_run import LIVING_STATES, SubagentRun
from turngate.core.text import printable, strip_controls, truncate
from turngate.subagents.recorded_gates import describe_gates, recorded_gates

MAX_LINE_CHARS = 100
WHERE_CHARS = 14  # the column is there if a registry on PostgreSQL names machines
STEERED = "steered by hand"  # as subagents/steering.py stores it
_COLUMNS = {"SUBAGENT": 30, "STATE": 13, "STARTED": 8, "TIME": 10, "REDIRECTS": 9, "SESSION": 8}


# The table


def format_table(summaries: Sequence[SubagentSummary], now: float, *, with_runs: bool) -> Iterator[str]:
    id_chars = unique_prefix_length(summaries)
    has_places = any(" on " in summary.where or summary.where == "workers" for summary in summaries)
    narrower = id_chars - MIN_ID_CHARS + (WHERE_CHARS + 2 if has_places else 0)
    widths = {"ID": id_chars, **_COLUMNS, "SUBAGENT": max(6, _COLUMNS["SUBAGENT"] - narrower)}
    widths |= {"WHERE": WHERE_CHARS} if has_places else {}
    yield "  " + _format_row(list(widths), widths.values())
    for summary in summaries:
        marker, style = ("* ", "plain") if summary.is_open else ("  ", "dim")
        where = [printable(summary.where.rpartition(" on ")[2])] if has_places else []
        cells = [printable(summary.id)[:id_chars], *_cells(summary, now), *where]
        yield paint(marker + _format_row(cells, widths.values()), style)
        for note in _notes(summary, with_runs=with_runs):
            yield paint(truncate(f"  {'':<{id_chars}}  {note}", MAX_LINE_CHARS), style)
    open_ = sum(summary.is_open for summary in summaries)
    left = sum(summary.left for summary in summaries)
    died = f", {left} of them left by a process that died" if left else ""
    yield ""
    yield f"{open_} open (*){died}, {len(summaries) - open_} finished; details: `turngate runs show ID`"


def _format_row(cells: Iterable[str], widths: Iterable[int]) -> str:
    texts = (f"{truncate(cell, width):<{width}}" for cell, width in zip(cells, widths, strict=True))
    return "  ".join(texts).rstrip()


def _cells(summary: SubagentSummary, now: float) -> list[str]:
    is_today = _format_time(summary.created, "%Y-%m-%d") == _format_time(now, "%Y-%m-%d")
    return [
        summary.title,
        summary.state,
        _format_time(summary.created, "%H:%M:%S" if is_today else "%b %d"),
        _format_seconds(summary.seconds(now)),
        _format_redirects(summary.last),
        printable(summary.last.parent)[: _COLUMNS["SESSION"]],
    ]


def _notes(summary: SubagentSummary, *, with_runs: bool) -> Iterator[str]:
    last = summary.last
    if last.parent_agent:
        yield f"started by subagent {printable(last.parent_agent)}"
    if why := _redirect_reason(last):
        yield why if why == STEERED else f"redirected: {why}"
    if last.error and last.outcome != "ok":
        yield f"{summary.state}: {printable(last.error)}"
    if status := _status(summary):
        yield status
    for number, run in enumerate(summary.runs if with_runs else (), 1):
        yield f"run {number}: {state_label(run)}{_format_duration(run)}: {printable(run.prompt)}"


def _status(summary: SubagentSummary) -> str:
    if summary.left:
        gates = describe_gates(recorded_gates(summary.last)) if summary.last.state in LIVING_STATES else ""
        where = f" where its gates are asked: {gates}" if gates else ""
        return f"its process died; `turngate runs recover` continues it{where}"
    return "its report waits until that session is resumed" if summary.has_unread_report else ""


# The details of one subagent


def format_details(summary: SubagentSummary, now: float) -> Iterator[str]:
    last, gates = summary.last, recorded_gates(summary.last)
    yield f"{summary.title}: {summary.state}"
    about = {
        "id": summary.id,
        "subagent": last.agent_id,
        "session": last.parent,
        "parent": last.parent_agent,
        "project": summary.project,
        "model": str(last.launch.get("model", "")),
        "gates": describe_gates(gates) if gates.hooks or gates.names else "none: started without hooks",
        "where": summary.where,
        "started": _format_time(summary.created),
        "time": _format_seconds(summary.seconds(now)),
        "redirects": _format_redirects(last) if last.steer_count else "",
        "last reason": _redirect_reason(last),
        "recoveries": str(last.recoveries or ""),
        "transcript": last.transcript,
    }
    yield from _fields(about)
    yield from _text("Task", last.task)
    for number, run in enumerate(summary.runs, 1):
        cause = "" if not run.replaces else ", redirected by a hook" if run.by_hook else f", {STEERED}"
        yield f"\nRun {number} ({run.id[:8]}{cause}): {state_label(run)}{_format_duration(run)}"
        usage = run.usage
        has_tokens = usage.input_tokens or usage.output_tokens
        about = {
            "outcome": run.outcome or "",
            "reason": run.reason,
            "error": run.error,
            "tokens": f"{usage.input_tokens} in, {usage.output_tokens} out" if has_tokens else "",
            "tools": ", ".join(run.tools),
        }
        yield from _fields(about)
        if run.prompt != last.task:
            yield from _text("  Prompt", run.prompt, "    ")
    if last.state == "steering":
        yield from _text("\nNext prompt", last.next_prompt)
    if last.result:
        yield from _text("\nResult", last.result)
    if status := _status(summary):
        yield f"\n{status[0].upper()}{status[1:]}."


def _fields(fields: dict[str, str]) -> Iterator[str]:
    return (f"  {name:<14}{printable(value)}" for name, value in fields.items() if value)


def _text(name: str, text: str, indent: str = "  ") -> Iterator[str]:
    yield f"{name}:"
    yield textwrap.indent(strip_controls(text).rstrip() or "(nothing)", indent)


# JSON


def summary_json(summary: SubagentSummary, *, with_runs: bool) -> dict[str, Any]:
    last, gates = summary.last, recorded_gates(summary.last)
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
        "where": summary.where or None,
        "gates": {"dialect": gates.dialect or None, "hooks": gates.hooks, "names": list(gates.names)},
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


def _format_time(then: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return format_time(then, form) if then > 0 else "?"


def _format_seconds(seconds: float) -> str:
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
