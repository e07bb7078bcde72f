"""`turngate backtest`: ask the gates about stops of the past."""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from turngate.cli.arguments import EXIT_ERRORS_AND_SIGNALS, Parser, add_json_option
from turngate.cli.commands.stats import TIME_HELP, seconds_of
from turngate.cli.console.conversation_text import counted, format_dollars, format_time
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.questions import can_ask, confirm, has_answer
from turngate.cli.console.signals import run_until_signal
from turngate.cli.console.streams import paint
from turngate.cli.project import project_folder
from turngate.core.dialect import DIALECTS
from turngate.core.hooks.kinds import GateHook, Hook, label
from turngate.core.settings import Rule, Settings
from turngate.core.text import closest_word, one_line, quote_name, strip_controls, truncate
from turngate.core.verdict.hints import GONE
from turngate.errors import UsageError
from turngate.gates.library import GATES
from turngate.history.backtest import JudgedSession, PastDecision, changed_decisions, judge_transcript
from turngate.history.past_stops import OWN, PLACES, PastStop, find_transcripts
from turngate.models.resolve import JudgeModels
from turngate.settings.load import load_extra
from turngate.state.paths import state_folder
from turngate.trust.load import load_reviewed, with_running_gates_held

MAX_SHOWN_CHARS = 160
NOT_CONFIGURED = "python"  # the source of a gate that is only named
PARALLEL_FROM = 20  # transcripts: fewer are read in this process


def declare(parser: Parser) -> None:
    parser.description = """\
Ask gates about the stops of earlier conversations in Claude Code, Codex, Gemini CLI, Qwen Code, Copilot CLI and
`turngate run`, as if the agent were stopping now. For each stop, a gate "would block", "would pass", or "cannot say", for example if it
needs the files as they were then. Each block is shown with the agent's last words and the user's reply. Where the files of a
stop are recorded (`recordTrees`), the project's approved gates run on them, in a temporary copy; otherwise no command is
run. A model is asked only with --judges. A block would have changed everything after it: this shows what a gate
would have answered, not what would have happened next."""
    parser.epilog = f"""\
Examples:
  turngate backtest                       this project's gates, at its stops of the last 30 days
  turngate backtest evidence todos        ready-made gates, before you configure them
  turngate backtest --all --since 1w      the stops of the last week, in all folders
  turngate backtest --against old.json    what the current settings would block and the old ones would not, and the reverse
  turngate backtest evidence --transcripts ~/.claude/projects/*/*.jsonl
  turngate backtest --judges              also prompt hooks and judges: first the number of tokens and the price

Exit codes:
  0   printed
  64  wrong usage
  {EXIT_ERRORS_AND_SIGNALS}"""
    add = parser.add_argument
    add(
        "gates",
        nargs="*",
        metavar="GATE",
        help="ready-made gates, or ids of the project's hooks (default: all of the project's hooks)",
    )
    add("--settings", metavar="S", help="ask the hooks of these settings instead: a file, or JSON")
    add("--against", metavar="S", help="compare with the hooks of other settings: a file, or JSON")
    add(
        "--host",
        action="append",
        choices=[*PLACES, OWN],
        help="only transcripts of this program; may be repeated",
    )
    add("--since", metavar="TIME", default="30d", help=TIME_HELP)
    add("--project", metavar="DIR", help="the project's folder (default: the nearest one with settings)")
    add(
        "--all",
        action="store_true",
        help="transcripts of all folders (those of Gemini CLI do not name theirs)",
    )
    add(
        "--transcripts",
        nargs="+",
        metavar="FILE",
        help="these files instead of those in the programs' own folders",
    )
    add(
        "--judges",
        action="store_true",
        help="also ask models, once you have seen the number of tokens and the price",
    )
    add("--yes", action="store_true", help="with --judges: do not wait for your confirmation")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    since = time.time() - seconds_of(options.since)
    project = project_folder(options.project)
    settings = with_running_gates_held(load_reviewed(project, dialect="turngate"))
    rules = _rules(options.gates, options.settings, settings)
    all_rules = [*rules, *(_rules((), options.against, settings) if options.against else [])]
    given = options.transcripts
    home = os.path.expanduser("~")
    files = (
        [(path, "") for path in given]
        if given
        else find_transcripts(home, state_folder(), options.host or (), since)
    )
    wanted = None if given or options.all else os.path.realpath(project)
    hooks = [rule.hook for rule in all_rules]
    judge = partial(_judge, hooks=hooks, project=wanted, since=0.0 if given else since)
    sessions = [each for each in _in_parallel(judge, files) if each.stops or each.error]
    ended = run_until_signal(_ask_again(sessions, all_rules, len(rules), settings, options))
    if isinstance(ended, signal.Signals):
        print(f"turngate: ended by {ended.name}; no gate is left running", file=sys.stderr)
        return 128 + ended
    sessions, split, is_compared = ended, len(rules), len(all_rules) > len(rules)
    if options.json:
        print(json.dumps([_as_json(each, split, compared=is_compared) for each in sessions], indent=2))
        return 0
    for line in _report(sessions, [label(rule.hook) for rule in rules], split, compared=is_compared):
        print(line)
    return 0


