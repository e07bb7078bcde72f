"""Finds gates that can never block, always block or never end, from the commands in them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turngate.core.constants import STOP_EVENTS
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import one_line, truncate
from turngate.settings.check_tools import check_tool, never_ends, writes_to_stdout
from turngate.settings.command_scope import Scope
from turngate.settings.problem_log import rule_problem
from turngate.settings.shell_syntax import CommandList, SimpleCommand

GATED_EVENTS = (*STOP_EVENTS, "PreToolUse")
MAX_COMMAND_CHARS = 100  # of a command in a hint

_ONLY_2 = "and only exit code 2 blocks"
_NO_EFFECT = frozenset(
    ["cd", "echo", "printf", "export", "set", "true", ":", "sleep", "date", "unset", "umask"]
)
_FILTERS = frozenset(
    ["tail", "head", "tee", "cat", "sed", "awk", "less", "sort", "uniq", "column", "tr", "cut"]
)
_BLOCK_JSON = re.compile(r"[\"']?decision[\"']?\s*:\s*[\"']?block")


class _Step(NamedTuple):
    """One command with its words expanded; a word that is not known is None."""

    operator: str
    texts: Sequence[str | None]
    command: SimpleCommand

    @property
    def name(self) -> str | None:
        return self.texts[0] if self.texts else ""

    @property
    def tool(self) -> str | None:
        return check_tool(self.texts)

    @property
    def exit_code(self) -> str | None:
        return (self.texts[1] if len(self.texts) > 1 else "") if self.name == "exit" else None

    @property
    def outputs(self) -> tuple[str, str]:
        """Where stdout and stderr go: "stdout", "stderr" or "file"."""
        out, err = "stdout", "stderr"
        for operator, word in self.command.redirects:
            target = word.plain
            if operator in (">&", "1>&") and target == "2":
                out = err
            elif operator == "2>&" and target == "1":
                err = out
            elif operator in (">", ">>", "1>", "1>>"):
                out = "file"
            elif operator in ("2>", "2>>"):
                err = "file"
        return out, err

    @property
    def gives_reason(self) -> bool:
        """Whether something of a failing check reaches stderr."""
        out, err = self.outputs
        return out == "stderr" or (err == "stderr" and not writes_to_stdout(self.tool or ""))

    @property
    def prints(self) -> bool:
        return self.name in ("echo", "printf")

    @property
    def prints_block(self) -> bool:
        return self.prints and any(_BLOCK_JSON.search(text or "") for text in self.texts)


def is_gate(rule: Rule, settings: Settings) -> bool:
    """Whether the rule's exit code decides something, and a failure does not block."""
    hook = rule.hook
    return (
        rule.event in GATED_EVENTS
        and hook.enabled
        and not hook.detached
        and not hook.blocking
        and not (rule.event not in STOP_EVENTS and getattr(hook, "on_failure", None) == "block")
        and settings.mode_of(rule) == "gate"
    )


def lint_gate(
    rule: Rule, text: str, commands: CommandList, scope: Scope, settings: Settings, script: str | None = None
) -> Iterator[Problem]:
    """Check commands that are the whole hook; `script` is the file that holds them."""
    steps = [_read_step(command, scope) for command in commands.commands]
    if not steps or not commands.is_complete or commands.end == "&":
        return
    where = f"{script}: " if script else ""
    endless = next((step for step in steps if step.operator != "&" and never_ends(step.texts)), None)
    if endless:
        message = f"{where}{_show(endless.texts)} never ends, so the hook times out at every run"
        yield rule_problem(rule, "command", message, severity="warning")
    elif is_gate(rule, settings):
        found = _judge(steps, _rewritable(text, script), rule, settings)
        if found:
            yield rule_problem(rule, "command", where + found[0], found[1], "warning")


def _read_step(command: SimpleCommand, scope: Scope) -> _Step:
    expansions = [scope.expand(word) for word in command.words]
    return _Step(command.operator, [e.text if e else None for e in expansions], command)


def _rewritable(text: str, script: str | None) -> str:
    return "COMMAND" if script or "\n" in text or len(text) > MAX_COMMAND_CHARS else text.strip().rstrip(";")


Finding = tuple[str, str | None]  # message and hint


