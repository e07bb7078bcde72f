"""`turngate fire`, as a person and as a program would call it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.scripted_run import next_line
from tests.support.sessions import records, without_starts
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.main import main
from turngate.core.text import quote_name

REFUSE = "echo 'run the tests' >&2; exit 2"


def fire(capfd: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, str, str]:
    code = main(["fire", *words, "--project", str(project), "--trust"])
    out, err = capfd.readouterr()
    return code, out, err


def fire_json(capfd: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = fire(capfd, project, *words, "--json")
    return code, json.loads(out)


@pytest.mark.req("S0-08")
def test_without_hooks_the_agent_may_stop(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = f"Stop: allowed\n  no hook for Stop is configured in {project}\n"
    assert fire(capfd, project, "Stop") == (0, said, "")


def test_a_block_is_shown_with_the_text_for_the_agent(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE, "true"))
    code, out, err = fire(capfd, project, "Stop")
    shown = [re.sub(r" +\d+\.\d\d s ", " 0.00 s ", line) for line in out.splitlines()]
    assert (code, shown, err) == (
        10,
        [
            "Stop: blocked",
            f"  blocked 0.00 s  {quote_name(REFUSE)}  (.turngate/settings.json)",
            '  passed 0.00 s  "true"  (.turngate/settings.json)',
            "Sent to the agent:",
            "  [Stop hook requested continuation]",
            "  run the tests",
        ],
        "",
    )


def test_as_json_it_is_one_object(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "claude", stop_hooks(REFUSE))
    code, shown = fire_json(capfd, project, "Stop")
    [run] = shown["runs"]
    assert isinstance(run.pop("seconds"), float)
    assert (code, shown) == (
        10,
        {
            "event": "Stop",
            "verdict": "continue",
            "ended_by": None,
            "prompt": "[Stop hook requested continuation]\nrun the tests",
            "stop_reason": None,
            "permission": None,
            "context": "",
            "runs": [
                {
                    "hook": {"type": "command", "command": REFUSE, "timeout": 60.0},
                    "source": "project",
                    "file": ".claude/settings.json",
                    "outcome": "block",
                    "reason": "run the tests",
                    "exit_code": 2,
                    "stdout": "",
                    "stderr": "run the tests\n",
                    "notice": None,
                }
            ],
            "unenforced": [],
            "not_loaded": False,
            "warnings": [],
            "project": str(project),
        },
    )


CODES: list[tuple[str, list[str], int]] = [
    ("true", [], 0),
    (REFUSE, [], 10),
    ('echo \'{"continue":false,"stopReason":"enough"}\'', [], 11),
    ("exit 1", [], 0),
    ("exit 1", ["--strict"], 13),
    ("/no/such/program", ["--strict"], 13),
    ("true", ["--strict"], 0),
    ("""echo '{"block": true, "reason": "x"}'""", ["--strict"], 13),
    (REFUSE, ["--strict"], 10),
]


@pytest.mark.req("C-29")
@pytest.mark.parametrize(("command", "words", "code"), CODES)
def test_the_exit_code_tells_the_verdict(
    project: Path, capfd: pytest.CaptureFixture[str], command: str, words: list[str], code: int
) -> None:
    write_settings(project, "turngate", stop_hooks(command))
    assert fire(capfd, project, "Stop", *words)[0] == code


@pytest.mark.req("S0-27", "S0-32", "S0-33")
@pytest.mark.parametrize("given", ["project", "project/../project", "./project/"])
def test_a_relative_project_is_absolute_for_its_hooks(
    project: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    shown = "echo $MUX_PROJECT_DIR $CLAUDE_PROJECT_DIR $PWD > where"
    write_settings(project, "turngate", stop_hooks(f"cat > seen; {shown}"))
    monkeypatch.chdir(project.parent)
    assert main(["fire", "Stop", "--project", given]) == 0
    assert (project / "where").read_text() == f"{project} {project} {project}\n"
    assert json.loads((project / "seen").read_text())["cwd"] == str(project)


@pytest.mark.req("S0-47")
def test_the_user_sees_why_a_hook_ended_the_turn(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks('echo \'{"continue":false,"stopReason":"enough"}\''))
    assert fire(capfd, project, "Stop")[1].splitlines()[0] == "Stop: halted by a hook: enough"


@pytest.mark.req("S3-26")
def test_the_user_sees_a_hooks_message(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks('echo \'{"systemMessage":"two tests are slow"}\''))
    assert fire(capfd, project, "Stop")[1].splitlines()[-1] == "Hook message: two tests are slow"


@pytest.mark.req("X-09")
def test_a_hook_that_was_not_enforced_is_reported(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("echo boom >&2; exit 1"))
    assert (
        fire(capfd, project, "stop")[2]
        == '! hook "echo boom >&2; exit 1" failed and was NOT enforced: exit code 1: boom\n'
        "  → to block, a hook exits with code 2 and prints the reason on stderr\n"
    )


@pytest.mark.req("X-09")
def test_records_tell_a_hook_that_blocked_from_one_that_is_broken(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("echo no >&2; exit 2", "exit 1"))
    shown = fire_json(capfd, project, "Stop")[1]["runs"]
    stored = map(json.loads, (state / "sessions" / "fire" / "journal.jsonl").read_text().splitlines())
    kept = [each for each in stored if each["kind"] == "hook"]
    assert [run["outcome"] for run in shown] == ["block", "failed"]
    assert sorted(run["outcome"] for run in kept) == ["block", "failed"]


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("exit 2", "  → print the reason on stderr: echo 'REASON' >&2"),
        ("echo no; exit 2", "  → its text is on stdout; print the reason on stderr: echo 'REASON' >&2"),
    ],
)
def test_a_block_without_a_reason_has_a_hint(
    project: Path, capfd: pytest.CaptureFixture[str], command: str, hint: str
) -> None:
    write_settings(project, "turngate", stop_hooks(command))
    assert fire(capfd, project, "Stop")[2].splitlines() == [
        (
            f'! hook "{command}" failed and was NOT enforced: it exited with 2 but gave no reason on stderr, '
            "so it does not block"
        ),
        hint,
    ]


@pytest.mark.parametrize(
    ("content", "headline", "not_loaded"),
    [
        ("{ // a comment\n}", "Stop: allowed, settings NOT fully loaded", True),
        (stop_hooks("true", event="OnStop"), "Stop: allowed, settings NOT fully loaded", True),
        (stop_hooks("true", timeout="10s"), "Stop: allowed, settings NOT fully loaded", True),
        (stop_hooks("true", event="PreToolUse", timeout="10s"), "Stop: allowed", False),
        (stop_hooks("true"), "Stop: allowed", False),
    ],
    ids=["comment", "wrong event", "wrong value", "wrong value of another event", "good"],
)
def test_the_headline_says_that_settings_were_not_loaded(
    project: Path, capfd: pytest.CaptureFixture[str], content: Any, headline: str, not_loaded: bool
) -> None:
    write_settings(project, "turngate", content)
    assert fire(capfd, project, "Stop")[1].splitlines()[0] == headline
    assert fire_json(capfd, project, "Stop")[1]["not_loaded"] is not_loaded


def test_an_event_without_a_tool_says_how_to_name_one(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "true"}]}]}
    write_settings(project, "turngate", {"hooks": content})
    out = fire(capfd, project, "PreToolUse")[1]
    assert out.splitlines()[-1] == """  → to fire it for one: --input '{"tool_name": "Edit"}'"""
    out = fire(capfd, project, "PreToolUse", "--input", '{"tool_name": "Edit"}')[1]
    assert out.splitlines()[1].split()[0] == "passed"


def test_an_object_in_braces_that_is_not_json_is_named_as_the_option(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = "turngate: --input is not JSON at line 1, column 6: there is more text after the JSON value\n"
    assert fire(capfd, project, "Stop", "--input", ' {}  "x"') == (64, "", said)


def test_the_help_names_all_forms_of_the_event(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fire", "--help"])
    words = " ".join(capfd.readouterr().out.split())
    said = "--input FILE|JSON fields of the event: a file with JSON, - for stdin, or a JSON object in braces; other fields get"
    assert said in words


def test_a_misspelled_field_of_the_event_is_named(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    err = fire(capfd, project, "Stop", "--input", '{"last_assistant_mesage": "x", "mine": 1}')[2]
    assert err.splitlines() == [
        "! --input: `last_assistant_mesage` is not a field that hooks know",
        '  → did you mean "last_assistant_message"?',
    ]


def test_a_script_that_is_not_executable_has_a_hint(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script(project / "gate.sh", "#!/bin/sh\n", 0o644)
    write_settings(project, "turngate", stop_hooks("./gate.sh"))
    assert fire(capfd, project, "Stop")[2].splitlines()[-1] == "  → chmod +x ./gate.sh"


def test_a_failure_that_blocked_has_no_hint_how_to_block(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1", blocking=True))
    code, _, err = fire(capfd, project, "Stop")
    assert (code, err) == (10, '! hook "exit 1" failed: exit code 1, nothing on stderr\n')


def shown_lines(out: str) -> list[str]:
    return [re.sub(r" +\d+\.\d\d s ", " 0.00 s ", line) for line in out.splitlines()]


LOST = {
    "text before the block": """echo '> npm test'; echo '{"decision": "block", "reason": "x"}'""",
    "a misspelled word": """echo '{"decision": "blok", "reason": "x"}'""",
    "the answer of a prompt hook": """echo '{"ok": false, "reason": "x"}'""",
    "truncated": """printf '{"decision": "block", "reason": "x'""",
    "in the wrong place": """echo '{"hookSpecificOutput": {"hookEventName": "Stop", "decision": "block"}}'""",
}


@pytest.mark.req("C-29")
@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
@pytest.mark.parametrize("command", LOST.values(), ids=LOST)
def test_a_lost_block_is_not_consent(
    command: str, dialect: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude" if dialect == "claude" else "mux", stop_hooks(command, id="gate"))
    code, out, err = fire(capfd, project, "Stop", "--strict", "--dialect", dialect)
    assert (code, out.splitlines()[0]) == (13, "Stop: allowed, 1 gate NOT enforced")
    assert out.splitlines()[1].startswith("  failed (not enforced) ")
    assert err.startswith('! hook "gate" failed and was NOT enforced: ')
    code, shown = fire_json(capfd, project, "Stop", "--strict", "--dialect", dialect)
    [lost] = shown["unenforced"]
    assert (code, lost["hook"], lost["outcome"]) == (13, "gate", "failed")
    assert err == f'! hook "gate" failed and was NOT enforced: {lost["why"]}\n'


UNMATCHABLE = "its matcher '(' is not a valid regular expression"


@pytest.mark.parametrize("policy", [{"blocking": True}, {"onFailure": "block"}], ids=str)
@pytest.mark.parametrize("dialect", ["turngate", "mux"])
def test_an_invalid_matcher_blocks_where_a_failure_blocks(
    dialect: str, policy: dict[str, object], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "true", "id": "gate", **policy}
    write_settings(project, "mux", {"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [hook]}]}})
    code, out, err = fire(capfd, project, "PreToolUse", "--dialect", dialect)
    assert (code, shown_lines(out), err.splitlines()[-1]) == (
        10,
        [
            "PreToolUse: blocked",
            '  failed 0.00 s  "gate"  (.mux/settings.json)',
            "Reason:",
            f"  this check failed and must pass first: {UNMATCHABLE}",
        ],
        f'! hook "gate" failed: {UNMATCHABLE}',
    )


@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
def test_a_hook_with_an_invalid_matcher_is_not_enforced(
    dialect: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "true"}
    family = "claude" if dialect == "claude" else "mux"
    write_settings(project, family, {"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [hook]}]}})
    code, shown = fire_json(capfd, project, "PreToolUse", "--strict", "--dialect", dialect)
    assert (code, [lost["why"] for lost in shown["unenforced"]]) == (13, [UNMATCHABLE])


def test_the_headline_counts_the_gates_that_were_not_enforced(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1", "exit 3", "true"))
    assert fire(capfd, project, "Stop")[1].splitlines()[0] == "Stop: allowed, 2 gates NOT enforced"


def test_a_lost_block_blocks_where_the_hook_is_blocking(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(LOST["a misspelled word"], blocking=True))
    code, out, _ = fire(capfd, project, "Stop", "--strict")
    assert (code, out.splitlines()[0]) == (10, "Stop: blocked")


def test_block_json_with_exit_code_1_blocks_without_the_hint_about_exit_codes(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("""echo '{"decision":"block","reason":"x"}'; exit 1"""))
    code, out, err = fire(capfd, project, "Stop")
    assert (code, out.splitlines()[0], err) == (10, "Stop: blocked", "")


ASK = {"hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "really?"}


def test_a_hook_before_a_tool_that_asks_is_shown(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = f"echo '{json.dumps({'hookSpecificOutput': ASK})}'"
    write_settings(project, "turngate", stop_hooks(command, event="PreToolUse", id="careful"))
    code, out, err = fire(capfd, project, "PreToolUse")
    assert (code, shown_lines(out), err) == (
        12,
        ["PreToolUse: ask: really?", '  ask 0.00 s  "careful"  (.turngate/settings.json)'],
        "",
    )
    code, shown = fire_json(capfd, project, "PreToolUse")
    assert (code, shown["verdict"], shown["permission"]) == (12, "stop", "ask")


def test_a_permission_that_cannot_be_read_asks(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = f"echo '{json.dumps({'hookSpecificOutput': {**ASK, 'permissionDecision': 'dney'}})}'"
    write_settings(project, "turngate", stop_hooks(command, event="PreToolUse", id="careful"))
    why = '`permissionDecision` is "dney", expected "allow", "deny", "ask" or "defer"; did you mean "deny"?'
    code, out, err = fire(capfd, project, "PreToolUse")
    assert (code, out.splitlines()[0], err) == (
        12,
        f"PreToolUse: ask: {why}, 1 gate NOT enforced",
        f'! hook "careful" failed and was NOT enforced: {why}\n',
    )
    assert fire(capfd, project, "PreToolUse", "--strict")[0] == 13


@pytest.mark.parametrize(
    ("dialect", "family", "codes"), [("turngate", "turngate", (12, 13)), ("claude", "claude", (0, 13))]
)
def test_an_answer_for_the_user_that_cannot_be_read_is_not_consent(
    dialect: str, family: str, codes: tuple[int, int], project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    decision = {"behavior": "denied", "message": "no"}
    answer = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    command = f"echo '{json.dumps(answer)}'"
    write_settings(project, family, stop_hooks(command, event="PermissionRequest"))
    words = ("PermissionRequest", "--dialect", dialect)
    assert (fire(capfd, project, *words)[0], fire(capfd, project, *words, "--strict")[0]) == codes


@pytest.mark.parametrize(
    "command",
    [
        "echo remember the milk",
        """echo '{"hookSpecificOutput": {"hookEventName": "EVENT", "additionalContext": "remember the milk"}}'""",
    ],
    ids=["text", "json"],
)
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_context_is_shown_as_context(
    event: str, command: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(command.replace("EVENT", event), event=event, id="memory"))
    code, out, err = fire(capfd, project, event)
    lines = out.splitlines()
    assert (code, lines[0], lines[2:], err) == (
        0,
        f"{event}: allowed",
        ["Added as context:", "  remember the milk"],
        "",
    )
    assert fire_json(capfd, project, event)[1]["context"] == "remember the milk"


def test_exit_2_at_session_start_is_not_shown_as_a_block(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE, event="SessionStart", id="start"))
    code, out, err = fire(capfd, project, "SessionStart")
    assert (code, shown_lines(out), err) == (
        0,
        [
            "SessionStart: allowed, 1 gate NOT enforced",
            '  failed (not enforced) 0.00 s  "start"  (.turngate/settings.json)',
        ],
        '! hook "start" failed and was NOT enforced: a hook cannot block at SessionStart: run the tests\n',
    )
    code, shown = fire_json(capfd, project, "SessionStart", "--strict")
    assert (code, shown["verdict"], shown["runs"][0]["outcome"]) == (13, "stop", "failed")


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ("Stopp", 13),
        ("PostStop", 13),
        ("SessionStop", 13),
        ("Later", 13),
        ("PreToolUze", 0),
        ("Notification", 0),
    ],
)
def test_a_mistyped_event_is_a_gate_that_strict_misses(
    event: str, code: int, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", {"hooks": {event: stop_hooks("exit 2")["hooks"]["Stop"]}})
    assert fire(capfd, project, "Stop", "--strict")[0] == code


@pytest.mark.parametrize("event", ["PreToolUse", "SubagentStop"])
@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
def test_where_only_other_events_have_hooks_they_are_named(
    event: str, dialect: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    family = "mux" if dialect == "mux" else "claude"
    write_settings(project, family, stop_hooks("true", event=event))
    said = f"no hook for Stop is configured in {project}; there are hooks for {event}"
    assert fire(capfd, project, "Stop", "--dialect", dialect) == (0, f"Stop: allowed\n  {said}\n", "")


def test_settings_that_only_another_dialect_reads_are_named(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("exit 2"))
    said = "there is .turngate/settings.json, which the turngate dialect reads"
    expected = f"Stop: allowed\n  no hook for Stop is configured in {project}; {said}\n"
    assert fire(capfd, project, "Stop", "--dialect", "claude") == (0, expected, "")


def test_disabled_hooks_are_reported_and_strict_fails(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", {**stop_hooks("true"), "disableAllHooks": True})
    code, out, err = fire(capfd, project, "Stop", "--strict")
    why = "disableAllHooks in .turngate/settings.json switches it off"
    assert (code, "skipped" in out, err) == (13, True, f'! hook "true" was skipped and NOT enforced: {why}\n')


BAD_SETTINGS: list[tuple[Any, str]] = [
    (
        "{",
        ".turngate/settings.json: not JSON at line 1, column 2: expecting property name enclosed in double quotes; none of its hooks run",
    ),
    ([], ".turngate/settings.json: the file holds a list, expected an object"),
    ({"hooks": {"Stop": {}}}, ".turngate/settings.json: Stop: is an object, expected a list of groups"),
    ({"hooks": {"Foo": []}}, ".turngate/settings.json: Foo: is not a known event, so its hooks never run"),
]


@pytest.mark.req("S0-03", "C-35")
@pytest.mark.parametrize(("content", "sentence"), BAD_SETTINGS)
def test_a_bad_settings_file_is_reported_and_every_other_hook_still_works(
    project: Path, capfd: pytest.CaptureFixture[str], content: Any, sentence: str
) -> None:
    write_settings(project, "turngate", content)
    write_settings(project, "mux", stop_hooks(REFUSE))
    code, shown = fire_json(capfd, project, "Stop")
    assert (code, shown["warnings"], len(shown["runs"])) == (10, [sentence], 1)


def test_a_broken_file_without_any_other_hook_never_passes_silently(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", "{")
    assert [fire(capfd, project, "Stop", *words)[0] for words in ([], ["--strict"])] == [0, 13]


def test_a_folder_named_settings_json_is_reported(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / ".turngate" / "settings.json").mkdir(parents=True)
    assert fire(capfd, project, "Stop")[2] == (
        "! .turngate/settings.json: is a folder, expected a file; none of its hooks run\n"
        "  → remove or rename the folder\n"
    )


BAD_EVENTS: list[tuple[str, str]] = [
    (
        "{",
        "turngate: {file} is not JSON at line 1, column 2: expecting property name enclosed in double quotes\n",
    ),
    (
        '{"session_id": "a",\n}',
        (
            "turngate: {file} is not JSON at line 1, column 19: "
            "a comma before the closing bracket is not allowed in JSON\n"
        ),
    ),
    ("{'a': 1}", 'turngate: {file} is not JSON at line 1, column 2: strings need double quotes (")\n'),
    ("[]", "turngate: {file}: an event is a JSON object, not list\n"),
    ('{"session_id": 5}', "turngate: {file}: `session_id` must be a string, not '5'\n"),
]


@pytest.mark.parametrize(("content", "sentence"), BAD_EVENTS)
def test_a_bad_event_is_wrong_usage(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], content: str, sentence: str
) -> None:
    file = tmp_path / "event.json"
    file.write_text(content)
    assert fire(capfd, project, "Stop", "--input", str(file)) == (64, "", sentence.format(file=file))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["Stop", "--input", "/no/such/event.json"],
            (
                "turngate: /no/such/event.json cannot be read: No such file or directory; "
                "--input takes a file, - for stdin, or a JSON object in braces\n"
            ),
        ),
        (["Stop", "--input", "/dev/zero"], "turngate: /dev/zero is larger than 64 MiB\n"),
        (
            ["Stop", "--project", "/no/such/folder"],
            "turngate: there is no folder /no/such/folder; give the project's folder with --project\n",
        ),
    ],
)
def test_what_is_not_there_is_wrong_usage(
    words: list[str], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (main(["fire", *words]), capfd.readouterr().err) == (64, sentence)


def test_the_event_reaches_the_hook(project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    event = tmp_path / "event.json"
    event.write_text('{"session_id":"mine","stop_hook_active":true,"last_assistant_message":"done"}')
    write_settings(project, "mux", stop_hooks("cat; echo $MUX_STOP_HOOK_ACTIVE >&2"))
    _, shown = fire_json(capfd, project, "Stop", "--input", str(event))
    told = json.loads(shown["runs"][0]["stdout"])
    assert (told["session_id"], told["cwd"], told["last_assistant_message"], shown["runs"][0]["stderr"]) == (
        "mine",
        str(project),
        "done",
        "true\n",
    )


@pytest.mark.req("S0-17", "S0-101", "C-02")
@pytest.mark.parametrize(
    ("dialect", "family", "seconds"),
    [
        ("mux", "mux", 10.0),
        ("turngate", "mux", 10.0),
        ("turngate", "claude", 60.0),
        ("turngate", "turngate", 60.0),
        ("claude", "claude", 600.0),
    ],
)
def test_each_dialect_has_its_own_default_limit_and_the_files_of_mux_have_that_of_mux(
    project: Path, capfd: pytest.CaptureFixture[str], dialect: str, family: str, seconds: float
) -> None:
    write_settings(project, family, stop_hooks("true"))
    _, shown = fire_json(capfd, project, "Stop", "--dialect", dialect)
    assert [run["hook"]["timeout"] for run in shown["runs"]] == [seconds]


@pytest.mark.req("S0-01")
def test_a_subagent_has_its_own_hooks(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE, event="SubagentStop"))
    code, shown = fire_json(capfd, project, "SubagentStop")
    assert (code, shown["prompt"], fire(capfd, project, "Stop")[0]) == (10, "run the tests", 0)


def test_other_events_can_be_fired_too(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hooks = [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo no rm >&2; exit 2"}]}]
    write_settings(project, "turngate", {"hooks": {"PreToolUse": hooks}})
    event = project / "event.json"
    event.write_text('{"tool_name":"Bash","tool_input":{"command":"rm"}}')
    assert fire_json(capfd, project, "PreToolUse", "--input", str(event))[0] == 10
    event.write_text('{"tool_name":"Read"}')
    assert fire_json(capfd, project, "PreToolUse", "--input", str(event))[0] == 0


def test_what_was_asked_is_in_the_journal(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    fire(capfd, project, "Stop")
    journal = without_starts(records(f"{state}/sessions/fire/journal.jsonl"))
    assert [record["kind"] for record in journal] == ["hook", "verdict"]


def test_a_hook_in_the_background_that_hangs_is_ended_and_reported(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(
        project,
        "claude",
        {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sleep 60", "async": True}]}]}},
    )
    code, _, err = fire(capfd, project, "Stop", "--dialect", "claude")
    assert (code, err) == (0, '! background hooks killed because they were still running: "sleep 60"\n')


# As a process of its own

TURNGATE = [sys.executable, "-m", "turngate"]


def test_an_event_on_stdin_that_is_not_json_is_one_clear_sentence(project: Path) -> None:
    done = subprocess.run(
        [*TURNGATE, "fire", "Stop", "--input", "-", "--trust"],
        input=b"hello",
        cwd=project,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        64,
        b"",
        b"turngate: the event on stdin is not JSON at line 1, column 1: expecting value\n",
    )


@pytest.mark.req("S0-104", "S3-17")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_hook_and_then_us(project: Path, number: signal.Signals, code: int) -> None:
    write_settings(project, "turngate", stop_hooks("echo $$ > pid; exec sleep 60"))
    with subprocess.Popen(
        [*TURNGATE, "fire", "Stop", "--trust"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_for(project / "pid")
        process.send_signal(number)
        _, err = process.communicate(timeout=HANG_TIMEOUT_S)
    said = err.decode().splitlines()[-1]
    assert (process.returncode, said) == (
        code,
        f"turngate: ended by {number.name} before a verdict; no hook is left running",
    )
    assert not os.path.exists(f"/proc/{(project / 'pid').read_text().strip()}")


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + HANG_TIMEOUT_S
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


UNTIL_PROGRESS = "until [ -s err ]; do sleep 0.05; done"


def fire_slowly(project: Path, command: str, **fields: str) -> tuple[int, str]:
    """Fire a hook that ends once something is printed on stderr, however slow the machine is."""
    write_settings(project, "turngate", stop_hooks(command, **fields))
    with (project / "err").open("w") as err:
        done = subprocess.run(
            [*TURNGATE, "fire", "Stop"],
            cwd=project,
            stdout=subprocess.DEVNULL,
            stderr=err,
            check=False,
            timeout=HANG_TIMEOUT_S,
        )
    return done.returncode, (project / "err").read_text()


@pytest.mark.parametrize("given", ["a pipe", "stdin"])
def test_an_event_that_does_not_come_is_waited_for_with_a_line(project: Path, given: str) -> None:
    pipe = project / "event"
    os.mkfifo(pipe)
    words = ["--input", "-" if given == "stdin" else str(pipe)]
    process = subprocess.Popen(
        [*TURNGATE, "fire", "Stop", *words],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        said = next_line(process).decode()
        if said and given == "a pipe":
            pipe.write_text("{}")
        out, _ = process.communicate(b"{}", timeout=HANG_TIMEOUT_S)
    finally:
        process.kill()
    name = "the event on stdin" if given == "stdin" else str(pipe)
    assert (said, out.splitlines()[0], process.returncode) == (f"waiting for {name} …\n", b"Stop: allowed", 0)


def test_what_takes_long_says_what_is_waited_for(project: Path) -> None:
    assert fire_slowly(project, UNTIL_PROGRESS, id="slow") == (
        0,
        'waiting for hook "slow" (at most 60 s) …\n',
    )


def test_a_reader_that_goes_away_is_no_error(project: Path) -> None:
    script(project / "many.sh", "#!/bin/sh\nseq 1 100000 >&2\nexit 2\n")
    write_settings(project, "turngate", stop_hooks("./many.sh"))
    line = f"{sys.executable} -m turngate fire Stop --trust | head -1"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=project, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("Stop: blocked\n", "")


@pytest.mark.parametrize("redirection", ["| true", ">&-", "> /dev/full", ">&- 2>&-"])
def test_no_failure_to_print_turns_a_block_into_a_permission(project: Path, redirection: str) -> None:
    write_settings(project, "turngate", stop_hooks("echo 'nein, caf\u00e9' >&2; exit 2"))
    line = f"{{ {sys.executable} -m turngate fire Stop --trust --json; echo $? > code; }} {redirection}"
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    subprocess.run(["/bin/bash", "-c", line], cwd=project, env=env, capture_output=True, check=False)
    assert (project / "code").read_text() == "10\n"


def test_exit_codes_are_known_although_our_parent_ignored_sigchld(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(REFUSE))
    code = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    command = [sys.executable, "-c", code, sys.executable, "-m", "turngate", "fire", "Stop", "--trust"]
    done = subprocess.run(command, cwd=project, capture_output=True, check=False)
    assert done.returncode == 10


def test_events_that_cannot_be_blocked_are_not(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("echo no >&2; exit 2", event="SessionEnd"))
    code, out, _ = fire(capfd, project, "SessionEnd")
    assert (code, out.splitlines()[0]) == (0, "SessionEnd: allowed, 1 gate NOT enforced")


def test_a_duplicate_key_is_reported(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", '{"hooks": {"Stop": [], "Stop": []}}')
    code, _, err = fire(capfd, project, "Stop", "--strict")
    said = '! .turngate/settings.json: the key "Stop" occurs twice in one object: only the last one is used\n'
    assert (code, err) == (13, said + "  → merge the two values\n")


def test_the_names_of_hooks_that_are_waited_for_change_no_terminal(project: Path) -> None:
    command = f"{UNTIL_PROGRESS} # \x1b[31mred\x1b]0;title\x07"
    assert fire_slowly(project, command) == (
        0,
        f"waiting for hook {quote_name(UNTIL_PROGRESS + ' # red')} (at most 60 s) …\n",
    )
