"""A whole `turngate run -p` with a live model on loopback and one hook that blocks once: the time around the work."""

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.measure import Row

ROUNDS = 15
TEXT = "x" * 50
EVENTS = (
    {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
)
BODY = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in EVENTS)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
HOOK = """#!/bin/sh
/bin/date +%s.%N >> "$TURNGATE_PROJECT_DIR/stamps"
[ "$TURNGATE_STOP_HOOK_ACTIVE" = true ] && exit 0
echo more >&2
/bin/date +%s.%N >> "$TURNGATE_PROJECT_DIR/stamps"
exit 2
"""


class Model:
    """A server whose threads read a request, note the time, send the answer and note the time again."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.requested: list[float] = []
        self.replied: list[float] = []

    def serve(self) -> None:
        try:
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            while _read_request(connection):
                self.requested.append(time.time())
                connection.sendall(ANSWER)
                self.replied.append(time.time())


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0) if end else 0
        if end and len(body) >= length:
            return data
        piece = connection.recv(1 << 16)
        if not piece:
            return b""
        data += piece


@contextmanager
def _model() -> Iterator[Model]:
    model = Model()
    threading.Thread(target=model.serve, daemon=True).start()
    try:
        yield model
    finally:
        model.listener.close()


def live_run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, _model() as model:
        project = _project(folder)
        runs = [_run(project, folder, model) for _ in range(ROUNDS + 1)][1:]
        starts = [_python() for _ in range(ROUNDS)]
        request = statistics.median(_bare_request(model) for _ in range(200))
    run = [statistics.median(values) for values in zip(*runs, strict=True)]
    python, cpu, memory = (statistics.median(values) for values in zip(*starts, strict=True))
    return [
        Row("live run: start to the first request / python -c pass", run[0], python, max_ratio=20),
        Row(
            "live run: end of the first answer to the hook's start / bare request",
            run[1],
            request,
            max_ratio=20,
        ),
        Row("live run: the same at the second stop / bare request", run[2], request, max_ratio=9),
        Row("live run: the hook's end to the next request / bare request", run[3], request, max_ratio=11),
        Row(
            "live run: last answer to the end of the process / python -c pass", run[4], python, max_ratio=2.5
        ),
        Row("live run: CPU of the process and its hooks / python -c pass", run[5], cpu, max_ratio=22),
        Row("live run: memory / python -c pass", run[6], memory, max_ratio=8, unit=" MB"),
    ]


def _project(folder: str) -> str:
    project = os.path.join(folder, "project")
    os.makedirs(os.path.join(project, ".turngate"))
    script = os.path.join(project, "hook")
    with open(script, "w", encoding="ascii") as file:
        file.write(HOOK)
    os.chmod(script, 0o700)
    hook = {"type": "command", "command": script}
    with open(os.path.join(project, ".turngate", "settings.json"), "w", encoding="utf-8") as file:
        json.dump({"hooks": {"Stop": [{"hooks": [hook]}]}}, file)
    return project


def _run(project: str, folder: str, model: Model) -> tuple[float, ...]:
    turngate = os.path.join(os.path.dirname(sys.executable), "turngate")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": folder,
        "TURNGATE_STATE": os.path.join(folder, "state"),
        "ANTHROPIC_API_KEY": "bench-key",
        "ANTHROPIC_BASE_URL": model.url,
    }
    stamps = os.path.join(project, "stamps")
    if os.path.exists(stamps):
        os.unlink(stamps)
    model.requested.clear()
    model.replied.clear()
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    command = [turngate, "run", "-p", "go", "--trust", "--model", "anthropic:x"]
    process = subprocess.Popen(command, cwd=project, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    ended = time.time()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert (process.returncode, len(model.requested)) == (0, 2), process.returncode
    with open(stamps, encoding="ascii") as file:
        hook_started, hook_ended, second_started = map(float, file.read().split())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        model.requested[0] - started,
        hook_started - model.replied[0],
        second_started - model.replied[1],
        model.requested[1] - hook_ended,
        ended - second_started,
        cpu,
        used.ru_maxrss / 1024,
    )


def _python() -> tuple[float, float, float]:
    started = time.time()
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return time.time() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _bare_request(model: Model) -> float:
    started = time.perf_counter()
    with socket.create_connection(("127.0.0.1", int(model.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        left = len(ANSWER)
        while left:
            left -= len(connection.recv(1 << 16))
    return time.perf_counter() - started
