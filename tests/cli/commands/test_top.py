"""`turngate top`: what runs now, once or every second."""

import json
import re
import time
from pathlib import Path

from tests.support.cli import turngate
from tests.support.journals import append_records, append_stop, hook_record, verdict_record
from tests.support.terminal import CTRL_C, Terminal, wait_until
from turngate.state.process_stat import this_process

RUNNING = {
    "kind": "start",
    "event": "Stop",
    "run": "1",
    "hook": {"type": "gate", "gate": "tests", "timeout": 60},
}


def start_gate(state: Path) -> None:
    append_records(state, "s-1", {**RUNNING, "time": time.time(), "process": list(this_process())})


def test_recent_sessions_and_running_gates_are_printed_once_without_a_terminal(state: Path) -> None:
    append_records(state, "s-0", hook_record("allow", 1), verdict_record(when=1))  # long ago
    append_stop(state, "s-2", "block", answer="Done.")
    start_gate(state)
    code, out, err = turngate("top")
    first, *lines = [re.sub(r" +", " ", re.sub(r"\d+ s ago", "N s ago", line)) for line in out.splitlines()]
    assert (code, err, first[9:]) == (0, "", "1 gate running, today 1 stop, 1 blocked")
    assert [re.sub(r" \d+ s ", " N s ", line) for line in lines] == [
        "running now s-1 /p ",
        " N s tests (at most 60 s)",
        "blocked N s ago s-2 /p Done.",
    ]


def test_a_program_gets_the_same_as_json(state: Path) -> None:
    append_stop(state, "s-2", "block", answer="Done.")
    code, out, _ = turngate("top", "--json")
    seen = json.loads(out)
    (session,) = seen.pop("sessions")
    assert (code, seen["stops"], seen["blocked"]) == (0, 1, 1)
    del session["last"]
    about = {"id": "s-2", "host": "", "project": "/p", "title": "Done."}
    assert session == {**about, "results": ["blocked"], "running": []}


def test_nothing_is_said_to_be_nothing() -> None:
    assert turngate("top")[1].splitlines()[1:] == ["no agent has stopped in the last 15 minutes"]


def test_a_terminal_shows_what_begins(state: Path, tmp_path: Path) -> None:
    with Terminal("top", cwd=tmp_path) as terminal:
        terminal.expect("no agent has stopped")
        start_gate(state)
        terminal.expect("tests (at most 60 s)")
        terminal.type(CTRL_C)
        assert terminal.end() == 0


def test_an_interrupt_ends_it_and_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with Terminal("top", cwd=tmp_path) as terminal:
        terminal.expect("no agent has stopped")
        terminal.type(CTRL_C)
        assert terminal.end() == 0
        wait_until(lambda: terminal.raw.endswith(b"\x1b[?25h\x1b[?1049l"), lambda: repr(terminal.raw))
