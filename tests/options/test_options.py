"""Hooks that Python configures: what is wrong is said at once, what is right runs in order."""

import asyncio
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import stop_event, subagent_stop, world
from tests.support.kinds import LISTED_KINDS
from tests.support.timeouts import NEVER_S
from turngate import (
    Advise,
    AgentHook,
    Allow,
    Block,
    CallbackHook,
    CallbackHookConfig,
    CommandHook,
    CommandHookConfig,
    Continue,
    HookCallbackMatcher,
    HookGroup,
    HookOutput,
    HttpHook,
    InvalidOptions,
    Options,
    PromptHook,
    PromptHookConfig,
    Rule,
    ScriptedModel,
    Session,
    Settings,
    Stop,
    StopEvent,
    StopHookInput,
    Subagent,
    SubagentStopHookInput,
    ask_hooks,
    load_settings,
)
from turngate.core.constants import JUDGED_EVENTS
from turngate.core.events.stream_events import HookFinished, HookStarted, SessionEvent, TurnResult
from turngate.core.verdict.verdict import Verdict
from turngate.errors import UsageError

EVENTS = (
    "Stop, SubagentStop, SessionStart, UserPromptSubmit, PreToolUse, PermissionRequest, PostToolUse, "
    "PostToolUseFailure, PostToolBatch, PreCompact, SubagentStart, StopFailure, SessionEnd"
)


def ask(options: Options, project: Path, event: StopEvent | None = None) -> Verdict:
    return asyncio.run(ask_hooks(event or stop_event(cwd=str(project)), options.settings(), world(project)))


def nothing(event: StopEvent) -> None: ...


# What is wrong


@pytest.mark.req("S2-03", "S2-20", "C-35", "S3-34")
@pytest.mark.parametrize(
    ("event", "configs", "said"),
    [
        ("Stop", [{"type": "command"}], "Stop[0].command: is missing, expected a non-empty string"),
        ("Stop", [{"type": "command", "command": ""}], "Stop[0].command: is '', expected a non-empty string"),
        ("Stop", [CommandHook(" ")], "Stop[0].command: is ' ', expected a non-empty string"),
        ("Stop", [{"type": "prompt"}], "Stop[0].prompt: is missing, expected a non-empty string"),
        ("Stop", [{"type": "prompt", "prompt": ""}], "Stop[0].prompt: is '', expected a non-empty string"),
        ("Stop", [PromptHook("")], "Stop[0].prompt: is '', expected a non-empty string"),
        ("Stop", [{"type": "callback"}], "Stop[0].callback: is missing, expected a function"),
        (
            "Stop",
            [{"type": "callback", "callback": nothing, "name": 5}],
            "Stop[0].name: is 5, expected a string",
        ),
        (
            "Stop",
            [{"type": "prompt", "prompt": "?", "timeout_ms": 5}],
            "Stop[0].timeout_ms: is not a field of prompt hooks (write `timeout`, here in milliseconds)",
        ),
        (
            "Stop",
            [{"type": "Prompt", "prompt": "?"}],
            (f"Stop[0].type: is 'Prompt', expected one of {LISTED_KINDS} (did you mean \"prompt\"?)"),
        ),
        ("Stop", [{"type": "callback", "callback": 3}], "Stop[0].callback: is 3, expected a function"),
        ("Stop", [CallbackHook("f")], "Stop[0].callback: is 'f', expected a function"),  # type: ignore[arg-type]
        (
            "Stop",
            [{"type": "webhook"}],
            f"Stop[0].type: is 'webhook', expected one of {LISTED_KINDS}",
        ),
        (
            "Stop",
            [{"command": "true"}],
            f'Stop[0].type: is missing, expected one of {LISTED_KINDS} (add "type": "command")',
        ),
        (
            "Stop",
            [{"type": "command", "command": "true", "prompt": "?"}],
            "Stop[0].prompt: is a field of prompt and agent hooks, not of command hooks",
        ),
        (
            "Stop",
            [{"type": "prompt", "prompt": "?", "callback": print}],
            "Stop[0].callback: is a field of callback hooks, not of prompt hooks",
        ),
        (
            "Stop",
            [{"type": "http", "url": "http://x", "colour": 1}],
            "Stop[0].colour: is not a field of http hooks",
        ),
        *(
            (
                "Stop",
                [{"type": "command", "command": "true", "timeout": limit}],
                f"Stop[0].timeout: is {limit!r}, expected a whole number of milliseconds above 0",
            )
            for limit in ("30", 1.5, 0, -5, None, True)
        ),
        (
            "Stop",
            [{"type": "command", "command": "true", "timeout": 10**5000}],
            "Stop[0].timeout: is a number of more than 60 digits, expected a whole number of milliseconds above 0",
        ),
        ("Stop", [CallbackHook(nothing, name=5)], "Stop[0].name: is 5, expected a string"),  # type: ignore[arg-type]
        (
            "Stop",
            [{"type": "command", "command": "true", "args": ["a", 5]}],
            "Stop[0].args: is a list with 5 in it, expected a list of strings",
        ),
        *(
            (
                "Stop",
                [hook],
                'Stop[0].env: has an invalid entry 1, expected an object of names and strings, or "clean"',
            )
            for hook in (
                CommandHook("true", env={1: "a"}),  # type: ignore[dict-item]
                {"type": "command", "command": "true", "env": {1: "a"}},
            )
        ),
        *(
            ("Stop", [hook], "Stop[0].headers: has an invalid entry 1, expected an object of strings")
            for hook in (
                HttpHook("https://x", headers={1: "a"}),  # type: ignore[dict-item]
                {"type": "http", "url": "https://x", "headers": {1: "a"}},
            )
        ),
        *(
            (
                "Stop",
                [hook],
                "Stop[0].url: not a url is not a valid URL: it must begin with https:// or http:// and name a host",
            )
            for hook in (HttpHook("not a url"), {"type": "http", "url": "not a url"})
        ),
        (
            "Stop",
            [HttpHook("https://me:secret@x/")],
            "Stop[0].url: https://…@x/ contains a password: put it in `headers`, as a variable",
        ),
        (
            "Stop",
            [{"type": "command", "command": "true", 10**5000: 1}],
            "Stop[0].a number of more than 60 digits: is not a field of command hooks",
        ),
        ("PreStop", [], f'PreStop: is not a known event, expected one of {EVENTS} (did you mean "Stop"?)'),
        ("stop", [], f'stop: is not a known event, expected one of {EVENTS} (did you mean "Stop"?)'),
        ("Notification", [], "Notification: is an event that Turngate does not fire"),
        ("Stop", CommandHook("true"), "Stop: is of the type CommandHook, expected a list of hooks"),
        ("Stop", {"type": "command"}, "Stop: is a dict, expected a list of hooks"),
        ("Stop", ["make test"], "Stop[0]: is 'make test', expected a hook"),
        (
            "Stop",
            [nothing],
            "Stop[0]: is of the type function, expected a hook (write CallbackHook(nothing))",
        ),
        (
            "SessionStart",
            [PromptHook("?")],
            f'SessionStart[0].type: is "prompt", but prompt hooks run only on {", ".join(JUDGED_EVENTS)}',
        ),
        (
            "SessionEnd",
            [AgentHook("?")],
            f'SessionEnd[0].type: is "agent", but agent hooks run only on {", ".join(JUDGED_EVENTS)}',
        ),
        (
            "PreToolUse",
            [HookGroup("Bash", [CommandHook("true"), CommandHook("")])],
            "PreToolUse[0].hooks[1].command: is '', expected a non-empty string",
        ),
        ("Stop", [{"matcher": 1, "hooks": []}], "Stop[0].matcher: is 1, expected a string"),
        (
            "PreToolUse",
            [HookGroup("(Bash", [])],
            "PreToolUse[0].matcher: is '(Bash', which never matches, expected names or a regular expression",
        ),
        ("Stop", [{"hooks": "f"}], "Stop[0].hooks: is 'f', expected a list of hooks"),
        ("Stop", [{"hooks": [], "id": "x"}], "Stop[0].id: is not a field of a group of hooks"),
    ],
)
def test_a_mistake_names_its_event_place_and_field_and_what_was_expected(
    event: str, configs: Any, said: str
) -> None:
    with pytest.raises(ValueError, match="problem") as raised:
        Options({event: configs})
    assert str(raised.value) == f"1 problem in the options\n  {said}"


