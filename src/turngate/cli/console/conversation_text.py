"""Texts of a conversation for a terminal: tools, hooks, questions and the end of a turn."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from turngate.cli.console.ui import TextStyle
from turngate.core.conversation.messages import ToolResult, ToolUse
from turngate.core.events.stream_events import HookFinished, TurnResult, blocked_subagents_json
from turngate.core.hooks.kinds import label
from turngate.core.settings import Settings
from turngate.core.text import one_line, quote_name, strip_controls, truncate
from turngate.core.verdict.hook_run import OUTCOME_LABELS, HookOutcome
from turngate.settings.slash_commands import SlashCommands, parse_call

MAX_TOOL_CHARS = 100
MAX_TOOL_ERROR_CHARS = 200
NOT_ENFORCED = "NOT enforced"  # the phrase of core.verdict.warnings
NOT_PERMITTED = "was not permitted"  # the phrase of agent.tool_calls
NOT_LOADED = "settings NOT fully loaded"

HELP = """\
/help                    show this help
/hooks                   show, approve and reject hooks; name their problems
/goal [GOAL --proof CMD]  hold the agent until a goal is met; /goal clear drops it
/more, /accept WHY       where hooks still block at the limit: send the agent back again, or accept it
/compact [INSTRUCTIONS]  summarize the conversation; INSTRUCTIONS: what to keep
/clear                   clear the conversation
/output                  show all that the last tool has printed or changed
/exit                    exit; so do Ctrl-D and Ctrl-C at an empty prompt

Enter                    send the message
Alt-Enter, \\ Enter       start a new line
Up, Down, Ctrl-R         recall earlier messages
Escape, Ctrl-C           interrupt what is running; Ctrl-C twice exits
y, a, n                  answer a permission question: yes, always, no

At a checkpoint, yes continues and no ends the workflow; anything else is a
message to the agent.
Messages that you type while the agent works are answered afterward. A message
that begins with a space is never read as a command and not kept in the history."""
ANSWERS = "yes continues, no ends it; anything else is a message to the agent"
AT_LIMIT = "/more sends the agent back as often again, /accept WHY accepts it; otherwise it stays open in `turngate log --open`"
MAX_DESCRIPTION_CHARS = 100


def format_commands(commands: SlashCommands) -> str:
    """Format the commands of files for /help, and what is wrong with the others."""
    lines = []
    for each in commands:
        usage = flat(f"/{each.name} {each.argument_hint}").strip()
        source = f"({each.level}{f':{each.folder}' if each.folder else ''})"
        lines.append(
            f"{usage:24} {one_line(strip_controls(each.description), MAX_DESCRIPTION_CHARS)} {source}"
        )
    lines += [f"! {hanging(str(problem))}" for problem in commands.problems]
    return "\n".join(lines)


def format_waiting(hook: str, seconds: float | None) -> str:
    """Name a hook that is running, to follow `waiting for`: `hook "tests" (at most 60 s)`."""
    return f"hook {quote_name(hook)}{format_limit(seconds)}"


def format_limit(seconds: float | None) -> str:
    """Return how long a hook may take, to follow its name; empty if that is not known."""
    return "" if seconds is None else f" (at most {seconds:g} s)"


# Input

Permission = Literal["yes", "always", "no"]
_PERMISSIONS: tuple[Permission, ...] = ("yes", "always", "no")


def parse_command(text: str) -> tuple[str | None, str]:
    """Return a command and its arguments, or None and the message: `/etc/hosts is wrong` is a message."""
    call = parse_call(text)
    return (f"/{call[0]}", call[1]) if call else (None, text.strip())


def parse_permission(text: str) -> Permission | None:
    """Return the answer to a permission question, or None if it is not one."""
    word = text.strip().lower()
    return next((each for each in _PERMISSIONS if word in (each, each[0])), None)


# Text


def hanging(text: str) -> str:
    """Return a text without controls whose further lines are indented: none of them looks like one of Turngate."""
    return strip_controls(text).replace("\n", "\n  ")


def flat(text: str) -> str:
    """Return a text without controls on one line, with its blanks as they are."""
    return strip_controls(text).replace("\n", " ")


def first_line(text: str, limit: int = MAX_TOOL_CHARS) -> str:
    lines = strip_controls(text).strip().splitlines()
    line = one_line(lines[0]) if lines else ""
    return truncate(line, limit) + (" …" if len(lines) > 1 else "")


def counted(number: int, noun: str) -> str:
    """Return `1 hook`, `2 hooks`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def format_table(columns: Sequence[tuple[str, Sequence[str]]], left: int = 1) -> Iterator[str]:
    """Yield the lines of a table; the first columns are aligned on the left, the others on the right."""
    widths = [max(len(heading), *map(len, cells)) for heading, cells in columns]
    rows = zip(*(cells for _, cells in columns), strict=True)
    for row in ([heading for heading, _ in columns], *rows):
        cells = (f"{cell:{'<' if place < left else '>'}{widths[place]}}" for place, cell in enumerate(row))
        yield "  ".join(cells).rstrip()


