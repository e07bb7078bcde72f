"""Every reason that `turngate doctor` knows, each in a project that has it."""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from turngate.cli.main import main
from turngate.project.files import LOCAL
from turngate.state.paths import session_folder, state_folder
from turngate.trust.review import review_project

FACTS = 4  # the first lines are about Turngate itself
SH = "#!/bin/sh\n"
GATE = f"{SH}test -f DONE || {{ echo 'not done' >&2; exit 2; }}\n"


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hints name the project only where they are read elsewhere."""
    monkeypatch.chdir(project)


def doctor(capsys: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, list[str]]:
    """Return the exit code, and the lines about the hooks."""
    code = main(["doctor", "--project", str(project), *words])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, captured.out.splitlines()[FACTS:]


def hooks(event: str, *entries: dict[str, Any], matcher: str | None = None) -> dict[str, Any]:
    group: dict[str, Any] = {"hooks": [{"type": "command", **entry} for entry in entries]}
    return {"hooks": {event: [group if matcher is None else {"matcher": matcher, **group}]}}


def approve(project: Path) -> None:
    review = review_project(str(project), dialect="turngate", files=LOCAL)
    review.approve(review.hooks)


def how_to_approve(key: str) -> str:
    return f"    → `turngate hooks diff {key}` shows it, `turngate hooks approve {key}` lets it run"


@pytest.fixture
def reviewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only approved hooks run, as outside of tests."""
    monkeypatch.delenv("TURNGATE_TRUST", raising=False)


# Hooks that run


def test_a_hook_without_a_flaw_will_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(project / "check.sh", GATE)
    write_settings(project, "turngate", stop_hooks("./check.sh"))
    script(project / ".turngate" / "stop", GATE)
    assert doctor(capsys, project) == (
        0,
        [
            ".turngate/settings.json",
            '  will run       Stop[0].hooks[0] "./check.sh"',
            ".turngate/stop",
            '  will run       Stop ".turngate/stop"',
            "2 hooks, all will run",
        ],
    )


