"""`turngate log`: its arguments."""

import argparse

from turngate.cli.arguments import EXIT_INTERNAL, EXIT_OUTPUT, EXIT_SIGNALS, LISTED_PROJECT_HINT, Parser


def declare(parser: Parser) -> None:
    parser.description = """\
Show what the hooks of a session did: every hook run, every verdict, every turn that did not end as
allowed (capped, stalled, halted, interrupt …), and every warning about plugins and subagents. A heading
names the date, the project and the session of the lines below it."""
    parser.epilog = f"""\
Examples:
  turngate log                     this project's session whose hooks ran last
  turngate log 3fa9                another session; the beginning of its id is enough
  turngate log --project ../api    another project
  turngate log --follow            print new lines, also of sessions that begin later, until Ctrl-C
  turngate log -v                  with every line of every reason
  turngate log --json              one JSON object per line, with all that is known of a run

Exit codes:
  0   printed
  64  wrong usage, also if no hook has run yet, and an id that is unknown or ambiguous
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}
  {EXIT_SIGNALS}"""
    parser.ssh_hint = LISTED_PROJECT_HINT
    add = parser.add_argument
    add(
        "id",
        nargs="?",
        metavar="ID",
        help="the beginning of the id of a session, or of a subagent in it (default: the session whose hooks ran last,\n"
        "in this project or, if none ran in it, in any)",
    )
    add("--session", metavar="ID", help="the same as ID")
    add(
        "--project",
        metavar="DIR",
        help="show only what the hooks of this project did: a folder, or ssh://… as `turngate sessions` lists it",
    )
    add("--follow", action="store_true", help="wait for new lines; without ID also those of other sessions")
    add(
        "-v",
        "--verbose",
        action="store_true",
        help="show every line of every reason, not only the first ones",
    )
    add("--json", action="store_true", help="print one JSON object per line")


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.log.show_journal import show_journal  # noqa: PLC0415 # lazy: --help needs none of it

    return show_journal(options)
