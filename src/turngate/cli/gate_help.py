"""`turngate gate --help`, written from the table of gates."""

from turngate.gates.all_gates import GATES
from turngate.gates.arguments import COMMON
from turngate.gates.gate import Gate, GateOption


def help_text(words: list[str]) -> str:
    names = [word for word in words if word in GATES]
    return _help_of(GATES[names[0]]) if names else _help()


def _help() -> str:
    rows = "\n".join(f"  {gate.name:<14} {gate.summary}" for gate in GATES.values())
    return f"""\
usage: turngate gate NAME [options] [operands] [-- COMMAND…]
       turngate gate -- COMMAND…

Check one gate. As a hook command it holds the stop of an agent until its condition is met: it reads the
hook's JSON on stdin and answers with JSON. Without such an input it answers in words.

Gates (`turngate gate NAME --help` explains one):
{rows}

Options of every gate:
{_option_rows(COMMON)}

Examples:
  turngate gate -- pytest -q                        hold the stop until the command passes
  turngate gate -- 'npm test && npm run lint'       one word with blanks is a command line for sh
  turngate gate command --timeout 300 -- make test

Exit codes:
  0   with a hook's JSON on stdin: the answer is the JSON on stdout; without it: passed
  1   without a hook's JSON: failed, or could not run; always: wrong usage, internal error
  2   only with --exit-code: a block, with its reason on stderr"""


def _help_of(gate: Gate) -> str:
    operands = f" {gate.operands.metavar or 'TEXT'}" if gate.operands else ""
    command = {"never": "", "optional": " [-- COMMAND…]", "required": " -- COMMAND…"}[gate.command]
    own = f"\n\nOptions:\n{_option_rows(gate.options)}" if gate.options else ""
    about = f"\n\n{gate.operands.metavar}: {gate.operands.help}" if gate.operands else ""
    return f"""\
usage: turngate gate {gate.name} [options]{operands}{command}

{_purpose(gate)}{about}{own}

Options of every gate:
{_option_rows(tuple(option for option in COMMON if option.name != "strict" or not gate.is_observer))}"""


def _purpose(gate: Gate) -> str:
    if not gate.is_observer:
        return f"Holds the stop until: {gate.summary}."
    text = gate.summary.strip("()")
    return f"{text[0].upper()}{text[1:]}. It never blocks."


def _option_rows(options: tuple[GateOption, ...]) -> str:
    return "\n".join(f"  {_option_word(option):<26} {option.help}" for option in options)


def _option_word(option: GateOption) -> str:
    value = {"flag": "", "texts": f" {option.metavar}…"}.get(option.kind, f" {option.metavar}")
    return f"--{option.name}{value}"
