"""The actions of `turngate hooks`: list, show, compare, approve and reject the hooks of a project."""

import argparse
import json
import os
from collections.abc import Iterable, Sequence

from turngate.cli.arguments import find_project_here
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.questions import can_ask, confirm
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_PROBLEMS
from turngate.cli.project import plugin_folders
from turngate.cli.review import (
    approve_shown,
    check_can_reject,
    check_person,
    find_hooks,
    pending_hooks,
    review_hooks,
)
from turngate.cli.review.details import HookChanges, details_json, format_details
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
from turngate.cli.workspace import OpenWorkspace, open_workspace
from turngate.core.verdict.hints import with_location
from turngate.errors import UsageError
from turngate.ports import World, on_machine
from turngate.state.paths import state_folder
from turngate.trust.approvals import Approval
from turngate.trust.review import Review, ReviewedHook

NOTHING_PENDING = "nothing is pending"


def run_action(options: argparse.Namespace) -> int:
    project = find_project_here(options)
    if options.action == "test" and project is None and not options.in_place:
        raise UsageError(
            "--ssh: the project on another machine is not copied; add --in-place to run its hooks in it"
        )
    with open_workspace(options, project) as workspace:
        return _run(options, workspace)


def _run(options: argparse.Namespace, workspace: OpenWorkspace) -> int:
    world = workspace.world
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

            return try_hooks(options, workspace)
        case _:
            return _list(options, world)


def _review(options: argparse.Namespace, world: World) -> Review:
    with show_if_slow(f"reading the settings{on_machine(world)}"):
        return review_hooks(
            world.project,
            dialect=options.dialect,
            plugin_dirs=plugin_folders(options.plugin_dir, world.files),
            extra=options.settings,
            files=world.files,
        )


def _read_entries(review: Review, world: World) -> list[HookEntry]:
    what = f"settings{on_machine(world)}" if world.machine else "journals"
    with show_if_slow(f"reading the {what}"):
        return read_entries(review, world.project, state_folder(), world.files)


def _print_lines(lines: Iterable[Line], world: World) -> None:
    for text, style in lines:
        print(paint(with_location(text, world.location), style))


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
