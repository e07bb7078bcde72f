"""`turngate hook` as a process: what it asks, what it answers, and how it counts."""

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hosts.recordings import recorded
from tests.support.builders import script, stop_hooks, write_settings
from tests.support.cli import turngate
from tests.support.git_projects import commit, make_repository, write
from turngate.cli.commands.hook import UNKNOWN_HOST
from turngate.gates.stored_state import write_file
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import HEADING
from turngate.hosts.input_fields import PROJECT_VARIABLES
from turngate.hosts.stop import NOT_COUNTED
from turngate.hosts.stop_count import count_path, read_count, write_count

BLOCKS = "echo not yet >&2; exit 2"
BLOCK = {"decision": "block", "reason": "not yet"}
SESSION = "00000000-0000-4000-8000-000000000001"  # of the recorded inputs
ACCEPT = f"to accept it: turngate gates accept {SESSION} --why …"
CAPPED = f'Turn ended after 3 continuations (the limit). Still blocked by: "{BLOCKS}".\nthe last reason: not yet\n{ACCEPT}'


@pytest.fixture(autouse=True)
def _trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_TRUST", "1")


def stop(project: Path, **fields: Any) -> dict[str, Any]:
    """Return the input of a stop in Codex, which has no limit of its own."""
    own = {"cwd": str(project), "transcript_path": None}
    return {**recorded("codex", "Stop"), **own, **fields}


def hook(fields: dict[str, Any], *words: str) -> tuple[int, Any, str]:
    """Run `turngate hook`; return the exit code, the answer and stderr."""
    code, out, err = turngate("hook", *words, stdin=json.dumps(fields))
    return code, json.loads(out) if out else None, err


def answers(fields: dict[str, Any], count: int) -> list[Any]:
    return [hook(fields)[1] for _ in range(count)]


# What it asks


def test_without_any_hook_the_answer_is_empty(project: Path) -> None:
    assert hook(stop(project)) == (0, None, "")


def test_the_hooks_of_turngate_and_mux_are_asked_and_those_of_claude_are_left_to_claude_code(
    project: Path,
) -> None:
    for family in ("claude", "mux", "turngate"):
        write_settings(project, family, stop_hooks(f"echo {family} >&2; exit 2"))
    reason = "\n\n".join(f"echo {family} >&2; exit 2: {family}" for family in ("mux", "turngate"))
    assert hook(stop(project)) == (0, {"decision": "block", "reason": reason}, "")


def test_a_script_hook_is_asked(project: Path) -> None:
    script(project / ".turngate" / "stop", "#!/bin/sh\necho not yet >&2; exit 2\n")
    assert hook(stop(project)) == (0, BLOCK, "")


def test_the_project_is_found_from_the_folder_of_the_event_upwards(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    (project / "src" / "deep").mkdir(parents=True)
    assert hook(stop(project / "src" / "deep")) == (0, BLOCK, "")


def test_the_project_of_the_host_is_stronger_than_the_folder_of_the_event(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(project))
    assert hook({**recorded("claude", "Stop"), "cwd": str(tmp_path)}) == (0, BLOCK, "")


def test_the_variable_of_another_host_says_nothing_about_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    for variable in PROJECT_VARIABLES.values():
        monkeypatch.setenv(variable, str(tmp_path))
    assert hook(stop(project)) == (0, BLOCK, "")


def test_an_event_without_an_answer_asks_nothing(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS, event="PreToolUse"))
    assert hook(stop(project, hook_event_name="PreToolUse")) == (
        0,
        None,
        "turngate hook: not an event that it answers, so nothing was checked\n",
    )


