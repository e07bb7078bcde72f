import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from turngate.cli.main import main


def check(capsys: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, str]:
    return main(["check", "--project", str(project), *words]), capsys.readouterr().out


def test_a_project_without_settings_is_clean_and_says_where_it_looked(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = check(capsys, project)
    assert (code, out.splitlines()) == (
        0,
        [
            f"no settings: looked for .claude, .mux and .turngate in {project} and in your home folder",
            "0 hooks, no problems",
        ],
    )


@pytest.mark.parametrize(
    ("dialect", "file", "readers"),
    [
        ("claude", "turngate", "turngate dialect reads"),
        ("mux", "turngate", "turngate dialect reads"),
        ("claude", "mux", "turngate and mux dialects read"),
        ("mux", "claude", "turngate and claude dialects read"),
    ],
)
def test_settings_that_only_another_dialect_reads_are_named(
    dialect: str, file: str, readers: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, file, stop_hooks("make test"))
    where = f"it reads .{dialect} in {project} and in your home folder"
    there = f"there is .{file}/settings.json, which the {readers}"
    assert check(capsys, project, "--dialect", dialect) == (
        0,
        f"no settings for the {dialect} dialect: {where}; {there}\n0 hooks, no problems\n",
    )


def test_a_clean_project_is_clean(project: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(home, "claude", stop_hooks("make test"))
    script(project / ".mux" / "stop", "#!/bin/sh\n")
    assert check(capsys, project) == (0, "~/.claude/settings.json\n.mux/stop\n2 hooks, no problems\n")


def test_every_problem_is_shown_at_once_with_its_place_and_a_hint(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(home, "mux", '{"hooks": {}, }')
    write_settings(
        project,
        "claude",
        {
            "hooks": {
                "Stop": [
                    {"type": "command", "command": "flat"},
                    {
                        "matcher": "Bash",
                        "hooks": [
                            {"type": "command", "command": "make test", "timeout": 5000},
                            {"type": "command", "command": "$CLAUDE_PROJECT_DIR/.claude/check.sh"},
                            {"type": "command", "command": "[[ -f x ]] && exit 2"},
                            {"type": "command", "command": ".claude/hooks/gone.sh"},
                            {"type": "command"},
                        ],
                    },
                ],
                "PreToolUse": [{"matcher": "(((", "hooks": [{"type": "command", "command": ""}]}],
                "stop": [],
            }
        },
    )
    code, out = check(capsys, project)
    assert (code, out.splitlines()) == (
        1,
        [
            "~/.mux/settings.json",
            "  error: not JSON at line 1, column 13: a comma before the closing bracket is not allowed in JSON; none of its hooks run",
            ".claude/settings.json",
            "  error: Stop[0]: is a hook, expected a group with an inner `hooks` list",
            '    → a group looks like {"hooks": [{"type": "command", "command": "…"}]}',
            "  error: Stop[1].hooks[4].command: is missing, expected a non-empty string",
            "  error: PreToolUse[0].matcher: is '(((', which is not a valid regular expression, so it never matches",
            '  error: PreToolUse[0].hooks[0].command: is "", expected a non-empty string: the hook is left out',
            "  error: Stop[1].hooks[1].command: .claude/check.sh does not exist, so the hook fails at every run",
            "  error: Stop[1].hooks[3].command: .claude/hooks/gone.sh does not exist, so the hook fails at every run",
            "  warning: Stop[1].matcher: is 'Bash', which has no effect on Stop: the hooks run at every Stop",
            "    → remove the matcher",
            "  warning: Stop[1].hooks[0].timeout: is 5000, which is read as seconds",
            "    → write 5 for 5000 milliseconds",
            "  warning: stop: is not a known event, so its hooks never run",
            '    → did you mean "Stop"?',
            "  warning: Stop[1].hooks[2].command: uses bash syntax, but /bin/sh runs it",
            '    → add "shell": "bash", or move it into a script that begins with #!/usr/bin/env bash',
            "  note: Stop[1].hooks[1].command: $CLAUDE_PROJECT_DIR is not quoted: a space in the path would break it",
            '    → write "$CLAUDE_PROJECT_DIR"/… with the double quotes (in JSON: \\"$CLAUDE_PROJECT_DIR\\"/…)',
            "4 hooks, 11 problems",
        ],
    )


def test_as_json_it_is_one_object(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("make test", timeout=0))
    code, out = check(capsys, project, "--json")
    problem: dict[str, Any] = {
        "file": ".turngate/settings.json",
        "message": "is 0, expected a number of seconds above 0: the hook is left out",
        "severity": "error",
        "event": "Stop",
        "index": "[0].hooks[0]",
        "field": "timeout",
        "hint": None,
        "hook": None,
    }
    assert (code, json.loads(out)) == (
        1,
        {
            "project": str(project),
            "files": [".turngate/settings.json"],
            "hooks": 0,
            "problems": [problem],
            "pending": [],
        },
    )


def test_hooks_that_are_not_approved_are_named_with_the_command_that_works_here(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.chdir(tmp_path)
    write_settings(project, "turngate", stop_hooks("true", id="ok"))
    assert main(["check", "--strict", "--project", "project"]) == 0  # as in CI, where nothing is approved
    assert capsys.readouterr().out.splitlines()[1:] == [
        "1 hook, no problems",
        "not approved, so Turngate skips it: ok",
        "→ `turngate hooks approve --all --project project` shows it and asks you",
    ]
    main(["check", "--json"])
    assert json.loads(capsys.readouterr().out)["pending"] == []
    main(["check", "--json", "--project", "project"])
    assert json.loads(capsys.readouterr().out)["pending"] == ["ok"]


def test_notes_alone_are_no_problem(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("make test", colour="red"))
    code, out = check(capsys, project)
    assert (code, out.splitlines()) == (
        0,
        [
            ".turngate/settings.json",
            "  note: Stop[0].hooks[0].colour: is not a key that Turngate knows: ignored",
            "1 hook, no problems",
        ],
    )


def test_with_strict_notes_fail_the_check(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("make test", colour="red"))
    code, out = check(capsys, project, "--strict")
    assert (code, out.splitlines()[-1]) == (1, "1 hook, 1 problem")


def test_the_same_finding_of_several_hooks_is_shown_once(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(*["./gone.sh"] * 5))
    positions = "Stop[0].hooks[0].command, Stop[0].hooks[1].command, Stop[0].hooks[2].command and 2 more"
    assert check(capsys, project) == (
        1,
        (
            ".turngate/settings.json\n"
            f"  error: {positions}: ./gone.sh does not exist, so the hook fails at every run\n"
            "5 hooks, 5 problems\n"
        ),
    )


def test_a_plugin_that_is_not_installed_is_reported(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(home, "turngate", {"turngate": {"plugins": ["other"]}})
    write_settings(project, "turngate", {"turngate": {"plugins": ["slack"]}})
    assert check(capsys, project) == (
        1,
        (
            "~/.turngate/settings.json\n"
            ".turngate/settings.json\n"
            "  error: turngate.plugins: enables the plugin 'slack', which is not installed, so `turngate run` does not start\n"
            "    → install it, or remove the name; installed: none\n"
            "0 hooks, 1 problem\n"
        ),
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"disableAllHooks": True}, "disableAllHooks in .turngate/settings.json switches it off"),
        ({}, "its own `enabled` switches it off"),
    ],
)
def test_hooks_that_are_switched_off_are_noted(
    more: dict[str, Any], why: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "command", "command": "true", **({} if more else {"enabled": False})}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [hook]}]}, **more})
    assert check(capsys, project) == (
        0,
        f".turngate/settings.json\n  note: Stop[0].hooks[0]: {why}\n1 hook, no problems\n",
    )


