"""Claude Code plugins: their hooks run with `--plugin-dir` and `pluginDirs`, each with the variables of its plugin."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.strategies import settings_values
from turngate.cli.main import main
from turngate.core.settings import Settings
from turngate.trust.load import load_settings

RECORD = 'printf "%s\\n" "$CLAUDE_PLUGIN_ROOT" "$CLAUDE_PLUGIN_DATA" "$PWD" > record'


def write_files(root: Path, files: dict[str, Any]) -> Path:
    """Write text as it is and any other value as JSON; None is not written."""
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if content is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return root


def plugin(root: Path, hooks: Any = None, manifest: Any = None, name: str = "hooks/hooks.json") -> Path:
    """Write a plugin with `hooks/hooks.json` and `.claude-plugin/plugin.json`."""
    return write_files(root, {name: hooks, ".claude-plugin/plugin.json": manifest})


def fire(
    capfd: pytest.CaptureFixture[str], project: Path, *words: str, event: str = "Stop"
) -> dict[str, Any]:
    main(["fire", event, "--json", "--project", str(project), *words])
    shown = json.loads(capfd.readouterr().out)
    assert isinstance(shown, dict)
    return shown


def summary(shown: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [(run["hook"]["command"], run["source"], run["file"], run["outcome"]) for run in shown["runs"]]


def check(capfd: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, list[str]]:
    code = main(["check", "--project", str(project), *words])
    return code, capfd.readouterr().out.splitlines()


# Where the hooks are


INLINE = stop_hooks("true")["hooks"]
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "hooks/hooks.json": ({"hooks": {"description": "a gate", **stop_hooks("true")}}, "hooks/hooks.json"),
    "hooks/hooks.json, bare": ({"hooks": INLINE}, "hooks/hooks.json"),
    "inline": ({"manifest": {"name": "p", "hooks": INLINE}}, ".claude-plugin/plugin.json"),
    "inline, with the key hooks": (
        {"manifest": {"name": "p", "hooks": {"hooks": INLINE}}},
        ".claude-plugin/plugin.json",
    ),
    "a path": (
        {"manifest": {"hooks": "./extra/stop.json"}, "hooks": stop_hooks("true"), "name": "extra/stop.json"},
        "extra/stop.json",
    ),
    "a list of paths": (
        {"manifest": {"hooks": ["./a.json"]}, "hooks": stop_hooks("true"), "name": "a.json"},
        "a.json",
    ),
    "a list with inline hooks": ({"manifest": {"hooks": [INLINE]}}, ".claude-plugin/plugin.json"),
    "a path to the file that is read anyway": (
        {"manifest": {"hooks": "./hooks/hooks.json"}, "hooks": stop_hooks("true")},
        "hooks/hooks.json",
    ),
}


@pytest.mark.parametrize(("files", "where"), FORMS.values(), ids=FORMS)
def test_the_hooks_of_a_plugin_are_read_from(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], files: dict[str, Any], where: str
) -> None:
    root = plugin(tmp_path / "gate", **files)
    assert check(capfd, project, "--plugin-dir", str(root)) == (0, [f"{root}/{where}", "1 hook, no problems"])
    assert summary(fire(capfd, project, "--plugin-dir", str(root))) == [
        ("true", "plugin", f"{root}/{where}", "allow")
    ]


def test_the_files_of_a_manifest_are_added_to_hooks_json(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = plugin(tmp_path / "gate", stop_hooks("echo one"), {"hooks": stop_hooks("echo two")["hooks"]})
    assert [run[0] for run in summary(fire(capfd, project, "--plugin-dir", str(root)))] == [
        "echo one",
        "echo two",
    ]


def test_several_plugins_and_the_project_add_up(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", stop_hooks("echo project"))
    one = plugin(tmp_path / "one", stop_hooks("echo one"))
    two = plugin(tmp_path / "two", stop_hooks("echo two"))
    words = ("--plugin-dir", str(one), "--plugin-dir", str(two))
    assert sorted(run[0] for run in summary(fire(capfd, project, *words))) == [
        "echo one",
        "echo project",
        "echo two",
    ]


def test_a_plugins_copy_of_a_command_runs_besides_the_projects(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Claude Code (measured): "A plugin's copy runs besides"."""
    write_settings(project, "claude", stop_hooks("true"))
    root = plugin(tmp_path / "gate", stop_hooks("true"))
    shown = fire(capfd, project, "--plugin-dir", str(root), "--dialect", "claude")
    assert sorted(run[1] for run in summary(shown)) == ["plugin", "project"]


