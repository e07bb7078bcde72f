"""A project on another machine: its settings, scripts and approvals, and nothing of the same paths here."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from tests.support.prefixed_files import MACHINE, PrefixedFiles
from tests.trust.support import command, stop_settings
from turngate.agent.agent_session import read_guides
from turngate.agent.session import Session
from turngate.agent.tools import ToolContext
from turngate.core.conversation.messages import ToolResults
from turngate.core.events.events import PreToolUse
from turngate.core.events.stream_events import Notice, SessionEvent
from turngate.core.hooks.kinds import CommandHook, hook_text
from turngate.core.settings import AllowedUrls, Problem, Rule, Settings
from turngate.core.verdict.decisions import Block
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.models.scripted import ScriptedModel
from turngate.ports import RemoteMachine, World
from turngate.project.files import LOCAL, MachineUnreachable
from turngate.project.safe_paths import real_path
from turngate.settings.agent_types import BUILT_IN, load_agent_types
from turngate.settings.slash_commands import load_commands
from turngate.shells.local import LocalShell
from turngate.trust.approvals import Approvals
from turngate.trust.covered_files import CoveredFiles, compare_files
from turngate.trust.load import load_reviewed, load_settings, review_agent_hooks
from turngate.trust.review import Review, review_project

OK = "#!/bin/sh\n"
LOST = "the files of ssh://me@build cannot be read: the connection to build was lost; check the connection, and try again"


class Machine:
    """The machine with the project; here, the same paths hold other files."""

    def __init__(self, root: Path, project: Path, home: Path) -> None:
        self.project_path, self.files = str(project), PrefixedFiles(root, str(home))
        self.project = self.files.on_this_machine(project)
        self.home = self.files.on_this_machine(home)
        self.project.mkdir(parents=True)
        self.home.mkdir(parents=True, exist_ok=True)

    def call(self, function: Callable[..., Any], *args: object, **options: Any) -> Any:
        return function(*args, **options, files=self.files)

    def load(self, **options: Any) -> Settings:
        loaded = self.call(load_settings, self.project_path, **options)
        assert isinstance(loaded, Settings)
        return loaded

    def review(self) -> Review:
        review = self.call(review_project, self.project_path)
        assert isinstance(review, Review)
        return review

    def approve_all(self) -> None:
        review = self.review()
        review.approve(review.hooks)


@pytest.fixture
def there(tmp_path: Path, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.delenv("TURNGATE_TRUST")
    return Machine(tmp_path / "machine", project, home)


def commands_of(settings: Settings) -> list[str]:
    return [hook_text(rule.hook) for rule in settings.rules]


def pending(settings: Settings) -> list[str | None]:
    return [rule.pending for rule in settings.rules]


# Settings


def test_settings_are_those_of_the_other_machine(there: Machine, project: Path, home: Path) -> None:
    for folder, word in ((there.home, "user"), (there.project, "project"), (home, "x"), (project, "x")):
        write_settings(folder, "turngate", stop_hooks(word))
        write_settings(folder, "claude", stop_hooks(f"{word} of claude"))
    write_settings(there.project, "mux", stop_hooks("local"), "settings.local.json")
    write_settings(project, "mux", stop_hooks("x"), "settings.local.json")
    assert commands_of(there.load(trust=True)) == [
        *("user of claude", "user", "project of claude", "project", "local")
    ]


@pytest.mark.req("S0-105")
def test_a_script_hook_is_one_of_the_other_machine(there: Machine, project: Path) -> None:
    script(project / ".mux" / "subagent_stop", OK)
    script(there.project / ".mux" / "stop", OK)
    (there.project / ".turngate").mkdir()
    (there.project / ".turngate" / "stop").write_text(OK)
    settings = there.load(trust=True)
    assert [(rule.event, rule.hook, rule.file) for rule in settings.rules] == [
        ("Stop", CommandHook(f"{there.project_path}/.mux/stop", args=(), id=".mux/stop"), ".mux/stop")
    ]
    problem = ".turngate/stop is not executable, so it never runs"
    assert [each.message for each in settings.problems] == [problem]


def test_a_link_to_settings_leads_to_a_file_of_the_other_machine(there: Machine, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    write_settings(target, "x", stop_hooks("here"))
    write_settings(there.files.on_this_machine(target), "x", stop_hooks("there"))
    (there.project / ".turngate").symlink_to(target / ".x")
    assert commands_of(there.load(trust=True)) == ["there"]


def test_hooks_of_a_plugin_there_run_with_its_folders_there(there: Machine, home: Path) -> None:
    for folder in (there.home, home):
        write_settings(folder, "turngate", {"turngate": {"pluginDirs": ["~/plugin"]}})
    hooks = there.home / "plugin" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "hooks.json").write_text(json.dumps(stop_hooks("${CLAUDE_PLUGIN_ROOT}/check")))
    settings = there.load(trust=True)
    [rule] = settings.rules
    assert isinstance(rule.hook, CommandHook)
    data = rule.hook.env["CLAUDE_PLUGIN_DATA"]
    assert (settings.plugin_dirs, rule.hook.env["CLAUDE_PLUGIN_ROOT"]) == (
        (f"{home}/plugin",),
        f"{home}/plugin",
    )
    assert data.startswith(f"{home}/.local/state/turngate/plugins/plugin-")


def test_the_file_of_the_command_line_is_one_of_this_machine(there: Machine, tmp_path: Path) -> None:
    extra = tmp_path / "extra.json"
    extra.write_text(json.dumps(stop_hooks("given")))
    assert commands_of(there.load(extra=str(extra))) == ["given"]
    other = tmp_path / "other.json"
    there.files.on_this_machine(other).write_text("{}")
    with pytest.raises(UsageError, match="there is no such file"):
        there.load(extra=str(other))


def test_a_project_that_is_only_here_is_not_found_there(there: Machine, project: Path) -> None:
    there.project.rmdir()
    with pytest.raises(UsageError, match=f"there is no folder {project}"):
        there.load()


def test_a_connection_that_is_lost_is_never_taken_for_missing_hooks(there: Machine) -> None:
    write_settings(there.home, "claude", stop_hooks("user"))
    write_settings(there.project, "turngate", stop_settings(command("./check.sh")))
    script(there.project / "check.sh", ". ./more.sh\n")
    script(there.project / ".mux" / "stop", OK)
    complete = there.load()
    count = len(there.files.questions)
    for limit in range(count):
        there.files.questions.clear()
        there.files.limit = limit
        with pytest.raises(UsageError, match=LOST):
            there.load()
    there.files.questions.clear()
    there.files.limit = count
    assert there.load() == complete


def test_the_other_machine_is_asked_few_questions_and_none_twice(there: Machine) -> None:
    write_settings(there.project, "turngate", stop_hooks("make test"))
    script(there.project / ".mux" / "stop", OK)
    there.approve_all()
    there.files.questions.clear()
    there.load()
    questions = there.files.questions
    assert [each for each in set(questions) if questions.count(each) > 1] == []
    assert len(questions) < 60


# Trust


@pytest.mark.req("S0-105")
def test_a_hook_runs_only_while_its_files_there_are_what_was_approved(there: Machine, project: Path) -> None:
    write_settings(there.project, "turngate", stop_settings(command("scripts/check.sh")))
    script(there.project / "scripts" / "check.sh", ". scripts/more.sh\n")
    before = pending(there.load())
    there.approve_all()
    approved = pending(there.load())
    script(project / "scripts" / "check.sh", "other\n")
    script(project / "scripts" / "more.sh", "other\n")
    still = pending(there.load())
    (there.project / "scripts/more.sh").write_text("echo\n")
    added = pending(there.load())
    (there.project / "scripts/more.sh").unlink()
    (there.project / "scripts/check.sh").write_text("other\n")
    changed = pending(there.load())
    assert (before, approved, still, added, changed) == (
        ["it is not approved"],
        [None],
        [None],
        ["scripts/more.sh was added after it was approved"],
        ["scripts/check.sh was changed after it was approved"],
    )


def test_a_script_hook_there_is_pending_until_it_is_approved(there: Machine) -> None:
    path = script(there.project / ".mux" / "stop", OK)
    before = pending(there.load())
    there.approve_all()
    approved = pending(there.load())
    path.write_text("#!/bin/sh\nexit 2\n")
    assert (before, approved, pending(there.load())) == (
        ["it is not approved"],
        [None],
        [".mux/stop was changed after it was approved"],
    )


def test_what_was_approved_can_be_shown_again(there: Machine) -> None:
    path = script(there.project / ".mux" / "stop", OK)
    there.approve_all()
    path.write_text("other")
    [hook] = there.review().hooks
    assert hook.approval is not None
    assert hook.approval.content_of(".mux/stop") == OK.encode()


def test_approvals_of_the_same_path_on_another_machine_do_not_count(there: Machine, project: Path) -> None:
    for folder in (there.project, project):
        write_settings(folder, "turngate", stop_hooks("check"))
    here = review_project(str(project), files=LOCAL)
    here.approve(here.hooks)
    assert (pending(load_settings(str(project))), pending(there.load())) == ([None], ["it is not approved"])
    there.approve_all()
    there.files.machine = "ssh://me@other"
    assert pending(there.load()) == ["it is not approved"]
    there.files.machine = MACHINE
    assert pending(there.load()) == [None]
    here.forget(here.reviewer.approvals("project").all())
    assert (pending(load_settings(str(project))), pending(there.load())) == (["it is not approved"], [None])


def test_the_users_hooks_there_are_approved_on_first_sight_and_apart_from_those_here(
    there: Machine, home: Path, project: Path, state: Path
) -> None:
    for folder in (there.home, home):
        write_settings(folder, "turngate", stop_settings(command("~/check.sh", id="own")))
        script(folder / "check.sh", OK)
    load_settings(str(project))
    of_this_machine = (state / "trust" / "user.json").read_text()
    first = pending(there.load())
    write_settings(there.home, "turngate", stop_settings(command("~/other.sh", id="own")))
    second = pending(there.load())
    assert (first, second) == ([None], ["its definition was changed after it was approved"])
    assert (state / "trust" / "user.json").read_text() == of_this_machine
    assert pending(load_settings(str(project))) == [None]


RUN_HERE: dict[str, dict[str, Any]] = {
    "http": {"type": "http", "url": "https://build.example/"},
    "prompt": {"type": "prompt", "prompt": "Is it done?"},
    "agent": {"type": "agent", "prompt": "Is it done?"},
    "judge": {"type": "gate", "gate": "judge", "options": {"prompt": "Is it done?"}},
    "notify": {"type": "gate", "gate": "notify", "options": {"webhook": "https://build.example/"}},
}


@pytest.mark.req("S0-105")
@pytest.mark.parametrize("hook", RUN_HERE.values(), ids=RUN_HERE)
def test_a_users_hook_there_that_is_sent_from_here_is_pending_until_it_is_approved(
    there: Machine, home: Path, project: Path, hook: dict[str, Any]
) -> None:
    for folder in (there.home, home):
        write_settings(folder, "turngate", stop_settings(hook, command("true")))
    first = pending(there.load())
    again = pending(there.load())
    there.approve_all()
    assert (first, again, pending(there.load())) == (
        ["it is not approved", None],
        ["it is not approved", None],
        [None, None],
    )
    assert pending(load_settings(str(project))) == [None, None]


def test_a_managed_hook_there_that_is_sent_from_here_is_pending_until_it_is_approved(there: Machine) -> None:
    place = there.files.on_this_machine("/etc/claude-code")
    place.mkdir(parents=True)
    content = stop_settings(RUN_HERE["http"], RUN_HERE["prompt"], command("true"))
    (place / "managed-settings.json").write_text(json.dumps(content))
    first = pending(there.load())
    there.approve_all()
    assert (first, pending(there.load())) == (
        ["it is not approved", "it is not approved", None],
        [None, None, None],
    )


def test_what_a_users_hook_runs_there_is_compared(there: Machine) -> None:
    write_settings(there.home, "turngate", stop_settings(command(f"{there.files.home}/check.sh")))
    script(there.home / "check.sh", OK)
    first = pending(there.load())
    (there.home / "check.sh").write_text("other")
    changed = f"{there.files.home}/check.sh was changed after it was approved"
    assert (first, pending(there.load())) == ([None], [changed])


def test_approvals_are_read_from_this_machine(there: Machine, state: Path) -> None:
    """A state folder at the same path there neither adds approvals nor hides those of this machine."""
    write_settings(there.project, "turngate", stop_hooks("check"))
    there.approve_all()
    copy = there.files.on_this_machine(state)
    shutil.copytree(state, copy)
    moved = state.rename(state.with_name("moved"))
    assert pending(there.load()) == ["it is not approved"]
    moved.rename(state)
    for path in copy.rglob("*.json"):
        path.write_text("damaged")
    assert (pending(there.load()), there.load().problems) == ([None], ())


def test_a_link_there_does_not_lead_the_approvals_astray(there: Machine, project: Path) -> None:
    """The project's path is resolved there: two names of one folder share their approvals."""
    write_settings(there.project, "turngate", stop_hooks("check"))
    there.approve_all()
    link = there.project.with_name("link")
    link.symlink_to(project)
    other = there.call(load_settings, f"{there.project_path[: -len(project.name)]}link")
    assert pending(other) == [None]


