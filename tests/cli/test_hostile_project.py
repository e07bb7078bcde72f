"""Every command over a project whose settings, hooks, model, files and state try to command the terminal."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.terminal import Terminal
from turngate.cli.main import COMMANDS
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.text import printable, strip_controls
from turngate.subagents.registry import Registry

# Colors that Turngate does not use, a title, controls with 8 bits, marks of direction, invisible characters.
EVIL = (
    "a\x1b[35mb\x1b]0;title\x07c\x9b35md\x7fe\rf\x08g\x85h\x1b(0i"
    "\u202aj\u202ek\u202cl\u2066m\u2069n\u200eo\u200fp\u061cq\u2028r\u2029s\u200bt\ufeffu\U000e0041v"
)
NEWLINE = f"{EVIL}\n{EVIL}"
RUN_ID = "3fa9c0de" * 4
OWN_SEQUENCES = re.compile(r"\x1b\[(?:0|1|2|31|32|33|1;31)m|\r\x1b\[K|\r\n")


def evil_settings(answer: Path) -> dict[str, Any]:
    hooks = [
        {"type": "command", "id": EVIL, "command": f"cat '{answer}'", "statusMessage": EVIL, EVIL: EVIL},
        {"type": "command", "command": f"echo '{EVIL}' >&2; exit 1 # {EVIL}"},
        {"type": "command", "command": f"./{EVIL}.sh", "if": EVIL, "timeout": EVIL},
        {"type": EVIL, "command": EVIL},
        {"type": "prompt", "prompt": EVIL, "model": f"scripted:{EVIL}"},
        {"type": "http", "url": f"http://127.0.0.1:1/{EVIL}"},
    ]
    groups = [{"matcher": EVIL, "hooks": hooks[:2]}, {"matcher": f"[{EVIL}", "hooks": hooks[:1]}]
    return {
        EVIL: EVIL,
        "model": EVIL,
        "hooks": {"Stop": [{"hooks": hooks}], f"Stop{EVIL}": [{"hooks": hooks}], "PreToolUse": groups},
    }


def evil_journal(project: Path) -> Iterator[dict[str, Any]]:
    common = {"time": 1.0, "session_id": EVIL, "project": str(project), "event": EVIL}
    hook = {"id": EVIL, "type": EVIL}
    yield {**common, "kind": "run", "hook": hook, "outcome": EVIL, "seconds": 1.0, "reason": NEWLINE}
    yield {**common, "kind": "verdict", "verdict": "continue", "blocked_by": [EVIL], "prompt": NEWLINE}
    yield {
        **common,
        "kind": "verdict",
        "verdict": "stop",
        "stop_reason": EVIL,
        "unenforced": [{"hook": EVIL}],
    }
    yield {**common, "kind": "turn_end", "ended_by": EVIL, "reason": NEWLINE}
    yield {**common, "kind": "notice", "text": NEWLINE}
    yield {**common, "kind": "start", "hook": hook, "run": EVIL, "process": [1, EVIL]}


def evil_transcript() -> Iterator[dict[str, Any]]:
    call = {"type": "tool_use", "id": EVIL, "name": EVIL, "input": {EVIL: EVIL}}
    result = {"type": "tool_result", "tool_use_id": EVIL, "content": NEWLINE, "is_error": True}
    yield {"type": "user", "cwd": EVIL, "message": {"role": "user", "content": NEWLINE}}
    reply = {"role": "assistant", "content": [{"type": "text", "text": NEWLINE}, call]}
    yield {"type": "assistant", "message": reply}
    yield {"type": "user", "message": {"role": "user", "content": [result]}}


def evil_run(project: Path) -> SubagentRun:
    texts = ("agent_type", "parent", "parent_agent", "label", "task", "prompt", "error", "result", "reason")
    return SubagentRun(
        id=RUN_ID,
        chain=RUN_ID,
        agent_id=EVIL,
        **dict.fromkeys(texts, NEWLINE),  # type: ignore[arg-type]
        owner="gone",
        created=1.0,
        steer_count=1,
        steer_why=NEWLINE,
        transcript=EVIL,
        tools=(EVIL,),
        launch={"project": str(project), "model": EVIL},
    )


def evil_script(path: Path) -> str:
    calls = [
        {"text": EVIL, "tool": EVIL, "input": {EVIL: EVIL}},
        {"text": EVIL, "tool": "Bash", "input": {"command": f"echo '{EVIL}'; false"}},
        {"text": EVIL, "tool": "Read", "input": {"file_path": EVIL}},
        {"text": EVIL, "tool": "Task", "input": {"description": EVIL, "prompt": EVIL, "subagent_type": EVIL}},
    ]
    path.write_text(json.dumps({"main": [*calls, *[NEWLINE] * 20], "sub": [NEWLINE] * 20}))
    return f"scripted:{path}"


@pytest.fixture
def hostile(project: Path, state: Path) -> Path:
    """Return the folder of the project, in which every name and text is hostile."""
    folder = project / EVIL
    answer = project / "answer.json"
    reply = {"decision": "block", "reason": NEWLINE, "systemMessage": NEWLINE, "stopReason": EVIL, EVIL: EVIL}
    answer.write_text(json.dumps(reply))
    write_settings(folder, "turngate", evil_settings(answer))
    (folder / ".turngate/agents").mkdir()
    (folder / f".turngate/agents/{EVIL}.md").write_text(f"---\nname: {EVIL}\ntools: {EVIL}\n---\n{EVIL}")
    write_settings(folder, "turngate", stop_hooks(EVIL), f"settings{EVIL}.json")
    (folder / EVIL).touch()
    registry = Registry(str(state))
    registry.register(evil_run(folder), may_run=True, max_running=9)
    registry.close()
    write_lines(state / "sessions/j-1/journal.jsonl", evil_journal(folder))
    write_lines(state / "sessions" / EVIL / "chat.jsonl", evil_transcript())
    return folder


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def commands(hostile: Path, model: str) -> list[tuple[str, ...]]:
    """Return calls of every command; those after `run` show what it has left."""
    there = ("--project", str(hostile))
    return [
        ("check", *there),
        ("check", "--json", *there),
        ("check", "--project", f"/{EVIL}"),
        ("status", *there),
        ("status", "--json", *there),
        ("doctor", *there),
        ("doctor", "--json", *there),
        ("doctor", "--prove", *there),
        ("hooks", *there),
        ("hooks", "--json", *there),
        ("hooks", "diff", *there),
        ("hooks", "show", EVIL, *there),
        ("hooks", "show", NEWLINE, *there),
        ("hooks", "approve", "--all", "--yes", *there),
        ("hooks", "reject", EVIL, *there),
        ("gate", EVIL, *there),
        ("gate", "--", "sh", "-c", f"echo '{EVIL}'; exit 1", *there),
        ("init", "--dry-run", *there),
        ("init", *there),
        ("registry", "init"),
        ("gates", *there),
        ("gates", "--json", *there),
        ("gates", "run", *there),
        ("gates", "run", "--json", *there),
        ("gates", "run", EVIL, *there),
        ("log", "--session", "j-1"),
        ("log", "--session", "j-1", "--json"),
        ("fire", "Stop", *there),
        ("fire", "Stop", "--json", *there),
        ("fire", "PreToolUse", "--field", f"tool_name={EVIL}", *there),
        ("fire", EVIL, *there),
        ("hook", *there),
        ("install",),
        ("install", EVIL),
        ("uninstall", EVIL),
        ("run", "-p", EVIL, "--model", model, "--session", "s-1", *there),
        ("run", "-p", EVIL, "--model", model, "--output-format", "stream-json", *there),
        ("run", "--model", model, *there),
        ("run", "-p", "hi", "--model", EVIL, *there),
        ("log", *there),
        ("log", "--blocks", *there),
        ("log", "--wrong", EVIL),
        ("stats", "--since", "5000w", *there),
        ("stats", "--all", "--since", "5000w"),
        ("serve", "--all", "--html", "-"),
        ("top",),
        ("top", "--json"),
        ("stats", EVIL, "--all", "--since", "5000w"),
        ("goal", EVIL, "--proof", EVIL, "--for", "next", *there),
        ("goal", *there),
        ("goal", "--json", *there),
        ("goal", "clear", "--for", EVIL, *there),
        ("replay", EVIL),
        ("replay", "j-1", *there),
        ("backtest", EVIL, *there),
        ("backtest", "todos", "--all", "--since", "5000w", "--project", str(hostile)),
        ("goal", EVIL, "--proof", EVIL, *there),
        ("goal", *there),
        ("goal", "clear", "--for", EVIL, *there),
        ("replay", "s-1", "1", *there),
        ("replay", EVIL, "1", *there),
        ("sessions",),
        ("sessions", "--json"),
        ("sessions", "show", "s-1"),
        ("sessions", "show", EVIL),
        ("acp", "--prompt", EVIL, *there, "--", "false", EVIL),
        ("worker", *there),
        ("workers",),
        ("runs",),
        ("runs", "--all"),
        ("runs", "--json", "--all"),
        ("runs", "show", RUN_ID),
        ("runs", "show", EVIL),
        ("runs", "kill", RUN_ID),
        ("runs", "recover", *there),
        ("schema", "settings"),
        ("completion", "bash"),
        ("demo", EVIL),
        (EVIL,),
    ]


def unprintable(text: str) -> set[str]:
    return {letter for letter in text if not (letter.isprintable() or letter in "\n\t")}


def test_no_command_prints_a_control_character_of_a_hostile_project(hostile: Path, tmp_path: Path) -> None:
    model = evil_script(tmp_path / "script.json")
    calls = commands(hostile, model)
    printed, failed = {}, {}
    for words in calls:
        code, out, err = turngate(*words, stdin=f"{EVIL}\n")
        if found := unprintable(out + err):
            printed[words] = found
        if code == 70 or not out + err:
            failed[words] = (code, err)
    assert (printed, failed) == ({}, {})
    assert {words[0] for words in calls} >= set(COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        ("doctor", "--prove"),
        ("fire", "Stop"),
        ("log",),
        ("sessions",),
        ("runs", "--all"),
        ("run", "-p", "hi"),
    ],
)
def test_at_a_terminal_the_only_sequences_are_those_of_turngate(
    hostile: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    model = ("--model", evil_script(tmp_path / "script.json")) if words[0] == "run" else ()
    with Terminal(*words, *model, cwd=hostile) as terminal:
        terminal.process.wait()
        terminal.expect("\n")
        terminal.close()
        shown = terminal.raw.decode()
    assert unprintable(OWN_SEQUENCES.sub("\n", shown)) == set()


def test_json_keeps_what_a_hook_wrote_in_ascii(hostile: Path) -> None:
    out = turngate("fire", "Stop", "--json", "--project", str(hostile))[1]
    assert out.isascii()
    assert NEWLINE in json.loads(out)["prompt"]
    out = turngate("log", "--session", "j-1", "--json")[1]
    assert out.isascii()
    assert [json.loads(line) for line in out.splitlines()][:6] == list(evil_journal(hostile))


def test_one_function_removes_what_is_not_visible() -> None:
    shown = "abc35mdefgh(0ijklmnopq r stuv"
    assert (strip_controls(EVIL), printable(NEWLINE)) == (shown, f"{shown} {shown}")


def test_joiners_line_ends_and_tabs_stay_and_surrogates_are_replaced() -> None:
    assert strip_controls("نمی‌خواهم 👩‍💻\t1\r\n2\ud800") == "نمی‌خواهم 👩‍💻\t1\n2?"
