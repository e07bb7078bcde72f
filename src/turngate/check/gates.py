"""Finds gates that can never block, always block or never end, and suggests the gate that does what is written by hand."""

import json
import re
import shlex
from collections.abc import Iterator

from turngate._frozen_dataclass import frozen
from turngate.check.command_steps import (
    Scope,
    Step,
    find_branch,
    never_ends,
    read_steps,
    show_quoted,
    show_words,
)
from turngate.core.constants import OBSERVED_EVENTS, STOP_EVENTS
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.shell.parse import CommandList, read_commands
from turngate.core.shell.script_exit_codes import PRINTED_BLOCK, block_attempt
from turngate.core.verdict.verdict import honors_blocking, honors_on_failure
from turngate.settings.problem_log import did_you_mean, rule_problem

BLOCKS = "which blocks with the output as the reason"
_REDIRECTS = re.compile(r"(?:\s*(?:1?>&2|2>&1))+\s*$")


def gate_hint(rule: Rule, check: str, effect: str) -> str:
    """Return what to write for a command that decides by its exit code, and the effect of that.

    The other programs that read `.claude` and `.mux` know only commands.
    """
    check = _REDIRECTS.sub("", check).strip()
    entry = json.dumps({"type": "gate", "command": check}, ensure_ascii=False)
    if rule.family == "turngate":
        return f"write {entry}, {effect}"
    commands = read_commands(check)
    is_simple = commands.is_complete and len(commands.commands) == 1 and not commands.end
    only = commands.commands[0] if is_simple else None
    # `turngate gate` gives one argument with blanks to a shell.
    words = check if only and not only.redirects and not only.assignments else shlex.quote(check)
    return f"write turngate gate -- {words}, {effect}; in .turngate/settings.json: {entry}"


def without_exit(text: str) -> str | None:
    """Return CHECK of `CHECK || exit 2` or `CHECK || { …; exit 2; }`; None for any other text, or one of several lines."""
    check, operator, _ = text.partition("||")
    is_only = operator and "||" not in text[len(check) + 2 :] and "\n" not in text.strip()
    return check.strip() or None if is_only else None


GATED_EVENTS = (*STOP_EVENTS, "PreToolUse")
MAX_COMMAND_CHARS = 100  # of a command in a hint

_ONLY_2 = "and only exit code 2 blocks"
_NEVER = "this hook can never block"
_GIVE_REASON = "{ echo 'REASON' >&2; exit 2; }"
_NO_EFFECT = frozenset(("", *"cd echo printf export set true : sleep date unset umask".split()))
_CHECKS_WITH_EXIT_2 = frozenset(("make", "tsc", "phpunit", "mix", "stylelint"))
_FILTERS = frozenset("tail head tee cat sed awk less sort uniq column tr cut".split())


def is_gate(rule: Rule, settings: Settings) -> bool:
    """Whether the rule's exit code decides something, and a failure does not block."""
    hook, dialect = rule.hook, settings.dialect
    failure_blocks = honors_blocking(rule, dialect) or honors_on_failure(rule, dialect)
    runs = rule.event in GATED_EVENTS and hook.enabled and not hook.detached
    return runs and not failure_blocks and settings.mode_of(rule) == "gate"


def lint_gate(
    rule: Rule, text: str, commands: CommandList, scope: Scope, settings: Settings, script: str | None = None
) -> Iterator[Problem]:
    """Check commands that are the whole hook; `script` is the file that holds them."""
    if script is None:
        yield from lint_block(rule, text, settings)
    steps = read_steps(commands, scope)
    where = f"{script}: " if script else ""
    endless = next((step for step in steps if step.operator != "&" and never_ends(step.texts)), None)
    check = _GateCheck(rule, settings, script)
    found: Finding | None = None
    if commands.is_complete and (not steps or commands.end == "&"):
        return
    if commands.is_complete and endless:
        found = f"{show_words(endless.texts)} never ends, so the hook times out at every run", None
    elif is_gate(rule, settings) and commands.is_complete:
        is_long = script or "\n" in text or len(text) > MAX_COMMAND_CHARS
        found = check.judge(steps, "COMMAND" if is_long else text.strip().rstrip(";"))
    elif is_gate(rule, settings):
        found = check.judge_branch(text, steps, scope)
    if found:
        yield rule_problem(rule, "command", where + found[0], found[1], "warning")
    elif commands.is_complete and is_gate(rule, settings) and (ignored := _ignored_check(steps)):
        message = f"{where}`|| true` hides the result of {show_words(ignored.texts)}: {_NEVER}"
        yield rule_problem(rule, "command", message, severity="note")


