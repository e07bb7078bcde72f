"""`turngate serve` as a command; its page and its server are in tests/serve."""

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import start_turngate, turngate
from tests.support.page_server import PageServer
from tests.support.paths import ROOT


def views_in(path: Path) -> dict[str, Any]:
    (data,) = re.findall(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    views = json.loads(data)
    assert isinstance(views, dict)
    return views


def test_the_sample_history_is_the_same_each_time_and_has_something_of_everything(tmp_path: Path) -> None:
    files = [tmp_path / "1.html", tmp_path / "2.html"]
    for file in files:
        assert turngate("serve", "--demo", "--html", str(file))[0] == 0
        assert file.stat().st_mode & 0o777 == 0o600
    first, second = (
        [view for key, view in views_in(file).items() if key.startswith("session")] for file in files
    )
    assert [each["id"] for each in first] == [each["id"] for each in second]
    overview = views_in(files[0])["overview?days=0&project=&page=0"]
    assert {gate["gate"] for gate in overview["gates"]} == {"tests", "lint", "types", "changelog", "judge"}
    assert {result for each in first for stop in each["stops"] for result in [stop["result"]]} == {
        "allowed",
        "blocked",
        "overridden",
        "accepted",
        "not enforced",
    }
    assert any(stop["agent"] for each in first for stop in each["stops"])
    assert any(gate["wrong"] for gate in overview["gates"])


def test_the_sample_is_what_its_script_makes() -> None:
    folder = ROOT / "examples" / "history"
    made = subprocess.run([sys.executable, folder / "make_sample.py"], capture_output=True, check=True)
    assert made.stdout.splitlines() == (folder / "sample.jsonl").read_bytes().splitlines()


def test_the_file_ends_up_on_stdout_and_holds_no_tag_of_a_journal(state: Path) -> None:
    code, out, err = turngate("serve", "--demo", "--html", "-")
    assert (code, err, out.count("<script"), out.count("</script>")) == (0, "", 2, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_its_connections(number: signal.Signals) -> None:
    with start_turngate("serve", "--all", own_session=True) as process:
        server = PageServer(process.stdout.readline().split()[1], process.pid)
        with server.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            process.send_signal(number)
            assert process.wait() == (0 if number is signal.SIGINT else 143)
        assert process.communicate()[1] == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "70000"], "--port 70000: expected a number from 0 to 65535"),
        (["--demo", "--all"], "--all, --project and --demo cannot be used together"),
        (["--demo", "--html", "/missing/x.html"], "--html /missing/x.html: No such file or directory"),
    ],
)
def test_a_mistake_is_explained(words: list[str], message: str) -> None:
    assert turngate("serve", *words) == (64, "", f"turngate: {message}\n")


def test_a_port_that_is_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, out, err = turngate("serve", "--all", "--port", str(port))
    assert (code, out) == (64, "")
    assert err.startswith(f"turngate: --port {port}: ")
    assert err.endswith("; choose another one\n")