def test_variables_are_those_of_a_login_there(there: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHECK", "here")
    there.files.environ = {**there.files.environ, "CHECK": "there"}
    write_settings(there.project, "turngate", stop_hooks("$CHECK"))
    there.approve_all()
    monkeypatch.setenv("CHECK", "changed")
    same = pending(there.load())
    there.files.environ = {**there.files.environ, "CHECK": "changed"}
    assert (same, pending(there.load())) == (
        [None],
        ["$CHECK has another value than when it was approved"],
    )


def test_the_other_machine_can_neither_trust_its_hooks_nor_move_the_state(
    there: Machine, tmp_path: Path
) -> None:
    there.files.environ = {
        **there.files.environ,
        "TURNGATE_TRUST": "1",
        "TURNGATE_STATE": str(tmp_path / "other"),
    }
    write_settings(there.project, "turngate", stop_hooks("check"))
    assert pending(there.load()) == ["it is not approved"]
    there.approve_all()
    assert pending(there.load()) == [None]
    assert not (tmp_path / "other").exists()


def test_files_of_a_machine_without_a_name_are_not_approved(there: Machine) -> None:
    there.files.machine = ""
    with pytest.raises(ValueError, match="approved under its name"):
        there.call(Approvals, there.project_path, "/state")


def test_a_hook_that_was_changed_there_after_the_review_is_not_approved(there: Machine) -> None:
    path = script(there.project / ".mux" / "stop", OK)
    review = there.review()
    path.write_text("#!/bin/sh\nexit 2\n")
    with pytest.raises(UsageError, match=r"was changed while .* was reviewed; nothing was approved"):
        review.approve(review.hooks)


def test_a_plugin_that_is_given_is_found_there(there: Machine) -> None:
    hooks = there.project / "plugin" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "hooks.json").write_text(json.dumps(stop_hooks("check")))
    settings = there.call(load_reviewed, there.project_path, dialect="turngate", plugin_dirs=["plugin"])
    assert (commands_of(settings), pending(settings)) == (["check"], [None])


