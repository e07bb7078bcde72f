"""The actions of `turngate runs`: list, show, steer and kill the subagents of all sessions."""

import argparse
import json
import sys
import time

from turngate.cli.commands.runs.format import format_details, format_table, summary_json
from turngate.cli.commands.runs.summary import (
    NO_SUBAGENTS,
    SubagentSummary,
    existing_registry,
    open_registry,
    summarize,
    unique_prefix_length,
)
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.questions import read_prompt_from_stdin
from turngate.cli.console.streams import has_colour
from turngate.core.conversation.subagent_run import LIVING_STATES, SubagentRun
from turngate.errors import UsageError
from turngate.subagents.registry import Registry, owner_is_gone
from turngate.subagents.steering import check_steer, request_steer

KILL_REASON = "killed by hand"
MAX_SUGGESTED_IDS = 10


def run_action(options: argparse.Namespace) -> int:
    match options.action:
        case "show":
            return _show(options)
        case "steer":
            return _steer(options)
        case "kill":
            return _kill(options)
        case "recover":
            from turngate.cli.commands.runs.recover import recover  # noqa: PLC0415 # lazy: loads the agent

            return recover(options)
        case _:
            return _list(options)


# List and show


def _list(options: argparse.Namespace) -> int:
    with show_if_slow("reading the registry"), open_registry() as registry:
        summaries = summarize(registry) if registry else []
    if options.json:
        print(json.dumps([summary_json(each, with_runs=options.all) for each in summaries], indent=2))
    elif not summaries:
        print(NO_SUBAGENTS)
    else:
        colour = has_colour(sys.stdout)
        print("\n".join(format_table(summaries, time.time(), with_runs=options.all, colour=colour)))
    return 0


def _show(options: argparse.Namespace) -> int:
    with existing_registry() as registry:
        summary = _find(registry, options.id)
    if options.json:
        print(json.dumps(summary_json(summary, with_runs=True), indent=2))
    else:
        print("\n".join(format_details(summary, time.time())))
    return 0


def _find(registry: Registry, prefix: str) -> SubagentSummary:
    """Return the one subagent with an id, or a run's id, that starts with `prefix`."""
    summaries = summarize(registry)
    matches = [summary for summary in summaries if prefix and summary.matches(prefix)]
    if len(matches) == 1:
        return matches[0]
    if not summaries:
        raise UsageError(NO_SUBAGENTS)
    chars = unique_prefix_length(summaries)
    suggested = (matches or summaries)[-MAX_SUGGESTED_IDS:]
    lines = "".join(f"\n  {summary.id[:chars]}  {summary.title}" for summary in suggested)
    problem = f"{prefix} matches {len(matches)} ids" if matches else f"there is no run {prefix!r}"
    raise UsageError(f"{problem}; there {'are' if len(matches or summaries) > 1 else 'is'}{lines}")


# Steer and kill


def _steer(options: argparse.Namespace) -> int:
    prompt = read_prompt_from_stdin() if options.prompt == "-" else options.prompt
    with existing_registry() as registry:
        summary = _find(registry, options.id)
        if summary.last.state == "steering":
            raise UsageError(f"run {summary.id} is already being restarted; wait until it runs again")
        if summary.last.state not in LIVING_STATES:
            raise _already_finished(summary)
        check_steer(summary.last, prompt, by="user", since=_seconds_since_steer(summary.last))
        request_steer(registry, summary.last, prompt)
    print(f"steered  {summary.id[:8]}  {summary.title}")
    if summary.left:
        print("Its process died. It continues with the new prompt once it is recovered:")
        print(f"  {summary.recovery}")
    else:
        print("It drops its current work and continues with the new prompt. Hooks run as before.")
    return 0


def _seconds_since_steer(run: SubagentRun) -> float:
    """Return the age of a run that a steer started, because the steer created it."""
    return time.time() - run.created if run.replaces and not run.by_hook else float("inf")


def _kill(options: argparse.Namespace) -> int:
    if not (options.id or options.every):
        raise UsageError(
            "which run? `turngate runs kill ID`, or --all for every one; `turngate runs` lists them"
        )
    with existing_registry() as registry:
        killed = _kill_all(registry, options.id) if options.every else _kill_one(registry, options.id)
        left = [run for run in killed if owner_is_gone(registry.state, run.owner)]
    for run in sorted(killed, key=lambda run: (run.depth, run.created)):
        print(f"killed  {run.chain[:8]}  {SubagentSummary((run,)).title}")
    if left:
        print(f"The process of {len(left)} of them died; plugins are notified by `turngate runs recover`.")
    return 0


def _kill_one(registry: Registry, prefix: str) -> list[SubagentRun]:
    summary = _find(registry, prefix)
    killed = registry.kill(summary.last.id, KILL_REASON)
    if not killed:
        raise _already_finished(summary)
    return killed


def _already_finished(summary: SubagentSummary) -> UsageError:
    return UsageError(f"run {summary.id} is already finished: {summary.state}")


def _kill_all(registry: Registry, session_prefix: str | None) -> list[SubagentRun]:
    """Kill every subagent, or every one of the session whose id starts with `session_prefix`."""
    living = [run for run in registry.all() if run.state in LIVING_STATES]
    sessions = sorted({run.parent for run in living if run.parent.startswith(session_prefix or "")})
    if not sessions:
        raise UsageError(f"no subagent {f'of session {session_prefix} ' if session_prefix else ''}is running")
    if session_prefix and len(sessions) > 1:
        lines = "".join(f"\n  {session}" for session in sessions)
        raise UsageError(f"{session_prefix} matches {len(sessions)} sessions; there are{lines}")
    return [run for session in sessions for run in registry.kill_all(session, "", KILL_REASON)]
