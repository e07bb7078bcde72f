"""`turngate goal`: set, show, pause and clear the goal of one session, a gate that a person sets without any settings."""

import argparse
import asyncio
import io
import json
import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from typing import Any

from turngate.cli.arguments import EXIT_ERRORS, EXIT_USAGE, PROJECT_HELP, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, first_line, format_time, outcome_label
from turngate.cli.project import nothing_is_configured, project_folder, recorded_project
from turngate.cli.recorded_sessions import find_session
from turngate.cli.review import check_person
from turngate.core.events.hook_input import read_stop
from turngate.core.hooks.kinds import CommandHook, PromptHook
from turngate.core.redaction import make_redactor, secret_values
from turngate.core.settings import Rule
from turngate.core.text import closest_word, printable
from turngate.errors import UsageError
from turngate.gates.library.goal import GOAL, define_proof
from turngate.gates.run_gate import NO_ANSWER, make_context
from turngate.gates.session_goal import NOT_MET, Goal, change_goal, read_goals, set_goal
from turngate.history.journals import journal_folders, read_journal, read_stops
from turngate.models.resolve import JudgeModels
from turngate.project.checkouts import find_top
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers
from turngate.shells.local import LocalShell
from turngate.state.paths import session_folder, state_folder

ACTIONS: dict[str, str | None] = {"status": "", "pause": "paused", "resume": "active", "clear": None}
NEXT = "next"  # as the session of --for
MAX_GOAL_CHARS = 4000
MIN_NEW_ID_CHARS = 16  # of a session that was not seen yet; a shorter word is the beginning of an id
NO_JUDGE = "a goal needs --proof CMD, or a model that judges it, such as `turngate.judge` in ~/.turngate/settings.json"


def declare(parser: Parser) -> None:
    parser.description = """\
Set a goal for one session, in `turngate run` or in a program that runs `turngate hook`: its agent may not stop until a
command proves that the goal is met (--proof), or a model that judges the conversation says so. Its blocks count toward
the limit of continuations. The goal is cleared when it is met, when you run `turngate goal clear`, or when you write
"forget the goal" in the conversation. Only a person can set, pause or clear a goal."""
    parser.epilog = f"""\
Examples:
  turngate goal "all tests pass" --proof "pytest -q"     for the next session here that starts or stops
  turngate goal "the README explains every option"       a model judges it
  turngate goal "CI is green" --proof "gh pr checks" --for 3fa9
  turngate goal                                          what is set, since when, and the last reason
  turngate goal pause                                    let the agent stop, until `turngate goal resume`
  turngate goal clear                                    drop it

Exit codes:
  0   done, even if there is no goal
  {EXIT_USAGE}, or started by a hook or an agent: only a person can decide
  {EXIT_ERRORS}"""
    add = parser.add_argument
    add("words", nargs="*", metavar="GOAL", help=f"the goal, in quotation marks; or {', '.join(ACTIONS)}")
    add("--proof", metavar="CMD", help="the command that proves the goal: it is met when the command passes")
    session = "the beginning of the id of its session (default: `next`, the next one that starts or stops)"
    add("--for", dest="session", metavar="SESSION", help=session)
    add("--project", metavar="DIR", help=PROJECT_HELP)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    given, state = options.project, state_folder()
    project = recorded_project(given) if given else project_folder(None, "host")
    if not given and nothing_is_configured(project, "host"):
        # The repository, so that a session finds its goal from any folder.
        top = find_top(os.path.realpath(project), LOCAL)
        project = top if top != "/" else project
    action = options.words[0] if len(options.words) == 1 and options.words[0] in ACTIONS else None
    if options.words and action != "status":
        check_person(os.environ, "sets and clears goals")
    if options.proof is not None and (action or not options.words):
        raise UsageError('--proof belongs to a new goal: turngate goal "…" --proof CMD')
    goals = _chosen(options.session, project, state)
    if options.words and action is None:
        lines = _set(options, project, state)
    elif action in (None, "status"):
        lines = [line for goal in goals for line in _format(_json(goal, state))]
    elif len(goals) > 1:
        listed = "".join(f"\n  {goal.session or NEXT}  {goal.text}" for goal in goals)
        raise UsageError(f"{len(goals)} sessions have a goal; name one with --for{listed}")
    elif any(not change_goal(state, goal.since, ACTIONS[action]) for goal in goals):
        lines = ["the goal is already gone"]
    else:
        lines = [f"{ACTIONS[action] or 'cleared'}: {goal.text}" for goal in goals]
    if options.json:
        print(json.dumps({"project": project, "goals": goals_json(project, state)}, indent=2))
    else:
        print("\n".join(lines or ["no goal is set"]))
    return 0


def run_in_conversation(text: str, session: str, project: str) -> str:
    """Run `/goal` of a conversation, whose model can judge; return what is printed."""
    declare(parser := Parser(prog="/goal", add_help=False))
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe
        words = text.split()
    own = argparse.Namespace(command="", project=project, is_in_session=True)
    name = os.path.basename(session_folder("", session))
    with redirect_stdout(io.StringIO()) as printed:
        try:
            run(parser.parse_args([*words, "--for", name], own))  # type: ignore[no-untyped-call]
        except UsageError as error:
            print(f"! {error}")
    return printed.getvalue().rstrip()


