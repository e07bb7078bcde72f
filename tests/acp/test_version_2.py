"""Version 2 of the protocol, a draft, which is off: the answer to a prompt accepts it, and an update ends the turn."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acp.line_editor import Editor, editor_of, prompts_of, received
from tests.acp.test_proxy import BLOCKS, DONE, NOT_YET, slow_gate, wait_for_file, wait_until_gone
from tests.support.builders import stop_hooks, write_settings
from turngate.acp import proxy

SWITCH_ON = """\
import sys
from turngate.acp import proxy
from turngate.cli.main import main
proxy.ENABLED_VERSIONS = (1, 2)
sys.exit(main())
"""
PROXY = [sys.executable, "-c", SWITCH_ON, "acp", "--"]
ACCEPTED = {"jsonrpc": "2.0", "id": "mine", "result": {}}


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")


def is_idle(message: dict[str, Any]) -> bool:
    return bool(message.get("params", {}).get("update", {}).get("state") == "idle")


def ends(editor: Editor) -> list[dict[str, Any]]:
    """Return what ends turns, without what is the same in all."""
    updates = [message["params"]["update"] for message in editor.messages if is_idle(message)]
    same = {"sessionUpdate": "state_update", "state": "idle"}
    assert all(same.items() <= update.items() for update in updates)
    return [{key: value for key, value in update.items() if key not in same} for update in updates]


def test_it_is_off() -> None:
    assert proxy.ENABLED_VERSIONS == (1,)


def test_a_block_is_the_next_prompt_and_the_editor_sees_one_answer_and_one_end(
    project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks("test -e done.txt || { echo not yet >&2; exit 2; }"))
    steps = [["text", "Now it is."], ["write", str(project / "done.txt"), "x"]]
    with editor_of(tmp_path, DONE, steps, proxy=PROXY) as editor:
        editor.start_prompt(editor.open(project, 2), identity="mine")
        editor.wait_for(is_idle)
        editor.request("_x.dev/hello", {})  # all that came before it is here
        answers = [message for message in editor.messages if message.get("id") == "mine"]
        cards = editor.cards()
    verdict = {"outcome": "allowed", "continuations": 1, "reason": "", "notices": []}
    assert ends(editor) == [{"stopReason": "end_turn", "_meta": {"turngate": verdict}}]
    assert answers == [ACCEPTED]
    assert prompts_of(tmp_path) == ["do it", BLOCKS]
    assert {kind for kind, _, _ in cards} == {"tool_call_update"}
    assert [card[1:] for card in cards if card[2] != "in_progress"] == [
        ("Turngate: blocked (1)", "failed"),
        ("Turngate: passed", "completed"),
    ]


@pytest.mark.parametrize("reason", ["refusal", "cancelled"])
def test_an_end_that_is_not_a_stop_passes(reason: str, project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, [["stop", reason]], proxy=PROXY) as editor:
        editor.start_prompt(editor.open(project, 2))
        editor.wait_for(is_idle)
    assert ends(editor) == [{"stopReason": reason}]


def test_a_cancellation_ends_the_gate_and_the_idle_agent_is_not_told(project: Path, tmp_path: Path) -> None:
    slow_gate(project)
    with editor_of(tmp_path, DONE, proxy=PROXY) as editor:
        session = editor.open(project, 2)
        editor.start_prompt(session)
        gate = wait_for_file(project / "started")
        editor.send({"method": "session/cancel", "params": {"sessionId": session}})
        editor.wait_for(is_idle)
        wait_until_gone(gate)
    assert ends(editor) == [{"stopReason": "cancelled"}]
    assert not [each for each in received(tmp_path) if "cancel" in str(each.get("method"))]


@pytest.mark.parametrize("prompts", [[["reject"]], DONE])
def test_a_prompt_that_the_agent_does_not_accept_ends_the_turn(
    prompts: list[list[Any]], project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    with editor_of(tmp_path, prompts, [["reject"]], proxy=PROXY) as editor:
        answer = editor.answer_to(editor.start_prompt(editor.open(project, 2), identity="mine"))
        if prompts == DONE:  # that of the editor was accepted, and ours is not
            editor.wait_for(is_idle)
            assert (answer, ends(editor)) == (ACCEPTED, [{"stopReason": "end_turn"}])
        else:
            assert answer["error"] == {"code": -32000, "message": "busy"}


def test_a_prompt_during_a_turn_belongs_to_it(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    waits = [["wait for file", str(tmp_path / "go")], *DONE]
    with editor_of(tmp_path, waits, [["never"]], DONE, proxy=PROXY) as editor:
        session = editor.open(project, 2)
        for number in (1, 2):
            editor.answer_to(editor.start_prompt(session, f"prompt {number}"))
        (tmp_path / "go").touch()
        editor.wait_for(is_idle)
    assert prompts_of(tmp_path) == ["prompt 1", "prompt 2", BLOCKS]
    assert json.dumps(ends(editor)).count("stalled") == 1
