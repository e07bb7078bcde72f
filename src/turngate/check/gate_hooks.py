"""Finds what is wrong with ready-made gates: their commands, the checks of the project, the words of `turngate gate`."""

import os
import shlex
from collections.abc import Iterator, Sequence

from turngate.check.budget import MAX_COMMAND_CHARS, LintBudget
from turngate.check.command_scope import command_scope
from turngate.check.commands import lint_arguments, lint_commands
from turngate.check.gates import lint_gate_command
from turngate.core.hooks.kinds import CommandHook, GateHook, command_of
from turngate.core.settings import Problem, Rule, Settings
from turngate.errors import UsageError
from turngate.gates.check_commands import chosen_commands, find_check_commands
from turngate.gates.toolchains import CHECKS
from turngate.settings.local_files import has_program, read_project_files
from turngate.settings.problem_log import rule_problem

_CANNOT_RUN = "so the gate cannot run"
_READ_WORK = 5_000  # in characters that could be read meanwhile


def lint_gate_hook(
    rule: Rule, hook: GateHook, settings: Settings, project: str, budget: LintBudget
) -> Iterator[Problem]:
    """Check a gate of the settings: a program that is missing does not make it block."""
    command = command_of(hook)
    if command is None:
        if hook.gate in CHECKS:
            yield from _lint_project_check(rule, hook.gate, project, budget)
        return
    scope = command_scope(command, settings, project, budget, settings.passed_variables(rule))
    if command.args is not None:
        yield from lint_arguments(rule, command, scope, settings, fails=_CANNOT_RUN)
    elif len(command.command) <= MAX_COMMAND_CHARS and command.shell != "powershell":
        yield from lint_commands(rule, command.command, scope, settings, fails=_CANNOT_RUN)
        yield from lint_gate_command(rule, command.command, scope)


def _lint_project_check(rule: Rule, check: str, project: str, budget: LintBudget) -> Iterator[Problem]:
    budget.spend(_READ_WORK)
    found = chosen_commands(find_check_commands(read_project_files(project)), check)
    if not found:
        message = f"finds no command for {check} in this project, {_CANNOT_RUN}"
        hint = f'name it: {{"type": "gate", "gate": "{check}", "command": "COMMAND"}}'
        yield rule_problem(rule, "gate", message, hint)
    for each in found:
        if not has_program(project, each.program):
            message = (
                f"runs `{each.command}` ({each.found_in}), and {each.program} is not there, {_CANNOT_RUN}"
            )
            yield rule_problem(rule, "gate", message, f"install {each.program}")


def lint_gate_words(rule: Rule, hook: CommandHook) -> Iterator[Problem]:
    """Check a command `turngate gate …`: with wrong words it ends with exit code 1, which does not block."""
    words = gate_words(hook)
    if words is None:
        return
    from turngate.gates.arguments import parse_gate_words  # noqa: PLC0415 # lazy: it loads all gates

    try:
        parse_gate_words(words)
    except UsageError as error:
        yield rule_problem(rule, "command", f"cannot be read by `turngate gate`, {_CANNOT_RUN}: {error}")


def gate_words(hook: CommandHook) -> Sequence[str] | None:
    """Return the words after `turngate gate`; None for any other command."""
    try:
        words = shlex.split(hook.command) if hook.args is None else [hook.command, *hook.args]
    except ValueError:
        return None
    is_module = len(words) > 2 and words[1:3] == ["-m", "turngate"]
    if is_module and os.path.basename(words[0]).startswith("python"):
        words = words[2:]
    is_gate = len(words) > 1 and os.path.basename(words[0]) == "turngate" and words[1] == "gate"
    return words[2:] if is_gate else None
