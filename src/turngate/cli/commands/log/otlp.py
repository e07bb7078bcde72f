"""`turngate log --otlp URL`: send what the hooks did to an OpenTelemetry collector."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from turngate.core.hooks.http_policy import is_loopback
from turngate.core.redaction import make_redactor, secret_values
from turngate.core.text import describe_url
from turngate.errors import UsageError
from turngate.history.otlp import TurnSpans, log_request, trace_request

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