def _set(options: argparse.Namespace, project: str, state: str) -> list[str]:
    text, proof = " ".join(options.words), options.proof
    for name, given in (("the goal", text), *((("--proof", proof),) if proof is not None else ())):
        if len(given) > MAX_GOAL_CHARS or not printable(given):
            raise UsageError(f"{name} has {len(given):,} characters, expected 1 to {MAX_GOAL_CHARS:,}")
    session = options.session
    if meant := None if proof is not None or " " in text.strip() else closest_word(text, tuple(ACTIONS)):
        raise UsageError(f"a goal of one word needs --proof; did you mean `turngate goal {meant}`?")
    if "is_in_session" not in options:
        if proof is None:
            _check_judge(project)
        session = _choose_session(session)
    goal = set_goal(state, project, session, _shown(text), proof, _definition_of(proof, project, state))
    if goal is None:
        raise UsageError(f"the goal cannot be stored in {state}; set TURNGATE_STATE to another folder")
    whose = f"session {session}" if session else f"the next session in {project} that starts or stops"
    return [f"goal set for {whose}", *_format(_json(goal, state))[1:3]]


def _definition_of(proof: str | None, project: str, state: str) -> dict[str, str] | None:
    """Return what defines a command now; None on another machine: then it is that of the first stop."""
    if proof is None or not os.path.isabs(project):
        return None

    async def define() -> dict[str, str]:
        event, hook = read_stop("Stop", {}, cwd=project), CommandHook(command=proof)
        context = make_context(GOAL, event, LocalShell(), project, options={}, command=hook)
        context.state_folder = state
        return await define_proof(context)

    with suppress(*NO_ANSWER), ThreadPoolExecutor(1) as pool:  # in a conversation, this thread has a loop
        return pool.submit(asyncio.run, define()).result()
    return None


def _shown(text: str) -> str:
    """Return a text on one line, in which the secrets of the environment are hidden."""
    redactor = make_redactor(secret_values(os.environ))
    return printable(redactor.text(text) if redactor else text)


def _check_judge(project: str) -> None:
    """Raise UsageError if no model is configured that would judge a goal in an agent program."""
    folder = project if os.path.isabs(project) else os.path.expanduser("~")
    settings = load_layers(folder, dialect="host", files=LOCAL).merge()
    seen, _ = settings.as_seen_by(Rule("Stop", PromptHook(""), source="user"))
    judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
    try:
        judges(getattr(seen.hook, "model", None))
    except UsageError as error:
        raise UsageError(f"{NO_JUDGE}: {error}") from None


def _choose_session(given: str | None) -> str | None:
    """Return the session of a new goal; None: the next one that starts or stops. Raises UsageError."""
    if given is None or given == NEXT:
        return None
    found = find_session(given, map(os.path.basename, journal_folders(state_folder())))
    if found is None and len(given) < MIN_NEW_ID_CHARS:
        raise UsageError(f"there is no session {given}; `turngate sessions` lists them")
    return found or given


def _chosen(given: str | None, project: str, state: str) -> list[Goal]:
    """Return the goals that were set in a project, or those of the given session, and those whose files cannot be read."""
    goals = read_goals(state)
    if given is None or given == NEXT:
        return [each for each in goals if each.project in (project, "") and None in (given, each.session)]
    return [each for each in goals if (each.session or "").startswith(given)]


# What is shown


def goals_json(project: str, state: str) -> list[dict[str, Any]]:
    return [_json(goal, state) for goal in _chosen(None, project, state)]


def goal_line(facts: dict[str, Any]) -> str:
    whose = f"session {facts['session']}" if facts["session"] else "next session"
    asked = f"blocked {counted(facts['blocked'], 'time')}" if facts["runs"] else "not asked yet"
    return f"{facts['status']} since {format_time(facts['since'])}, {whose}, {asked}"


def _format(facts: dict[str, Any]) -> list[str]:
    text = facts["goal"] or "its file cannot be read; clear it, or set it again"
    proof = f"proof: {facts['proof']}" if facts["proof"] else "a model judges it"
    lines = [goal_line(facts), f"  {text}", f"  {proof}"]
    if facts["last_result"]:
        result = f"{outcome_label(facts['last_result'])} {first_line(facts['last_reason'] or '')}"
        lines.append(f"  last: {result}".rstrip())
    return lines


def _json(goal: Goal, state: str) -> dict[str, Any]:
    journal = read_journal(os.path.join(state, "sessions", goal.session or NEXT), goal.since)
    every = [run for stop in read_stops(journal.records) for run in stop.runs]
    runs = [run for run in every if run.gate == GOAL.name]
    return {
        **{name: getattr(goal, name) for name in ("project", "session", "status", "since")},
        "goal": goal.text,
        "proof": goal.proof and _shown(goal.proof),
        "runs": len(runs),
        "blocked": sum(run.outcome == "block" for run in runs),
        "last_result": runs[-1].outcome if runs else None,
        "last_reason": runs[-1].reason.removeprefix(f"{NOT_MET}{goal.text}\n") or None if runs else None,
    }
