"""Reads a gate hook: finds its gate, checks its options, and returns what is wrong with them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from turngate.core.answers.misplaced import closest_word
from turngate.core.hooks.kinds import COMMAND_GATE, CommandHook, GateHook, command_of
from turngate.core.text import describe_json, quote_name
from turngate.gates.gate import Gate, GateOption, OptionKind
from turngate.gates.library import GATES


class GateCall(NamedTuple):
    """A gate, the values of all of its options, and its command."""

    gate: Gate
    options: Mapping[str, Any]  # by `GateOption.name`
    command: CommandHook | None


class GateProblem(NamedTuple):
    """What is wrong with a gate hook: the field, as in JSON, the problem, and what to do."""

    field: str
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        return f"`{self.field}` {self.message}" + (f"; {self.hint}" if self.hint else "")


def read_gate_hook(hook: GateHook) -> GateCall | list[GateProblem]:
    """Return the gate of a hook with its options, or everything that is wrong with the hook."""
    gate = GATES.get(hook.gate)
    if gate is None:
        return [_unknown_gate(hook.gate)]
    problems = [*_command_problems(hook, gate), *_option_problems(hook, gate)]
    if hook.strict and gate.is_observer:
        problems.append(GateProblem("strict", f"is true, but the gate {gate.name} never blocks"))
    if problems:
        return problems
    options = {row.name: _value(row, hook.options.get(json_name(row))) for row in option_rows(gate)}
    return GateCall(gate, options, command_of(hook))


def json_name(option: GateOption) -> str:
    """Return `maxIterations` for `max-iterations`."""
    return re.sub(r"-(\w)", lambda found: found[1].upper(), option.name)


def option_rows(gate: Gate) -> tuple[GateOption, ...]:
    """Return all options, the words after them included."""
    return (*gate.options, gate.operands) if gate.operands else gate.options


def _unknown_gate(name: str) -> GateProblem:
    meant = closest_word(str(name), tuple(GATES))
    hint = f"did you mean {quote_name(meant)}?" if meant else f"the gates are {', '.join(sorted(GATES))}"
    return GateProblem("gate", f"is {describe_json(name)}, which is not a gate", hint)


def _command_problems(hook: GateHook, gate: Gate) -> Iterator[GateProblem]:
    if hook.command is None and gate.command == "required":
        hint = 'name a gate, such as "gate": "tests"' if hook.gate == COMMAND_GATE else None
        yield GateProblem("command", f"is missing, expected the command of the gate {gate.name}", hint)
    elif hook.command is not None and gate.command == "never":
        yield GateProblem("command", f"is given, but the gate {gate.name} runs no command")
    elif hook.args is not None and hook.command is None:
        yield GateProblem("args", "is given without `command`")


def _option_problems(hook: GateHook, gate: Gate) -> Iterator[GateProblem]:
    rows = {json_name(row): row for row in option_rows(gate)}
    for name, value in hook.options.items():
        row = rows.get(name)
        if row is None:
            yield _unknown_option(str(name), gate, rows)
        elif not _is_valid(row.kind, value):
            yield GateProblem(f"options.{name}", f"is {describe_json(value)}, expected {_EXPECTED[row.kind]}")
    for name, row in rows.items():
        if row.required and hook.options.get(name) in (None, [], ()):
            yield GateProblem(f"options.{name}", f"is missing, expected {_EXPECTED[row.kind]}: {row.help}")


def _unknown_option(name: str, gate: Gate, rows: Mapping[str, GateOption]) -> GateProblem:
    meant = closest_word(name.replace("_", "").replace("-", ""), tuple(map(str.lower, rows)))
    known = next((each for each in rows if each.lower() == meant), None)
    hint = f"did you mean {quote_name(known)}?" if known else _list_options(rows)
    return GateProblem(f"options.{name}", f"is not an option of the gate {gate.name}", hint)


def _list_options(rows: Mapping[str, GateOption]) -> str:
    return f"its options are {', '.join(rows)}" if rows else "it has no options"


_EXPECTED: Mapping[OptionKind, str] = {
    "flag": "true or false",
    "text": "a non-empty string",
    "number": "a number, 0 or more",
    "texts": "a list of non-empty strings",
}
MAX_NUMBER = 10**9


def _is_valid(kind: OptionKind, value: Any) -> bool:
    match kind:
        case "flag":
            return isinstance(value, bool)
        case "text":
            return _is_text(value)
        case "number":
            return type(value) in (int, float) and 0 <= value <= MAX_NUMBER
        case "texts":
            return _is_text(value) or (isinstance(value, list | tuple) and all(map(_is_text, value)))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _value(option: GateOption, value: Any) -> Any:
    """Return the value of an option as a gate gets it; one text counts as a list of one."""
    if value is None:
        defaults: Mapping[str, Any] = {"flag": False, "texts": ()}
        return defaults.get(option.kind) if option.default is None else option.default
    if option.kind == "texts":
        return (value,) if isinstance(value, str) else tuple(value)
    return value
