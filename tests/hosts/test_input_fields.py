"""The input of each host → our fields."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hosts.recordings import FOLDER, INPUTS, in_snake_case, input_id, recorded
from turngate.core.events.events import Event, SessionStart, StopEvent, Subagent, SubagentStart
from turngate.core.events.hook_input import read_event
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.input_fields import TRACES, normalize, recognize, variable_of_command

# Program: its names of the prompt and of the agent's last answer.
NAMES = {
    "claude": ("prompt_id", "last_assistant_message"),
    "codex": ("turn_id", "last_assistant_message"),
    "gemini": ("-", "prompt_response"),
    "qwen": ("prompt_id", "last_assistant_message"),
    "copilot": ("-", "last_assistant_message"),
    "opencode": ("prompt_id", "last_assistant_message"),
    "kimi": ("-", "-"),
}


def expected_event(host: str, fields: dict[str, Any]) -> Event | None:
    """Return the event that a recorded input is; None: one that is let through."""
    prompt, message = NAMES[host]
    common = {
        "session_id": fields["session_id"],
        "transcript_path": fields.get("transcript_path", ""),
        "cwd": fields["cwd"],
        "permission_mode": fields.get("permission_mode", "default"),
    }
    agent = {"agent_id": fields.get("agent_id", ""), "agent_type": fields.get("agent_type", "")}
    match fields["hook_event_name"]:
        case "SessionStart":
            return SessionStart(**common, source=fields["source"], model=fields.get("model", ""))
        case "SubagentStart":
            return SubagentStart(**common, **agent, prompt_id=fields.get(prompt, ""))
        case "Stop" if "agent_id" in fields:
            return None
        case "Stop" | "AfterAgent":
            subagent = None
        case _:
            own = fields.get("agent_transcript_path", fields["transcript_path"])
            subagent = Subagent(id=agent["agent_id"], type=agent["agent_type"], transcript_path=own)
    return StopEvent(
        **common,
        stop_hook_active=fields["stop_hook_active"],
        last_assistant_message=fields.get(message),
        prompt_id=fields.get(prompt),
        tool_calls=fields.get("tool_calls"),
        background_tasks=tuple(fields.get("background_tasks", ())),
        session_crons=tuple(fields.get("session_crons", fields.get("crons", ()))),
        subagent=subagent,
    )


# From the documentation of the programs: they were not run.
CURSOR_COMMON = {
    "conversation_id": "c-1",
    "generation_id": "g-1",
    "model": "gpt-5.4",
    "cursor_version": "3.7.21",
    "workspace_roots": ["/p", "/other"],
    "user_email": None,
    "transcript_path": "/home/user/.cursor/projects/p/c-1.jsonl",
}
CURSOR_STOP = {**CURSOR_COMMON, "hook_event_name": "stop", "status": "completed", "loop_count": 0}
CURSOR_SUBAGENT_STOP = {
    **CURSOR_COMMON,
    "hook_event_name": "subagentStop",
    "subagent_type": "explore",
    "status": "completed",
    "task": "count the files",
    "summary": "Three files.",
    "duration_ms": 1200,
    "message_count": 4,
    "tool_call_count": 2,
    "modified_files": [],
    "loop_count": 1,
    "agent_transcript_path": "/home/user/.cursor/projects/p/a-1.jsonl",
}
DROID_STOP = {
    "sessionId": "s-1",
    "transcriptPath": "/home/user/.factory/projects/p/s-1.jsonl",
    "cwd": "/p",
    "permissionMode": "auto-medium",
    "hookEventName": "Stop",
    "stopHookActive": True,
}


@pytest.mark.parametrize("path", INPUTS, ids=input_id)
def test_the_recorded_input_of_a_program_is_our_event(path: Path) -> None:
    fields = recorded(path.parent.name, path.stem)
    known = normalize(fields)
    event = str(known["hook_event_name"])
    expected = expected_event(path.parent.name, in_snake_case(path, fields))
    assert (read_event(event, known, cwd="") if event else None) == expected


@pytest.mark.parametrize(
    ("agent", "named"),
    [
        ("explore-1", "subagents/s/agent-explore-1.jsonl"),
        ("explore-2", "chats/s.jsonl"),
        ("../x", "chats/s.jsonl"),
    ],
)
def test_a_subagent_of_qwen_has_its_own_transcript_if_there_is_one(
    tmp_path: Path, agent: str, named: str
) -> None:
    (tmp_path / "subagents" / "s").mkdir(parents=True)
    (tmp_path / "subagents" / "s" / "agent-explore-1.jsonl").touch()
    main = str(tmp_path / "chats" / "s.jsonl")
    fields = {**recorded("qwen", "SubagentStop"), "transcript_path": main, "agent_transcript_path": main}
    known = normalize({**fields, "agent_id": agent})
    assert (known["transcript_path"], known["agent_transcript_path"]) == (main, str(tmp_path / named))


TEAMMATE: dict[str, object] = {
    "session_id": "s",
    "prompt_id": "p",
    "agent_id": "abob-1",
    "agent_type": "bob",
    "hook_event_name": "TaskCompleted",
    "task_id": "1",
    "task_subject": "the work",
    "teammate_name": "bob",
}


@pytest.mark.parametrize("has_transcript", [True, False])
def test_the_stop_of_a_teammate_has_its_transcript_and_its_task(tmp_path: Path, has_transcript: bool) -> None:
    main, own = tmp_path / "s.jsonl", tmp_path / "s" / "subagents" / "agent-abob-1.jsonl"
    if has_transcript:
        own.parent.mkdir(parents=True)
        own.touch()
    known = normalize({**TEAMMATE, "transcript_path": str(main)})
    path = own if has_transcript else main
    assert (recognize(TEAMMATE, {}), read_event("TaskCompleted", known, cwd="/p")) == (
        "claude",
        StopEvent(
            session_id="s",
            transcript_path=str(main),
            cwd="/p",
            prompt_id="p",
            subagent=Subagent(id="abob-1", type="bob", transcript_path=str(path)),
            team_event="TaskCompleted",
            team_fields={"task_id": "1", "task_subject": "the work", "teammate_name": "bob"},
        ),
    )


@pytest.mark.parametrize("path", INPUTS, ids=input_id)
def test_the_recorded_input_of_a_program_is_recognized(path: Path) -> None:
    assert recognize(recorded(path.parent.name, path.stem), {}) == path.parent.name


@pytest.mark.parametrize(
    ("host", "fields", "event"),
    [
        (
            "cursor",
            CURSOR_STOP,
            StopEvent(
                session_id="c-1",
                transcript_path="/home/user/.cursor/projects/p/c-1.jsonl",
                cwd="/p",
            ),
        ),
        (
            "cursor",
            CURSOR_SUBAGENT_STOP,
            StopEvent(
                session_id="c-1",
                transcript_path="/home/user/.cursor/projects/p/c-1.jsonl",
                cwd="/p",
                stop_hook_active=True,
                last_assistant_message="Three files.",
                subagent=Subagent(
                    id="fire-agent",
                    type="explore",
                    transcript_path="/home/user/.cursor/projects/p/a-1.jsonl",
                ),
            ),
        ),
        (
            "droid",
            DROID_STOP,
            StopEvent(
                session_id="s-1",
                transcript_path="/home/user/.factory/projects/p/s-1.jsonl",
                cwd="/p",
                permission_mode="auto-medium",
                stop_hook_active=True,
            ),
        ),
    ],
)
def test_the_documented_input_of_a_program_is_recognized_and_is_our_event(
    host: str, fields: dict[str, Any], event: StopEvent
) -> None:
    known = normalize(fields)
    assert (recognize(fields, {}), read_event(str(known["hook_event_name"]), known, cwd="")) == (host, event)


def test_a_transcript_below_the_home_folder_has_its_whole_path() -> None:
    fields = {**DROID_STOP, "transcriptPath": "~/.factory/s-1.jsonl"}
    assert normalize(fields)["transcript_path"] == f"{Path.home()}/.factory/s-1.jsonl"


@pytest.mark.parametrize("host", NAMES)
def test_the_prompt_of_a_turn_keeps_its_id_when_the_turn_continues(host: str) -> None:
    """A new id would start the count of continuations anew."""
    stop = "AfterAgent" if host == "gemini" else "Stop"
    first, second = (normalize(recorded(host, name)).get("prompt_id") for name in (stop, f"{stop}-2"))
    assert first == second
    assert (first is None) == (NAMES[host][0] == "-")


@pytest.mark.parametrize("status", ["aborted", "error"])
def test_a_stop_at_which_cursor_ignores_answers_is_let_through(status: str) -> None:
    assert normalize({**CURSOR_STOP, "status": status})["hook_event_name"] == ""


def test_the_stop_of_a_subagent_that_copilot_reports_as_stop_is_let_through() -> None:
    names = ("Stop-of-subagent", "camelcase-agentStop-of-subagent")
    assert [normalize(recorded("copilot", name))["hook_event_name"] for name in names] == ["", ""]


@pytest.mark.parametrize(("host", "name"), [("gemini", "AfterAgent"), ("qwen", "Stop")])
def test_an_answer_without_text_has_no_message(host: str, name: str) -> None:
    fields = {**recorded(host, name), NAMES[host][1]: "[no response text]"}
    assert "last_assistant_message" not in normalize(fields)


def test_tasks_and_jobs_are_kept_and_what_is_not_an_object_is_left_out() -> None:
    task = {"id": "a", "status": "running", "agent_type": "explore", "started_at": 1}
    lists: dict[str, object] = {"background_tasks": [task, None, "x"], "crons": [{"id": "c"}]}
    assert normalize({"hook_event_name": "Stop", **lists}) == {
        "hook_event_name": "Stop",
        "stop_hook_active": False,
        "background_tasks": [task],
        "session_crons": [{"id": "c"}],
    }


@pytest.mark.parametrize(
    ("fields", "environ", "host"),
    [
        ({}, {}, None),
        ({"hook_event_name": "Stop", "session_id": "s-1", "stop_hook_active": False}, {}, None),
        (  # VS Code
            {
                "hookEventName": "Stop",
                "sessionId": "s-1",
                "timestamp": "2026-01-01T00:00:00Z",
                "stop_hook_active": False,
            },
            {},
            "vscode",
        ),
        ({"event": "Stop", "session_id": "s-1", "working_dir": "/p"}, {}, None),  # Goose
        ({"hook_event_name": "AfterAgent"}, {"QWEN_PROJECT_DIR": "/p"}, "gemini"),
        (  # Qwen Code 0.15
            {
                "hook_event_name": "Stop",
                "timestamp": "2026-01-01T00:00:00Z",
                "stop_hook_active": True,
                "last_assistant_message": "I am done.",
            },
            {"CLAUDE_PROJECT_DIR": "/p"},
            "qwen",
        ),
        (  # droid, in the spelling of Claude Code
            {"hook_event_name": "Stop", "transcript_path": "/home/user/.factory/projects/p/s-1.jsonl"},
            {},
            "droid",
        ),
        (
            {"hook_event_name": "Stop", "transcript_path": "C:\\Users\\u\\.codex\\sessions\\x.jsonl"},
            {},
            "codex",
        ),
        ({"hook_event_name": "Stop"}, {"FACTORY_PROJECT_DIR": "/p"}, "droid"),
        ({"hook_event_name": "Stop"}, {"CLAUDE_PROJECT_DIR": "/p"}, "claude"),
        (
            {"hook_event_name": "SessionStart"},
            {"CLAUDE_PROJECT_DIR": "/p", "GEMINI_PROJECT_DIR": "/p"},
            "gemini",
        ),
        (
            {"hook_event_name": "SessionStart"},
            {"CLAUDE_PROJECT_DIR": "/p", "GEMINI_PROJECT_DIR": "/p", "QWEN_PROJECT_DIR": "/p"},
            "qwen",
        ),
        ({"turn_id": "t", "model": "m"}, {"CLAUDE_PROJECT_DIR": "/p"}, "codex"),  # started by Claude Code
    ],
)
def test_a_host_is_recognized_by_its_input_before_its_variables(
    fields: dict[str, object], environ: dict[str, str], host: str | None
) -> None:
    assert recognize(fields, environ) == host


FIELDS = sorted(
    {name for path in INPUTS for name in json.loads(path.read_text())} | set(CURSOR_SUBAGENT_STOP)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(), VALUES))
def test_no_value_of_a_wrong_type_gets_into_an_event(fields: dict[str, object]) -> None:
    known = normalize(fields)
    recognize(fields, {})
    for name in ("Stop", "SubagentStop", "SessionStart", "SubagentStart"):
        assert read_event(name, {**known, "hook_event_name": name}, cwd="/p").name == name


def test_nothing_heavy_is_imported() -> None:
    program = (
        "import sys; before = set(sys.modules); import turngate.hosts.input_fields;"
        "print(sorted(set(sys.modules) - before - {'turngate', 'turngate.hosts'}))"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = ["turngate.core", "turngate.core.constants", "turngate.hosts.input_fields"]
    assert shown.stdout == f"{modules}\n"


def test_every_host_is_recognized_by_its_traces() -> None:
    assert TRACES.keys() == HOSTS.keys()


# Who gives an event: the host to its hook, or the agent by a command of its own

SHOWN_BY = {
    "claude": "CLAUDE_CODE_SESSION_ID",
    "codex": "CODEX_SESSION_ID",
    "copilot": "COPILOT_AGENT_SESSION_ID",
    "gemini": "GEMINI_CLI",
    "qwen": "QWEN_CODE_SESSION_ID",
}


def environment(host: str, process: str, session: str) -> dict[str, str]:
    """Return the variables that a program was seen to add for its hooks, or for the commands of its agent."""
    recorded_variables = json.loads((FOLDER / host / "variables.json").read_text())[process]
    return {name: session if value == "session" else value for name, value in recorded_variables.items()}


def test_a_command_of_the_agent_is_told_apart_from_a_hook_on_every_program_that_was_run() -> None:
    seen = {
        process: {
            host: variable_of_command(host, "session-1", environment(host, process, "session-1"))
            for host in SHOWN_BY
        }
        for process in ("hook", "command")
    }
    assert seen == {"hook": dict.fromkeys(SHOWN_BY), "command": SHOWN_BY}


@pytest.mark.parametrize("claimed", [None, *HOSTS])
def test_the_input_of_another_program_does_not_hide_a_command(claimed: str | None) -> None:
    seen = {
        host: variable_of_command(claimed, "session-1", environment(host, "command", "session-1"))
        for host in SHOWN_BY
        if host != "gemini"  # its commands do not know their session
    }
    assert seen == {host: variable for host, variable in SHOWN_BY.items() if host != "gemini"}


@pytest.mark.parametrize("outer", SHOWN_BY)
@pytest.mark.parametrize("process", ["hook", "command"])
def test_a_program_that_an_agent_or_a_hook_has_started_gives_events_of_its_own(
    outer: str, process: str
) -> None:
    around = environment(outer, process, "outer")
    seen = {
        host: variable_of_command(host, "inner", {**around, **environment(host, "hook", "inner")})
        for host in SHOWN_BY
    }
    assert seen == dict.fromkeys(SHOWN_BY)


def test_the_agent_of_turngate_gives_no_event_and_a_program_that_it_has_started_does() -> None:
    here = {"TURNGATE_IN_TOOL": "1"}
    hooks = {host: {**here, **environment(host, "hook", "inner")} for host in SHOWN_BY}
    seen = {host: variable_of_command(host, "inner", hooks[host]) for host in SHOWN_BY}
    assert variable_of_command(None, "session-1", here) == "TURNGATE_IN_TOOL"
    assert variable_of_command("claude", "session-1", {**here, "TURNGATE_IN_HOOK": "1"}) is None
    assert seen == {**dict.fromkeys(SHOWN_BY), "codex": "TURNGATE_IN_TOOL"}  # its hooks have no variable
