"""`turngate backtest`: ask the gates about stops of the past."""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from turngate.aio.processes import map_in_processes
from turngate.cli.arguments import EXIT_ERRORS_AND_SIGNALS, PROJECT_HELP, Parser, add_json_option
from turngate.cli.commands.stats import add_since_option, since_time
from turngate.cli.console.conversation_text import counted, format_dollars, format_table, format_time
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.questions import can_ask, confirm, has_answer
from turngate.cli.console.signals import run_to_end
from turngate.cli.console.streams import paint
from turngate.cli.project import project_folder
from turngate.core.conversation.messages import Usage
from turngate.core.dialect import DIALECTS
from turngate.core.hooks.kinds import GateHook, label
from turngate.core.settings import Rule, Settings
from turngate.core.text import closest_word, printable, quote_name, strip_controls, truncate
from turngate.core.verdict.hints import GONE
from turngate.doctor.past_stops import CountedModel, ask_again, judge_transcript
from turngate.errors import UsageError
from turngate.gates.library import GATES
from turngate.history.past_stops import OWN, PLACES, Decisions, PastSession, PastStop, find_transcripts
from turngate.models.known_models import known_model
from turngate.models.resolve import JudgeModels
from turngate.settings.load import load_extra
from turngate.state.paths import state_folder
from turngate.trust.load import load_reviewed, with_running_gates_held

MAX_SHOWN_CHARS = 160
NOT_CONFIGURED = "python"  # the source of a gate that is only named
ANSWER_TOKENS = 200  # of a judge, as a guess
PARALLEL_FROM = 20  # transcripts: fewer are read in this process
Asked = tuple[Sequence[Rule], Sequence[Rule]]  # hooks, and those with which they are compared


def declare(parser: Parser) -> None:
    parser.description = """\
Ask gates about the stops of earlier conversations in Claude Code, Codex, Gemini CLI, Qwen Code, Copilot CLI and
`turngate run`, as if the agent were stopping now. For each stop, a gate "would block", "would pass", or "cannot say".
Each block is shown with the agent's last words and the user's reply. Where the files of a stop are recorded
(`recordTrees`), the project's approved gates run on them, in a temporary copy; otherwise no command is run. A block
would have changed everything after it: this shows what a gate would have answered, not what would have happened."""
    parser.epilog = f"""\
Examples:
  turngate backtest                       this project's gates, at its stops of the last 30 days
  turngate backtest evidence todos        ready-made gates, before you configure them
  turngate backtest --all --since 1w      the stops of the last week, in all folders
  turngate backtest --against old.json    what only the current or only the old settings would block
  turngate backtest evidence --transcripts ~/.claude/projects/*/*.jsonl
  turngate backtest --judges              also ask models, after showing the tokens and the price

Exit codes:
  0   printed
  64  wrong usage
  {EXIT_ERRORS_AND_SIGNALS}"""
    add = parser.add_argument
    add("gates", nargs="*", metavar="GATE", help="ready-made gates, or ids of hooks (default: all hooks)")
    add("--settings", metavar="S", help="ask the hooks of these settings instead: a file, or JSON")
    add("--against", metavar="S", help="compare with the hooks of other settings: a file, or JSON")
    add("--host", action="append", choices=[*PLACES, OWN], help="only this program; may be repeated")
    add_since_option(parser)
    add("--project", metavar="DIR", help=PROJECT_HELP)
    add(
        "--all",
        action="store_true",
        help="all folders; Gemini CLI does not say to which one a transcript belongs",
    )
    add("--transcripts", nargs="+", metavar="FILE", help="these files instead of those of the programs")
    add("--judges", action="store_true", help="also ask models, once you have seen the tokens and the price")
    add("--yes", action="store_true", help="with --judges: do not ask for confirmation")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project)
    settings = with_running_gates_held(load_reviewed(project, dialect="turngate"))
    old = _rules((), options.against, settings) if options.against else []
    asked = (_rules(options.gates, options.settings, settings), old)
    given, since = options.transcripts, since_time(options.since)
    places = os.path.expanduser("~"), state_folder(), options.host or ()
    files = [(path, "") for path in given] if given else find_transcripts(*places, since)
    wanted = None if given or options.all else os.path.realpath(project)
    found = _read(files, asked, wanted, 0.0 if given else since)
    found = run_to_end(_ask_again(found, asked, settings, options), "; no gate is left running")
    if options.json:
        print(json.dumps(found, indent=2, default=vars))
    else:
        print("\n".join(_report(found, asked)))
    return 0