def lint_gate_command(rule: Rule, text: str, scope: Scope, settings: Settings) -> Iterator[Problem]:
    """Check the command of a ready-made gate: any failing exit blocks, so its exit code has to be that of the check."""
    commands = read_commands(text)
    steps = read_steps(commands, scope)
    if not steps or not commands.is_complete:
        return
    found: Finding | None = None
    if endless := next((step for step in steps if never_ends(step.texts)), None):
        found = f"{show_words(endless.texts)} never ends, so the gate times out at every run", None
    elif steps[-1].operator == "|":
        found = _GateCheck(rule, settings).judge_pipeline(steps)
    elif tool := _unheard_check(steps[:-1], steps[-1]):
        effect = _NEVER if steps[-1].exit_code == "0" else "this gate blocks every time"
        shown, end = show_words(tool.texts), show_words(steps[-1].texts)
        found = f"`{end}` at the end hides the result of {shown}: {effect}", f"remove `{end}`"
    elif ignored := _ignored_check(steps):
        found = f"`|| true` hides the result of {show_words(ignored.texts)}: {_NEVER}", "remove `|| true`"
    if found:
        yield rule_problem(rule, "command", *found, "warning")


def _ignored_check(steps: list[Step]) -> Step | None:
    """`CHECK || true`: return the check."""
    *before, last = steps
    is_hidden = last.operator == "||" and last.name in ("true", ":")
    is_known = all(step.tool or step.name in _NO_EFFECT for step in before)
    return next((step for step in before if step.tool), None) if is_hidden and is_known else None


Finding = tuple[str, str | None]  # message and hint


