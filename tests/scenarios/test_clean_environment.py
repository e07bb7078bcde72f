"""Command hooks with a clean environment: what they get, and which file can decide it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_event, write_settings
from turngate.check.lint import lint
from turngate.core.hooks.kinds import CommandHook
from turngate.engine import ask_hooks
from turngate.options.options import Options
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.trust.load import load_settings

USUAL = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/h",
    "LANG": "C",
    "LC_ALL": "C",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "USER": "u",
    "LOGNAME": "u",
    "SHELL": "/bin/sh",
}
ENVIRON = {**USUAL, "AWS_SECRET": "s3", "EDITOR": "vi", "TURNGATE_ENV_FILE": "/e", "CLAUDE_ENV_FILE": "/e"}
OF_THE_EVENT = ("TURNGATE_", "MUX_", "CLAUDE_", "PWD", "_", "SHLVL", "OLDPWD")


def own(text: str) -> dict[str, str]:
    """Return the variables that `env` printed, without those of the event and of the shell."""
    pairs = dict(line.split("=", 1) for line in text.splitlines())
    return {name: value for name, value in pairs.items() if not name.startswith(OF_THE_EVENT)}


def variables(project: Path, user: Mapping[str, Any], its: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what the hooks of the user's and of the project's settings get, in this order."""
    home = project.parent / "home"
    for folder, section in ((home, user), (project, its)):
        hook = {"type": "command", "command": "env", "id": folder.name, **section.get("hook", {})}
        content = {"hooks": {"Stop": [{"hooks": [hook]}]}, "turngate": section.get("turngate", {})}
        write_settings(folder, "turngate", content)
    settings = load_settings(str(project), home=str(home))
    assert settings.problems == ()
    world = World(LocalShell(), str(project), environ=ENVIRON)
    return [own(run.report.stdout) for run in asyncio.run(ask_hooks(stop_event(), settings, world)).runs]  # type: ignore[union-attr]


ALL = own("\n".join(f"{name}={value}" for name, value in ENVIRON.items()))
EDITOR = {**USUAL, "EDITOR": "vi"}
SECRET = {**USUAL, "AWS_SECRET": "s3"}


def clean(*names: str) -> dict[str, Any]:
    return {"turngate": {"env": "clean", "passEnv": list(names)}}


@pytest.mark.parametrize(
    ("user", "its", "of_user", "of_project"),
    [
        ({}, {}, ALL, ALL),
        ({}, {"hook": {"env": "clean"}}, ALL, USUAL),
        ({}, {"hook": {"passEnv": ["EDITOR", "UNSET"]}}, ALL, EDITOR),
        ({}, {"hook": {"env": {"A": "1"}, "passEnv": []}}, ALL, {**USUAL, "A": "1"}),
        ({"turngate": {"env": "clean"}}, {}, USUAL, USUAL),
        (clean("EDITOR"), {}, EDITOR, EDITOR),
        (clean("EDITOR"), {"hook": {"env": {"A": "1"}}}, EDITOR, {**EDITOR, "A": "1"}),
        # A project cannot get what the user does not pass, whatever it says.
        (clean(), clean("AWS_SECRET"), USUAL, USUAL),
        (clean(), {"hook": {"passEnv": ["AWS_SECRET"]}}, USUAL, USUAL),
        # A user's hook can, and a project does not change what it gets.
        ({**clean(), "hook": {"passEnv": ["AWS_SECRET"]}}, {}, SECRET, USUAL),
        ({}, clean("EDITOR"), ALL, EDITOR),
        ({"hook": {"passEnv": ["AWS_SECRET"]}}, clean(), SECRET, USUAL),
        ({}, {**clean("EDITOR"), "hook": {"passEnv": ["AWS_SECRET"]}}, ALL, {**EDITOR, **SECRET}),
    ],
)
def test_a_hook_gets_what_its_settings_pass(
    user: Mapping[str, Any],
    its: Mapping[str, Any],
    of_user: Mapping[str, str],
    of_project: Mapping[str, str],
    project: Path,
) -> None:
    assert variables(project, user, its) == [of_user, of_project]


def test_a_clean_environment_has_the_variables_of_the_event_and_of_the_settings(project: Path) -> None:
    hook = CommandHook("printenv TURNGATE_EVENT TURNGATE_ENV_FILE CLAUDE_PROJECT_DIR", pass_env=())
    world = World(LocalShell(), str(project), environ=ENVIRON)
    settings = Options({"Stop": [hook]}).settings()
    [run] = asyncio.run(ask_hooks(stop_event(), settings, world)).runs
    assert run.report.stdout == f"Stop\n/e\n{project}\n"  # type: ignore[union-attr]


def test_options_write_and_read_a_clean_environment() -> None:
    options = Options(
        {"Stop": [CommandHook("make", env={"A": "1"}, pass_env=("B",)), CommandHook("x", pass_env=())]}
    )
    [first, second] = options.to_json()["hooks"]["Stop"]
    assert (first, second) == (
        {"type": "command", "command": "make", "env": {"A": "1"}, "passEnv": ["B"]},
        {"type": "command", "command": "x", "passEnv": []},
    )
    assert Options.from_json(options.to_json()) == options


def test_check_knows_that_a_variable_is_not_passed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLS", str(project))
    (project / "gate.sh").write_text("#!/bin/sh\nexit 2\n")
    (project / "gate.sh").chmod(0o755)
    hook = {"type": "command", "command": "$TOOLS/gate.sh", "env": "clean"}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [hook]}]}})
    settings = load_settings(str(project))
    [message] = [problem.message for problem in lint(settings, str(project)) if "TOOLS" in problem.message]
    assert message == "$TOOLS is not set, so /gate.sh does not exist and the hook fails at every run"
