"""`/hooks` inside `turngate run`, in a real pseudo-terminal."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import CTRL_C, CTRL_D, ENTER, ESCAPE, UP, Terminal

DOWN = "\x1b[B"
KEYS = "Up, Down: select · Enter: show · y: approve · n: reject · q: leave"
WORDS = "NUMBER: show · y NUMBER: approve · n NUMBER: reject · q: leave"
PENDING = "! 2 hooks are pending and do not run; review and approve with /hooks"

Talk = Callable[..., Terminal]


@pytest.fixture(autouse=True)
def two_hooks(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two hooks, neither of which is approved."""
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)
    write_settings(project, "turngate", stop_hooks("sh hooks/gate.sh", "touch other"))
    return script(project / "hooks" / "gate.sh", "[ -e ran ] || { touch ran; echo 'not yet' >&2; exit 2; }\n")


@pytest.fixture
def talk(project: Path, tmp_path: Path) -> Iterator[Talk]:
    with contextlib.ExitStack() as windows:

        def start(*answers: Any, words: tuple[str, ...] = (), env: dict[str, str] | None = None) -> Terminal:
            file = tmp_path / "script.json"
            file.write_text(json.dumps({"main": answers or ["Hello."]}))
            command = ("run", "--model", f"scripted:{file}", "--allow", "Bash", "--allow", "Write", *words)
            terminal = windows.enter_context(Terminal(*command, cwd=project, env=env))
            terminal.expect("/help shows the commands and keys")
            return terminal

        yield start


def statuses(project: Path) -> list[str]:
    _, out, _ = turngate("hooks", "--json", "--project", str(project))
    return [hook["trust"] for hook in json.loads(out)["hooks"]]


def leave(terminal: Terminal) -> None:
    terminal.type(CTRL_D)
    assert terminal.end() == 0


@pytest.mark.req("S3-16")
def test_a_conversation_with_pending_hooks_begins_with_one_line_about_them(talk: Talk) -> None:
    terminal = talk()
    terminal.expect(PENDING + "\n")
    assert terminal.text.count("pending") == 1


@pytest.mark.req("S3-16")
def test_a_hook_is_selected_shown_and_approved_by_keys_and_runs_at_the_next_stop(
    talk: Talk, project: Path
) -> None:
    terminal = talk("I am done.", "Now I am done.", "And now.")
    terminal.say("/hooks")
    terminal.expect(
        "> Stop:1  Stop  PENDING, so it does not run: it is not approved  command: sh hooks/gate.sh"
    )
    terminal.expect("  Stop:2  Stop  PENDING, so it does not run: it is not approved  command: touch other")
    terminal.expect(KEYS)
    terminal.type(DOWN)
    terminal.expect("> Stop:2  ")
    terminal.type(UP)
    terminal.expect("> Stop:1  ")
    terminal.type(ENTER)
    terminal.expect("Stop:1: PENDING, so it does not run: it is not approved\n")
    terminal.expect('+  "command": "sh hooks/gate.sh"')
    terminal.expect("+++ hooks/gate.sh, now")
    terminal.expect("+[ -e ran ] || { touch ran; echo 'not yet' >&2; exit 2; }")
    terminal.type("y")
    terminal.expect('hook "Stop:1" is approved and runs from its next event on')
    terminal.expect("> Stop:1  Stop  approved  command: sh hooks/gate.sh")
    terminal.type("q")
    terminal.say("do it")
    terminal.expect("hook blocked the stop (continuation 1 of 3): not yet")
    terminal.expect("Now I am done.")
    terminal.expect('hook "sh hooks/gate.sh": passed')
    leave(terminal)
    assert (statuses(project), (project / "other").exists()) == (["approved", "new"], False)


@pytest.mark.req("S3-16")
def test_a_hook_that_was_not_shown_is_shown_before_it_is_approved(talk: Talk, project: Path) -> None:
    terminal = talk()
    terminal.say("/hooks")
    terminal.expect(KEYS)
    terminal.type("y")
    terminal.expect("+[ -e ran ] || { touch ran; echo 'not yet' >&2; exit 2; }")
    terminal.expect('y again approves hook "Stop:1" as it is shown above')
    assert statuses(project) == ["new", "new"]
    terminal.type("y")
    terminal.expect('hook "Stop:1" is approved and runs from its next event on')
    assert statuses(project) == ["approved", "new"]


