"""Sessions of all agent programs, and ends that a person accepts although a gate blocks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import CTRL_D, Terminal

BLOCK = "test -e ok || { echo red >&2; exit 2; }"


def stop(project: Path, session: str, host: str = "claude", times: int = 1) -> list[dict[str, Any]]:
    """Stop as an agent of this program does, in one turn; return what Turngate prints."""
    event = "AfterAgent" if host == "gemini" else "Stop"
    fields = {"hook_event_name": event, "session_id": session, "prompt_id": "1", "cwd": str(project)}
    printed = [turngate("hook", "--host", host, stdin=json.dumps(fields)) for _ in range(times)]
    assert [code for code, _, _ in printed] == [0] * times
    return [json.loads(out or "{}") for _, out, _ in printed]


@pytest.fixture
def blocked(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose gate blocks, and a session that has ended nevertheless, after one continuation."""
    monkeypatch.setenv("TURNGATE_TRUST", "1")
    monkeypatch.chdir(project)
    write_settings(project, "turngate", {**stop_hooks(BLOCK, id="tests"), "turngate": {"limit": 1}})
    (_, end) = stop(project, "3fa9c1d2", times=2)
    assert end["systemMessage"].endswith("to accept it: turngate gates accept 3fa9c1d2 --why …")
    return project


def open_sessions() -> list[str]:
    return [each["session"] for each in json.loads(turngate("log", "--open", "--json")[1])]


def test_an_end_that_a_gate_blocks_is_open_until_a_person_accepts_it(blocked: Path) -> None:
    code, out, err = turngate("log", "--open")
    first, hint = out.splitlines()
    assert (code, re.sub(r"\d{4}-.{14}", "DATE", first), err) == (
        0,
        "3fa9c1d2  DATE  still blocked by tests",
        "",
    )
    assert hint == "→ turngate gates accept 3fa9c1d2 --why …"
    accepted = "accepted: tests, in session 3fa9c1d2; commit .turngate/accepted.jsonl, so that `turngate gates run` reports it\n"
    assert turngate("gates", "accept", "3fa", "--why", "flaky") == (0, accepted, "")
    assert turngate("log", "--open") == (0, f"nothing is open in {blocked}\n", "")
    assert "a person accepted this end: flaky" in turngate("log", "3fa9c1d2")[1]
    (listed,) = json.loads(turngate("sessions", "--json")[1])
    assert (listed["host"], listed["gates"], listed["result"]) == ("claude", ["tests"], "accepted")


def test_an_end_is_no_longer_open_when_the_session_ends_well(blocked: Path) -> None:
    assert open_sessions() == ["3fa9c1d2"]
    (blocked / "ok").touch()
    fields = {"hook_event_name": "Stop", "session_id": "3fa9c1d2", "prompt_id": "2", "cwd": str(blocked)}
    assert turngate("hook", "--host", "claude", stdin=json.dumps(fields))[:2] == (0, "")
    assert open_sessions() == []


def test_gates_run_reports_what_a_person_has_accepted_and_fails_nevertheless(blocked: Path) -> None:
    turngate("gates", "accept", "3fa9c1d2", "--why", "flaky, see #12")
    file = blocked / ".turngate" / "accepted.jsonl"
    file.write_text(file.read_text() + '{"gates": 5}\nnot JSON\n[]\n')
    code, out, _ = turngate("gates", "run", "--json")
    (gate,) = json.loads(out)["gates"]
    assert (code, gate["outcome"]) == (1, "failed")
    assert re.fullmatch(r"red\naccepted on \d{4}-\d\d-\d\d: flaky, see #12", gate["reason"])
    assert re.search(r"\n  accepted on .*: flaky, see #12\n", turngate("gates", "run")[1])
    (blocked / "ok").touch()
    code, out, _ = turngate("gates", "run", "--json")
    assert (code, json.loads(out)["gates"][0]["reason"]) == (0, None)


@pytest.mark.parametrize(
    ("words", "environ", "message"),
    [
        (
            ("zz", "--why", "x"),
            {},
            "no session zz has ended with a gate still blocking; `turngate log --open` lists them",
        ),
        (("3fa9", "--why", " "), {}, "why is it accepted? Give a reason, which others will read"),
        (
            ("3fa9", "--why", "x"),
            {"CLAUDECODE": "1"},
            "a person accepts what a gate blocks, in a terminal of their own, and this was started by a hook or an agent (CLAUDECODE is set)",
        ),
    ],
)
def test_what_cannot_be_accepted_is_refused(
    blocked: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    environ: dict[str, str],
    message: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert turngate("gates", "accept", *words) == (64, "", f"turngate: {message}\n")
    assert open_sessions() == ["3fa9c1d2"]


def test_the_file_of_the_project_is_not_written_through_a_link(blocked: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("")
    (blocked / ".turngate" / "accepted.jsonl").symlink_to(target)
    code, _, err = turngate("gates", "accept", "3fa9", "--why", "x")
    assert (code, target.read_text()) == (64, "")
    assert ".turngate/accepted.jsonl" in err


def test_the_sessions_of_all_programs_are_listed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")
    write_settings(project, "turngate", stop_hooks("true", id="tests"))
    for host in ("claude", "codex", "gemini", "qwen", "copilot", "droid"):
        stop(project, f"s-{host}", host)
    found = json.loads(turngate("sessions", "--project", str(project), "--json")[1])
    assert {(each["session_id"], each["host"], tuple(each["gates"]), each["result"]) for each in found} == {
        (f"s-{host}", host, ("tests",), "allowed")
        for host in ("claude", "codex", "gemini", "qwen", "copilot", "droid")
    }
    heading, *rows = turngate("sessions", "--project", str(project))[1].splitlines()
    assert (heading.split(), len(rows)) == (["CHANGED", "ID", "HOST", "RESULT", "PROJECT", "GATES"], 6)
    said = "the conversation of s-codex is with its program; `turngate log s-codex` shows what its hooks did"
    assert turngate("sessions", "show", "s-codex") == (64, "", f"turngate: {said}\n")


def test_in_a_conversation_a_person_decides_at_the_limit(project: Path, tmp_path: Path) -> None:
    count = "echo x >> stops; [ $(wc -l < stops) -gt 4 ] || { echo red >&2; exit 2; }"
    write_settings(project, "turngate", {**stop_hooks(count, id="tests"), "turngate": {"limit": 1}})
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"main": ["Done."] * 6}))
    with Terminal("run", "--model", f"scripted:{script}", cwd=project) as terminal:
        terminal.expect("/help shows the commands and keys")
        terminal.say("/more")
        terminal.expect("the last turn did not end although a gate blocks")
        terminal.say("go")
        terminal.expect("/more sends the agent back as often again")
        terminal.say("/more")
        terminal.expect("/more sends the agent back as often again")
        terminal.say("/accept")
        terminal.expect("why is it accepted?")
        terminal.say("/accept flaky")
        terminal.expect("accepted: tests, in session")
        terminal.say("/more")
        terminal.expect("the last turn did not end although a gate blocks")
        terminal.say("again")
        terminal.expect("Done.")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert (project / "stops").read_text().count("x") == 5
    (line,) = (project / ".turngate" / "accepted.jsonl").read_text().splitlines()
    assert (json.loads(line)["gates"], json.loads(line)["why"]) == (["tests"], "flaky")
