"""`turngate runs`: list, show, steer, kill and recover the subagents of all sessions."""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from turngate.aio.threads import run_in_thread
from turngate.cli.arguments import (
    EXIT_ALL_SIGNALS,
    EXIT_ERRORS_AND_SIGNALS,
    EXIT_INTERNAL,
    EXIT_USAGE,
    PROJECT_HELP,
    Parser,
    add_actions,
    add_command,
    add_json_option,
    default_of,
)
from turngate.cli.commands.runs.summary import (
    NO_SUBAGENTS,
    SubagentSummary,
    all_subagents,
    existing_registry,
    format_details,
    format_table,
    summarize,
    summary_json,
    unique_prefix_length,
)
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.questions import read_prompt_from_stdin
from turngate.cli.console.signals import run_until_signal
from turngate.cli.console.streams import own_sequence
from turngate.core.conversation.subagent_run import LIVING_STATES, SubagentRun
from turngate.errors import UsageError
from turngate.subagents.registry import Registry
from turngate.subagents.steering import steer

_ID: Mapping[str, Any] = {"metavar": "ID", "help": "the subagent: the beginning of its id"}
EXIT_CODES = f"""\
Exit codes:
  0   done
  {EXIT_USAGE}, including an unknown or finished run
  {EXIT_ERRORS_AND_SIGNALS}"""


def declare(parser: Parser) -> None:
    parser.description = """\
Show running and finished subagents, give them new prompts, end them, and recover them after a crash.
`turngate runs ACTION --help` explains an action."""
    parser.epilog = f"""\
Examples:
  turngate runs                           a table: state, duration, redirects and their reason
  turngate runs show 3fa9                 one subagent; the beginning of its id is enough
  turngate runs steer 3fa9 'only src/'    interrupt it and continue with this prompt
  turngate runs kill 3fa9                 end it and every subagent below it
  turngate runs recover                   continue the subagents of processes that died

{EXIT_CODES}"""
    _add_list_options(parser)
    actions = add_actions(parser)
    table = add_command(
        actions,
        "list",
        summary="print a table of all subagents (the default)",
        description="""\
Print one line per subagent, the newest last; * marks those that are not finished. REDIRECTS is the number of
redirects by hooks, and their limit. A finished subagent is removed from the list after five minutes, or once
its parent has received its result, whichever is later.""",
        examples={"turngate runs list": "all subagents", "turngate runs list --json": "for programs"},
        epilog=EXIT_CODES,
    )
    _add_list_options(table)
    one_subagent = add_command(
        actions,
        "show",
        summary="print everything about one subagent",
        description="""\
Print the task; each run, with its prompt, outcome, reason, seconds and tokens; the result; and the path
of the transcript.""",
        examples={"turngate runs show 3fa9": "the beginning of its id is enough"},
        epilog=EXIT_CODES,
    )
    one_subagent.add_argument("id", **_ID)
    add_json_option(one_subagent)
    action = add_command(
        actions,
        "steer",
        summary="give a subagent a new prompt",
        description="""\
Interrupt a subagent; it continues its conversation with your prompt. A steer does not count against
the limit of redirects. A prompt has at most 4000 characters; steers are at least two seconds apart.""",
        examples={"turngate runs steer 3fa9 'only src/'": "continue with this prompt"},
        epilog=EXIT_CODES,
    )
    action.add_argument("id", **_ID)
    action.add_argument("prompt", metavar="PROMPT", help="the new prompt; - reads stdin")
    kill = add_command(
        actions,
        "kill",
        summary="end a subagent and every subagent below it",
        description="End a subagent and every subagent below it. No hook runs; the parent learns that it was killed.",
        examples={"turngate runs kill 3fa9": "one subagent", "turngate runs kill --all": "every running one"},
        epilog=EXIT_CODES,
    )
    kill.add_argument("id", nargs="?", **_ID)
    kill.add_argument(
        "--all",
        action="store_true",
        dest="every",
        help="kill every running subagent; with ID: those of the session whose id begins with ID",
    )
    action = add_command(
        actions,
        "recover",
        summary="continue the subagents of processes that died",
        description="""\
Take over the project's subagents whose process died, and run each from where it left off until it finishes.
Their results wait for the session that started them; `turngate run --resume` delivers them. A subagent
continues only if its gates will be asked; if they have changed in the settings, it is left alone. Ctrl-C
stops the work; what is not finished can be recovered later.""",
        examples={"turngate runs recover": "those of this project"},
        epilog=f"""\
Exit codes:
  0   every subagent has ended, with any outcome
  20  a subagent could not be finished
  {EXIT_USAGE}
  {EXIT_INTERNAL}
  {EXIT_ALL_SIGNALS}""",
    )
    add = action.add_argument
    add("--project", metavar="DIR", help=PROJECT_HELP)
    add("--model", metavar="M", help="PROVIDER:NAME or scripted:FILE (default: the model each subagent had)")
    add("--settings", metavar="S", help="extra settings, as for `turngate run`: a file or inline JSON")
    add("--trust", action="store_true", help="also run hooks that are not approved, as they are now")
    add(
        "--current-gates",
        action="store_true",
        help="also continue subagents whose gates have changed, under the current gates",
    )


