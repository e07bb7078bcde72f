"""Hooks in the front matter of agent types: which run, for whom, and what is said about the others."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.kinds import LISTED_SETTINGS_KINDS
from tests.support.subagents import task
from turngate.agent.session import Session
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import CommandHook, hook_text
from turngate.core.settings import Rule
from turngate.extra_install import install_command
from turngate.models.scripted import ScriptedModel
from turngate.project.files import LOCAL
from turngate.settings.agent_types import agent_type_rules, load_agent_types
from turngate.settings.front_matter import NotUnderstood, parse_nested
from turngate.trust.load import load_settings

HEAD = "---\nname: coder\ndescription: writes code\nhooks:\n"
HOOKS = """\
  PreToolUse:
    - matcher: "Bash"
      hooks:
        - type: command
          command: echo before >> seen
          timeout: 5
  Stop:
    - matcher: never
      hooks:
        - type: command
          command: 'cat >> stops'
"""
BODY = "---\nYou write code.\n"


def write_agent(folder: Path, hooks: str = HOOKS, family: str = "claude", name: str = "coder") -> str:
    path = folder / f".{family}" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD.replace("coder", name) + hooks + BODY)
    return str(path)


def rules_of(project: Path, dialect: Dialect = CLAUDE, *, plugins: Any = ()) -> Any:
    agent_types, _ = load_agent_types(str(project), plugins, files=LOCAL)
    rules, not_loaded, notices = agent_type_rules(agent_types.values(), dialect)
    return rules, [*map(str, not_loaded), *notices]


def turn(project: Path, dialect: str, kind: str = "coder", **options: Any) -> TurnResult:
    bash = {"tool": "Bash", "input": {"command": "echo working"}}
    wait = {"run_in_background": False}
    model = ScriptedModel(
        {"main": [task("SUBAGENT work", subagent_type=kind, **wait), bash, "done"], "sub": [bash, "report"]}
    )

    async def send() -> TurnResult:
        async with Session(
            str(project), model, dialect=dialect, allow=["Task", "Bash"], **options
        ) as session:
            return await session.send("go")

    return asyncio.run(send())


# Which hooks


def test_hooks_of_a_user_become_rules_for_subagents_of_that_type(project: Path, home: Path) -> None:
    file = write_agent(home)
    common: dict[str, Any] = {"source": "user", "file": file, "family": "claude", "index": "[0].hooks[0]"}
    before = CommandHook("echo before >> seen", timeout=5.0)
    assert rules_of(project) == (
        (
            Rule("PreToolUse", before, "Bash", agent_type="coder", **common),
            Rule("SubagentStop", CommandHook("cat >> stops"), None, agent_type="coder", **common),
        ),
        [],
    )


def test_hooks_of_a_plugins_agent_type_are_not_run(project: Path, tmp_path: Path) -> None:
    path = tmp_path / "plugin" / "agents" / "coder" / "AGENT.md"
    path.parent.mkdir(parents=True)
    path.write_text(HEAD + HOOKS + BODY)
    found = rules_of(project, plugins=[str(tmp_path / "plugin")])
    assert found == ((), [f"{path} has hooks, which are not run: a plugin's agent type has none"])


@pytest.mark.parametrize(
    ("dialect", "families"),
    [(TURNGATE, {"claude", "turngate"}), (CLAUDE, {"claude"}), (MUX, set())],
    ids=["turngate", "claude", "mux"],
)
def test_only_the_families_of_the_dialect_count(
    project: Path, home: Path, dialect: Dialect, families: set[str]
) -> None:
    for family in ("claude", "turngate"):
        write_agent(home, family=family, name=family)
    assert {rule.family for rule in rules_of(project, dialect)[0]} == families


def test_a_mistake_in_the_hooks_is_named(project: Path, home: Path) -> None:
    file = write_agent(home, '  Stop:\n    - hooks:\n        - type: shell\n          command: "x"\n')
    rules, problems = rules_of(project)
    assert (rules, problems) == (
        (),
        [
            f'{file}: Stop[0].hooks[0].type: is "shell", expected one of {LISTED_SETTINGS_KINDS}',
        ],
    )


def test_a_line_that_is_not_understood_is_named_and_no_hook_of_the_file_runs(
    project: Path, home: Path
) -> None:
    file = write_agent(home, HOOKS + "  SubagentStop: *anchor\n")
    assert rules_of(project) == (
        (),
        [f"{file}: hooks: has a line that is not understood: SubagentStop: *anchor; none of its hooks run"],
    )


@pytest.mark.parametrize(
    "hooks",
    [
        "  Stop: " + "[" * 40_000 + "\n",
        *("  Stop: " + "[" * depth + "]" * depth + "\n" for depth in (60, 500, 950, 40_000)),
        *("".join(" " * n + "Stop:\n" for n in range(2, depth)) for depth in (60, 420)),
    ],
    ids=["unfinished", "60", "500", "950", "40000", "60 keys", "420 keys"],
)
def test_hooks_that_are_nested_too_deeply_are_not_understood(project: Path, home: Path, hooks: str) -> None:
    file = write_agent(home, hooks)
    rules, [problem] = rules_of(project)
    assert rules == ()
    assert problem.startswith(f"{file}: hooks: has a line that is not understood: ")
    assert problem.endswith("; none of its hooks run")
    assert len(problem) < len(file) + 200


# Who they run for


@pytest.mark.parametrize("dialect", ["claude", "turngate"])
def test_they_run_in_subagents_of_that_type_and_nowhere_else(project: Path, home: Path, dialect: str) -> None:
    write_agent(home)
    turn(project, dialect)
    assert (project / "seen").read_text() == "before\n"
    assert '"hook_event_name":"SubagentStop"' in (project / "stops").read_text()
    assert len((project / "stops").read_text().splitlines()) == 1


def test_they_do_not_run_for_another_type(project: Path, home: Path) -> None:
    write_agent(home)
    turn(project, "claude", "general-purpose")
    assert not (project / "seen").exists()
    assert not (project / "stops").exists()


def test_a_stop_hook_there_can_redirect_the_subagent(project: Path, home: Path) -> None:
    once = "test -e asked || { touch asked; echo again >&2; exit 2; }"
    write_agent(home, f'  Stop:\n    - hooks:\n        - type: command\n          command: "{once}"\n')
    turn(project, "claude")
    assert (project / "asked").exists()


def test_a_projects_hooks_there_run_only_if_they_are_approved(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    write_agent(project)
    result = turn(project, "claude")
    assert [(run.hook, run.said) for run in result.unenforced] == [
        ("echo before >> seen", "it is not approved"),
        ("cat >> stops", "it is not approved"),
    ]
    assert not (project / "seen").exists()
    assert turn(project, "claude", trust=True).unenforced == ()
    assert (project / "seen").read_text() == "before\n"


def test_a_session_names_the_first_agent_files_with_problems_and_counts_the_others(project: Path) -> None:
    folder = project / ".claude" / "agents"
    folder.mkdir(parents=True)
    for number in range(8):
        (folder / f"a{number}.md").write_text("Work.")
    result = turn(project, "claude")
    unnamed = "has no front matter; the agent type is named after the file"
    more = "3 more notices about agent types are not shown; `turngate check` names files that are not loaded"
    assert result.notices == (
        *(f"{folder}/a{number}.md {unnamed}" for number in range(5)),
        more,
    )


def test_hooks_that_are_not_understood_count_as_not_loaded(project: Path, home: Path) -> None:
    file = write_agent(home, "  Stop: *x\n")
    notice = f"{file}: hooks: has a line that is not understood: Stop: *x; none of its hooks run"
    for strict in (True, False):
        result = turn(project, "claude", strict=strict)
        assert (result.success, result.notices) == (not strict, (notice,))


def test_disable_all_hooks_reaches_them(project: Path, home: Path) -> None:
    write_agent(home)
    write_settings(project, "claude", {"disableAllHooks": True})
    turn(project, "claude")
    assert not (project / "seen").exists()


def test_settings_without_such_hooks_are_unchanged(project: Path) -> None:
    assert rules_of(project) == ((), [])
    assert [hook_text(rule.hook) for rule in load_settings(str(project)).rules] == []


# The values of a front matter


def indented(text: str) -> list[str]:
    """The lines of a key with this value."""
    return ["", *(f"  {line}" for line in text.splitlines())]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 1", {"a": 1}),
        ("a: 1.5\nb: true\nc: null\nd: ~\ne: -3", {"a": 1.5, "b": True, "c": None, "d": None, "e": -3}),
        ("a: |\n  one\n  two\nb: >-\n  one\n  two", {"a": "one\ntwo\n", "b": "one two"}),
        ("a: {b: 1, c: [d]}", {"a": {"b": 1, "c": ["d"]}}),
        ("a: yes\nb: 2026-01-02\nc: 0x1F", {"a": "yes", "b": "2026-01-02", "c": "0x1F"}),
        ("a: text # a comment", {"a": "text"}),
        ("a: " + "9" * 5000, {"a": "9" * 5000}),
        ("a: echo x#y", {"a": "echo x#y"}),
        ('a: "quoted \\n \\" text"', {"a": 'quoted \n " text'}),
        ("a: 'it''s # here'", {"a": "it's # here"}),
        ('a: ["x", 1]', {"a": ["x", 1]}),
        ('{"Stop": []}', {"Stop": []}),
        ("'a b': 1\n\"c\": 2", {"a b": 1, "c": 2}),
        ("- a\n- 2", ["a", 2]),
        ("-\n  a: 1\n- b: 2\n  c: 3", [{"a": 1}, {"b": 2, "c": 3}]),
        ("a:\n- x\n- y\nb: 1", {"a": ["x", "y"], "b": 1}),
        ("a:\n  b:\n    - c: 1\n      d:\n        - e\n  f: 2", {"a": {"b": [{"c": 1, "d": ["e"]}], "f": 2}}),
        ("# a comment\na:\n\n  # another\n  b: 1", {"a": {"b": 1}}),
    ],
)
def test_nested_values_are_those_of_json(text: str, value: Any) -> None:
    assert parse_nested(indented(text)) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: &anchor x\nb: *anchor",
        "a: &anchor [*anchor]",
        "a: plain text: with colon",
        "a: *anchor",
        "a: !tag x",
        "!!python/object:os.system {}",
        "? [a]\n: 1\n? \"['a']\"\n: 2",
        'a: "unfinished',
        "a: 'unfinished",
        "a: 1\n  b: 2",
        "a: 1\na: 2",
        "a:\n\tb: 1",
        "- a\nb: 1",
        "\x00",
    ],
)
def test_anything_else_is_an_error_and_not_a_guess(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse_nested(indented(text))


def test_without_pyyaml_no_hook_of_the_file_runs_and_the_problem_says_what_to_install(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = write_agent(home)
    problem = f"needs PyYAML; install it with: {install_command('agent')}; none of its hooks run"
    assert rules_of(project) == ((), [f"{file}: hooks: {problem}"])
