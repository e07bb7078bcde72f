"""Finds options without an effect on their event, and hooks that block where no hook can."""

from collections.abc import Iterator

from turngate.core.constants import EVENTS, OBSERVED_EVENTS, STOP_EVENTS
from turngate.core.permissions.rule import read_rule, why_never
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import describe_name
from turngate.core.verdict.verdict import honours_on_failure
from turngate.settings.problem_log import did_you_mean, rule_problem
from turngate.settings.script_file import block_attempt


def lint_options(rule: Rule, settings: Settings) -> Iterator[Problem]:
    """Find options that have no effect on the rule's event."""
    if rule.hook.condition is not None and rule.event in STOP_EVENTS:
        skips = settings.dialect.condition_skips_stop
        effect = "the hook never runs at a stop" if skips else "the hook runs at every stop"
        message = f"has no effect on {rule.event}: {effect}"
        yield rule_problem(rule, "if", message, "remove it", "warning")
    if rule.hook.condition is not None and EVENTS.get(rule.event) == "tool_name":
        yield from _lint_condition(rule, rule.hook.condition)
    if rule.hook.outcomes != ("ok",) and rule.event != "SubagentStop":
        yield rule_problem(rule, "outcomes", f"has no effect on {rule.event}", "remove it", "warning")
    if rule.event in OBSERVED_EVENTS:
        yield from _lint_gate_options(rule)
    else:
        yield from _lint_ignored_failure(rule, settings)


def _lint_condition(rule: Rule, condition: str) -> Iterator[Problem]:
    parsed = read_rule(condition)
    shown = describe_name(repr(condition))
    if parsed is None:
        message = f"is {shown}, which is not one permission rule such as 'Bash(git *)', so the hook fails at every call"
        yield rule_problem(rule, "if", message, "write one hook for each rule")
    elif why := why_never(parsed):
        yield rule_problem(rule, "if", f"is {shown}, which never matches: {why}")


def _lint_gate_options(rule: Rule) -> Iterator[Problem]:
    hook = rule.hook
    if hook.mode == "gate":
        yield _in_vain(rule, "mode", 'is "gate"')
    if hook.blocking:
        yield _in_vain(rule, "blocking", "is true")
    if getattr(hook, "on_failure", None) == "block":
        yield _in_vain(rule, "onFailure", 'is "block"')


def _lint_ignored_failure(rule: Rule, settings: Settings) -> Iterator[Problem]:
    """Claude Code does not know `blocking`, and ignores `onFailure` at a stop (measured)."""
    has_on_failure = getattr(rule.hook, "on_failure", None) == "block"
    if settings.dialect.failure_may_block or honours_on_failure(rule, settings.dialect):
        return
    message = f"has no effect in the dialect {settings.dialect.name}: a failure of this hook does not block"
    if rule.event in STOP_EVENTS or not hasattr(rule.hook, "on_failure"):
        hint = "exit with 2 and print the reason on stderr" if rule.hook.kind == "command" else None
    else:
        hint = 'write "onFailure": "block"'
    if rule.hook.blocking:
        yield rule_problem(rule, "blocking", message, hint, "warning")
    if has_on_failure:
        yield rule_problem(rule, "onFailure", message, hint, "warning")


def lint_block(
    rule: Rule, text: str, settings: Settings, script: str | None = None, language: str | None = "shell"
) -> Iterator[Problem]:
    """Find a command or a script that blocks at an event where no hook can."""
    if rule.event not in OBSERVED_EVENTS or rule.hook.detached or settings.mode_of(rule) != "gate":
        return
    attempt = block_attempt(text, language)
    if attempt:
        yield _in_vain(rule, "command", f"{script} {attempt}" if script else attempt)


def _in_vain(rule: Rule, field: str, what: str) -> Problem:
    meant = "SubagentStop" if rule.event == "SubagentStart" else "Stop"
    message = f"{what}, but hooks of {rule.event} cannot block"
    return rule_problem(rule, field, message, did_you_mean(meant), "warning")
