import json
from typing import Any

import pytest

from tests.support.builders import rule, run, settings, stop_event, subagent_stop
from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events import events
from turngate.core.events.events import Event, Subagent
from turngate.core.events.hook_input import effort_level, encode, environment, read_event
from turngate.core.hooks.kinds import CallbackHook, CommandHook, HttpHook, PromptHook
from turngate.core.settings import Settings
from turngate.core.text import truncate_middle
from turngate.core.verdict.decisions import Block, Fault, persisted_output, truncate_decision
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.json_output import hook_json, run_json, verdict_json
from turngate.core.verdict.verdict import conclude

SIX = ["session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "stop_hook_active"]


@pytest.mark.req("S0-05", "S0-24", "S0-27", "S0-29", "S3-18", "T-5")
def test_a_hook_gets_one_compact_line_that_begins_with_the_six_fields() -> None:
    assert encode(stop_event(last_assistant_message="done"), TURNGATE) == (
        b'{"session_id":"s-1","transcript_path":"/t/chat.jsonl","cwd":"/p","permission_mode":"default",'
        b'"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done","continuation_count":0}\n'
    )


@pytest.mark.req("X-06", "C-14")
def test_a_hook_learns_how_often_the_turn_was_continued_and_how_often_it_may_be() -> None:
    told = json.loads(encode(stop_event(stop_hook_active=True, continuation_count=2, limit=3), TURNGATE))
    assert (told["stop_hook_active"], told["continuation_count"], told["max_continuations"]) == (True, 2, 3)


@pytest.mark.req("C-14")
def test_a_strict_payload_is_the_six_fields_alone() -> None:
    assert list(json.loads(encode(stop_event(last_assistant_message="x"), TURNGATE, "strict"))) == SIX


CHILD = subagent_stop("Explore")


@pytest.mark.req("C-14")
@pytest.mark.parametrize(
    ("dialect", "session", "transcript"),
    [(TURNGATE, "s-1", "/t/a-1.jsonl"), (MUX, "a-1", "/t/a-1.jsonl"), (CLAUDE, "s-1", "/t/chat.jsonl")],
)
def test_a_subagent_is_named_as_its_dialect_wants_and_always_by_both_ids(
    dialect: Dialect, session: str, transcript: str
) -> None:
    told = json.loads(encode(CHILD, dialect))
    assert {key: told[key] for key in told if "id" in key or "transcript" in key or "agent" in key} == {
        "session_id": session,
        "transcript_path": transcript,
        "agent_id": "a-1",
        "agent_type": "Explore",
        "agent_transcript_path": "/t/a-1.jsonl",
        "parent_session_id": "s-1",
        "parent_transcript_path": "/t/chat.jsonl",
    }


def test_claude_writes_its_keys_in_its_own_order_and_others_after() -> None:
    event = stop_event(
        last_assistant_message="x", prompt_id="p", effort="medium", subagent=Subagent(id="a", type="Explore")
    )
    assert list(json.loads(encode(event, CLAUDE))) == [
        *(
            "session_id",
            "transcript_path",
            "cwd",
            "prompt_id",
            "permission_mode",
            "agent_id",
            "agent_type",
            "effort",
        ),
        *("hook_event_name", "stop_hook_active", "agent_transcript_path", "last_assistant_message"),
        *("background_tasks", "session_crons", "continuation_count"),
        *("parent_session_id", "parent_transcript_path", "outcome"),
    ]


@pytest.mark.parametrize("dialect", [TURNGATE, MUX])
def test_no_boolean_stands_after_stop_hook_active(dialect: Dialect) -> None:
    event = subagent_stop()
    line = encode(event, dialect).decode()
    after = line.split('"stop_hook_active":false')[1]
    assert ("true" in after, "false" in after) == (False, False)


@pytest.mark.parametrize(
    ("message", "turngate", "claude"),
    [
        (("part one", "part two"), "part one\npart two", "part two"),
        ("\n  padded \n", "\n  padded \n", "padded"),
        ("  ", "  ", None),
        (None, None, None),
        ((), "", None),
    ],
)
def test_the_last_message_is_passed_as_each_dialect_does(
    message: Any, turngate: str | None, claude: str | None
) -> None:
    event = stop_event(last_assistant_message=message)
    told = [
        json.loads(encode(event, dialect)).get("last_assistant_message") for dialect in (TURNGATE, CLAUDE)
    ]
    assert told == [turngate, claude]


def test_half_a_surrogate_in_the_answer_does_not_break_the_line() -> None:
    told = json.loads(encode(stop_event(last_assistant_message="half \ud83c"), TURNGATE))
    assert told["last_assistant_message"] == "half ?"


@pytest.mark.req("S0-32", "S0-33", "S0-34", "S0-35", "X-06")
def test_the_environment_names_the_project_the_transcript_and_the_count() -> None:
    event = stop_event(stop_hook_active=True, continuation_count=1)
    assert environment(event, "/p", TURNGATE, pid=7) == {
        "TURNGATE_PROJECT_DIR": "/p",
        "TURNGATE_STOP_HOOK_ACTIVE": "true",
        "TURNGATE_STOP_HOOK_COUNT": "1",
        "TURNGATE_TRANSCRIPT_PATH": "/t/chat.jsonl",
        "MUX_PROJECT_DIR": "/p",
        "MUX_STOP_HOOK_ACTIVE": "true",
        "MUX_STOP_HOOK_COUNT": "1",
        "MUX_TRANSCRIPT_PATH": "/t/chat.jsonl",
        "CLAUDE_PROJECT_DIR": "/p",
        "CLAUDE_CODE_SESSION_ID": "s-1",
        "TURNGATE_EVENT": "Stop",
        "TURNGATE_SESSION_ID": "s-1",
        "TURNGATE_IN_HOOK": "1",
    }


def test_the_transcript_in_the_environment_is_that_of_the_agent_that_stops() -> None:
    assert environment(CHILD, "/p", TURNGATE, pid=7)["MUX_TRANSCRIPT_PATH"] == "/t/a-1.jsonl"


def test_in_its_own_dialect_a_hook_has_the_variables_of_claude_code() -> None:
    added = set(environment(stop_event(effort="high"), "/p", CLAUDE, pid=7).items())
    assert added - set(environment(stop_event(effort="high"), "/p", TURNGATE, pid=7).items()) == {
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli"),
        ("CLAUDE_PID", "7"),
        ("CLAUDE_EFFORT", "high"),
    }


KNOWN: dict[str, Any] = {"session_id": "s", "prompt_id": "p-1", "effort": "medium"}
TOOL: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
HEAD = ("session_id", "transcript_path", "cwd")
IN_CLAUDE: list[tuple[Event, tuple[str, ...]]] = [
    (events.SessionStart(**KNOWN, model="m"), (*HEAD, "hook_event_name", "source")),
    (
        events.UserPromptSubmit(**KNOWN),
        (*HEAD, "prompt_id", "permission_mode", "hook_event_name", "prompt"),
    ),
    (
        events.PreToolUse(**KNOWN, **TOOL),
        (
            *HEAD,
            "prompt_id",
            "permission_mode",
            "effort",
            "hook_event_name",
            "tool_name",
            "tool_input",
            "tool_use_id",
        ),
    ),
    (
        events.PostToolUse(**KNOWN, **TOOL, duration_ms=5),
        (
            *HEAD,
            "prompt_id",
            "permission_mode",
            "effort",
            "hook_event_name",
            "tool_name",
            "tool_input",
            "tool_response",
            "tool_use_id",
            "duration_ms",
        ),
    ),
    (
        events.SubagentStart(**KNOWN, agent_id="a", agent_type="Explore"),
        (*HEAD, "prompt_id", "agent_id", "agent_type", "hook_event_name"),
    ),
    (
        events.StopFailure(**KNOWN),
        (*HEAD, "prompt_id", "effort", "hook_event_name", "error", "last_assistant_message"),
    ),
]


@pytest.mark.parametrize(("event", "keys"), IN_CLAUDE, ids=lambda value: getattr(value, "name", ""))
def test_other_events_have_the_fields_of_claude_code_in_its_order(
    event: Event, keys: tuple[str, ...]
) -> None:
    assert tuple(json.loads(encode(event, CLAUDE))) == keys


@pytest.mark.parametrize(
    ("dialect", "environ", "effort"),
    [
        (CLAUDE, {}, "medium"),
        (TURNGATE, {}, ""),
        (TURNGATE, {"CLAUDE_CODE_EFFORT_LEVEL": "high"}, "high"),
        (CLAUDE, {"CLAUDE_CODE_EFFORT_LEVEL": "high"}, "high"),
    ],
)
def test_the_effort_is_the_one_that_the_user_set(
    dialect: Dialect, environ: dict[str, str], effort: str
) -> None:
    assert effort_level(Settings(dialect=dialect), environ) == effort
    assert effort_level(Settings(dialect=dialect, env=environ), {}) == effort


OTHERS: list[tuple[Event, dict[str, Any], str | None]] = [
    (events.SessionStart(session_id="s", source="resume"), {"source": "resume", "model": ""}, "resume"),
    (events.UserPromptSubmit(session_id="s", prompt="hi"), {"prompt": "hi"}, None),
    (
        events.PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": "ls"}),
        {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": ""},
        "Bash",
    ),
    (
        events.PermissionRequest(session_id="s", tool_name="Edit"),
        {"tool_name": "Edit", "tool_input": {}},
        "Edit",
    ),
    (
        events.PostToolUse(session_id="s", tool_name="Read", tool_response=[1]),
        {"tool_name": "Read", "tool_input": {}, "tool_use_id": "", "tool_response": [1]},
        "Read",
    ),
    (
        events.PostToolUse(session_id="s", tool_name="Read", duration_ms=7, prompt_id="p", effort="low"),
        {
            "tool_name": "Read",
            "tool_input": {},
            "tool_use_id": "",
            "tool_response": None,
            "duration_ms": 7,
            "prompt_id": "p",
            "effort": {"level": "low"},
        },
        "Read",
    ),
    (
        events.PostToolUseFailure(session_id="s", tool_name="Bash", error="exit code 3"),
        {
            "tool_name": "Bash",
            "tool_input": {},
            "tool_use_id": "",
            "error": "exit code 3",
            "is_interrupt": False,
        },
        "Bash",
    ),
    (
        events.PostToolBatch(session_id="s", tool_calls=[{"tool_name": "Bash"}]),
        {"tool_calls": [{"tool_name": "Bash"}]},
        None,
    ),
    (
        events.PreCompact(session_id="s", trigger="auto"),
        {"trigger": "auto", "custom_instructions": ""},
        "auto",
    ),
    (
        events.SubagentStart(session_id="s", agent_id="a", agent_type="Explore"),
        {"agent_id": "a", "agent_type": "Explore"},
        "Explore",
    ),
    (events.StopFailure(session_id="s", error="529"), {"error": "529", "last_assistant_message": ""}, None),
    (events.SessionEnd(session_id="s", reason="clear"), {"reason": "clear"}, "clear"),
]


@pytest.mark.parametrize(("event", "own", "subject"), OTHERS)
def test_every_other_event_has_its_fields_and_its_subject(
    event: Event, own: dict[str, Any], subject: str | None
) -> None:
    common = {"session_id": "s", "transcript_path": "", "cwd": "", "permission_mode": "default"}
    told = json.loads(encode(event, TURNGATE))
    assert (told, event.subject) == ({**common, "hook_event_name": event.name, **own}, subject)


@pytest.mark.parametrize(("event", "own", "subject"), OTHERS)
def test_what_is_written_can_be_read_back(event: Event, own: dict[str, Any], subject: str | None) -> None:
    assert read_event(event.name, json.loads(encode(event, TURNGATE)), cwd="/p") == event


def test_an_event_that_says_nothing_gets_sensible_defaults() -> None:
    assert read_event("Stop", {}, cwd="/p") == events.StopEvent(session_id="fire", cwd="/p")


def test_a_subagent_is_read_back_too() -> None:
    assert read_event("SubagentStop", json.loads(encode(CHILD, CLAUDE)), cwd="/p") == CHILD


WRONG: list[tuple[str, Any, str]] = [
    ("Stop", {"session_id": 5}, "`session_id` must be a string, not '5'"),
    ("Stop", {"stop_hook_active": "yes"}, "`stop_hook_active` must be true or false, not 'yes'"),
    ("Stop", {"continuation_count": True}, "`continuation_count` must be a whole number, not 'True'"),
    (
        "Stop",
        {"hook_event_name": "SubagentStop"},
        "`hook_event_name` must be 'Stop', not 'SubagentStop'",
    ),
    ("SubagentStop", {"outcome": "odd"}, '`outcome` must be "ok", "error" or "timeout", not \'odd\''),
    ("Stop", [1], "an event is a JSON object, not list"),
]


@pytest.mark.parametrize(("name", "told", "sentence"), WRONG)
def test_a_wrong_event_is_rejected_with_the_field(name: str, told: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the sentence is compared whole
        read_event(name, told, cwd="/p")
    assert str(caught.value) == sentence


def test_a_verdict_as_json_has_exactly_these_fields() -> None:
    report = Exited(2, "out", "err\n")
    ran = HookRun(
        rule("make test", source="project", file=".turngate/settings.json"),
        report,
        Block("err"),
        0.01234,
        60.0,
    )
    verdict = conclude((ran,), TURNGATE)
    assert verdict_json(verdict, "Stop", settings()) == {
        "event": "Stop",
        "verdict": "continue",
        "ended_by": None,
        "prompt": "[Stop hook requested continuation]\nerr",
        "stop_reason": None,
        "permission": None,
        "context": "",
        "runs": [
            {
                "hook": {"type": "command", "command": "make test", "timeout": 60.0},
                "source": "project",
                "file": ".turngate/settings.json",
                "outcome": "block",
                "reason": "err",
                "exit_code": 2,
                "seconds": 0.0123,
                "stdout": "out",
                "stderr": "err\n",
                "notice": None,
            }
        ],
        "unenforced": [],
        "not_loaded": False,
        "warnings": [],
    }


def test_a_gate_that_failed_stands_in_unenforced() -> None:
    verdict = conclude((run(Fault("exit code 1: boom"), "lint"),), TURNGATE)
    shown = verdict_json(verdict, "Stop", settings())
    assert (shown["ended_by"], shown["unenforced"], shown["warnings"]) == (
        "allowed",
        [{"hook": "lint", "outcome": "failed", "why": "exit code 1: boom"}],
        ['hook "lint" failed and was NOT enforced: exit code 1: boom'],
    )


@pytest.mark.req("X-12")
def test_a_result_keeps_the_head_and_the_tail_of_what_was_printed() -> None:
    shown = run_json(run(Fault("x"), report=TimedOut(1.0, "a" * 9000 + "b" * 9000)))["stdout"]
    assert shown == "a" * 4000 + "\n… [10,000 characters left out] …\n" + "b" * 4000


def test_a_callback_is_never_serialised() -> None:
    assert [
        hook_json(hook)
        for hook in (
            CommandHook("x", args=("y",), id="z", timeout_ms=1500),
            PromptHook("is it done?"),
            PromptHook("is it good?", model="a:b", transcript="digest"),
            HttpHook("http://localhost/x"),
            CallbackHook(print, name="printer"),
        )
    ] == [
        {"type": "command", "command": "x", "args": ["y"], "id": "z", "timeout": 1.5},
        {"type": "prompt", "prompt": "is it done?"},
        {"type": "prompt", "prompt": "is it good?", "model": "a:b", "transcript": "digest"},
        {"type": "http", "url": "http://localhost/x"},
        {"type": "callback", "name": "printer"},
    ]


@pytest.mark.req("X-12")
def test_a_long_reason_keeps_head_and_tail_and_says_where_the_whole_is() -> None:
    cut = truncate_middle("a" * 9000 + "b" * 9000, 10_000, "/state/x.txt")
    note = "\n… [about 8,000 characters left out; the whole text is in /state/x.txt] …\n"
    assert (len(cut), cut.strip("ab")) == (10_000, note)


def test_claude_shows_a_preview_of_long_advice() -> None:
    told = truncate_decision(Block("r" * 20_000, "c" * 10_001), CLAUDE, {"c" * 10_001: "/x.txt"})
    assert told == Block("r" * 20_000, persisted_output("c" * 10_001, "/x.txt"))
    assert persisted_output("c" * 10_001, "/x.txt") == (
        "<persisted-output>\nOutput too large (9.8KB). Full output saved to: /x.txt\n\nPreview (first 2KB):\n"
        + "c" * 2000
        + "\n...\n</persisted-output>"
    )


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE])
def test_a_subagents_event_is_read_back_in_every_dialect(dialect: Dialect) -> None:
    assert read_event("SubagentStop", json.loads(encode(CHILD, dialect)), cwd="/p") == CHILD


def test_a_strict_payload_leaves_other_events_as_they_are() -> None:
    event = events.PreToolUse(session_id="s", tool_name="Bash")
    assert encode(event, TURNGATE, "strict") == encode(event, TURNGATE)