@pytest.mark.req("S2-20", "C-35")
def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options(
            {
                "Stop": [
                    {"type": "command", "timeout": 0},
                    {"type": "prompt", "prompt": "?", "command": "x"},
                ],
                "Finish": [],
                "SubagentStop": 7,  # type: ignore[dict-item]
            },
            timeout_ms=0,
            mode="watch",  # type: ignore[arg-type]
            order={"Stop": "random"},  # type: ignore[dict-item]
            dialect="klingon",
            limit=-1,
        )
    assert str(raised.value).splitlines() == [
        "10 problems in the options",
        "  Stop[0].timeout: is 0, expected a whole number of milliseconds above 0",
        "  Stop[0].command: is missing, expected a non-empty string",
        "  Stop[1].command: is a field of command and gate hooks, not of prompt hooks",
        f'  Finish: is not a known event, expected one of {EVENTS} (did you mean "Stop"?)',
        "  SubagentStop: is 7, expected a list of hooks",
        "  timeout_ms: is 0, expected a whole number of milliseconds above 0",
        '  mode: is \'watch\', expected "gate" or "observe", for all or per event',
        '  order: has an invalid entry \'Stop\', expected "parallel", "sequential" or "first_block", for all or per event',
        '  dialect: is \'klingon\', expected one of "turngate", "mux", "claude"',
        "  limit: is -1, expected a whole number, 0 or more",
    ]


@pytest.mark.req("S2-20")
@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            {"timeout_ms": 10**5000},
            "timeout_ms: is a number of more than 60 digits, expected a whole number of milliseconds above 0",
        ),
        (
            {"limit": 10**5000},
            "limit: is a number of more than 60 digits, expected a whole number, 0 or more",
        ),
        (
            {"limit": -(10**5000)},
            "limit: is a number of more than 60 digits, expected a whole number, 0 or more",
        ),
        (
            {"mode": {1: "gate"}},
            'mode: has an invalid entry 1, expected "gate" or "observe", for all or per event',
        ),
    ],
)
def test_an_invalid_field_of_the_options_is_reported_like_any_other_mistake(own: Any, said: str) -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options(**own)
    assert str(raised.value) == f"1 problem in the options\n  {said}"


