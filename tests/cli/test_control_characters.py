"""What hooks, settings and folder names hold reaches the terminal without control characters."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import Terminal

RED, TITLE = "\x1b[31m", "\x1b]0;title\x07"


def say(answer: Mapping[str, object]) -> str:
    return f"printf %s '{json.dumps(answer)}'"


def without_times(text: str) -> list[str]:
    return [re.sub(r" +\d+\.\d\d s ", " 0.00 s ", line) for line in text.splitlines()]


def test_fire_prints_no_escape_sequence_of_a_hook(project: Path) -> None:
    answer = {
        "decision": "block",
        "reason": f"{RED}red\n{TITLE}two",
        "systemMessage": f"{RED}hello\nStop: allowed",
    }
    hooks = [
        {"type": "command", "id": f"{RED}gate", "command": say(answer)},
        {"type": "command", "command": f"echo '{RED}bad' >&2; exit 1"},
    ]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    code, out, err = turngate("fire", "Stop", "--project", str(project))
    assert (code, without_times(out), err.splitlines()[0]) == (
        10,
        [
            "Stop: blocked",
            '  blocked 0.00 s  "gate"  (.turngate/settings.json)',
            "  failed (not enforced) 0.00 s  \"echo 'bad' >&2; exit 1\"  (.turngate/settings.json)",
            "Sent to the agent:",
            "  [Stop hook requested continuation]",
            "  red",
            "  two",
            "Hook message: hello",
            "  Stop: allowed",
        ],
        "! hook \"echo 'bad' >&2; exit 1\" failed and was NOT enforced: exit code 1: bad",
    )


def test_fire_as_json_keeps_what_a_hook_wrote(project: Path) -> None:
    answer = {"decision": "block", "reason": f"{RED}red"}
    write_settings(project, "turngate", stop_hooks(say(answer)))
    out = turngate("fire", "Stop", "--json", "--project", str(project))[1]
    assert json.loads(out)["prompt"] == f"[Stop hook requested continuation]\n{RED}red"


def test_a_reason_to_halt_adds_no_line_that_looks_like_a_verdict(project: Path) -> None:
    answer = {"continue": False, "stopReason": f"{RED}enough\nStop: allowed"}
    write_settings(project, "turngate", stop_hooks(say(answer)))
    out = turngate("fire", "Stop", "--project", str(project))[1]
    assert out.splitlines()[:2] == ["Stop: halted by a hook: enough", "  Stop: allowed"]


def test_the_folder_name_of_a_plugin_adds_no_line(project: Path) -> None:
    plugin = project / f"p{RED}\nStop: allowed"
    (plugin / "hooks").mkdir(parents=True)
    (plugin / "hooks/hooks.json").write_text(json.dumps({**stop_hooks("true"), "x": 1}))
    words = ("--project", str(project), "--plugin-dir", str(plugin))
    assert without_times(turngate("fire", "Stop", *words)[1]) == [
        "Stop: allowed",
        '  passed 0.00 s  "true"  (p Stop: allowed/hooks/hooks.json)',
    ]
    assert turngate("check", *words)[1].splitlines()[0] == "p Stop: allowed/hooks/hooks.json"


def test_check_prints_no_escape_sequence_of_the_settings(project: Path) -> None:
    write_settings(project, "turngate", {"hooks": {f"{RED}Stopp\n0 problems": []}})
    out = turngate("check", "--project", str(project))[1]
    assert ("\x1b" in out, "0 problems" in out.splitlines()) == (False, False)


@pytest.mark.parametrize("words", [("fire", "Stop"), ("check",)])
def test_the_name_of_the_project_adds_no_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    folder = project / f"p{RED}\nStop: halted"
    (folder / ".turngate").mkdir(parents=True)
    (folder / "src").mkdir()
    monkeypatch.chdir(folder / "src")
    out = turngate(*words)[1]
    assert out.splitlines()[0] == f"project: {project}/p Stop: halted (found above the current folder)"
    assert ("\x1b" in out, "\nStop: halted" in out) == (False, False)


def test_run_prints_the_answer_without_escape_sequences_and_json_has_it_whole(project: Path) -> None:
    path = project / "script.json"
    path.write_text(json.dumps({"main": [f"{RED}fine{TITLE}."]}))
    words = ("run", "-p", "go", "--model", f"scripted:{path}")
    assert turngate(*words, "--project", str(project))[1] == "fine.\n"
    out = turngate(*words, "--output-format", "json", "--project", str(project))[1]
    assert json.loads(out)["result"] == f"{RED}fine{TITLE}."
    with Terminal(*words, cwd=project) as terminal:
        terminal.expect("fine.\n")
        assert terminal.end() == 0
        assert (RED.encode() in terminal.raw, TITLE.encode() in terminal.raw) == (False, False)
