"""`turngate doctor`: its arguments."""

import argparse

from turngate.cli.arguments import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_project_options,
)
from turngate.hosts.all_hosts import HOSTS


def declare(parser: Parser) -> None:
    parser.ssh_hint = (
        "it looks for programs and copies projects here: run it there, or `turngate gates run --ssh` here"
    )
    parser.description = """\
Say for each hook in one line that it will run, or why it will not or will not do what was meant, and what
to do. With --prove, run each Stop and SubagentStop gate in a temporary copy of the project: first as it is,
then with a failure that it should find (a failing test, an open checklist item, a dirty tree).
With --host, examine the settings of another agent program too: is `turngate hook` in them, will it run there
(trust, timeout, program), and which other stop hooks cannot block there. The hooks are those that `turngate
hook` asks: of `.turngate` and `.mux`."""
    parser.epilog = f"""\
Examples:
  turngate doctor                every hook of this project, and yours
  turngate doctor --prove        also show that each gate blocks
  turngate doctor --host codex   does Codex ask Turngate here, and which of its stop hooks cannot block?
  turngate doctor --json         one JSON object for programs

Exit codes:
  0   every hook will run
  1   there are problems, but every gate will run and hold
  13  a gate will not run or not hold, did not block with --prove, could not be loaded, or HOST does not ask it
  {EXIT_USAGE}
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}
  {EXIT_SIGNALS}"""
    add_project_options(parser)
    parser.add_argument("--prove", action="store_true", help="try each gate in a copy of the project")
    parser.add_argument(
        "--host", choices=list(HOSTS), metavar="HOST", help=f"examine this agent program: {', '.join(HOSTS)}"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.doctor.examine import examine  # noqa: PLC0415 # lazy: --help needs none of it

    return examine(options)