def test_hooks_that_are_no_dict_are_a_mistake() -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options([CommandHook("true")])  # type: ignore[arg-type]
    assert str(raised.value) == "1 problem in the options\n  hooks: is a list, expected a dict of events"


# JSON


@pytest.mark.req("S2-04", "S2-05", "S2-06", "S2-07", "C-01")
@pytest.mark.parametrize(
    ("hook", "told"),
    [
        (CommandHookConfig("make test"), {"type": "command", "command": "make test"}),
        (
            CommandHookConfig("make", args=("test",), timeout_ms=1500),
            {"type": "command", "command": "make", "args": ["test"], "timeout": 1500},
        ),
        (PromptHookConfig("Done?"), {"type": "prompt", "prompt": "Done?"}),
        (PromptHookConfig("Done?", timeout=0.2), {"type": "prompt", "prompt": "Done?", "timeout": 200}),
        (CallbackHookConfig(nothing), {"type": "callback"}),
        (
            AgentHook("Look.", model="x:y", mode="observe"),
            {"type": "agent", "prompt": "Look.", "model": "x:y", "mode": "observe"},
        ),
        (
            HttpHook("http://x", headers={"A": "$T"}, allowed_env_vars=("T",), id="post", blocking=True),
            {
                "type": "http",
                "url": "http://x",
                "headers": {"A": "$T"},
                "allowedEnvVars": ["T"],
                "id": "post",
                "blocking": True,
            },
        ),
    ],
)
def test_a_config_goes_to_json_and_comes_back(hook: Any, told: dict[str, Any]) -> None:
    options = Options({"SubagentStop": [hook]})
    written = json.dumps(options.to_json())
    functions = [hook.callback] if isinstance(hook, CallbackHook) else []
    assert (json.loads(written), Options.from_json(written, functions)) == (
        {"hooks": {"SubagentStop": [told]}},
        options,
    )


@pytest.mark.req("S2-06", "S2-07")
def test_whole_options_go_to_json_and_come_back_with_their_functions_in_order() -> None:
    def first(event: StopEvent) -> None: ...

    def second(event: StopEvent) -> None: ...

    options = Options(
        {
            "Stop": [CallbackHook(first), CommandHook("true")],
            "PreToolUse": [HookGroup("Bash", [CallbackHook(second)])],
        },
        timeout_ms=5000,
        mode="observe",
        order={"Stop": "first_block"},
        dialect="claude",
        limit=2,
        model="a:b",
        judge="c:d",
    )
    told = options.to_json()
    assert told == {
        "hooks": {
            "Stop": [{"type": "callback"}, {"type": "command", "command": "true"}],
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "callback"}]}],
        },
        "timeout": 5000,
        "mode": "observe",
        "order": {"Stop": "first_block"},
        "dialect": "claude",
        "limit": 2,
        "model": "a:b",
        "judge": "c:d",
    }
    assert Options.from_json(told, [first, second]) == options


def test_a_callback_that_comes_back_without_its_function_is_a_mistake() -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options.from_json('{"hooks": {"Stop": [{"type": "callback"}]}, "colour": "red"}')
    assert str(raised.value) == (
        "2 problems in the options\n"
        "  colour: is not an option\n"
        "  Stop[0].callback: is missing, expected a function"
    )


@pytest.mark.parametrize(("told", "said"), [("[]", "is a list"), ("3", "is 3"), ("null", "is None")])
def test_json_that_is_no_object_is_a_mistake(told: str, said: str) -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options.from_json(told)
    assert str(raised.value) == f"1 problem in the options\n  {said}, expected an object"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", " at line 1, column 1: expecting value"),
        ('{"hooks": {}}\n}', " at line 2, column 1: there is more text after the JSON value"),
        (
            '{"hooks": {},}',
            " at line 1, column 13: a comma before the closing bracket is not allowed in JSON",
        ),
        ("[" * 100_000, ": it is nested too deeply, or a number in it is too long"),
        ('{"hooks":' + '{"a":' * 100_000, ": it is nested too deeply, or a number in it is too long"),
        ('{"limit":' + "9" * 5000 + "}", ": it is nested too deeply, or a number in it is too long"),
    ],
)
def test_a_text_that_is_no_json_is_a_mistake(text: str, said: str) -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options.from_json(text)
    assert str(raised.value) == f"1 problem in the options\n  is not JSON{said}"


def test_json_that_holds_itself_is_a_mistake_like_any_other() -> None:
    itself: list[Any] = []
    itself.append(itself)
    group: dict[str, Any] = {}
    group["hooks"] = [group]
    with pytest.raises(InvalidOptions) as raised:
        Options.from_json({"hooks": {"Stop": itself, "SubagentStop": [group]}})
    assert str(raised.value) == (
        "2 problems in the options\n"
        "  Stop[0]: is a list, expected a hook\n"
        "  SubagentStop[0].hooks[0].type: is missing, expected one of "
        f'{LISTED_KINDS} (add "type": "command")'
    )


