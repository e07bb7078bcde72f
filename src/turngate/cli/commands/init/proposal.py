"""Which gates suit a project, and the settings that hold them. Decides without touching files."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from turngate._frozen import frozen
from turngate.gates.presets import PresetCommand, chosen_commands

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

    preset: str
    command: str
    found_in: str
    program: str


@frozen
class Proposal:
    gates: tuple[ProposedGate, ...]
    missing: tuple[MissingTool, ...] = ()


def propose(commands: Sequence[PresetCommand], has_program: Callable[[str], bool]) -> Proposal:
    """Choose gates for the checks of a project whose programs are there."""
    usual = _propose([each for each in commands if each.preset in _USUAL], has_program)
    if usual.gates:
        return usual
    others = _propose([each for each in commands if each.preset not in _USUAL], has_program)
    return Proposal(others.gates, (*usual.missing, *others.missing))


def _propose(commands: Sequence[PresetCommand], has_program: Callable[[str], bool]) -> Proposal:
    gates: list[ProposedGate] = []
    missing: list[MissingTool] = []
    for preset in dict.fromkeys(each.preset for each in commands):
        found = [each for each in commands if each.preset == preset]
        chosen = chosen_commands(found, preset)
        there = [each for each in found if has_program(each.program)]
        if all(each in there for each in chosen):
            gates.append(_preset_gate(preset, chosen))
        else:
            gates += [_command_gate(each, is_first=each is there[0]) for each in there]
            gone = (each for each in found if each not in there)
            missing += [MissingTool(preset, each.command, each.found_in, each.program) for each in gone]
    return Proposal(tuple(gates), tuple(missing))


def _preset_gate(preset: str, chosen: Sequence[PresetCommand]) -> ProposedGate:
    """A preset finds its commands again at every run, so it follows the project."""
    entry = {"type": "gate", "id": preset, "gate": preset, **_limit(preset)}
    found_in = ", ".join(dict.fromkeys(each.found_in for each in chosen))
    return ProposedGate(entry, tuple(each.command for each in chosen), found_in)


def _command_gate(found: PresetCommand, *, is_first: bool) -> ProposedGate:
    name = found.preset if is_first else f"{found.preset}-{found.kind}"
    entry = {"type": "gate", "id": name, "command": found.command, **_limit(found.preset)}
    return ProposedGate(entry, (found.command,), found.found_in)


def _limit(preset: str) -> dict[str, Any]:
    return {"timeout": TEST_TIMEOUT_S} if preset in ("tests", "build") else {}


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
