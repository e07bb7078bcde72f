"""Color of `fire`, `check` and `log`: at a terminal only, and not against the user's wish."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import Terminal

GREEN, RED, ALERT, YELLOW, DIM, BOLD = "32", "31", "1;31", "33", "2", "1"


def colors(project: Path, *words: str, env: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """Run the command at a terminal and return what it printed in color, with the codes."""
    with Terminal(*words, cwd=project, env=dict(env or {})) as terminal:
        terminal.process.wait()
        terminal.expect("\n")
        terminal.close()
        shown = terminal.raw.decode()
    return re.findall(r"\x1b\[([\d;]+)m(.*?)\x1b\[0m", shown)


def test_the_verdict_and_the_outcomes_of_fire_have_colors(project: Path) -> None:
    hooks = [
        {"type": "command", "id": "a", "command": "true"},
        {"type": "command", "id": "b", "command": "echo no >&2; exit 2"},
        {"type": "command", "id": "c", "command": "exit 1"},
    ]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    shown = colors(project, "fire", "Stop")
    assert [(code, text.strip()) for code, text in shown] == [
        (RED, "Stop: blocked"),
        (GREEN, "passed"),
        (RED, "blocked"),
        (ALERT, "failed (not enforced)"),
        (ALERT, '! hook "c" failed and was NOT enforced: exit code 1, nothing on stderr'),
    ]


@pytest.mark.parametrize(("hook", "headline"), [("true", "Stop: allowed"), (None, "Stop: allowed")])
def test_an_allowed_stop_is_green_with_and_without_hooks(
    project: Path, hook: str | None, headline: str
) -> None:
    if hook:
        write_settings(project, "turngate", stop_hooks(hook))
    assert colors(project, "fire", "Stop")[0] == (GREEN, headline)


def test_the_findings_of_check_have_the_color_of_their_severity(project: Path) -> None:
    settings = {"hooks": {"Stpo": [], **stop_hooks("true", timeout="x", enabled=False)["hooks"]}}
    write_settings(project, "turngate", settings)
    shown = colors(project, "check")
    assert shown[0] == (BOLD, ".turngate/settings.json")
    assert {(code, text) for code, text in shown[1:-1]} >= {(ALERT, "error:")}
    assert shown[-1][0] == ALERT
    write_settings(project, "turngate", stop_hooks("true"))
    assert colors(project, "check") == [(BOLD, ".turngate/settings.json"), (GREEN, "1 hook, no problems")]


def test_what_did_not_go_well_stands_out_in_the_log(project: Path) -> None:
    hooks = [
        {"type": "command", "id": "a", "command": "true"},
        {"type": "command", "id": "b", "command": "exit 1"},
    ]
    for those in (hooks[:1], hooks):
        write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": those}]}})
        turngate("fire", "Stop", "--project", str(project))
    shown = [(code, text.split("  ")[0]) for code, text in colors(project, "log")]
    assert [(code, text) for code, text in shown if not text.startswith("20")] == [
        (GREEN, "Stop: allowed"),
        (ALERT, ""),
        (ALERT, 'Stop: allowed (not enforced: "b")'),
    ]
    assert shown[0][0] == BOLD


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
@pytest.mark.parametrize("words", [("fire", "Stop"), ("check",)])
def test_the_user_can_switch_color_off(project: Path, env: dict[str, str], words: tuple[str, ...]) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1"))
    assert colors(project, *words, env=env) == []


@pytest.mark.parametrize("words", [("fire", "Stop"), ("check",)])
def test_there_is_no_color_in_a_pipe(project: Path, words: tuple[str, ...]) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1"))
    _, out, err = turngate(*words, "--project", str(project))
    assert ("\x1b" in out, "\x1b" in err) == (False, False)