@pytest.mark.parametrize(("given", "what"), [(5, "5"), (nothing, "of the type function")])
def test_functions_that_are_no_list_are_a_mistake(given: Any, what: str) -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options.from_json({}, callbacks=given)
    assert str(raised.value) == (
        f"1 problem in the options\n  callbacks: is {what}, expected a list of functions"
    )


def test_tuples_and_read_only_dicts_get_their_functions_too() -> None:
    callback = MappingProxyType({"type": "callback"})
    group = MappingProxyType({"matcher": "Bash", "hooks": (callback,)})
    command = MappingProxyType(
        {"type": "command", "command": "x", "args": ("a",), "env": MappingProxyType({"A": "b"})}
    )
    told = MappingProxyType({"hooks": MappingProxyType({"PreToolUse": (callback, group, command)})})
    assert Options.from_json(told, [nothing, print]) == Options(
        {
            "PreToolUse": [
                CallbackHook(nothing),
                HookGroup("Bash", (CallbackHook(print),)),
                CommandHook("x", args=("a",), env={"A": "b"}),
            ]
        }
    )


def test_a_function_too_many_is_reported_with_the_others() -> None:
    told = {"hooks": {"Stop": [{"type": "callback"}, {"type": "command"}]}, "colour": "red"}
    with pytest.raises(InvalidOptions) as raised:
        Options.from_json(told, [nothing, nothing])
    assert str(raised.value) == (
        "3 problems in the options\n"
        "  colour: is not an option\n"
        "  callbacks: has more functions than there are callback hooks\n"
        "  Stop[1].command: is missing, expected a non-empty string"
    )
    with pytest.raises(InvalidOptions, match="callbacks: has more functions than there are callback hooks"):
        Options.from_json({"hooks": {}}, [nothing])


def test_a_limit_below_a_millisecond_is_written_as_one() -> None:
    told = Options({"Stop": [CommandHook("true", timeout=0.0001)]}).to_json()
    assert told == {"hooks": {"Stop": [{"type": "command", "command": "true", "timeout": 1}]}}


texts = st.text("ab é$", min_size=1).filter(str.strip)
words = st.text("ab é$")


