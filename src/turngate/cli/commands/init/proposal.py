"""Which gates suit a project, and the settings that hold them. Decides without touching files."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from turngate._frozen import frozen
from turngate.gates.check_commands import CheckCommand, chosen_commands

TEST_TIMEOUT_S = 600
_USUAL = ("tests", "lint", "types")  # a build is proposed only where there is nothing else


@frozen
class ProposedGate:
    """One gate as it would stand in the settings."""

    entry: dict[str, Any]
    commands: tuple[str, ...]  # what it runs in this project
    found_in: str

    @property
    def id(self) -> str:
        return str(self.entry["id"])

    @property
    def json(self) -> str:
        return json.dumps(self.entry)


@frozen
class MissingTool:
    """A check that the project names and whose program is not there."""

    check: str
    command: str
    found_in: str
    program: str


@frozen
class Proposal:
    gates: tuple[ProposedGate, ...]
    missing: tuple[MissingTool, ...] = ()


def propose(commands: Sequence[CheckCommand], has_program: Callable[[str], bool]) -> Proposal:
    """Choose gates for the checks of a project whose programs are there."""
    usual = _propose([each for each in commands if each.check in _USUAL], has_program)
    if usual.gates:
        return usual
    others = _propose([each for each in commands if each.check not in _USUAL], has_program)
    return Proposal(others.gates, (*usual.missing, *others.missing))


def _propose(commands: Sequence[CheckCommand], has_program: Callable[[str], bool]) -> Proposal:
    gates: list[ProposedGate] = []
    missing: list[MissingTool] = []
    for check in dict.fromkeys(each.check for each in commands):
        found = [each for each in commands if each.check == check]
        chosen = chosen_commands(found, check)
        there = [each for each in found if has_program(each.program)]
        if all(each in there for each in chosen):
            gates.append(_check_gate(check, chosen))
        else:
            gates += [_command_gate(each, is_first=each is there[0]) for each in there]
            gone = (each for each in found if each not in there)
            missing += [MissingTool(check, each.command, each.found_in, each.program) for each in gone]
    return Proposal(tuple(gates), tuple(missing))


def _check_gate(check: str, chosen: Sequence[CheckCommand]) -> ProposedGate:
    """A gate such as `tests` finds its commands again at every run, so it follows the project."""
    entry = {"type": "gate", "id": check, "gate": check, **_limit(check)}
    found_in = ", ".join(dict.fromkeys(each.found_in for each in chosen))
    return ProposedGate(entry, tuple(each.command for each in chosen), found_in)


def _command_gate(found: CheckCommand, *, is_first: bool) -> ProposedGate:
    name = found.check if is_first else f"{found.check}-{found.kind}"
    entry = {"type": "gate", "id": name, "command": found.command, **_limit(found.check)}
    return ProposedGate(entry, (found.command,), found.found_in)


def _limit(check: str) -> dict[str, Any]:
    return {"timeout": TEST_TIMEOUT_S} if check in ("tests", "build") else {}


def settings_text(gates: Iterable[ProposedGate]) -> str:
    """Return the text of a settings file that holds these gates, one line each."""
    lines = ",\n".join(f"          {gate.json}" for gate in gates)
    return f"""{{
  "hooks": {{
    "Stop": [
      {{
        "hooks": [
{lines}
        ]
      }}
    ]
  }}
}}
"""
