"""What is said at the terminal: how tools, hooks, questions and endings are put into words."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Literal, cast

from turngate.cli.terminal.ui import Look
from turngate.core.hooks import label
from turngate.core.messages import ToolResult, ToolUse
from turngate.core.session_events import TurnResult
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import one_line, truncate
from turngate.core.verdict import OUTCOME_LABELS, RunOutcome

HELP = """\
/help                 this
/hooks                the configured hooks, their files, and what is wrong with them
/compact [WISHES]     replace the conversation by a summary of it
/clear                forget the conversation
/exit                 leave; so do Ctrl-D and Ctrl-C at an empty prompt

Enter                 sends
Alt-Enter, \\ Enter    start a new line
Up, Down, Ctrl-R      bring back what you said before
Escape, Ctrl-C        interrupt whatever runs; Ctrl-C twice leaves

What you type while the agent works waits for its answer. A message that begins
with a blank is never taken for a command and not kept in the history."""

_COMMAND = re.compile(r"(/[a-z]+)(?:\s+(.*))?", re.DOTALL)


def command(text: str) -> tuple[str | None, str]:
    """The command and its words, or None and the message: `/etc/hosts is wrong` is a message."""
    found = _COMMAND.fullmatch(text.rstrip())
    return (found[1], found[2] or "") if found else (None, text.strip())


_HARMFUL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def clean(text: str) -> str:
    """Without what could move the cursor, change a terminal's state or turn the order of letters round."""
    return _HARMFUL.sub("", text.replace("\r\n", "\n"))


def first_line(text: str, most: int = 100) -> str:
    lines = clean(text).strip().splitlines()
    line = one_line(lines[0]) if lines else ""
    return truncate(line, most) + (" …" if len(lines) > 1 else "")


def tool_line(use: ToolUse, project: str) -> str:
    """`Bash: pytest -q`"""
    given = use.input
    match use.name:
        case "Bash":
            shown = str(given.get("command", ""))
        case "Read" | "Write" | "Edit":
            shown = _relative(str(given.get("file_path", "")), project)
        case "Glob" | "Grep":
            shown = str(given.get("pattern", ""))
        case "AskUser":
            shown = str(given.get("question", ""))
        case "TodoWrite":
            todos = given.get("todos")
            shown = f"{len(todos)} tasks" if isinstance(todos, list) else ""
        case _:
            shown = json.dumps(dict(given), ensure_ascii=False, default=str) if given else ""
    return f"{use.name}: {first_line(shown)}" if shown else use.name


def _relative(path: str, project: str) -> str:
    return os.path.relpath(path, project) if path.startswith(project + os.sep) else path


def tool_end(use: ToolUse, result: ToolResult, seconds: float, project: str) -> str:
    took = f" ({seconds:.1f} s)" if seconds >= 0.1 else ""
    if not result.is_error:
        return f"  {tool_line(use, project)}{took}"
    lines = [line for line in clean(result.content).strip().splitlines() if line.strip()]
    said = " … ".join(dict.fromkeys((lines[0].strip(), lines[-1].strip()))) if lines else "no reason given"
    return f"  {tool_line(use, project)}{took} failed: {first_line(said, 200)}"


def request(use: ToolUse, project: str) -> str:
    """Everything that is going to be done: nobody should permit what they have not seen."""
    given = use.input
    match use.name:
        case "Bash":
            return f"Bash: {clean(str(given.get('command', '')))}"
        case "Write":
            return f"{tool_line(use, project)}\n{_marked('+', str(given.get('content', '')))}"
        case "Edit":
            old, new = str(given.get("old_string", "")), str(given.get("new_string", ""))
            return f"{tool_line(use, project)}\n{_marked('-', old)}\n{_marked('+', new)}"
        case _:
            return f"{use.name}: {clean(json.dumps(dict(given), ensure_ascii=False, default=str))}"


def _marked(mark: str, text: str) -> str:
    return "\n".join(f"  {mark} {line}" for line in clean(text).splitlines())


Permission = Literal["yes", "always", "no"]
_ANSWERS: dict[str, Permission] = {
    "y": "yes",
    "yes": "yes",
    "a": "always",
    "always": "always",
    "n": "no",
    "no": "no",
}


