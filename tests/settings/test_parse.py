"""The JSON of one settings file: what each key becomes, and what is said about a value that is no good."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import stop_hooks
from tests.support.kinds import LISTED_SETTINGS_KINDS
from turngate.core.constants import EVENTS, FOREIGN_EVENTS, JUDGED_EVENTS, STOP_EVENTS, TEAM_EVENTS
from turngate.core.dialect import CLAUDE, DIALECTS, MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import AgentHook, CommandHook, GateHook, Hook, HttpHook, PromptHook
from turngate.core.settings import Layer, Problem, Rule
from turngate.core.text import describe_json
from turngate.settings import key_table as keys
from turngate.settings.parse import describe_bad_type, parse_layer

FILE = "s.json"
MAKE: Mapping[str, Any] = {"type": "command", "command": "make"}
ASK: Mapping[str, Any] = {"type": "prompt", "prompt": "done?"}
WORK: Mapping[str, Any] = {"type": "agent", "prompt": "look"}
GATE: Mapping[str, Any] = {"type": "gate", "command": "make"}
POST: Mapping[str, Any] = {"type": "http", "url": "http://localhost/"}

GROUP_HINT = 'a group looks like {"hooks": [{"type": "command", "command": "…"}]}'
KNOWN_EVENTS = f"known events: {', '.join(EVENTS)}"

UserMessage = (
    tuple[str, str] | tuple[str, str, str]
)  # severity, the problem as text, and its hint if it has one


def read(
    value: Any, *, family: str = "turngate", level: str = "project", dialect: Dialect = TURNGATE
) -> Layer:
    return parse_layer(value, file=FILE, level=level, family=family, dialect=dialect)


def layer(*rules: Rule, **fields: Any) -> Layer:
    return Layer(**{"file": FILE, "level": "project", "family": "turngate", "rules": rules, **fields})


def at_stop(*entries: Any, event: str = "Stop", **group: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": list(entries), **group}]}}


def rule(hook: Hook, number: int = 0, *, event: str = "Stop", matcher: str | None = None) -> Rule:
    return Rule(event, hook, matcher, "project", FILE, "turngate", f"[0].hooks[{number}]")


def said(problems: tuple[Problem, ...]) -> list[UserMessage]:
    return [(p.severity, str(p)) if p.hint is None else (p.severity, str(p), p.hint) for p in problems]


# What is good

GOOD: Mapping[str, tuple[Mapping[str, Any], Hook]] = {
    "command": (MAKE, CommandHook("make")),
    "command, args": ({**MAKE, "args": ["-k", ""]}, CommandHook("make", args=("-k", ""))),
    "command, no args": ({**MAKE, "args": []}, CommandHook("make", args=())),
    "command, shell": ({**MAKE, "shell": "bash"}, CommandHook("make", shell="bash")),
    "command, shell sh": ({**MAKE, "shell": "sh"}, CommandHook("make", shell="sh")),
    "command, clean env": ({**MAKE, "env": "clean"}, CommandHook("make", pass_env=())),
    "command, passEnv": ({**MAKE, "passEnv": ["A_1"]}, CommandHook("make", pass_env=("A_1",))),
    "command, clean env with passEnv": (
        {**MAKE, "env": "clean", "passEnv": ["A"]},
        CommandHook("make", pass_env=("A",)),
    ),
    "command, env with passEnv": (
        {**MAKE, "env": {"A": "1"}, "passEnv": []},
        CommandHook("make", env={"A": "1"}, pass_env=()),
    ),
    "command, env": (
        {**MAKE, "env": {"A_1": "é", "_b": ""}},
        CommandHook("make", env={"A_1": "é", "_b": ""}),
    ),
    "command, timeout": ({**MAKE, "timeout": 30}, CommandHook("make", timeout=30.0)),
    "command, timeout 0.5": ({**MAKE, "timeout": 0.5}, CommandHook("make", timeout=0.5)),
    "command, timeout 999": ({**MAKE, "timeout": 999}, CommandHook("make", timeout=999.0)),
    "command, id": ({**MAKE, "id": "build"}, CommandHook("make", id="build")),
    "command, enabled": ({**MAKE, "enabled": False}, CommandHook("make", enabled=False)),
    "command, mode": ({**MAKE, "mode": "observe"}, CommandHook("make", mode="observe")),
    "command, mode gate": ({**MAKE, "mode": "gate"}, CommandHook("make", mode="gate")),
    "command, blocking": ({**MAKE, "blocking": True}, CommandHook("make", blocking=True)),
    "command, onFailure": ({**MAKE, "onFailure": "block"}, CommandHook("make", on_failure="block")),
    "prompt, continueOnBlock": (
        {**ASK, "continueOnBlock": True},
        PromptHook("done?", continue_on_block=True),
    ),
    "command, shell powershell": ({**MAKE, "shell": "powershell"}, CommandHook("make", shell="powershell")),
    "command, outcomes": (
        {**MAKE, "outcomes": ["ok", "error", "timeout"]},
        CommandHook("make", outcomes=("ok", "error", "timeout")),
    ),
    "command, async": ({**MAKE, "async": True}, CommandHook("make", detached=True)),
    "command, asyncRewake": (
        {**MAKE, "async": True, "asyncRewake": True},
        CommandHook("make", detached=True, rewake=True),
    ),
    "command, if": ({**MAKE, "if": "Bash(git *)"}, CommandHook("make", condition="Bash(git *)")),
    "command, statusMessage": ({**MAKE, "statusMessage": ""}, CommandHook("make", status_message="")),
    "prompt": (ASK, PromptHook("done?")),
    "prompt, model": ({**ASK, "model": "haiku"}, PromptHook("done?", model="haiku")),
    "prompt, transcript": ({**ASK, "transcript": "full"}, PromptHook("done?", transcript="full")),
    "agent": (WORK, AgentHook("look")),
    "agent, model": ({**WORK, "model": "haiku"}, AgentHook("look", model="haiku")),
    "gate": (GATE, GateHook(command="make")),
    "gate, gate": ({**GATE, "gate": "command"}, GateHook("command", "make")),
    "gate, args": ({**GATE, "args": ["-k"]}, GateHook(command="make", args=("-k",))),
    "gate, options": ({**GATE, "options": {}}, GateHook(command="make")),
    "gate, strict": ({**GATE, "strict": True}, GateHook(command="make", strict=True)),
    "gate, env": ({**GATE, "env": {"A": "1"}}, GateHook(command="make", env={"A": "1"})),
    "gate, clean env": ({**GATE, "env": "clean"}, GateHook(command="make", pass_env=())),
    "gate, shell": ({**GATE, "shell": "bash"}, GateHook(command="make", shell="bash")),
    "http": (POST, HttpHook("http://localhost/")),
    "http, headers": (
        {**POST, "headers": {"X-Key": "$KEY"}},
        HttpHook("http://localhost/", headers={"X-Key": "$KEY"}),
    ),
    "http, allowedEnvVars": (
        {**POST, "allowedEnvVars": ["KEY"]},
        HttpHook("http://localhost/", allowed_env_vars=("KEY",)),
    ),
}


SHOWS: Mapping[str, tuple[str, ...]] = {
    "command": ("S0-13", "S0-16", "S0-18"),
    "command, timeout": ("S0-13", "S0-16"),
    "command, timeout 0.5": ("C-01",),
}


@pytest.mark.parametrize(
    ("entry", "hook"),
    [pytest.param(*row, id=name, marks=pytest.mark.req(*SHOWS.get(name, ()))) for name, row in GOOD.items()],
)
def test_each_key_of_a_hook_becomes_a_value(entry: Mapping[str, Any], hook: Hook) -> None:
    assert read(at_stop(entry)) == layer(rule(hook))


COMMON: Mapping[str, Any] = {
    "timeout": 5,
    "id": "x",
    "enabled": False,
    "mode": "observe",
    "blocking": True,
    "outcomes": ["error"],
    "async": True,
    "asyncRewake": True,
    "if": "Bash",
    "statusMessage": "…",
    "continueOnBlock": True,
}
COMMON_FIELDS: Mapping[str, Any] = {
    "timeout": 5.0,
    "id": "x",
    "enabled": False,
    "mode": "observe",
    "blocking": True,
    "outcomes": ("error",),
    "detached": True,
    "rewake": True,
    "condition": "Bash",
    "status_message": "…",
    "continue_on_block": True,
}


@pytest.mark.parametrize(
    ("entry", "hook"),
    [
        (MAKE, CommandHook("make", **COMMON_FIELDS)),
        (ASK, PromptHook("done?", **COMMON_FIELDS)),
        (WORK, AgentHook("look", **COMMON_FIELDS)),
        (POST, HttpHook("http://localhost/", **COMMON_FIELDS)),
        (GATE, GateHook(command="make", **COMMON_FIELDS)),
    ],
    ids=["command", "prompt", "agent", "http", "gate"],
)
def test_every_hook_kind_has_the_common_keys(entry: Mapping[str, Any], hook: Hook) -> None:
    assert read(at_stop({**entry, **COMMON})) == layer(rule(hook))


@pytest.mark.req("S0-03")
@pytest.mark.parametrize("event", EVENTS)
def test_command_hooks_are_read_for_every_event(event: str) -> None:
    assert read(at_stop(MAKE, event=event)) == layer(rule(CommandHook("make"), event=event))


@pytest.mark.parametrize("event", STOP_EVENTS)
def test_prompt_and_agent_hooks_are_read_for_both_stops(event: str) -> None:
    hooks = (rule(PromptHook("done?"), event=event), rule(AgentHook("look"), 1, event=event))
    assert read(at_stop(ASK, WORK, event=event)) == layer(*hooks)


@pytest.mark.req("S0-13")
def test_groups_and_hooks_keep_their_order_and_know_their_place() -> None:
    first = {"matcher": "a", "hooks": [stop_hook("1"), stop_hook("2")]}
    second = {"hooks": [stop_hook("3")]}
    assert read({"hooks": {"SubagentStop": [first, {"hooks": []}, second]}}).rules == (
        Rule("SubagentStop", CommandHook("1"), "a", "project", FILE, "turngate", "[0].hooks[0]"),
        Rule("SubagentStop", CommandHook("2"), "a", "project", FILE, "turngate", "[0].hooks[1]"),
        Rule("SubagentStop", CommandHook("3"), None, "project", FILE, "turngate", "[2].hooks[0]"),
    )


def stop_hook(command: str) -> dict[str, Any]:
    return {"type": "command", "command": command}


@pytest.mark.req("S0-18", "S3-30")
@pytest.mark.parametrize("matcher", [None, "", "*"])
@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "PreToolUse"])
def test_a_matcher_that_fits_everything_is_fine_on_every_event(event: str, matcher: str | None) -> None:
    found = read(at_stop(MAKE, event=event, matcher=matcher))
    assert found == layer(rule(CommandHook("make"), event=event, matcher=matcher))


@pytest.mark.req("S0-62")
@pytest.mark.parametrize(
    "value",
    [
        {},
        {"hooks": {}},
        {"hooks": None},
        {"hooks": {"Stop": []}},
        {"hooks": {"Stop": [], "SubagentStop": []}},
        {"hooks": {"Stop": [{"hooks": []}]}},
        {"disableAllHooks": None},
        {"turngate": {}},
        {"env": {}},
        {"agents": {"defaults": {}}},
        {"$schema": "https://example.com/s.json"},
    ],
    ids=str,
)
def test_what_is_absent_or_empty_is_not_a_mistake(value: Any) -> None:
    assert read(value) == layer()


@pytest.mark.parametrize("switch", [True, False])
def test_the_switch_for_all_hooks_is_read(switch: bool) -> None:
    assert read({"disableAllHooks": switch}) == layer(disable_all=switch)


SCALARS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "limit": ({"limit": 5}, {"limit": 5}),
    "limit 0": ({"limit": 0}, {"limit": 0}),
    "hardLimit": ({"hardLimit": 20}, {"hard_limit": 20}),
    "childrenAtOnce": ({"childrenAtOnce": 2}, {"children_at_once": 2}),
    "childrenDepth": ({"childrenDepth": 0}, {"children_depth": 0}),
    "childSeconds": ({"childSeconds": 5}, {"child_seconds": 5.0}),
    "noReviseAfterSideEffects": (
        {"noReviseAfterSideEffects": True},
        {"no_revise_after_side_effects": True},
    ),
    "announceChildren": ({"announceChildren": False}, {"announce_children": False}),
    "whenUserPending": ({"whenUserPending": "run"}, {"when_user_pending": "run"}),
    "order": ({"order": "sequential"}, {"order": {"*": "sequential"}}),
    "order per event": (
        {"order": {"Stop": "first_block", "SubagentStop": "parallel"}},
        {"order": {"Stop": "first_block", "SubagentStop": "parallel"}},
    ),
    "mode": ({"mode": "observe"}, {"mode": {"*": "observe"}}),
    "mode per event": ({"mode": {"SubagentStop": "gate"}}, {"mode": {"SubagentStop": "gate"}}),
    "payload": ({"payload": "strict"}, {"payload": "strict"}),
    "defaults by kind": (
        {"defaults": {"command": 5, "prompt": 0.5, "callback": 2}},
        {"timeouts": {("*", "command"): 5.0, ("*", "prompt"): 0.5, ("*", "callback"): 2.0}},
    ),
    "defaults by event": ({"defaults": {"Stop": 90}}, {"timeouts": {("Stop", "*"): 90.0}}),
    "defaults by kind in an event": (
        {"defaults": {"Stop": {"command": 90, "http": 1}, "agent": 7}},
        {"timeouts": {("Stop", "command"): 90.0, ("Stop", "http"): 1.0, ("*", "agent"): 7.0}},
    ),
    "stopBudget": ({"stopBudget": 120}, {"stop_budget": 120.0}),
    "model": ({"model": "anthropic:opus"}, {"model": "anthropic:opus"}),
    "judge": ({"judge": "anthropic:haiku"}, {"judge": "anthropic:haiku"}),
    "env": ({"env": "clean"}, {"pass_env": ()}),
    "passEnv": ({"passEnv": ["A", "B"]}, {"pass_env": ("A", "B")}),
    "passEnv and env": ({"passEnv": ["A"], "env": "clean"}, {"pass_env": ("A",)}),
    "env and passEnv": ({"env": "clean", "passEnv": ["A"]}, {"pass_env": ("A",)}),
    "retentionDays": ({"retentionDays": 7}, {"retention_days": 7.0}),
    "plugins": ({"plugins": ["git"]}, {"plugins": ("git",)}),
    "no plugins": ({"plugins": []}, {"plugins": ()}),
    "pluginDirs": ({"pluginDirs": ["a", "b"]}, {"plugin_dirs": ("a", "b")}),
    "allowedUrls": (
        {"allowedUrls": ["https://a/", "*.b"]},
        {"allowed_urls": ("https://a/", "*.b")},
    ),
}


@pytest.mark.req("C-02")
@pytest.mark.parametrize(("section", "scalars"), SCALARS.values(), ids=SCALARS)
def test_each_key_of_the_turngate_section_becomes_a_value(
    section: Mapping[str, Any], scalars: Mapping[str, Any]
) -> None:
    assert read({"turngate": section}) == layer(scalars=scalars)


@pytest.mark.req("S4-27")
@pytest.mark.parametrize("limit", [0, 7])
def test_the_limit_of_steer_restarts_is_read(limit: int) -> None:
    value = {"agents": {"defaults": {"subagents": {"maxSteerRestarts": limit}}}}
    assert read(value) == layer(scalars={"child_limit": limit})


@pytest.mark.req("X-33")
def test_two_hundred_variables_of_eight_thousand_characters_are_taken() -> None:
    env = {f"V{number}": "x" * 8_000 for number in range(200)}
    assert read({"env": env}) == layer(env=env)
    assert read(at_stop({**MAKE, "env": env})) == layer(rule(CommandHook("make", env=env)))


# What is bad

TIMEOUT = "s.json: Stop[0].hooks[0].timeout"
LEFT_OUT = "expected a number of seconds above 0: the hook is left out"
TOO_LARGE = "expected at most 1,000,000,000 seconds: the hook is left out"

# Nothing of the file is left.
BAD_SHAPES: Mapping[str, tuple[Any, list[UserMessage]]] = {
    "a number": (5, [("error", "s.json: the file holds 5, expected an object", 'begin with {"hooks": {…}}')]),
    "a list": (
        [],
        [("error", "s.json: the file holds a list, expected an object", 'begin with {"hooks": {…}}')],
    ),
    "null": (
        None,
        [("error", "s.json: the file holds null, expected an object", 'begin with {"hooks": {…}}')],
    ),
    "hooks a list": ({"hooks": []}, [("error", "s.json: hooks: is a list, expected an object of events")]),
    "hooks a text": ({"hooks": "x"}, [("error", 's.json: hooks: is "x", expected an object of events')]),
    "event an object": (
        {"hooks": {"Stop": {"hooks": [MAKE]}}},
        [("error", "s.json: Stop: is an object, expected a list of groups", GROUP_HINT)],
    ),
    "event null": (
        {"hooks": {"SubagentStop": None}},
        [("error", "s.json: SubagentStop: is null, expected a list of groups", GROUP_HINT)],
    ),
    "event a command": (
        {"hooks": {"Stop": "make"}},
        [("error", 's.json: Stop: is "make", expected a list of groups', GROUP_HINT)],
    ),
    "group a command": (
        {"hooks": {"Stop": ["make"]}},
        [("error", 's.json: Stop[0]: is "make", expected an object', GROUP_HINT)],
    ),
    "group null": (
        {"hooks": {"Stop": [None]}},
        [("error", "s.json: Stop[0]: is null, expected an object", GROUP_HINT)],
    ),
    "flat entry": (
        {"hooks": {"Stop": [MAKE]}},
        [
            (
                "error",
                "s.json: Stop[0]: is a hook, expected a group with an inner `hooks` list",
                GROUP_HINT,
            )
        ],
    ),
    "inner hooks null": (
        {"hooks": {"Stop": [{"hooks": None}]}},
        [("error", "s.json: Stop[0].hooks: is null, expected a list of hooks", GROUP_HINT)],
    ),
    "inner hooks an object": (
        {"hooks": {"Stop": [{"hooks": MAKE}]}},
        [("error", "s.json: Stop[0].hooks: is an object, expected a list of hooks", GROUP_HINT)],
    ),
    "matcher a number": (
        at_stop(MAKE, matcher=5),
        [("error", "s.json: Stop[0].matcher: is 5, expected a string: the group is left out")],
    ),
    "matcher a list": (
        at_stop(MAKE, event="SubagentStop", matcher=["Explore"]),
        [("error", "s.json: SubagentStop[0].matcher: is a list, expected a string: the group is left out")],
    ),
    "event in lower case": (
        at_stop(MAKE, event="stop"),
        [("warning", "s.json: stop: is not a known event, so its hooks never run", 'did you mean "Stop"?')],
    ),
    "event as mux names its script": (
        at_stop(MAKE, event="subagent_stop"),
        [
            (
                "warning",
                "s.json: subagent_stop: is not a known event, so its hooks never run",
                'did you mean "SubagentStop"?',
            )
        ],
    ),
    "event unheard of": (
        at_stop(MAKE, event="Foo"),
        [("warning", "s.json: Foo: is not a known event, so its hooks never run", KNOWN_EVENTS)],
    ),
    "event that no file could hold": (
        at_stop(MAKE, event="\ud800"),
        [("warning", r"s.json: \ud800: is not a known event, so its hooks never run", KNOWN_EVENTS)],
    ),
    "event at the top": (
        {"Stop": [{"hooks": [MAKE]}]},
        [
            (
                "error",
                "s.json: Stop: is at the top of the file, so its hooks never run",
                'put it inside "hooks": {"Stop": […]}',
            )
        ],
    ),
    "disableAllHooks a text": (
        {"disableAllHooks": "yes"},
        [("error", 's.json: disableAllHooks: is "yes", expected true or false')],
    ),
    "disableAllHooks a number": (
        {"disableAllHooks": 1},
        [("error", "s.json: disableAllHooks: is 1, expected true or false")],
    ),
    "env a list": (
        {"env": []},
        [("error", "s.json: env: is a list, expected an object of names and strings")],
    ),
    "env clean at the top": (
        {"env": "clean"},
        [
            (
                "error",
                's.json: env: is "clean", expected an object of names and strings',
                'put it inside "turngate": {"env": "clean"}',
            )
        ],
    ),
    "env null": ({"env": None}, [("error", "s.json: env: is null, expected an object of names and strings")]),
    "turngate null": ({"turngate": None}, [("error", "s.json: turngate: is null, expected an object")]),
    "turngate a number": ({"turngate": 3}, [("error", "s.json: turngate: is 3, expected an object")]),
    "unknown key at the top": (
        {"colour": 1},
        [("note", "s.json: colour: is not a key that Turngate knows: ignored")],
    ),
    "unknown key of the section": (
        {"turngate": {"colour": 1}},
        [("note", "s.json: turngate.colour: is not a key that Turngate knows: ignored")],
    ),
}


@pytest.mark.parametrize(("value", "expected"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_what_cannot_be_used_is_reported_and_nothing_is_left(value: Any, expected: list[UserMessage]) -> None:
    found = read(value)
    assert said(found.problems) == expected
    assert found == layer(problems=found.problems)


NOT_FIRED = "is an event that Turngate does not fire, so its hooks never run here"


@pytest.mark.req("S0-03")
@pytest.mark.parametrize("event", sorted(FOREIGN_EVENTS))
def test_an_event_that_only_claude_code_fires_is_noted(event: str) -> None:
    note = Problem(file=FILE, message=NOT_FIRED, severity="note", event=event)
    assert read(at_stop(MAKE, event=event)) == layer(problems=(note,))


@pytest.mark.req("U-20")
def test_the_hooks_of_every_event_of_claude_code_carry_over() -> None:
    """Each event is known: its hooks run here, or a note says that they do not."""
    run = (
        "Stop SubagentStop TaskCompleted TeammateIdle SessionStart UserPromptSubmit PreToolUse PermissionRequest PostToolUse "
        "PostToolUseFailure PostToolBatch PreCompact SubagentStart StopFailure SessionEnd"
    ).split()
    named = (
        "ConfigChange CwdChanged DirectoryAdded Elicitation ElicitationResult FileChanged InstructionsLoaded MessageDisplay Notification PermissionDenied "
        "PostCompact PostModelSwitch PreModelSwitch Setup TaskCreated UserPromptExpansion WorktreeCreate WorktreeRemove"
    ).split()
    found = read({"hooks": {event: [{"hooks": [MAKE]}] for event in (*run, *named)}})
    assert [rule.event for rule in found.rules] == run
    assert [(each.severity, each.event) for each in found.problems] == [("note", event) for event in named]


@pytest.mark.req("U-20")
def test_the_matchers_of_every_event_of_claude_code_carry_over() -> None:
    """Those of six events have no effect in Claude Code either."""
    found = read({"hooks": {event: [{"matcher": "a", "hooks": [MAKE]}] for event in EVENTS}})
    assert [(rule.event, rule.matcher) for rule in found.rules] == [(event, "a") for event in EVENTS]
    ignored = ["Stop", *TEAM_EVENTS, "UserPromptSubmit", "PostToolBatch", "StopFailure"]
    assert [(each.event, each.field) for each in found.problems] == [(event, "matcher") for event in ignored]


@pytest.mark.parametrize("groups", [5, [5], [{"hooks": 5}], [{"hooks": [5, {"command": 5}]}]])
def test_what_an_event_of_claude_code_holds_need_not_be_valid(groups: Any) -> None:
    note = Problem(file=FILE, message=NOT_FIRED, severity="note", event="Notification")
    assert read({"hooks": {"Notification": groups}}) == layer(problems=(note,))


def test_other_events_of_claude_code_can_block() -> None:
    note = Problem(file=FILE, message=NOT_FIRED, severity="note", event="TaskCreated")
    assert read(at_stop(stop_hook("exit 2"), event="TaskCreated")) == layer(problems=(note,))


@pytest.mark.parametrize("event", TEAM_EVENTS)
def test_the_events_of_a_team_are_only_those_of_turngate_in_its_own_settings(event: str) -> None:
    """Claude Code itself runs its own hooks there."""
    hooks = {"hooks": {event: [{"hooks": [MAKE]}]}}
    note = Problem(file=FILE, message=NOT_FIRED, severity="note", event=event)
    assert [rule.event for rule in read(hooks).rules] == [event]
    of_claude = read(hooks, family="claude")
    assert (of_claude.rules, of_claude.problems) == ((), (note,))


def test_a_type_that_is_not_a_kind_is_told_the_kinds_in_their_order() -> None:
    kinds = {"command": CommandHook, "gate": GateHook, "http": HttpHook}
    assert [describe_bad_type(entry, kinds, describe_json) for entry in ({"type": "Gate"}, {"url": "x"})] == [
        ('is "Gate", expected one of "command", "gate", "http"', 'did you mean "gate"?'),
        ('is missing, expected one of "command", "gate", "http"', 'add "type": "http"'),
    ]


@pytest.mark.req("S0-03", "C-35")
def test_other_and_unknown_events_leave_stop_alone() -> None:
    hooks = {name: [{"hooks": [stop_hook(name)]}] for name in ("Foo", "Stop", "Notification", "PreToolUse")}
    found = read({"hooks": hooks})
    assert found.rules == (rule(CommandHook("Stop")), rule(CommandHook("PreToolUse"), event="PreToolUse"))
    assert said(found.problems) == [
        ("warning", "s.json: Foo: is not a known event, so its hooks never run", KNOWN_EVENTS),
        ("note", f"s.json: Notification: {NOT_FIRED}"),
    ]


def dropped(entry: Any, *expected: UserMessage) -> tuple[Any, list[UserMessage]]:
    return entry, list(expected)


# The entry is left out; its neighbours stay.
BAD_ENTRIES: Mapping[str, tuple[Any, list[UserMessage]]] = {
    "a command by itself": dropped(
        "make", ("error", 's.json: Stop[0].hooks[0]: is "make", expected an object')
    ),
    "null": dropped(None, ("error", "s.json: Stop[0].hooks[0]: is null, expected an object")),
    "a list": dropped([MAKE], ("error", "s.json: Stop[0].hooks[0]: is a list, expected an object")),
    "no type, a command": dropped(
        {"command": "make"},
        (
            "error",
            f"s.json: Stop[0].hooks[0].type: is missing, expected one of {LISTED_SETTINGS_KINDS}",
            'add "type": "command"',
        ),
    ),
    "no type, a prompt": dropped(
        {"prompt": "done?"},
        (
            "error",
            f"s.json: Stop[0].hooks[0].type: is missing, expected one of {LISTED_SETTINGS_KINDS}",
            'add "type": "prompt"',
        ),
    ),
    "no type, an address": dropped(
        {"url": "http://x/"},
        (
            "error",
            f"s.json: Stop[0].hooks[0].type: is missing, expected one of {LISTED_SETTINGS_KINDS}",
            'add "type": "http"',
        ),
    ),
    "nothing": dropped(
        {},
        (
            "error",
            f"s.json: Stop[0].hooks[0].type: is missing, expected one of {LISTED_SETTINGS_KINDS}",
            'add "type": "command"',
        ),
    ),
    "unknown type": dropped(
        {"type": "shell", "command": "make"},
        ("error", f's.json: Stop[0].hooks[0].type: is "shell", expected one of {LISTED_SETTINGS_KINDS}'),
    ),
    "type of Python hooks only": dropped(
        {"type": "callback", "command": "make"},
        ("error", f's.json: Stop[0].hooks[0].type: is "callback", expected one of {LISTED_SETTINGS_KINDS}'),
    ),
    "type null": dropped(
        {"type": None, "command": "make"},
        ("error", f"s.json: Stop[0].hooks[0].type: is null, expected one of {LISTED_SETTINGS_KINDS}"),
    ),
    "type a list": dropped(
        {"type": ["command"], "command": "make"},
        ("error", f"s.json: Stop[0].hooks[0].type: is a list, expected one of {LISTED_SETTINGS_KINDS}"),
    ),
    "no command": dropped(
        {"type": "command"},
        ("error", "s.json: Stop[0].hooks[0].command: is missing, expected a non-empty string"),
    ),
    "another name for the command": dropped(
        {"type": "command", "cmd": "make"},
        (
            "error",
            's.json: Stop[0].hooks[0].cmd: is not a key that Turngate knows, and "command" is missing: the hook is left out',
            'did you mean "command"?',
        ),
    ),
    "no command beside a key of another program": dropped(
        {"type": "command", "colour": 5},
        ("note", "s.json: Stop[0].hooks[0].colour: is not a key that Turngate knows: ignored"),
        ("error", "s.json: Stop[0].hooks[0].command: is missing, expected a non-empty string"),
    ),
    "no prompt": dropped(
        {"type": "agent"},
        ("error", "s.json: Stop[0].hooks[0].prompt: is missing, expected a non-empty string"),
    ),
    "no address": dropped(
        {"type": "http"}, ("error", "s.json: Stop[0].hooks[0].url: is missing, expected a non-empty string")
    ),
    "empty command": dropped(
        {"type": "command", "command": ""},
        (
            "error",
            's.json: Stop[0].hooks[0].command: is "", expected a non-empty string: the hook is left out',
        ),
    ),
    "blank command": dropped(
        {"type": "command", "command": " \n"},
        (
            "error",
            r's.json: Stop[0].hooks[0].command: is " \n", expected a non-empty string: the hook is left out',
        ),
    ),
    "NUL in a command": dropped(
        {"type": "command", "command": "a\0b"},
        (
            "error",
            r's.json: Stop[0].hooks[0].command: is "a\u0000b", expected a non-empty string: the hook is left out',
        ),
    ),
    "half a character in a command": dropped(
        {"type": "command", "command": "\ud800"},
        (
            "error",
            r's.json: Stop[0].hooks[0].command: is "\ud800", expected a non-empty string: the hook is left out',
        ),
    ),
    "command a list": dropped(
        {"type": "command", "command": ["make"]},
        (
            "error",
            "s.json: Stop[0].hooks[0].command: is a list, expected a non-empty string: the hook is left out",
        ),
    ),
    "blank prompt": dropped(
        {"type": "prompt", "prompt": " "},
        (
            "error",
            's.json: Stop[0].hooks[0].prompt: is " ", expected a non-empty string: the hook is left out',
        ),
    ),
    "address null": dropped(
        {"type": "http", "url": None},
        ("error", "s.json: Stop[0].hooks[0].url: is null, expected a non-empty string: the hook is left out"),
    ),
    "timeout 0": dropped({**MAKE, "timeout": 0}, ("error", f"{TIMEOUT}: is 0, {LEFT_OUT}")),
    "timeout -1": dropped({**MAKE, "timeout": -1}, ("error", f"{TIMEOUT}: is -1, {LEFT_OUT}")),
    "timeout a text": dropped(
        {**MAKE, "timeout": "1"}, ("error", f'{TIMEOUT}: is "1", {LEFT_OUT}', 'write 1, not "1"')
    ),
    "timeout with a unit": dropped(
        {**MAKE, "timeout": "10s"}, ("error", f'{TIMEOUT}: is "10s", {LEFT_OUT}', 'write 10, not "10s"')
    ),
    "timeout in words": dropped(
        {**MAKE, "timeout": "soon"},
        ("error", f'{TIMEOUT}: is "soon", {LEFT_OUT}', "write a number of seconds, such as 30"),
    ),
    "timeout true": dropped({**MAKE, "timeout": True}, ("error", f"{TIMEOUT}: is true, {LEFT_OUT}")),
    "timeout null": dropped({**MAKE, "timeout": None}, ("error", f"{TIMEOUT}: is null, {LEFT_OUT}")),
    "timeout NaN": dropped({**MAKE, "timeout": float("nan")}, ("error", f"{TIMEOUT}: is NaN, {LEFT_OUT}")),
    "timeout 1e999": dropped(
        {**MAKE, "timeout": float("inf")}, ("error", f"{TIMEOUT}: is Infinity, {TOO_LARGE}")
    ),
    "timeout of more than thirty years": dropped(
        {**MAKE, "timeout": 10**9 + 1}, ("error", f"{TIMEOUT}: is 1000000001, {TOO_LARGE}")
    ),
    "timeout beyond every number": dropped(
        {**MAKE, "timeout": 10**400}, ("error", f"{TIMEOUT}: is a number of more than 60 digits, {TOO_LARGE}")
    ),
    "args a text": dropped(
        {**MAKE, "args": "-k"},
        ("error", 's.json: Stop[0].hooks[0].args: is "-k", expected a list of strings: the hook is left out'),
    ),
    "args of numbers": dropped(
        {**MAKE, "args": ["a", 1]},
        (
            "error",
            "s.json: Stop[0].hooks[0].args: is a list with 1 in it, expected a list of strings: the hook is left out",
        ),
    ),
    "NUL in args": dropped(
        {**MAKE, "args": ["\0"]},
        (
            "error",
            's.json: Stop[0].hooks[0].args: is a list with "\\u0000" in it, expected a list of strings: the hook is left out',
        ),
    ),
    "env a list": dropped(
        {**MAKE, "env": []},
        (
            "error",
            's.json: Stop[0].hooks[0].env: is a list, expected an object of names and strings, or "clean": the hook is left out',
        ),
    ),
    "env with a number": dropped(
        {**MAKE, "env": {"A": 1}},
        (
            "error",
            's.json: Stop[0].hooks[0].env: is an object, expected an object of names and strings, or "clean": the hook is left out',
        ),
    ),
    "env with a bad name": dropped(
        {**MAKE, "env": {"A-B": "1"}},
        (
            "error",
            's.json: Stop[0].hooks[0].env: is an object, expected an object of names and strings, or "clean": the hook is left out',
        ),
    ),
    "headers a list": dropped(
        {**POST, "headers": []},
        (
            "error",
            "s.json: Stop[0].hooks[0].headers: is a list, expected an object of strings: the hook is left out",
        ),
    ),
    "headers with a number": dropped(
        {**POST, "headers": {"X": 1}},
        (
            "error",
            "s.json: Stop[0].hooks[0].headers: is an object, expected an object of strings: the hook is left out",
        ),
    ),
    "several mistakes": dropped(
        {"type": "command", "command": "", "timeout": 0, "shell": "zsh", "colour": "red"},
        (
            "error",
            's.json: Stop[0].hooks[0].command: is "", expected a non-empty string: the hook is left out',
        ),
        ("error", f"{TIMEOUT}: is 0, {LEFT_OUT}"),
        (
            "warning",
            's.json: Stop[0].hooks[0].shell: is "zsh", expected "sh", "bash" or "powershell": ignored',
        ),
        ("note", "s.json: Stop[0].hooks[0].colour: is not a key that Turngate knows: ignored"),
    ),
}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param(*row, id=name, marks=pytest.mark.req("C-01") if name.startswith("timeout") else ())
        for name, row in BAD_ENTRIES.items()
    ],
)
def test_a_bad_entry_is_dropped_and_reported(entry: Any, expected: list[UserMessage]) -> None:
    found = read(at_stop(entry))
    assert said(found.problems) == expected
    assert found == layer(problems=found.problems)


@pytest.mark.parametrize("entry", [entry for entry, _ in BAD_ENTRIES.values()], ids=BAD_ENTRIES)
def test_an_invalid_entry_does_not_affect_the_others(entry: Any) -> None:
    groups = [
        {"hooks": [stop_hook("before"), entry, stop_hook("after")]},
        {"hooks": [stop_hook("next group")]},
    ]
    found = read({"hooks": {"Stop": groups, "SubagentStop": [{"hooks": [stop_hook("child")]}]}})
    assert found.rules == (
        rule(CommandHook("before"), 0),
        rule(CommandHook("after"), 2),
        replace(rule(CommandHook("next group")), index="[1].hooks[0]"),
        rule(CommandHook("child"), event="SubagentStop"),
    )
    assert {(p.event, p.index) for p in found.problems} == {("Stop", "[0].hooks[1]")}


@pytest.mark.req("S3-34", "C-22")
@pytest.mark.parametrize("event", sorted(EVENTS.keys() - set(JUDGED_EVENTS)))
@pytest.mark.parametrize("entry", [ASK, WORK], ids=["prompt", "agent"])
def test_a_prompt_hook_elsewhere_is_a_mistake_and_the_others_load(
    entry: Mapping[str, Any], event: str
) -> None:
    kind = entry["type"]
    problem = Problem(
        file=FILE,
        message=f'is "{kind}", but {kind} hooks run only on {", ".join(JUDGED_EVENTS)}',
        event=event,
        index="[0].hooks[0]",
        field="type",
        hint="use a command hook here",
    )
    expected = layer(rule(CommandHook("make"), 1, event=event), problems=(problem,))
    assert read(at_stop(entry, MAKE, event=event)) == expected


@pytest.mark.req("C-01")
@pytest.mark.parametrize(
    ("timeout", "shown", "meant"),
    [(1000, "1000", "1"), (5000.5, "5000.5", "5.0005"), (30_000, "30000", "30"), (10**9, "1e+09", "1e+06")],
)
def test_a_timeout_of_a_thousand_looks_like_milliseconds(timeout: float, shown: str, meant: str) -> None:
    problem = Problem(
        file=FILE,
        message=f"is {shown}, which is read as seconds",
        severity="warning",
        event="Stop",
        index="[0].hooks[0]",
        field="timeout",
        hint=f"write {meant} for {shown} milliseconds",
    )
    hook = CommandHook("make", timeout=float(timeout))
    assert read(at_stop({**MAKE, "timeout": timeout})) == layer(rule(hook), problems=(problem,))


@pytest.mark.parametrize("timeout", [999, 1200, 1800, 3000, 3600, 5400, 7200, 10_800, 14_400, 21_600, 86_400])
def test_whole_tens_of_minutes_and_hours_are_seconds(timeout: int) -> None:
    hook = CommandHook("make", timeout=float(timeout))
    assert read(at_stop({**MAKE, "timeout": timeout})) == layer(rule(hook))


@pytest.mark.parametrize("timeout", [1000, 1500, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 90_000, 120_000])
def test_round_thousands_are_taken_for_milliseconds(timeout: int) -> None:
    assert said(read(at_stop({**MAKE, "timeout": timeout})).problems) == [
        (
            "warning",
            f"s.json: Stop[0].hooks[0].timeout: is {timeout}, which is read as seconds",
            f"write {timeout / 1000:g} for {timeout} milliseconds",
        )
    ]


@pytest.mark.parametrize("name", ["_comment", "//", "// Stop", "_disabled_Stop", "#", "comment", "$comment"])
@pytest.mark.parametrize("text", ["why", ["one", "two"], {"Stop": []}, None], ids=str)
def test_a_comment_key_is_ignored_everywhere(name: str, text: Any) -> None:
    hook = {**MAKE, name: text}
    hooks = {name: text, "Stop": [{name: text, "hooks": [hook]}]}
    section = {name: text, "order": {name: text}}
    content = {name: text, "hooks": hooks, "turngate": section}
    assert read(content) == layer(rule(CommandHook("make")))


# The key is ignored, the hook stays.
IGNORED_KEYS: Mapping[str, tuple[Mapping[str, Any], Hook, list[UserMessage]]] = {
    "prompt on a command hook": (
        {**MAKE, "prompt": "done?"},
        CommandHook("make"),
        [("warning", "s.json: Stop[0].hooks[0].prompt: has no effect on command hooks: ignored")],
    ),
    "command on a prompt hook": (
        {**ASK, "command": ""},
        PromptHook("done?"),
        [("warning", "s.json: Stop[0].hooks[0].command: has no effect on prompt hooks: ignored")],
    ),
    "env on a prompt hook": (
        {**ASK, "env": {}},
        PromptHook("done?"),
        [("warning", "s.json: Stop[0].hooks[0].env: has no effect on prompt hooks: ignored")],
    ),
    "unknown shell": (
        {**MAKE, "shell": "zsh"},
        CommandHook("make"),
        [
            (
                "warning",
                's.json: Stop[0].hooks[0].shell: is "zsh", expected "sh", "bash" or "powershell": ignored',
            )
        ],
    ),
    "empty id": (
        {**MAKE, "id": ""},
        CommandHook("make"),
        [("warning", 's.json: Stop[0].hooks[0].id: is "", expected a non-empty string: ignored')],
    ),
    "enabled a text": (
        {**MAKE, "enabled": "no"},
        CommandHook("make"),
        [("warning", 's.json: Stop[0].hooks[0].enabled: is "no", expected true or false: ignored')],
    ),
    "unknown mode": (
        {**MAKE, "mode": "warn"},
        CommandHook("make"),
        [("warning", 's.json: Stop[0].hooks[0].mode: is "warn", expected "gate" or "observe": ignored')],
    ),
    "blocking a number": (
        {**MAKE, "blocking": 1},
        CommandHook("make"),
        [("warning", "s.json: Stop[0].hooks[0].blocking: is 1, expected true or false: ignored")],
    ),
    "no outcomes": (
        {**MAKE, "outcomes": []},
        CommandHook("make"),
        [
            (
                "warning",
                's.json: Stop[0].hooks[0].outcomes: is an empty list, expected a list of "ok", "error", "timeout": ignored',
            )
        ],
    ),
    "unknown outcome": (
        {**MAKE, "outcomes": ["ok", "killed"]},
        CommandHook("make"),
        [
            (
                "warning",
                's.json: Stop[0].hooks[0].outcomes: is a list with "killed" in it, expected a list of "ok", "error", "timeout": ignored',
            )
        ],
    ),
    "outcomes a text": (
        {**MAKE, "outcomes": "ok"},
        CommandHook("make"),
        [
            (
                "warning",
                's.json: Stop[0].hooks[0].outcomes: is "ok", expected a list of "ok", "error", "timeout": ignored',
            )
        ],
    ),
    "async a text": (
        {**MAKE, "async": "yes"},
        CommandHook("make"),
        [("warning", 's.json: Stop[0].hooks[0].async: is "yes", expected true or false: ignored')],
    ),
    "empty if": (
        {**MAKE, "if": ""},
        CommandHook("make"),
        [("warning", 's.json: Stop[0].hooks[0].if: is "", expected a permission rule: ignored')],
    ),
    "statusMessage a number": (
        {**MAKE, "statusMessage": 5},
        CommandHook("make"),
        [("warning", "s.json: Stop[0].hooks[0].statusMessage: is 5, expected a string: ignored")],
    ),
    "empty model": (
        {**ASK, "model": ""},
        PromptHook("done?"),
        [("warning", 's.json: Stop[0].hooks[0].model: is "", expected a model\'s name: ignored')],
    ),
    "unknown transcript": (
        {**ASK, "transcript": "all"},
        PromptHook("done?"),
        [
            (
                "warning",
                's.json: Stop[0].hooks[0].transcript: is "all", expected "none", "last", "digest" or "full": ignored',
            )
        ],
    ),
    "allowedEnvVars a text": (
        {**POST, "allowedEnvVars": "KEY"},
        HttpHook("http://localhost/"),
        [("warning", 's.json: Stop[0].hooks[0].allowedEnvVars: is "KEY", expected a list of names: ignored')],
    ),
    "unknown key": (
        {**MAKE, "colour": "red"},
        CommandHook("make"),
        [("note", "s.json: Stop[0].hooks[0].colour: is not a key that Turngate knows: ignored")],
    ),
    "unknown key that no file could hold": (
        {**MAKE, "\ud800": 1},
        CommandHook("make"),
        [("note", r"s.json: Stop[0].hooks[0].\ud800: is not a key that Turngate knows: ignored")],
    ),
    "long unknown key": (
        {**MAKE, "k" * 61: 1},
        CommandHook("make"),
        [("note", f"s.json: Stop[0].hooks[0].{'k' * 59}…: is not a key that Turngate knows: ignored")],
    ),
}


@pytest.mark.parametrize(
    ("entry", "hook", "expected"),
    [
        pytest.param(*row, id=name, marks=pytest.mark.req("C-35") if "unknown key" in name else ())
        for name, row in IGNORED_KEYS.items()
    ],
)
def test_a_bad_key_that_the_hook_can_do_without_is_ignored(
    entry: Mapping[str, Any], hook: Hook, expected: list[UserMessage]
) -> None:
    found = read(at_stop(entry))
    assert said(found.problems) == expected
    assert found == layer(rule(hook), problems=found.problems)


@pytest.mark.parametrize("name", sorted(keys.FOREIGN_HOOK_KEYS - {"type"}))
def test_keys_of_other_programs_are_ignored_without_a_note(name: str) -> None:
    assert read(at_stop({**MAKE, name: {"any": "thing"}})) == layer(rule(CommandHook("make")))


@pytest.mark.parametrize("matcher", ["Bash", "("])
def test_a_matcher_has_no_effect_on_stop(matcher: str) -> None:
    problem = Problem(
        file=FILE,
        message=f"is {matcher!r}, which has no effect on Stop: the hooks run at every Stop",
        severity="warning",
        event="Stop",
        index="[0]",
        field="matcher",
        hint="remove the matcher",
    )
    expected = layer(rule(CommandHook("make"), matcher=matcher), problems=(problem,))
    assert read(at_stop(MAKE, matcher=matcher)) == expected


@pytest.mark.parametrize("matcher", ["(", "*x", "[a", "a{9999999999}"])
def test_an_invalid_matcher_is_an_error_and_never_matches(matcher: str) -> None:
    problem = Problem(
        file=FILE,
        message=f"is {matcher!r}, which is not a valid regular expression, so it never matches",
        event="SubagentStop",
        index="[0]",
        field="matcher",
    )
    expected = layer(rule(CommandHook("make"), event="SubagentStop", matcher=matcher), problems=(problem,))
    assert read(at_stop(MAKE, event="SubagentStop", matcher=matcher)) == expected


@pytest.mark.parametrize(
    "matcher", ["Explore", "Explore|Plan", "Explore, Plan", "code-.*", "^(a|b)$", "[[a]"]
)
def test_names_and_regular_expressions_are_valid_matchers(matcher: str) -> None:
    expected = layer(rule(CommandHook("make"), event="SubagentStop", matcher=matcher))
    assert read(at_stop(MAKE, event="SubagentStop", matcher=matcher)) == expected


def test_a_group_with_an_invalid_matcher_does_not_affect_other_groups() -> None:
    groups = [{"matcher": 5, "hooks": [stop_hook("a")]}, {"matcher": "x", "hooks": [stop_hook("b")]}]
    found = read({"hooks": {"SubagentStop": groups}})
    expected = replace(rule(CommandHook("b"), event="SubagentStop", matcher="x"), index="[1].hooks[0]")
    assert found.rules == (expected,)


BOUND = "expected a string (at most 200 names, each with up to 8,000 characters): ignored"


@pytest.mark.req("X-33")
def test_invalid_variables_are_dropped_one_by_one() -> None:
    env = {
        "NUMBER": 5,
        "NULL": None,
        "GOOD": "1",
        "1ST": "x",
        "A B": "x",
        "": "x",
        "É": "x",
        "LONG": "x" * 8_001,
        "NUL": "a\0",
        "HALF": "\ud800",
        "ALSO_GOOD": "",
    }
    found = read({"env": env})
    assert found == layer(env={"GOOD": "1", "ALSO_GOOD": ""}, problems=found.problems)
    assert said(found.problems) == [
        ("error", f"s.json: env.NUMBER: is 5, {BOUND}"),
        ("error", f"s.json: env.NULL: is null, {BOUND}"),
        ("error", f's.json: env.1ST: is "x", {BOUND}'),
        ("error", f's.json: env.A B: is "x", {BOUND}'),
        ("error", f's.json: env.: is "x", {BOUND}'),
        ("error", f's.json: env.É: is "x", {BOUND}'),
        ("error", f's.json: env.LONG: is "{"x" * 58}…, {BOUND}'),
        ("error", rf's.json: env.NUL: is "a\u0000", {BOUND}'),
        ("error", rf's.json: env.HALF: is "\ud800", {BOUND}'),
    ]


@pytest.mark.req("X-33")
def test_the_two_hundred_and_first_variable_is_dropped() -> None:
    env = {f"V{number}": "x" for number in range(201)}
    found = read({"env": env})
    assert found == layer(env={name: "x" for name in env if name != "V200"}, problems=found.problems)
    assert said(found.problems) == [("error", f's.json: env.V200: is "x", {BOUND}')]


@pytest.mark.req("X-33")
@pytest.mark.parametrize(
    "env", [{f"V{number}": "" for number in range(201)}, {"LONG": "x" * 8_001}], ids=["too many", "too long"]
)
def test_a_hook_with_an_environment_beyond_the_bound_is_dropped(env: Mapping[str, str]) -> None:
    problem = Problem(
        file=FILE,
        message='is an object, expected an object of names and strings, or "clean": the hook is left out',
        event="Stop",
        index="[0].hooks[0]",
        field="env",
    )
    assert read(at_stop({**MAKE, "env": env})) == layer(problems=(problem,))


WHOLE = "expected a whole number, 0 or more: ignored"
ORDERS = 'expected "parallel", "sequential" or "first_block", for all or per event: ignored'
MODES = 'expected "gate" or "observe", for all or per event: ignored'
LIMITS = "expected seconds by kind of hook or by event: ignored"

BAD_SCALARS: Mapping[str, tuple[str, Any, str]] = {
    "limit -1": ("limit", -1, f"is -1, {WHOLE}"),
    "limit a text": ("limit", "3", f'is "3", {WHOLE}'),
    "limit true": ("limit", True, f"is true, {WHOLE}"),
    "limit 1.5": ("limit", 1.5, f"is 1.5, {WHOLE}"),
    "limit null": ("limit", None, f"is null, {WHOLE}"),
    "hardLimit -1": ("hardLimit", -1, f"is -1, {WHOLE}"),
    "hardLimit a list": ("hardLimit", [10], f"is a list, {WHOLE}"),
    "order unknown": ("order", "random", f'is "random", {ORDERS}'),
    "order a list": ("order", ["parallel"], f"is a list, {ORDERS}"),
    "mode unknown": ("mode", "off", f'is "off", {MODES}'),
    "payload unknown": ("payload", "six", 'is "six", expected "full" or "strict": ignored'),
    "payload per event": ("payload", {"Stop": "full"}, 'is an object, expected "full" or "strict": ignored'),
    "defaults a number": ("defaults", 30, f"is 30, {LIMITS}"),
    "defaults of an unknown kind": (
        "defaults",
        {"script": 5},
        f"is an object with the unknown key `script`, {LIMITS}",
    ),
    "defaults of an unknown kind in an event": (
        "defaults",
        {"Stop": {"script": 5}},
        f"is an object with the unknown key `Stop.script`, {LIMITS}",
    ),
    "defaults 0": ("defaults", {"command": 0}, f"is an object with 0 for `command`, {LIMITS}"),
    "defaults 0 in an event": (
        "defaults",
        {"Stop": {"command": 0}},
        f"is an object with 0 for `Stop.command`, {LIMITS}",
    ),
    "defaults a text": ("defaults", {"Stop": "5"}, f'is an object with "5" for `Stop`, {LIMITS}'),
    "defaults beyond every number": (
        "defaults",
        {"command": 10**400},
        f"is an object with a number of more than 60 digits for `command`, {LIMITS}",
    ),
    "stopBudget 0": ("stopBudget", 0, "is 0, expected a number of seconds above 0: ignored"),
    "stopBudget a text": ("stopBudget", "60", 'is "60", expected a number of seconds above 0: ignored'),
    "stopBudget beyond every number": (
        "stopBudget",
        10**400,
        "is a number of more than 60 digits, expected a number of seconds above 0: ignored",
    ),
    "model empty": ("model", "", 'is "", expected a model\'s name: ignored'),
    "judge a number": ("judge", 5, "is 5, expected a model's name: ignored"),
    "plugins a text": ("plugins", "git", 'is "git", expected a list of names: ignored'),
    "plugins of numbers": ("plugins", ["a", 1], "is a list with 1 in it, expected a list of names: ignored"),
    "pluginDirs null": ("pluginDirs", None, "is null, expected a list of folders: ignored"),
    "allowedUrls text": ("allowedUrls", "a", 'is "a", expected a list of addresses or hosts: ignored'),
}


@pytest.mark.parametrize(("name", "value", "message"), BAD_SCALARS.values(), ids=BAD_SCALARS)
def test_a_bad_key_of_the_section_is_ignored_and_the_others_count(
    name: str, value: Any, message: str
) -> None:
    other, scalars = ("limit", {"limit": 2}) if name != "limit" else ("hardLimit", {"hard_limit": 2})
    problem = Problem(file=FILE, message=message, field=f"turngate.{name}")
    expected = layer(scalars=scalars, problems=(problem,))
    assert read({"turngate": {name: value, other: 2}}) == expected


BAD_WORDS: Mapping[str, tuple[str, str, Any, str]] = {
    "order unknown": (
        "order",
        "SessionEnd",
        "random",
        'is "random", expected "parallel", "sequential" or "first_block": ignored',
    ),
    "mode unknown": ("mode", "SessionEnd", "observ", 'is "observ", expected "gate" or "observe": ignored'),
    "mode true": ("mode", "SessionEnd", True, 'is true, expected "gate" or "observe": ignored'),
    "mode in mode": (
        "mode",
        "SessionEnd",
        {"Stop": "gate"},
        'is an object, expected "gate" or "observe": ignored',
    ),
    "mode of an unknown event": (
        "mode",
        "stop",
        "gate",
        f"is not a known event, expected one of {', '.join(EVENTS)}: ignored",
    ),
}


@pytest.mark.parametrize(("name", "event", "word", "message"), BAD_WORDS.values(), ids=BAD_WORDS)
def test_a_bad_word_for_one_event_is_named_and_the_other_events_keep_theirs(
    name: str, event: str, word: Any, message: str
) -> None:
    good = {"Stop": {"order": "sequential", "mode": "observe"}[name]}
    problem = Problem(file=FILE, message=message, field=f"turngate.{name}.{event}")
    both = (read({"turngate": {name: {**good, event: word}}}), read({"turngate": {name: {event: word}}}))
    kept: dict[str, Any] = {name: good}
    assert both == (layer(scalars=kept, problems=(problem,)), layer(problems=(problem,)))


@pytest.mark.req("S4-27")
@pytest.mark.parametrize(("value", "shown"), [(-1, "-1"), ("3", '"3"'), (True, "true"), ([], "a list")])
def test_a_bad_limit_of_steer_restarts_is_ignored(value: Any, shown: str) -> None:
    where = "agents.defaults.subagents.maxSteerRestarts"
    problem = Problem(file=FILE, field=where, message=f"is {shown}, {WHOLE}")
    expected = layer(problems=(problem,))
    assert read({"agents": {"defaults": {"subagents": {"maxSteerRestarts": value}}}}) == expected


# Families and dialects


def test_keys_of_claude_code_cause_no_note_in_its_own_file() -> None:
    value = {"permissions": {"allow": []}, "model": "opus", "cleanupPeriodDays": 30, "anything": 1}
    assert read(value, family="claude") == layer(family="claude")
    ignored = "is not a key that Turngate knows: ignored"
    assert said(read(value, family="mux").problems) == [
        ("note", f"s.json: permissions: {ignored}"),
        ("note", f"s.json: model: {ignored}"),
        ("note", f"s.json: cleanupPeriodDays: {ignored}"),
        ("note", f"s.json: anything: {ignored}"),
    ]


@pytest.mark.parametrize(
    ("value", "place", "meant"),
    [
        (
            {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "timout": 5}]}]}},
            "Stop[0].hooks[0].timout",
            "timeout",
        ),
        ({"turngate": {"limits": 5}}, "turngate.limits", "limit"),
        ({"disableAllHook": True}, "disableAllHook", "disableAllHooks"),
    ],
)
def test_a_key_that_is_nearly_ours_is_a_mistake(value: Any, place: str, meant: str) -> None:
    assert said(read(value).problems) == [
        ("warning", f"s.json: {place}: is not a key that Turngate knows: ignored", f'did you mean "{meant}"?')
    ]


def test_a_key_of_ours_in_the_wrong_place_is_shown_the_right_one() -> None:
    said_of = said(read({"limit": 5}, family="turngate").problems)
    assert said_of == [
        (
            "warning",
            "s.json: limit: is not a key that Turngate knows: ignored",
            'put it inside "turngate": {"limit": …}',
        )
    ]


@pytest.mark.parametrize("event", ["Stopp", "Stpo", "stop"])
def test_an_event_that_is_nearly_one_is_named(event: str) -> None:
    assert said(read({"hooks": {event: []}}).problems) == [
        ("warning", f"s.json: {event}: is not a known event, so its hooks never run", 'did you mean "Stop"?')
    ]


def test_hooks_under_a_mistyped_key_are_lost() -> None:
    assert said(read({"hook": {"Stop": []}}).problems) == [
        (
            "error",
            "s.json: hook: is not a key that Turngate knows, so its hooks never run",
            'did you mean "hooks"?',
        )
    ]


@pytest.mark.parametrize("dialect", [TURNGATE, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    ("name", "value", "part", "shown"),
    [
        ("cleanupPeriodDays", "30", "", '"30"'),
        ("cleanupPeriodDays", True, "", "true"),
        ("permissions", [], "", "a list"),
        ("permissions", {"allow": "Bash"}, ".allow", '"Bash"'),
        ("includeCoAuthoredBy", 1, "", "1"),
        ("model", {}, "", "an object"),
        ("outputStyle", 5, "", "5"),
        ("statusLine", None, "", "null"),
        ("apiKeyHelper", 5, "", "5"),
        ("enableAllProjectMcpServers", 1, "", "1"),
        ("disabledMcpjsonServers", "x", "", '"x"'),
        ("language", 5, "", "5"),
        ("fileSuggestion", "x", "", '"x"'),
        ("spinnerTipsEnabled", "yes", "", '"yes"'),
        ("attribution", "x", "", '"x"'),
        ("sandbox", True, "", "true"),
        ("sandbox", {"credentials": {"files": ["~/.ssh"]}}, ".credentials.files[0]", '"~/.ssh"'),
        ("enabledPlugins", ["x"], "", "a list"),
        ("alwaysThinkingEnabled", "x", "", '"x"'),
        ("autoUpdatesChannel", 5, "", "5"),
    ],
)
def test_a_wrong_type_elsewhere_does_not_silence_the_hooks_but_check_says_so(
    dialect: Dialect, name: str, value: Any, part: str, shown: str
) -> None:
    problem = Problem(
        file=FILE,
        message=f"is {shown}: Claude Code ignores this whole file, hooks included; Turngate does not",
        severity="warning",
        field=name + part,
    )
    found = read({**stop_hooks("make"), name: value}, family="claude", dialect=dialect)
    kept = replace(rule(CommandHook("make")), family="claude")
    assert found == layer(kept, family="claude", problems=(problem,))


VOIDED = "Claude Code ignores this whole file, hooks included; Turngate does not"


def test_a_list_of_urls_of_a_wrong_type_allows_nothing_and_voids_the_file_for_claude_code() -> None:
    found = read({**stop_hooks("make"), "allowedHttpHookUrls": "x"}, family="claude", dialect=CLAUDE)
    assert (len(found.rules), found.scalars, said(found.problems)) == (
        1,
        {"http_hook_urls": ()},
        [
            (
                "error",
                's.json: allowedHttpHookUrls: is "x", expected a list of URL patterns: it allows nothing',
            ),
            (
                "warning",
                f's.json: allowedHttpHookUrls: is "x": {VOIDED}',
            ),
        ],
    )


@pytest.mark.parametrize(
    "content",
    [
        {"enabledMcpjsonServers": "x"},
        {"sandbox": {"enabled": True, "credentials": {"files": [{"path": "~/.ssh"}]}}},
        {"permissions": {"allow": ["Bash(ls)"], "deny": []}},
        {"someSetting": 5},
    ],
    ids=str,
)
def test_what_claude_code_accepts_is_not_reported(content: dict[str, Any]) -> None:
    assert read({**stop_hooks("make"), **content}, family="claude", dialect=CLAUDE).problems == ()


LOST = (
    "error",
    "s.json: a PreToolUse or PermissionRequest hook is invalid, so in this dialect no hook of the file runs",
)


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
@pytest.mark.parametrize(
    "groups",
    [{}, ["make"], [MAKE], [{"hooks": None}], [{"matcher": 5, "hooks": []}], [{"hooks": [{"command": "x"}]}]],
    ids=str,
)
def test_an_invalid_guard_voids_the_file_only_in_the_claude_dialect(event: str, groups: Any) -> None:
    value = {"hooks": {"Stop": [{"hooks": [MAKE]}], event: groups}}
    for dialect in DIALECTS.values():
        found = read(value, family="claude", dialect=dialect)
        lost = LOST in said(found.problems)
        assert (len(found.rules), lost) == ((0, True) if dialect is CLAUDE else (1, False))


@pytest.mark.parametrize(
    ("event", "rules"),
    [("SubagentStop", 1), ("UserPromptSubmit", 1), ("PreToolUse", 0), ("PermissionRequest", 0)],
)
@pytest.mark.parametrize("wrong", [{"onFailure": "explode"}, {"shell": "zsh"}], ids=str)
def test_a_wrong_value_drops_the_hook_and_in_a_guard_the_file_in_the_claude_dialect(
    event: str, rules: int, wrong: dict[str, str]
) -> None:
    value = {"hooks": {"Stop": [{"hooks": [MAKE]}], event: [{"hooks": [{**MAKE, **wrong}]}]}}
    found = read(value, family="claude", dialect=CLAUDE)
    assert (len(found.rules), LOST in said(found.problems)) == (rules, not rules)


@pytest.mark.req("S3-34")
@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
def test_a_prompt_hook_before_a_tool_does_not_affect_the_stop_hooks(dialect: Dialect) -> None:
    value = {"hooks": {"Stop": [{"hooks": [MAKE]}], "PreToolUse": [{"hooks": [ASK]}]}}
    assert [found.hook for found in read(value, family="claude", dialect=dialect).rules] == [
        CommandHook("make"),
        PromptHook("done?"),
    ]


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("event", ["Stop", "PreToolUse", "PermissionRequest"])
def test_a_hook_that_calls_an_mcp_server_is_left_out_and_the_rest_of_its_file_runs(
    dialect: Dialect, event: str
) -> None:
    scan = {"type": "mcp_tool", "server": "scan", "tool": "check"}
    found = read(at_stop(scan, MAKE, event=event), family="claude", dialect=dialect)
    assert [each.hook for each in found.rules] == [CommandHook("make")]
    assert said(found.problems) == [
        (
            "error",
            f's.json: {event}[0].hooks[0].type: is "mcp_tool", which Turngate does not run: the hook is left out',
            "use a command hook that calls the server",
        )
    ]


def test_all_33_events_of_claude_code_are_known() -> None:
    assert len(EVENTS.keys() | FOREIGN_EVENTS) == 33
    newest = {"MessageDisplay", "PreModelSwitch", "PostModelSwitch", "DirectoryAdded"}
    assert newest <= FOREIGN_EVENTS


@pytest.mark.parametrize(
    ("dialect", "runs"), [(TURNGATE, True), (MUX, True), (CLAUDE, False)], ids=["turngate", "mux", "claude"]
)
def test_an_unknown_shell_drops_the_hook_only_where_claude_code_drops_it(
    dialect: Dialect, runs: bool
) -> None:
    found = read(at_stop({**MAKE, "shell": "zsh"}), family="claude", dialect=dialect)
    message = 's.json: Stop[0].hooks[0].shell: is "zsh", expected "sh", "bash" or "powershell"'
    assert [each.hook for each in found.rules] == ([CommandHook("make")] if runs else [])
    assert said(found.problems) == [
        ("warning", f"{message}: ignored") if runs else ("error", f"{message}: the hook is left out")
    ]


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
def test_an_unknown_way_to_treat_a_failure_drops_the_hook(dialect: Dialect) -> None:
    found = read(at_stop({**MAKE, "onFailure": "explode"}, MAKE), family="claude", dialect=dialect)
    assert [each.index for each in found.rules] == ["[0].hooks[1]"]
    assert said(found.problems) == [
        (
            "error",
            's.json: Stop[0].hooks[0].onFailure: is "explode", expected "block": the hook is left out',
        )
    ]


@pytest.mark.req("S0-12")
@pytest.mark.parametrize("level", ["user", "project", "local"])
def test_each_rule_has_the_level_the_file_and_the_family_of_its_file(level: str) -> None:
    found = read(stop_hooks("make"), level=level, family="mux")
    expected = Rule("Stop", CommandHook("make"), None, level, FILE, "mux", "[0].hooks[0]")
    assert found == layer(expected, level=level, family="mux")


def test_a_long_value_is_shown_in_few_words() -> None:
    found = read({"hooks": "x" * 100})
    assert said(found.problems) == [
        ("error", f's.json: hooks: is "{"x" * 58}…, expected an object of events')
    ]
