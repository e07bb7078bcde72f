"""Gate hooks in settings and in `Options`: what is wrong with one is named, with what was probably meant."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.cli import turngate
from turngate import GateHook, InvalidOptions, Options, gate_callback
from turngate.core.dialect import CLAUDE, TURNGATE, Dialect
from turngate.core.hooks.kinds import hook_text, label
from turngate.core.settings import Layer
from turngate.core.verdict.json_output import hook_json, recorded_gate
from turngate.gates.arguments import GateCall, json_name, option_rows, parse_gate_words, read_gate_hook
from turngate.gates.gate import Gate
from turngate.gates.library import GATES
from turngate.settings.parse import parse_layer

UNTIL: dict[str, Any] = {"type": "gate", "gate": "until", "options": {"promise": "DONE", "maxIterations": 20}}


def read(entry: Any, event: str = "Stop", family: str = "turngate", dialect: Dialect = TURNGATE) -> Layer:
    hooks = {"hooks": {event: [{"hooks": [entry]}]}}
    return parse_layer(hooks, file="f", level="project", family=family, dialect=dialect)


def test_the_options_of_a_gate_are_read() -> None:
    [rule] = read(UNTIL).rules
    assert rule.hook == GateHook("until", options={"promise": "DONE", "maxIterations": 20})
    call = read_gate_hook(rule.hook)
    assert isinstance(call, GateCall)
    assert (call.gate.name, call.options, call.command) == (
        "until",
        {"promise": "DONE", "max-iterations": 20, "max-minutes": None},
        None,
    )


BAD: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "unknown gate": (
        {"gate": "untill"},
        'gate: is "untill", which is not a gate: the hook is left out',
        'did you mean "until"?',
    ),
    "no command": (
        {},
        "command: is missing, expected the command of the gate command: the hook is left out",
        'name a gate, such as "gate": "tests"',
    ),
    "a command in vain": (
        {"gate": "todos", "command": "make"},
        "command: is given, but the gate todos runs no command: the hook is left out",
        None,
    ),
    "arguments without a program": (
        {**UNTIL, "args": ["-k"]},
        "args: is given without `command`: the hook is left out",
        None,
    ),
    "unknown option": (
        {"gate": "until", "options": {"promise": "DONE", "max_iteration": 5}},
        "options.max_iteration: is not an option of the gate until: the hook is left out",
        'did you mean "maxIterations"?',
    ),
    "wrong number": (
        {"gate": "until", "options": {"promise": "DONE", "maxIterations": "20"}},
        'options.maxIterations: is "20", expected a number, 0 or more: the hook is left out',
        None,
    ),
    "null": (
        {"gate": "until", "options": {"promise": "x", "maxMinutes": None}},
        "options.maxMinutes: is null, expected a number, 0 or more: the hook is left out",
        None,
    ),
    "missing option": (
        {"gate": "until"},
        "options.promise: is missing, expected a non-empty string: the sentence that ends the loop: the hook is left out",
        None,
    ),
    "options that are none": (
        {"gate": "until", "options": []},
        "options: is a list, expected an object: the hook is left out",
        None,
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_leaves_the_hook_out_and_is_named(case: str) -> None:
    entry, message, hint = BAD[case]
    layer = read({"type": "gate", **entry})
    [problem] = layer.problems
    expected = ((), "error", f"f: Stop[0].hooks[0].{message}", hint)
    assert (layer.rules, problem.severity, str(problem), problem.hint) == expected


def test_a_misspelled_key_of_a_gate_is_named() -> None:
    [problem] = read({"type": "gate", "comand": "make"}).problems
    assert (str(problem), problem.hint) == (
        'f: Stop[0].hooks[0].comand: is not a key that Turngate knows, and "command" is missing: the hook is left out',
        'did you mean "command"?',
    )


def test_an_entry_without_a_type_may_be_a_gate() -> None:
    [problem] = read({"gate": "todos"}).problems
    assert problem.hint == 'add "type": "gate"'


@pytest.mark.parametrize("event", ["PreToolUse", "SessionStart", "SessionEnd"])
def test_a_gate_runs_at_stops(event: str) -> None:
    layer = read({"type": "gate", "command": "make"}, event)
    assert [problem.message for problem in layer.problems] == [
        'is "gate", but gate hooks run only on Stop, SubagentStop, TaskCompleted, TeammateIdle'
    ]


def test_the_same_mistakes_are_named_in_options() -> None:
    with pytest.raises(InvalidOptions) as raised:
        Options(
            {
                "Stop": [GateHook("untill"), {"type": "gate", "gate": "until"}],
                "PreToolUse": [GateHook("todos")],
            }
        )
    assert str(raised.value).splitlines() == [
        "3 problems in the options",
        '  Stop[0].gate: is "untill", which is not a gate (did you mean "until"?)',
        "  Stop[1].options.promise: is missing, expected a non-empty string: the sentence that ends the loop",
        '  PreToolUse[0].type: is "gate", but gate hooks run only on Stop, SubagentStop, TaskCompleted, TeammateIdle',
    ]


def test_options_become_json_and_back() -> None:
    hook = GateHook("until", "make", ("-k",), {"promise": "DONE"}, strict=True, env={"A": "1"}, timeout=5)
    options = Options({"Stop": [hook]})
    assert Options.from_json(options.to_json()).hooks == {"Stop": (hook,)}


# The same gate three ways


VALUES: dict[str, Any] = {"flag": True, "text": "DONE", "number": 3, "texts": ["a b", "c"]}


def words_of(gate: Gate, *, all_options: bool) -> tuple[str, ...]:
    """Return the words of the command line for a value of each option, or only of those that are required."""
    words: list[str] = []
    for row in gate.options:
        if all_options or row.required:
            values = VALUES[row.kind] if row.kind == "texts" else [VALUES[row.kind]]
            words += (
                [f"--{row.name}"] if row.kind == "flag" else [f"--{row.name}={value}" for value in values]
            )
    if gate.operands and (all_options or gate.operands.required):
        words += VALUES[gate.operands.kind]
    return (gate.name, *words, *(("--", "make", "-k") if gate.command == "required" else ()))


@pytest.mark.parametrize("all_options", [False, True], ids=["required options", "all options"])
@pytest.mark.parametrize("gate", GATES.values(), ids=GATES)
def test_settings_python_and_the_command_line_give_a_gate_the_same_options(
    gate: Gate, all_options: bool
) -> None:
    rows = [row for row in option_rows(gate) if all_options or row.required]
    command: dict[str, Any] = {"command": "make", "args": ["-k"]} if gate.command == "required" else {}
    entry = {"type": "gate", "gate": gate.name, "options": {json_name(row): VALUES[row.kind] for row in rows}}
    layer = read({**entry, **command})
    assert layer.problems == ()
    in_python = {row.name.replace("-", "_"): VALUES[row.kind] for row in rows}
    calls = [
        read_gate_hook(hook)
        for hook in (layer.rules[0].hook, gate_callback(gate.name, **command, **in_python).hook)
        if isinstance(hook, GateHook)
    ]
    given = parse_gate_words(words_of(gate, all_options=all_options))
    assert calls == [GateCall(given.gate, given.options, given.command)] * 2


# Files of Claude Code


def test_a_gate_in_a_file_of_claude_code_runs_only_here() -> None:
    layer = read({"type": "gate", "command": "make"}, family="claude")
    assert [(each.severity, each.message, each.hint) for each in layer.problems] == [
        (
            "warning",
            'is "gate", which Claude Code does not know: only Turngate runs the hook',
            "move it to .turngate/, or use a command hook with `turngate gate`",
        )
    ]
    assert len(layer.rules) == 1


def test_the_dialect_of_claude_code_leaves_a_gate_out() -> None:
    layer = read({"type": "gate", "command": "make"}, family="claude", dialect=CLAUDE)
    assert [(each.severity, each.message, each.hint) for each in layer.problems] == [
        (
            "error",
            'is "gate", which Claude Code does not know: the hook is left out',
            "use a command hook with `turngate gate`",
        )
    ]
    assert layer.rules == ()


# For a reader


TEXTS: list[tuple[GateHook, str]] = [
    (GateHook("tests"), "tests"),
    (GateHook(command="pytest -q"), "pytest -q"),
    (GateHook(command="pytest", args=("-q", "-x")), "pytest -q -x"),
    (GateHook(command="make", options={"ifChanged": ["src/**", "lib"]}), "make (ifChanged: src/** lib)"),
    (
        GateHook("until", "make", options={"promise": "DONE", "quiet": True}),
        "until: make (promise: DONE, quiet)",
    ),
]


@pytest.mark.parametrize(("hook", "text"), TEXTS)
def test_a_gate_is_named_by_what_it_checks(hook: GateHook, text: str) -> None:
    assert (hook_text(hook), label(hook), recorded_gate(hook_json(hook))) == (text, text, text)


def test_the_review_shows_a_gate_with_its_kind_timeout_and_last_run(project: Path) -> None:
    write_settings(
        project, "turngate", {"hooks": {"Stop": [{"hooks": [{"type": "gate", "command": "true"}]}]}}
    )
    turngate("fire", "Stop", "--trust", "--project", str(project))
    _, out, _ = turngate("hooks", "--project", str(project))
    assert ("gate: true" in out, "timeout 600 s" in out, ": passed (" in out) == (True, True, True)
