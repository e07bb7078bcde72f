"""`turngate hooks`: list, show, compare, approve and reject the hooks of a project.

The arguments of `turngate hooks` and its actions.

The arguments of `turngate hooks test`.
"""

import argparse
import json
import os
from collections.abc import Iterable, Sequence

from turngate.cli.arguments import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_actions,
    add_command,
    add_project_options,
    add_ssh_option,
    event_name,
    not_over_ssh,
)
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.questions import can_ask, confirm
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_PROBLEMS
from turngate.cli.project import check_one_project, plugin_folders, project_folder, search_note
from turngate.cli.review import (
    approve_shown,
    check_can_reject,
    check_person,
    find_hooks,
    pending_hooks,
    review_hooks,
)
from turngate.cli.review.details import details_json, format_changes, format_details
from turngate.cli.review.entries import (
    HookEntry,
    Line,
    entries_json,
    format_entries,
    format_time,
    format_vanished,
    read_entries,
    shown_key,
)
from turngate.core.constants import EVENTS
from turngate.core.dialect import ALL_DIALECTS
from turngate.core.verdict.hints import with_location
from turngate.errors import UsageError
from turngate.ports import World, call_with_files, on_machine
from turngate.settings.load import load_extra, report_unreachable
from turngate.shells.local import LocalShell
from turngate.state.paths import state_folder
from turngate.trust.approvals import Approval
from turngate.trust.review import Review, ReviewedHook

NOTHING_PENDING = "nothing is pending"


def run(options: argparse.Namespace) -> int:
    if options.ssh is None:
        project = project_folder(options.project, options.dialect)
        if not getattr(options, "json", False) and (note := search_note(project, options.project)):
            print(note)
        return _run(options, World(LocalShell(), project))
    check_one_project(options.project, options.ssh)
    if options.action == "test":
        raise not_over_ssh("turngate hooks test")
    if options.settings is not None:
        load_extra(
            options.settings, ALL_DIALECTS[options.dialect]
        )  # its mistakes are found without a connection
    # lazy: most projects are on this machine
    from turngate.cli.commands.hooks.ssh_connection import connected  # noqa: PLC0415

    with connected(options.ssh) as world:
        return call_with_files(world.files, report_unreachable()(_run), options, world)


def _run(options: argparse.Namespace, world: World) -> int:
    match options.action:
        case "show":
            return _show(options, world)
        case "diff":
            return _diff(options, world)
        case "approve":
            return _approve(options, world)
        case "reject":
            return _reject(options, world)
        case "test":
            # lazy: the other actions do not need the engine
            from turngate.cli.commands.hooks.try_hook import try_hooks  # noqa: PLC0415

            return try_hooks(options, world.project)
        case _:
            return _list(options, world)


def _review(options: argparse.Namespace, world: World) -> Review:
    plugins = options.plugin_dir if world.machine else plugin_folders(options.plugin_dir)
    with show_if_slow(f"reading the settings{on_machine(world)}"):
        return review_hooks(
            world.project,
            dialect=options.dialect,
            plugin_dirs=plugins,
            extra=options.settings,
        )


def _read_entries(review: Review, world: World) -> list[HookEntry]:
    what = f"settings{on_machine(world)}" if world.machine else "journals"
    with show_if_slow(f"reading the {what}"):
        return read_entries(review, world.project, state_folder())


def _print_lines(lines: Iterable[Line], world: World) -> None:
    for text, style in lines:
        shown = with_location(text, world.location) if world.machine else text
        print(paint(shown, "bold" if style == "user" else style))


# List, show and compare


def _list(options: argparse.Namespace, world: World) -> int:
    review = _review(options, world)
    entries = _read_entries(review, world)
    if options.json:
        print(json.dumps(entries_json(entries, review, world.location), indent=2))
    else:
        _print_lines(format_entries(entries, review), world)
    return 0


def _show(options: argparse.Namespace, world: World) -> int:
    review = _review(options, world)
    [hook] = find_hooks(review, [options.key])
    [entry] = [entry for entry in _read_entries(review, world) if entry.hook is hook]
    if options.json:
        print(json.dumps(details_json(entry, review.settings, world.project), indent=2))
    else:
        _print_lines(format_details(entry, review.settings, world.project), world)
    return 0


def _diff(options: argparse.Namespace, world: World) -> int:
    review = _review(options, world)
    hooks = find_hooks(review, options.keys) if options.keys else pending_hooks(review)
    _print_changes(hooks, world)
    if not hooks:
        print(NOTHING_PENDING)
    return 0


def _print_changes(hooks: Iterable[ReviewedHook], world: World) -> None:
    for hook in hooks:
        if hook.status == "approved" and hook.approval:
            print(
                f"{shown_key(hook.key)}: unchanged since it was approved on {format_time(hook.approval.time)}"
            )
        else:
            _print_lines(format_changes(hook, world.project), world)


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
    if not options.yes and not _confirm(_question(hooks, gone, world.machine)):
        print("nothing was approved")
        return EXIT_PROBLEMS
    approve_shown(hooks, lambda: _review(options, world))
    _forget(review, gone)
    for hook in hooks:
        print(f"approved  {shown_key(hook.key)}")
    return 0


_RUNS_ALREADY = {"approved": "already approved", "exempt": "needs no approval"}


def _question(hooks: Sequence[ReviewedHook], gone: Sequence[Approval], where: str) -> str:
    if not hooks:
        return "forget that what is gone was approved?"
    what = "this hook" if len(hooks) == 1 else f"these {len(hooks)} hooks"
    return f"let {what} run on {where or 'this machine'}{', and forget what is gone' if gone else ''}?"