# What protects the user


KEYS = {"ANTHROPIC_API_KEY": "secret", "ANTHROPIC_BASE_URL": "https://mine.example"}


def test_keys_and_addresses_of_models_are_those_of_this_machine(there: Machine, home: Path) -> None:
    evil = {"ANTHROPIC_BASE_URL": "https://evil.example", "OPENAI_BASE_URL": "https://evil.example"}
    write_settings(home, "claude", {"env": KEYS})
    write_settings(there.home, "claude", {"env": {**evil, "OWN": "1"}})
    settings = there.load(trust=True)
    assert settings.environ_of_models({"HERE": "1"}) == {"HERE": "1", **KEYS}


def test_the_env_of_this_machine_does_not_reach_the_hooks_there(there: Machine, home: Path) -> None:
    write_settings(home, "claude", {"env": KEYS})
    write_settings(there.home, "claude", {"env": {"OWN": "1"}})
    assert there.load(trust=True).env == {"OWN": "1"}


def test_what_the_command_line_sets_counts_for_models_and_hooks(there: Machine) -> None:
    settings = there.load(extra='{"env": {"A": "1"}, "turngate": {"judge": "test:given"}}')
    assert (settings.env, settings.user_env, settings.judge) == ({"A": "1"}, {"A": "1"}, "test:given")


