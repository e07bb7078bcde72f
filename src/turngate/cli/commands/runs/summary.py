"""The subagents in the registry as `turngate runs` presents them: chains of runs, a table of them, the details of one, and JSON."""

import contextlib
import itertools
import math
import os
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.cli.console.conversation_text import format_time
from turngate.cli.console.progress import print_above_progress
from turngate.cli.console.streams import paint
from turngate.core.conversation.subagent_run import LIVING_STATES, OPEN_STATES, SubagentRun
from turngate.core.events.stream_events import BLOCKED_REASONS
from turngate.core.text import printable, strip_controls, truncate
from turngate.errors import RegistryError, UsageError
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import OTHER_STATE_FOLDER, state_folder
from turngate.subagents.recorded_gates import describe_gates, recorded_gates
from turngate.subagents.registry import Registry, registry_exists

MIN_ID_CHARS = 8
MAX_ID_CHARS = 32  # of an id that Turngate makes

_STATE_LABELS = {
    "waiting": "waiting",
    "running": "running",
    "ended": "checking stop",
    "steering": "restarting",
    "replaced": "redirected",
    "final": "reporting",
    "announced": "reported",
    "killed": "killed",
    "given_up": "given up",
}
_OUTCOME_LABELS = {"ok": "done", "error": "failed", "timeout": "timed out", "killed": "killed"}


@frozen
class SubagentSummary:
    """All runs of one subagent for one task, oldest first."""

    runs: tuple[SubagentRun, ...]
    left: bool = False  # it is not finished, and its process has died
    # The process and the machine that run it, or `workers` if it waits for one; "": not known here.
    where: str = ""

    @property
    def id(self) -> str:
        return self.last.chain

    @property
    def last(self) -> SubagentRun:
        return next((run for run in reversed(self.runs) if run.state != "replaced"), self.runs[-1])

    @property
    def title(self) -> str:
        agent_type = self.last.agent_type or "no agent type"
        return printable(f"{self.last.label} ({agent_type})" if self.last.label else agent_type)

    @property
    def is_open(self) -> bool:
        return self.last.state in OPEN_STATES

    @property
    def state(self) -> str:
        return "left behind" if self.left and self.last.state in LIVING_STATES else state_label(self.last)

    @property
    def created(self) -> float:
        return min(run.created for run in self.runs)

    def seconds(self, now: float) -> float:
        ended = None if self.last.state in LIVING_STATES else self.last.ended
        return max(0.0, (now if ended is None else ended) - self.created)

    @property
    def project(self) -> str:
        return str(self.last.launch.get("project", ""))

    @property
    def recovery(self) -> str:
        """The command that recovers it if it was left behind."""
        if self.project.startswith("ssh://"):
            return f"turngate run --resume --ssh {shlex.quote(self.project)}"
        return f"turngate runs recover --project {self.project}"

    @property
    def has_unread_report(self) -> bool:
        """Return whether its report waits for its parent's session to be resumed."""
        return bool(self.last.announcement) and self.last.announced is not None and self.last.taken is None

    def matches(self, prefix: str) -> bool:
        """Return whether its id, its agent's id or a run's id starts with `prefix`."""
        ids = (self.id, self.last.agent_id, *(run.id for run in self.runs))
        return any(each.startswith(prefix) for each in ids)


def state_label(run: SubagentRun) -> str:
    if run.state == "done":
        if run.reason in BLOCKED_REASONS:
            return run.reason
        return _OUTCOME_LABELS.get(run.outcome or "error", str(run.outcome))
    return _STATE_LABELS.get(run.state, run.state)


def summarize(registry: Registry) -> list[SubagentSummary]:
    """Return every subagent in the registry, the newest last."""
    runs = sorted(registry.read("all"), key=lambda run: (run.chain, run.created, run.steer_count))
    living = registry.living({run.owner for run in runs})
    chains = [
        SubagentSummary(tuple(group)) for _, group in itertools.groupby(runs, key=lambda run: run.chain)
    ]
    summaries = [_place(chain, living) for chain in chains]
    return sorted(summaries, key=lambda summary: (summary.created, summary.id))


def _place(chain: SubagentSummary, living: Mapping[str, str]) -> SubagentSummary:
    if not chain.is_open or (place := living.get(chain.last.owner)):
        return replace(chain, where=place if chain.is_open and place else "")
    if chain.last.is_for_workers:
        return replace(chain, where="workers")  # it waits for one
    return replace(chain, left=chain.last.owner not in living)


def unique_prefix_length(summaries: Sequence[SubagentSummary]) -> int:
    """Return how many characters of their ids tell the subagents apart."""
    ids = [summary.id for summary in summaries]
    longest = min(max(map(len, ids), default=MIN_ID_CHARS), MAX_ID_CHARS)
    lengths = range(MIN_ID_CHARS, longest, 4)
    unique = (length for length in lengths if len({each[:length] for each in ids}) == len(ids))
    return next(unique, lengths.stop)


NO_SUBAGENTS = "there are no subagents; a session starts one with the Task tool"


def registry_setting() -> str | None:
    """Return the URL of the registry in the user's settings; no project can set it."""
    return load_layers(os.devnull, dialect="turngate", files=LOCAL).merge().registry


@contextlib.contextmanager
def open_registry() -> Iterator[Registry | None]:
    """Yield this user's registry, or None if there is no file; reading never creates one."""
    try:
        setting = registry_setting()
        if not registry_exists(state_folder(), setting):
            yield None
            return
        with os_errors_as_usage_errors(state_folder()):
            registry = Registry(state_folder(), print_above_progress, setting)
        with contextlib.closing(registry):
            if registry.store.notice:
                print(f"! {registry.store.notice}", file=sys.stderr)
            yield registry
    except RegistryError as error:
        has_advice = OTHER_STATE_FOLDER in str(error) or "postgres" in str(error)
        raise UsageError(str(error) if has_advice else f"{error}; repair it, {OTHER_STATE_FOLDER}") from None


def all_subagents() -> list[SubagentSummary]:
    with open_registry() as registry:
        return summarize(registry) if registry else []


@contextlib.contextmanager
def existing_registry() -> Iterator[Registry]:
    """Yield this user's registry; without a file there are no subagents, which is an error here."""
    with open_registry() as registry:
        if registry is None:
            raise UsageError(NO_SUBAGENTS)
        yield registry


# The table


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