def test_a_prompt_hook_whose_model_is_not_there_is_noted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = [
        {"type": "prompt", "prompt": "?"},
        {"type": "agent", "prompt": "?", "model": "scripted:judge.json"},
    ]
    settings = {"hooks": {"Stop": [{"hooks": hooks}]}, "turngate": {"judge": "scripted:gone.json"}}
    write_settings(project, "turngate", settings)
    (project / "judge.json").write_text("{}")
    with contextlib.chdir(project):
        assert check(capsys, project) == (
            0,
            (
                ".turngate/settings.json\n"
                "  note: Stop[0].hooks[0]: has no model outside of a session: "
                "the script gone.json cannot be read: No such file or directory\n"
                "2 hooks, no problems\n"
            ),
        )


def test_only_so_many_models_of_hooks_are_opened(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [f"scripted:{name}.json" for name in ("m0", *(f"m{number}" for number in range(23)))]
    hooks = [{"type": "prompt", "prompt": "?", "model": model} for model in models]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    code, out = check(capsys, project)
    assert (code, out.count("has no model outside of a session"), out.splitlines()[-2:]) == (
        0,
        20,
        [
            (
                "  note: Stop[0].hooks[21], Stop[0].hooks[22], Stop[0].hooks[23]: "
                "names a model beyond the first 20, so the model is not checked"
            ),
            "24 hooks, no problems",
        ],
    )


def test_claude_code_would_ignore_a_file_that_we_do_not(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", {**stop_hooks("make test"), "cleanupPeriodDays": "x"})
    assert check(capsys, project)[1].splitlines()[1] == (
        '  warning: cleanupPeriodDays: is "x": Claude Code ignores this whole file, hooks included; Turngate does not'
    )


def test_a_folder_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["check", "--project", "/no/such"]), capsys.readouterr().err) == (
        64,
        "turngate: there is no folder /no/such; give the project's folder with --project\n",
    )


def test_a_position_names_the_hook_that_has_an_id(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hooks = [
        {"type": "command", "command": "./gone.sh", "id": "lint"},
        {"type": "command", "command": "true", "id": "tests", "timeout": 30000},
        {"type": "command", "command": "true", "id": "off", "enabled": False},
        {"type": "command", "id": "empty"},
    ]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    assert check(capsys, project) == (
        1,
        """.turngate/settings.json
  error: Stop[0].hooks[3].command (empty): is missing, expected a non-empty string
  error: Stop[0].hooks[0].command (lint): ./gone.sh does not exist, so the hook fails at every run
  warning: Stop[0].hooks[1].timeout (tests): is 30000, which is read as seconds
    → write 30 for 30000 milliseconds
  note: Stop[0].hooks[2] (off): its own `enabled` switches it off
3 hooks, 3 problems
""",
    )


def test_the_findings_in_json_name_the_hook(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("./gone.sh", id="lint"))
    _, out = check(capsys, project, "--json")
    assert [problem["hook"] for problem in json.loads(out)["problems"]] == ["lint"]
