"""The arguments of a gate: words of the command line, keys of JSON or names of Python, checked against its options."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, assert_never

from turngate.core.hooks.kinds import COMMAND_GATE, CommandHook, GateHook, command_of, is_seconds
from turngate.core.text import closest_word, describe_json, quote_name
from turngate.errors import UsageError
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
        meant = closest_word(str(hook.gate), tuple(GATES))
        hint = f"did you mean {quote_name(meant)}?" if meant else f"the gates are {', '.join(sorted(GATES))}"
        return [GateProblem("gate", f"is {describe_json(hook.gate)}, which is not a gate", hint)]
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
    return (*gate.options, gate.operands) if gate.operands else gate.options


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
    listed = f"its options are {', '.join(rows)}" if rows else "it has no options"
    hint = f"did you mean {quote_name(known)}?" if known else listed
    return GateProblem(f"options.{name}", f"is not an option of the gate {gate.name}", hint)


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


# The command line


class GateArguments(NamedTuple):
    gate: Gate
    options: Mapping[str, Any]  # by `GateOption.name`, with all defaults
    command: CommandHook | None = None
    strict: bool = False
    timeout: float | None = None
    exit_code: bool = False
    project: str | None = None


_PLAIN_WORD = re.compile(r"[\w./@%+:,-]+")  # a shell would pass it on unchanged

# The options of every gate on the command line.
COMMON = (
    GateOption("strict", "flag", "block if the gate could not run"),
    GateOption("timeout", "number", "the gate's time limit", "SECONDS"),
    GateOption("exit-code", "flag", "answer with exit code 2 and the reason on stderr"),
    GateOption("project", "text", "the project's folder", "DIR"),
)


def parse_gate_words(words: Sequence[str]) -> GateArguments:
    """Read `NAME [options] [operands] [-- COMMAND…]`, or `-- COMMAND…`. Raises UsageError."""
    before, command = _split_at_dashes(words)
    name, rest = (before[0], before[1:]) if before and not before[0].startswith("-") else ("command", before)
    gate = _find_gate(name)
    rows = {option.name: option for option in (*gate.options, *COMMON)}
    values = dict(_read_words(gate, rows, rest))
    common = {option.name.replace("-", "_"): values.pop(option.name, None) for option in COMMON}
    if command is None and gate.command == "required":
        raise UsageError(f"the gate {name} needs a command: turngate gate {name} -- COMMAND…")
    if command is not None and gate.command == "never":
        raise UsageError(f"the gate {name} takes no command after --")
    if common["strict"] and gate.is_observer:
        raise UsageError(f"the gate {name} never blocks, so it cannot be strict")
    if common["timeout"] is not None and not is_seconds(common["timeout"]):
        raise UsageError("--timeout must be a number of seconds above 0")
    return GateArguments(
        gate,
        complete_options(gate, values),
        command,
        strict=bool(common["strict"]),
        timeout=common["timeout"],
        exit_code=bool(common["exit_code"]),
        project=common["project"],
    )


def _find_gate(name: str) -> Gate:
    if name not in GATES:
        close = _close_matches(name, GATES)
        hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(sorted(GATES))}"
        raise UsageError(f"{name!r} is not a gate; {hint}")
    return GATES[name]


def complete_options(gate: Gate, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all options, with their defaults. Raises UsageError for one that is missing."""
    rows = option_rows(gate)
    for row in rows:
        if row.required and not values.get(row.name):
            word = f"--{row.name}" if row in gate.options else row.metavar
            raise UsageError(f"the gate {gate.name} needs {word}: {row.help}")
    return {row.name: _value(row, values.get(row.name)) for row in rows}


def _split_at_dashes(words: Sequence[str]) -> tuple[list[str], CommandHook | None]:
    if "--" not in words:
        return list(words), None
    place = list(words).index("--")
    program, *arguments = words[place + 1 :] or ("",)
    if not program:
        raise UsageError("there is no command after --")
    # One word with shell syntax is a command line, as in `gate -- 'npm test && npm run lint'`.
    is_line = not arguments and not _PLAIN_WORD.fullmatch(program)
    return list(words[:place]), CommandHook(command=program, args=None if is_line else tuple(arguments))


def _read_words(
    gate: Gate, rows: Mapping[str, GateOption], words: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the values of options. An option that takes several texts takes all words until the next option."""
    operands: list[str] = []
    lists: dict[str, tuple[str, ...]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        is_operand = gate.operands is not None and not word.startswith("--")
        if is_operand or not word.startswith("-"):
            operands.append(word)
            continue
        name, separator, attached = word.removeprefix("--").partition("=")
        row = _find_option(gate, rows, word, name)
        if row.kind == "flag":
            if separator:
                raise UsageError(f"--{name} takes no value")
            yield name, True
            continue
        values = [attached] if separator else [rest.pop(0)] if rest else []
        if row.kind == "texts":
            while rest and not rest[0].startswith("--"):
                values.append(rest.pop(0))
        if not values or not values[0]:
            raise UsageError(f"--{name} needs a value")
        match row.kind:
            case "text":
                yield name, values[0]
            case "number":
                yield name, _number(name, values[0])
            case "texts":
                lists[name] = (*lists.get(name, ()), *values)
                yield name, lists[name]
            case _:
                assert_never(row.kind)
    if operands and gate.operands is None:
        raise UsageError(f"the gate {gate.name} does not take {operands[0]!r}; a command follows after --")
    if operands and gate.operands is not None:
        yield gate.operands.name, tuple(operands)


def _find_option(gate: Gate, rows: Mapping[str, GateOption], word: str, name: str) -> GateOption:
    if word.startswith("--") and name in rows:
        return rows[name]
    close = _close_matches(name, rows)
    hint = f"; did you mean --{close[0]}?" if close else ""
    raise UsageError(f"the gate {gate.name} has no option {word}{hint}")


def _close_matches(word: str, known: Iterable[str]) -> list[str]:
    from difflib import get_close_matches  # noqa: PLC0415 # lazy: for a misspelled word

    return get_close_matches(word, [*known], 1)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UsageError(f"--{name} must be a number, not {text!r}") from None
    if not 0 <= number < 10**9:
        raise UsageError(f"--{name} must be a number of 0 or more, not {text!r}")
    return int(number) if number == int(number) else number