def test_the_stop_that_copilot_reports_for_a_subagent_asks_nothing(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    fields = {**recorded("copilot", "Stop-of-subagent"), "cwd": str(project)}
    assert hook(fields)[:2] == (0, None)


@pytest.mark.parametrize("odd", [{"agent_id": "a"}, {"status": "error"}, {"conversation_id": None}])
def test_a_field_that_means_something_on_another_host_changes_nothing(
    project: Path, odd: dict[str, Any]
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    assert hook(stop(project, **odd)) == (0, BLOCK, "")


def test_inside_of_a_hook_of_ours_it_asks_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    why = "TURNGATE_IN_HOOK is set, which is for processes of a hook, so nothing was checked"
    assert hook(stop(project)) == (0, None, f"turngate hook: {why}\n")


def test_a_hook_that_is_not_approved_is_reported_to_the_user_and_does_not_run(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    how = "read it with `turngate hooks diff`, then approve it with `turngate hooks approve --all`"
    why = f'hook "{BLOCKS}" was skipped and NOT enforced: it is not approved ({how})'
    assert hook(stop(project)) == (0, {"systemMessage": why}, "")


def test_settings_that_cannot_be_read_are_reported_to_the_user(project: Path) -> None:
    path = project / ".turngate" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"hooks": {')
    code, answer, err = hook(stop(project))
    assert (code, [*answer], err) == (0, ["systemMessage"], "")
    assert answer["systemMessage"].startswith("settings are NOT fully loaded: .turngate/settings.json: ")


# The input of hooks


def test_a_hook_gets_the_fields_of_the_host_as_they_are_and_ours_beside_them(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("cat > input.json"))
    fields = stop(project, new_field={"deep": [1, None]}, crons=[], background_tasks=[])
    assert hook(fields) == (0, None, "")
    given = json.loads((project / "input.json").read_text())
    ours = {"continuation_count": 0, "max_continuations": 3, "session_crons": []}
    assert given == {**fields, "prompt_id": fields["turn_id"], **ours}


def test_a_subagent_stop_keeps_the_transcript_of_the_parent_and_its_own(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("cat > input.json", event="SubagentStop"))
    fields = {**recorded("claude", "SubagentStop"), "cwd": str(project)}
    assert hook(fields) == (0, None, "")
    given = json.loads((project / "input.json").read_text())
    assert {name: given.get(name) for name in fields} == fields


def test_a_hook_gets_the_own_transcript_of_a_subagent_of_qwen(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks("cat > input.json", event="SubagentStop"))
    main, own = tmp_path / "chats" / "s.jsonl", tmp_path / "subagents" / "s" / "agent-explore-1.jsonl"
    own.parent.mkdir(parents=True)
    own.touch()
    paths = {"transcript_path": str(main), "agent_transcript_path": str(main), "agent_id": "explore-1"}
    fields = {**recorded("qwen", "SubagentStop"), "cwd": str(project), **paths}
    assert hook(fields) == (0, None, "")
    given = json.loads((project / "input.json").read_text())
    assert (given["transcript_path"], given["agent_transcript_path"]) == (str(main), str(own))


def test_a_hook_counts_with_us_and_not_with_the_host(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("cat >> input.jsonl; " + BLOCKS))
    answers(stop(project, stop_hook_active=False), 2)
    lines = [json.loads(line) for line in (project / "input.jsonl").read_text().splitlines()]
    assert [(line["stop_hook_active"], line["continuation_count"]) for line in lines] == [
        (False, 0),
        (True, 1),
    ]


# The limit


def test_the_limit_ends_a_loop_and_the_user_is_told_and_the_next_turn_counts_anew(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    expected = [BLOCK, BLOCK, BLOCK, {"systemMessage": CAPPED}]
    assert answers(stop(project), 8) == [*expected, *expected]


def test_each_agent_of_each_session_has_its_own_count(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    write_settings(project, "mux", stop_hooks(BLOCKS, event="SubagentStop"))
    child = {**recorded("codex", "SubagentStop"), "cwd": str(project)}
    others = [stop(project, session_id="another"), child, {**child, "agent_id": "another"}]
    assert answers(stop(project), 3) == [BLOCK] * 3
    assert [answers(fields, 3) for fields in others] == [[BLOCK] * 3] * 3
    assert hook(stop(project))[1] == {"systemMessage": CAPPED}


def test_the_count_starts_anew_after_an_allowed_stop(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(f"[ -e done ] || {{ {BLOCKS}; }}"))
    assert answers(stop(project), 2) == [BLOCK] * 2
    (project / "done").touch()
    assert hook(stop(project)) == (0, None, "")
    (project / "done").unlink()
    assert answers(stop(project), 3) == [BLOCK] * 3


def test_the_count_starts_anew_with_a_new_prompt(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    assert answers(stop(project), 3) == [BLOCK] * 3
    assert answers(stop(project, turn_id="the next one"), 3) == [BLOCK] * 3


def test_the_prompt_of_gemini_is_known_by_its_text(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    fields = {**recorded("gemini", "AfterAgent"), "cwd": str(project)}
    block = {**BLOCK, "reason": f"{HEADING}\nnot yet"}
    assert answers(fields, 4) == [block, block, block, {"systemMessage": CAPPED}]
    assert answers(fields, 2) == [block] * 2
    assert answers({**fields, "prompt": "something else"}, 3) == [block] * 3


def test_a_host_without_prompt_ids_but_with_a_limit_says_when_a_turn_begins(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    first = {**recorded("copilot", "Stop"), "cwd": str(project)}
    later = {**recorded("copilot", "Stop-2"), "cwd": str(project)}
    for _ in range(2):
        asked = [hook(first)[1], *answers(later, 2)]
        assert [answer["decision"] for answer in asked] == ["block"] * 3
    code, out, _ = turngate("hook", stdin=json.dumps(later))
    progress = [json.loads(line) for line in out.splitlines()]
    assert (code, progress) == (
        0,
        [{"type": "progress", "message": text} for text in CAPPED.split("\n")],
    )


def test_after_half_an_hour_without_a_stop_the_count_starts_anew(tmp_path: Path) -> None:
    path = count_path(str(tmp_path), "Stop", {"session_id": "s"})
    assert write_count(path, "p", {"calls": 1})
    written = read_count(path, "p", is_active=False)
    assert written is not None
    stopped = float(str(written["time"]))
    times = {
        later: read_count(path, "p", is_active=False, now=stopped + later) for later in (-99, 1799, 1800)
    }
    assert times == {-99: written, 1799: written, 1800: None}


def test_a_turn_that_lasts_longer_than_half_an_hour_is_still_one_turn(tmp_path: Path) -> None:
    path = count_path(str(tmp_path), "Stop", {"session_id": "s"})
    assert write_count(path, "p", {"calls": 1})
    later = time.time() + 7200
    assert read_count(path, "p", is_active=True, now=later) is not None
    assert write_count(path, "", {"calls": 1})
    assert read_count(path, "", is_active=True, now=later) is None  # a host without an id for a prompt


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "time": "x", "prompt": "p"}']
)
def test_a_damaged_count_is_no_count(tmp_path: Path, text: str) -> None:
    path = str(tmp_path / "count.json")
    write_file(path, text)
    assert read_count(path, "p", is_active=True) is None


def test_a_count_with_numbers_that_are_none_is_no_count(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    fields = stop(project, stop_hook_active=True)
    path = count_path(os.environ["TURNGATE_STATE"], "Stop", fields)
    for number in ("1e999", "Infinity", '"x"', "[]"):
        guard = f'{{"continuations": {number}}}'
        text = f'{{"version": 1, "time": {time.time()}, "prompt": "{fields["turn_id"]}", "guard": {guard}}}'
        assert write_file(path, text)
        assert hook(fields) == (0, BLOCK, "")


def test_a_count_that_is_a_pipe_does_not_hang(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    path = Path(count_path(os.environ["TURNGATE_STATE"], "Stop", stop(project)))
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert hook(stop(project)) == (0, BLOCK, "")


def test_a_subagent_without_a_transcript_of_its_own_does_not_end_early(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS, event="SubagentStop"))
    transcript = tmp_path / "rollout.jsonl"
    transcript.write_text('{"type":"response_item","payload":{"type":"function_call","name":"shell"}}\n')
    child = {**recorded("codex", "SubagentStop"), "cwd": str(project)}
    fields = {**child, "transcript_path": str(transcript), "agent_transcript_path": None}
    assert answers(fields, 3) == [BLOCK] * 3


def test_the_same_reason_without_a_tool_call_in_between_ends_early(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    transcript = tmp_path / "rollout.jsonl"
    call = '{"type":"response_item","payload":{"type":"function_call","name":"shell"}}\n'
    transcript.write_text(call)
    fields = stop(project, transcript_path=str(transcript))
    stalled = "Turn ended: nothing changed in 1 continuation."
    assert hook(fields)[1] == BLOCK
    answer = hook(fields)[1]
    assert answer["systemMessage"].startswith(stalled)
    assert hook(fields)[1] == BLOCK
    transcript.write_text(call * 2)
    assert hook(fields)[1] == BLOCK


def test_without_a_place_for_the_count_the_agent_may_stop_and_the_user_is_told(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    state = Path(os.environ["TURNGATE_STATE"])
    state.mkdir(parents=True)
    (state / "gates").write_text("a file where a folder is expected")
    for fields in (stop(project), {**recorded("claude", "Stop"), "cwd": str(project)}):
        assert hook(fields)[1] == {"systemMessage": f"{NOT_COUNTED}\nthe last reason: not yet\n{ACCEPT}"}


def test_the_end_of_a_turn_holds_until_the_next_turn_also_if_another_hook_continues_it(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    later = stop(project, stop_hook_active=True)
    assert [hook(stop(project))[1], *answers(later, 4)] == [
        BLOCK,
        BLOCK,
        BLOCK,
        {"systemMessage": CAPPED},
        {"systemMessage": CAPPED},
    ]
    assert hook(stop(project))[1] == BLOCK


@pytest.mark.parametrize("host", ["droid", "cursor"])
def test_a_subagent_without_an_id_does_not_share_the_count_of_the_main_agent(
    project: Path, host: str
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    names = {"droid": ("Stop", "SubagentStop"), "cursor": ("stop", "subagentStop")}[host]
    fields = {
        "droid": {"sessionId": "s", "stopHookActive": True, "cwd": str(project)},
        "cursor": {"conversation_id": "c", "loop_count": 1, "workspace_roots": [str(project)]},
    }[host]
    key = "hookEventName" if host == "droid" else "hook_event_name"
    outcomes = []
    for _ in range(4):
        outcomes.append([*(hook({**fields, key: names[0]})[1] or ())])
        hook({**fields, key: names[1], "subagent_type": "explore"})
    block = {"droid": ["decision", "reason"], "cursor": ["followup_message"]}[host]
    assert outcomes == [block, block, block, {"droid": ["systemMessage"], "cursor": []}[host]]


def test_the_main_agent_and_a_subagent_have_files_of_their_own() -> None:
    known: dict[str, object] = {"session_id": "s", "agent_id": "a"}
    paths = {count_path("/state", event, known) for event in ("Stop", "SubagentStop")}
    assert len(paths) == 2


def test_the_start_of_a_session_does_not_reset_the_count(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    start = {**recorded("codex", "SessionStart"), "cwd": str(project)}
    start["session_id"] = stop(project)["session_id"]
    for _ in range(3):
        assert hook(stop(project))[1] == BLOCK
        assert hook(start)[:2] == (0, None)
    assert hook(stop(project))[1] == {"systemMessage": CAPPED}


def test_a_stop_without_hooks_resets_the_count(project: Path) -> None:
    path = write_settings(project, "turngate", stop_hooks(BLOCKS))
    assert answers(stop(project), 3) == [BLOCK] * 3
    text = path.read_text()
    path.unlink()
    start = {**recorded("codex", "SessionStart"), "cwd": str(project)}  # the user resumes the session
    hook({**start, "session_id": stop(project)["session_id"]})
    assert hook(stop(project)) == (0, None, "")
    path.write_text(text)
    assert hook(stop(project))[1] == BLOCK


def test_the_journal_says_that_the_limit_ended_the_turn(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    answers(stop(project), 4)
    code, out, _ = turngate("log", "--project", str(project))
    ended = f'turn ended (capped) after 3 continuations (the limit). Still blocked by: "{BLOCKS}".'
    assert (code, out.splitlines()[-1].partition("  ")[2]) == (0, ended)


# Hosts


def test_another_program_gets_the_portable_answer_and_a_note(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    fields = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(project)}
    assert hook(fields) == (0, BLOCK, f"{UNKNOWN_HOST}\n")


def test_a_program_that_reads_only_the_exit_code_is_blocked_by_it(project: Path) -> None:
    write_settings(project, "turngate", {**stop_hooks(BLOCKS), "turngate": {"limit": 1}})
    stopped = {
        "hook_event_name": "Stop",
        "session_id": SESSION,
        "cwd": str(project),
        "client_type": "other_cli",
    }
    capped = CAPPED.replace("3 continuations", "1 continuation")
    assert [hook(stopped, "--exit-code") for _ in range(2)] == [
        (2, None, "not yet\n"),
        (0, None, f"{capped}\n"),
    ]


def test_doctor_names_a_program_that_is_not_known_and_that_a_gate_has_blocked(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    stopped = {
        "hook_event_name": "Stop",
        "session_id": SESSION,
        "cwd": str(project),
        "client_type": "other_cli",
    }

    def facts() -> list[Any]:
        report = json.loads(turngate("doctor", "--json", "--project", str(project))[1])
        return [fact for fact in report["turngate"] if fact["name"] == "unknown program"]

    hook(stopped, "--exit-code")
    assert facts() == []
    hook({**stopped, "session_id": "other"})
    [fact] = facts()
    assert fact["text"].startswith("other_cli; Turngate has blocked its agent on 20")
    assert fact["hint"] == "if its agent stops even if a gate blocks, let it run `turngate hook --exit-code`"
    assert f"! other_cli: {UNKNOWN_HOST}" in turngate("log", "other", "--project", str(project))[1]


# The events of a team


def team_event(project: Path, name: str, subject: str) -> dict[str, Any]:
    """Return the input of Claude Code, without what says that a hook has continued the turn."""
    common = {"session_id": SESSION, "prompt_id": "p", "cwd": str(project), "hook_event_name": name}
    own = {"task_id": subject, "task_subject": "the work"} if name == "TaskCompleted" else {}
    return {**common, **own, "teammate_name": "bob" if own else subject}


@pytest.mark.parametrize("name", ["TaskCompleted", "TeammateIdle"])
def test_each_task_and_each_teammate_has_its_own_count_also_over_prompts(project: Path, name: str) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS, event=name))
    first, second = (team_event(project, name, subject) for subject in ("1", "2"))
    capped = {"systemMessage": CAPPED}
    assert answers(first, 2) == [BLOCK, BLOCK]
    assert answers(second, 4) == [BLOCK, BLOCK, BLOCK, capped]
    assert answers({**first, "prompt_id": "next"}, 2) == [BLOCK, capped]
    assert answers({**stop(project), "session_id": SESSION}, 1) == [None]  # it has no hook


def test_the_gates_of_a_stop_are_not_those_of_a_task_and_the_reverse(project: Path) -> None:
    hooks = {
        **stop_hooks("echo stop >&2; exit 2")["hooks"],
        **stop_hooks("echo task >&2; exit 2", event="TaskCompleted")["hooks"],
    }
    write_settings(project, "turngate", {"hooks": hooks})
    events = (
        stop(project),
        team_event(project, "TaskCompleted", "1"),
        team_event(project, "TeammateIdle", "bob"),
    )
    assert [hook(event)[1] for event in events] == [
        {"decision": "block", "reason": "stop"},
        {"decision": "block", "reason": "task"},
        None,
    ]


def test_a_hook_and_the_journal_get_the_task(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", stop_hooks(f"cat > {tmp_path}/input", event="TaskCompleted"))
    assert hook(team_event(project, "TaskCompleted", "7")) == (0, None, "")
    given = json.loads((tmp_path / "input").read_text())
    names = ("hook_event_name", "task_id", "task_subject", "teammate_name")
    assert [given[name] for name in names] == ["TaskCompleted", "7", "the work", "bob"]
    lines = turngate("log", SESSION, "--json", "--project", str(project))[1].splitlines()
    records = [record for record in map(json.loads, lines) if record["kind"] == "hook"]
    assert [(each["event"], each["task_id"], each["teammate_name"]) for each in records] == [
        ("TaskCompleted", "7", "bob")
    ]


def test_the_host_can_be_named(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    fields = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(project)}
    assert hook(fields, "--host", "cursor") == (0, {"followup_message": f"{HEADING}\nnot yet"}, "")


# A person, and mistakes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--hots", "codex"), "unrecognized argument: --hots"),
        (("--host", "codx"), "unknown host 'codx', expected one of claude, codex,"),
        (("--host",), "--host needs a value"),
        (("--timeout", "soon"), "--timeout soon: expected a number of seconds"),
        (("--project", "/no/such/folder"), "there is no folder /no/such/folder"),
    ],
)
def test_wrong_usage_is_1_with_an_empty_stdout(project: Path, words: tuple[str, ...], message: str) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    code, out, err = turngate("hook", *words, stdin=json.dumps(stop(project)))
    assert (code, out, err.startswith(f"turngate hook: {message}")) == (1, "", True)


@pytest.mark.parametrize("stdin", ["", "[]", "not json", '{"hook_event_name": '])
def test_without_an_event_it_says_what_it_is_for(stdin: str) -> None:
    code, out, err = turngate("hook", stdin=stdin)
    assert (code, out, "an agent program runs this command as a hook" in err) == (1, "", True)


def test_the_time_of_all_hooks_together_is_limited(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("sleep 600"))
    code, answer, _ = hook(stop(project), "--timeout", "0.5")
    assert (code, [*answer]) == (0, ["systemMessage"])
    assert "NOT enforced" in answer["systemMessage"]


# The fast exit


def gate(project: Path, command: str) -> None:
    hooks = [{"type": "gate", "command": command}]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})


def age(*folders: Path) -> None:
    """Let every file be older than the clock of file systems is exact."""
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.utime(path, (1, 1), follow_symlinks=False)


def runs(counter: Path) -> int:
    return len(counter.read_text()) if counter.exists() else 0


@pytest.fixture
def held(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which a gate that has passed counts its runs."""
    monkeypatch.setattr("turngate.gates.stored_state.CLOCK_TICK_NS", 0)
    counter = tmp_path / "runs"
    gate(project, f"printf x >> {counter}")
    make_repository(project, {"a.txt": "1"})
    return counter


ENGINE = ("asyncio", "turngate.engine", "typing")
NEVER = (
    "importlib.resources",
    "pathlib",
    "tempfile",
    "urllib",
)  # they take longer to load than our own modules


def run_in_process(fields: dict[str, Any]) -> tuple[str, list[str]]:
    """Run the command in a new Python, where files count as old; return stdout, and which of these modules are loaded."""
    code = (
        "import sys, turngate.gates.stored_state as q; q.CLOCK_TICK_NS = 0;"
        "from turngate.cli.main import main; main(['hook']);"
        f"print([m for m in {(*ENGINE, *NEVER)} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(fields), capture_output=True, text=True, check=True
    )
    loaded: list[str] = json.loads(done.stderr.splitlines()[-1].replace("'", '"'))
    return done.stdout, loaded


def test_gates_that_hold_are_answered_without_the_engine_until_a_file_changes(
    held: Path, project: Path
) -> None:
    assert run_in_process(stop(project))[1] == [*ENGINE]
    assert (run_in_process(stop(project)), runs(held)) == (("", []), 1)
    (project / "a.txt").write_text("2")
    assert (run_in_process(stop(project))[0], runs(held)) == ("", 2)


def test_a_change_of_the_settings_or_of_the_approvals_ends_the_fast_exit(held: Path, project: Path) -> None:
    run_in_process(stop(project))
    assert run_in_process(stop(project)) == ("", [])
    user = Path(os.environ["HOME"]) / ".turngate" / "settings.json"
    write_settings(user.parents[1], "turngate", stop_hooks(BLOCKS))
    out, _ = run_in_process(stop(project))
    assert json.loads(out) == BLOCK


@pytest.mark.parametrize("is_ignored", [True, False])
def test_the_pass_of_a_script_is_not_that_of_its_next_version(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_ignored: bool
) -> None:
    """Git ignores it, or it is not in the project. Until it is approved again, it blocks; then it decides."""
    monkeypatch.delenv("TURNGATE_TRUST")
    script = project / "hooks" / "check.sh" if is_ignored else tmp_path / "check.sh"
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    gate(project, "hooks/check.sh" if is_ignored else str(script))
    make_repository(project, {".gitignore": "hooks/\n"})
    approve = ("hooks", "approve", "--all", "--yes", "--project", str(project))
    assert turngate(*approve)[0] == 0
    assert run_in_process(stop(project))[0] == ""
    assert run_in_process(stop(project)) == ("", [])
    script.write_text("#!/bin/sh\necho stricter; exit 1\n")
    out, _ = run_in_process(stop(project))
    assert "NOT enforced" in json.loads(out)["reason"]
    assert turngate(*approve)[0] == 0
    assert json.loads(run_in_process(stop(project))[0])["decision"] == "block"


def test_a_variable_that_a_gate_names_ends_the_fast_exit(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVEL", "low")
    gate(project, 'test "$LEVEL" = low')
    make_repository(project, {"a.txt": "1"})
    assert run_in_process(stop(project))[0] == ""
    assert run_in_process(stop(project)) == ("", [])
    monkeypatch.setenv("LEVEL", "high")
    assert json.loads(run_in_process(stop(project))[0])["decision"] == "block"


def test_a_command_hook_beside_a_gate_is_asked_every_time(held: Path, project: Path, tmp_path: Path) -> None:
    write_settings(project, "mux", stop_hooks(f"printf y >> {tmp_path / 'asked'}"))
    for _ in range(3):
        assert run_in_process(stop(project))[0] == ""
    assert runs(tmp_path / "asked") == 3
    assert runs(held) <= 2


# The line of another agent program


@pytest.mark.parametrize("dialect", ["turngate", "claude"])
def test_the_line_of_another_program_never_runs_here_and_needs_no_approval(
    project: Path, dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_settings(project, "claude", stop_hooks("turngate hook"))
    code, out, err = turngate("fire", "Stop", "--project", str(project), "--dialect", dialect, "--strict")
    none = f"  no hook for Stop is configured in {project}\n"
    assert (code, out, err) == (0, f"Stop: allowed\n{none}", "")


# What the user reads


def test_a_stop_that_passes_says_so_if_the_settings_ask_for_it(project: Path) -> None:
    write_settings(project, "turngate", {**stop_hooks("true"), "turngate": {"showPass": True}})
    _, answer, _ = hook(stop(project))
    assert re.sub(r"\d\.\d", "N", answer["systemMessage"]) == 'Turngate: "true" passed (N s)'


def test_qwen_code_gets_an_answer_before_it_gives_up() -> None:
    assert {name: host.own_timeout_s for name, host in HOSTS.items()} == {
        **dict.fromkeys(HOSTS, 580.0),
        "qwen": 55,
    }


# What a repository cannot do


@pytest.mark.parametrize("variable", ["TURNGATE_TRUST", "TURNGATE_IN_HOOK", "TURNGATE_IN_TOOL"])
def test_a_variable_that_the_settings_of_the_project_name_has_no_effect(
    project: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    (project / "src").mkdir()
    monkeypatch.setenv(variable, "1")
    before = hook(stop(project / "src"))[1]
    write_settings(project, "claude", {"env": {variable: "1"}})
    _, answer, note = hook(stop(project / "src", session_id="another"))
    pending = f'hook "{BLOCKS}" was skipped and NOT enforced: it is not approved'
    assert (before, pending in answer["systemMessage"], note) == (
        BLOCK if variable == "TURNGATE_TRUST" else None,
        True,
        f"turngate hook: {variable} has no effect, because .claude/settings.json names it\n",
    )


def test_a_variable_that_the_project_of_the_session_names_has_no_effect_wherever_the_agent_is(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    inner = project / "inner"
    (inner / ".git").mkdir(parents=True)
    assert hook(stop(project)) == (0, BLOCK, "")
    write_settings(project, "claude", {"env": {"TURNGATE_IN_HOOK": "1"}})
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    note = "turngate hook: TURNGATE_IN_HOOK has no effect, because .claude/settings.json names it\n"
    answers = []
    for folder in (inner, tmp_path):
        monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
        answers.append(hook(stop(folder)))
    assert answers == [(0, BLOCK, note)] * 2


def test_a_variable_whose_name_is_escaped_has_no_effect(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    (project / ".claude").mkdir()
    (project / ".claude/settings.json").write_text('{"env": {"TURNGATE_IN\\u005fHOOK": "1"}}')
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    note = "turngate hook: TURNGATE_IN_HOOK has no effect, because .claude/settings.json names it\n"
    assert hook(stop(project)) == (0, BLOCK, note)


def test_a_variable_for_other_commands_does_not_say_with_what_a_gate_compares(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = {"type": "gate", "gate": "untouched", "options": {"globs": ["a"]}}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    make_repository(project, {"a": "1"})
    start = {**recorded("codex", "SessionStart"), "cwd": str(project)}
    assert hook({**start, "session_id": stop(project)["session_id"]}) == (0, None, "")
    write(project, {"a": "2"})
    commit(project)
    monkeypatch.setenv("TURNGATE_GATES_BASE", "HEAD")
    assert hook(stop(project))[1]["decision"] == "block"


def test_a_stop_does_not_wait_for_the_lock_of_its_count_for_ever(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCKS))
    assert hook(stop(project))[1] == BLOCK
    path = count_path(os.environ["TURNGATE_STATE"], "Stop", stop(project))
    with open(f"{path}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert hook(stop(project))[1] == BLOCK


def test_stops_of_one_agent_at_once_are_all_counted(project: Path, tmp_path: Path) -> None:
    write_settings(project, "turngate", {**stop_hooks(BLOCKS), "turngate": {"limit": 6}})
    (tmp_path / "event").write_text(json.dumps(stop(project, stop_hook_active=True)))
    command = [sys.executable, "-m", "turngate", "hook"]
    running = []
    for _ in range(12):
        with (tmp_path / "event").open() as event:
            running.append(subprocess.Popen(command, stdin=event, stdout=subprocess.PIPE, text=True))
    printed = [process.communicate()[0] for process in running]
    assert sum('"decision":"block"' in each for each in printed) == 6
