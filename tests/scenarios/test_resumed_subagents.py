"""A session that is resumed after a crash: its subagents, their reports, and the gates that were missed before it."""

import json
from pathlib import Path
from typing import Any

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.left_behind import STUCK, left_behind, listed, scripted
from tests.support.sessions import BLOCK_COMMAND, SAVE_INPUT, saved_inputs

CONTINUED = "continuing 1 subagent of a process that died: count files"
LIMITED = {"turngate": {"limit": 1}}


def resume(project: Path, *words: str, main: tuple[Any, ...], sub: tuple[Any, ...] = ()) -> tuple[int, Any]:
    """Resume the session `s-1` with another script of the same name. Return its exit code and its result."""
    model = scripted(project, list(main), list(sub))
    given = ("--project", str(project), "--model", model, "--output-format", "json", *words)
    code, out, _ = turngate("run", "-p", "go on", "--resume", "--session", "s-1", *given)
    return code, json.loads(out)


def names(result: Any, key: str = "blocked_subagents") -> list[tuple[str, str, list[str]]]:
    return [(each["label"], each["reason"], each["blocked_by"]) for each in result[key]]


# A subagent whose call is gone


def test_a_resumed_turn_waits_for_a_subagent_whose_call_is_gone(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks(SAVE_INPUT))
    left_behind(project, state)
    late = {"text": "three files", "delay": 1}
    code, result = resume(project, main=("waiting", "thank you"), sub=(late,))
    assert (code, result["result"], result["notices"]) == (0, "thank you", [CONTINUED])
    assert [each["label"] for each in result["subagents"]] == ["count files"]
    assert saved_inputs(project, "last_assistant_message") == ["thank you"]


def test_a_resumed_turn_names_the_blocked_subagent_whose_call_is_gone(project: Path, state: Path) -> None:
    write_settings(
        project, "turngate", {**stop_hooks(BLOCK_COMMAND, event="SubagentStop", id="tests"), **LIMITED}
    )
    left_behind(project, state)
    code, result = resume(project, "--strict", main=("waiting", "thank you"), sub=("three files",))
    assert (code, result["result"], names(result)) == (
        13,
        "thank you",
        [("count files", "capped", ["tests"])],
    )


def test_a_session_that_ends_before_its_subagents_names_them(project: Path, state: Path) -> None:
    left_behind(project, state)
    ask = {"tool": "AskUser", "input": {"question": "Which ones?"}}
    code, result = resume(project, main=(ask,), sub=(STUCK,))
    left = "1 subagent has not finished: count files; continue with `turngate run --resume --session s-1`"
    assert (code, result["ended_by"], result["notices"]) == (12, "question", [CONTINUED, left])
    assert [each["state"] for each in listed()] == ["running"]