def _add_list_options(parser: Parser) -> None:
    add_json_option(parser, "one JSON list")
    parser.add_argument(
        "--all",
        action="store_true",
        default=default_of(parser, value=False),
        help="also list the runs that a redirect replaced",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        default=default_of(parser, value=False),
        help="print the table again whenever it changes, until Ctrl-C",
    )


WATCH_INTERVAL_S = 0.5
KILL_REASON = "killed by hand"
MAX_SUGGESTED_IDS = 10


def run(options: argparse.Namespace) -> int:
    if options.action == "recover":
        from turngate.cli.commands.runs.recover import recover  # noqa: PLC0415 # lazy: loads the agent

        return recover(options)
    return {"show": _show, "steer": _steer, "kill": _kill}.get(options.action, _list)(options)


# List and show


def _list(options: argparse.Namespace) -> int:
    if options.watch and options.json:
        raise UsageError("--watch prints a table; leave --json out")
    if options.watch:
        run_until_signal(_watch(options))
        return 0
    with show_if_slow("reading the registry"):
        summaries = all_subagents()
    _print_list(options, summaries)
    return 0


async def _watch(options: argparse.Namespace) -> None:
    seen: object = None
    while True:
        summaries = await run_in_thread(all_subagents)
        shown = [(each.id, each.state, each.where, each.last.steer_count) for each in summaries]
        if shown != seen:
            seen = shown
            print(own_sequence("\033[H\033[J", sys.stdout) if sys.stdout.isatty() else "", end="")
            _print_list(options, summaries)
            sys.stdout.flush()
        await asyncio.sleep(WATCH_INTERVAL_S)


def _print_list(options: argparse.Namespace, summaries: list[SubagentSummary]) -> None:
    if options.json:
        print(json.dumps([summary_json(each, with_runs=options.all) for each in summaries], indent=2))
    elif not summaries:
        print(NO_SUBAGENTS)
    else:
        print("\n".join(format_table(summaries, time.time(), with_runs=options.all)))


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
        if summary.last.state not in LIVING_STATES:
            raise _already_finished(summary)
        steer(registry, summary.last, prompt)
    print(f"steered  {summary.id[:8]}  {summary.title}")
    if summary.left:
        print("Its process died. It continues with the new prompt once it is recovered:")
        print(f"  {summary.recovery}")
    else:
        print("It drops its current work and continues with the new prompt. Hooks run as before.")
    return 0


def _kill(options: argparse.Namespace) -> int:
    if not (options.id or options.every):
        raise UsageError(
            "which run? `turngate runs kill ID`, or --all for every one; `turngate runs` lists them"
        )
    with existing_registry() as registry:
        if options.every:
            killed = _kill_all(registry, options.id)
        else:
            summary = _find(registry, options.id)
            if not (killed := registry.kill(summary.last.id, KILL_REASON)):
                raise _already_finished(summary)
        living = registry.living({run.owner for run in killed})
        left = [run for run in killed if run.owner not in living and not run.is_for_workers]
    for run in sorted(killed, key=lambda run: (run.depth, run.created)):
        print(f"killed  {run.chain[:8]}  {SubagentSummary((run,)).title}")
    if left:
        print(f"The process of {len(left)} of them died; plugins are notified by `turngate runs recover`.")
    return 0


def _already_finished(summary: SubagentSummary) -> UsageError:
    return UsageError(f"run {summary.id} is already finished: {summary.state}")


def _kill_all(registry: Registry, session_prefix: str | None) -> list[SubagentRun]:
    """Kill every subagent, or every one of the session whose id starts with `session_prefix`."""
    living = [run for run in registry.read("all") if run.state in LIVING_STATES]
    sessions = sorted({run.parent for run in living if run.parent.startswith(session_prefix or "")})
    if not sessions:
        raise UsageError(f"no subagent {f'of session {session_prefix} ' if session_prefix else ''}is running")
    if session_prefix and len(sessions) > 1:
        lines = "".join(f"\n  {session}" for session in sessions)
        raise UsageError(f"{session_prefix} matches {len(sessions)} sessions; there are{lines}")
    return [run for session in sessions for run in registry.kill((session, ""), KILL_REASON)]