@pytest.mark.req("S3-16")
def test_keys_that_were_typed_before_it_was_shown_approve_nothing(talk: Talk, project: Path) -> None:
    terminal = talk()
    terminal.say("/hooks")
    terminal.expect(KEYS)
    terminal.type("yyyy")
    terminal.expect('y again approves hook "Stop:1" as it is shown above')
    terminal.type(DOWN)
    terminal.expect("> Stop:2  ")
    assert statuses(project) == ["new", "new"]


@pytest.mark.req("S3-16")
def test_a_script_that_changes_after_it_was_shown_is_not_approved(
    talk: Talk, project: Path, two_hooks: Path
) -> None:
    terminal = talk()
    terminal.say("/hooks")
    terminal.expect(KEYS)
    terminal.type(ENTER)
    terminal.expect("+[ -e ran ]")
    two_hooks.write_text("rm -rf /\n")
    terminal.type("y")
    terminal.expect(
        "! Stop:1 has changed after it was shown; nothing was approved, review it again: `turngate hooks diff`"
    )
    assert statuses(project) == ["new", "new"]
    terminal.type("y")
    terminal.expect("+rm -rf /")
    terminal.expect('y again approves hook "Stop:1" as it is shown above')


@pytest.mark.req("S3-16")
def test_a_rejected_hook_stops_at_once_and_is_no_longer_pending(talk: Talk, project: Path) -> None:
    turngate("hooks", "approve", "--all", "--yes", "--project", str(project))
    (project / "ran").touch()
    terminal = talk("One.", "Two.")
    terminal.say("do it")
    terminal.expect('hook "sh hooks/gate.sh": passed')
    terminal.expect("1 model request")
    terminal.say("/hooks")
    terminal.expect(KEYS)
    terminal.type("n")
    terminal.expect('hook "Stop:1" is rejected and does not run')
    terminal.expect("> Stop:1  Stop  rejected, so it does not run  command: sh hooks/gate.sh")
    terminal.type("q")
    terminal.say("again")
    terminal.expect("Two.")
    terminal.expect("1 model request")
    assert terminal.text.count('hook "sh hooks/gate.sh"') == 1
    leave(terminal)
    assert statuses(project) == ["rejected", "approved"]


@pytest.mark.req("S3-16")
def test_what_the_agent_edits_runs_only_after_it_was_approved(talk: Talk, project: Path) -> None:
    """The old definition runs on; the agent cannot approve the new one itself."""
    turngate("hooks", "approve", "--all", "--yes", "--project", str(project))
    (project / "ran").touch()
    new = json.dumps(stop_hooks("sh hooks/gate.sh", "touch stolen"))
    path = str(project / ".turngate" / "settings.json")
    approve = f"{sys.executable} -m turngate hooks approve --all --yes"
    terminal = talk(
        {"text": "I read it.", "tool": "Read", "input": {"file_path": path}},
        {"text": "I edit it.", "tool": "Write", "input": {"file_path": path, "content": new}},
        {"text": "I approve it.", "tool": "Bash", "input": {"command": approve}},
        "Done.",
        "Done again.",
    )
    terminal.say("edit the hooks")
    terminal.expect("(TURNGATE_IN_TOOL is set)")
    terminal.expect('hook "touch other": passed')
    terminal.expect("4 model requests")
    assert [(project / name).exists() for name in ("other", "stolen")] == [True, False]
    terminal.say("/hooks")
    terminal.expect(
        "PENDING, so it does not run: its definition was changed after it was approved  command: touch stolen"
    )
    terminal.type(DOWN + ENTER)
    terminal.expect('-  "command": "touch other"')
    terminal.expect('+  "command": "touch stolen"')
    terminal.type("y")
    terminal.expect('hook "Stop:2" is approved and runs from its next event on')
    terminal.type("q")
    terminal.say("go on")
    terminal.expect('hook "touch stolen": passed')
    assert (project / "stolen").exists()


@pytest.mark.req("S3-16")
def test_inside_an_agent_the_menu_approves_nothing(talk: Talk, project: Path) -> None:
    terminal = talk(env={"CLAUDECODE": "1"})
    terminal.say("/hooks")
    terminal.expect(KEYS)
    terminal.type("y")
    terminal.expect(
        "! a person approves and rejects hooks, in a terminal of their own, and this was started by a hook or an agent "
        "(CLAUDECODE is set)"
    )
    assert statuses(project) == ["new", "new"]


@pytest.mark.parametrize("key", ["q", ESCAPE, CTRL_C, CTRL_D])
def test_every_way_out_of_the_menu_leads_back_to_the_conversation(talk: Talk, key: str) -> None:
    terminal = talk("Hello.")
    terminal.say("/hooks")
    terminal.expect(f"{KEYS}\n>")
    terminal.type(key)
    terminal.expect(">")  # drawn anew
    terminal.say("hi")
    terminal.expect("Hello.")
    leave(terminal)


