"""Finds what is wrong inside the script of a command hook."""

import os
import re
from collections.abc import Iterator

from turngate.check.command_scope import Scope
from turngate.check.events import lint_block
from turngate.check.gates import is_gate, lint_gate
from turngate.core.constants import OBSERVED_EVENTS
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.shell_syntax import read_commands
from turngate.settings.problem_log import rule_problem
from turngate.settings.script_file import Script, exit_codes, line_ending_defect, start_defect


def lint_script(
    rule: Rule,
    name: str,
    script: Script,
    scope: Scope,
    settings: Settings,
    *,
    language: str | None = None,
    decides: bool = True,
) -> Iterator[Problem]:
    """Check a script. With a language it is passed to an interpreter, else it is run itself.

    `decides`: its exit code is that of the hook.
    """
    defect = start_defect(script, name, scope.has_program) if language is None else None
    language = language or script.language or ("shell" if script.shebang is None else None)
    if defect is None and language == "shell":
        defect = line_ending_defect(script, name)
    if defect is not None:
        yield rule_problem(rule, "command", f"{name} {defect.message}", defect.hint, defect.severity)
    elif decides:
        yield from _lint_decisions(rule, name, script, language, scope, settings)


def _lint_decisions(
    rule: Rule, name: str, script: Script, language: str | None, scope: Scope, settings: Settings
) -> Iterator[Problem]:
    """Find a script that can never block, always blocks, or blocks where no hook can."""
    if not _serves_several_events(script, scope, settings):
        yield from lint_block(rule, script.text, settings, name, language)
    if language == "shell":
        commands = read_commands(script.text)
        found = list(lint_gate(rule, script.text, commands, scope, settings, script=name))
        if found:
            yield from found
            return
    codes = exit_codes(script, language) if is_gate(rule, settings) else None
    if codes is None or 2 in codes or not codes - {0}:
        return
    code = min(codes - {0})
    message = (
        f"{name} ends with exit code {code} and never with 2, and only exit code 2 blocks: it can never block"
    )
    hint = "to block, write the reason to stderr and exit with 2"
    yield rule_problem(rule, "command", message, hint, "warning")


_READS_EVENT = re.compile(r"hook_event_name|\$[1@*]|\$\{[1@*]|\bargv\b|\bargparse\b|\bgetopts\b")


def _serves_several_events(script: Script, scope: Scope, settings: Settings) -> bool:
    """Return whether the script also runs at events where it can block, as far as that can be seen."""
    name = os.path.basename(script.path)
    scope.budget.spend(sum(1 + len(hook_text(rule.hook)) // 100 for rule in settings.rules))
    return bool(_READS_EVENT.search(script.text)) or any(
        rule.event not in OBSERVED_EVENTS and name in hook_text(rule.hook) for rule in settings.rules
    )