async def _ask_again(
    sessions: list[JudgedSession],
    rules: Sequence[Rule],
    split: int,
    settings: Settings,
    options: argparse.Namespace,
) -> list[JudgedSession]:
    """Ask the gates that need files where these are recorded, and with --judges models, if the user agrees to the price."""
    # lazy: nothing is asked again where the conversation says it all
    from turngate.doctor.past_stops import AskAgain, Estimate, is_judge, is_local  # noqa: PLC0415

    if not any(
        each.outcome == "cannot say" for session in sessions for _, found in session.stops for each in found
    ):
        return sessions
    configured = [None if rule.source == NOT_CONFIGURED else rule for rule in rules]
    again = AskAgain(sessions, configured, split, settings, state_folder())
    with show_if_slow("running gates on recorded files"):
        await again.ask(is_local)
    if not options.judges:
        return again.sessions
    judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
    estimate = Estimate(judges)
    counted_only = AskAgain(again.sessions, rules, split, settings, state_folder())
    await counted_only.ask(is_judge, estimate)
    for model, number in estimate.questions.items():
        cost = estimate.cost(model)
        price = "of unknown price" if cost is None else f"about {format_dollars(cost)}"
        about = f"{counted(number, 'question')} to {model}"
        print(f"{about}, about {estimate.tokens[model]:,} tokens, {price}", file=sys.stderr)
    is_agreed = options.yes or (not options.json and (can_ask() or has_answer()) and confirm("Ask?"))
    if estimate.questions and is_agreed:
        with show_if_slow("asking models"):
            again = AskAgain(again.sessions, rules, split, settings, state_folder())
            await again.ask(is_judge, judges)
    elif estimate.questions:
        print("no model was asked; --yes asks", file=sys.stderr)
    await judges.close()
    return again.sessions


def _rules(names: Sequence[str], extra: str | None, settings: Settings) -> list[Rule]:
    """Return the hooks of these names, or all Stop hooks of the settings; `extra`: those of a file, or of JSON."""
    rules = settings.rules if extra is None else load_extra(extra, DIALECTS["turngate"]).rules
    configured = {label(rule.hook): rule for rule in rules if rule.event == "Stop" and rule.pending != GONE}
    found = [configured.get(name) or _ready_made(name, configured) for name in names] or list(
        configured.values()
    )
    if not found:
        raise UsageError(
            "no Stop hook is configured; name ready-made gates, such as `turngate backtest evidence`"
        )
    return found


