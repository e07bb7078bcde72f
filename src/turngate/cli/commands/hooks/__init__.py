"""`turngate hooks`: list, show, compare, approve and reject the hooks of a project."""

import argparse
import json
import os
from collections.abc import Iterable, Sequence

from turngate.cli.arguments import (
    EXIT_ERRORS,
    EXIT_ERRORS_AND_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_actions,
    add_command,
    add_event_options,
    add_json_option,
    add_place_options,
    find_project_here,
)
from turngate.cli.commands.goal import goal_line, goals_json
from turngate.cli.console.conversation_text import format_time
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.questions import can_ask, confirm
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_PROBLEMS
from turngate.cli.project import with_place
from turngate.cli.review import (
    approve_shown,
    check_can_reject,
    check_person,
    find_hooks,
    pending_hooks,
)
from turngate.cli.review.details import HookChanges, details_json, format_details
from turngate.cli.review.entries import (
    HookEntry,
    Line,
    entries_json,
    format_entries,
    format_vanished,
    read_entries,
    shown_key,
)
from turngate.cli.workspace import open_workspace, settings_options
from turngate.errors import UsageError
from turngate.ports import World, on_machine
from turngate.state.paths import state_folder
from turngate.trust.approvals import Approval
from turngate.trust.review import Review, ReviewedHook, review_project

EXIT_CODES = f"""\
Exit codes:
  0   printed
  {EXIT_USAGE}, including an unknown hook
  {EXIT_ERRORS}"""
_A_PERSON = "or started by a hook or an agent: only a person can decide"


