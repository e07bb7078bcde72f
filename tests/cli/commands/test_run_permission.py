"""`turngate run -p`: a tool without permission is named to the user, not only to the model."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.scripted_run import as_json, turngate
from tests.support.sessions import say
from turngate.cli.main import main

WRITE = {"tool": "Write", "input": {"file_path": "a.txt", "content": "a"}}
BASH = {"tool": "Bash", "input": {"command": "true"}}
DENY = say(
    {
        "hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": {"behavior": "deny", "message": "not on a Friday"},
        }
    }
)
ASK = say(
    {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "ask",
            "permissionDecisionReason": "it is a release branch",
        }
    }
)


def test_a_tool_that_was_not_permitted_is_named_on_stderr(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert turngate(capfd, project, "go", replies=(WRITE, "done")) == (
        0,
        "done\n",
        "! Write was not permitted; start with --allow Write\n",
    )


def test_each_tool_that_was_not_permitted_is_in_the_notices_once(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    result = as_json(capfd, project, "go", replies=(WRITE, BASH, WRITE, "done"))
    assert result["notices"] == [
        "Write was not permitted; start with --allow Write",
        "Bash was not permitted; start with --allow Bash",
    ]


def test_in_plan_mode_the_notice_names_the_mode(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = as_json(capfd, project, "go", "--permission-mode", "plan", replies=(WRITE, "done"))
    assert result["notices"] == ["Write was not permitted in plan mode; start without --permission-mode plan"]


def test_a_denial_by_a_hook_is_in_the_notices_with_its_reason(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    groups = [{"matcher": "Write", "hooks": [{"type": "command", "command": DENY}]}]
    write_settings(project, "turngate", {"hooks": {"PermissionRequest": groups}})
    result = as_json(capfd, project, "go", replies=(WRITE, "done"))
    assert result["notices"] == ["Write was not permitted by a hook: not on a Friday"]


@pytest.mark.parametrize("words", [(), ("--allow", "Write"), ("--permission-mode", "bypassPermissions")])
def test_a_hook_that_wants_the_user_to_be_asked_is_named_instead_of_an_option(
    project: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    groups = [{"matcher": "Write", "hooks": [{"type": "command", "command": ASK}]}]
    write_settings(project, "turngate", {"hooks": {"PreToolUse": groups}})
    result = as_json(capfd, project, "go", *words, replies=(WRITE, "done"))
    why = "a hook wants the user to be asked: it is a release branch"
    assert result["notices"] == [f"Write was not permitted: {why}"]
    assert f"Write needs permission, and there is no user to ask: {why}" in Path(
        result["transcript_path"]
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize("words", [("--allow", "Write"), ("--permission-mode", "acceptEdits")])
def test_a_tool_that_was_permitted_gives_no_notice(
    project: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    result: dict[str, Any] = as_json(capfd, project, "go", *words, replies=(WRITE, "done"))
    assert (result["notices"], (project / "a.txt").read_text()) == ([], "a")


def test_a_tool_of_a_subagent_that_was_not_permitted_is_in_the_notices(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = {"tool": "Task", "input": {"description": "write", "prompt": "Write it."}}
    path = project.parent / "both.json"
    path.write_text(json.dumps({"main": [task, "done"], "sub": [WRITE, BASH, WRITE, "I could not."]}))
    words = ["--project", str(project), "--model", f"scripted:{path}", "--output-format", "json"]
    main(["run", "-p", "go", "--allow", "Task", *words])
    assert json.loads(capfd.readouterr().out)["notices"] == [
        "Write was not permitted; start with --allow Write",
        "Bash was not permitted; start with --allow Bash",
    ]


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_with_json_on_stdout_a_tool_that_was_not_permitted_is_named_on_stderr_too(
    project: Path, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    code, out, err = turngate(capfd, project, "go", "--output-format", form, replies=(WRITE, "done"))
    last = json.loads(out.splitlines()[-1])
    text = "Write was not permitted; start with --allow Write"
    assert (code, last["notices"], err) == (0, [text], f"! {text}\n")


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_with_json_on_stdout_only_what_went_wrong_with_a_gate_is_on_stderr(
    project: Path, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    hooks = [
        {"type": "command", "command": say({"systemMessage": "hello"})},
        {"type": "command", "command": "exit 1", "id": "tests"},
    ]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    _, out, err = turngate(capfd, project, "go", "--output-format", form)
    notices = json.loads(out.splitlines()[-1])["notices"]
    failed = 'hook "tests" failed and was NOT enforced: exit code 1, nothing on stderr'
    assert (notices, err.splitlines()[0]) == (["hello", failed], f"! {failed}")


def test_in_stream_json_the_notice_is_an_event_too(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = turngate(capfd, project, "go", "--output-format", "stream-json", replies=(WRITE, "done"))
    notices = [event["text"] for event in map(json.loads, out.splitlines()) if event["type"] == "notice"]
    assert notices == ["Write was not permitted; start with --allow Write"]


LOST = {
    "a participle": ("PreToolUse", {"permissionDecision": "denied"}, ""),
    "a number": ("PreToolUse", {"permissionDecision": 5}, ""),
    "text before it": ("PreToolUse", {"permissionDecision": "deny"}, "checking\n"),
    "an answer for the user": ("PermissionRequest", {"decision": {"behavior": "denied"}}, ""),
}


@pytest.mark.parametrize(("event", "answer", "before"), LOST.values(), ids=LOST)
def test_a_denial_that_cannot_be_read_keeps_the_tool_from_running_and_is_not_enforced(
    event: str, answer: dict[str, Any], before: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = before + json.dumps({"hookSpecificOutput": {"hookEventName": event, **answer}}, indent=2)
    (project / "answer").write_text(text)
    allow = say({"hookSpecificOutput": {"hookEventName": event, "decision": {"behavior": "allow"}}})
    commands = ["cat answer"] + ([allow] if event == "PermissionRequest" else [])
    hooks = [{"type": "command", "command": command} for command in commands]
    write_settings(project, "turngate", {"hooks": {event: [{"matcher": "Write", "hooks": hooks}]}})
    words = () if event == "PermissionRequest" else ("--allow", "Write")
    code, _, err = turngate(capfd, project, "go", "--strict", *words, replies=(WRITE, "done"))
    assert (code, (project / "a.txt").exists()) == (13, False)
    assert 'hook "cat answer" failed and was NOT enforced' in err


def test_a_guard_of_a_folder_cannot_be_bypassed_by_a_link_another_tool_or_a_search_above(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "src").mkdir()
    (project / "src" / "x").write_text("KEY=1")
    (project / "ln").symlink_to("src")
    guards = [
        {"type": "command", "if": f"{tool}(src/**)", "command": "echo frozen >&2; exit 2"}
        for tool in ("Edit", "Read")
    ]
    write_settings(project, "turngate", {"hooks": {"PreToolUse": [{"hooks": guards}]}})
    calls = (
        {"tool": "Write", "input": {"file_path": "src/y", "content": "a"}},
        {"tool": "Write", "input": {"file_path": "ln/y", "content": "a"}},
        {"tool": "Edit", "input": {"file_path": "ln/x", "old_string": "1", "new_string": "2"}},
        {"tool": "Grep", "input": {"pattern": "KEY=", "output_mode": "content"}},
        {"tool": "Read", "input": {"file_path": "ln/x"}},
        {"tool": "Write", "input": {"file_path": "a.txt", "content": "a"}},
    )
    result = as_json(capfd, project, "go", "--permission-mode", "acceptEdits", replies=(*calls, "done"))
    transcript = Path(result["transcript_path"]).read_text()
    assert transcript.count("a hook blocked this: frozen") == 5
    assert ([path.name for path in (project / "src").iterdir()], (project / "src" / "x").read_text()) == (
        ["x"],
        "KEY=1",
    )
    assert (project / "a.txt").read_text() == "a"


@pytest.mark.parametrize("word", ["Deny", "DENY", "block"])
def test_a_denial_in_any_case_keeps_the_tool_from_running(
    word: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": word, "permissionDecisionReason": " "}
    groups = [{"hooks": [{"type": "command", "command": say({"hookSpecificOutput": specific})}]}]
    write_settings(project, "turngate", {"hooks": {"PreToolUse": groups}})
    code, _, err = turngate(capfd, project, "go", "--strict", "--allow", "Write", replies=(WRITE, "done"))
    assert (code, err, (project / "a.txt").exists()) == (0, "", False)
