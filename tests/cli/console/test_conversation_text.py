"""The texts of a conversation."""

from typing import Any

import pytest

from tests.support.builders import settings
from turngate.cli.console.conversation_text import (
    format_hook_end,
    format_tool,
    format_turn_end,
    outcome_label,
    parse_command,
)
from turngate.core.conversation.messages import ToolUse, Usage
from turngate.core.events.stream_events import HookFinished, TurnResult
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import strip_controls


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("a\rb\x9bc\x00", "abc"),
        ("l1\r\nl2\tx", "l1\nl2\tx"),
        ("safe\u202egpj.exe", "safegpj.exe"),
    ],
)
def test_nothing_that_is_shown_can_steer_the_terminal(text: str, shown: str) -> None:
    assert strip_controls(text) == shown


COMMANDS: list[tuple[str, tuple[str | None, str]]] = [
    ("/help", ("/help", "")),
    ("/compact keep\nnames ", ("/compact", "keep\nnames")),
    (" /help", (None, "/help")),
    ("/etc/hosts is wrong", (None, "/etc/hosts is wrong")),
    ("hello /help", (None, "hello /help")),
]


@pytest.mark.parametrize(("text", "taken"), COMMANDS)
def test_a_command_is_one_word_with_a_slash(text: str, taken: tuple[str | None, str]) -> None:
    assert parse_command(text) == taken


TOOLS: list[tuple[str, dict[str, Any], str]] = [
    ("Bash", {"command": "pytest -q\necho done"}, "Bash: pytest -q …"),
    ("Read", {"file_path": "/p/src/a.py"}, "Read: src/a.py"),
    ("Grep", {"pattern": "def "}, "Grep: def"),
    ("Task", {"description": "count the tests", "prompt": "Count them."}, "Task: count the tests"),
    ("TodoWrite", {"todos": [{}, {}]}, "TodoWrite: 2 tasks"),
    ("Bash", {}, "Bash"),
]


@pytest.mark.parametrize(("tool", "args", "line"), TOOLS)
def test_a_tool_call_is_one_line(tool: str, args: dict[str, Any], line: str) -> None:
    assert format_tool(ToolUse("t", tool, args), "/p") == line


def test_every_outcome_has_one_label() -> None:
    outcomes = ("allow", "block", "advise", "halt", "failed", "timeout", "skipped", "would_block", "looked")
    assert [outcome_label(outcome) for outcome in outcomes] == [
        "passed",
        "blocked",
        "advised",
        "halted",
        "failed (not enforced)",
        "timed out (not enforced)",
        "skipped",
        "would block",
        "hook agent",
    ]


@pytest.mark.parametrize(
    ("blocking", "line"),
    [(False, '  hook "tests": failed (not enforced) (0.2 s)'), (True, '  hook "tests": failed (0.2 s)')],
)
def test_a_failure_that_may_block_is_not_called_not_enforced(blocking: bool, line: str) -> None:
    configured = settings(CommandHook("make test", id="tests", blocking=blocking))
    assert format_hook_end(HookFinished("Stop", "tests", "failed", 0.2), configured) == line


ENDS: list[tuple[dict[str, Any], list[str]]] = [
    ({"ended_by": "allowed", "model_requests": 1}, []),
    ({"ended_by": "interrupt"}, ["interrupted; not run: Bash: make"]),
    ({"ended_by": "halted"}, ["turn halted by a hook"]),
    ({"ended_by": "halted", "stop_reason": "enough"}, ["turn ended (halted): enough"]),
    ({"ended_by": "error", "stop_reason": "no key", "notices": ("no key",)}, []),
    ({"ended_by": "question", "question": "red?"}, ["the agent asks: red?"]),
    (
        {"ended_by": "allowed", "model_requests": 2, "continuations": 1, "duration_ms": 1234},
        ["  2 model requests, 1 continuation, 1.2 s"],
    ),
]


@pytest.mark.parametrize(("fields", "lines"), ENDS)
def test_the_end_of_a_turn_is_explained_where_the_conversation_does_not_show_it(
    fields: dict[str, Any], lines: list[str]
) -> None:
    result = TurnResult(session_id="s", transcript_path="/t", **fields)
    assert [text for text, _ in format_turn_end(result, "interrupted; not run: Bash: make")] == lines


USED = Usage(input_tokens=1000, output_tokens=34, cache_creation_input_tokens=500, cache_read_input_tokens=7)


@pytest.mark.parametrize(
    ("cost", "shown"), [(None, ""), (0.0, ", $0.0000"), (0.00412, ", $0.0041"), (12.345, ", $12.35")]
)
def test_the_totals_of_a_turn_name_its_tokens_and_their_price_if_it_is_known(
    cost: float | None, shown: str
) -> None:
    result = TurnResult(
        ended_by="allowed", session_id="s", transcript_path="/t", model_requests=1, usage=USED, cost=cost
    )
    lines = [text for text, _ in format_turn_end(result, totals=True)]
    assert lines == [f"  1 model request, 1,507 tokens in, 34 out{shown}, 0.0 s"]