@frozen
class _GateCheck:
    """Judges the commands of one hook, which may be those of a script."""

    rule: Rule
    settings: Settings
    script: str | None = None

    def judge(self, steps: list[Step], text: str) -> Finding | None:
        *before, last = steps
        if last.exit_code is not None and all(step.name in _NO_EFFECT for step in before):
            return self._judge_constant(before, last.exit_code)
        if last.exit_code == "2" and _always_reaches(before, last):
            return self._always_blocks()
        if (tool := _unheard_check(before, last)) and not any(step.prints_block for step in before):
            if last.exit_code in ("0", "2"):
                return None
            ends = f"ends with exit code {last.exit_code} whatever {show_words(tool.texts)} finds"
            check = text.rpartition(";")[0].strip() or "COMMAND"
            return f"{ends}, {_ONLY_2}: {_NEVER}", self._rewrite(check, [tool])
        if last.operator == "||":
            return self._judge_alternative(before, last, text)
        if last.prints_block and all(step.name in _NO_EFFECT for step in before):
            if text_before := [step for step in before if step.prints and step.outputs[0] == "stdout"]:
                return _text_before_json(text_before[0])
            return self._always_blocks() if last.blocks(self.rule, self.settings) else self._judge_lost(last)
        if any(step.operator == "||" for step in steps):
            return None
        if last.operator == "|":
            return self.judge_pipeline(steps)
        return self._judge_chain(steps, text)

    def _judge_constant(self, before: list[Step], code: str) -> Finding | None:
        if code in ("", "0"):
            return None
        printed = [step.blocks(self.rule, self.settings) for step in before if step.prints_block]
        if code == "2":
            reason = self._judge_reason(before)
            is_known = None not in printed or any(step.outputs[0] == "stderr" for step in before)
            return reason or (self._always_blocks() if is_known else None)
        if self.settings.dialect.block_on_any_exit and printed and printed != [False]:
            return self._always_blocks() if printed == [True] else None
        return f"ends with exit code {code}, {_ONLY_2}: {_NEVER}", "write exit 2"

    def _judge_lost(self, step: Step) -> Finding | None:
        if step.blocks(self.rule, self.settings) is not False:
            return None
        if step.outputs[0] == "stderr":
            return f"prints its block to stderr, and JSON is only read from stdout: {_NEVER}", "remove >&2"
        if step.outputs[0] != "stdout":
            return None
        hint = 'print only {"decision": "block", "reason": "REASON"} on stdout'
        return f"prints a block that cannot be read or has no reason: {_NEVER}", hint

    def _judge_reason(self, before: list[Step]) -> Finding | None:
        """Exit code 2 after commands that only print: it needs a reason on stderr."""
        printed = [step for step in before if step.prints or step.name == "date"]
        has_reason = any(
            step.outputs[0] == "stderr"
            or (step.prints_block and step.blocks(self.rule, self.settings) is not False)
            for step in printed
        )
        if has_reason or self.settings.dialect.default_stderr is not None:
            return None
        on_stdout = [step for step in printed if step.outputs[0] == "stdout"]
        if not on_stdout:
            hint = "print the reason first: echo 'REASON' >&2; exit 2"
            return f"exits with 2 without a reason on stderr: {_NEVER}", hint
        message = f"exits with 2, but its reason goes to stdout, and only stderr is read: {_NEVER}"
        return message, f"write {show_quoted(on_stdout[-1])} >&2"

    def _always_blocks(self) -> Finding | None:
        """A PreToolUse hook that always blocks forbids a tool; a Stop hook that does so never lets the agent stop."""
        if self.rule.event not in STOP_EVENTS:
            return None
        message = (
            "blocks every time, whatever the agent did, so the agent is sent back until the limit is reached"
        )
        return message, f"block on a condition: CHECK || {_GIVE_REASON}"

    def _judge_alternative(self, before: list[Step], last: Step, text: str) -> Finding | None:
        """`CHECK || exit N` and `CHECK || echo JSON`."""
        tools = _checks(before)
        if not tools or any(step.operator in ("||", "|") for step in before):
            return None
        shown, check = show_words(tools[0].texts), text.rpartition("||")[0].strip()
        if last.exit_code not in (None, "0", "2", ""):
            message = f"ends with exit code {last.exit_code} when {shown} fails, {_ONLY_2}: {_NEVER}"
            return message, self._rewrite(check, tools) if check else "write exit 2"
        loud = [step for step in tools if step.outputs[0] == "stdout" and not step.is_silent]
        if last.prints_block:
            return _text_before_json(loud[0]) if loud else self._judge_lost(last)
        silent = [step for step in tools if not step.gives_reason]
        if last.exit_code == "2" and silent and self.settings.dialect.default_stderr is None:
            shown = show_words(silent[0].texts)
            if silent[0].is_silent:
                message = f"{shown} prints nothing, so exit code 2 comes without a reason: {_NEVER}"
                return message, self._rewrite(shown, silent[:1])
            message = f"the output of {shown} does not go to stderr, so exit code 2 comes without a reason and does not block"
            return message, self._rewrite(check or shown, silent[:1])
        return None

    def judge_pipeline(self, steps: list[Step]) -> Finding | None:
        """`CHECK | tail`: the exit code is that of the last command."""
        start = max(n for n, step in enumerate(steps) if step.operator != "|")
        tool, last = steps[start], steps[-1]
        fails = any(step.name == "set" and "pipefail" in step.texts for step in steps)
        if not tool.tool or last.name not in _FILTERS or fails:
            return None
        message = f"the exit code is that of {last.name}, not of {show_words(tool.texts)}: {_NEVER}"
        return message, self._rewrite(show_quoted(tool), [tool])

    def _judge_chain(self, steps: list[Step], text: str) -> Finding | None:
        """`CHECK`, or `CHECK && CHECK`: the exit code is that of the check."""
        tools = _checks(steps)
        others = [step for step in steps if step not in tools and step.name not in _NO_EFFECT]
        options = [step.texts[1] or "" for step in steps[:-1] if step.name == "set" and len(step.texts) > 1]
        exits_on_error = any(re.match(r"-\w*e", option) for option in options)
        decides = steps[-1] in tools or steps[-1].operator == "&&" or (exits_on_error and tools)
        if not tools or others or not decides:
            return None
        message = (
            f"{show_words(tools[0].texts)} does not end with exit code 2 when it fails, {_ONLY_2}: {_NEVER}"
        )
        return message, self._rewrite(text, tools, is_chain=len(steps) > 1)

    def judge_branch(self, text: str, steps: list[Step], scope: Scope) -> Finding | None:
        """`CHECK || { BODY; }` and `if ! CHECK; then BODY; fi`, and text before a JSON that is printed on a condition."""
        printed = [
            step for step in steps if step.prints and step.outputs[0] == "stdout" and step.operator != "|"
        ]
        if printed and steps[-1].prints and not printed[0].prints_block and PRINTED_BLOCK.search(text):
            return _text_before_json(printed[0])
        branch = find_branch(text)
        parts = [read_commands(part) for part in branch[:3]] if branch and branch.is_last else []
        if not parts or not all(part.is_complete for part in parts):
            return None
        before, check, body = (read_steps(part, scope) for part in parts)
        known = all(step.name in _NO_EFFECT for step in before) and _checks(check) == check
        if not body or not known or any(step.name not in (*_NO_EFFECT, "exit") for step in body):
            return None
        return self._judge_body([*before, *check, *body[:-1]], body[-1])

    def _judge_body(self, before: list[Step], last: Step) -> Finding | None:
        loud = [step for step in before if step.outputs[0] == "stdout" and (step.prints or step.tool)]
        if last.prints_block:
            return _text_before_json(loud[0]) if loud else self._judge_lost(last)
        if last.exit_code == "2":
            has_reason = any(step.tool and step.gives_reason for step in before)
            return None if has_reason else self._judge_reason(before)
        prints_block = self.settings.dialect.block_on_any_exit and any(step.prints_block for step in before)
        if last.exit_code in (None, "", "0") or self.script or prints_block:
            return None
        return f"ends with exit code {last.exit_code}, {_ONLY_2}: {_NEVER}", "write exit 2"

    def _rewrite(self, check: str, steps: list[Step], *, is_chain: bool = False) -> str:
        """Return a gate for a check that says why it fails; a command where the reason must be written."""
        is_silent = any(step.is_silent for step in steps)
        if not is_silent and not self.script and self.rule.event in STOP_EVENTS:
            return gate_hint(self.rule, check, BLOCKS)
        check = check.removesuffix(">&2").rstrip()
        whole = f"({check})" if is_chain else check
        return f"write {whole} || {_GIVE_REASON}" if is_silent else f"write {whole} >&2 || exit 2, {BLOCKS}"


