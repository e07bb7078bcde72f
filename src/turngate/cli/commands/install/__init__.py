"""`turngate install` and `turngate uninstall`: their arguments."""

import argparse

from turngate.cli.arguments import EXIT_INTERNAL, EXIT_USAGE, Parser
from turngate.hosts.all_hosts import HOSTS

_NAMES = ", ".join(HOSTS)
_EXIT_CODES = f"""1   not written: the answer was no
  {EXIT_USAGE}, settings that cannot hold hooks, or no terminal to ask at and no --yes
  {EXIT_INTERNAL}
  74  the settings could not be written"""


def declare(parser: Parser) -> None:
    parser.ssh_hint = "it writes the settings of agent programs here: run it there"
    _declare_uninstall(parser) if parser.prog.endswith(" uninstall") else _declare_install(parser)


def _declare_install(parser: Parser) -> None:
    parser.description = """\
Write the line `turngate hook` into the settings of another agent program, the host. At every stop, the host
then runs the hooks of .turngate and .mux. Everything else in its settings stays, comments and order included.
It prints the difference, and asks. Without HOST, it lists the hosts and where they have the line."""
    parser.epilog = f"""\
Examples:
  turngate install claude               for you, in every project, subfolder and worktree
  turngate install codex --project      for everyone who works on the project in this folder
  turngate install gemini --dry-run     print the difference only
  turngate install claude --uninstall   remove the line: the file is as it was before
  turngate install                      which hosts have the line, and in which file?

Exit codes:
  0   written, or there is nothing to write
  {_EXIT_CODES}"""
    _add_options(parser, required=False)
    parser.add_argument("--uninstall", action="store_true", help="the same as `turngate uninstall`")


def _declare_uninstall(parser: Parser) -> None:
    parser.description = """\
Remove what `turngate install` has written. A file that was not changed since is restored byte for byte; one
that did not exist is removed. It prints the difference, and asks. A person removes it: a process that a hook or an
agent has started, as its environment shows, gets exit code 64, except with --dry-run."""
    parser.epilog = f"""\
Examples:
  turngate uninstall claude            from your own settings, or those of this project
  turngate uninstall codex --project   from the settings of this project

Exit codes:
  0   removed, or there is nothing to remove
  {_EXIT_CODES}"""
    _add_options(parser, required=True)
    parser.set_defaults(uninstall=True)


def _add_options(parser: Parser, *, required: bool) -> None:
    add = parser.add_argument
    add("host", nargs=None if required else "?", choices=list(HOSTS), metavar="HOST", help=_NAMES)
    level = parser.add_mutually_exclusive_group()
    for name, text in (_LEVELS if required else _LEVELS_AND_LINES).items():
        level.add_argument(f"--{name}", dest="level", action="store_const", const=name, help=text)
    add("--dry-run", action="store_true", help="print the difference, and write nothing")
    add("--yes", action="store_true", help="do not ask")


_LEVELS = {
    "user": "your own settings (default, if the line is there)",
    "project": "the settings of the project that the current folder is in",
}
_LEVELS_AND_LINES = {
    "user": "your own settings, with the path of this program: they hold wherever an agent starts (default)",
    "project": "the settings of the project that the current folder is in, for a team; the line finds Turngate on PATH,\n"
    "and agents that start in a subfolder or a new worktree may not read them",
}


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.install.actions import run_action  # noqa: PLC0415 # lazy: --help needs none of it

    return run_action(options)