@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
def test_every_dialect_reads_plugins(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], dialect: str
) -> None:
    root = plugin(tmp_path / "gate", stop_hooks("echo no >&2; exit 2"))
    assert fire(capfd, project, "--plugin-dir", str(root), "--dialect", dialect)["verdict"] == "continue"


@pytest.mark.parametrize(
    ("level", "folder", "shown"),
    [
        ("project", "plugins/gate", "plugins/gate"),
        ("user", "plugins/gate", "~/plugins/gate"),
        ("user", "~/plugins/gate", "~/plugins/gate"),
        ("project", "~/plugins/gate", "~/plugins/gate"),
        ("project", ".", "."),
    ],
)
def test_settings_name_plugins_relative_to_their_own_folder(
    project: Path, home: Path, capfd: pytest.CaptureFixture[str], level: str, folder: str, shown: str
) -> None:
    base = home if shown.startswith("~") else project
    plugin(base / shown.removeprefix("~/"), stop_hooks("true"))
    write_settings(home if level == "user" else project, "turngate", {"turngate": {"pluginDirs": [folder]}})
    where = f"{shown}/hooks/hooks.json".removeprefix("./")
    assert summary(fire(capfd, project)) == [("true", "plugin", where, "allow")]


def test_the_plugins_of_all_settings_files_add_up_and_each_loads_once(
    project: Path, home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin(home / "one", stop_hooks("echo one"))
    plugin(project / "two", stop_hooks("echo two"))
    write_settings(home, "turngate", {"turngate": {"pluginDirs": ["one"]}})
    write_settings(project, "turngate", {"turngate": {"pluginDirs": ["two", "two/", "~/one"]}})
    words = ("--plugin-dir", str(project / "two"))
    assert [run[0] for run in summary(fire(capfd, project, *words))] == ["echo one", "echo two"]


def test_run_runs_the_hooks_of_a_plugin(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = plugin(tmp_path / "gate", stop_hooks("echo ran > ran"))
    (tmp_path / "script.json").write_text('{"main": ["done"]}')
    words = ["--project", str(project), "--model", f"scripted:{tmp_path}/script.json"]
    assert main(["run", "-p", "go", *words, "--plugin-dir", str(root)]) == 0
    assert (project / "ran").read_text() == "ran\n"


def test_disable_all_hooks_of_claude_switches_plugins_off(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", {"disableAllHooks": True})
    root = plugin(tmp_path / "gate", stop_hooks("true"))
    assert [run[3] for run in summary(fire(capfd, project, "--plugin-dir", str(root)))] == ["skipped"]


# Variables and paths


def private(path: Path) -> bool:
    return path.is_dir() and stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_hook_of_a_plugin_has_its_folder_and_a_private_folder_for_data(
    project: Path, tmp_path: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = plugin(tmp_path / "gate", stop_hooks(RECORD), {"name": "my-gate"})
    fire(capfd, project, "--plugin-dir", str(root))
    own_root, data, cwd = (project / "record").read_text().splitlines()
    assert (own_root, cwd) == (str(root), str(project))
    assert (Path(data).parent, Path(data).name.startswith("my-gate-")) == (state / "plugins", True)
    assert private(Path(data))


def test_plugins_of_the_same_name_have_different_data(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = 'echo "$CLAUDE_PLUGIN_DATA" >> record'
    for folder in ("one", "two"):
        root = plugin(tmp_path / folder, stop_hooks(command), {"name": "same"})
        fire(capfd, project, "--plugin-dir", str(root))
    assert len(set((project / "record").read_text().splitlines())) == 2


def test_a_name_that_is_a_path_does_not_leave_the_state_folder(
    project: Path, tmp_path: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = plugin(tmp_path / "gate", stop_hooks(RECORD), {"name": "../../../evil"})
    fire(capfd, project, "--plugin-dir", str(root))
    data = Path((project / "record").read_text().splitlines()[1])
    assert data.parent == state / "plugins"


def test_check_makes_no_folder_for_data(
    project: Path, tmp_path: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = plugin(tmp_path / "gate", stop_hooks(RECORD))
    check(capfd, project, "--plugin-dir", str(root))
    assert not state.exists()


# How a command names its script, and whether it works in a folder with a blank in its name, as in Claude Code.
COMMANDS: dict[str, dict[str, Any]] = {
    "double quotes": {"command": '"${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh" a'},
    "quotes around the variable": {"command": '"${CLAUDE_PLUGIN_ROOT}"/hooks/stop.sh a'},
    "no braces": {"command": '"$CLAUDE_PLUGIN_ROOT"/hooks/stop.sh a'},
    "an interpreter": {"command": 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh" a'},
    "args": {"command": "${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh", "args": ["a"]},
    "args with the variable": {
        "command": "sh",
        "args": ["${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh", "${CLAUDE_PLUGIN_DATA}"],
    },
}
PLAIN_PATH_ONLY: dict[str, dict[str, Any]] = {
    "no quotes": {"command": "${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh a"},
    "single quotes": {"command": "'${CLAUDE_PLUGIN_ROOT}/hooks/stop.sh' a"},
}


def entry(fields: dict[str, Any]) -> dict[str, Any]:
    return {"hooks": {"Stop": [{"hooks": [{"type": "command", **fields}]}]}}


@pytest.mark.parametrize("fields", (COMMANDS | PLAIN_PATH_ONLY).values(), ids=COMMANDS | PLAIN_PATH_ONLY)
def test_a_command_finds_its_script(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], fields: dict[str, Any]
) -> None:
    root = plugin(tmp_path / "gate", entry(fields))
    script(root / "hooks/stop.sh", "#!/bin/sh\necho ran >> ran\n")
    shown = fire(capfd, project, "--plugin-dir", str(root))
    assert ((project / "ran").read_text(), shown["runs"][0]["hook"]["command"]) == (
        "ran\n",
        fields["command"],
    )


@pytest.mark.parametrize("name", ["with blank", "it's", "a;touch evil;b", "$(touch evil)", "ü", "a\nb"])
@pytest.mark.parametrize("fields", COMMANDS.values(), ids=COMMANDS)
def test_no_folder_name_breaks_a_command_or_is_executed(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, fields: dict[str, Any]
) -> None:
    root = plugin(tmp_path / name, entry(fields))
    script(root / "hooks/stop.sh", "#!/bin/sh\necho ran >> ran\n")
    shown = fire(capfd, project, "--plugin-dir", str(root))
    assert ([run["outcome"] for run in shown["runs"]], (project / "ran").read_text()) == (["allow"], "ran\n")
    assert not (project / "evil").exists()


@pytest.mark.parametrize("fields", PLAIN_PATH_ONLY.values(), ids=PLAIN_PATH_ONLY)
def test_without_double_quotes_a_blank_in_the_path_is_a_failure_that_is_named(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], fields: dict[str, Any]
) -> None:
    root = plugin(tmp_path / "with blank", entry(fields))
    script(root / "hooks/stop.sh", "#!/bin/sh\necho ran >> ran\n")
    shown = fire(capfd, project, "--plugin-dir", str(root))
    assert [run["outcome"] for run in shown["unenforced"]] == ["failed"]
    assert not (project / "ran").exists()


# A variable of plugins outside of a plugin


VARIABLES = ["${CLAUDE_PLUGIN_ROOT}/stop.sh", 'sh "${CLAUDE_PLUGIN_DATA}/stop.sh"']
OUTSIDE = "its command uses ${{{0}}}, which only hooks of a plugin have; load the plugin with --plugin-dir or `pluginDirs`"


@pytest.mark.parametrize("dialect", ["turngate", "mux", "claude"])
@pytest.mark.parametrize("command", VARIABLES)
def test_outside_of_a_plugin_such_a_hook_does_not_run_and_is_not_enforced(
    project: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
    command: str,
) -> None:
    monkeypatch.setenv("CLAUDE_PLUGIN_ROOT", str(project))  # of the plugin whose hook started turngate
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(project))
    script(project / "stop.sh", "#!/bin/sh\necho ran > ran\n")
    write_settings(project, "mux" if dialect == "mux" else "claude", stop_hooks(command))
    shown = fire(capfd, project, "--dialect", dialect)
    variable = "CLAUDE_PLUGIN_ROOT" if "ROOT" in command else "CLAUDE_PLUGIN_DATA"
    assert [(run["outcome"], run["why"]) for run in shown["unenforced"]] == [
        ("failed", OUTSIDE.format(variable))
    ]
    assert not (project / "ran").exists()


def test_with_strict_such_a_hook_is_13(project: Path) -> None:
    write_settings(project, "claude", stop_hooks(VARIABLES[0]))
    assert main(["fire", "Stop", "--strict", "--project", str(project)]) == 13


def test_a_blocking_hook_that_needs_a_plugin_blocks(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(VARIABLES[0], blocking=True))
    assert main(["fire", "Stop", "--project", str(project)]) == 10


@pytest.mark.parametrize("where", ["env", "hook"])
def test_a_variable_that_the_settings_define_is_used(project: Path, where: str) -> None:
    script(project / "stop.sh", "#!/bin/sh\necho ran > ran\n")
    variables: dict[str, Any] = {"env": {"CLAUDE_PLUGIN_ROOT": str(project)}}
    hooks = stop_hooks(VARIABLES[0], **(variables if where == "hook" else {}))
    write_settings(project, "turngate", {**hooks, **(variables if where == "env" else {})})
    assert main(["fire", "Stop", "--strict", "--project", str(project)]) == 0
    assert (project / "ran").exists()


@pytest.mark.parametrize(
    ("command", "variable"),
    [
        ('"${CLAUDE_PLUGIN_ROOT}"/stop.sh', "CLAUDE_PLUGIN_ROOT"),
        ('"$CLAUDE_PLUGIN_ROOT"/stop.sh', "CLAUDE_PLUGIN_ROOT"),
        ('ls "$CLAUDE_PLUGIN_DATA"', "CLAUDE_PLUGIN_DATA"),
    ],
)
def test_check_names_a_variable_of_plugins_outside_of_a_plugin(
    project: Path, capfd: pytest.CaptureFixture[str], command: str, variable: str
) -> None:
    write_settings(project, "claude", stop_hooks(command))
    code, lines = check(capfd, project)
    uses = f"uses ${variable}, which only hooks of a plugin have, so the hook fails at every run"
    assert (code, lines[:3]) == (
        1,
        [
            ".claude/settings.json",
            f"  error: Stop[0].hooks[0].command: {uses}",
            "    → load the plugin with --plugin-dir or `pluginDirs`, or write the path of the script",
        ],
    )


@pytest.mark.parametrize("command", ['ls "${CLAUDE_PLUGIN_ROOT:-.}"', 'echo "${CLAUDE_PLUGIN_ROOT+set}"'])
def test_check_accepts_a_variable_with_a_default(
    project: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    write_settings(project, "claude", stop_hooks(command))
    assert check(capfd, project)[0] == 0


# Folders that are not plugins


NOT_A_PLUGIN = "  error: holds neither hooks/hooks.json nor .claude-plugin/plugin.json, so it is not a plugin"
BROKEN: dict[str, tuple[dict[str, str], list[str]]] = {
    "an empty folder": (
        {},
        [NOT_A_PLUGIN],
    ),
    "hooks.json at its top": (
        {"hooks.json": "{}"},
        [
            NOT_A_PLUGIN,
            "    → move hooks.json to hooks/hooks.json",
        ],
    ),
    "plugin.json at its top": (
        {"plugin.json": "{}"},
        [
            NOT_A_PLUGIN,
            "    → move plugin.json to .claude-plugin/plugin.json",
        ],
    ),
    "a marketplace": (
        {".claude-plugin/marketplace.json": "{}"},
        [
            NOT_A_PLUGIN,
            "    → it is a marketplace: name the folder of one of its plugins",
        ],
    ),
    "a folder of plugins": (
        {"gate/hooks/hooks.json": "{}"},
        [
            NOT_A_PLUGIN,
            "    → its subfolder gate is a plugin: name that one",
        ],
    ),
}


@pytest.mark.parametrize(("files", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_folder_that_is_not_a_plugin_is_reported_in_one_sentence(
    project: Path, capfd: pytest.CaptureFixture[str], files: dict[str, str], expected: list[str]
) -> None:
    words = ("--plugin-dir", str(write_files(project / "gate", files)))
    assert check(capfd, project, *words) == (1, ["gate", *expected, "0 hooks, 1 problem"])


BROKEN_FILES: dict[str, tuple[dict[str, str], list[str]]] = {
    "hooks.json is not JSON": (
        {"hooks/hooks.json": "x"},
        [
            "gate/hooks/hooks.json",
            "  error: not JSON at line 1, column 1: expecting value; none of its hooks run",
        ],
    ),
    "hooks.json is a list": (
        {"hooks/hooks.json": "[]"},
        [
            "gate/hooks/hooks.json",
            "  error: the file holds a list, expected an object",
            '    → begin with {"hooks": {…}}',
        ],
    ),
    "hooks.json without hooks": (
        {"hooks/hooks.json": '{"description": "x"}'},
        ["gate/hooks/hooks.json", '  warning: has no "hooks", so it has no effect'],
    ),
    "the manifest is not JSON": (
        {".claude-plugin/plugin.json": "x"},
        [
            "gate/.claude-plugin/plugin.json",
            "  error: not JSON at line 1, column 1: expecting value; none of its hooks run",
        ],
    ),
    "the manifest is a list": (
        {".claude-plugin/plugin.json": "[]"},
        ["gate/.claude-plugin/plugin.json", "  error: the file holds a list, expected an object"],
    ),
    "hooks of the manifest are a number": (
        {".claude-plugin/plugin.json": '{"hooks": 5}'},
        [
            "gate/.claude-plugin/plugin.json",
            "  error: hooks: is 5, expected an object, a path in the plugin, or a list of them",
        ],
    ),
    "a path that leads nowhere": (
        {".claude-plugin/plugin.json": '{"hooks": "./no.json"}'},
        [
            "gate/.claude-plugin/plugin.json",
            "  error: hooks: ./no.json does not exist, so its hooks never run",
        ],
    ),
    "a path that leaves the plugin": (
        {".claude-plugin/plugin.json": '{"hooks": "../../../etc/hosts"}'},
        [
            "gate/.claude-plugin/plugin.json",
            "  error: hooks: ../../../etc/hosts leads outside of the plugin, so its hooks never run",
        ],
    ),
}


@pytest.mark.parametrize(("files", "expected"), BROKEN_FILES.values(), ids=BROKEN_FILES)
def test_a_broken_file_of_a_plugin_is_reported_in_one_sentence(
    project: Path, capfd: pytest.CaptureFixture[str], files: dict[str, str], expected: list[str]
) -> None:
    words = ("--plugin-dir", str(write_files(project / "gate", files)))
    assert check(capfd, project, *words) == (1, [*expected, "0 hooks, 1 problem"])


def test_a_broken_manifest_does_not_affect_hooks_json(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = plugin(tmp_path / "gate", stop_hooks("true"), "not JSON")
    shown = fire(capfd, project, "--plugin-dir", str(root))
    assert [run["outcome"] for run in shown["runs"]] == ["allow"]
    assert shown["warnings"] == [
        f"{root}/.claude-plugin/plugin.json: not JSON at line 1, column 1: expecting value; none of its hooks run"
    ]


def test_a_link_out_of_the_plugin_is_not_followed(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside.json").write_text(json.dumps(stop_hooks("true")))
    root = plugin(tmp_path / "gate", manifest={"hooks": "./link.json"})
    (root / "link.json").symlink_to(tmp_path / "outside.json")
    shown = fire(capfd, project, "--plugin-dir", str(root))
    assert (shown["runs"], len(shown["warnings"])) == ([], 1)


def test_a_plugin_can_set_hooks_and_nothing_else(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It must not switch off the project's hooks, or change their environment or limits."""
    write_settings(project, "claude", stop_hooks('test -z "$A" || exit 2'))
    root = plugin(
        tmp_path / "gate",
        {**stop_hooks("true"), "disableAllHooks": True, "env": {"A": "1"}, "turngate": {"mode": "observe"}},
    )
    shown = fire(capfd, project, "--plugin-dir", str(root))
    assert sorted(run[3] for run in summary(shown)) == ["allow", "allow"]


def test_a_folder_of_the_command_line_that_does_not_exist_is_wrong_usage(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for command in (["fire", "Stop"], ["check"], ["run", "-p", "x", "--model", "scripted:x"]):
        code = main([*command, "--project", str(project), "--plugin-dir", "/no/such"])
        assert (code, capfd.readouterr().err) == (
            64,
            "turngate: --plugin-dir /no/such: there is no such folder; give the folder of a plugin\n",
        )


def test_a_folder_of_the_settings_that_does_not_exist_is_reported_with_its_file(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", {"turngate": {"pluginDirs": ["no/such"]}})
    assert check(capfd, project) == (
        1,
        [
            ".turngate/settings.json",
            "  error: turngate.pluginDirs: no/such does not exist, expected the folder of a plugin",
            "0 hooks, 1 problem",
        ],
    )


def test_a_folder_with_agent_types_alone_is_fine(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = project / "gate" / "agents" / "coder" / "AGENT.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: coder\n---\n")
    assert check(capfd, project, "--plugin-dir", str(project / "gate"))[0] == 0


def test_a_plugin_that_cannot_store_data_still_runs(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], state: Path
) -> None:
    state.mkdir()
    (state / "plugins").write_text("a file in place of the folder")
    root = plugin(tmp_path / "gate", stop_hooks("true"), {"name": "g"})
    shown = fire(capfd, project, "--plugin-dir", str(root))
    [run], [warning] = shown["runs"], shown["warnings"]
    assert run["outcome"] == "allow"
    assert "the folder for its data could not be made: " in warning
    assert os.fspath(state / "plugins") in warning


# Installed plugins


@pytest.mark.parametrize(("enabled", "noted"), [(True, True), (["1.2"], True), (False, False)])
def test_check_notes_that_hooks_of_installed_plugins_do_not_run(
    project: Path, capfd: pytest.CaptureFixture[str], enabled: Any, noted: bool
) -> None:
    write_settings(project, "claude", {"enabledPlugins": {"gate@team": enabled}})
    message = "  note: enabledPlugins: hooks of installed plugins do not run here"
    hint = "    → name their folders with --plugin-dir or `pluginDirs`"
    assert check(capfd, project) == (
        0,
        [".claude/settings.json", *([message, hint] if noted else []), "0 hooks, no problems"],
    )


# Any content


NAMES = st.text(max_size=6) | st.sampled_from(["a\0b", "\ud800", "x" * 5000, "~", "~/", "/", "..", ""])


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hooks=settings_values(), manifest=settings_values(), names=st.lists(NAMES, max_size=3))
def test_no_content_of_a_plugin_or_of_plugin_dirs_raises(
    tmp_path: Path, hooks: Any, manifest: Any, names: list[str]
) -> None:
    root = plugin(tmp_path / "gate", json.dumps(hooks), json.dumps(manifest))
    project = tmp_path / "p"
    write_settings(project, "turngate", {"turngate": {"pluginDirs": names}})
    assert isinstance(load_settings(str(project), plugin_dirs=[str(root)]), Settings)


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000])
def test_a_path_that_cannot_exist_is_reported(project: Path, tmp_path: Path, name: str) -> None:
    write_settings(project, "turngate", {"turngate": {"pluginDirs": [name]}})
    root = plugin(tmp_path / "gate", manifest={"hooks": name})
    problems = load_settings(str(project), plugin_dirs=[str(root)]).problems
    assert sorted((problem.severity, problem.field) for problem in problems) == [
        ("error", "hooks"),
        ("error", "turngate.pluginDirs"),
    ]


def test_a_hooks_file_that_links_outside_of_the_plugin_is_not_read(project: Path) -> None:
    (project / "other.json").write_text(json.dumps(stop_hooks("exit 2")))
    (project / "gate/hooks").mkdir(parents=True)
    (project / "gate/hooks/hooks.json").symlink_to(project / "other.json")
    settings = load_settings(str(project), plugin_dirs=[str(project / "gate")])
    said = "gate/hooks/hooks.json: leads outside of the plugin, so its hooks never run"
    assert (settings.rules, [str(problem) for problem in settings.problems]) == ((), [said])


def test_a_settings_file_names_at_most_100_plugin_folders(project: Path) -> None:
    write_settings(
        project, "turngate", {"turngate": {"pluginDirs": [f"p{number}" for number in range(20_000)]}}
    )
    for number in range(102):
        (project / f"p{number}/hooks").mkdir(parents=True)
        (project / f"p{number}/hooks/hooks.json").write_text(json.dumps(stop_hooks(f"echo {number}")))
    settings = load_settings(str(project))
    said = (
        ".turngate/settings.json: turngate.pluginDirs: names 20,000 folders, and only the first 100 are read"
    )
    assert (len(settings.rules), [str(problem) for problem in settings.problems]) == (100, [said])


# The user configuration of a plugin, which Claude Code asks for and Turngate does not have


USER_CONFIG = {
    "command": {"type": "command", "command": 'echo "${user_config.url}" >&2; exit 2'},
    "single quotes": {"type": "command", "command": "echo '${user_config.url}' >&2; exit 2"},
    "args": {"type": "command", "command": "sh", "args": ["-c", "exit 2", "${user_config.url}"]},
    "url": {"type": "http", "url": "http://127.0.0.1:9/${user_config.url}"},
    "header": {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"X-Key": "${user_config.url}"}},
}


@pytest.mark.parametrize("dialect", ["turngate", "claude"])
@pytest.mark.parametrize("hook", USER_CONFIG.values(), ids=USER_CONFIG)
def test_a_hook_that_needs_the_user_configuration_of_a_plugin_fails_and_never_blocks(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], hook: dict[str, Any], dialect: str
) -> None:
    root = plugin(tmp_path / "p", {"hooks": {"Stop": [{"hooks": [hook]}]}})
    shown = fire(capfd, project, "--plugin-dir", str(root), "--dialect", dialect)
    said = "it uses ${user_config.url}, which Turngate does not replace; write the value itself"
    assert [(run["outcome"], run["why"]) for run in shown["unenforced"]] == [("failed", said)]


@pytest.mark.parametrize(
    ("hook", "field"),
    [*zip(USER_CONFIG.values(), ["command", "command", "args", "url", "headers"], strict=True)],
    ids=USER_CONFIG,
)
def test_check_names_the_user_configuration_of_a_plugin(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], hook: dict[str, Any], field: str
) -> None:
    root = plugin(tmp_path / "p", {"hooks": {"Stop": [{"hooks": [hook]}]}})
    code, lines = check(capfd, project, "--plugin-dir", str(root))
    uses = "uses ${user_config.url}, which Turngate does not replace, so the hook fails at every run"
    assert (code, lines[1:]) == (
        1,
        [
            f"  error: Stop[0].hooks[0].{field}: {uses}",
            "    → write the value itself",
            "1 hook, 1 problem",
        ],
    )


def test_a_gate_of_a_plugin_has_the_variables_of_the_plugin(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    entry = {"type": "gate", "command": "sh", "args": ["${CLAUDE_PLUGIN_ROOT}/check.sh"]}
    root = plugin(project.parent / "plug in", {"hooks": {"Stop": [{"hooks": [entry]}]}})
    write_files(root, {"check.sh": 'echo "$CLAUDE_PLUGIN_ROOT"; exit 1\n'})
    shown = fire(capfd, project, "--plugin-dir", str(root), "--trust")
    assert [(run["outcome"], str(root) in run["reason"]) for run in shown["runs"]] == [("block", True)]
