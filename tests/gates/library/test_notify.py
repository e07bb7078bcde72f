"""The observer `notify`."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.cli import turngate
from tests.support.gates import answer_of_process, answer_with_shell, claude_input
from tests.support.servers.http import serve_answers
from tests.support.terminal import Terminal
from turngate.gates.library import notify

SUBAGENT = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "explorer"}
SESSION = "5b0a5c0e-0000-4000-8000-000000000001"


def noted(text: str) -> dict[str, Any]:
    return {"systemMessage": f'gate "notify": {text}'}


def body(message: str, project: str = "project", event: str = "Stop") -> dict[str, str]:
    return {"text": message, "content": message, "event": event, "session_id": SESSION, "project": project}


MESSAGE = "The agent in project has stopped."
SAVE = ("--", "sh", "-c", 'echo "$TURNGATE_MESSAGE" > told; cat > "stdin.json"')


def test_a_command_gets_the_message(project: Path) -> None:
    assert answer_of_process(("notify", *SAVE), claude_input(project)) == (0, {}, "")
    assert (project / "told").read_text() == f"{MESSAGE}\n"
    assert json.loads((project / "stdin.json").read_text()) == body(MESSAGE)
    assert answer_with_shell(("notify", "--message", "Hi", *SAVE), claude_input(project), project) == {}
    assert (project / "told").read_text() == "Hi\n"


def test_subagents_are_announced_only_on_request(project: Path) -> None:
    fields = claude_input(project, **SUBAGENT)
    assert answer_with_shell(("notify", *SAVE), fields, project) == {}
    assert not (project / "told").exists()
    assert answer_with_shell(("notify", "--subagents", *SAVE), fields, project) == {}
    assert (project / "told").read_text() == "The subagent explorer in project has stopped.\n"


def test_a_command_that_fails_or_is_missing_never_blocks(project: Path) -> None:
    words = ("notify", "--", "sh", "-c", "echo no bus >&2; exit 2")
    failed = noted("the command ended with exit code 2: no bus")
    assert answer_of_process(words, claude_input(project)) == (0, failed, "")
    missing = answer_with_shell(("notify", "--", "no-such-program", "x"), claude_input(project), project)
    assert missing["systemMessage"].startswith('gate "notify": the command ended with exit code 127')


def test_a_slow_command_does_not_hold_the_stop(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "LIMIT_S", 0.2)
    answer = answer_with_shell(("notify", "--", "sleep", "600"), claude_input(project), project)
    assert answer == noted("the command did not end within 0.2 s")


def test_a_webhook_gets_the_message_as_chat_services_expect_it(project: Path) -> None:
    with serve_answers({"status": 204, "body": ""}) as server:
        url = f"{server.url}/hooks/T0/s3cr3t?x=1"
        assert answer_of_process(("notify", "--webhook", url), claude_input(project)) == (0, {}, "")
        assert (server.paths, server.bodies) == (["/hooks/T0/s3cr3t?x=1"], [body(MESSAGE)])


def test_the_url_of_a_webhook_can_be_in_the_environment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("notify", "--webhook-env", "CHAT_URL")
    assert answer_with_shell(words, claude_input(project), project) == noted(
        "the variable CHAT_URL is not set"
    )
    with serve_answers({"body": "ok"}) as server:
        monkeypatch.setenv("CHAT_URL", f"{server.url}/s3cr3t")
        assert answer_with_shell(words, claude_input(project), project) == {}
        assert server.paths == ["/s3cr3t"]


def _unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://chat.example/s3cr3t", "chat.example is not encrypted: use https, or allow it in"),
        ("https://me:s3cr3t@chat.example/x", "chat.example contains a password"),
        ("ftp://chat.example/s3cr3t", "chat.example is not a valid URL"),
        ("s3cr3t", "an unnamed host is not a valid URL"),
        ("https://[s3cr3t", "an unnamed host is not a valid URL"),
        ("http://127.0.0.1:{port}/s3cr3t", "127.0.0.1:{port}"),
    ],
    ids=["unencrypted", "password", "other scheme", "no URL", "bracket", "nothing listens"],
)
def test_the_secret_of_a_url_is_never_printed(url: str, problem: str, project: Path) -> None:
    port = _unused_port()
    words = ("notify", "--webhook", url.format(port=port))
    answer = answer_with_shell(words, claude_input(project), project)["systemMessage"]
    assert problem.format(port=port) in answer
    assert answer.startswith('gate "notify": the webhook was not called: ')
    assert "s3cr3t" not in answer


def test_a_webhook_that_refuses_or_redirects_is_reported(project: Path) -> None:
    answers = (
        {"status": 403, "body": "s3cr3t"},
        {"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}},
    )
    with serve_answers(*answers) as server:
        words = ("notify", "--webhook", f"{server.url}/s3cr3t")
        refused = noted("the webhook at 127.0.0.1 replied with HTTP 403")
        assert answer_with_shell(words, claude_input(project), project) == refused
        moved = noted("the webhook at 127.0.0.1 replied with HTTP 302")
        assert answer_with_shell(words, claude_input(project), project) == moved


def test_a_slow_webhook_does_not_hold_the_stop(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "LIMIT_S", 0.2)
    with serve_answers({"delay": 600.0}) as server:
        words = ("notify", "--webhook", f"{server.url}/s3cr3t")
        answer = answer_with_shell(words, claude_input(project), project)
        assert answer == noted("the webhook did not end within 0.2 s")


def test_without_anything_to_do_it_says_so(project: Path) -> None:
    answer = noted("it does nothing: give --bell, --webhook or a command after --")
    assert answer_with_shell(("notify",), claude_input(project), project) == answer


def test_the_bell_rings_at_the_terminal(project: Path) -> None:
    with Terminal("gate", "notify", "--bell", cwd=project) as terminal:
        terminal.expect('gate "notify": passed')
        assert b"\a" in terminal.raw


def test_without_a_terminal_there_is_no_bell(project: Path) -> None:
    """The test's own process may have a terminal: it is started in a session of its own."""
    event = project / "stop.json"
    event.write_text(json.dumps(claude_input(project)))
    command = ["setsid", "--wait", str(Path(sys.executable).parent / "turngate"), "gate", "notify", "--bell"]
    with event.open() as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == noted("there is no terminal for the bell")


