"""Files that look like settings but are not read are named, with the file that is read."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from turngate.check.misplaced_files import find_misplaced_files
from turngate.cli.main import main
from turngate.core.settings import Problem, Settings
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers

HOOKS = json.dumps(stop_hooks("exit 2"))
YAML = "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: exit 2\n"
TOML = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\n'


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def settings_with_misplaced_files(project: Path, dialect: str = "turngate", **options: Any) -> Settings:
    """Return the settings as `turngate check` reads them."""
    layers = load_layers(str(project), dialect=dialect, files=LOCAL, **options)
    return layers.merge().with_rules(problems=find_misplaced_files(layers))


def problems(project: Path, **options: Any) -> tuple[Problem, ...]:
    return settings_with_misplaced_files(project, **options).problems


def lost(file: str, expected: str, severity: Any = "error", how: str = "move its hooks to") -> Problem:
    message = f"is not read, so its hooks never run; expected {expected}"
    return Problem(file=file, message=message, severity=severity, hint=f"{how} {expected}")


# File, content, the file that was expected, what to do.
MISPLACED: list[tuple[str, str, str, str]] = [
    (".turngate/hooks.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (
        ".turngate/hooks.json",
        json.dumps(stop_hooks("x")["hooks"]),
        ".turngate/settings.json",
        "move its hooks to",
    ),
    (".turngate/hooks.json", '{ broken, but with "Stop": [', ".turngate/settings.json", "move its hooks to"),
    (".turngate/setting.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/Settings.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/setings.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/settings.yaml", YAML, ".turngate/settings.json", "write its hooks as JSON to"),
    (".turngate/settings.yml", YAML, ".turngate/settings.json", "write its hooks as JSON to"),
    (".turngate/settings.toml", TOML, ".turngate/settings.json", "write its hooks as JSON to"),
    (".turngate/settings.jsonc", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/settings.local.yaml", YAML, ".turngate/settings.local.json", "write its hooks as JSON to"),
    (".turngate/turngate.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".claude/setting.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".claude/hooks.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".claude/hook.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".claude/setting.local.json", HOOKS, ".claude/settings.local.json", "move its hooks to"),
    (".mux/hooks.json", HOOKS, ".mux/settings.json", "move its hooks to"),
    (".turngate/config.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/config.local.json", HOOKS, ".turngate/settings.local.json", "move its hooks to"),
    (".turngate/config.yaml", YAML, ".turngate/settings.json", "write its hooks as JSON to"),
    (".turngate/settings.local.jsn", HOOKS, ".turngate/settings.local.json", "move its hooks to"),
    (".turngate/settings.jsno", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/settings-local.json", HOOKS, ".turngate/settings.local.json", "move its hooks to"),
    (".claude/settings.josn", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".claude/settings", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".claude/settings.local", HOOKS, ".claude/settings.local.json", "move its hooks to"),
    (".mux/settings.txt", HOOKS, ".mux/settings.json", "move its hooks to"),
    (".claude/hooks/hooks.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".turngate/hooks/hooks.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    ("turngate.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    ("turngate.yaml", YAML, ".turngate/settings.json", "write its hooks as JSON to"),
    ("settings.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    ("settings.local.json", HOOKS, ".turngate/settings.local.json", "move its hooks to"),
    ("hooks.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    ("turngate/settings.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    ("claude/settings.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".turngate", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/settings.json.txt", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngate/hooks/settings.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".claude/hooks/settings.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".claude/config.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".turngte/settings.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".turngates/settings.local.json", HOOKS, ".turngate/settings.local.json", "move its hooks to"),
    (".Turngate/settings.json", HOOKS, ".turngate/settings.json", "move its hooks to"),
    (".cluade/settings.json", HOOKS, ".claude/settings.json", "move its hooks to"),
    (".MUX/settings.json", HOOKS, ".mux/settings.json", "move its hooks to"),
]
IDS = [f"{file} {number}" for number, (file, *_) in enumerate(MISPLACED)]


@pytest.mark.parametrize(("file", "content", "expected", "how"), MISPLACED, ids=IDS)
def test_hooks_in_a_file_that_is_not_read_are_an_error(
    project: Path, file: str, content: str, expected: str, how: str
) -> None:
    write(project, file, content)
    assert problems(project) == (lost(file, expected, how=how),)


def test_a_file_in_the_users_folder_is_named_too(project: Path, home: Path) -> None:
    write(home, ".claude/hooks.json", HOOKS)
    assert problems(project) == (lost("~/.claude/hooks.json", "~/.claude/settings.json"),)


@pytest.mark.parametrize("file", [".claude/hooks.json", "settings.json"])
def test_beside_settings_that_are_read_it_is_a_warning(project: Path, file: str) -> None:
    """The file may belong to another program."""
    write_settings(project, "claude", stop_hooks("true"))
    write(project, file, HOOKS)
    expected = ".claude/settings.json" if file.startswith(".claude") else ".turngate/settings.json"
    assert problems(project) == (lost(file, expected, "warning"),)


@pytest.mark.parametrize("dialect", ["mux", "claude"])
def test_only_the_families_of_the_dialect_are_looked_at(project: Path, dialect: str) -> None:
    write(project, ".turngate/hooks.json", HOOKS)
    assert problems(project, dialect=dialect) == ()


def test_in_the_claude_dialect_the_claude_file_is_expected(project: Path) -> None:
    write(project, "hooks.json", HOOKS)
    assert problems(project, dialect="claude") == (lost("hooks.json", ".claude/settings.json"),)


@pytest.mark.parametrize(
    "name", [".turngate/settings.yaml", ".mux/setting.json", ".turngate/config.json", "turngate.toml"]
)
def test_a_file_without_hooks_is_a_warning(project: Path, name: str) -> None:
    write(project, name, "limit: 5")
    family = "mux" if "mux" in name else "turngate"
    expected = f".{family}/settings.json"
    message = f"is not read; expected {expected}"
    assert problems(project) == (Problem(file=name, message=message, severity="warning"),)


FINE: list[str] = [
    ".claude/settings.json.bak",
    ".claude/hooks/stop.sh",
    ".claude/commands/settings.md",
    ".turngate/agents/hooks.md",
    ".turngate/schema.json",
    ".claude/setup.json",
    ".claude/config.json",
    ".mux/config.json",
    ".turngate/settings/x.json",
    ".claude/hooks/hooks.json",
    ".claude/settings.md",
    ".claude/hooks.json",
    "settings.json",
    "hooks.json",
    "hooks/hooks.json",
    ".claude-plugin/plugin.json",
    ".claude-plugin/marketplace.json",
]


@pytest.mark.parametrize("name", FINE)
def test_other_files_are_not_mentioned(project: Path, name: str) -> None:
    write(project, name, '{"editor.tabSize": 2, "onStop": 1}')
    assert problems(project) == ()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 3_000_000, b""])
def test_a_file_that_cannot_be_read_has_no_hooks(project: Path, content: bytes) -> None:
    write(project, "settings.json", "").write_bytes(content)
    assert problems(project) == ()


def test_a_pipe_does_not_block(project: Path) -> None:
    import os  # noqa: PLC0415 - only here

    (project / ".turngate").mkdir()
    os.mkfifo(project / ".turngate" / "hooks.json")
    assert [problem.severity for problem in problems(project)] == ["warning"]


def test_a_file_that_the_command_line_names_is_read(project: Path) -> None:
    path = write(project, "settings.json", HOOKS)
    settings = settings_with_misplaced_files(project, extra=str(path))
    assert (settings.problems, len(settings.rules)) == ((), 1)


# Scripts


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        (".turngate/stop.sh", "Stop", ".turngate/stop"),
        (".turngate/stop.py", "Stop", ".turngate/stop"),
        (".mux/Stop", "Stop", ".mux/stop"),
        (".mux/subagent_stop.sh", "SubagentStop", ".mux/subagent_stop"),
        (".turngate/subagent-stop", "SubagentStop", ".turngate/subagent_stop"),
        (".turngate/SubagentStop", "SubagentStop", ".turngate/subagent_stop"),
    ],
)
def test_a_script_with_another_name_is_named(project: Path, name: str, event: str, expected: str) -> None:
    script(project / name, "#!/bin/sh\nexit 2\n")
    message = f"is not run, because a script hook must be named {expected}"
    hint = f"mv {name} {expected}"
    problem = Problem(file=name, event=event, message=message, severity="error", hint=hint)
    assert problems(project) == (problem,)


@pytest.mark.parametrize("command", [".turngate/stop.sh", 'sh "$TURNGATE_PROJECT_DIR"/.turngate/stop.sh'])
def test_a_script_that_a_hook_runs_is_fine(project: Path, command: str) -> None:
    script(project / ".turngate/stop.sh", "#!/bin/sh\nexit 2\n")
    write_settings(project, "turngate", stop_hooks(command))
    assert problems(project) == ()


# Plugins


PLUGIN_HINT = "to run them, add --plugin-dir {}; hooks of the project belong in .turngate/settings.json"


def plugin_problem(project: Path, file: str, severity: Any = "warning") -> Problem:
    message = "belongs to a Claude Code plugin, whose hooks do not run by themselves"
    return Problem(file=file, message=message, severity=severity, hint=PLUGIN_HINT.format(project))


PLUGINS = {
    "hooks/hooks.json": HOOKS,
    ".claude-plugin/plugin.json": json.dumps({"name": "p", "hooks": stop_hooks("exit 2")["hooks"]}),
}


@pytest.mark.parametrize(("file", "content"), PLUGINS.items(), ids=PLUGINS)
def test_a_plugin_in_place_of_settings_is_named(project: Path, file: str, content: str) -> None:
    write(project, file, content)
    assert problems(project) == (plugin_problem(project, file, "error"),)


@pytest.mark.parametrize(
    "folder", [".tox", ".max", ".mix", ".cloud", ".clouds", ".turn", ".gate", "turngte", ".claude.bak"]
)
def test_a_folder_of_another_program_is_not_a_misspelt_one(project: Path, folder: str) -> None:
    write(project, f"{folder}/settings.json", HOOKS)
    assert problems(project) == ()


def test_a_link_to_the_settings_folder_is_not_a_misspelt_one(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    (project / ".Turngate").symlink_to(".turngate")
    assert problems(project) == ()


def test_each_plugin_in_the_project_is_named_with_its_folder(project: Path) -> None:
    for name in ("one", "two"):
        write(project, f"plugins/{name}/hooks/hooks.json", HOOKS)
    expected = plugin_problem(project / "plugins/two", "plugins/two/hooks/hooks.json")
    settings = settings_with_misplaced_files(project, plugin_dirs=[str(project / "plugins/one")])
    assert (settings.problems, len(settings.rules)) == ((expected,), 1)


@pytest.mark.parametrize(("folder", "file"), [("hooks", "hooks.json"), (".claude-plugin", "plugin.json")])
def test_a_folder_inside_of_a_plugin_is_not_the_plugin(project: Path, folder: str, file: str) -> None:
    write(project, f"gate/{folder}/{file}", HOOKS)
    settings = settings_with_misplaced_files(project, plugin_dirs=[str(project / "gate" / folder)])
    message = "holds neither hooks/hooks.json nor .claude-plugin/plugin.json, so it is not a plugin"
    hint = f"the folder above it is a plugin: name {project}/gate"
    assert settings.problems == (Problem(file=f"gate/{folder}", message=message, hint=hint),)


def test_a_plugin_beside_hooks_of_the_project_is_a_note(project: Path) -> None:
    write_settings(project, "claude", stop_hooks("true"))
    write(project, "hooks/hooks.json", HOOKS)
    assert problems(project) == (plugin_problem(project, "hooks/hooks.json", "note"),)


def test_the_plugins_of_a_project_with_hooks_are_not_mentioned(project: Path) -> None:
    write_settings(project, "claude", stop_hooks("true"))
    write(project, "plugins/one/hooks/hooks.json", HOOKS)
    assert problems(project) == ()


def test_a_plugin_with_both_files_is_named_once(project: Path) -> None:
    for file, content in PLUGINS.items():
        write(project, file, content)
    assert problems(project) == (plugin_problem(project, "hooks/hooks.json", "error"),)


def test_a_plugin_that_is_loaded_is_not_mentioned(project: Path) -> None:
    write(project, "hooks/hooks.json", HOOKS)
    settings = settings_with_misplaced_files(project, plugin_dirs=[str(project)])
    assert (settings.problems, len(settings.rules)) == ((), 1)


def test_the_hooks_of_a_plugin_in_the_folder_of_a_family_are_read(project: Path) -> None:
    write(project, ".claude/hooks/hooks.json", HOOKS)
    settings = settings_with_misplaced_files(project, plugin_dirs=[str(project / ".claude")])
    assert (settings.problems, len(settings.rules)) == ((), 1)


# The commands


def test_check_says_what_is_there_and_what_was_expected_and_a_stop_does_not_look(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(project, ".turngate/hooks.json", HOOKS)
    message = "is not read, so its hooks never run; expected .turngate/settings.json"
    assert (main(["check", "--project", str(project)]), capfd.readouterr().out) == (
        1,
        f".turngate/hooks.json\n  error: {message}\n    → move its hooks to .turngate/settings.json\n0 hooks, 1 problem\n",
    )
    assert main(["doctor", "--project", str(project)]) == 13
    assert message in capfd.readouterr().out
    assert (main(["fire", "Stop", "--strict", "--project", str(project)]), capfd.readouterr().err) == (0, "")
