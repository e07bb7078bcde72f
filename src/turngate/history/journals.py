"""Reads the journals of sessions: their lines, and the stops of agents, which all commands about the past show, count, send and ask again."""

import contextlib
import functools
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeGuard

from turngate._frozen_dataclass import frozen
from turngate.core.constants import AGENT_KEEPS, GATES_RUN_SESSION, STOP_EVENTS
from turngate.core.events.hook_input import UNNAMED_SESSION
from turngate.core.hooks.kinds import KINDS
from turngate.core.text import truncate
from turngate.core.verdict.json_output import recorded_gate
from turngate.state.files import open_regular_file
from turngate.state.journal import JOURNAL_FILE, MAX_JOURNAL_BYTES, OLDER_JOURNAL_FILE
from turngate.state.process_stat import ProcessId, is_alive
from turngate.tracing import LABELS

MAX_TEXT_CHARS = 4000  # of a reason or a prompt
MAX_TIME = 1 << 33  # seconds: a later one is no time
# The first of these keys that the record of a hook without an id has is its name; `name` is that of a callback.
_NAME_KEYS = ("name", *(hook.body for hook in KINDS.values()), "type")
_START = b'"kind":"start"'  # of a run, which its end repeats

_decode = json.JSONDecoder().scan_once  # type: ignore[attr-defined] # two thirds of the time of json.loads
_NUMBER = (int, float)  # a union takes three times as long
_NO_HOOK: dict[str, Any] = {}

Record = dict[str, Any]


@frozen
class JournalFile:
    """The records of one session, oldest first, and how many lines could not be read."""

    records: tuple[Record, ...]
    damaged: int


def journal_folders(state: str, *, every: bool = False) -> list[str]:
    """Return the folders of all sessions in which an agent may have stopped, or `every` one, by name; each may hold a journal."""
    try:
        names = sorted(os.listdir(os.path.join(state, "sessions")))
    except FileNotFoundError:
        return []
    by_person = (UNNAMED_SESSION, GATES_RUN_SESSION)
    return [
        os.path.join(state, "sessions", name) for name in names if every or not name.startswith(by_person)
    ]


def read_journal(
    folder: str, since: float = 0, *, starts: bool = False, project: str | None = None
) -> JournalFile:
    """Read the journal of a session, if it was written to after `since`; with `starts`, also those of hook runs.

    `project`: only what happened there.
    """
    records, damaged = list[Record](), 0
    for line in _lines(folder, since):
        if not line.strip() or (_START in line and not starts):
            continue
        text = line.decode("utf-8", "replace").strip()
        try:
            record, end = _decode(text, 0)
        except (ValueError, StopIteration, RecursionError):  # such as what a killed process has written
            record, end = None, -1
        if end != len(text) or not is_sound(record):
            damaged += 1
        elif record["time"] >= since and project in (None, record.get("project")):
            records.append(record)
    return JournalFile(tuple(records), damaged)


def _lines(folder: str, since: float) -> Iterator[bytes]:
    for name in (OLDER_JOURNAL_FILE, JOURNAL_FILE):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if os.stat(path := os.path.join(folder, name)).st_mtime >= since:
                # A line that is longer than this is none of ours.
                with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
                    yield from iter(functools.partial(file.readline, MAX_JOURNAL_BYTES), b"")


def is_sound(record: Any) -> bool:
    """Return whether a record has a time and, if it is about a hook, a name and a duration."""
    if not (isinstance(record, dict) and is_time(record.get("time")) and is_time(record.get("seconds", 0))):
        return False
    hook = record.get("hook", _NO_HOOK)
    return isinstance(hook, dict) and isinstance(hook.get("id", ""), str)


def is_time(value: Any) -> TypeGuard[float]:
    """Return whether a value of a record can be a time or a duration."""
    return isinstance(value, _NUMBER) and 0 <= value < MAX_TIME


def hook_name(hook: Mapping[str, Any]) -> str:
    """Return the name of a hook from its record."""
    name: str = hook.get("id") or ""
    if not name and hook.get("type") == "gate":
        return recorded_gate(hook)
    return name or next((hook[key] for key in _NAME_KEYS if hook.get(key)), "")


