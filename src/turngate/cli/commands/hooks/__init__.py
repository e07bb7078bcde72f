"""`turngate hooks`: its arguments and those of its actions."""

import argparse

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
)
from turngate.core.constants import EVENTS


def add_test(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
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
    add_ssh_option(parser, of_action=True)
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
  turngate hooks show tests          one hook: definition, files, last runs
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
        description="Print the definition of a hook, the files that its approval covers, its last approval and its last runs.",
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
Print the changes of definitions and files since they were approved. Of a new hook, print its definition, the
files that its command names, and a list of the others that an approval covers. Without KEY, all hooks that
are pending. Invisible characters, and those that look like others, are shown as <U+202E>.""",
        epilog=EXIT_CODES,
    )
    parser.add_argument("keys", nargs="*", metavar="KEY", help="the hooks (default: all that are pending)")
    parser.add_argument(
        "--full",
        action="store_true",
        help="of a new hook, also the texts of files that its command does not name",
    )
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


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.hooks.actions import run_action  # noqa: PLC0415 # lazy: --help needs none of it

    return run_action(options)