def fields_of(**own: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    """A field of every kind of hook, and its own."""
    return {
        "timeout_ms": st.none() | st.integers(1, 10**12),
        "id": st.none() | texts,
        "enabled": st.booleans(),
        "mode": st.sampled_from([None, "gate", "observe"]),
        "blocking": st.booleans(),
        "outcomes": st.lists(st.sampled_from(["ok", "error", "timeout"]), min_size=1),
        "detached": st.booleans(),
        "condition": st.none() | texts,
        "status_message": st.none() | words,
        **own,
    }


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


hooks = st.one_of(
    st.builds(
        lambda command, others: CommandHook(command, **others),
        texts,
        optional(
            **fields_of(
                args=st.none() | st.lists(words),
                shell=st.sampled_from([None, "sh", "bash"]),
                env=st.dictionaries(st.sampled_from("AB"), words),
            )
        ),
    ),
    st.builds(
        lambda prompt, others: PromptHook(prompt, **others),
        texts,
        optional(
            **fields_of(
                model=st.none() | texts,
                transcript=st.sampled_from([None, "none", "last", "digest", "full"]),
            )
        ),
    ),
    st.builds(
        lambda prompt, others: AgentHook(prompt, **others),
        texts,
        optional(**fields_of(model=st.none() | texts)),
    ),
    st.builds(
        lambda path, others: HttpHook(f"https://x/{path}", **others),
        st.text("ab"),
        optional(**fields_of(headers=st.dictionaries(texts, words), allowed_env_vars=st.lists(words))),
    ),
    st.builds(
        lambda function, others: CallbackHook(function, **others),
        st.sampled_from([nothing, print, len]),
        optional(**fields_of()),
    ),
)
groups = st.builds(HookGroup, st.sampled_from([None, "", "*", "coder"]), st.lists(hooks, max_size=3))


def per_event(*known: str) -> st.SearchStrategy[Any]:
    word = st.sampled_from(known)
    return st.none() | word | st.dictionaries(st.sampled_from(["Stop", "PreToolUse"]), word)


@pytest.mark.req("S2-04", "S2-05", "S2-06", "S2-07")
@given(
    st.dictionaries(st.sampled_from(["Stop", "SubagentStop"]), st.lists(hooks | groups, max_size=3)),
    optional(
        timeout_ms=st.none() | st.integers(1, 10**12),
        mode=per_event("gate", "observe"),
        order=per_event("parallel", "sequential", "first_block"),
        dialect=st.sampled_from([None, "turngate", "mux", "claude"]),
        limit=st.none() | st.integers(0, 10**9),
        model=st.none() | texts,
        judge=st.none() | texts,
    ),
)
def test_whatever_is_written_comes_back(configs: Any, own: dict[str, Any]) -> None:
    options = Options(configs, **own)
    functions = [
        rule.hook.callback for rule in options.rules_as_written() if isinstance(rule.hook, CallbackHook)
    ]
    told = options.to_json()
    assert (
        options == Options.from_json(told, functions) == Options.from_json(json.dumps(told), iter(functions))
    )


def test_what_is_changed_later_changes_no_options() -> None:
    args, outcomes, names = ["a"], ["error"], ["T"]
    inner: list[Any] = [CallbackHook(nothing)]
    env, headers, entry = {"A": "b"}, {"X": "$T"}, {"C": "d"}
    mode: Any = {"Stop": "observe"}
    order: Any = {"Stop": "parallel"}
    hooks: list[Any] = [
        CommandHook("x", args=args, outcomes=outcomes, env=env),  # type: ignore[arg-type]
        HttpHook("https://x", headers=headers, allowed_env_vars=names),  # type: ignore[arg-type]
        {"type": "command", "command": "y", "env": entry},
        HookGroup(None, inner),
    ]
    options = Options({"Stop": hooks}, mode=mode, order=order)
    written = options.to_json()
    for changed in (args, outcomes, names, inner, hooks):
        changed.append("bogus")
    for each in (env, headers, entry, mode, order):
        each["Stop"] = "bogus"
    options.to_json()["mode"]["Stop"] = "bogus"
    assert (options.to_json(), options) == (
        written,
        Options(
            {
                "Stop": [
                    CommandHook("x", args=("a",), outcomes=("error",), env={"A": "b"}),
                    HttpHook("https://x", headers={"X": "$T"}, allowed_env_vars=("T",)),
                    CommandHook("y", env={"C": "d"}),
                    HookGroup(None, (CallbackHook(nothing),)),
                ]
            },
            mode={"Stop": "observe"},
            order={"Stop": "parallel"},
        ),
    )


# What is right


@pytest.mark.req("S2-08", "S2-36", "C-01", "C-05")
def test_options_become_settings_in_order_with_one_unit_of_time() -> None:
    options = Options(
        {
            "Stop": [
                {"type": "command", "command": "true", "timeout": 1500},
                PromptHook("Done?"),
                CallbackHook(nothing, timeout_ms=20),
            ],
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "false"}]}],
        },
        timeout_ms=4000,
        judge="a:small",
    )
    assert options.settings() == Settings(
        rules=(
            Rule("Stop", CommandHook("true", timeout=1.5), index="[0]"),
            Rule("Stop", PromptHook("Done?", timeout=4.0), index="[1]"),
            Rule("Stop", CallbackHook(nothing, timeout=0.02), index="[2]"),
            Rule("PreToolUse", CommandHook("false", timeout=4.0), "Bash", index="[0].hooks[0]"),
        ),
        order={"*": "sequential"},
        judge="a:small",
    )


def test_options_add_to_what_the_files_say(project: Path) -> None:
    (project / ".turngate").mkdir()
    (project / ".turngate" / "settings.json").write_text(
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]},'
        ' "turngate": {"limit": 5, "order": {"Stop": "parallel"}, "judge": "x:y"}}'
    )
    base = load_settings(str(project))
    quiet, loud = Options({"Stop": [CommandHook("b")]}), Options(order="first_block", limit=1, judge="z:z")
    merged = [quiet.settings(base), loud.settings(base)]
    assert [
        (
            [rule.hook for rule in each.rules],
            each.order_of("Stop"),
            each.order_of("SubagentStop"),
            each.limit,
            each.judge,
        )
        for each in merged
    ] == [
        ([CommandHook("a"), CommandHook("b")], "parallel", "sequential", 5, "x:y"),
        ([CommandHook("a")], "first_block", "first_block", 1, "z:z"),
    ]


@pytest.mark.req("S2-28", "S2-32")
def test_every_hook_of_an_event_gets_the_same_input(project: Path) -> None:
    seen: list[Any] = []

    def old(told: dict[str, Any], tool_use_id: str | None, context: Any) -> None:
        seen.append(told)

    options = Options(
        {"Stop": [CommandHook("cat > told"), CallbackHook(seen.append), CallbackHook(old)]},
    )
    event = stop_event(cwd=str(project), stop_hook_active=True)
    ask(options, project, event)
    told = json.loads((project / "told").read_text())
    assert seen == [event, told]
    assert told["stop_hook_active"] is True


@pytest.mark.req("S2-26", "C-03")
@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        (Options({"Stop": [CommandHook("echo no >&2; exit 2")]}), "block"),
        (Options({"Stop": [CommandHook("echo no >&2; exit 2")]}, mode="gate"), "block"),
        (Options({"Stop": [CommandHook("echo no >&2; exit 2")]}, mode="observe"), "would_block"),
        (Options({"Stop": [CommandHook("echo no >&2; exit 2")]}, mode={"Stop": "observe"}), "would_block"),
        (Options({"Stop": [CommandHook("echo no >&2; exit 2")]}, mode={"SubagentStop": "observe"}), "block"),
        (Options({"Stop": [CommandHook("echo no >&2; exit 2", mode="observe")]}), "would_block"),
        (Options({"Stop": [CommandHook("echo no >&2; exit 2", mode="gate")]}, mode="observe"), "block"),
    ],
)
def test_a_block_is_enforced_unless_the_mode_is_observe(
    project: Path, options: Options, outcome: str
) -> None:
    verdict = ask(options, project)
    assert (type(verdict), [each.outcome for each in verdict.hook_outputs]) == (
        Continue if outcome == "block" else Stop,
        [outcome],
    )