def _judge(steps: list[_Step], text: str, rule: Rule, settings: Settings) -> Finding | None:
    *before, last = steps
    if last.exit_code is not None and all(step.name in _NO_EFFECT for step in before):
        return _judge_constant(last.exit_code, rule)
    if last.operator == "||":
        return _judge_alternative(before, last, text, settings)
    if last.prints_block and all(step.name in _NO_EFFECT for step in before):
        text_before = [step for step in before if step.prints and step.outputs[0] == "stdout"]
        return _text_before_json(text_before[0]) if text_before else _always_blocks(rule)
    if any(step.operator == "||" for step in steps):
        return None
    if last.operator == "|":
        return _judge_pipeline(steps)
    return _judge_chain(steps, text)


def _judge_constant(code: str, rule: Rule) -> Finding | None:
    if code == "2":
        return _always_blocks(rule)
    if code in ("", "0"):
        return None
    return f"ends with exit code {code}, {_ONLY_2}: this hook can never block", "write exit 2"


def _always_blocks(rule: Rule) -> Finding | None:
    """A PreToolUse hook that always blocks forbids a tool; a Stop hook that does so never lets the agent stop."""
    if rule.event not in STOP_EVENTS:
        return None
    message = (
        "blocks every time, whatever the agent did, so the agent is sent back until the limit is reached"
    )
    return message, "block on a condition: CHECK >&2 || exit 2"


def _judge_alternative(before: list[_Step], last: _Step, text: str, settings: Settings) -> Finding | None:
    """`CHECK || exit N` and `CHECK || echo JSON`."""
    tools = [step for step in before if step.tool]
    if not tools or any(step.operator in ("||", "|") for step in before):
        return None
    if last.exit_code not in (None, "0", "2", ""):
        message = f"ends with exit code {last.exit_code} when {_show(tools[0].texts)} fails, {_ONLY_2}: this hook can never block"
        return (
            message,
            f"write {text.rpartition('||')[0].strip()} >&2 || exit 2" if "||" in text else "write exit 2",
        )
    loud = [step for step in tools if step.outputs[0] == "stdout"]
    if last.prints_block and loud:
        return _text_before_json(loud[0])
    silent = [step for step in tools if not step.gives_reason]
    if last.exit_code == "2" and silent and settings.dialect.default_stderr is None:
        shown = _show(silent[0].texts)
        message = f"the output of {shown} does not go to stderr, so exit code 2 comes without a reason and does not block"
        return message, f"write {shown} >&2 || exit 2"
    return None


def _text_before_json(step: _Step) -> Finding:
    shown = _show(step.texts)
    message = (
        f"the output of {shown} comes before the JSON, which is then not read: this hook can never block"
    )
    return message, "print only the JSON on stdout, and everything else on stderr (>&2)"


def _judge_pipeline(steps: list[_Step]) -> Finding | None:
    """`CHECK | tail`: the exit code is that of the last command."""
    start = max(n for n, step in enumerate(steps) if step.operator != "|")
    tool, last = steps[start], steps[-1]
    fails = any(step.name == "set" and "pipefail" in step.texts for step in steps)
    if not tool.tool or last.name not in _FILTERS or fails:
        return None
    message = f"the exit code is that of {last.name}, not of {_show(tool.texts)}: this hook can never block"
    return message, f"write {_show(tool.texts)} >&2 || exit 2"


def _judge_chain(steps: list[_Step], text: str) -> Finding | None:
    """`CHECK`, or `CHECK && CHECK`: the exit code is that of the check."""
    tools = [step for step in steps if step.tool]
    others = [step for step in steps if not step.tool and step.name not in _NO_EFFECT]
    exits_on_error = any(
        step.name == "set" and re.match(r"-\w*e", step.texts[1] or "")
        for step in steps[:-1]
        if len(step.texts) > 1
    )
    decides = steps[-1].tool or steps[-1].operator == "&&" or (exits_on_error and tools)
    if not tools or others or not decides:
        return None
    shown = _show(tools[0].texts)
    message = f"{shown} does not end with exit code 2 when it fails, {_ONLY_2}: this hook can never block"
    whole = f"({text})" if len(steps) > 1 else text
    return message, f"write {whole} >&2 || exit 2, which blocks with the output as the reason"


def _show(texts: Sequence[str | None]) -> str:
    return truncate(one_line(" ".join(text or "…" for text in texts)), 60)