def test_the_home_folder_there_chooses_neither_model_nor_judge_nor_hard_limit(
    there: Machine, home: Path
) -> None:
    chosen = {"model": "evil:one", "judge": "evil:two", "hardLimit": 1000}
    write_settings(there.home, "turngate", {"turngate": chosen})
    own = there.load()
    write_settings(home, "turngate", {"turngate": {"model": "test:a", "judge": "test:b", "hardLimit": 20}})
    settings = there.load()
    assert (own.model, own.judge, own.hard_limit) == (None, None, 10)
    assert (settings.model, settings.judge, settings.hard_limit) == ("test:a", "test:b", 20)


def test_a_project_there_may_choose_its_model_as_one_here_may(there: Machine, home: Path) -> None:
    write_settings(home, "turngate", {"turngate": {"model": "test:a", "judge": "test:b"}})
    write_settings(there.project, "turngate", {"turngate": {"model": "test:c", "judge": "test:d"}})
    write_settings(there.home, "turngate", stop_hooks("own"))
    settings = there.load(trust=True)
    [rule] = settings.rules
    assert (settings.model, settings.judge) == ("test:c", "test:d")
    assert settings.guarded_for(rule) == {"judge": "test:b"}


def test_lists_of_urls_of_this_machine_stay_in_force(there: Machine, home: Path) -> None:
    def lists(urls: str, variables: str) -> dict[str, Any]:
        return {
            "allowedHttpHookUrls": [urls],
            "httpHookAllowedEnvVars": [variables],
            "turngate": {"allowedUrls": [urls]},
        }

    write_settings(there.home, "turngate", lists("https://there.example/*", "THERE"))
    write_settings(there.project, "turngate", lists("https://project.example/*", "PROJECT"))
    alone = there.load()
    write_settings(home, "turngate", lists("https://here.example/*", "HERE"))
    settings = there.load()
    narrowing = (
        AllowedUrls(("https://there.example/*",), "remote"),
        AllowedUrls(("https://project.example/*",), "project"),
    )
    assert (alone.http_hook_urls, alone.http_hook_variables, alone.allowed_urls) == (
        ("https://there.example/*", "https://project.example/*"),
        ("THERE", "PROJECT"),
        narrowing,
    )
    assert (settings.http_hook_urls, settings.http_hook_variables, settings.allowed_urls) == (
        ("https://here.example/*",),
        ("HERE",),
        (AllowedUrls(("https://here.example/*",), "user"), *narrowing),
    )


