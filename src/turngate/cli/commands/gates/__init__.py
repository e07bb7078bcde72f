"""`turngate gates`: run a project's gates without an agent, as CI does; list them.

The arguments of `turngate gates`.
"""

import argparse
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from turngate.cli.arguments import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_actions,
    add_command,
    add_project_options,
)
from turngate.cli.commands.gates.results import GateResult, Outcome, open_workspace, run_gates
from turngate.cli.commands.gates.selection import GateEntry, find_base, select_gates
from turngate.cli.console.format import flat
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.signals import run_until_signal
from turngate.cli.console.streams import paint
from turngate.cli.console.verdict import problems_for
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED, EXIT_PROBLEMS
from turngate.cli.project import plugin_folders, project_folder, search_note
from turngate.cli.review import agent_hooks
from turngate.cli.review.entries import format_text, shown_key
from turngate.core.constants import STOP_EVENTS
from turngate.core.settings import Problem, Settings
from turngate.core.text import indent, keep_ends, quote_name
from turngate.core.verdict.json_output import hook_json
from turngate.settings.load import has_unloaded_hooks
from turngate.trust.load import load_reviewed, review_agent_hooks

MAX_REASON_CHARS = 8_000
NO_GATES = "no gates are configured; `turngate init` finds the checks of a project"
APPROVE = (
    "read what is not approved with `turngate hooks diff`, and approve it with `turngate hooks approve --all`; "
    "or add --trust, in CI of your own repository"
)
_LABEL_WIDTH = len("could not run")
_STYLES: Mapping[Outcome, str] = {
    "passed": "good",
    "failed": "alert",
    "could not run": "notice",
    "left out": "dim",
}


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project, options.dialect)
    if not options.json and (note := search_note(project, options.project)):
        print(note)
    base = find_base(project, options.base) if getattr(options, "base", None) is not None else ""
    with show_if_slow("reading the settings"):
        settings = _load(options, project)
        entries = select_gates(settings, project, getattr(options, "names", ()), has_base=bool(base))
    return (
        _run(entries, settings, project, options, base)
        if options.action == "run"
        else _list(entries, project, options)
    )


def _load(options: argparse.Namespace, project: str) -> Settings:
    plugins, trust = plugin_folders(options.plugin_dir), getattr(options, "trust", False)
    settings = load_reviewed(
        project, dialect=options.dialect, plugin_dirs=plugins, extra=options.settings, trust=trust
    )
    in_agents = agent_hooks(project, options.dialect)
    return settings.with_rules(*review_agent_hooks(in_agents, project, options.dialect, trust=trust))


# Run


def _run(
    entries: Sequence[GateEntry],
    settings: Settings,
    project: str,
    options: argparse.Namespace,
    base: str,
) -> int:
    with open_workspace() as workspace:
        runs = run_gates(entries, settings, project, workspace, base)
        running = _run_and_print(runs, is_quiet=options.json)
        results = run_until_signal(running)
    if isinstance(results, signal.Signals):
        print(f"turngate: ended by {results.name}; no gate is left running", file=sys.stderr)
        return 128 + results
    problems = [problem for event in STOP_EVENTS for problem in problems_for(event, settings)]
    not_loaded = has_unloaded_hooks(settings, *STOP_EVENTS)
    code = _exit_code(results, lenient=options.lenient, not_loaded=not_loaded)
    if options.json:
        print(json.dumps(_report_json(results, project, problems, not_loaded=not_loaded), indent=2))
    else:
        _print_end(results, problems)
    return code


async def _run_and_print(runs: AsyncIterator[GateResult], *, is_quiet: bool) -> list[GateResult]:
    results = []
    async for result in runs:
        results.append(result)
        if not is_quiet:
            _print_result(result)
    return results


def _exit_code(results: Sequence[GateResult], *, lenient: bool, not_loaded: bool) -> int:
    """Nothing that ran is nothing that passed."""
    outcomes = {result.outcome for result in results}
    if "failed" in outcomes:
        return EXIT_PROBLEMS
    is_enforced = "passed" in outcomes and "could not run" not in outcomes and not not_loaded
    return EXIT_ALLOWED if is_enforced or lenient else EXIT_NOT_ENFORCED


def _print_result(result: GateResult) -> None:
    label = paint(f"{result.outcome:<{_LABEL_WIDTH}}", _STYLES[result.outcome])
    time = f"{result.seconds:6.2f} s" if result.outcome != "left out" else " " * 8
    file = result.entry.file
    name = quote_name(shown_key(result.entry.key)) + (f"  ({file})" if file else "")
    is_long = result.outcome == "failed"
    why = f": {result.reason}" if result.reason and not is_long else ""
    print(f"{label} {time}  {flat(name + why)}", flush=True)
    if is_long:
        half = MAX_REASON_CHARS // 2
        print(indent(keep_ends(result.reason or "", half, half)), flush=True)
    if result.hint:
        print(f"  → {flat(result.hint)}", flush=True)


