"""The arguments of a gate: words of the command line, keys of JSON or names of Python, checked against its options."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, assert_never

from turngate.core.hooks.kinds import CommandHook, is_seconds
from turngate.errors import UsageError
from turngate.gates.gate import Gate, GateOption
from turngate.gates.library import GATES


class GateArguments(NamedTuple):
    """What `turngate gate` was asked to do."""

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
    GateOption(name="strict", kind="flag", help="block if the gate could not run"),
    GateOption(name="timeout", kind="number", metavar="SECONDS", help="its own time limit"),
    GateOption(name="exit-code", kind="flag", help="answer with exit code 2 and the reason on stderr"),
    GateOption(name="project", kind="text", metavar="DIR", help="the project's folder"),
)


def parse_gate_words(words: Sequence[str]) -> GateArguments:
    """Read `NAME [options] [operands] [-- COMMAND…]`, or `-- COMMAND…`. Raises UsageError."""
    before, command = _split_at_dashes(words)
    name, rest = (before[0], before[1:]) if before and not before[0].startswith("-") else ("command", before)
    gate = find_gate(name)
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


def find_gate(name: str) -> Gate:
    if name not in GATES:
        close = _close_matches(name, GATES)
        hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(sorted(GATES))}"
        raise UsageError(f"{name!r} is not a gate; {hint}")
    return GATES[name]


def complete_options(gate: Gate, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all options, with their defaults. Raises UsageError for one that is missing."""
    rows = (*gate.options, *((gate.operands,) if gate.operands else ()))
    for row in rows:
        if row.required and not values.get(row.name):
            word = f"--{row.name}" if row in gate.options else row.metavar
            raise UsageError(f"the gate {gate.name} needs {word}: {row.help}")
    return {row.name: values.get(row.name, _default(row)) for row in rows}


def _default(option: GateOption) -> Any:
    if option.default is not None:
        return option.default
    return {"flag": False, "texts": ()}.get(option.kind)


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
    from difflib import get_close_matches  # noqa: PLC0415 # lazy: for a misspelt word

    return get_close_matches(word, [*known], 1)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UsageError(f"--{name} must be a number, not {text!r}") from None
    if not 0 <= number < 10**9:
        raise UsageError(f"--{name} must be a number of 0 or more, not {text!r}")
    return int(number) if number == int(number) else number