def _ready_made(name: str, configured: Iterable[str]) -> Rule:
    if name not in GATES:
        known = (*configured, *sorted(set(GATES) - set(configured)))
        meant = closest_word(name, known)
        hint = f"did you mean {meant}?" if meant else f"the gates are {', '.join(known)}"
        raise UsageError(f"there is no gate {name}; {hint}")
    return Rule("Stop", GateHook(name), source=NOT_CONFIGURED)


def _judge(
    file: tuple[str, str], *, hooks: Sequence[Hook], project: str | None, since: float
) -> JudgedSession:
    return judge_transcript(*file, hooks, project, since)


def _in_parallel(judge: "partial[JudgedSession]", files: Sequence[tuple[str, str]]) -> list[JudgedSession]:
    """Judge the transcripts, several at once if there are many."""
    done = list[JudgedSession]()
    with show_if_slow(lambda: f"{len(done)} of {counted(len(files), 'transcript')}"):
        if len(files) < PARALLEL_FROM:
            done.extend(map(judge, files))
        else:
            context = multiprocessing.get_context("spawn")
            with concurrent.futures.ProcessPoolExecutor(os.cpu_count(), context) as pool:
                done.extend(pool.map(judge, files, chunksize=4))
    return done


def _as_json(session: JudgedSession, split: int, *, compared: bool) -> dict[str, Any]:
    return {**vars(session), "stops": [_stop_json(*each, split, compared=compared) for each in session.stops]}


def _stop_json(
    stop: PastStop, decisions: Sequence[PastDecision], split: int, *, compared: bool
) -> dict[str, Any]:
    now, before = decisions[:split], decisions[split:]
    more = {"against": [each._asdict() for each in before]} if compared else {}
    return {**vars(stop), "decisions": [each._asdict() for each in now], **more}


# The text


def _report(
    sessions: Sequence[JudgedSession], gates: Sequence[str], split: int, *, compared: bool
) -> Iterator[str]:
    stops = [(session, stop, found) for session in sessions for stop, found in session.stops]
    counts = Counter((each.gate, each.outcome) for *_, found in stops for each in found[:split])
    for session in sessions:
        if session.error:
            yield paint(f"! {strip_controls(session.path)}: {session.error}", "notice")
    if not stops:
        yield "no stops were found; --all looks in all folders, --since further back, and --transcripts names files"
        return
    for session, stop, found in stops:
        now, before = found[:split], found[split:]
        new, gone = changed_decisions(now, before) if compared else (now, [])
        for each in new:
            if each.outcome == "would block":
                yield from _block(session, stop, each, "newly blocked" if compared else "would block")
        for each in gone:
            yield from _block(session, stop, each, "no longer blocked")
    why = {
        each.gate: each.reason
        for *_, found in stops
        for each in found[:split]
        if each.outcome == "cannot say"
    }
    of_sessions = sum(bool(session.stops) for session in sessions)
    yield paint(f"{counted(len(stops), 'stop')} in {counted(of_sessions, 'conversation')}", "bold")
    width = max(map(len, gates))
    yield f"{'GATE':<{width}}  WOULD BLOCK  WOULD PASS  CANNOT SAY"
    for gate in dict.fromkeys(gates):
        blocks, passes, unknown = (counts[gate, word] for word in ("would block", "would pass", "cannot say"))
        yield f"{gate:<{width}}  {blocks:>11}  {passes:>10}  {unknown:>10}  {why.get(gate, '')}".rstrip()


def _block(session: JudgedSession, stop: PastStop, decision: PastDecision, heading: str) -> Iterator[str]:
    when = format_time(stop.time, "%Y-%m-%d %H:%M") if stop.time is not None else "?"
    place = strip_controls(session.folder or session.path)
    yield paint(f"{when}  {session.host}  {place}: {heading} by {quote_name(decision.gate)}", "bold")
    for name, text in (("agent", stop.answer), ("reason", decision.reason), ("user, next", stop.reply)):
        if text:
            yield f"  {name + ':':<11} {truncate(one_line(strip_controls(text)), MAX_SHOWN_CHARS)}"
    yield ""
