"""Script hooks: an executable with the right name in the right folder is a hook, without any settings."""

import os
from pathlib import Path

import pytest

from tests.support.builders import script, stop_event, stop_hooks, subagent_stop, write_settings
from turngate.core.dialect import CLAUDE, DIALECTS, MUX
from turngate.core.hooks.kinds import CommandHook, hook_text
from turngate.core.hooks.selection import Plan, plan
from turngate.core.settings import Layer, Problem, Rule, Settings
from turngate.project.files import LOCAL
from turngate.settings.load import script_layers
from turngate.trust.load import load_settings

SCRIPTS = [
    pytest.param("stop", "Stop", marks=pytest.mark.req("S0-51")),
    pytest.param("subagent_stop", "SubagentStop", marks=pytest.mark.req("S0-52")),
]
OK = "#!/bin/sh\n"


def script_rule(path: Path, event: str = "Stop") -> Rule:
    """Started as a program, without a shell: a blank or a quote in the project's path does no harm."""
    family = path.parent.name.removeprefix(".")
    shown = f".{family}/{path.name}"
    hook = CommandHook(str(path), args=(), id=shown)
    return Rule(event, hook, source="script", file=shown, family=family)


@pytest.mark.parametrize(("name", "event"), SCRIPTS)
@pytest.mark.parametrize("family", ["mux", "turngate"])
def test_an_executable_with_the_right_name_is_a_hook(
    project: Path, family: str, name: str, event: str
) -> None:
    path = script(project / f".{family}" / name, OK)
    assert load_settings(str(project)) == Settings(rules=(script_rule(path, event),), hard_limit=10)


@pytest.mark.req("S0-51", "S0-52")
def test_each_script_is_asked_at_its_own_stop(project: Path) -> None:
    stop, child = script(project / ".mux" / "stop", OK), script(project / ".mux" / "subagent_stop", OK)
    settings = load_settings(str(project), dialect="mux")
    assert plan(settings, stop_event()) == Plan(ask=(script_rule(stop),))
    assert plan(settings, subagent_stop()) == Plan(ask=(script_rule(child, "SubagentStop"),))


def test_the_layer_of_a_script_is_the_projects(project: Path) -> None:
    path = script(project / ".mux" / "stop", OK)
    layer = Layer(file=".mux/stop", level="project", family="mux", rules=(script_rule(path),))
    assert script_layers(str(project), "mux", LOCAL) == [layer]


@pytest.mark.parametrize("name", ["stop.sh", "Stop", "subagent-stop", "pre_tool_use"])
def test_no_other_name_makes_a_hook(project: Path, name: str) -> None:
    script(project / ".mux" / name, OK)
    assert load_settings(str(project)).rules == ()


def test_the_claude_family_has_no_scripts(project: Path) -> None:
    for name in ("stop", "subagent_stop"):
        script(project / ".claude" / name, OK)
    assert load_settings(str(project)) == Settings(hard_limit=10)
    assert load_settings(str(project), dialect="claude") == Settings(dialect=CLAUDE)


@pytest.mark.parametrize(
    ("dialect", "families"), [("turngate", ["mux", "turngate"]), ("mux", ["mux"]), ("claude", [])]
)
def test_a_dialect_has_the_scripts_of_its_own_families(
    project: Path, dialect: str, families: list[str]
) -> None:
    paths = {family: script(project / f".{family}" / "stop", OK) for family in ("claude", "mux", "turngate")}
    expected = tuple(script_rule(paths[family]) for family in families)
    assert load_settings(str(project), dialect=dialect).rules == expected


def test_a_home_has_no_scripts(project: Path, home: Path) -> None:
    script(home / ".mux" / "stop", OK)
    assert load_settings(str(project)) == Settings(hard_limit=10)


@pytest.mark.req("C-08")
def test_a_script_comes_after_its_familys_project_settings_and_before_what_is_stronger(
    project: Path, home: Path
) -> None:
    write_settings(home, "turngate", stop_hooks("user"))
    write_settings(project, "mux", stop_hooks("project"))
    write_settings(project, "mux", stop_hooks("local"), "settings.local.json")
    write_settings(project, "turngate", stop_hooks("project turngate"))
    mux, own = script(project / ".mux" / "stop", OK), script(project / ".turngate" / "stop", OK)
    found = plan(load_settings(str(project)), stop_event()).ask
    commands = ["user", "project", str(mux), "project turngate", str(own), "local"]
    assert [hook_text(rule.hook) for rule in found] == commands


@pytest.mark.req("C-09")
def test_a_script_has_its_place_as_its_id_so_that_settings_can_switch_it_off(project: Path) -> None:
    script(project / ".mux" / "stop", OK)
    write_settings(project, "mux", stop_hooks("true", id=".mux/stop", enabled=False), "settings.local.json")
    assert plan(load_settings(str(project)), stop_event()).ask == ()


def test_a_link_to_an_executable_is_a_script(project: Path, tmp_path: Path) -> None:
    path = project / ".mux" / "stop"
    path.parent.mkdir()
    path.symlink_to(script(tmp_path / "shared" / "check", OK))
    assert load_settings(str(project)).rules == (script_rule(path),)


@pytest.mark.parametrize(("name", "event"), SCRIPTS)
@pytest.mark.parametrize("dialect", ["turngate", "mux"])
def test_a_script_that_is_not_executable_is_reported(
    project: Path, dialect: str, name: str, event: str
) -> None:
    script(project / ".mux" / name, OK, mode=0o644)
    problem = Problem(
        file=f".mux/{name}",
        event=event,
        message=f".mux/{name} is not executable, so it never runs",
        hint=f"chmod +x .mux/{name}",
    )
    expected = Settings(dialect=DIALECTS[dialect], hard_limit=10, problems=(problem,))
    assert load_settings(str(project), dialect=dialect) == expected


def no_script(project: Path) -> Settings:
    """Return the settings of a project whose `.mux/stop` cannot be run, next to a script that can."""
    problem = Problem(
        file=".mux/stop",
        event="Stop",
        message=".mux/stop is not an executable file, so it never runs",
        hint="make it an executable file, or remove it",
    )
    child = script(project / ".mux" / "subagent_stop", OK)
    rules = (script_rule(child, "SubagentStop"),)
    return Settings(rules=rules, dialect=MUX, hard_limit=10, problems=(problem,))


def test_a_folder_is_no_script(project: Path) -> None:
    (project / ".mux" / "stop").mkdir(parents=True)
    expected = no_script(project)
    assert load_settings(str(project), dialect="mux") == expected


def test_a_link_to_nowhere_is_no_script(project: Path) -> None:
    (project / ".mux").mkdir()
    (project / ".mux" / "stop").symlink_to("nowhere")
    expected = no_script(project)
    assert load_settings(str(project), dialect="mux") == expected


def test_a_pipe_is_no_script(project: Path) -> None:
    (project / ".mux").mkdir()
    os.mkfifo(project / ".mux" / "stop", 0o755)
    expected = no_script(project)
    assert load_settings(str(project), dialect="mux") == expected


def test_an_invalid_script_does_not_affect_the_settings(project: Path) -> None:
    script(project / ".mux" / "stop", OK, mode=0o644)
    write_settings(project, "mux", stop_hooks("make"))
    found = load_settings(str(project))
    assert [hook_text(rule.hook) for rule in found.rules] == ["make"]
    assert [str(problem) for problem in found.problems] == [
        ".mux/stop: Stop: .mux/stop is not executable, so it never runs"
    ]
