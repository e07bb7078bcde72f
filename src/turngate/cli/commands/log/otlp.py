"""`turngate log --otlp URL`: send what the hooks did to an OpenTelemetry collector, as OTLP/HTTP JSON.

There is a span for each turn and each hook run, and an event for each verdict. The names are those of the GenAI
conventions: `invoke_agent`, and the event `gen_ai.evaluation.result` with what a hook decided. What they do not name begins
with `turngate.`. Ids come from the journal, so that a turn that is sent twice is the same span.
"""

import hashlib
import json
import os
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from turngate.core.hooks.http_policy import is_loopback
from turngate.core.redaction import make_redactor, secret_values
from turngate.core.text import describe_url
from turngate.errors import UsageError
from turngate.history.journals import RecordedStop, journal_folders, journal_stamp, read_journal, read_stops
from turngate.state.paths import state_folder
from turngate.tracing import HOOK_SPAN, TURN

FOLLOW_INTERVAL_S = 0.5
TIMEOUT_S = 10.0
MAX_ENTRIES = 500  # of one request
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # NAME=VALUE,NAME=VALUE, as of every exporter
# What a request of each kind holds, from the outermost list to the innermost.
LISTS = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}

Entry = dict[str, Any]  # a span or an event


def send_turns(url: str, folder: str, project: str | None, *, follow: bool, others: bool) -> int:
    """Send the turns of the session in this folder, and with `others` those of all sessions that end from now on."""
    collector, begun = Collector(url), time.time()
    stamps, sent = dict[str, tuple[float, int]](), set[str]()
    while True:
        for each in dict.fromkeys([folder, *(journal_folders(state_folder()) if others else ())]):
            stamp = journal_stamp(each)
            if stamp == stamps.get(each) or (each != folder and stamp[0] < begun):
                continue
            stamps[each] = stamp
            stops = read_stops(read_journal(each, project=project).records)
            found = [turn for turn in turns_of(stops) if each == folder or turn[-1].time >= begun]
            spans, events = turn_entries(os.path.basename(each), found)
            collector.send("traces", [span for span in spans if span["spanId"] not in sent])
            collector.send("logs", [event for event in events if event["spanId"] not in sent])
            sent |= {span["spanId"] for span in spans}
        if not follow:
            print(f"{len(sent)} span{'s' * (len(sent) != 1)} sent to {describe_url(collector.url)}")
            return 0
        time.sleep(FOLLOW_INTERVAL_S)


class Collector:
    """Receives OTLP/HTTP. Raises UsageError where that fails."""

    def __init__(self, url: str) -> None:
        parts, shown = urlsplit(url), f"--otlp {describe_url(url)}"
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{shown}: expected the address of a collector, such as http://localhost:4318")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise UsageError(f"{shown} is not encrypted: use https, or a collector on this machine")
        self.url = url.rstrip("/")
        pairs = (part.partition("=") for part in os.environ.get(HEADERS, "").split(","))
        self._headers = {name.strip(): value.strip() for name, equals, value in pairs if equals}
        self._redactor = make_redactor(secret_values(os.environ))

    def send(self, kind: str, entries: Sequence[Entry]) -> None:
        for start in range(0, len(entries), MAX_ENTRIES):
            text = json.dumps(request_body(kind, entries[start : start + MAX_ENTRIES], version("turngate")))
            data = (self._redactor.text(text) if self._redactor else text).encode()
            headers = {"Content-Type": "application/json", **self._headers}
            request = urllib.request.Request(f"{self.url}/v1/{kind}", data, headers)  # noqa: S310 - http or https, see above
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 - as above
                    response.read()
            except urllib.error.HTTPError as error:
                why = f"refused /v1/{kind}: {error.code} {error.reason}"
                raise UsageError(f"{describe_url(self.url)} {why}") from None
            except OSError as error:
                why = (
                    f"cannot be reached: {getattr(error, 'reason', None) or error}; is the collector running?"
                )
                raise UsageError(f"{describe_url(self.url)} {why}") from None


def request_body(kind: str, entries: Sequence[Entry], version: str) -> Entry:
    resources, scopes, innermost = LISTS[kind]
    service = _attributes({"service.name": "turngate", "service.version": version})
    scope = {"scope": {"name": "turngate"}, innermost: [*entries]}
    return {resources: [{"resource": {"attributes": service}, scopes: [scope]}]}


def turns_of(stops: Iterable[RecordedStop]) -> Iterator[list[RecordedStop]]:
    """Yield the stops of each turn that has ended: at a stop that no hook blocks, or at the limit."""
    turns = defaultdict[str, list[RecordedStop]](list)  # by the agent
    for stop in stops:
        turns[stop.agent].append(stop)
        if stop.result != "running" and (stop.result != "blocked" or stop.ended_by):
            yield turns.pop(stop.agent)


def turn_entries(session: str, turns: Iterable[Sequence[RecordedStop]]) -> tuple[list[Entry], list[Entry]]:
    """Return the spans of turns in which hooks ran, and the events of their verdicts."""
    spans, events = list[Entry](), list[Entry]()
    for turn in turns:
        if not (runs := [run for stop in turn for run in stop.runs]):
            continue
        last, began = turn[-1], min(run.begun for run in runs)
        trace, parent = _id(32, session, began, "trace"), _id(16, session, began, "turn")
        shared: Entry = {
            "gen_ai.conversation.id": session,
            "turngate.project": last.project,
            "turngate.event": last.event,
        }
        for run in runs:
            place = {"traceId": trace, "spanId": _id(16, session, run.begun, run.gate)}
            about = {**shared, "turngate.hook": run.gate, "turngate.outcome": run.label}
            about |= {} if run.exit_code is None else {"process.exit.code": run.exit_code}
            name, times = f"{HOOK_SPAN} {run.gate}", (run.begun, run.begun + run.seconds)
            spans.append(_span({**place, "parentSpanId": parent}, name, *times, about))
            result = {
                **shared,
                "gen_ai.evaluation.name": run.gate,
                "gen_ai.evaluation.score.label": run.label,
            }
            result |= {"gen_ai.evaluation.explanation": run.reason} if run.reason else {}
            result |= {"error.type": run.outcome} if run.label == "not_enforced" else {}
            event: Entry = {
                **place,
                "timeUnixNano": _nanoseconds(times[1]),
                "eventName": "gen_ai.evaluation.result",
            }
            event["severityNumber"] = 13 if run.label in ("blocked", "not_enforced") else 9  # WARN, INFO
            events.append({**event, "attributes": _attributes(result)})
        ended = {"turngate.ended_by": last.ended_by or "allowed", "turngate.continuations": len(turn) - 1}
        place = {"traceId": trace, "spanId": parent}
        spans.append(_span(place, "invoke_agent", began, last.time, {**shared, **TURN, **ended}))
    return spans, events


def _id(chars: int, *parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:chars]


def _span(place: Mapping[str, str], name: str, began: float, ended: float, about: Mapping[str, Any]) -> Entry:
    times = {"startTimeUnixNano": _nanoseconds(began), "endTimeUnixNano": _nanoseconds(ended)}
    return {**place, "name": name, "kind": 1, **times, "attributes": _attributes(about)}  # 1: internal


def _attributes(values: Mapping[str, Any]) -> list[Entry]:
    """Return attributes in the form of OTLP; an integer is a text in JSON."""
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]


def _nanoseconds(when: float) -> str:
    return str(int(when * 1_000_000_000))