def tell(project: Path, gate: str, **options: object) -> None:
    """Configure a gate that runs this command, and before it, in parallel, the observer."""
    entry = {
        "type": "gate",
        "gate": "notify",
        "command": 'echo "$TURNGATE_MESSAGE" >> told',
        "options": options,
    }
    hooks = [
        entry,
        {"type": "gate", "id": "check", "command": gate, "options": {"always": True, "allFailures": True}},
    ]
    write_settings(project, "turngate", {"turngate": {"limit": 2}, "hooks": {"Stop": [{"hooks": hooks}]}})


def stop(project: Path) -> None:
    fields = claude_input(project, stop_hook_active=(project / "told").exists())
    turngate("hook", stdin=json.dumps({**fields, "prompt_id": "p1"}))


DONE, BLOCKED, GAVE_UP = (f"The agent in project {text}\n" for text in notify.MESSAGES.values())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, [GAVE_UP]),
        ({"on": ["blocked"]}, [BLOCKED, BLOCKED]),
        ({"on": ["done", "blocked", "gave-up"]}, [BLOCKED, BLOCKED, GAVE_UP]),
        ({"on": ["done"]}, []),
    ],
)
def test_a_block_and_the_limit_are_told_apart(
    project: Path, options: dict[str, Any], told: list[str]
) -> None:
    tell(project, "sleep 0.3; echo no; exit 1", **options)
    for _ in range(3):
        stop(project)
    said = (project / "told").read_text() if (project / "told").exists() else ""
    assert said == "".join(told)


def test_an_agent_that_is_done_is_announced(project: Path) -> None:
    tell(project, "true")
    stop(project)
    assert (project / "told").read_text() == DONE


def test_what_the_built_in_agent_ends_with_is_announced(project: Path) -> None:
    tell(project, "echo no; exit 1")
    script = json.dumps({"main": [{"text": "Done."}] * 5})
    (project / "s.json").write_text(script)
    turngate("run", "-p", "go", "--model", f"scripted:{project}/s.json", "--project", str(project))
    assert (project / "told").read_text() == GAVE_UP


def test_an_unknown_outcome_is_named(project: Path) -> None:
    assert answer_with_shell(("notify", "--on", "stopped", *SAVE), claude_input(project), project) == noted(
        "--on does not know stopped: it knows done, blocked, gave-up"
    )
