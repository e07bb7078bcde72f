"""The JSON Schemas of settings files, of a hook's input and of a hook's output."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

from turngate.core.answers.answer_json import Behavior
from turngate.core.constants import EVENTS, STOP_EVENTS
from turngate.core.events.hook_input import FIELDS
from turngate.core.hooks.kinds import COMMAND_GATE, SETTINGS_KINDS, GateHook, Hook
from turngate.gates.arguments import MAX_NUMBER, json_name, option_rows
from turngate.gates.gate import Gate, OptionKind
from turngate.gates.library import GATES
from turngate.settings import key_table as keys

_TEXT = {"type": "string", "pattern": r"\S"}
_VALUES: Mapping[OptionKind, Mapping[str, Any]] = {
    "flag": {"type": "boolean"},
    "text": _TEXT,
    "number": {"type": "number", "minimum": 0, "maximum": MAX_NUMBER},
    "texts": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
}


def gate_schema(own: Mapping[str, Any]) -> dict[str, Any]:
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
    properties = {name: {**_VALUES[row.kind], "description": row.help} for name, row in rows.items()}
    for name, row in rows.items():
        if row.required and row.kind == "texts":
            properties[name]["anyOf"] = [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]
    options: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    needed = [name for name, row in rows.items() if row.required]
    if needed:
        options["required"] = needed
    then: dict[str, Any] = {"properties": {"options": options}}
    wanted = {"command": gate.command == "required", "options": bool(needed)}
    if any(wanted.values()):
        then["required"] = [name for name, is_wanted in wanted.items() if is_wanted]
    if gate.command == "never":
        then["properties"]["command"] = False
    return {"if": condition, "then": then}


_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_address(name: str) -> str:
    """Return the address of a schema: its `$id`, and what `$schema` of a settings file names."""
    return f"https://raw.githubusercontent.com/turngate/turngate/main/schemas/{name}.schema.json"


def settings_schema() -> dict[str, Any]:
    """Return the schema for editors. Unknown keys are allowed, because other programs read the same files."""
    return {
        "$schema": _DRAFT,
        "$id": schema_address("settings"),
        "title": "Turngate settings",
        "type": "object",
        "properties": {
            "$schema": {"type": "string"},
            "hooks": {
                **_typed(["object", "null"], "Event → list of groups → list of hooks."),
                "properties": {event: _groups(event) for event in EVENTS},
            },
            "disableAllHooks": _typed(["boolean", "null"], "true: the hooks of this family do not run."),
            **{name: dict(key.type.schema) for name, key in keys.RESTRICTIONS.items()},
            "env": {
                **keys.HOOK_KEYS["env"].type.schema,
                "description": "Environment variables for all hooks.",
            },
            "turngate": {
                "type": "object",
                "properties": {name: dict(key.type.schema) for name, key in keys.TURNGATE_KEYS.items()},
            },
            "agents": _STEERS,
        },
        "$defs": {"gate": gate_schema(_own_keys(GateHook))},
    }


# Objects of another program, of which Turngate reads one number.
_SUBAGENTS = {"properties": {"maxSteerRestarts": {"type": ["integer", "null"], "minimum": 0}}}
_STEERS: dict[str, Any] = {
    "description": "Maximum number of redirects of one subagent: `defaults.subagents.maxSteerRestarts`.",
    "properties": {"defaults": {"properties": {"subagents": _SUBAGENTS}}},
}


def _groups(event: str) -> dict[str, Any]:
    kinds = [kind for kind in SETTINGS_KINDS.values() if kind.only_on is None or event in kind.only_on]
    matched = f"Matched against `{EVENTS[event]}`: names separated by |, or a regular expression."
    description = matched if EVENTS[event] else "Ignored on this event."
    group = {
        "type": "object",
        "required": ["hooks"],
        "properties": {
            "matcher": {"type": ["string", "null"], "description": description},
            "hooks": {"type": "array", "items": {"anyOf": [_hook(kind) for kind in kinds]}},
        },
    }
    return {"type": "array", "items": group}


def _hook(hook: type[Hook]) -> dict[str, Any]:
    if hook is GateHook:  # it is long, and all events share it
        return {"properties": {"type": {"const": hook.kind}}, "$ref": "#/$defs/gate"}
    return {
        "type": "object",
        "required": ["type", hook.body],
        "properties": {"type": {"const": hook.kind}, **_own_keys(hook)},
    }


def _own_keys(hook: type[Hook]) -> dict[str, Any]:
    return {name: dict(key.type.schema) for name, key in keys.HOOK_KEYS.items() if hook.kind in key.kinds}


_TYPES: Mapping[type | tuple[type, ...], str | list[str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    (int, float): "number",
    (int, list): ["integer", "array"],
    dict: "object",
    list: "array",
}


def input_schema() -> dict[str, Any]:
    """Return the schema of a hook's stdin. At a stop six fields are always present."""
    required = ["session_id", "transcript_path", "cwd", "hook_event_name"]
    stops = {"properties": {"hook_event_name": {"enum": list(STOP_EVENTS)}}}
    return {
        "$schema": _DRAFT,
        "$id": schema_address("input"),
        "title": "What a Turngate hook reads on stdin",
        "type": "object",
        "required": required,
        "properties": {
            **{name: {"type": _TYPES[expected]} for name, (expected, _) in FIELDS.items()},
            "hook_event_name": {"enum": list(EVENTS)},
            "outcome": {"enum": ["ok", "error", "timeout"]},
        },
        "if": stops,
        "then": {"required": [*required, "permission_mode", "stop_hook_active"]},
    }


