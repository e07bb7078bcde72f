"""`turngate log --otlp URL`: send what the hooks did to an OpenTelemetry collector, as OTLP/HTTP JSON.

There is a span for each turn and each hook run, and an event for each verdict. The names are those of the GenAI
conventions: `invoke_agent`, and the event `gen_ai.evaluation.result` with what a hook decided. What they do not name begins
with `turngate.`. Ids come from the records, so that a record that is sent twice is the same span.
"""

import json
import os
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.http_policy import is_loopback
from turngate.core.redaction import make_redactor, secret_values
from turngate.core.text import describe_url, truncate
from turngate.errors import UsageError
from turngate.history.journals import Record, block_id, hook_name, is_sound
from turngate.tracing import HOOK_SPAN, LABELS, TURN

TIMEOUT_S = 10.0
MAX_SPANS = 500  # of one request
MAX_REASON_CHARS = 4000
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # NAME=VALUE,NAME=VALUE, as of every exporter
# What a request of each kind holds, from the outermost list to the innermost.
LISTS = {
    "traces": ("resourceSpans", "scopeSpans", "spans"),
    "logs": ("resourceLogs", "scopeLogs", "logRecords"),
}


class OtlpLines:
    """Takes the place of the lines of `turngate log`: nothing is printed, and each complete turn is sent."""

    def __init__(self, url: str) -> None:
        parts, shown = urlsplit(url), f"--otlp {describe_url(url)}"
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{shown}: expected the address of a collector, such as http://localhost:4318")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise UsageError(f"{shown} is not encrypted: use https, or a collector on this machine")
        self.url, self.sent = url.rstrip("/"), 0
        pairs = (part.partition("=") for part in os.environ.get(HEADERS, "").split(","))
        self._headers = {name.strip(): value.strip() for name, equals, value in pairs if equals}
        self._turns = defaultdict[object, TurnSpans](TurnSpans)
        self._redactor = make_redactor(secret_values(os.environ))

    def format(self, record: dict[str, Any]) -> Iterator[str]:
        self._turns[record.get("session_id")].add(record)
        return iter(())

    def unfinished(self, *, running: bool) -> list[dict[str, Any]]:  # noqa: ARG002 - what runs is sent when it has ended
        """Send the turns that have ended since the last call."""
        for turns in self._turns.values():
            for kind, entries in (("traces", turns.spans), ("logs", turns.events)):
                for start in range(0, len(entries), MAX_SPANS):
                    self._send(kind, entries[start : start + MAX_SPANS])
            self.sent += len(turns.spans)
            turns.spans, turns.events = [], []
        return []

    def _send(self, kind: str, entries: Sequence[Mapping[str, Any]]) -> None:
        text = json.dumps(request_body(kind, entries, version("turngate")))
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
            why = f"cannot be reached: {getattr(error, 'reason', None) or error}; is the collector running?"
            raise UsageError(f"{describe_url(self.url)} {why}") from None


def request_body(kind: str, entries: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    resources, scopes, innermost = LISTS[kind]
    service = _attributes({"service.name": "turngate", "service.version": version})
    scope = {"scope": {"name": "turngate"}, innermost: [*entries]}
    return {resources: [{"resource": {"attributes": service}, scopes: [scope]}]}


class TurnSpans:
    """Makes spans and events of the records of one session, in their order. A turn ends with a verdict that no hook blocks, or with its end."""

    def __init__(self) -> None:
        self.spans, self.events = list[dict[str, Any]](), list[dict[str, Any]]()
        self._runs, self._continuations = list[Record](), 0  # of the turn that goes on

    def add(self, record: Record) -> None:
        """Add a record. Raises ValueError for one that no journal of ours holds."""
        if not is_sound(record):
            raise ValueError(record)
        kind = record.get("kind") if record.get("event", "Stop") in STOP_EVENTS else None
        if kind == "hook":
            self._runs.append(record)
        elif kind == "verdict" and record.get("verdict") == "continue":
            self._continuations += 1
        elif kind in ("verdict", "turn_end") and self._runs:
            self._end_turn(record)

    def _end_turn(self, end: Record) -> None:
        trace, turn = block_id(self._runs[0], 32, "trace"), block_id(self._runs[0], 16, "turn")
        shared = {
            "gen_ai.conversation.id": str(end.get("session_id")),
            "turngate.project": str(end.get("project") or ""),
            "turngate.event": str(end.get("event", "Stop")),
        }
        for record in self._runs:
            name, outcome = hook_name(record.get("hook") or {}), str(record.get("outcome"))
            label = LABELS.get(outcome, outcome)  # of a later version
            place, code = {"traceId": trace, "spanId": block_id(record, 16)}, record.get("exit_code")
            about: dict[str, Any] = {**shared, "turngate.hook": name, "turngate.outcome": label}
            about |= {"process.exit.code": code} if isinstance(code, int) else {}
            self.spans.append(
                _span(
                    {**place, "parentSpanId": turn},
                    f"{HOOK_SPAN} {name}",
                    _start(record),
                    record["time"],
                    about,
                )
            )
            reason = truncate(str(record.get("reason") or ""), MAX_REASON_CHARS)
            result = {**shared, "gen_ai.evaluation.name": name, "gen_ai.evaluation.score.label": label}
            result |= {"gen_ai.evaluation.explanation": reason} if reason else {}
            result |= {"error.type": outcome} if label == "not_enforced" else {}
            self.events.append(
                {
                    **place,
                    "timeUnixNano": _nanoseconds(record["time"]),
                    "eventName": "gen_ai.evaluation.result",
                    "severityNumber": 13 if label in ("blocked", "not_enforced") else 9,  # WARN, INFO
                    "attributes": _attributes(result),
                }
            )
        numbers = {"turngate.continuations": self._continuations}
        about = {**shared, **TURN, "turngate.ended_by": str(end.get("ended_by") or "allowed"), **numbers}
        place, began = {"traceId": trace, "spanId": turn}, min(map(_start, self._runs))
        self.spans.append(_span(place, "invoke_agent", began, end["time"], about))
        self._runs, self._continuations = [], 0


def _start(record: Record) -> float:
    began: float = record["time"] - record.get("seconds", 0)
    return began


def _span(
    place: Mapping[str, str], name: str, began: float, ended: float, about: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        **place,
        "name": name,
        "kind": 1,  # internal
        "startTimeUnixNano": _nanoseconds(began),
        "endTimeUnixNano": _nanoseconds(ended),
        "attributes": _attributes(about),
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes in the form of OTLP; an integer is a text in JSON."""
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
    ]


def _nanoseconds(when: float) -> str:
    return str(int(when * 1_000_000_000))