def format_time(seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a local time; one that a file gives may be out of range."""
    try:
        return time.strftime(form, time.localtime(seconds))
    except (OverflowError, OSError, ValueError):
        return "?"


# Tools


def format_tool(use: ToolUse, project: str) -> str:
    """Format a tool call in one line: `Bash: pytest -q`."""
    args = use.input
    match use.name:
        case "Bash":
            subject = str(args.get("command", ""))
        case "Read" | "Write" | "Edit":
            subject = str(args.get("file_path", "")).removeprefix(project + os.sep)
        case "Glob" | "Grep":
            subject = str(args.get("pattern", ""))
        case "Task" | "Agent":
            subject = str(args.get("description", ""))
        case "AskUser":
            subject = str(args.get("question", ""))
        case "TodoWrite":
            todos = args.get("todos")
            subject = f"{len(todos)} tasks" if isinstance(todos, list) else ""
        case _:
            subject = json.dumps(dict(args), ensure_ascii=False, default=str) if args else ""
    return f"{use.name}: {first_line(subject)}" if subject else use.name


def format_tool_end(use: ToolUse, result: ToolResult, seconds: float, project: str) -> str:
    duration = f" ({seconds:.1f} s)" if seconds >= 0.1 else ""
    line = f"  {format_tool(use, project)}{duration}"
    if not result.is_error:
        return line
    lines = [line for line in strip_controls(result.content).strip().splitlines() if line.strip()]
    error = " … ".join(dict.fromkeys((lines[0].strip(), lines[-1].strip()))) if lines else "no reason given"
    return f"{line} failed: {first_line(error, MAX_TOOL_ERROR_CHARS)}"


# Hooks

LABEL_WIDTH = max(map(len, OUTCOME_LABELS.values()))


def outcome_label(outcome: str, *, blocking: bool = False) -> str:
    """Name the outcome of a hook run; with `blocking` a failure may be enforced, so its label claims nothing."""
    if outcome == "looked":  # the journal's record of a hook agent
        return "hook agent"
    text = OUTCOME_LABELS.get(cast("HookOutcome", outcome), outcome)
    return text.removesuffix(" (not enforced)") if blocking else text


def headline_style(headline: str) -> str:
    """Return the style, for `paint`, of a verdict: `blocked`, `allowed, 1 gate NOT enforced` …"""
    if NOT_ENFORCED in headline or NOT_LOADED in headline:
        return "alert"
    return {"allowed": "good", "blocked": "bad"}.get(headline.split(":", maxsplit=1)[0], "notice")


_LABEL_STYLES = {"passed": "good", "blocked": "bad", "skipped": "dim", "in background": "dim"}


def label_style(text: str) -> str:
    """Return the style of the outcome of a hook run."""
    return _LABEL_STYLES.get(text, "alert" if text.startswith(("failed", "timed out")) else "notice")


def warning_style(text: str) -> Literal["alert", "notice"]:
    return "alert" if NOT_ENFORCED in text else "notice"


def format_hook_end(event: HookFinished, settings: Settings) -> str:
    blocking = settings.dialect.failure_may_block and any(
        rule.hook.blocking
        for rule in settings.rules
        if rule.event == event.event and label(rule.hook) == event.hook
    )
    text = outcome_label(event.outcome, blocking=blocking)
    return f"  hook {strip_controls(quote_name(event.hook))}: {text} ({event.seconds:.1f} s)"


def format_redirect(label: str, reason: str, count: int, limit: int | None) -> str:
    text = hanging(reason.strip())
    return f"subagent {strip_controls(label)} redirected ({count_of(count, limit)}): {text}"


def count_of(count: int, limit: int | None) -> str:
    return str(count) if limit is None else f"{count} of {limit}"


def format_notice(text: str, hint: str | None = None) -> tuple[str, TextStyle]:
    """Format a notice; one about a hook that was not enforced is highlighted."""
    lines = f"{text}\n→ {hint}" if hint else text
    return f"! {hanging(lines)}", warning_style(text)


# The end of a turn


def format_turn_end(
    result: TurnResult, interruption: str = "interrupted", *, totals: bool = False
) -> Iterator[tuple[str, TextStyle]]:
    """Format how a turn ended, where the conversation does not show it; `interruption` describes an interrupt.

    The totals of a turn without tools and continuations are left out unless `totals` is set.
    """
    if result.ended_by == "interrupt":
        yield interruption, "notice"
    elif result.ended_by == "halted" and not result.stop_reason:
        yield "turn halted by a hook", "notice"
    elif result.ended_by == "checkpoint" and result.stop_reason:
        yield hanging(result.stop_reason), "notice"
    elif result.stop_reason and not any(result.stop_reason in notice for notice in result.notices):
        yield f"turn ended ({result.ended_by}): {hanging(result.stop_reason)}", "notice"
    if result.checkpoint is not None:
        yield ANSWERS, "notice"
    if result.question is not None:
        yield format_question(result.question)
    if blocked := blocked_subagents_json(result):
        yield f"! {format_blocked_subagents(blocked)}", "alert"
    if result.tool_calls or result.continuations or (totals and result.model_requests):
        yield format_totals(result), "dim"


def format_blocked_subagents(subagents: Sequence[Mapping[str, Any]]) -> str:
    """Format `blocked_subagents` of a turn: `1 subagent ended although a gate still blocks: NAME (capped: "HOOK")`."""
    names = []
    for each in subagents:
        hooks = ", ".join(quote_name(one_line(str(hook))) for hook in each["blocked_by"])
        names.append(f"{one_line(str(each['label']))} ({each['reason']}{f': {hooks}' if hooks else ''})")
    count = counted(len(names), "subagent")
    return strip_controls(f"{count} ended although a gate still blocks: {', '.join(names)}")


def format_question(question: str) -> tuple[str, TextStyle]:
    return f"the agent asks: {hanging(question)}", "notice"


def format_totals(result: TurnResult) -> str:
    """Format what a turn took: `  2 model requests, 1 tool call, 1,200 tokens in, 34 out, $0.0041, 3.2 s`."""
    counts = (
        (result.model_requests, "model request"),
        (result.tool_calls, "tool call"),
        (result.continuations, "continuation"),
    )
    parts = [counted(number, name) for number, name in counts if number]
    if result.usage.total:
        parts.append(f"{result.usage.total_input:,} tokens in, {result.usage.output_tokens:,} out")
        if result.cost is not None:
            parts.append(format_dollars(result.cost))
    return f"  {', '.join(parts)}, {result.duration_ms / 1000:.1f} s"


def format_dollars(cost: float) -> str:
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"