def turn(project: Path, options: Options, script: Any) -> tuple[TurnResult, list[SessionEvent]]:
    events: list[SessionEvent] = []

    async def played() -> TurnResult:
        settings = options.settings()
        async with Session(str(project), ScriptedModel(script), settings, on_event=events.append) as session:
            return await session.send("go")

    return asyncio.run(played()), events


@pytest.mark.req("S2-08", "S2-10", "S2-12", "S2-27", "C-05")
def test_hooks_of_all_kinds_run_one_after_another_and_every_output_is_kept(project: Path) -> None:
    options = Options(
        {
            "Stop": [
                CommandHook("sleep 0.2; exit 1", id="slow"),
                PromptHook("Was it tested?"),
                CallbackHook(lambda _: Advise("be quick"), name="function"),
                CommandHook("echo fine"),
            ]
        },
        limit=0,
    )
    said = '{"ok": false, "reason": "not tested"}'
    result, events = turn(project, options, {"main": ["done"], "judge": [said]})
    assert result.hook_outputs == (
        HookOutput("Stop", "slow", "command", "failed", "exit code 1, nothing on stderr"),
        HookOutput("Stop", "Was it tested?", "prompt", "block", "not tested", said),
        HookOutput("Stop", "function", "callback", "advise", "be quick"),
        HookOutput("Stop", "echo fine", "command", "allow", None, "fine\n"),
    )
    assert [(type(e).__name__, e.hook) for e in events if isinstance(e, HookStarted | HookFinished)] == [
        (word, hook)
        for hook in ("slow", "Was it tested?", "function", "echo fine")
        for word in ("HookStarted", "HookFinished")
    ]


@pytest.mark.req("S2-01", "S2-27", "S2-31")
def test_what_a_model_says_of_the_work_is_in_the_result_and_in_the_stream(project: Path) -> None:
    judge = ['{"ok": false, "reason": "no test was run"}', '{"ok": true, "reason": "well done"}']
    options = Options({"Stop": [PromptHook("Was it tested?")]})
    result, events = turn(project, options, {"main": ["done", "tested"], "judge": judge})
    assert [(each.kind, each.outcome, each.said) for each in result.hook_outputs] == [
        ("prompt", "block", "no test was run"),
        ("prompt", "allow", "well done"),
    ]
    assert [event.said for event in events if isinstance(event, HookFinished)] == [
        "no test was run",
        "well done",
    ]


@pytest.mark.req("S2-13", "S2-32")
def test_functions_sync_and_async_are_called_here_and_know_that_they_are_asked_again(project: Path) -> None:
    seen: list[tuple[str, bool, int]] = []

    def sync(event: StopEvent) -> Block | None:
        seen.append(("sync", event.stop_hook_active, os.getpid()))
        return None if event.stop_hook_active else Block("once more")

    async def later(event: StopEvent) -> Block | None:
        await asyncio.sleep(0)
        return sync(event)

    result, _ = turn(
        project, Options({"Stop": [CallbackHook(sync), CallbackHook(later)]}), {"main": ["done"]}
    )
    here = os.getpid()
    assert seen == [("sync", False, here)] * 2 + [("sync", True, here)] * 2
    assert [each.outcome for each in result.hook_outputs] == ["block", "block", "allow", "allow"]


@pytest.mark.req("S2-37")
def test_a_callback_gets_the_subagent_that_stops(project: Path) -> None:
    seen: list[str | None] = []

    def note(event: StopEvent) -> None:
        seen.append(event.subagent.type if event.subagent else None)

    task = {"tool": "Task", "input": {"description": "d", "prompt": "p", "subagent_type": "Explore"}}
    options = Options({"Stop": [CallbackHook(note)], "SubagentStop": [CallbackHook(note)]})
    turn(project, options, {"main": [task, "done"], "sub": ["found"]})
    assert seen == ["Explore", None]


@pytest.mark.req("S2-17", "S2-29", "C-01")
@pytest.mark.parametrize(
    "options",
    [
        Options({"Stop": [CallbackHook(lambda _: time.sleep(NEVER_S), timeout_ms=200)]}),
        Options({"Stop": [{"type": "callback", "callback": lambda _: time.sleep(NEVER_S), "timeout": 200}]}),
        Options({"Stop": [CallbackHook(lambda _: time.sleep(NEVER_S))]}, timeout_ms=200),
        Options({"Stop": [PromptHook("?", timeout_ms=200)]}),
        Options({"Stop": [PromptHook("?")]}, timeout_ms=200),
    ],
)
def test_two_hundred_milliseconds_are_two_hundred_milliseconds(project: Path, options: Options) -> None:
    slow = {"text": '{"ok": true, "reason": "late"}', "delay": NEVER_S}
    result, _ = turn(project, options, {"main": ["done"], "judge": [slow]})
    [each], [run] = result.hook_outputs, result.hook_runs
    assert (each.outcome, each.said, run.seconds >= 0.2) == ("timeout", "timed out after 0.2 s", True)


