"""The JSON Schemas: they are what is committed, they are sound, and they agree with the readers."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.builders import stop_event, stop_hooks, subagent_stop
from tests.support.paths import ROOT
from tests.support.strategies import NAMES, WORDS, json_values, settings_values
from turngate.cli.commands.init.proposal import ProposedGate, settings_text
from turngate.core.constants import EVENTS
from turngate.core.dialect import DIALECTS, TURNGATE
from turngate.core.events.events import OTHER_EVENTS, Event
from turngate.core.events.hook_input import encode
from turngate.core.settings import Layer, Problem
from turngate.settings import key_table as keys
from turngate.settings.json_schema import SCHEMAS, input_schema, output_schema, settings_schema
from turngate.settings.parse import parse_layer

MAKE: Mapping[str, Any] = {"type": "command", "command": "make"}
ASK: Mapping[str, Any] = {"type": "prompt", "prompt": "done?"}

SETTINGS = Draft202012Validator(settings_schema())
INPUT = Draft202012Validator(input_schema())
OUTPUT = Draft202012Validator(output_schema())


def read(value: Any) -> Layer:
    return parse_layer(value, file="s.json", level="user", family="turngate", dialect=TURNGATE)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schema_is_the_generated_one(name: str) -> None:
    path = ROOT / "schemas" / f"{name}.schema.json"
    generated = json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False) + "\n"
    committed = path.read_text("utf-8") if path.exists() else None
    assert committed == generated, f"{path.relative_to(ROOT)} is not up to date: run make schemas"


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_a_json_schema(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name]())


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_id_of_each_schema_is_the_address_of_the_committed_file(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    files = project["urls"]["Homepage"].replace("github.com", "raw.githubusercontent.com") + "/main/schemas"
    assert SCHEMAS[name]()["$id"] == f"{files}/{name}.schema.json"


# Settings


def test_settings_that_init_writes_name_their_schema_and_fit_it() -> None:
    gate = ProposedGate({"type": "gate", "id": "tests", "gate": "tests", "timeout": 600}, "make test", "")
    settings = json.loads(settings_text([gate]))
    assert (settings["$schema"], list(SETTINGS.iter_errors(settings))) == (settings_schema()["$id"], [])


def one_hook(entry: Any, event: str = "Stop", **group: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": [entry], **group}]}}


GOOD: Mapping[str, Any] = {
    "nothing": {},
    "no hooks": {"hooks": {}},
    "a command": stop_hooks("make"),
    "every key of a command": one_hook(
        {
            **MAKE,
            "args": ["x"],
            "shell": "bash",
            "env": {"A": "1"},
            "timeout": 0.5,
            "id": "x",
            "enabled": False,
            "mode": "observe",
            "blocking": True,
            "outcomes": ["ok", "error", "timeout"],
            "async": True,
            "if": "Bash",
            "statusMessage": "",
        }
    ),
    "every key of a prompt": one_hook({**ASK, "model": "haiku", "transcript": "digest", "timeout": 5}),
    "an agent": one_hook({"type": "agent", "prompt": "look", "model": "haiku"}),
    "every key of http": one_hook(
        {"type": "http", "url": "http://x/", "headers": {"A": "$B"}, "allowedEnvVars": ["B"]},
        event="PreToolUse",
    ),
    "a matcher": one_hook(MAKE, event="SubagentStop", matcher="Explore"),
    "a matcher without meaning": one_hook(MAKE, matcher="x"),
    "keys of others": one_hook({**MAKE, "once": True, "colour": "red", "prompt": 5}),
    "an unknown event": one_hook(MAKE, event="Foo"),
    "a foreign event": one_hook("anything", event="Notification"),
    "settings of others": {"permissions": 5, "colour": "red"},
    "every key of the section": {
        "turngate": {
            "limit": 0,
            "hardLimit": 20,
            "order": "first_block",
            "mode": {"Stop": "observe"},
            "payload": "strict",
            "defaults": {"command": 5, "Stop": 0.5, "SubagentStop": {"prompt": 1}},
            "stopBudget": 9,
            "model": "x:y",
            "judge": "x:z",
            "plugins": ["a"],
            "pluginDirs": [],
            "allowedUrls": ["*.a"],
        }
    },
    "the rest": {
        "$schema": "s",
        "disableAllHooks": True,
        "env": {"A": ""},
        "agents": {"defaults": {"subagents": {"maxSteerRestarts": 3}}},
    },
}


@pytest.mark.parametrize("value", GOOD.values(), ids=GOOD)
def test_what_the_reader_takes_the_schema_takes(value: Any) -> None:
    assert [problem for problem in read(value).problems if problem.severity == "error"] == []
    assert complaints(SETTINGS, value) == []


def complaints(validator: Any, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


@pytest.mark.parametrize(
    "value",
    [
        {"hooks": None},
        {"disableAllHooks": None},
        one_hook(MAKE, event="SubagentStop", matcher=None),
        {"agents": None},
        {"agents": {"defaults": None}},
    ],
    ids=str,
)
def test_null_is_valid_in_the_schema_where_the_parser_accepts_it(value: Any) -> None:
    assert complaints(SETTINGS, value) == [str(problem) for problem in read(value).problems] == []


BAD: Mapping[str, Any] = {
    "hooks a list": {"hooks": []},
    "event an object": {"hooks": {"Stop": {}}},
    "group a command": {"hooks": {"Stop": ["make"]}},
    "flat entry": {"hooks": {"Stop": [MAKE]}},
    "group without hooks": {"hooks": {"SubagentStop": [{"matcher": "x"}]}},
    "hooks null": {"hooks": {"Stop": [{"hooks": None}]}},
    "matcher a number": one_hook(MAKE, matcher=5),
    "entry a command": one_hook("make"),
    "no type": one_hook({"command": "make"}),
    "unknown type": one_hook({**MAKE, "type": "shell"}),
    "no command": one_hook({"type": "command", "prompt": "x"}),
    "empty command": one_hook({"type": "command", "command": ""}),
    "blank command": one_hook({"type": "command", "command": " \n"}),
    "no prompt": one_hook({"type": "agent"}),
    "no url": one_hook({"type": "http", "command": "make"}),
    "prompt before a compaction": one_hook(ASK, event="PreCompact"),
    "agent at the start": one_hook({"type": "agent", "prompt": "x"}, event="SessionStart"),
    "timeout 0": one_hook({**MAKE, "timeout": 0}),
    "timeout a text": one_hook({**MAKE, "timeout": "5"}),
    "timeout true": one_hook({**MAKE, "timeout": True}),
    "args a text": one_hook({**MAKE, "args": "x"}),
    "env with a number": one_hook({**MAKE, "env": {"A": 1}}),
    "env with a bad name": one_hook({**MAKE, "env": {"A-B": "1"}}),
    "env too long": one_hook({**MAKE, "env": {"A": "x" * 8_001}}),
    "env too large": one_hook({**MAKE, "env": {f"V{n}": "" for n in range(201)}}),
    "headers with a number": one_hook({"type": "http", "url": "x", "headers": {"A": 1}}),
    "disableAllHooks a text": {"disableAllHooks": "yes"},
    "variables too long": {"env": {"A": "x" * 8_001}},
    "limit -1": {"turngate": {"limit": -1}},
    "limit a text": {"turngate": {"limit": "3"}},
    "unknown order": {"turngate": {"order": "random"}},
    "order of an unknown event": {"turngate": {"order": {"stop": "parallel"}}},
    "unknown mode": {"turngate": {"mode": {"Stop": "off"}}},
    "unknown payload": {"turngate": {"payload": "six"}},
    "default of an unknown kind": {"turngate": {"defaults": {"script": 5}}},
    "default 0": {"turngate": {"defaults": {"Stop": {"command": 0}}}},
    "budget 0": {"turngate": {"stopBudget": 0}},
    "plugins a text": {"turngate": {"plugins": "x"}},
    "section a list": {"turngate": []},
    "steer restarts": {"agents": {"defaults": {"subagents": {"maxSteerRestarts": -1}}}},
    "a list": [],
}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_what_the_parser_rejects_the_schema_rejects(value: Any) -> None:
    assert [problem for problem in read(value).problems if problem.severity == "error"]
    assert not SETTINGS.is_valid(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shell", "zsh"),
        ("id", ""),
        ("enabled", "no"),
        ("mode", "off"),
        ("blocking", 1),
        ("outcomes", []),
        ("outcomes", ["killed"]),
        ("async", "yes"),
        ("if", ""),
        ("statusMessage", 5),
    ],
)
def test_what_the_parser_ignores_with_a_warning_the_schema_rejects(name: str, value: Any) -> None:
    entry = one_hook({**MAKE, name: value})
    assert [problem.severity for problem in read(entry).problems] == ["warning"]
    assert not SETTINGS.is_valid(entry)


def test_every_key_has_words_for_the_editor() -> None:
    describe_types = [*keys.HOOK_KEYS.items(), *keys.TURNGATE_KEYS.items()]
    assert [name for name, key in describe_types if not key.type.schema.get("description")] == []


# What a schema can say: no NUL, no half characters, no infinity.
plain_text = st.sampled_from([word for word in WORDS if word.isascii() and "\0" not in word])
plain_text |= st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
plain_numbers = st.integers(-2, 2000) | st.sampled_from([0.5, -0.5, 1000.5])
plain_scalars = st.none() | st.booleans() | plain_numbers | plain_text
plain_names = [name for name in NAMES if name != "$schema"]  # only editors read this key
plain_junk = plain_scalars | json_values(plain_scalars, plain_names, leaves=6)
plain_values = settings_values(plain_junk, words=plain_text, numbers=plain_numbers)


@given(plain_values)
def test_a_file_without_a_mistake_validates(value: Any) -> None:
    if not any(_mistake(problem) for problem in read(value).problems):
        assert complaints(SETTINGS, value) == []


def _mistake(problem: Problem) -> bool:
    """A value that is not what was expected; a warning or a note about a sound one is none."""
    return problem.severity == "error" or ", expected " in problem.message


@given(plain_values)
def test_a_file_that_loses_a_hook_does_not_validate(value: Any) -> None:
    if any(_lost(problem) for problem in read(value).problems):
        assert not SETTINGS.is_valid(value)


def _lost(problem: Problem) -> bool:
    """A hook or a group was left out. That a matcher is a bad expression, no schema can say."""
    return (
        problem.severity == "error"
        and problem.index is not None
        and "not a valid regular expression" not in problem.message
    )


# Input

EVENTS_SENT: Mapping[str, Event] = {
    "Stop": stop_event(
        last_assistant_message="done",
        limit=3,
        effort="high",
        usage={"input": 1},
        prompt_id="p",
        duration_ms=5,
        tool_calls=1,
        background_tasks=({"id": "b"},),
        session_crons=({"id": "c"},),
        stop_hook_active=True,
    ),
    "SubagentStop": subagent_stop(outcome="error"),
    "TaskCompleted": stop_event(team_event="TaskCompleted", team_fields={"task_id": "1"}),
    "TeammateIdle": stop_event(team_event="TeammateIdle", team_fields={"teammate_name": "bob"}),
    **{name: kind(session_id="s") for name, kind in OTHER_EVENTS.items()},
}


@pytest.mark.req("S0-05")
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("event", EVENTS_SENT.values(), ids=EVENTS_SENT)
def test_what_a_hook_is_sent_validates(event: Event, dialect: Any) -> None:
    assert complaints(INPUT, json.loads(encode(event, dialect))) == []
    assert complaints(INPUT, json.loads(encode(event, dialect, "strict"))) == []


def test_every_event_has_been_sent() -> None:
    assert EVENTS_SENT.keys() == EVENTS.keys()


@pytest.mark.req("S0-24")
@pytest.mark.parametrize(
    "missing", ["session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name"]
)
def test_an_event_without_one_of_its_fields_does_not_validate(missing: str) -> None:
    told = json.loads(encode(stop_event(), TURNGATE))
    del told[missing]
    assert complaints(INPUT, told)[0] == f"$: {missing!r} is a required property"


def test_a_stop_says_whether_a_hook_is_active_and_no_other_event_must() -> None:
    six = json.loads(encode(stop_event(), TURNGATE, "strict"))
    five = {name: value for name, value in six.items() if name != "stop_hook_active"}
    assert complaints(INPUT, six) == complaints(INPUT, {**five, "hook_event_name": "SessionEnd"}) == []
    assert complaints(INPUT, five) == ["$: 'stop_hook_active' is a required property"]
    assert complaints(INPUT, {**six, "stop_hook_active": None}) != []


# Output

ANSWERS: Mapping[str, tuple[Any, bool]] = {
    "nothing": ({}, True),
    "a block": ({"decision": "block", "reason": "tests fail"}, True),
    "a denial": ({"decision": "deny", "reason": "tests fail"}, True),
    "an approval": ({"decision": "approve"}, True),
    "no decision": ({"decision": None}, True),
    "every field": (
        {
            "continue": False,
            "stopReason": "enough",
            "suppressOutput": True,
            "systemMessage": "hello",
            "hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "look"},
        },
        True,
    ),
    "a block without a reason": ({"decision": "block"}, False),
    "an unknown decision": ({"decision": "BLOCK", "reason": "x"}, False),
    "a reason that is none": ({"reason": 5}, False),
    "continue a text": ({"continue": "false"}, False),
    "advice without its event": ({"hookSpecificOutput": {"additionalContext": "look"}}, False),
    "advice for an unknown event": ({"hookSpecificOutput": {"hookEventName": "stop"}}, False),
    "a list": ([], False),
}


@pytest.mark.parametrize(("answer", "valid"), ANSWERS.values(), ids=ANSWERS)
def test_the_output_schema_describes_the_json_contract(answer: Any, valid: bool) -> None:
    assert OUTPUT.is_valid(answer) == valid