def journal_stamp(folder: str) -> tuple[float, int]:
    """Return what is the same only if the journal is, and the time of its last change first; (0, 0): there is none."""
    newest, size = 0.0, 0
    # In this order: a rotation replaces the older file by the newest, which does not exist until the next line.
    for name in (JOURNAL_FILE, OLDER_JOURNAL_FILE):
        with contextlib.suppress(OSError):
            info = os.stat(os.path.join(folder, name))
            newest, size = max(newest, info.st_mtime), size + info.st_size
    return newest, size


def block_id(record: Record) -> str:
    """Return the id by which `turngate log --wrong` names the block of this record."""
    text = f"{record.get('session_id')}\0{record['time']!r}\0{hook_name(record.get('hook') or {})}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


# Stops

# overridden: the turn ended although a hook blocked; accepted: so it did, and a person accepts it; not enforced: it ended,
# and a gate gave no decision.
StopResult = Literal[
    "allowed", "blocked", "overridden", "accepted", "not enforced", "halted", "cached", "running"
]


@frozen
class RecordedRun:
    """One run of a hook at a stop. `wrong`: what a person said of its block, if anything."""

    gate: str
    outcome: str  # a `HookOutcome`, "running" or "interrupted"
    begun: float
    seconds: float
    reason: str = ""
    limit: float | None = None  # seconds that it may take
    block: str = ""  # the id by which `turngate log --wrong` names it
    wrong: bool | None = None
    why: str = ""
    kept: bool = False  # it passed because the agent said that the user wants it this way
    tokens: int = 0
    cost_usd: float | None = None
    exit_code: int | None = None

    @property
    def label(self) -> str:
        return LABELS.get(self.outcome, self.outcome)  # of a later version


@frozen
class RecordedStop:
    """One stop of an agent: its answer, what the hooks decided, and what came next."""

    time: float
    result: StopResult
    runs: tuple[RecordedRun, ...]
    agent: str = ""  # the id of the subagent that stopped; "": the main agent
    agent_type: str = ""
    answer: str = ""
    prompt: str = ""  # with which the agent continued
    skipped: tuple[tuple[str, str], ...] = ()  # gates that did not run against their author's intent, and why
    ended_by: str = ""
    end: str = ""  # why the turn ended, if not because everything passed
    event: str = "Stop"
    host: str = ""
    project: str = ""
    tree: Mapping[str, Any] | None = None  # of the record of its files, if they are recorded

    @property
    def blocked_by(self) -> list[str]:
        return [run.gate for run in self.runs if run.outcome == "block"]


def read_stops(records: Sequence[Record]) -> list[RecordedStop]:
    """Return the stops of one session, oldest first; one whose gates still run is the last."""
    runs, started = defaultdict[_Agent, list[RecordedRun]](list), dict[str, Record]()
    stops, marks = list[RecordedStop](), {str(each.get("block")): each for each in records if "wrong" in each}
    last = dict[_Agent, int]()  # the newest stop of each agent
    for record in records:
        if record.get("event", "Stop") not in STOP_EVENTS:
            continue
        agent = _agent(record)
        match record.get("kind"):
            case "start":
                started[str(record.get("run"))] = record
            case "hook":
                started.pop(str(record.get("run")), None)
                runs[agent].append(_run(record, str(record.get("outcome")), marks))
            case "verdict" | "cached":
                last[agent] = len(stops)
                stops.append(_stop(record, runs.pop(agent, []), agent))
            case "turn_end" if agent in last:
                ended_by, stop = str(record.get("ended_by") or ""), stops[last[agent]]
                result: StopResult = "overridden" if ended_by in ("capped", "stalled") else stop.result
                end = _text(record, "reason") or stop.end
                stops[last[agent]] = replace(stop, result=result, ended_by=ended_by, end=end)
            case "accepted" if agent in last and stops[last[agent]].result == "overridden":
                why = f"A person accepted it: {_text(record, 'why')}"
                stops[last[agent]] = replace(stops[last[agent]], result="accepted", end=why)
            case _:
                pass
    running = defaultdict[_Agent, list[RecordedRun]](list)
    for record in filter(_still_runs, started.values()):
        running[_agent(record)].append(_run(record, "running", marks))
        project = str(record.get("project") or "")
    for agent, open_runs in running.items():
        begun, every = max(run.begun for run in open_runs), (*runs.get(agent, ()), *open_runs)
        stops.append(RecordedStop(begun, "running", every, *agent, project=project))
    return stops


