"""`turngate acp --prompt`: one turn of an agent without an editor; and when the stops are left to the agent's own line."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acp.line_editor import AGENT, editor_of, started
from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from turngate.hosts.host import HEADING

NOT_YET = "echo not yet >&2; exit 2"
DONE = [["text", "Done."]]


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")


def prompt(
    project: Path, tmp_path: Path, *prompts: list[list[Any]], options: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(prompts))
    words = ("acp", "--prompt", "do it", "--project", str(project), *options)
    return turngate(*words, "--", sys.executable, str(AGENT), str(script))


@pytest.mark.parametrize(
    ("hook", "code", "said"),
    [
        ("true", 0, ["turngate acp: passed"]),
        (NOT_YET, 10, [f"turngate acp: blocked (1): {HEADING}", "not yet"]),
        ("""echo '{"continue": false, "stopReason": "enough"}'""", 11, ["turngate acp: halted: enough"]),
    ],
)
def test_the_exit_code_is_that_of_a_turn(
    hook: str, code: int, said: list[str], project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks(hook))
    ended, out, err = prompt(project, tmp_path, DONE)
    assert (ended, out) == (code, "Done.\n")
    assert err.splitlines()[: len(said)] == said


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 13)])
def test_a_hook_that_is_not_enforced_fails_only_with_strict(
    options: tuple[str, ...], code: int, project: Path, tmp_path: Path
) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1"))
    assert prompt(project, tmp_path, DONE, options=options)[:2] == (code, "Done.\n")


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ([["stop", "refusal"]], "it stopped with refusal"),
        ([["error", -32000, "no login"]], "no login"),
        ([["exit", 3]], "the agent ended with exit code 3"),
    ],
)
def test_an_agent_that_fails_is_20(steps: list[list[Any]], why: str, project: Path, tmp_path: Path) -> None:
    assert prompt(project, tmp_path, steps) == (20, "", f"turngate acp: the agent failed: {why}\n")


@pytest.mark.parametrize("allowed", [False, True])
def test_a_tool_is_permitted_only_if_its_kind_is(allowed: bool, project: Path, tmp_path: Path) -> None:
    options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
    ask = [
        "request",
        "session/request_permission",
        {"toolCall": {"kind": "edit", "title": "a.py"}, "options": options},
    ]
    err = prompt(project, tmp_path, [ask, *DONE], options=("--allow", "edit") if allowed else ())[2]
    answers = [json.loads(line).get("answer") for line in (tmp_path / "received").read_text().splitlines()]
    chosen = "allow_once" if allowed else "reject_once"
    assert {"outcome": {"outcome": "selected", "optionId": chosen}} in answers
    assert err == ("" if allowed else "turngate acp: not permitted: a.py; `--allow edit` permits it\n")


def test_the_stops_are_left_to_the_line_of_the_agent_itself(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(NOT_YET))
    assert turngate("install", "claude", "--yes")[0] == 0
    (tmp_path / "claude-agent-acp").write_text(AGENT.read_text())
    script = tmp_path / "script.json"
    script.write_text(json.dumps([DONE]))
    words = [
        sys.executable,
        "-m",
        "turngate",
        "acp",
        "--",
        sys.executable,
        str(tmp_path / "claude-agent-acp"),
    ]
    with started([*words, str(script)]) as editor:
        session = editor.open(project)
        answer = editor.prompt(session)
        editor.close()
    assert answer["result"] == {"stopReason": "end_turn"}
    assert editor.errors == (
        f"turngate acp: Claude Code runs `turngate hook` itself in {project}, "
        f"so the stops of session {session} are left to it\n"
    )


def test_gates_read_the_transcript_of_an_agent_that_has_none(project: Path, tmp_path: Path) -> None:
    gates = [{"type": "gate", "gate": name, "id": name} for name in ("todos", "evidence")]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": gates}]}})

    def call(number: int, **fields: Any) -> list[Any]:
        fields = {"sessionUpdate": "tool_call", "toolCallId": str(number), "title": "t", **fields}
        return ["update", {**fields, "status": "completed"}]

    def plan(status: str) -> list[Any]:
        return ["update", {"sessionUpdate": "plan", "entries": [{"content": "tests", "status": status}]}]

    edit = call(1, kind="edit", locations=[{"path": str(project / "a.py")}])
    check = call(
        2,
        kind="execute",
        rawInput={"command": ["bash", "-lc", "pytest -q"]},
        rawOutput={"exit_code": 0, "output": "1 passed"},
    )
    with editor_of(tmp_path, [plan("pending"), edit, *DONE], [check, plan("completed"), *DONE]) as editor:
        answer = editor.prompt(editor.open(project))
    prompts = [json.loads(line) for line in (tmp_path / "received").read_text().splitlines()]
    reason = prompts[-1]["params"]["prompt"][0]["text"]
    assert "1 of 1 tasks in your task list is open:\n- tests" in reason
    assert "You have edited" in reason
    assert answer["result"]["_meta"]["turngate"]["outcome"] == "allowed"


@pytest.mark.parametrize(
    ("steps", "extra"),
    [
        ([["update", {"sessionUpdate": "usage_update", "used": 900, "size": 1000}]], {}),
        ([], {"usage": {"totalTokens": 900, "inputTokens": 800, "outputTokens": 100}}),
    ],
)
def test_the_budget_counts_what_an_agent_reports(
    steps: list[list[Any]], extra: dict[str, Any], project: Path, tmp_path: Path
) -> None:
    budget = {"type": "gate", "gate": "budget", "options": {"tokens": 900}}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [budget]}]}})
    with editor_of(tmp_path, [*steps, *DONE, ["stop", "end_turn", extra]]) as editor:
        verdict = editor.prompt(editor.open(project))["result"]["_meta"]["turngate"]
    assert (verdict["outcome"], verdict["reason"]) == (
        "halted",
        "the budget of this session is used up: 900 of 900 tokens",
    )
