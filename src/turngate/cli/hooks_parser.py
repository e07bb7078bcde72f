"""The arguments of `turngate hooks` and its actions."""

import argparse

from turngate.cli.command_parser import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    Parser,
    add_command,
    add_project_options,
    add_ssh_option,
)
from turngate.cli.hooks_test_parser import add_test

EXIT_CODES = ("0   printed", "64  wrong usage, also an unknown hook", EXIT_INTERNAL, EXIT_OUTPUT)
_A_PERSON = "also in a process that a hook or an agent has started: a person decides"


def add_hooks(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "hooks",
        summary="list hooks, see what changed, approve or reject them",
        description="List every hook: its event, kind and command, the file and line where it is configured, its timeout, whether\n"
        "it is approved, its last run and how long it takes. A project's hook that is new, or has changed since it\n"
        "was approved, is pending: it does not run until a person approves it.\n"
        "`turngate hooks ACTION --help` explains an action.",
        examples=(
            "turngate hooks                     all hooks of this project, and yours",
            "turngate hooks diff                what is pending: each change since it was approved",
            "turngate hooks approve tests       let the hook `tests` run as it is now",
            "turngate hooks approve --all       everything that is pending",
            "turngate hooks reject tests        never run it as it is now",
            "turngate hooks test Stop           run the hooks of Stop on a sample, and explain their answers",
            "turngate hooks show tests          one hook: definition, scripts, last runs",
            "turngate hooks --ssh build:src/app    the hooks of a project on another machine",
        ),
        exit_codes=EXIT_CODES,
    )
    _add_list_options(parser, of_action=False)
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser, prog="turngate hooks", title="actions"
    )
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
        description="Print every hook, those that are pending with the reason, and those that were approved once and are gone.\n"
        "The last run, its result and the mean time come from the journals of this project.",
        exit_codes=EXIT_CODES,
    )
    _add_list_options(parser, of_action=True)


def _add_show(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "show",
        summary="print everything about one hook",
        description="Print the definition of a hook, the scripts that its approval covers, its last approval and its last runs.",
        exit_codes=EXIT_CODES,
    )
    parser.add_argument("key", metavar="KEY", help="its name in the list: its id, or its event and position")
    _add_list_options(parser, of_action=True)


def _add_diff(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "diff",
        summary="print what has changed since it was approved",
        description="Print the changes of definitions and scripts since they were approved; a new hook is printed whole. Without\n"
        "KEY, all hooks that are pending. Invisible characters, and those that look like others, are shown as <U+202E>.",
        exit_codes=EXIT_CODES,
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="the hooks (default: all that are pending)")
    add_project_options(parser, of_action=True)
    add_ssh_option(parser, of_action=True)


def _add_approve(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "approve",
        summary="let hooks run as they are now",
        description="Print what has changed, ask, and let the hooks run as they were printed. If a file changes meanwhile, nothing\n"
        "is approved. Approvals are stored in the state folder, and never in the project.",
        exit_codes=(
            "0   approved, or nothing to approve",
            "1   not approved: the answer was no",
            f"64  wrong usage, {_A_PERSON}",
            EXIT_INTERNAL,
            EXIT_OUTPUT,
        ),
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
        description="Withdraw the approval of hooks, or decline those that are pending: they do not run, and are no longer pending,\n"
        "until they change or you approve them.",
        exit_codes=("0   rejected", f"64  wrong usage, {_A_PERSON}", EXIT_INTERNAL, EXIT_OUTPUT),
    )
    parser.add_argument("keys", nargs="+", metavar="KEY", help="the hooks")
    add_project_options(parser, of_action=True)
    add_ssh_option(parser, of_action=True)


def _add_list_options(parser: Parser, *, of_action: bool) -> None:
    add_project_options(parser, of_action=of_action)
    add_ssh_option(parser, of_action=of_action)
    default = argparse.SUPPRESS if of_action else False
    parser.add_argument("--json", action="store_true", default=default, help="print one JSON object")