@pytest.mark.req("S2-17")
def test_the_limit_of_a_hook_counts_and_not_that_of_the_options() -> None:
    settings = Options(
        {"Stop": [PromptHook("?", timeout_ms=200), PromptHook("!")]}, timeout_ms=5000
    ).settings()
    assert [settings.timeout_of(rule) for rule in settings.rules] == [0.2, 5.0]


@pytest.mark.req("S2-16", "S2-29")
def test_a_prompt_that_names_no_limit_has_thirty_seconds() -> None:
    settings = Options({"Stop": [PromptHook("?")], "SubagentStop": [PromptHook("?")]}).settings()
    assert [settings.timeout_of(rule) for rule in settings.rules] == [30.0, 30.0]


# The old form


async def sdk_gate(told: dict[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
    return {"decision": "block", "reason": f"{told['hook_event_name']}, {context}"}


def sdk_halt(told: dict[str, Any], tool_use_id: str | None, context: Any) -> dict[str, Any]:
    return {"continue_": False, "stopReason": "enough"}


@pytest.mark.req("S2-14")
def test_the_legacy_form_still_works_also_next_to_the_new_one(project: Path) -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated; write"):
        old = HookCallbackMatcher(hooks=[sdk_gate, lambda _: Advise("be quick")], timeout=5)
    options = Options({"Stop": [old, CallbackHook(lambda _: Allow("fine"), name="new")]})
    assert [
        (each.hook, each.outcome, each.said, run.timeout)
        for run, each in zip(ask(options, project).runs, ask(options, project).hook_outputs, strict=True)
    ] == [
        ("sdk_gate", "block", "Stop, {'signal': None}", 5),
        (
            "test_the_legacy_form_still_works_also_next_to_the_new_one.<locals>.<lambda>",
            "advise",
            "be quick",
            5,
        ),
        ("new", "allow", "fine", 30),
    ]


@pytest.mark.req("S2-14")
@pytest.mark.parametrize(("matcher", "asked"), [("coder", 1), ("tester", 0), ("", 1), (None, 1)])
def test_an_old_matcher_still_chooses(project: Path, matcher: str | None, asked: int) -> None:
    seen: list[StopEvent] = []
    with pytest.warns(DeprecationWarning, match="is deprecated; write"):
        old = HookCallbackMatcher(matcher, [seen.append])
    ask(Options({"SubagentStop": [old]}), project, subagent_stop("coder"))
    assert len(seen) == asked


@pytest.mark.req("S2-14")
def test_a_callback_of_the_legacy_form_may_end_the_turn(project: Path) -> None:
    verdict = ask(Options({"Stop": [CallbackHook(sdk_halt)]}), project)
    assert verdict == Stop(verdict.runs, halted=True, stop_reason="enough")


@pytest.mark.req("S2-14", "S2-20")
def test_a_mistake_in_the_legacy_form_is_reported_like_any_other() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated; write"):
        wrong = HookCallbackMatcher("Bash", [nothing, "f"], 0)  # type: ignore[list-item]
    with pytest.warns(DeprecationWarning, match="is deprecated; write"):
        bare = HookCallbackMatcher(hooks=nothing)  # type: ignore[arg-type]
    with pytest.warns(DeprecationWarning, match="is deprecated; write"):
        odd = HookCallbackMatcher(None, [nothing, "f"])  # type: ignore[list-item]
    with pytest.raises(InvalidOptions) as raised:
        Options({"Stop": [wrong, odd, bare]})
    assert str(raised.value) == (
        "4 problems in the options\n"
        "  Stop[0].timeout: is 0, expected a number of seconds above 0\n"
        "  Stop[0].hooks[1].callback: is 'f', expected a function\n"
        "  Stop[1].hooks[1].callback: is 'f', expected a function\n"
        "  Stop[2].hooks: is of the type function, expected a list of functions"
    )


@pytest.mark.req("S2-15")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: HookCallbackMatcher(hooks=[sdk_gate]), "CallbackHook(sdk_gate)"),
        (
            lambda: HookCallbackMatcher("Bash", [sdk_gate, sdk_halt], 2.5),
            "HookGroup('Bash', [CallbackHook(sdk_gate, timeout=2.5), CallbackHook(sdk_halt, timeout=2.5)])",
        ),
        (lambda: HookCallbackMatcher(hooks=[lambda _: None]), "CallbackHook(…)"),
    ],
)
def test_the_legacy_form_warns_and_shows_the_new_one(old: Callable[[], object], new: str) -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated; write") as warned:
        old()
    assert [(str(each.message), Path(each.filename).name) for each in warned] == [
        (f"HookCallbackMatcher is deprecated; write {new} in Options.hooks", "test_options.py")
    ]


def test_an_old_matcher_without_functions_can_be_left_out() -> None:
    with pytest.warns(
        DeprecationWarning, match="HookCallbackMatcher is deprecated; remove it, it has no hooks"
    ):
        HookCallbackMatcher()


