"""Which ready-made gate a hook is: a gate hook, or a command `turngate gate NAME …`."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate._frozen import frozen
from turngate.check.gate_hooks import gate_words
from turngate.core.hooks.kinds import CommandHook, GateHook, Hook
from turngate.errors import UsageError
from turngate.gates.arguments import parse_gate_words
from turngate.gates.gate import Gate
from turngate.gates.gate_hook import GateCall, read_gate_hook


@frozen
class NamedGate:
    """A ready-made gate as a hook has it: the values of its options, and the text of its command."""

    gate: Gate
    options: Mapping[str, Any]
    command: str | None = None

    @property
    def name(self) -> str:
        return self.gate.name

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(self.options.get(self.gate.operands.name) or ()) if self.gate.operands else ()


def named_gate(hook: Hook) -> NamedGate | None:
    """Return the gate of a hook; None for any other hook, and for a gate that cannot be read."""
    if isinstance(hook, GateHook):
        call = read_gate_hook(hook)
        return (
            NamedGate(call.gate, call.options, _command_text(call.command))
            if isinstance(call, GateCall)
            else None
        )
    if isinstance(hook, CommandHook) and (words := gate_words(hook)) is not None:
        try:
            given = parse_gate_words(words)
        except UsageError:
            return None
        return NamedGate(given.gate, given.options, _command_text(given.command))
    return None


def _command_text(command: CommandHook | None) -> str | None:
    if command is None:
        return None
    return command.command if command.args is None else shlex.join((command.command, *command.args))


OBSERVER = "it is an observer: it never blocks"
_NOT_CHECKS = {
    "budget": "it is a limit: it ends the turn, and does not block",
    "judge": "it asks a model",
}


def why_not_a_check(gate: Gate) -> str | None:
    """Return why a gate does not check the project or the conversation itself, or None."""
    if gate.name in _NOT_CHECKS:
        return _NOT_CHECKS[gate.name]
    return OBSERVER if gate.is_observer else None


def with_judge(hook: Hook, model: str) -> Hook:
    """Return the hook of a gate that asks a model, with another model."""
    if isinstance(hook, GateHook):
        return replace(hook, options={**hook.options, "model": model})
    if isinstance(hook, CommandHook) and hook.args is not None:
        return replace(hook, args=(*hook.args, "--model", model))
    if isinstance(hook, CommandHook):  # the last of several counts
        return replace(hook, command=f"{hook.command} --model {shlex.quote(model)}")
    return hook