_Agent = tuple[str, str]  # the id and the type of a subagent


def _agent(record: Record) -> _Agent:
    known = "agent_id" in record  # most have none
    return (str(record["agent_id"] or ""), str(record.get("agent_type") or "")) if known else ("", "")


def _run(record: Record, outcome: str, marks: Mapping[str, Record]) -> RecordedRun:
    hook, seconds = record.get("hook") or {}, float(record.get("seconds", 0))
    limit, block, more = hook.get("timeout"), "", dict[str, Any]()
    if outcome == "block":
        block = block_id(record)
        if mark := marks.get(block):
            more |= {"wrong": bool(mark["wrong"]), "why": _text(mark, "why")}
    if isinstance(spent := record.get("evaluation"), dict):
        tokens, cost = (spent.get("input_tokens"), spent.get("output_tokens")), spent.get("cost_usd")
        more["tokens"] = sum(each for each in tokens if isinstance(each, int))
        more["cost_usd"] = cost if isinstance(cost, int | float) else None
    if (notice := record.get("notice")) and AGENT_KEEPS in str(notice):
        more["kept"] = True
    if isinstance(code := record.get("exit_code"), int):
        more["exit_code"] = code
    reason, begun = _text(record, "reason") if "reason" in record else "", record["time"] - seconds
    limit = limit if is_time(limit) else None
    return RecordedRun(str(hook_name(hook)), outcome, begun, seconds, reason, limit, block, **more)


def _stop(record: Record, runs: Sequence[RecordedRun], agent: _Agent) -> RecordedStop:
    skipped = tuple(_skipped_gates(record))
    result: StopResult = "allowed"
    if record.get("kind") == "cached":
        result = "cached"
    elif record.get("verdict") == "continue":
        result = "blocked"
    elif record.get("ended_by") in ("halted", "checkpoint"):
        result = "halted"
    elif record.get("unenforced") or any(run.label == "not_enforced" for run in runs):
        result = "not enforced"
    count = record.get("runs")  # those before belong to a stop whose process was killed
    return RecordedStop(
        record["time"],
        result,
        tuple(runs[-count:] if isinstance(count, int) and count else runs),
        *agent,
        answer=_text(record, "answer"),
        prompt=_text(record, "prompt"),
        skipped=skipped,
        ended_by=str(record.get("ended_by") or ""),
        end=_text(record, "stop_reason"),
        event=str(record.get("event", "Stop")),
        host=str(record.get("host") or ""),
        project=str(record.get("project") or ""),
        tree=_tree(record) if "tree" in record else None,
    )


def _skipped_gates(verdict: Record) -> Iterator[tuple[str, str]]:
    """Yield the gates that were skipped against the intent of their author, and why; of them there is no other record."""
    found = verdict.get("unenforced")
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and each.get("outcome") == "skipped":
            yield str(each.get("hook")), truncate(str(each.get("why") or ""), MAX_TEXT_CHARS)


def _tree(record: Record) -> Mapping[str, Any] | None:
    match record["tree"]:
        case {
            "ref": str(ref),
            "transcript": str(),
            "bytes": int(),
            "answer": str(),
            "outcomes": dict(),
        } as tree:
            return tree if re.fullmatch(r"refs/turngate/stops/[\w-]+/\d{1,9}", ref) else None
        case _:
            return None


def stops_with_files(stops: Iterable[RecordedStop]) -> dict[int, RecordedStop]:
    """Return the stops whose files are recorded, by their number in the session."""
    return {int(each.tree["ref"].rpartition("/")[2]): each for each in stops if each.tree}


def _still_runs(start: Record) -> bool:
    """Return whether the process is there of which this is the start of a hook."""
    try:
        pid, began = start["process"]
        return is_alive(ProcessId(int(pid), str(began)))
    except (LookupError, TypeError, ValueError):
        return False


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return truncate(value, MAX_TEXT_CHARS) if isinstance(value, str) else ""