async def _ask_again(
    found: list[PastSession], asked: Asked, settings: Settings, options: argparse.Namespace
) -> list[PastSession]:
    """Ask the gates that need files where these are recorded, and with --judges models, if the user agrees to the price."""
    configured = [[rule for rule in rules if rule.source != NOT_CONFIGURED] for rules in asked]
    with show_if_slow("running gates on recorded files"):
        found = await ask_again(found, configured, settings)
    if not options.judges:
        return found
    judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
    questions, tokens = Counter[str](), Counter[str]()
    await ask_again(found, asked, settings, lambda name: CountedModel(judges(name), questions, tokens))
    for model, number in questions.items():
        provider, _, name = model.partition(":")
        usage = Usage(input_tokens=tokens[model], output_tokens=ANSWER_TOKENS * number)
        cost = known_model(provider, name).cost(usage)
        price = "of unknown price" if cost is None else f"about {format_dollars(cost)}"
        about = f"{counted(number, 'question')} to {model}, about {tokens[model]:,} tokens, {price}"
        print(about, file=sys.stderr)
    can_confirm = not options.json and (can_ask() or has_answer())
    if questions and (options.yes or (can_confirm and confirm("Ask?"))):
        with show_if_slow("asking models"):
            found = await ask_again(found, asked, settings, judges)
    elif questions:
        print("no model was asked; --yes asks", file=sys.stderr)
    await judges.close()
    return found


def _rules(names: Sequence[str], extra: str | None, settings: Settings) -> list[Rule]:
    """Return the hooks of these names, or all Stop hooks of the settings; `extra`: those of a file, or of JSON."""
    rules = settings.rules if extra is None else load_extra(extra, DIALECTS["turngate"]).rules
    configured = {label(rule.hook): rule for rule in rules if rule.event == "Stop" and rule.pending != GONE}
    ready_made = {name: Rule("Stop", GateHook(name), source=NOT_CONFIGURED) for name in sorted(GATES)}
    known = {**ready_made, **configured}
    for name in names:
        if name not in known:
            meant = closest_word(name, tuple(known))
            hint = f"did you mean {meant}?" if meant else f"the gates are {', '.join(known)}"
            raise UsageError(f"there is no gate {name}; {hint}")
    if not names and not configured:
        raise UsageError(
            "no Stop hook is configured; name ready-made gates, such as `turngate backtest evidence`"
        )
    return [known[name] for name in names or configured]


def _read(
    files: Sequence[tuple[str, str]], asked: Asked, project: str | None, since: float
) -> list[PastSession]:
    """Judge the transcripts by what they hold, several at once if there are many."""
    hooks, old = ([rule.hook for rule in rules] for rules in asked)
    given, done = [(*file, hooks, project, since, old) for file in files], list[PastSession]()
    with show_if_slow(lambda: f"{len(done)} of {counted(len(files), 'transcript')}"):
        done.extend(map_in_processes(judge_transcript, given, is_much=len(files) >= PARALLEL_FROM))
    return [each for each in done if each.stops or each.error]


def _report(sessions: Sequence[PastSession], asked: Asked) -> Iterator[str]:
    errors = (f"! {strip_controls(each.path)}: {each.error}" for each in sessions if each.error)
    yield from (paint(error, "notice") for error in errors)
    names = list(dict.fromkeys(label(rule.hook) for rule in asked[0]))
    counts, why = Counter[tuple[str, str]](), dict[str, str]()
    for session in sessions:
        for stop in session.stops:
            counts.update((each.gate, each.outcome) for each in stop.decisions)
            why |= {each.gate: each.reason for each in stop.decisions if each.outcome == "cannot say"}
            heading = "newly blocked" if asked[1] else "would block"
            yield from _blocks(session, stop, stop.decisions, stop.against, heading)
            yield from _blocks(session, stop, stop.against, stop.decisions, "no longer blocked")
    stops = sum(len(session.stops) for session in sessions)
    if not stops:
        yield "no stops were found; --all looks in all folders, --since further back, and --transcripts names files"
        return
    conversations = counted(sum(bool(session.stops) for session in sessions), "conversation")
    yield paint(f"{counted(stops, 'stop')} in {conversations}", "bold")
    outcomes = ("would block", "would pass", "cannot say")
    numbers = [(each.upper(), [str(counts[name, each]) for name in names]) for each in outcomes]
    first, *rows = format_table([("GATE", names), *numbers])
    yield first
    yield from (f"{row}  {why.get(name, '')}".rstrip() for name, row in zip(names, rows, strict=True))


def _blocks(
    session: PastSession, stop: PastStop, decisions: Decisions, others: Decisions, heading: str
) -> Iterator[str]:
    """Yield each block that is not among the other decisions, with the words around it."""
    blocked = {each.gate for each in others if each.outcome == "would block"}
    for each in decisions:
        if each.outcome != "would block" or each.gate in blocked:
            continue
        when = format_time(stop.time, "%Y-%m-%d %H:%M") if stop.time is not None else "?"
        place = strip_controls(session.folder or session.path)
        yield paint(f"{when}  {session.host}  {place}: {heading} by {quote_name(each.gate)}", "bold")
        for name, text in (("agent", stop.answer), ("reason", each.reason), ("user, next", stop.reply)):
            if text:
                yield f"  {name + ':':<11} {truncate(printable(text), MAX_SHOWN_CHARS)}"
        yield ""