def test_managed_settings_of_this_machine_limit_the_hooks_there(there: Machine, managed: Path) -> None:
    managed.mkdir()
    content = {"allowedHttpHookUrls": [], "allowManagedHooksOnly": "yes", **stop_hooks("managed here")}
    (managed / "managed-settings.json").write_text(json.dumps(content))
    write_settings(there.home, "claude", {"allowedHttpHookUrls": ["*"], **stop_hooks("user")})
    settings = there.load()
    file = f"{managed}/managed-settings.json of this machine"
    assert (settings.http_hook_urls, settings.managed_only, commands_of(settings)) == ((), file, ["user"])
    assert [(problem.file, problem.field) for problem in settings.problems] == [
        (file, "allowManagedHooksOnly")
    ]


@pytest.mark.parametrize("folder", ["/etc/claude-code", "/Library/Application Support/ClaudeCode"])
def test_managed_hooks_of_the_other_machine_run_there(there: Machine, folder: str) -> None:
    place = there.files.on_this_machine(folder)
    place.mkdir(parents=True)
    content = {"env": {"ANTHROPIC_BASE_URL": "https://evil.example"}, **stop_hooks("policy")}
    (place / "managed-settings.json").write_text(json.dumps(content))
    settings = there.load()
    assert (commands_of(settings), pending(settings), settings.user_env) == (["policy"], [None], {})


def test_settings_of_this_machine_that_cannot_be_read_are_reported(there: Machine, home: Path) -> None:
    write_settings(home, "claude", {"hooks": {"Stop": 5}})
    path = home / ".turngate"
    path.mkdir()
    (path / "settings.json").write_text("{")
    problems = there.load().problems
    assert [problem.file for problem in problems] == ["~/.turngate/settings.json of this machine"]
    write_settings(home, "turngate", {"allowedHttpHookUrls": 5})
    assert there.load().problems == (
        Problem(
            file="~/.turngate/settings.json of this machine",
            field="allowedHttpHookUrls",
            message="is 5, expected a list of URL patterns: it allows nothing",
        ),
    )


# Agent types, slash commands, the system prompt