def declare(parser: Parser) -> None:
    parser.description = """\
List every hook: its event, kind and command, the file and line where it is configured, its timeout, whether
it is approved, its last run and how long it takes. A project's hook that is new, or has changed since it
was approved, is pending: it does not run until a person approves it.
`turngate hooks ACTION --help` explains an action."""
    parser.epilog = f"""\
Examples:
  turngate hooks                       all hooks of this project, and yours
  turngate hooks diff                  what is pending: each change since it was approved
  turngate hooks approve tests         let the hook `tests` run as it is now
  turngate hooks approve --all         everything that is pending
  turngate hooks reject tests          never run it as it is now
  turngate hooks test Stop             run the hooks of Stop on a sample, and explain their answers
  turngate hooks show tests            one hook: definition, files, last runs
  turngate hooks --ssh build:src/app   the hooks of a project on another machine

{EXIT_CODES}"""
    add_place_options(parser)
    add_json_option(parser)
    actions = add_actions(parser)
    all_hooks = add_command(
        actions,
        "list",
        summary="print all hooks (the default)",
        description="""\
Print every hook, with the reason if it is pending, and the hooks that were approved earlier but are no
longer configured. The last run, its result and the mean time come from this project's journals.""",
        epilog=EXIT_CODES,
        examples={"turngate hooks list": "all hooks", "turngate hooks list --json": "for programs"},
    )
    one_hook = add_command(
        actions,
        "show",
        summary="print everything about one hook",
        description="Print the definition of a hook, the files that its approval covers, its last approval and its last runs.",
        epilog=EXIT_CODES,
        examples={
            "turngate hooks show tests": "by its id",
            "turngate hooks show Stop:2": "by its event and position",
        },
    )
    one_hook.add_argument(
        "key", metavar="KEY", help="the hook's name in the list: its id, or its event and position"
    )
    for action in (all_hooks, one_hook):
        add_place_options(action)
        add_json_option(action)
    action = add_command(
        actions,
        "diff",
        summary="print what has changed since hooks were approved",
        description="""\
Print what has changed in definitions and files since they were approved. For a new hook, print its definition,
the files that its command names, and a list of the other files that an approval covers. Without KEY, print all
pending hooks. Invisible and misleading characters are shown as codes, such as <U+202E>.""",
        epilog=EXIT_CODES,
        examples={
            "turngate hooks diff": "everything that is pending",
            "turngate hooks diff tests": "one hook",
        },
    )
    action.add_argument("keys", nargs="*", metavar="KEY", help="the hooks (default: all that are pending)")
    action.add_argument(
        "--full",
        action="store_true",
        help="for a new hook, also print the files that its command does not name",
    )
    add_place_options(action)
    approve = add_command(
        actions,
        "approve",
        summary="let hooks run as they are now",
        description="""\
Print what has changed, ask, and let the hooks run exactly as printed. If a file changes before you answer,
nothing is approved. Approvals are stored in the state folder, never in the project.""",
        examples={
            "turngate hooks approve tests": "one hook",
            "turngate hooks approve --all": "everything that is pending",
        },
        epilog=f"""\
Exit codes:
  0   approved, or nothing to approve
  1   not approved: the answer was no
  {EXIT_USAGE}, {_A_PERSON}
  {EXIT_ERRORS}""",
    )
    approve.add_argument("keys", nargs="*", metavar="KEY", help="the hooks")
    approve.add_argument("--all", action="store_true", dest="every", help="all hooks that are pending")
    approve.add_argument("--yes", action="store_true", help="do not ask; required without a terminal")
    add_place_options(approve)
    reject = add_command(
        actions,
        "reject",
        summary="do not run hooks as they are now",
        description="""\
Withdraw the approval of hooks, or decline pending ones. Until they change or you approve them, they do
not run, and are not listed as pending.""",
        examples={"turngate hooks reject tests": "one hook", "turngate hooks reject tests lint": "several"},
        epilog=f"""\
Exit codes:
  0   rejected
  {EXIT_USAGE}, {_A_PERSON}
  {EXIT_ERRORS}""",
    )
    reject.add_argument("keys", nargs="+", metavar="KEY", help="the hooks")
    add_place_options(reject)
    action = add_command(
        actions,
        "test",
        summary="run hooks on a sample input and explain their answers",
        description="""\
Run the hooks of an event, one after another, and explain each answer field by field: what was read, what it
means, what was ignored and why, and what an agent would have done. The hooks run in a temporary copy of the
project: git works there but cannot push, and dependency folders are links. The input is a sample that
the hook's matcher matches. A hook that is pending does not run without --trust. Nothing is recorded.
A project on another machine is not copied: with --ssh, add --in-place.""",
        epilog=f"""\
Examples:
  turngate hooks test Stop                      all hooks of Stop
  turngate hooks test PreToolUse --hook guard   one of them: its id, or its key in `turngate hooks`
  turngate hooks test PreToolUse --input '{{"tool_name": "Bash", "tool_input": {{"command": "rm -rf x"}}}}'

Exit codes:
  0   every hook gave a decision, whatever it is
  13  a hook failed, timed out, did not run or could not be loaded
  {EXIT_USAGE}, including an unknown hook or an event without hooks
  {EXIT_ERRORS_AND_SIGNALS}""",
    )
    add = action.add_argument
    add_event_options(action, others="other fields get sample values")
    add("--hook", metavar="KEY", help="only this hook: its id, or its key in `turngate hooks`")
    add_place_options(action)
    add("--in-place", action="store_true", help="run the hooks in the project itself, not in a copy")
    add("--trust", action="store_true", help="also run hooks that are pending, as they are now")
    add_json_option(action)


NOTHING_PENDING = "nothing is pending"


def run(options: argparse.Namespace) -> int:
    project = find_project_here(options)
    if options.action == "test" and project is None and not options.in_place:
        raise UsageError(
            "--ssh: the project on another machine is not copied; add --in-place to run its hooks in it"
        )
    with open_workspace(options, project) as workspace:
        if options.action == "test":
            # lazy: the other actions do not need the engine
            from turngate.cli.commands.hooks.trial import try_hooks  # noqa: PLC0415

            return try_hooks(options, workspace)
        actions = {"show": _show, "diff": _diff, "approve": _approve, "reject": _reject}
        return actions.get(options.action, _list)(options, workspace.world)


def _review(options: argparse.Namespace, world: World) -> Review:
    with show_if_slow(f"reading the settings{on_machine(world)}"):
        return review_project(world.project, **settings_options(options, world))


def _read_entries(review: Review, world: World) -> list[HookEntry]:
    what = f"settings{on_machine(world)}" if world.machine else "journals"
    with show_if_slow(f"reading the {what}"):
        return read_entries(review, world.project, state_folder(), world.files)


