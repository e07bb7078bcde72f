"""Managed settings: what an administrator configures holds whatever a user or a project says."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_event, stop_hooks, write_settings
from turngate.cli.project import nothing_is_configured
from turngate.core.answers.report_types import Skipped
from turngate.core.constants import MANAGED
from turngate.core.dialect import DIALECTS
from turngate.core.hooks.kinds import CallbackHook, CommandHook, hook_text
from turngate.core.hooks.selection import plan
from turngate.core.settings import Rule, Settings
from turngate.project.files import LOCAL
from turngate.settings import paths
from turngate.trust.load import load_settings


def write_managed(managed: Path, content: Any, name: str = "managed-settings.json") -> str:
    """Write an administrator's settings and return their path."""
    path = write_settings(managed, "x", content)
    target = managed / name
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    return str(target)


def asked(settings: Settings) -> list[str]:
    return [hook_text(rule.hook) for rule in plan(settings, stop_event()).ask]


def switched_off(settings: Settings) -> dict[str, str]:
    skipped = plan(settings, stop_event()).skip
    return {hook_text(rule.hook): why.why for rule, why in skipped if isinstance(why, Skipped)}


def load(project: Path, dialect: str = "claude") -> Settings:
    return load_settings(str(project), dialect=dialect)


def test_a_rule_that_is_added_does_not_replace_a_managed_one() -> None:
    gate = Rule("Stop", CommandHook("check"), source=MANAGED)
    weaker = Rule("Stop", CommandHook("check", mode="observe"), source="project")
    settings = Settings(rules=(Rule("Stop", CommandHook("other"), source="user"), gate)).with_rules(weaker)
    assert plan(settings, stop_event()).ask == (settings.rules[0], gate)


@pytest.mark.parametrize(("dialect", "runs"), [("claude", True), ("turngate", True), ("mux", False)])
def test_managed_hooks_run_where_claude_codes_settings_are_read(
    project: Path, managed: Path, dialect: str, runs: bool
) -> None:
    file = write_managed(managed, stop_hooks("policy"))
    rule = Rule(
        "Stop", load(project).rules[0].hook, None, "managed", file, family="claude", index="[0].hooks[0]"
    )
    assert load(project, dialect).rules == ((rule,) if runs else ())


def test_the_fast_exit_sees_managed_hooks(project: Path, managed: Path) -> None:
    before = nothing_is_configured(str(project), "claude")
    write_managed(managed, stop_hooks("policy"))
    assert (before, nothing_is_configured(str(project), "claude")) == (True, False)


@pytest.mark.parametrize("dialect", ["claude", "turngate"])
@pytest.mark.parametrize("level", ["user", "project", "local"])
def test_managed_hooks_run_also_where_other_settings_disable_all_hooks(
    project: Path, home: Path, managed: Path, dialect: str, level: str
) -> None:
    write_managed(managed, stop_hooks("policy"))
    family = "turngate" if dialect == "turngate" else "claude"
    folder, name = home if level == "user" else project, "settings.local.json" if level == "local" else None
    content = {**stop_hooks("own"), "disableAllHooks": True}
    write_settings(folder, family, content, name or "settings.json")
    settings = load(project, dialect)
    shown = f"{'~/' if level == 'user' else ''}.{family}/{name or 'settings.json'}"
    assert asked(settings) == ["policy"]
    assert switched_off(settings) == {"own": f"disableAllHooks in {shown} switches it off"}


@pytest.mark.parametrize("dialect", ["claude", "turngate"])
def test_a_managed_switch_reaches_every_hook_and_a_project_cannot_undo_it(
    project: Path, managed: Path, dialect: str
) -> None:
    file = write_managed(managed, {**stop_hooks("policy"), "disableAllHooks": True})
    for family in DIALECTS[dialect].families:
        write_settings(project, family, {**stop_hooks(family), "disableAllHooks": False})
    settings = load(project, dialect).with_rules(Rule("Stop", CallbackHook(print, name="program")))
    why = f"disableAllHooks in {file} switches it off"
    names = (*DIALECTS[dialect].families, "policy", "program")
    assert (asked(settings), switched_off(settings)) == ([], dict.fromkeys(names, why))


@pytest.mark.parametrize("dialect", ["claude", "turngate"])
def test_with_managed_hooks_only_the_files_hooks_are_off_and_a_programs_run(
    project: Path, home: Path, managed: Path, dialect: str
) -> None:
    file = write_managed(managed, {**stop_hooks("policy"), "allowManagedHooksOnly": True})
    write_settings(home, "claude", stop_hooks("user"))
    write_settings(project, "claude", {**stop_hooks("project"), "disableAllHooks": False})
    settings = load(project, dialect).with_rules(Rule("Stop", CallbackHook(print, name="program")))
    why = f"allowManagedHooksOnly in {file} switches it off"
    assert asked(settings) == ["policy", "program"]
    assert switched_off(settings) == {"user": why, "project": why}


@pytest.mark.parametrize("level", ["user", "project", "local"])
def test_managed_hooks_only_counts_nowhere_else(project: Path, home: Path, level: str) -> None:
    folder = home if level == "user" else project
    name = "settings.local.json" if level == "local" else "settings.json"
    write_settings(folder, "claude", {**stop_hooks("own"), "allowManagedHooksOnly": True}, name)
    assert asked(load(project)) == ["own"]


def test_a_restriction_that_cannot_be_read_restricts(project: Path, managed: Path) -> None:
    file = write_managed(managed, {"allowManagedHooksOnly": "yes"})
    write_settings(project, "claude", stop_hooks("own"))
    settings = load(project)
    assert (asked(settings), list(map(str, settings.problems))) == (
        [],
        [f'{file}: allowManagedHooksOnly: is "yes", expected true or false: taken as true'],
    )


def test_drop_in_files_are_read_by_name_and_the_last_one_wins(project: Path, managed: Path) -> None:
    write_managed(managed, {**stop_hooks("base"), "disableAllHooks": True})
    write_managed(managed, stop_hooks("second"), "managed-settings.d/20-b.json")
    write_managed(managed, {**stop_hooks("first"), "disableAllHooks": False}, "managed-settings.d/10-a.json")
    write_managed(managed, stop_hooks("hidden"), "managed-settings.d/.30-c.json")
    write_managed(managed, stop_hooks("other"), "managed-settings.d/readme.txt")
    assert asked(load(project)) == ["base", "first", "second"]


def test_a_project_that_links_to_managed_settings_does_not_make_them_its_own(
    project: Path, managed: Path
) -> None:
    file = write_managed(managed, stop_hooks("policy"))
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").symlink_to(file)
    write_settings(project, "claude", {"disableAllHooks": True}, "settings.local.json")
    assert asked(load(project)) == ["policy"]


def test_no_variable_leads_to_other_managed_settings(
    project: Path, managed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is a constant: a project's environment cannot replace it."""
    write_managed(managed, stop_hooks("policy"))
    names = [name for name in os.environ if "TURNGATE" in name or "CLAUDE" in name]
    for name in (*names, "TURNGATE_MANAGED", "CLAUDE_CODE_MANAGED_SETTINGS", "CLAUDE_CONFIG_DIR"):
        monkeypatch.setenv(name, "/nowhere")
    assert asked(load(project)) == ["policy"]
    assert paths.settings_files(str(project), "claude", files=LOCAL)[-1].path == str(
        managed / "managed-settings.json"
    )
