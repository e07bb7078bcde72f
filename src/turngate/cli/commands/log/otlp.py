"""`turngate log --otlp URL`: send what the hooks did to an OpenTelemetry collector, as OTLP/HTTP JSON.

There is a span for each turn and each hook run, and an event for each verdict. The names are those of the GenAI
conventions: `invoke_agent`, and the event `gen_ai.evaluation.result` with what a hook decided. What they do not name begins
with `turngate.`. Ids come from the records, so that a record that is sent twice is the same span.
"""

import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks.http_policy import is_loopback
from turngate.core.redaction import make_redactor, secret_values
from turngate.core.text import describe_url, truncate
from turngate.errors import UsageError
from turngate.history.journals import Record, hook_name, is_sound
from turngate.tracing import HOOK_SPAN, LABELS, TURN

TIMEOUT_S = 10.0
MAX_SPANS = 500  # of one request
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"  # NAME=VALUE,NAME=VALUE, as of every exporter


class OtlpLines:
    """Takes the place of the lines of `turngate log`: nothing is printed, and each complete turn is sent."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"--otlp {url}: expected the address of a collector, such as http://localhost:4318"
            )
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise UsageError(
                f"--otlp {describe_url(url)} is not encrypted: use https, or a collector on this machine"
            )
        self.url, self.sent = url.rstrip("/"), 0
        self._headers = _headers(os.environ.get(HEADERS, ""))
        self._turns, self._version = dict[object, TurnSpans](), version("turngate")
        self._redactor = make_redactor(secret_values(os.environ))

    def format(self, record: dict[str, Any]) -> Iterator[str]:
        self._turns.setdefault(record.get("session_id"), TurnSpans()).add(record)
        return iter(())

    def unfinished(self, *, running: bool) -> list[dict[str, Any]]:  # noqa: ARG002 - what runs is sent when it has ended
        """Send the turns that have ended since the last call."""
        for turns in self._turns.values():
            while turns.spans:
                self._send("v1/traces", trace_request(turns.spans[:MAX_SPANS], self._version))
                self.sent += len(turns.spans[:MAX_SPANS])
                del turns.spans[:MAX_SPANS]
            while turns.events:
                self._send("v1/logs", log_request(turns.events[:MAX_SPANS], self._version))
                del turns.events[:MAX_SPANS]
        return []

    def _send(self, path: str, body: dict[str, Any]) -> None:
        text = json.dumps(body)
        data = (self._redactor.text(text) if self._redactor else text).encode()
        headers = {"Content-Type": "application/json", **self._headers}
        request = urllib.request.Request(f"{self.url}/{path}", data, headers)  # noqa: S310 - http or https, see above
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 - as above
                response.read()
        except urllib.error.HTTPError as error:
            raise UsageError(
                f"{describe_url(self.url)} refused /{path}: {error.code} {error.reason}"
            ) from None
        except OSError as error:
            why = getattr(error, "reason", None) or error
            raise UsageError(
                f"{describe_url(self.url)} cannot be reached: {why}; is the collector running?"
            ) from None


def _headers(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(","))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


# Spans and events

MAX_REASON_CHARS = 4000
SCOPE = {"name": "turngate"}
_NS = 1_000_000_000


class TurnSpans:
    """Makes spans and events of the records of one session, in their order. A turn ends with a verdict that no hook blocks, or with its end."""

    def __init__(self) -> None:
        self.spans = list[dict[str, Any]]()
        self.events = list[dict[str, Any]]()
        self._runs = list[Record]()  # of the turn that goes on
        self._first: Record | None = None
        self._continuations = 0

    def add(self, record: Record) -> None:
        """Add a record. Raises ValueError for one that no journal of ours holds."""
        if not is_sound(record):
            raise ValueError(record)
        if record.get("event", "Stop") not in STOP_EVENTS:
            return
        kind = record.get("kind")
        if kind == "hook":
            self._first = self._first or record
            self._runs.append(record)
        elif kind == "verdict" and record.get("verdict") == "continue":
            self._continuations += 1
        elif kind in ("verdict", "turn_end") and self._first:
            self._end_turn(record)

    def _end_turn(self, end: Record) -> None:
        first = self._first or end
        trace, turn = _identity(first, 32, "trace"), _identity(first, 16, "turn")
        event = str(end.get("event", "Stop"))
        shared = {
            "gen_ai.conversation.id": str(end.get("session_id")),
            "turngate.project": str(end.get("project") or ""),
        }
        shared["turngate.event"] = event
        for record in self._runs:
            self._add_run(record, trace, turn, shared)
        about: dict[str, Any] = {**shared, **TURN, "turngate.ended_by": str(end.get("ended_by") or "allowed")}
        about["turngate.continuations"] = self._continuations
        began = min(record["time"] - record.get("seconds", 0) for record in (first, *self._runs))
        self.spans.append(_span(trace, turn, None, "invoke_agent", began, end["time"], about))
        self._runs, self._first, self._continuations = [], None, 0

    def _add_run(self, record: Record, trace: str, turn: str, shared: Mapping[str, str]) -> None:
        name, outcome = hook_name(record.get("hook") or {}), str(record.get("outcome"))
        label = LABELS.get(outcome, outcome)  # type: ignore[call-overload] # of a later version
        identity, code = _identity(record, 16), record.get("exit_code")
        about: dict[str, Any] = {**shared, "turngate.hook": name, "turngate.outcome": label}
        about |= {"process.exit.code": code} if isinstance(code, int) else {}
        began, ended = record["time"] - record.get("seconds", 0), record["time"]
        self.spans.append(_span(trace, identity, turn, f"{HOOK_SPAN} {name}", began, ended, about))
        result = {**shared, "gen_ai.evaluation.name": name, "gen_ai.evaluation.score.label": label}
        if reason := truncate(str(record.get("reason") or ""), MAX_REASON_CHARS):
            result["gen_ai.evaluation.explanation"] = reason
        if label == "not_enforced":
            result["error.type"] = outcome
        self.events.append(
            {
                "timeUnixNano": _nanoseconds(ended),
                "eventName": "gen_ai.evaluation.result",
                "severityNumber": 13 if label in ("blocked", "not_enforced") else 9,  # WARN, INFO
                "traceId": trace,
                "spanId": identity,
                "attributes": _attributes(result),
            }
        )


def trace_request(spans: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """Return the body for `/v1/traces`."""
    return {
        "resourceSpans": [
            {"resource": _resource(version), "scopeSpans": [{"scope": SCOPE, "spans": [*spans]}]}
        ]
    }


def log_request(events: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """Return the body for `/v1/logs`."""
    logs = {"scope": SCOPE, "logRecords": [*events]}
    return {"resourceLogs": [{"resource": _resource(version), "scopeLogs": [logs]}]}


def _resource(version: str) -> dict[str, Any]:
    return {"attributes": _attributes({"service.name": "turngate", "service.version": version})}


def _span(
    trace: str, span: str, parent: str | None, name: str, began: float, ended: float, about: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "traceId": trace,
        "spanId": span,
        **({"parentSpanId": parent} if parent else {}),
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


def _identity(record: Record, digits: int, what: str = "") -> str:
    text = f"{what}\0{record.get('session_id')}\0{record['time']!r}\0{hook_name(record.get('hook') or {})}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:digits]


def _nanoseconds(when: float) -> str:
    return str(int(when * _NS))
