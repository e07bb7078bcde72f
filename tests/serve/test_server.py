"""`turngate serve` under attack: who gets data, and what keeps others out or in."""

import contextlib
import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.journals import append_stop, hook_record
from tests.support.page_server import PageServer, read_all
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from turngate.serve.server import MAX_HEAD_BYTES, MAX_STRANGERS

FORBIDDEN = 403


def wait_for_session(server: PageServer, session: str) -> dict[str, Any]:
    end = time.monotonic() + HANG_TIMEOUT_S
    while True:
        found = server.view("overview")["sessions"]
        if session in [each["id"] for each in found]:
            return next(each for each in found if each["id"] == session)
        assert time.monotonic() < end, found
        time.sleep(POLL_INTERVAL_S)


def test_no_answer_holds_the_token_or_sets_a_cookie(shared_server: PageServer) -> None:
    for target in ("/", "/data/overview", "/version"):
        status, head, body = shared_server.ask(target)
        assert (status, shared_server.token in head + body, "cookie" in head.lower()) == (200, False, False)


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/data/overview", {"token": False}),
        ("/data/overview", {"Authorization": "Bearer x"}),
        ("/data/overview?token=", {"token": False}),
        ("/data/overview", {"Authorization": "Bearer \u00ff"}),
        ("/data/overview", {"Authorization": "Bearer "}),
        ("/", {"Host": "evil.example"}),  # DNS rebinding
        ("/data/overview", {"Host": "evil.example"}),
        ("/data/overview", {"Host": "127.0.0.1"}),
        ("/data/overview", {"Host": ""}),
        ("/data/overview", {"Origin": "http://evil.example"}),  # another site
        ("/data/overview", {"Origin": "null"}),
        (
            "/data/overview",
            {"token": False, "Cookie": "token=x"},
        ),  # what a browser would add to another page's request
        ("/version", {"Origin": "http://evil.example"}),
        ("/version", {"token": False}),
    ],
)
def test_nobody_else_gets_data(shared_server: PageServer, target: str, headers: dict[str, Any]) -> None:
    status, _, body = shared_server.ask(target, **headers)
    assert (status, len(body.splitlines())) == (FORBIDDEN, 1)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT"])
def test_it_answers_only_get(shared_server: PageServer, method: str) -> None:
    assert shared_server.ask("/data/overview", method=method)[0] == 405


@pytest.mark.parametrize(
    "target",
    [
        "/data/session?id=../../etc/passwd",
        "/data/session?id=%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/data/session?id=/etc/passwd",
        "/data/session",
        "/data/gate?name=nothing",
        "/data/overview?days=3",
        "/data/overview?days=x",
        "/data/overview?page=-1",
        "/data/session?id=s-1&at=x",
        "/data/../../etc/passwd",
        "/etc/passwd",
        "//evil.example/",
        "/page.html",
    ],
)
def test_there_are_no_files_and_no_other_views(shared_server: PageServer, target: str) -> None:
    wait_for_session(shared_server, "s-1")
    assert shared_server.ask(target)[0] == 404


@pytest.mark.parametrize(
    "request_text",
    [
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: evil.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : 127.0.0.1:PORT\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n folded: 1\r\n\r\n",
        "GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        "GET /data/overview?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAuthorization: Bearer TOKEN\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        "GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        "\x16\x03\x01\x02\x00\r\n\r\n",
        "\r\n\r\n",
    ],
)
def test_what_is_not_a_plain_request_is_refused(shared_server: PageServer, request_text: str) -> None:
    text = request_text.replace("PORT", str(shared_server.port)).replace("TOKEN", shared_server.token)
    answer = shared_server.send(text.encode())
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_huge_header_is_refused(shared_server: PageServer) -> None:
    assert shared_server.ask("/", X_Padding="x" * MAX_HEAD_BYTES)[0] == 431


def test_every_answer_has_headers_that_keep_it_from_other_sites(shared_server: PageServer) -> None:
    for target in ("/", "/data/overview", "/nothing"):
        head = shared_server.ask(target)[1]
        for line in ("X-Content-Type-Options: nosniff", "Cross-Origin-Resource-Policy: same-origin"):
            assert f"\r\n{line}\r\n" in head, target
        policy = re.findall("Content-Security-Policy: (.*)\r\n", head)[0]
        assert policy.startswith("default-src 'none'; style-src 'sha256-"), target
        assert "unsafe" not in policy, target
        assert policy.endswith("frame-ancestors 'none'"), target


def test_a_thousand_idle_connections_do_not_keep_the_person_out(server: PageServer) -> None:
    with contextlib.ExitStack() as opened:
        idle = [opened.enter_context(server.connect()) for _ in range(1000)]
        assert server.view("overview")["stops"] == 0
        closed = sum(map(_is_closed, idle[: -2 * MAX_STRANGERS]))
        assert closed == len(idle) - 2 * MAX_STRANGERS
        assert len(list(Path(f"/proc/{server.pid}/fd").iterdir())) < 3 * MAX_STRANGERS


def _is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_a_client_that_sends_slowly_is_closed(server: PageServer) -> None:
    with server.connect() as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert read_all(connection) == b""


def test_the_version_changes_when_a_journal_has_changed(server: PageServer, state: Path) -> None:
    before = server.ask("/version")[2]
    append_stop(state, "s-1", "block", answer="Done.")
    end = time.monotonic() + HANG_TIMEOUT_S
    while server.ask("/version")[2] == before:
        assert time.monotonic() < end
        time.sleep(POLL_INTERVAL_S)
    session = server.view("session?id=s-1")
    (stop,) = session.pop("stops")
    assert {key: stop[key] for key in ("result", "answer", "prompt")} == {
        "result": "blocked",
        "answer": "Done.",
        "prompt": "exit code 1",
    }
    assert {key: session[key] for key in ("id", "project", "count", "blocked")} == {
        "id": "s-1",
        "project": "/p",
        "count": 1,
        "blocked": 1,
    }


def test_damage_and_odd_values_in_a_journal_do_not_keep_the_rest_from_being_shown(
    server: PageServer, state: Path
) -> None:
    odd = [
        hook_record("allow", 1, {"type": "command", "command": ["x"]}, seconds=float("nan")),
        hook_record("block", 1, {"type": 5}, agent_id=["x"], agent_type={}),
        {"time": 2, "kind": "verdict", "event": "Stop", "blocked_by": 5, "unenforced": [3], "runs": "x"},
        {"time": 2, "kind": "start", "event": "Stop", "run": [], "process": "x", "hook": {"timeout": "x"}},
        {"time": 2, "kind": "turn_end", "event": ["Stop"]},
    ]
    folder = state / "sessions" / "s-1"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in odd))
    append_stop(state, "s-1")
    assert wait_for_session(server, "s-1")["results"][-1] == "allowed"
    assert server.view("session?id=s-1")["stops"][-1]["result"] == "allowed"
    assert server.view("gate?name=tests&days=0")["runs"] == 1


def test_a_session_that_is_removed_is_gone(server: PageServer, state: Path) -> None:
    append_stop(state, "s-1")
    wait_for_session(server, "s-1")
    (state / "sessions" / "s-1" / "journal.jsonl").unlink()
    (state / "sessions" / "s-1").rmdir()
    end = time.monotonic() + HANG_TIMEOUT_S
    while server.view("overview")["sessions"]:
        assert time.monotonic() < end
        time.sleep(POLL_INTERVAL_S)
    assert server.ask("/data/session?id=s-1")[0] == 404