def _confirm(question: str) -> bool:
    if not can_ask():
        raise UsageError(
            "there is no terminal to ask at; read what is printed above, then add --yes to approve it"
        )
    return confirm(question)


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


def add_test(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "test",
        summary="run hooks on a sample input and explain their answers",
        description="""\
Run the hooks of an event, one after another, and explain each answer field by field: what was read, what it
means, what was ignored and why, and what an agent would have done. The hooks run in a temporary copy of the
project: git works there but cannot push, and dependency folders are links. The input is a sample that
the hook's matcher matches. A hook that is pending does not run without --trust. Nothing is recorded.""",
        epilog=f"""\
Examples:
  turngate hooks test Stop                   all hooks of Stop
  turngate hooks test PreToolUse --hook guard   one of them: its id, or its key in `turngate hooks`
  turngate hooks test PreToolUse --input '{{"tool_name": "Bash", "tool_input": {{"command": "rm -rf x"}}}}'

Exit codes:
  0   every hook gave a decision, whatever it is
  13  a hook failed, timed out, did not run or could not be loaded
  {EXIT_USAGE}, also an unknown hook, and an event without hooks
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}
  {EXIT_SIGNALS}""",
    )
    add = parser.add_argument
    add("event", type=event_name, choices=list(EVENTS), metavar="EVENT", help=", ".join(EVENTS))
    add("--hook", metavar="KEY", help="only this hook: its id, or its key in `turngate hooks`")
    add_project_options(parser, of_action=True)
    add(
        "--input",
        metavar="FILE|JSON",
        help="fields of the event: a file with JSON, - for stdin, or a JSON object in braces; others get samples",
    )
    add("--in-place", action="store_true", help="run the hooks in the project itself, not in a copy")
    add("--trust", action="store_true", help="also run hooks that are pending, as they are now")
    add("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")


EXIT_CODES = f"""\
Exit codes:
  0   printed
  64  wrong usage, also an unknown hook
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}"""
_A_PERSON = "also in a process that a hook or an agent has started: a person decides"


def declare(parser: Parser) -> None:
    parser.description = """\
List every hook: its event, kind and command, the file and line where it is configured, its timeout, whether
it is approved, its last run and how long it takes. A project's hook that is new, or has changed since it
was approved, is pending: it does not run until a person approves it.
`turngate hooks ACTION --help` explains an action."""
    parser.epilog = f"""\
Examples:
  turngate hooks                     all hooks of this project, and yours
  turngate hooks diff                what is pending: each change since it was approved
  turngate hooks approve tests       let the hook `tests` run as it is now
  turngate hooks approve --all       everything that is pending
  turngate hooks reject tests        never run it as it is now
  turngate hooks test Stop           run the hooks of Stop on a sample, and explain their answers
  turngate hooks show tests          one hook: definition, scripts, last runs
  turngate hooks --ssh build:src/app    the hooks of a project on another machine

{EXIT_CODES}"""
    _add_list_options(parser, of_action=False)
    actions = add_actions(parser)
    _add_list(actions)
    _add_show(actions)
    _add_diff(actions)
    _add_approve(actions)
    _add_reject(actions)
    add_test(actions)


def _add_list(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "list",
        summary="print all hooks (the default)",
        description="""\
Print every hook, those that are pending with the reason, and those that were approved once and are gone.
The last run, its result and the mean time come from the journals of this project.""",
        epilog=EXIT_CODES,
    )
    _add_list_options(parser, of_action=True)


def _add_show(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "show",
        summary="print everything about one hook",
        description="Print the definition of a hook, the scripts that its approval covers, its last approval and its last runs.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("key", metavar="KEY", help="its name in the list: its id, or its event and position")
    _add_list_options(parser, of_action=True)


def _add_diff(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "diff",
        summary="print what has changed since it was approved",
        description="""\
Print the changes of definitions and scripts since they were approved; a new hook is printed whole. Without
KEY, all hooks that are pending. Invisible characters, and those that look like others, are shown as <U+202E>.""",
        epilog=EXIT_CODES,
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="the hooks (default: all that are pending)")
    add_project_options(parser, of_action=True)
    add_ssh_option(parser, of_action=True)


def _add_approve(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "approve",
        summary="let hooks run as they are now",
        description="""\
Print what has changed, ask, and let the hooks run as they were printed. If a file changes meanwhile, nothing
is approved. Approvals are stored in the state folder, and never in the project.""",
        epilog=f"""\
Exit codes:
  0   approved, or nothing to approve
  1   not approved: the answer was no
  64  wrong usage, {_A_PERSON}
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}""",
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="the hooks")
    parser.add_argument("--all", action="store_true", dest="every", help="all hooks that are pending")
    parser.add_argument("--yes", action="store_true", help="do not ask; necessary without a terminal")
    add_project_options(parser, of_action=True)
    add_ssh_option(parser, of_action=True)


def _add_reject(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "reject",
        summary="do not run hooks as they are now",
        description="""\
Withdraw the approval of hooks, or decline those that are pending: they do not run, and are no longer pending,
until they change or you approve them.""",
        epilog=f"""\
Exit codes:
  0   rejected
  64  wrong usage, {_A_PERSON}
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}""",
    )
    parser.add_argument("keys", nargs="+", metavar="KEY", help="the hooks")
    add_project_options(parser, of_action=True)
    add_ssh_option(parser, of_action=True)


def _add_list_options(parser: Parser, *, of_action: bool) -> None:
    add_project_options(parser, of_action=of_action)
    add_ssh_option(parser, of_action=of_action)
    default = argparse.SUPPRESS if of_action else False
    parser.add_argument("--json", action="store_true", default=default, help="print one JSON object")