def test_a_callback_may_have_its_name_in_a_dict() -> None:
    options = Options({"Stop": [{"type": "callback", "callback": nothing, "name": "n"}]})
    assert options == Options({"Stop": [CallbackHook(nothing, name="n")]})


def test_a_session_takes_its_model_by_name(project: Path) -> None:
    async def turn() -> TurnResult:
        async with Session(str(project), f"scripted:{project}/s.json") as session:
            return await session.send("go")

    (project / "s.json").write_text('{"main": ["done"]}')
    assert asyncio.run(turn()).result == "done"


def test_a_session_with_options_names_the_parameters_that_it_takes(project: Path) -> None:
    with pytest.raises(UsageError) as raised:
        Session(str(project), ScriptedModel({}), Options())  # type: ignore[arg-type]
    assert str(raised.value) == "a session takes Settings, not Options; `Options(…).settings()` gives them"


@dataclass
class HookMatcher:
    """As another SDK has it."""

    matcher: str | None = None
    hooks: list[Any] = field(default_factory=list)
    timeout: float | None = None


@pytest.mark.req("S2-14", "S2-15")
@pytest.mark.parametrize(
    ("old", "form"),
    [
        ({"matcher": "Bash", "hooks": [sdk_gate], "timeout": 2.5}, "a function in a group"),
        (HookMatcher("Bash", [sdk_gate], 2.5), "HookMatcher"),
    ],
)
def test_matchers_of_other_sdks_are_the_legacy_form_too(old: Any, form: str) -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated; write") as warned:
        options = Options({"PreToolUse": [old]})
    assert options == Options({"PreToolUse": [HookGroup("Bash", (CallbackHook(sdk_gate, timeout=2.5),))]})
    new = "HookGroup('Bash', [CallbackHook(sdk_gate, timeout=2.5)])"
    assert [(str(each.message), Path(each.filename).name) for each in warned] == [
        (f"{form} is deprecated; write {new} in Options.hooks", "test_options.py")
    ]


def test_a_group_may_hold_a_function_next_to_hooks() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated; write"):
        options = Options(
            {"Stop": [{"hooks": [CommandHook("true"), nothing, {"type": "prompt", "prompt": "?"}]}]}
        )
    assert options == Options(
        {"Stop": [HookGroup(None, (CommandHook("true"), CallbackHook(nothing), PromptHook("?")))]}
    )


def test_the_legacy_form_warns_also_with_a_timeout_that_is_too_long_to_print() -> None:
    with pytest.warns(DeprecationWarning, match="timeout=a number of more than 60 digits"):
        old = HookCallbackMatcher(hooks=[nothing], timeout=10**5000)
    with pytest.raises(InvalidOptions) as raised:
        Options({"Stop": [old]})
    assert str(raised.value) == (
        "1 problem in the options\n"
        "  Stop[0].timeout: is a number of more than 60 digits, expected a number of seconds above 0"
    )


@pytest.mark.req("S2-15")
def test_the_legacy_form_warns_once_for_each_use() -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        for _ in range(3):
            HookCallbackMatcher(hooks=[sdk_gate])
        HookCallbackMatcher(hooks=[sdk_gate])
    assert len(warned) == 2


# Inputs


@pytest.mark.req("S2-09")
def test_both_events_have_the_same_six_fields() -> None:
    six: dict[str, Any] = {
        "session_id": "s",
        "transcript_path": "/t",
        "cwd": "/p",
        "permission_mode": "default",
    }
    stop = StopHookInput(**six, hook_event_name="Stop", stop_hook_active=True)
    child = SubagentStopHookInput(**six, stop_hook_active=True, agent_id="a-1", agent_type="coder")
    assert asdict(stop) == {**six, "hook_event_name": "Stop", "stop_hook_active": True}
    assert asdict(child) == {
        **six,
        "hook_event_name": "SubagentStop",
        "stop_hook_active": True,
        "agent_id": "a-1",
        "agent_type": "coder",
    }
    assert child.event() == StopEvent(
        session_id="s",
        transcript_path="/t",
        cwd="/p",
        stop_hook_active=True,
        subagent=Subagent(id="a-1", type="coder", transcript_path="/t"),
    )


@pytest.mark.req("S2-09")
def test_the_input_of_a_subagent_is_not_that_of_another_event() -> None:
    with pytest.raises(ValueError, match="hook_event_name must be \"SubagentStop\", not 'Stop'"):
        SubagentStopHookInput(
            session_id="s",
            transcript_path="",
            cwd="",
            permission_mode="",
            stop_hook_active=False,
            hook_event_name="Stop",  # type: ignore[arg-type]
        )


class AsyncObject:
    async def __call__(
        self, _told: dict[str, Any], _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        return {"continue_": False, "stopReason": "enough"}


@pytest.mark.req("S2-13")
def test_an_object_that_answers_later_is_waited_for(project: Path) -> None:
    result, _ = turn(project, Options({"Stop": [CallbackHook(AsyncObject())]}), {"main": ["done"]})
    assert (result.ended_by, result.stop_reason) == ("halted", "enough")
