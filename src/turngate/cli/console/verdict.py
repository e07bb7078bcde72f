"""The verdict on one event, for a person: ask the hooks with a progress line, and print what they decided."""

import re
import sys
from collections.abc import Iterable
from typing import Any

from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.progress import ProgressLine
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_ALLOWED, EXIT_BLOCKED, EXIT_HALTED, EXIT_NOT_ENFORCED, EXIT_WAITING
from turngate.cli.project import with_place
from turngate.core.answers.report_types import Detached, Skipped
from turngate.core.constants import EVENTS, STOP_EVENTS
from turngate.core.events.events import Event
from turngate.core.events.hook_input import FIELDS
from turngate.core.hooks.kinds import label
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import indent, one_line, quote_name
from turngate.core.verdict.hook_run import HookRun, outcome, run_message
from turngate.core.verdict.tool_effects import Permission, context_of, permission_of
from turngate.core.verdict.verdict import Continue, Verdict, is_blocking, notices, warnings_with_hints
from turngate.engine import ask_hooks
from turngate.ports import World
from turngate.settings.key_table import closest_name
from turngate.settings.load import has_unloaded_hooks
from turngate.settings.problem_log import did_you_mean


async def ask_with_progress(event: Event, settings: Settings, world: World) -> Verdict:
    """Ask the hooks, and show at a terminal which of them are running."""
    running: list[str] = []

    def watch(rule: Rule, run: HookRun | None) -> None:
        name = fmt.format_waiting(label(rule.hook), settings.timeout_of(rule))
        if run is None:
            running.append(name)
        else:
            running.remove(name)

    world.watch, world.logs = watch, False
    async with ProgressLine(lambda: running, last_line=world.last_line).shown():
        return await ask_hooks(event, settings, world)


def problems_for(event: str, settings: Settings) -> list[Problem]:
    """Return the problems that may concern this event; a misspelled event may be meant for it."""
    return [
        problem
        for problem in settings.problems
        if problem.severity != "note" and (problem.event in (None, event) or problem.event not in EVENTS)
    ]


def verdict_exit_code(verdict: Verdict, event: str, *, strict: bool, not_loaded: bool) -> int:
    if isinstance(verdict, Continue):
        return EXIT_BLOCKED
    if verdict.halted:
        return EXIT_WAITING if verdict.waits else EXIT_HALTED
    if strict and (not_loaded or verdict.unenforced):
        return EXIT_NOT_ENFORCED
    return EXIT_WAITING if _question(verdict, event) else EXIT_ALLOWED


def _question(verdict: Verdict, event: str) -> Permission | None:
    """Return the answer that leaves the decision to the user, whom only an agent can ask."""
    permission = permission_of(event, verdict.runs)
    return permission if permission and permission.behavior in ("ask", "defer") else None


def print_verdict(
    verdict: Verdict,
    event: Event,
    fields: dict[str, Any],
    settings: Settings,
    trouble: Iterable[str],
    *,
    why_none: str,
    location: str,
) -> None:
    """Print the verdict on an event with these fields of `--input`; `why_none`: why no hook ran, if none did.

    `location` is that of the project, for hints.
    """
    not_loaded = has_unloaded_hooks(settings, event.name)
    headline = fmt.hanging(verdict_headline(verdict, event.name, not_loaded=not_loaded))
    print(paint(f"{event.name}: {headline}", fmt.headline_style(headline)))
    for run in verdict.runs:
        print(_row(run, settings))
    if not verdict.runs:
        print(f"  {why_none}")
    if hint := _matcher_hint(verdict, event):
        print(f"  → {fmt.flat(hint)}")
    if isinstance(verdict, Continue):
        print("Sent to the agent:" if event.name in STOP_EVENTS else "Reason:")
        print(indent(verdict.prompt))
    if context := context_of(event.name, verdict.runs):
        print("Added as context:")
        print(indent(context))
    for notice in notices(verdict.runs):
        print(f"Hook message: {fmt.hanging(notice)}")
    hinted = [(str(problem), problem.hint) for problem in problems_for(event.name, settings)]
    warnings = [*_misspelled(fields), *hinted, *((text, None) for text in trouble)]
    for warning, hint in (*warnings, *warnings_with_hints(verdict.runs, settings.dialect)):
        print_warning(warning, hint and with_place(hint, location), fmt.warning_style(warning))


def print_warning(text: str, hint: str | None, style: str = "alert") -> None:
    print(paint(f"! {fmt.hanging(text)}", style, sys.stderr), file=sys.stderr)
    if hint:
        print(f"  → {fmt.flat(hint)}", file=sys.stderr)


def _matcher_hint(verdict: Verdict, event: Event) -> str | None:
    """Return how to give the event the field that a matcher was applied to in vain."""
    field = EVENTS[event.name]
    skipped = [run.rule.matcher for run in verdict.runs if isinstance(run.report, Skipped)]
    matcher = next(filter(None, skipped), None)
    if field is None or event.subject or matcher is None:
        return None
    name = re.match(r"\w+", matcher)
    return f"""to fire it for one: --input '{{"{field}": "{name[0] if name else "NAME"}"}}'"""


def _misspelled(fields: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Return a warning for each unknown field of `--input` that is close to a known one."""
    close = {name: closest_name(name, FIELDS) for name in fields if name not in FIELDS}
    return [
        (f"--input: `{name}` is not a field that hooks know", did_you_mean(known))
        for name, known in close.items()
        if known
    ]


def verdict_headline(verdict: Verdict, event: str, *, not_loaded: bool) -> str:
    if isinstance(verdict, Continue):
        return "blocked"
    if verdict.halted:
        how = "waiting for the user" if verdict.waits else "halted by a hook"
        return f"{how}: {verdict.stop_reason}" if verdict.stop_reason else how
    headline = "allowed"
    if question := _question(verdict, event):
        headline = f"{question.behavior}{f': {one_line(question.reason)}' if question.reason else ''}"
    if verdict.unenforced:
        headline += f", {fmt.counted(len(verdict.unenforced), 'gate')} {fmt.NOT_ENFORCED}"
    return f"{headline}, {fmt.NOT_LOADED}" if not_loaded else headline


def _row(run: HookRun, settings: Settings) -> str:
    """Format one run as a line; reasons that the prompt or a warning repeats below are left out."""
    result = outcome(run)
    file = f"  ({run.rule.file})" if run.rule.file else ""
    if isinstance(run.report, Detached):
        text, reason = "in background", ""
    elif run.answer and run.answer.permission in ("ask", "defer") and result == "allow":
        text, reason = run.answer.permission, ""
    else:
        text = fmt.outcome_label(result, blocking=is_blocking(run, settings.dialect))
        lines = (run_message(run) or "").strip().splitlines()
        reason = f": {lines[0]}" if lines and result not in ("block", "advise", "failed", "timeout") else ""
    painted = paint(f"{text:<{fmt.LABEL_WIDTH}}", fmt.label_style(text))
    return f"  {painted} {run.seconds:6.2f} s  {fmt.flat(quote_name(label(run.rule.hook)) + file + reason)}"