def test_agent_types_are_those_of_the_other_machine(there: Machine, project: Path) -> None:
    for folder, word in ((project, "here"), (there.project, "there")):
        agents = folder / ".turngate" / "agents"
        (agents / "nested").mkdir(parents=True)
        (agents / f"{word}.md").write_text(f"---\nname: {word}\n---\nWork {word}.")
        (agents / "nested" / "AGENT.md").write_text(f"---\nname: nested\n---\nWork {word}.")
        (agents / ".hidden.md").write_text("---\nname: hidden\n---\n")
    found, problems = there.call(load_agent_types, there.project_path)
    own = [(each.name, each.instructions) for each in found.values() if each not in BUILT_IN]
    assert (own, problems) == ([("nested", "Work there."), ("there", "Work there.")], [])


def test_hooks_of_agent_types_there_are_reviewed(there: Machine) -> None:
    write_settings(there.project, "turngate", stop_hooks("check"))
    [rule] = there.load().rules
    args = ([rule], there.project_path, "turngate")
    before = there.call(review_agent_hooks, *args)
    there.approve_all()
    after = there.call(review_agent_hooks, *args)
    assert ([each.pending for each in before], after[0].pending) == (["it is not approved"], None)


def test_slash_commands_are_those_of_the_other_machine(there: Machine, project: Path, home: Path) -> None:
    for folder, word in ((project, "here"), (home, "here"), (there.project, "there"), (there.home, "home")):
        commands = folder / ".claude" / "commands" / "a" / "b"
        commands.mkdir(parents=True)
        (commands / f"{word}.md").write_text(f"Work {word}.")
        (folder / ".claude" / "commands" / "note.txt").write_text("x")
    found = there.call(load_commands, there.project_path)
    assert [(each.qualified_name, each.text) for each in found] == [
        ("a:b:home", "Work home."),
        ("a:b:there", "Work there."),
    ]


def test_the_system_prompt_has_the_guide_of_the_other_machine(there: Machine, project: Path) -> None:
    (project / "AGENTS.md").write_text("here")
    (there.project / "AGENTS.md").write_text("there")
    outside = there.files.on_this_machine("/secret")
    outside.write_text("secret")
    (there.project / "CLAUDE.md").symlink_to("/secret")
    assert there.call(read_guides, there.project_path) == ("The project's AGENTS.md:\nthere", "")


def test_a_turn_goes_on_with_the_guide_that_was_read_last(there: Machine) -> None:
    """Its tools report the lost connection to the agent, and a notice reports the guide to the user."""
    (there.project / "AGENTS.md").write_text("be kind")
    reads = [{"name": "Read", "input": {"file_path": "a.txt"}}]
    model = ScriptedModel({"main": ["one", {"tools": reads}, "two", "three"]})
    notices: list[str] = []

    async def turns() -> list[str]:
        world = World(
            LocalShell(), there.project_path, environ=there.files.environ, remote=RemoteMachine(there.files)
        )
        on_event = partial(_keep_notice, notices)
        async with await Session.in_workspace(world, model, Settings(), on_event=on_event) as session:
            outcomes = [(await session.send("one")).outcome]
            there.files.limit = 0
            outcomes.append((await session.send("two")).outcome)
            there.files.limit = None
            (there.project / "AGENTS.md").write_text("be fast")
            return [*outcomes, (await session.send("three")).outcome]

    assert asyncio.run(turns()) == ["completed"] * 3
    guides = [request.system.rpartition("\n")[2] for request in model.requests]
    assert guides == ["be kind", "be kind", "be kind", "be fast"]
    assert notices == [
        "AGENTS.md and CLAUDE.md of the project could not be read again: the connection to build was lost"
    ]
    [answers] = [each for each in model.requests[2].messages if isinstance(each, ToolResults)]
    assert (
        answers.results[0].content
        == f"{there.project_path}/a.txt cannot be used: the connection to build was lost"
    )


def _keep_notice(notices: list[str], event: SessionEvent) -> None:
    if isinstance(event, Notice):
        notices.append(event.text)


def test_the_folders_of_tools_are_resolved_when_the_machine_answers_again(there: Machine) -> None:
    folder = there.project.with_name("real")
    there.project.rename(folder)
    there.project.symlink_to(folder.name)
    world = World(
        LocalShell(), there.project_path, environ=there.files.environ, remote=RemoteMachine(there.files)
    )
    context = ToolContext(there.project_path, {}, world=world)
    there.files.limit = 0
    with pytest.raises(MachineUnreachable):
        asyncio.run(context.prepare())
    there.files.limit = None
    asyncio.run(context.prepare())
    assert context.allowed_folders == (f"{os.path.dirname(there.project_path)}/real",)