def _print_end(results: Sequence[GateResult], problems: Iterable[Problem]) -> None:
    for problem in dict.fromkeys(problems):
        print(paint(f"! {flat(str(problem))}", "alert", sys.stderr), file=sys.stderr)
        if problem.hint:
            print(f"  → {flat(problem.hint)}", file=sys.stderr)
    if any(result.entry.rule.pending for result in results if result.outcome == "could not run"):
        print(f"→ {APPROVE}")
    counts = Counter(result.outcome for result in results)
    total = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _STYLES if counts[outcome])
    worst: tuple[Outcome, ...] = ("failed", "could not run", "passed")
    style = next((_STYLES[each] for each in worst if counts[each]), "notice")
    print(paint(total or NO_GATES, style))


def _report_json(
    results: Sequence[GateResult], project: str, problems: Iterable[Problem], *, not_loaded: bool
) -> dict[str, Any]:
    gates = [
        {
            **_entry_json(result.entry),
            "outcome": result.outcome.replace(" ", "_"),
            "reason": result.reason,
            "seconds": round(result.seconds, 4),
        }
        for result in results
    ]
    return {
        "project": project,
        "gates": gates,
        "not_loaded": not_loaded,
        "warnings": [str(problem) for problem in dict.fromkeys(problems)],
    }


# List


def _list(entries: Sequence[GateEntry], project: str, options: argparse.Namespace) -> int:
    if options.json:
        gates = [{**_entry_json(entry), "left_out": entry.left_out} for entry in entries]
        print(json.dumps({"project": project, "gates": gates}, indent=2))
        return EXIT_ALLOWED
    for entry in entries:
        file = f"  ({entry.file})" if entry.file else ""
        why = entry.left_out and f"left out: {entry.left_out}"
        pending = entry.rule.pending and f"pending: {entry.rule.pending}"
        print(flat(f"{shown_key(entry.key)}  {format_text(entry.rule)}{file}"))
        if note := why or pending:
            print(paint(f"  {flat(note)}", "dim"))
    if not entries:
        print(NO_GATES)
    return EXIT_ALLOWED


def _entry_json(entry: GateEntry) -> dict[str, Any]:
    hook = hook_json(entry.rule.hook)
    return {"name": entry.key, "event": entry.rule.event, "file": entry.file, "hook": hook}


_LIST_EXIT_CODES = f"""\
Exit codes:
  0   printed
  {EXIT_USAGE}
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}"""


def declare(parser: Parser) -> None:
    parser.description = """\
Run or list the gates of a project: the hooks that hold an agent's stop and need no agent to decide.
`turngate gates ACTION --help` explains an action."""
    parser.epilog = f"""\
Examples:
  turngate gates run             all gates of this project, in order
  turngate gates run tests       one of them: its id, or its key in `turngate hooks`
  turngate gates run --trust     in CI, where the repository is yours: also gates that are not approved
  turngate gates                 which gates there are, and which need an agent

{_LIST_EXIT_CODES}"""
    _add_list_options(parser, of_action=False)
    actions = add_actions(parser)
    _add_run(actions)
    _add_list(actions)


def _add_run(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "run",
        summary="run the gates, and print one line for each",
        description="""\
Run the gates and the command hooks of Stop and SubagentStop one after another, in the project itself, and print
one line for each, with the reason of a failure. What needs a conversation, a model or an agent is left out
and named. Results of earlier runs are not used, and nothing is recorded. There is no session whose start gates
could compare with: `ifChanged` and `ifTouched` skip nothing, and `touched`, `untouched` and `no-stubs` need --base.""",
        epilog=f"""\
Examples:
  turngate gates run                  the same checks that hold the agent
  turngate gates run lint types       only these
  turngate gates run --base origin/main --trust   in CI, for the changes of a pull request
  turngate gates run --json           one JSON object for programs

Exit codes:
  0   all passed
  1   a gate failed
  13  none failed, but one could not run, is not approved or could not be loaded, or there is none (--lenient: 0)
  {EXIT_USAGE}, also an unknown gate
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}
  {EXIT_SIGNALS}""",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="the gates (default: all)")
    _add_list_options(parser, of_action=True)
    add("--lenient", action="store_true", help="exit with 0 if a gate could not run")
    add(
        "--base",
        metavar="REV",
        help="compare with the last commit that HEAD has in common with REV, e.g. origin/main",
    )
    add("--trust", action="store_true", help="also run gates that are not approved, as they are now")


def _add_list(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "list",
        summary="print the gates, and why some need an agent (the default)",
        description="Print the hooks of Stop and SubagentStop, each with what it runs, and why `gates run` leaves it out.",
        epilog=_LIST_EXIT_CODES,
    )
    _add_list_options(parser, of_action=True)


def _add_list_options(parser: Parser, *, of_action: bool) -> None:
    add_project_options(parser, of_action=of_action)
    default = argparse.SUPPRESS if of_action else False
    parser.add_argument("--json", action="store_true", default=default, help="print one JSON object")