def test_without_hooks_there_is_no_menu(talk: Talk, project: Path) -> None:
    write_settings(project, "turngate", {})
    terminal = talk("Hello.")
    terminal.say("/hooks")
    terminal.expect("no hooks are configured; `turngate init` writes gates")
    terminal.say("hi")
    terminal.expect("Hello.")


@pytest.mark.req("S3-16")
def test_a_plain_terminal_has_a_dialogue_with_numbers(talk: Talk, project: Path) -> None:
    terminal = talk("I am done.", "Now I am done.", env={"TERM": "dumb"})
    terminal.expect(PENDING)
    terminal.say("/hooks")
    menu = (
        "Hooks\n"
        "  1  Stop:1  Stop  PENDING, so it does not run: it is not approved  command: sh hooks/gate.sh\n"
        "  2  Stop:2  Stop  PENDING, so it does not run: it is not approved  command: touch other\n"
        f"{WORDS}\n> "
    )
    terminal.expect(menu)
    terminal.say("3")
    terminal.expect(f"expected: {WORDS}\n> ")
    terminal.say("1")
    terminal.expect("+++ hooks/gate.sh, now")
    terminal.expect(menu)
    terminal.say("y 1")
    terminal.expect('hook "Stop:1" is approved and runs from its next event on')
    terminal.expect(WORDS)
    terminal.type("n 2\r2\r")
    terminal.expect('hook "Stop:2" is rejected and does not run')
    terminal.say("q")
    terminal.say("do it")
    terminal.expect("hook blocked the stop (continuation 1 of 3): not yet")
    assert statuses(project) == ["approved", "rejected"]


def test_while_the_agent_works_the_hooks_are_only_listed(talk: Talk, project: Path) -> None:
    command = "until [ -e go ]; do sleep 0.05; done"
    terminal = talk({"text": "I wait.", "tool": "Bash", "input": {"command": command}}, "Done.")
    terminal.say("wait")
    terminal.expect("I wait.")
    terminal.say("/hooks")
    terminal.expect("2 hooks, 2 pending: `turngate hooks diff` shows what a person has to approve")
    (project / "go").touch()
    terminal.expect("Done.")


def test_from_a_pipe_the_hooks_are_only_listed(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps({"main": ["Hello."]}))
    words = ("run", "--model", f"scripted:{file}", "--project", str(project))
    code, out, err = turngate(*words, stdin="/hooks\ny 1\n")
    assert (code, out, err.splitlines()[0]) == (0, "Hello.\n", "Stop")
    assert "2 hooks, 2 pending: `turngate hooks diff` shows what a person has to approve" in err.splitlines()
    assert statuses(project) == ["new", "new"]


@pytest.mark.req("S3-16")
def test_a_hook_that_has_vanished_is_named_in_the_menu(talk: Talk, project: Path) -> None:
    turngate("hooks", "approve", "--all", "--yes", "--project", str(project))
    write_settings(project, "turngate", stop_hooks("sh hooks/gate.sh"))
    terminal = talk()
    terminal.say("/hooks")
    terminal.expect("Stop:2: GONE; it was approved on ")
    terminal.expect("  → if that is right, `turngate hooks reject Stop:2` forgets it")
    terminal.expect("> Stop:1  Stop  approved  command: sh hooks/gate.sh")


def test_a_hook_that_is_switched_off_is_not_announced(talk: Talk, project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("true", enabled=False))
    terminal = talk("Hello.")
    terminal.say("hi")
    terminal.expect("Hello.")
    assert "pending" not in terminal.text


def test_settings_that_can_no_longer_be_read_end_the_menu_and_not_the_conversation(
    talk: Talk, tmp_path: Path
) -> None:
    extra = tmp_path / "extra.json"
    extra.write_text(json.dumps(stop_hooks("true", id="extra")))
    terminal = talk("Hello.", words=("--settings", str(extra)))
    terminal.say("/hooks")
    terminal.expect("extra   Stop  needs no approval  command: true")
    extra.unlink()
    terminal.type("n")
    prompt = "\n>"  # without it the menu is still there, and takes what is typed for its keys
    gone = f"! --settings {extra}: there is no such file; give a file, or JSON in braces{prompt}"
    terminal.expect(gone)
    terminal.say("/hooks")
    terminal.expect(gone)
    terminal.say("hi")
    terminal.expect("Hello.")
    leave(terminal)
