"""The JSON Schema of gate hooks: the names of the gates, and for each the options and whether it takes a command."""

from collections.abc import Mapping
from typing import Any

from turngate.core.hooks.kinds import COMMAND_GATE
from turngate.gates.all_gates import GATES
from turngate.gates.base import Gate, GateOption, OptionKind
from turngate.gates.gate_hook import MAX_NUMBER, json_name, option_rows

_TEXT = {"type": "string", "pattern": r"\S"}
_VALUES: Mapping[OptionKind, Mapping[str, Any]] = {
    "flag": {"type": "boolean"},
    "text": _TEXT,
    "number": {"type": "number", "minimum": 0, "maximum": MAX_NUMBER},
    "texts": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
}


def gate_schema(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a gate hook with these keys."""
    named = {"gate": {**own["gate"], "enum": [*GATES]}}
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"const": "gate"}, **own, **named},
        "dependentRequired": {"args": ["command"]},
        "allOf": [_if_gate(gate) for gate in GATES.values()],
    }


def _if_gate(gate: Gate) -> dict[str, Any]:
    """Return what holds for the hooks of one gate; a hook without a name has the gate `command`."""
    condition: dict[str, Any] = {"properties": {"gate": {"const": gate.name}}}
    if gate.name != COMMAND_GATE:
        condition["required"] = ["gate"]
    rows = {json_name(row): row for row in option_rows(gate)}
    options: dict[str, Any] = {
        "type": "object",
        "properties": {name: _option(row) for name, row in rows.items()},
        "additionalProperties": False,
    }
    needed = [name for name, row in rows.items() if row.required]
    if needed:
        options["required"] = needed
    then: dict[str, Any] = {"properties": {"options": options}}
    required = [*(["command"] if gate.command == "required" else []), *(["options"] if needed else [])]
    if required:
        then["required"] = required
    if gate.command == "never":
        then["properties"]["command"] = False
    return {"if": condition, "then": then}


def _option(row: GateOption) -> dict[str, Any]:
    schema = {**_VALUES[row.kind], "description": row.help}
    if row.required and row.kind == "texts":
        schema["anyOf"] = [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]
    return schema
