"""A file does not loosen the hooks of a level that is trusted more: project < user < command line < managed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.settings.test_managed import write_managed
from tests.support.builders import stop_event, stop_hooks, write_settings
from tests.support.sessions import BLOCK_COMMAND
from turngate.core.hooks.kinds import CallbackHook, PromptHook
from turngate.core.hooks.selection import plan
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.verdict import Verdict
from turngate.engine import ask_hooks
from turngate.options.options import Options
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.trust.load import load_settings

LEVELS = ("project", "local", "user", "command line", "managed")


class Files:
    """Writes one file of each level, and loads all of them."""

    def __init__(self, project: Path, home: Path, managed: Path) -> None:
        self.project, self.home, self.managed = project, home, managed
        self.given: str | None = None

    def write(self, level: str, content: dict[str, Any]) -> None:
        match level:
            case "managed":
                write_managed(self.managed, content)
            case "command line":
                self.given = json.dumps(content)
            case "user":
                write_settings(self.home, "turngate", content)
            case _:
                name = "settings.local.json" if level == "local" else "settings.json"
                write_settings(self.project, "turngate", content, name)

    def load(self) -> Settings:
        return load_settings(str(self.project), extra=self.given)

    def rule(self) -> tuple[Settings, Rule]:
        settings = self.load()
        [rule] = settings.rules
        return settings, rule

    def ask(self) -> Verdict:
        world = World(LocalShell(), project=str(self.project))
        return asyncio.run(ask_hooks(stop_event(), self.load(), world))


@pytest.fixture
def files(project: Path, home: Path, managed: Path) -> Files:
    return Files(project, home, managed)


def outcomes(verdict: Verdict) -> list[str]:
    return [each.outcome for each in verdict.hook_outputs]


TRUST = {"project": 0, "local": 0, "user": 1, "command line": 2, "managed": 3}
PAIRS = [(hook, file) for hook in LEVELS for file in LEVELS if hook != file]


@pytest.mark.req("C-09")
@pytest.mark.parametrize("mode", ["observe", {"Stop": "observe"}], ids=["every event", "one event"])
@pytest.mark.parametrize(("hook", "file"), PAIRS)
def test_a_file_disarms_only_hooks_that_are_not_trusted_more(
    files: Files, hook: str, file: str, mode: Any
) -> None:
    files.write(hook, stop_hooks("check"))
    files.write(file, {"turngate": {"mode": mode}})
    settings, rule = files.rule()
    assert settings.mode_of(rule) == ("observe" if TRUST[file] >= TRUST[hook] else "gate")


@pytest.mark.parametrize("level", ["user", "managed"])
def test_a_gate_of_the_user_or_an_administrator_blocks_whatever_a_project_says(
    files: Files, level: str
) -> None:
    files.write(level, stop_hooks(BLOCK_COMMAND))
    section = {"mode": "observe", "defaults": {"command": 0.001}, "stopBudget": 0.001, "payload": "strict"}
    files.write("project", {"turngate": section})
    assert outcomes(files.ask()) == ["block"]


def test_a_project_can_disarm_its_own_hooks_and_tighten_those_of_the_user(files: Files) -> None:
    files.write("user", {**stop_hooks("mine"), "turngate": {"mode": "observe", "defaults": {"command": 5}}})
    own: dict[str, Any] = {"mode": {"Stop": "gate"}, "defaults": {"command": 9}, "stopBudget": 7}
    files.write("project", {**stop_hooks("theirs"), "turngate": own})
    settings = files.load()
    assert [settings.mode_of(rule) for rule in settings.rules] == ["gate", "gate"]
    assert [settings.timeout_of(rule) for rule in settings.rules] == [9.0, 9.0]
    assert [settings.stop_budget_of(rule) for rule in settings.rules] == [None, 7.0]


@pytest.mark.parametrize("level", ["user", "command line", "managed"])
def test_a_project_shortens_neither_the_timeouts_nor_the_budget_of_hooks_that_are_trusted_more(
    files: Files, level: str
) -> None:
    section = {"defaults": {"command": 40}, "stopBudget": 50}
    files.write(level, {**stop_hooks("check"), "turngate": section})
    files.write("local", {"turngate": {"defaults": {"Stop": {"command": 1}}, "stopBudget": 1}})
    settings, rule = files.rule()
    assert (settings.timeout_of(rule), settings.stop_budget_of(rule)) == (40.0, 50.0)


def test_a_project_does_not_shorten_the_input_of_the_users_hooks(files: Files) -> None:
    files.write("user", stop_hooks("cat > mine"))
    files.write("project", {**stop_hooks("cat > theirs"), "turngate": {"payload": "strict"}})
    files.ask()
    mine, theirs = (json.loads((files.project / name).read_text()) for name in ("mine", "theirs"))
    assert ("continuation_count" in mine, "continuation_count" in theirs) == (True, False)


def judge(folder: Path, name: str, answer: dict[str, Any]) -> str:
    path = folder / name
    path.write_text(json.dumps({"judge": [json.dumps(answer)]}))
    return f"scripted:{path}"


PROMPT = {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "Is it done?"}]}]}}


def test_a_project_does_not_choose_the_judge_of_the_users_hooks(files: Files, tmp_path: Path) -> None:
    strict = judge(tmp_path, "strict.json", {"ok": False, "reason": "no tests"})
    files.write("user", {**PROMPT, "turngate": {"judge": strict}})
    files.write("project", {"turngate": {"judge": judge(tmp_path, "kind.json", {"ok": True})}})
    assert outcomes(files.ask()) == ["block"]


def test_without_a_judge_of_the_user_that_of_a_project_is_not_asked_about_the_users_hooks(
    files: Files, tmp_path: Path
) -> None:
    files.write("user", PROMPT)
    files.write("project", {"turngate": {"judge": judge(tmp_path, "kind.json", {"ok": True})}})
    assert outcomes(files.ask()) == ["failed"]  # no model is configured


def test_hooks_of_a_program_are_trusted_as_the_users_and_it_chooses_their_judge(
    files: Files, tmp_path: Path
) -> None:
    kind = judge(tmp_path, "kind.json", {"ok": True})
    files.write("project", {"turngate": {"mode": "observe", "judge": kind}})
    strict = judge(tmp_path, "strict.json", {"ok": False, "reason": "no tests"})
    settings = Options({"Stop": [PromptHook("Is it done?")]}, judge=strict).settings(files.load())
    world = World(LocalShell(), project=str(files.project))
    assert outcomes(asyncio.run(ask_hooks(stop_event(), settings, world))) == ["block"]


def test_the_settings_of_a_program_reach_its_hooks() -> None:
    rule = Rule("Stop", CallbackHook(print))
    assert Settings(rules=(rule,), mode={"*": "observe"}).mode_of(rule) == "observe"


@pytest.mark.req("X-14")
@pytest.mark.parametrize("weak", [{"mode": "observe"}, {"async": True}, {"enabled": False}], ids=str)
@pytest.mark.parametrize(("level", "kept"), [("user", "user"), ("project", "local")])
def test_the_same_command_in_a_project_does_not_disarm_the_users_gate(
    files: Files, weak: dict[str, Any], level: str, kept: str
) -> None:
    files.write(level, stop_hooks("check"))
    files.write("local", stop_hooks("check", **weak))
    planned = plan(files.load(), stop_event())
    [source] = [rule.source for rule in (*planned.ask, *(rule for rule, _ in planned.skip))]
    assert source == kept


def test_a_project_does_not_disarm_hooks_of_plugins_that_the_user_enables(files: Files) -> None:
    hooks = files.home / "plug" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "hooks.json").write_text(json.dumps(stop_hooks("check")))
    files.write("user", {"turngate": {"pluginDirs": [str(files.home / "plug")]}})
    files.write("project", {"turngate": {"mode": "observe"}})
    settings, rule = files.rule()
    assert (rule.source, settings.mode_of(rule)) == ("plugin", "gate")