def _print_lines(lines: Iterable[Line], world: World) -> None:
    for text, style in lines:
        # The texts of files stay as they are.
        is_ours = style in ("notice", "alert", "user")
        print(paint(with_place(text, world.location) if is_ours else text, style))


# List, show and compare


def _list(options: argparse.Namespace, world: World) -> int:
    review = _review(options, world)
    entries = _read_entries(review, world)
    if options.json:
        goals = goals_json(world.location, state_folder())
        print(json.dumps({**entries_json(entries, review, world.location), "goals": goals}, indent=2))
    else:
        _print_lines(format_entries(entries, review), world)
        for goal in goals_json(world.location, state_folder()):
            print(f"goal of a session: {goal['goal']}: {goal_line(goal)}")
    return 0


def _show(options: argparse.Namespace, world: World) -> int:
    review = _review(options, world)
    [hook] = find_hooks(review, [options.key])
    [entry] = [entry for entry in _read_entries(review, world) if entry.hook is hook]
    if options.json:
        print(json.dumps(details_json(entry, review.settings), indent=2))
    else:
        _print_lines(format_details(entry, review.settings), world)
    return 0


def _diff(options: argparse.Namespace, world: World) -> int:
    review = _review(options, world)
    hooks = find_hooks(review, options.keys) if options.keys else pending_hooks(review)
    _print_changes(hooks, world, full=options.full)
    if not hooks:
        print(NOTHING_PENDING)
    return 0


def _print_changes(hooks: Iterable[ReviewedHook], world: World, *, full: bool = False) -> None:
    changes = HookChanges(world.project, world.files, full=full)
    for hook in hooks:
        if hook.status == "approved" and hook.approval:
            print(
                f"{shown_key(hook.key)}: unchanged since it was approved on {format_time(hook.approval.time)}"
            )
        else:
            _print_lines(changes.format(hook), world)


# Approve and reject


def _approve(options: argparse.Namespace, world: World) -> int:
    check_person(os.environ)
    if bool(options.keys) == options.every:
        raise UsageError(
            "which hooks? give their KEYs, or --all for all that are pending; `turngate hooks` lists them"
        )
    review = _review(options, world)
    named = find_hooks(review, options.keys) if options.keys else pending_hooks(review)
    hooks = [hook for hook in named if hook.status not in _RUNS_ALREADY]
    for hook in named:
        if hook.status in _RUNS_ALREADY:
            print(f"{shown_key(hook.key)}: {_RUNS_ALREADY[hook.status]}")
    gone = review.vanished if options.every else ()
    if not hooks and not gone:
        if options.every:
            print(NOTHING_PENDING)
        return 0
    _print_changes(hooks, world)
    _print_lines((next(format_vanished(approval)) for approval in gone), world)
    if not options.yes and not can_ask():
        raise UsageError(
            "there is no terminal to ask at; read what is printed above, then add --yes to approve it"
        )
    what = "this hook" if len(hooks) == 1 else f"these {len(hooks)} hooks"
    question = f"let {what} run on {world.machine or 'this machine'}{', and forget the hooks that are gone' if gone else ''}?"
    question = question if hooks else "forget the approvals of hooks that are gone?"
    if not options.yes and not confirm(question):
        print("nothing was approved")
        return EXIT_PROBLEMS
    approve_shown(hooks, lambda: _review(options, world))
    _forget(review, gone)
    for hook in hooks:
        print(f"approved  {shown_key(hook.key)}")
    return 0


_RUNS_ALREADY = {"approved": "already approved", "exempt": "needs no approval"}


def _reject(options: argparse.Namespace, world: World) -> int:
    check_person(os.environ)
    review = _review(options, world)
    keys = {hook.key for hook in review.hooks}
    gone = [approval for approval in review.vanished if approval.key in {*options.keys} - keys]
    hooks = find_hooks(review, [key for key in options.keys if key not in {each.key for each in gone}])
    check_can_reject(hooks)
    review.reject(hooks)
    for hook in hooks:
        print(f"rejected  {shown_key(hook.key)}")
    _forget(review, gone)
    return 0


def _forget(review: Review, gone: Sequence[Approval]) -> None:
    review.forget(gone)
    for key in dict.fromkeys(approval.key for approval in gone):
        print(f"forgotten  {shown_key(key)}")
