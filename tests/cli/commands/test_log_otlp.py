"""`turngate log --otlp`: a collector on this machine receives what the hooks did."""

import base64
import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import start_turngate
from tests.support.scripted_run import turngate
from tests.support.sessions import block_first
from tests.support.terminal import wait_until
from turngate.cli.main import main


class Collector(HTTPServer):
    """Receives OTLP/HTTP and answers with `code`."""

    def __init__(self, code: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = code
        self.decoded = list[str]()  # the names of spans and events, as the messages of the protocol have them
        self.received = list[tuple[str, str | None, dict[str, Any]]]()
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers.get("x-key"), json.loads(body)))
        self.server.decoded += decode(self.path, body)
        self.send_response(self.server.code)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""


def decode(path: str, body: bytes) -> list[str]:
    """Read a request with the official messages of the protocol, which know no other fields. In JSON, ids are hex."""
    text = re.sub(rb'"(traceId|spanId|parentSpanId)": ?"([0-9a-f]+)"', _to_base64, body)
    if path == "/v1/traces":
        traces = json_format.Parse(text, ExportTraceServiceRequest())
        spans = [span for each in traces.resource_spans for scope in each.scope_spans for span in scope.spans]
        assert {(len(span.trace_id), len(span.span_id), span.kind) for span in spans} == {(16, 8, 1)}
        return [span.name for span in spans]
    logs = json_format.Parse(text, ExportLogsServiceRequest())
    return [
        log.event_name
        for each in logs.resource_logs
        for scope in each.scope_logs
        for log in scope.log_records
    ]


def _to_base64(found: "re.Match[bytes]") -> bytes:
    return b'"%s":"%s"' % (found[1], base64.b64encode(bytes.fromhex(found[2].decode())))


@contextmanager
def collector(code: int = 200) -> Iterator[Collector]:
    server = Collector(code)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_turns_of_a_session_are_sent_and_secrets_are_hidden(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    write_settings(project, "turngate", stop_hooks(block_first(1, "token secret-value-of-ours"), id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    monkeypatch.setenv("OUR_API_KEY", "secret-value-of-ours")
    with collector() as server:
        assert main(["log", "s-1", "--otlp", server.url + "/"]) == 0
    assert capfd.readouterr().out == f"3 spans sent to {server.url}\n"
    (traces, _, spans), (logs, key, events) = server.received
    assert (traces, logs, key) == ("/v1/traces", "/v1/logs", "abc")
    names = [span["name"] for span in spans["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert names == ["turngate.gate tests", "turngate.gate tests", "invoke_agent"]
    assert len(events["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) == 2
    assert server.decoded == [*names, *["gen_ai.evaluation.result"] * 2]
    assert "secret-value-of-ours" not in json.dumps(events)


def test_a_collector_that_refuses_is_reported(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    with collector(503) as server:
        code = main(["log", "s-1", "--otlp", server.url])
    assert (code, capfd.readouterr().err) == (
        64,
        f"turngate: {server.url} refused /v1/traces: 503 Service Unavailable\n",
    )
    assert main(["log", "s-1", "--otlp", server.url]) == 64
    assert capfd.readouterr().err.startswith(f"turngate: {server.url} cannot be reached: ")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("localhost:4318", "expected the address of a collector, such as http://localhost:4318"),
        ("http://collector.example:4318", "is not encrypted: use https, or a collector on this machine"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(
    project: Path, capfd: pytest.CaptureFixture[str], url: str, problem: str
) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    assert main(["log", "s-1", "--otlp", url]) == 64
    assert problem in capfd.readouterr().err


def test_each_turn_is_sent_as_it_ends(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    with collector() as server, start_turngate("log", "--follow", "--otlp", server.url) as process:
        wait_until(lambda: len(server.decoded) == 3, lambda: str(server.decoded))
        turngate(capfd, project, "go on", "--session", "s-2")
        wait_until(lambda: len(server.decoded) == 6, lambda: str(server.decoded))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    assert server.decoded[:3] == server.decoded[3:]