def test_a_project_without_hooks_has_nothing_to_diagnose(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor(capsys, project) == (0, ["0 hooks"])


# Hooks that do not run


@pytest.mark.usefixtures("reviewed")
def test_a_hook_that_is_not_approved(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("./check.sh"))
    script(project / "check.sh", GATE)
    assert doctor(capsys, project) == (
        13,
        [
            ".turngate/settings.json",
            '  will NOT run   Stop[0].hooks[0] "./check.sh": it is not approved',
            how_to_approve("Stop:1"),
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )
    approve(project)
    assert doctor(capsys, project)[0] == 0


@pytest.mark.usefixtures("reviewed")
def test_a_hook_whose_script_has_changed_since_it_was_approved(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("./check.sh"))
    script(project / "check.sh", GATE)
    approve(project)
    script(project / "check.sh", f"{SH}curl evil\n")
    code, lines = doctor(capsys, project)
    assert (code, lines[1:3]) == (
        13,
        [
            '  will NOT run   Stop[0].hooks[0] "./check.sh": check.sh was changed after it was approved',
            how_to_approve("Stop:1"),
        ],
    )


@pytest.mark.usefixtures("reviewed")
def test_a_hook_that_was_rejected_is_not_a_problem(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    review = review_project(str(project), dialect="turngate", files=LOCAL)
    review.reject(review.hooks)
    code, lines = doctor(capsys, project)
    assert (code, lines[1:3]) == (
        0,
        ['  will NOT run   Stop[0].hooks[0] "true": it was rejected', how_to_approve("Stop:1")],
    )


@pytest.mark.usefixtures("reviewed")
def test_a_hook_that_was_approved_and_is_gone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="tests"))
    approve(project)
    write_settings(project, "turngate", {"hooks": {}})
    forget = "`turngate hooks reject tests`"
    assert doctor(capsys, project) == (
        13,
        [
            ".turngate/settings.json",
            '  will NOT run   Stop "tests": it was approved, but is no longer configured',
            f"    → configure it again, or forget it with {forget}",
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )
    assert doctor(capsys, project, "--dialect", "mux") == (0, ["0 hooks"])
    write_settings(project, "turngate", "{")
    assert doctor(capsys, project)[1][-1] == "0 hooks"


def test_a_hook_that_is_switched_off_by_itself(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", enabled=False))
    assert doctor(capsys, project) == (
        0,
        [
            ".turngate/settings.json",
            '  will NOT run   Stop[0].hooks[0] "true": its own `enabled` switches it off',
            "1 hook, 0 will run",
        ],
    )


def test_the_line_of_another_agent_program_is_not_a_hook_of_the_project(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", stop_hooks("turngate hook"))
    code = main(["doctor", "--project", str(project)])
    lines = capsys.readouterr().out.splitlines()
    assert (code, lines[-3:]) == (
        0,
        [
            "registry: not there yet: no subagent has been started",
            "model key: none is set; `turngate run` and hooks that ask a model need one, or ollama",
            "0 hooks",
        ],
    )


def test_hooks_that_a_setting_switches_off(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(home, "claude", stop_hooks("true"))
    write_settings(project, "claude", {"disableAllHooks": True})
    assert doctor(capsys, project) == (
        13,
        [
            "~/.claude/settings.json",
            '  will NOT run   Stop[0].hooks[0] "true": disableAllHooks in .claude/settings.json switches it off',
            "    → remove disableAllHooks from .claude/settings.json",
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )


def test_hooks_that_an_administrator_switches_off(
    project: Path, managed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    managed.mkdir()
    file = managed / "managed-settings.json"
    file.write_text('{"allowManagedHooksOnly": true}')
    write_settings(project, "claude", stop_hooks("true"))
    assert doctor(capsys, project) == (
        13,
        [
            ".claude/settings.json",
            f'  will NOT run   Stop[0].hooks[0] "true": allowManagedHooksOnly in {file} switches it off',
            f"    → remove allowManagedHooksOnly from {file}",
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )


@pytest.mark.parametrize(
    ("event", "matcher", "why", "hint"),
    [
        ("PreToolUse", "Bsh", "it is not a tool of Turngate", 'did you mean "Bash"?'),
        (
            "SubagentStop",
            "reviewer",
            "it is not an agent type of Turngate",
            "known: Explore, general-purpose",
        ),
        (
            "SessionStart",
            "restart",
            "it is not a source of a session of Turngate",
            'did you mean "startup"?',
        ),
        ("PreCompact", "never", "it is not a trigger of a compaction of Turngate", "known: auto, manual"),
        (
            "SessionEnd",
            "crash",
            "it is not a reason of a session's end of Turngate",
            "known: clear, other, prompt_input_exit",
        ),
    ],
)
def test_a_matcher_that_never_matches(
    event: str, matcher: str, why: str, hint: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", hooks(event, {"command": "true"}, matcher=matcher))
    code, lines = doctor(capsys, project)
    assert (code, lines[1:3]) == (
        1 if event in ("SessionStart", "SessionEnd") else 13,
        [
            f'  will NOT run   {event}[0].hooks[0] "true": its matcher {matcher!r} never matches: {why}',
            f"    → {hint}",
        ],
    )


def test_a_matcher_that_is_not_valid(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", hooks("PreToolUse", {"command": "true"}, matcher="((("))
    code, lines = doctor(capsys, project)
    assert (code, lines[1:]) == (
        13,
        [
            "  will NOT run   PreToolUse[0].hooks[0] \"true\": matcher: is '(((', which is not a valid regular expression, so it never matches",
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )


def test_a_matcher_for_a_tool_of_claude_code_may_be_meant(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", hooks("PreToolUse", {"command": "true"}, matcher="WebFetch"))
    code, lines = doctor(capsys, project)
    assert (code, lines[1:]) == (
        0,
        [
            "  will NOT run   PreToolUse[0].hooks[0] \"true\": its matcher 'WebFetch' matches only a tool of Claude Code",
            "1 hook, 0 will run",
        ],
    )


def test_a_matcher_on_an_event_without_a_subject(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", hooks("Stop", {"command": "true"}, matcher="Bash"))
    code, lines = doctor(capsys, project)
    assert (code, lines[1:]) == (
        1,
        [
            "  will run, but  Stop[0].hooks[0] \"true\": matcher: is 'Bash', which has no effect on Stop: the hooks run at every Stop",
            "    → remove the matcher",
            "1 hook, it will run",
        ],
    )


def test_a_condition_with_which_a_stop_hook_never_runs(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", hooks("Stop", {"command": "true", "if": "Bash(git *)"}))
    code, lines = doctor(capsys, project, "--dialect", "claude")
    assert (code, lines[1:]) == (
        13,
        [
            '  will NOT run   Stop[0].hooks[0] "true": a hook with `if` never runs on Stop in this dialect',
            "    also: if: has no effect on Stop: the hook never runs at a stop",
            "      → remove it",
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )


FAILS = "so the hook fails at every run"
FAULTY: dict[str, tuple[str, str, list[str]]] = {
    # What: the command, the content of hooks/x, and the reason with the hint.
    "not executable": ("./hooks/x", "-", [f"./hooks/x is not executable, {FAILS}", "chmod +x ./hooks/x"]),
    "missing program": (
        "no-such-program --check",
        "",
        [
            f"the program no-such-program is not in the PATH, {FAILS}",
            "install no-such-program, or correct the name",
        ],
    ),
    "missing script": (
        "./hooks/x.sh",
        GATE,
        [f"./hooks/x.sh does not exist, {FAILS}"],
    ),
    "missing interpreter": (
        "./hooks/x",
        "#!/usr/bin/env no-such-interpreter\n",
        [
            f"./hooks/x begins with #!/usr/bin/env no-such-interpreter, and the program no-such-interpreter is not in the PATH, {FAILS}"
        ],
    ),
    "missing interpreter by its path": (
        "./hooks/x",
        "#!/opt/no/such-language\n",
        [f"./hooks/x begins with #!/opt/no/such-language, which does not exist, {FAILS}"],
    ),
    "line endings of Windows": (
        "./hooks/x",
        "#!/bin/sh\r\nexit 2\r\n",
        [f"./hooks/x has Windows line endings (CRLF), {FAILS}", "sed -i 's/\\r$//' ./hooks/x"],
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_command_that_cannot_be_started(
    case: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, content, [reason, *hints] = FAULTY[case]
    script(project / "hooks" / "x", content, 0o644 if content == "-" else 0o755)
    write_settings(project, "turngate", stop_hooks(command))
    assert doctor(capsys, project) == (
        13,
        [
            ".turngate/settings.json",
            f'  will NOT run   Stop[0].hooks[0] "{command}": {reason}',
            *(f"    → {hint}" for hint in hints),
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )


# Hooks that do not do what was meant


ONLY_2 = "and only exit code 2 blocks"
WEAK: dict[str, tuple[str, str, str, str]] = {
    "a check whose failure does not block": (
        "pytest -q",
        "",
        f"pytest -q does not end with exit code 2 when it fails, {ONLY_2}: this hook can never block",
        'write {"type": "gate", "command": "pytest -q"}, which blocks with the output as the reason',
    ),
    "exit 1 in a script": (
        "./hooks/x",
        f'{SH}grep -q done NOTES || {{ echo "write notes" >&2; exit 1; }}\n',
        f"./hooks/x ends with exit code 1 and never with 2, {ONLY_2}: it can never block",
        "to block, write the reason to stderr and exit with 2",
    ),
    "exit 1 in a Python script": (
        "python3 hooks/x",
        "import sys\nif not open('NOTES').read():\n    sys.exit(1)\n",
        f"hooks/x ends with exit code 1 and never with 2, {ONLY_2}: it can never block",
        "to block, write the reason to stderr and exit with 2",
    ),
    "text before the JSON": (
        """pytest -q || echo '{"decision": "block", "reason": "no"}'""",
        "",
        "the output of pytest -q comes before the JSON, which is then not read: this hook can never block",
        "print only the JSON on stdout, and everything else on stderr (>&2)",
    ),
    "syntax of bash": (
        "[[ -f x ]] || exit 2",
        "",
        "uses bash syntax, but /bin/sh runs it",
        'add "shell": "bash", or move it into a script that begins with #!/usr/bin/env bash',
    ),
}


@pytest.mark.parametrize("case", WEAK)
def test_a_gate_that_runs_and_does_not_hold(
    case: str,
    project: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script(tmp_path / "bin" / "pytest", "")  # this machine may not have it
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    command, content, reason, hint = WEAK[case]
    script(project / "hooks" / "x", content)
    (project / "NOTES").write_text("")
    write_settings(project, "turngate", stop_hooks(command, id="gate"))
    code, lines = doctor(capsys, project)
    assert (code, lines[:3], lines[-1]) == (
        13,
        [
            ".turngate/settings.json",
            f'  will NOT hold  Stop[0].hooks[0] "gate": {reason}',
            f"    → {hint}",
        ],
        "1 hook, it will run, 1 gate will NOT hold",
    )


def test_a_timeout_that_looks_like_milliseconds(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", timeout=5000))
    assert doctor(capsys, project) == (
        1,
        [
            ".turngate/settings.json",
            '  will run, but  Stop[0].hooks[0] "true": timeout: is 5000, which is read as seconds',
            "    → write 5 for 5000 milliseconds",
            "1 hook, it will run",
        ],
    )


def test_a_relative_path_and_an_unquoted_variable_are_notes(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script(project / ".claude" / "a.sh", GATE)
    write_settings(project, "claude", stop_hooks(".claude/a.sh", "$CLAUDE_PROJECT_DIR/.claude/a.sh"))
    assert doctor(capsys, project) == (
        0,
        [
            ".claude/settings.json",
            '  will run       Stop[0].hooks[0] ".claude/a.sh"',
            "    note: .claude/a.sh is a relative path: Turngate runs hooks in the project's folder, Claude Code in its current one",
            '      → write "$CLAUDE_PROJECT_DIR"/.claude/a.sh',
            '  will run       Stop[0].hooks[1] "$CLAUDE_PROJECT_DIR/.claude/a.sh"',
            "    note: $CLAUDE_PROJECT_DIR is not quoted: a space in the path would break it",
            '      → write "$CLAUDE_PROJECT_DIR"/… with the double quotes (in JSON: \\"$CLAUDE_PROJECT_DIR\\"/…)',
            "2 hooks, all will run",
        ],
    )


def test_an_unquoted_variable_in_a_folder_with_a_space(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "my project"
    script(project / ".claude" / "a.sh", GATE)
    write_settings(project, "claude", stop_hooks("$CLAUDE_PROJECT_DIR/.claude/a.sh"))
    code, lines = doctor(capsys, project)
    assert (code, lines[1]) == (
        13,
        f'  will NOT run   Stop[0].hooks[0] "$CLAUDE_PROJECT_DIR/.claude/a.sh": $CLAUDE_PROJECT_DIR is not quoted, and there is a space in {project}, {FAILS}',
    )


def test_two_definitions_of_one_command(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(home, "turngate", stop_hooks("true"))
    write_settings(project, "turngate", stop_hooks("true", timeout=5))
    assert doctor(capsys, project) == (
        0,
        [
            "~/.turngate/settings.json",
            '  will run       Stop[0].hooks[0] "true"',
            "    note: is defined twice: it runs once, with the options of Stop[0].hooks[0] in .turngate/settings.json",
            "      → remove one of them",
            ".turngate/settings.json",
            '  will run       Stop[0].hooks[0] "true"',
            "2 hooks, all will run",
        ],
    )


def test_two_definitions_of_which_only_one_is_a_gate(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    write_settings(project, "turngate", stop_hooks("true", mode="observe"), "settings.local.json")
    code, lines = doctor(capsys, project)
    assert (code, lines[1]) == (
        13,
        '  will NOT hold  Stop[0].hooks[0] "true": is defined twice: it runs once, with the options of Stop[0].hooks[0] in .turngate/settings.local.json, where it is not a gate',
    )


# The last run


def fire(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["fire", "Stop", "--project", str(project)])
    capsys.readouterr()


def lines_without_time(lines: list[str]) -> list[str]:
    return [re.sub(r"\(\d{4}-\d\d-\d\d \d\d:\d\d\)", "(TIME)", line) for line in lines]


def test_json_after_other_text_in_the_last_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(project / "check", f"{SH}cat answer\n")
    (project / "answer").write_text('checking\n{"decision": "block", "reason": "no"}\n')
    write_settings(project, "turngate", stop_hooks("./check"))
    assert doctor(capsys, project)[0] == 0
    fire(project, capsys)
    code, lines = doctor(capsys, project)
    assert (code, lines_without_time(lines)) == (
        13,
        [
            ".turngate/settings.json",
            '  will NOT hold  Stop[0].hooks[0] "./check": its last run (TIME) failed: its decision was not read, because there is text before its JSON: print only the JSON on stdout, and everything else on stderr',
            "    → `turngate hooks test Stop` explains it",
            "1 hook, it will run, 1 gate will NOT hold",
        ],
    )


def test_a_timeout_of_the_last_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(project / "check", f"{SH}sleep 600\n")
    write_settings(project, "turngate", stop_hooks("./check", timeout=0.2))
    fire(project, capsys)
    code, lines = doctor(capsys, project)
    assert (code, lines_without_time(lines)[1:3]) == (
        13,
        [
            '  will NOT hold  Stop[0].hooks[0] "./check": its last run (TIME) timed out after 0.2 s',
            "    → raise its `timeout`",
        ],
    )


def test_a_failure_before_the_script_was_changed_is_a_note(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = script(project / "check", f"{SH}exit 3\n")
    write_settings(project, "turngate", stop_hooks("./check", mode="gate", blocking=False))
    fire(project, capsys)
    script(project / "check", GATE)
    later = os.stat(check).st_mtime + 60
    os.utime(check, (later, later))
    code, lines = doctor(capsys, project)
    assert (code, lines_without_time(lines)[1:]) == (
        0,
        [
            '  will run       Stop[0].hooks[0] "./check"',
            "    note: its last run (TIME) failed: exit code 3, nothing on stderr",
            "      → it has changed since; `turngate fire Stop` runs it again",
            "1 hook, it will run",
        ],
    )


# Problems that belong to no hook


def test_files_and_hooks_that_are_not_loaded(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}})
    write_settings(project, "mux", "{")
    script(project / ".turngate" / "stop.sh", GATE)
    code, lines = doctor(capsys, project)
    assert (code, lines) == (
        13,
        [
            ".mux/settings.json",
            "  error: not JSON at line 1, column 2: expecting property name enclosed in double quotes; none of its hooks run",
            ".turngate/settings.json",
            "  error: Stop[0].hooks[0].command: is missing, expected a non-empty string",
            ".turngate/stop.sh",
            "  error: Stop: is not run, because a script hook must be named .turngate/stop",
            "    → mv .turngate/stop.sh .turngate/stop",
            "0 hooks",
        ],
    )


def test_a_script_hook_that_is_not_executable(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(project / ".turngate" / "stop", GATE, 0o644)
    assert doctor(capsys, project) == (
        13,
        [
            ".turngate/stop",
            "  error: Stop: .turngate/stop is not executable, so it never runs",
            "    → chmod +x .turngate/stop",
            "0 hooks",
        ],
    )


def test_hooks_of_agent_files_are_diagnosed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = project / ".claude" / "agents" / "reviewer.md"
    agent.parent.mkdir(parents=True)
    agent.write_text(
        "---\nname: reviewer\ndescription: reviews\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: ./gone\n---\nReview.\n"
    )
    code, lines = doctor(capsys, project)
    assert (code, lines) == (
        13,
        [
            ".claude/agents/reviewer.md",
            f'  will NOT run   Stop[0].hooks[0] "./gone": ./gone does not exist, {FAILS}',
            "1 hook, 0 will run, 1 gate will NOT hold",
        ],
    )


def write_agent(project: Path, folder: str, *events: str) -> None:
    path = project / folder / "agents" / "reviewer.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    hook = "    - hooks:\n        - type: command\n          command: 'true'\n"
    hooks = "".join(f"  {event}:\n{hook}" for event in events)
    path.write_text(f"---\nname: reviewer\ndescription: reviews\nhooks:\n{hooks}---\nReview.\n")


@pytest.mark.usefixtures("reviewed")
def test_hooks_of_agent_files_need_an_approval_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", event="SubagentStop"))
    write_agent(project, ".turngate", "Stop", "SubagentStop", "PreToolUse")
    assert doctor(capsys, project) == (
        13,
        [
            ".turngate/settings.json",
            '  will NOT run   SubagentStop[0].hooks[0] "true": it is not approved',
            how_to_approve("SubagentStop:1"),
            ".turngate/agents/reviewer.md",
            '  will NOT run   Stop[0].hooks[0] "true": it is not approved',
            how_to_approve("SubagentStop:2"),
            '  will NOT run   SubagentStop[0].hooks[0] "true": it is not approved',
            how_to_approve("SubagentStop:3"),
            '  will NOT run   PreToolUse[0].hooks[0] "true": it is not approved',
            how_to_approve("PreToolUse:1"),
            "4 hooks, 0 will run, 4 gates will NOT hold",
        ],
    )
    approve(project)
    code, lines = doctor(capsys, project)
    assert (code, lines[-1]) == (0, "4 hooks, all will run")


def test_the_last_run_of_a_hook_of_an_agent_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_agent(project, ".turngate", "Stop")
    [hook] = review_project(str(project), dialect="turngate", files=LOCAL).hooks
    record = {
        "time": time.time() + 60,
        "session_id": "s",
        "project": str(project),
        "kind": "hook",
        "event": hook.rule.event,
        "hook": {"type": "command", "command": "true"},
        "file": hook.rule.file,
        "outcome": "failed",
        "reason": "exit code 9",
        "seconds": 0.1,
    }
    journal = session_folder(state_folder(), "s") + "/journal.jsonl"
    Path(journal).parent.mkdir(parents=True)
    Path(journal).write_text(json.dumps(record, separators=(",", ":")) + "\n")
    code, lines = doctor(capsys, project)
    assert (code, lines_without_time(lines)[1]) == (
        13,
        '  will NOT hold  Stop[0].hooks[0] "true": its last run (TIME) failed: exit code 9',
    )


def test_hooks_of_an_agent_type_that_another_file_defines(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_agent(home, ".turngate", "Stop")
    write_agent(project, ".turngate", "Stop")
    assert doctor(capsys, project) == (
        0,
        [
            ".turngate/agents/reviewer.md",
            '  will run       Stop[0].hooks[0] "true"',
            "~/.turngate/agents/reviewer.md",
            "  note: hooks: are not run: another file defines the agent type reviewer",
            "1 hook, it will run",
        ],
    )


# JSON


def test_as_json_it_is_one_object(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", timeout=5000))
    assert main(["doctor", "--project", str(project), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [fact["name"] for fact in report.pop("turngate")] == [
        "turngate",
        "state folder",
        "registry",
        "model key",
    ]
    assert report == {
        "project": str(project),
        "hooks": [
            {
                "event": "Stop",
                "file": ".turngate/settings.json",
                "position": "Stop[0].hooks[0]",
                "hook": {"type": "command", "command": "true", "timeout": 5000},
                "gate": True,
                "key": "Stop:1",
                "trust": "exempt",
                "outlook": "will run, but",
                "findings": [
                    {
                        "outlook": "will run, but",
                        "severity": "warning",
                        "message": "timeout: is 5000, which is read as seconds",
                        "hint": "write 5 for 5000 milliseconds",
                    }
                ],
                "last_run": None,
                "proof": None,
            }
        ],
        "problems": [],
    }


@pytest.mark.req("X-35")
def test_the_source_the_trust_and_the_last_run_of_each_hook(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("exit 3", id="tests"))
    fire(project, capsys)
    main(["doctor", "--project", str(project), "--json"])
    [hook] = json.loads(capsys.readouterr().out)["hooks"]
    last = hook["last_run"]
    assert last.pop("time") == pytest.approx(time.time(), abs=600)
    assert last.pop("seconds") >= 0
    assert (hook["file"], hook["position"], hook["trust"], hook["outlook"], last) == (
        ".turngate/settings.json",
        "Stop[0].hooks[0]",
        "exempt",
        "will NOT hold",
        {"outcome": "failed", "reason": "exit code 3, nothing on stderr"},
    )


def test_a_state_folder_that_cannot_be_used_is_a_problem(
    project: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state.write_text("a file")
    write_settings(project, "turngate", stop_hooks("true"))
    assert main(["doctor", "--project", str(project)]) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"! state folder: {state} cannot be written (Not a directory): there is no journal, and nothing can be approved",
        "  → repair it, or set TURNGATE_STATE to another folder",
        "registry: not there yet: no subagent has been started",
        "model key: none is set; `turngate run` and hooks that ask a model need one, or ollama",
        ".turngate/settings.json",
        '  will run       Stop[0].hooks[0] "true"',
        "1 hook, it will run",
    ]


def test_no_name_of_a_hook_commands_the_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("exit 3", id="\x1b[2Jgate\nwill run"))
    _, lines = doctor(capsys, project)
    assert lines[1].startswith('  will NOT hold  Stop[0].hooks[0] "gate will run": ')


def test_thousands_of_hooks_are_diagnosed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(*(f"true {n}" for n in range(1500)), timeout=5000))
    code, lines = doctor(capsys, project)
    assert (code, len(lines), lines[-1]) == (1, 1703, "1500 hooks, all will run")


def test_pipes_in_place_of_settings_and_scripts_do_not_block_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".turngate").mkdir()
    os.mkfifo(project / ".turngate" / "settings.json")
    os.mkfifo(project / ".turngate" / "stop")
    code, lines = doctor(capsys, project)
    assert (code, lines) == (
        13,
        [
            ".turngate/settings.json",
            "  error: is not a regular file; none of its hooks run",
            ".turngate/stop",
            "  error: Stop: .turngate/stop is not an executable file, so it never runs",
            "    → make it an executable file, or remove it",
            "0 hooks",
        ],
    )


def test_it_never_exits_with_2(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(project)
    assert main(["doctor", "--project", str(project)]) == 64
    assert capsys.readouterr().err == (
        f"turngate: there is no folder {project}; give the project's folder with --project\n"
    )
