"""`turngate replay`: ask the gates of today about an earlier stop, with the files that the project had then."""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from turngate.cli.arguments import EXIT_ERRORS_AND_SIGNALS, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, format_time, label_style, outcome_label
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.signals import run_to_end
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED, EXIT_PROBLEMS
from turngate.cli.recorded_sessions import find_session
from turngate.core.hooks.kinds import label
from turngate.core.text import printable, strip_controls, truncate
from turngate.core.verdict.hook_run import HookRun, outcome, run_message
from turngate.doctor.past_stops import ReplayCopy, is_local
from turngate.doctor.proof.project_copy import copy_project
from turngate.errors import UsageError
from turngate.gates.recorded_trees import KEPT_DAYS, NoTree
from turngate.history.journals import (
    RecordedStop,
    journal_folders,
    read_journal,
    read_stops,
    stops_with_files,
)
from turngate.state.paths import session_folder, state_folder
from turngate.trust.load import load_reviewed, with_running_gates_held

MAX_REASON_CHARS = 200
ANSWERS = {"allow", "block", "advise", "halt", "would_block"}
NOT_RECORDED = '`"recordTrees": true` in your own settings records the files of each stop'


def declare(parser: Parser) -> None:
    parser.description = f"""\
Check an earlier stop again: in a temporary copy with the project's files as they were at that stop, the gates run as
they are configured and approved now. The report says whether each gives the same answer as before. A gate that asks a
model or acts outside the project runs only if you name it. Files are kept for {KEPT_DAYS} days, if `recordTrees` was
true in your own settings."""
    parser.epilog = f"""\
Examples:
  turngate replay 3fa9            the stops of this session whose files are recorded
  turngate replay 3fa9 2          stop 2 again: is the answer the same?
  turngate replay 3fa9 2 tests    only this gate

Exit codes:
  0   the same answers as before, or the stops are listed
  1   a gate answers differently
  13  a gate that answered then could not run now or is not approved, or the files of the stop are gone
  64  wrong usage, including an unknown session, stop or gate
  {EXIT_ERRORS_AND_SIGNALS}"""
    add = parser.add_argument
    add("session", metavar="SESSION", help="the beginning of the id of a session, as in `turngate log`")
    add("number", nargs="?", type=int, metavar="N", help="the number of the stop (default: list them)")
    add("gates", nargs="*", metavar="GATE", help="only these gates, by name or id")
    add("--project", metavar="DIR", help="copy this checkout (default: where the agent stopped)")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    state = state_folder()
    session = find_session(options.session, map(os.path.basename, journal_folders(state)))
    if session is None:
        raise UsageError(
            f"there is no session {options.session} with a journal; `turngate sessions` lists them"
        )
    stops = stops_with_files(read_stops(read_journal(session_folder(state, session)).records))
    if options.number is None:
        return _list(session, stops, as_json=options.json)
    stop, what = stops.get(options.number), f"stop {options.number} of session {session}"
    if stop is None or stop.tree is None:
        known = f"there are {', '.join(map(str, stops))}" if stops else NOT_RECORDED
        raise UsageError(f"the files of {what} were not recorded; {known}")
    project, then = os.path.abspath(options.project or stop.project), stop.tree["outcomes"]
    try:
        runs, left_out = _replay(stop, project, options.gates)
    except (NoTree, OSError) as error:
        what = f"the files of {what} cannot be checked out"
        print(f"{what}: {error if isinstance(error, NoTree) else error.strerror or error}", file=sys.stderr)
        return EXIT_NOT_ENFORCED
    gates = [_compare(run, then) for run in runs]
    if options.json:
        about = {"session": session, "number": options.number, "stop": stop, "project": project}
        print(json.dumps({**about, "gates": gates, "left_out": left_out}, indent=2, default=vars))
    else:
        print(paint(f"{what}, {format_time(stop.time)}, in a copy of {strip_controls(project)}", "bold"))
        print("\n".join(_report(gates, left_out)))
    differ = {gate["now"] for gate in gates if gate["is_same"] is False}
    if not differ:
        return EXIT_ALLOWED
    return EXIT_PROBLEMS if differ <= ANSWERS else EXIT_NOT_ENFORCED


def _compare(run: HookRun, outcomes: Mapping[str, Any]) -> dict[str, Any]:
    name, now = label(run.rule.hook), outcome(run)
    then = outcomes.get(name)
    answers = {"then": then, "now": now, "is_same": then == now if then else None}
    return {"gate": name, **answers, "reason": run_message(run)}


def _replay(
    stop: RecordedStop, project: str, names: Sequence[str]
) -> tuple[tuple[HookRun, ...], tuple[str, ...]]:
    """Run the gates with these names, or all that act only in the project, in a copy, which is removed in every case."""
    if not os.path.isdir(project):
        raise NoTree(f"there is no folder {project}; --project names another checkout of its repository")
    settings, event = with_running_gates_held(load_reviewed(project, dialect="turngate")), stop.event
    known = {label(rule.hook): rule for rule in settings.rules if rule.event == event}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"there is no gate {unknown[0]} at {event}; there are: {', '.join(known) or 'none'}")
    rules = [known[name] for name in names] or [rule for rule in known.values() if is_local(rule.hook)]
    with show_if_slow("running the gates in a copy of the project"), copy_project(project) as copy:
        work = ReplayCopy(project, copy, settings).ask(stop, rules)
        return run_to_end(work, "; the copy of the project is removed")


def _list(session: str, stops: Mapping[int, RecordedStop], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"session": session, "stops": stops}, indent=2, default=vars))
        return EXIT_ALLOWED
    for number, stop in stops.items():
        then = stop.tree["outcomes"].items() if stop.tree else ()
        gates = [f"{strip_controls(name)} {_label(answer)}" for name, answer in then]
        print(f"{number:>4}  {format_time(stop.time)}  {', '.join(gates)}")
    if not stops:
        print(f"no stop of session {session} has its files recorded; {NOT_RECORDED}")
    return EXIT_ALLOWED


def _label(name: str | None) -> str:
    return outcome_label(name) if name else "not asked"


def _report(gates: Sequence[dict[str, Any]], left_out: Iterable[str]) -> Iterator[str]:
    width = max((len(gate["gate"]) for gate in gates), default=0)
    for gate in gates:
        now, mark = _label(gate["now"]), "  differs" if gate["is_same"] is False else ""
        line = f"{strip_controls(gate['gate']):<{width}}  {_label(gate['then']):<13}"
        yield f"{line}  {paint(now, label_style(now))}{mark}"
        if gate["reason"] and gate["is_same"] is not True:
            yield f"  {truncate(printable(gate['reason']), MAX_REASON_CHARS)}"
    yield from (f"left out, because it leads out of the copy: {strip_controls(link)}" for link in left_out)
    compared = [gate["is_same"] for gate in gates if gate["is_same"] is not None]
    differ = compared.count(False)
    if not compared:
        yield "no gate to compare: none of these was asked at that stop"
    elif not differ:
        yield paint("same answer as then", "good")
    else:
        answer = "answers" if differ == 1 else "answer"
        yield paint(f"{counted(differ, 'gate')} of {len(compared)} {answer} differently than then", "alert")