def _typed(kind: str | list[str], description: str) -> dict[str, Any]:
    return {"type": kind, "description": description}


def output_schema() -> dict[str, Any]:
    """Return the schema of a hook's stdout with exit code 0."""
    return {
        "$schema": _DRAFT,
        "$id": schema_address("output"),
        "title": "What a hook may print on stdout for Turngate",
        "type": "object",
        "properties": {
            "decision": {
                "enum": ["block", "deny", "approve", "allow", None],
                "description": "block: the agent must continue.",
            },
            "reason": _typed("string", "The reason that the agent gets; required with a block."),
            "continue": _typed("boolean", "false: the turn ends now, regardless of other hooks."),
            "stopReason": _typed("string", "The reason that the user gets when `continue` is false."),
            "waits": _typed(
                "boolean",
                "true: with `continue: false`, the turn ends as waiting for the user's approval; with `notEnforced`, "
                "the gate was not asked because the agent waits, and never blocks.",
            ),
            "notEnforced": {
                **_TEXT,
                "description": "Why the gate could not check anything: it counts as failed, and does not block.",
            },
            "continuations": {
                "type": "integer",
                "minimum": 1,
                "description": "With a block: how many continuations of the turn it needs, up to the hard limit.",
            },
            "suppressOutput": _typed("boolean", "true: do not write stdout to the transcript."),
            "systemMessage": _typed("string", "A message for the user, not for the model."),
            "hookSpecificOutput": {
                "type": "object",
                "required": ["hookEventName"],
                "properties": {
                    "hookEventName": {"enum": list(EVENTS)},
                    "additionalContext": _typed("string", "Advice for the agent."),
                    "permissionDecision": {"enum": list(get_args(Behavior))},
                    "permissionDecisionReason": {"type": "string"},
                    "updatedToolOutput": {
                        "description": "PostToolUse: what the model gets instead of the tool's output."
                    },
                    "initialUserMessage": _typed(
                        "string", "SessionStart: a message that the agent answers before the first prompt."
                    ),
                },
            },
        },
        "if": {"properties": {"decision": {"enum": ["block", "deny"]}}, "required": ["decision"]},
        "then": {"required": ["reason"]},
    }


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "settings": settings_schema,
    "input": input_schema,
    "output": output_schema,
}
