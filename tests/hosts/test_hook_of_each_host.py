"""`turngate hook` with the input of each host: what the process prints for every kind of verdict."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.recordings import recorded
from tests.hosts.test_input_fields import CURSOR_STOP, DROID_STOP
from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import HostAnswer

INPUTS: dict[str, dict[str, Any]] = {
    **{name: recorded(name, "Stop") for name in ("claude", "codex", "qwen", "copilot", "opencode", "kimi")},
    "gemini": recorded("gemini", "AfterAgent"),
    "cursor": CURSOR_STOP,
    "droid": {**DROID_STOP, "stopHookActive": False},
    "kiro": {"hook_event_name": "Stop", "session_id": "s-1", "assistant_text": "I am done."},
    "vscode": {
        "hookEventName": "Stop",
        "sessionId": "s-1",
        "timestamp": "2026-01-01T00:00:00Z",
        "stop_hook_active": False,
    },
}
BLOCKS = "echo 'prüfe 日本' >&2; exit 2"
BLOCK = HostAnswer(decision="block", reason="prüfe 日本")
CAPPED = HostAnswer(
    decision="allow",
    notices=(
        f'Turn ended after 1 continuation (the limit). Still blocked by: "{BLOCKS}".',
        "the last reason: prüfe 日本",
        "to accept it: turngate gates accept %s --why …",
    ),
)
FAILED = (
    'hook "echo broken >&2; exit 1" failed and was NOT enforced: exit code 1: broken '
    "(to block, a hook exits with code 2 and prints the reason on stderr)"
)
COULD_NOT_RUN = (
    'hook "turngate gate -- no-such-program" failed and was NOT enforced: exit code 127: '
    "could not be started: no-such-program: No such file or directory"
)
# Hook: the answers to the stops of one turn. The agent calls no tool in between.
VERDICTS: dict[str, list[HostAnswer]] = {
    "exit 0": [HostAnswer(decision="allow")],
    BLOCKS: [BLOCK, CAPPED],
    """echo '{"continue": false, "stopReason": "enough"}'""": [HostAnswer(decision="halt", reason="enough")],
    "echo broken >&2; exit 1": [HostAnswer(decision="allow", notices=(FAILED,))],
    "turngate gate -- no-such-program": [HostAnswer(decision="allow", notices=(COULD_NOT_RUN,))],
}
AGAIN = {"stop_hook_active": True, "stopHookActive": True, "loop_count": 1}


def later(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the input of the next stop of the same turn."""
    return {name: AGAIN.get(name, value) for name, value in fields.items()}


@pytest.mark.parametrize("name", HOSTS)
def test_the_process_prints_the_answer_of_the_host_for_every_verdict(
    name: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(project)
    folder = {"workspace_roots": [str(project)]} if name == "cursor" else {"cwd": str(project)}
    fields = {**INPUTS[name], **folder}
    for command, answers in VERDICTS.items():
        write_settings(project, "turngate", {**stop_hooks(command), "turngate": {"limit": 1}})
        monkeypatch.setenv("TURNGATE_STATE", str(tmp_path / str(len(command))))  # another session
        for count, answer in enumerate(answers):
            if count and name == "kimi":  # it asks once in a turn
                break
            given = later(fields) if count else fields
            printed = turngate("hook", stdin=json.dumps(given))
            if answer == BLOCK and not HOSTS[name].adds_heading:
                heading = "Turngate, which checks this project, does not let you stop yet:"
                answer = replace(answer, reason=f"{heading}\n{answer.reason}")  # noqa: PLW2901
            session = next(
                str(given[key]) for key in ("session_id", "sessionId", "conversation_id") if key in given
            )
            notices = tuple(text.replace("%s", session) for text in answer.notices)
            expected = HOSTS[name].write_answer(replace(answer, notices=notices))
            texts = (f"{text}\n" if text else "" for text in (expected.stdout, expected.stderr))
            assert printed == (expected.code, *texts), command
