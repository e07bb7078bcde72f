"""`--settings`: further settings from the command line, as a file or as JSON."""

import json
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from turngate.cli.main import main
from turngate.core.hooks.kinds import hook_text
from turngate.trust.load import load_settings

BLOCK = stop_hooks("echo 'go on' >&2; exit 2")


def fire(project: Path, *words: str) -> int:
    return main(["fire", "Stop", "--project", str(project), *words])


@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
def test_json_on_the_command_line_adds_hooks(project: Path, dialect: str) -> None:
    words = ("--dialect", dialect)
    assert fire(project, *words) == 0
    assert fire(project, *words, "--settings", json.dumps(BLOCK)) == 10


def test_a_file_on_the_command_line_adds_hooks(project: Path, tmp_path: Path) -> None:
    file = tmp_path / "more.json"
    file.write_text(json.dumps(BLOCK))
    assert fire(project, "--settings", str(file)) == 10


@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
def test_it_is_stronger_than_the_files(project: Path, dialect: str) -> None:
    write_settings(project, dialect, {**BLOCK, "disableAllHooks": False}, "settings.local.json")
    assert fire(project, "--dialect", dialect, "--settings", '{"disableAllHooks": true}') == 0
    assert fire(project, "--dialect", dialect) == 10


def test_managed_settings_are_stronger(project: Path, managed: Path) -> None:
    managed.mkdir()
    file = managed / "managed-settings.json"
    file.write_text(json.dumps({"disableAllHooks": False, **BLOCK}))
    assert fire(project, "--dialect", "claude", "--settings", '{"disableAllHooks": true}') == 10
    file.write_text('{"disableAllHooks": true}')
    own = json.dumps({"disableAllHooks": False, **BLOCK})
    assert fire(project, "--dialect", "claude", "--settings", own) == 0


def test_check_shows_its_problems_under_its_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", "--project", str(project), "--settings", '{"hooks": {"Stop": 5}}'])
    assert (code, capsys.readouterr().out.splitlines()[:2]) == (
        1,
        ["--settings", "  error: Stop: is 5, expected a list of groups"],
    )


def test_run_uses_them(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"main": ["answer {n}"]}')
    words = ["run", "-p", "go", "--project", str(project), "--model", f"scripted:{script}", "--limit", "1"]
    code = main([*words, "--settings", json.dumps(BLOCK)])
    assert (code, capsys.readouterr().out) == (10, "answer 2\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere.json", "--settings nowhere.json: there is no such file; give a file, or JSON in braces"),
        ("{", "--settings: not JSON at line 1, column 2: expecting property name enclosed in double quotes"),
        ("/", "--settings /: is a folder, expected a file"),
    ],
)
def test_what_cannot_be_read_is_wrong_usage(
    project: Path, capsys: pytest.CaptureFixture[str], given: str, message: str
) -> None:
    assert fire(project, "--settings", given) == 64
    assert message in capsys.readouterr().err


def test_python_programs_can_add_them_too(project: Path) -> None:
    settings = load_settings(str(project), extra=json.dumps(BLOCK))
    assert [(hook_text(rule.hook), rule.source) for rule in settings.rules] == [
        ("echo 'go on' >&2; exit 2", "command line")
    ]
