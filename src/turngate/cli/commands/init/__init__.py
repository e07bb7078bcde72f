"""`turngate init`: its arguments."""

import argparse

from turngate.cli.arguments import EXIT_INTERNAL, EXIT_USAGE, PROJECT_HELP, Parser


def declare(parser: Parser) -> None:
    parser.ssh_hint = "it looks for programs and writes files here: run it there"
    parser.description = """\
Find this project's checks (tests, linter, type checker, format check) in its CI workflows, package.json,
pyproject.toml, Makefile and other files. Run each check once, and write .turngate/settings.json with a gate
for each one that can run and changes no files. You see what will be written, and confirm it with one key,
which also approves the gates. Existing settings stay as they are, except that --with adds the gates that it
names. .gitignore gets a line for .turngate/settings.local.json."""
    parser.epilog = f"""\
Examples:
  turngate init                   look, try, ask, write
  turngate init --dry-run         look only
  turngate init --yes             in a script: try and write, approve nothing
  turngate init --with format,no-stubs,debug
                                  add gates by name (`turngate gate` lists them), even to existing settings;
                                  for a gate that needs options, such as `ran`, print what to write

Exit codes:
  0   written, or nothing to write: the settings exist
  1   not written: no checks were found, or the answer was no; or written, but not approved
  {EXIT_USAGE}, settings that are not JSON, or no answer and no --yes
  {EXIT_INTERNAL}
  74  the settings could not be written"""
    add = parser.add_argument
    add("--project", metavar="DIR", help=PROJECT_HELP)
    add(
        "--with",
        dest="with_gates",
        metavar="NAME[,NAME…]",
        action="append",
        default=[],
        help="also add these gates",
    )
    add("--yes", action="store_true", help="do not ask; what is written has to be approved afterward")
    add("--no-try", action="store_true", help="do not run the commands")
    add("--dry-run", action="store_true", help="print what would be written; run and write nothing")


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.init.command import init  # noqa: PLC0415 # lazy: --help needs none of it

    return init(options)