def test_a_session_is_not_opened_on_a_machine_that_does_not_answer(there: Machine) -> None:
    there.files.limit = 0
    world = World(
        LocalShell(), there.project_path, environ=there.files.environ, remote=RemoteMachine(there.files)
    )
    with pytest.raises(UsageError) as raised:
        asyncio.run(Session.in_workspace(world, ScriptedModel({}), Settings()))
    assert str(raised.value) == LOST


def test_approvals_are_not_bound_to_a_folder_that_could_not_be_read(there: Machine) -> None:
    there.files.limit = 0
    with pytest.raises(MachineUnreachable):
        there.call(Approvals, there.project_path, "/state")


def test_a_gate_with_a_path_that_cannot_be_resolved_is_not_skipped(there: Machine) -> None:
    (there.project / "link").symlink_to("src")
    (there.project / "src").mkdir()
    rules = [
        Rule("PreToolUse", CommandHook("exit 2", condition=condition))
        for condition in ("Edit(src/**)", "Edit(docs/**)", "Bash(git *)")
    ]
    world = World(
        LocalShell(), str(there.project), environ=there.files.environ, remote=RemoteMachine(there.files)
    )
    args = {"file_path": f"{there.project_path}/link/a"}
    event = PreToolUse(
        session_id="s-1", cwd=there.project_path, tool_name="Edit", tool_input=args, tool_use_id="1"
    )

    def blocking() -> list[int]:
        runs = asyncio.run(ask_hooks(event, Settings(rules=tuple(rules)), world)).runs
        return [number for number, run in enumerate(runs) if isinstance(run.decision, Block)]

    known = blocking()
    there.files.limit = 0
    assert (known, blocking()) == ([0], [0, 1])


# Files


def test_paths_are_resolved_where_the_files_are(there: Machine, project: Path) -> None:
    (there.project / "link").symlink_to("/etc")
    there.files.on_this_machine("/etc").mkdir()
    path = f"{there.project_path}/link"
    files = there.files
    found = (files.realpath(path), files.locate(path), files.locate("~/"), real_path(path))
    assert found == ("/etc", "/etc/", f"{there.files.home}/", path)


class OddLink(PrefixedFiles):
    """A machine whose every link leads to a path that no system has."""

    def readlink(self, path: str) -> str:  # noqa: ARG002
        return "a\0b"


def test_a_link_to_a_null_character_is_a_path_that_cannot_be_resolved(tmp_path: Path) -> None:
    files = OddLink(tmp_path, "/home/me")
    assert files.realpath("/a/b") == "/a/b"


def test_patterns_and_folders_are_read_as_on_this_machine(there: Machine) -> None:
    for name in ("a/x.py", "a/.y.py", "b/x.py", "b/c/z.py", ".d/x.py", "[e]/x.py"):
        path = there.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (there.project / "f").symlink_to("b")
    patterns = (
        "*",
        "*/x.py",
        "*/*.py",
        "?/*",
        "a/.*",
        "*/",
        "[[]e]/*",
        "a/gone",
        "gone/*",
        "[ab]/x.py",
        "b/*/",
    )
    for pattern in patterns:
        found = list(there.files.match(f"{there.project_path}/{pattern}"))
        expected = LOCAL.match(f"{there.project}/{pattern}")
        assert sorted(f"{there.files.root}{path}" for path in found) == sorted(expected), pattern
    walked = [(path, set(one), set(two)) for path, one, two in there.files.walk(there.project_path)]
    expected_walk = [(path, set(one), set(two)) for path, one, two in os.walk(there.project)]
    assert sorted((f"{there.files.root}{path}", one, two) for path, one, two in walked) == sorted(
        expected_walk
    )


def test_a_file_there_is_known_by_its_content(there: Machine) -> None:
    file = there.project / "program"
    file.write_bytes(b"x" * 2_000_000)
    recorded = CoveredFiles(there.files, there.project_path).ids({"program": None})
    times = file.stat()
    same = compare_files(recorded, CoveredFiles(there.files, there.project_path))
    file.write_bytes(b"y" * 2_000_000)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # not by times, which a program can set
    changed = compare_files(recorded, CoveredFiles(there.files, there.project_path))
    assert (same, changed) == (None, "program was changed")