def permission(text: str) -> Permission | None:
    """None: it is not clear."""
    return _ANSWERS.get(text.strip().lower())


def goes_on(prompt: str, count: int, limit: int | None, prefix: str) -> str:
    """A hook's words are no error: it asks for more work."""
    of = f" of {limit}" if limit is not None else ""
    return f"hook blocked the stop (continuation {count}{of}): " + _indented(
        clean(prompt.replace(prefix, "")).strip()
    )


def child_goes_on(label: str, why: str, count: int, limit: int | None) -> str:
    of = f" of {limit}" if limit is not None else ""
    return f"hook redirected subagent {clean(label)} ({count}{of}): " + _indented(clean(why).strip())


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def hook_end(hook: str, outcome: str, seconds: float) -> str:
    return f"  hook {clean(hook)}: {outcome_label(outcome)} ({seconds:.1f} s)"


LABEL_WIDTH = max(map(len, OUTCOME_LABELS.values()))


def outcome_label(outcome: str, *, blocking: bool = False) -> str:
    """Name the outcome of a hook run; the failure of a hook with `blocking: true` is enforced."""
    if outcome == "looked":  # the journal's record of a hook agent
        return "hook agent"
    text = OUTCOME_LABELS.get(cast("RunOutcome", outcome), outcome)
    return text.removesuffix(" (not enforced)") if blocking else text


def notice(text: str) -> tuple[str, Look]:
    """A gate that did not hold is said loudly."""
    loud = "NOT enforced" in text  # the words of core.verdict.warnings
    return f"! {_indented(clean(text))}", "loud" if loud else "note"


def ending(result: TurnResult, cut: str | None) -> Iterator[tuple[str, Look]]:
    """How a turn ended, where that is not plain to see."""
    if result.ended_by == "interrupt":
        yield (f"interrupted while this ran: {cut}" if cut else "interrupted"), "note"
    elif result.ended_by == "halted" and not result.stop_reason:
        yield "a hook ended the turn", "note"
    elif result.stop_reason and not any(result.stop_reason in said for said in result.notices):
        yield f"the turn ended ({result.ended_by}): {_indented(clean(result.stop_reason))}", "note"
    if result.question:
        yield f"the agent asks: {_indented(clean(result.question))}", "note"
    if result.tool_calls or result.continuations:
        yield f"  {_count(result)}, {result.duration_ms / 1000:.1f} s", "dim"


def _count(result: TurnResult) -> str:
    counts = (
        (result.model_requests, "model request"),
        (result.tool_calls, "tool call"),
        (result.continuations, "continuation"),
    )
    return ", ".join(f"{number} {name}{'s' * (number != 1)}" for number, name in counts if number)


def hooks(settings: Settings, problems: Iterable[Problem], *, asked: bool) -> Iterator[tuple[str, Look]]:
    """What is configured, event by event, and what is wrong with it."""
    if not asked:
        yield "no hook is asked: this conversation was started with --no-hooks", "loud"
    if not settings.rules:
        yield "no hooks are configured; docs/hooks.md shows how to write one", "plain"
    for event in dict.fromkeys(rule.event for rule in settings.rules):
        yield event, "plain"
        for rule in settings.rules:
            if rule.event == event:
                yield _hook(rule, settings), "plain"
    for problem in problems:
        hint = f" → {problem.hint}" if problem.hint else ""
        yield f"! {problem}{hint}", "loud" if problem.severity == "error" else "note"


def _hook(rule: Rule, settings: Settings) -> str:
    switch = settings.switched_off.get(rule.family) if rule.family else None
    facts = (
        rule.file or rule.source,
        f"for {rule.matcher}" if rule.matcher else "",
        f"{settings.timeout_of(rule):g} s",
        "only observes" if settings.mode_of(rule) == "observe" else "",
        "switched off" if not rule.hook.enabled else f"switched off by {switch}" if switch else "",
    )
    return f"  {clean(label(rule.hook))}  ({', '.join(fact for fact in facts if fact)})"