def _unheard_check(before: list[Step], last: Step) -> Step | None:
    """`CHECK; exit 1`: return the check, whose result has no effect on the exit code."""
    is_constant = last.exit_code not in (None, "")
    is_sequence = last.operator == ";" and all(step.operator in ("", ";", "&&") for step in before)
    checks = [step for step in before if step.tool or step.name in _CHECKS_WITH_EXIT_2]
    is_known = all(step in checks or step.name in _NO_EFFECT - {"set"} for step in before)
    return checks[0] if is_constant and is_sequence and is_known and checks else None


def _always_reaches(before: list[Step], last: Step) -> bool:
    """`CHECK >&2; exit 2`: the result of the check has no effect, and its output is the reason."""
    is_sequence = all(step.operator in ("", ";") for step in (*before, last))
    is_known = all(step.tool or step.name in _NO_EFFECT - {"set"} for step in before)
    return is_sequence and is_known and any(step.tool and step.outputs[0] == "stderr" for step in before)


def _checks(steps: list[Step]) -> list[Step]:
    """Return the check programs; else, if there is nothing else that matters, checks that print nothing."""
    tools = [step for step in steps if step.tool]
    relevant = [step for step in steps if step.name not in _NO_EFFECT]
    return tools or (relevant if all(step.is_silent for step in relevant) else [])


def _text_before_json(step: Step) -> Finding:
    shown = show_words(step.texts)
    message = f"the output of {shown} comes before the JSON, which is then not read: {_NEVER}"
    return message, "print only the JSON on stdout, and everything else on stderr (>&2)"


# Events where no hook can block


def lint_block(
    rule: Rule, text: str, settings: Settings, script: str | None = None, language: str | None = "shell"
) -> Iterator[Problem]:
    """Find a command or a script that blocks at an event where no hook can."""
    if rule.event not in OBSERVED_EVENTS or rule.hook.detached or settings.mode_of(rule) != "gate":
        return
    if attempt := block_attempt(text, language):
        yield in_vain(rule, "command", f"{script} {attempt}" if script else attempt)


def in_vain(rule: Rule, field: str, what: str) -> Problem:
    meant = "SubagentStop" if rule.event == "SubagentStart" else "Stop"
    message = f"{what}, but hooks of {rule.event} cannot block"
    return rule_problem(rule, field, message, did_you_mean(meant), "warning")
