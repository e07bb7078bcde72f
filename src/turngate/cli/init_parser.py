"""The arguments of `turngate init`."""

import argparse

from turngate.cli.command_parser import EXIT_INTERNAL, EXIT_USAGE, PROJECT_HELP, Parser, add_command


def add_init(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "init",
        summary="write settings with gates for the checks of this project",
        description="Find the checks that a project has (tests, linter, type checker: from package.json, pyproject.toml, Cargo.toml,\n"
        "go.mod, Makefile and others), and write .turngate/settings.json with a gate for each whose program is there.\n"
        "It prints what it would write, and asks. The gates that you confirm are approved, so they run.\n"
        "A file that exists is never changed, except that .gitignore gets a line for .turngate/settings.local.json.",
        examples=(
            "turngate init                   look, ask, write",
            "turngate init --dry-run         look only",
            "turngate init --yes             in a script: write, and approve nothing",
        ),
        exit_codes=(
            "0   written, or nothing to write: the settings exist",
            "1   not written: no checks were found, or the answer was no; or written, but not approved",
            f"{EXIT_USAGE}, also without a terminal and without --yes",
            EXIT_INTERNAL,
            "74  the settings could not be written",
        ),
    )
    add = parser.add_argument
    add("--project", metavar="DIR", help=PROJECT_HELP)
    add("--yes", action="store_true", help="do not ask; what is written has to be approved afterwards")
    add("--dry-run", action="store_true", help="print what would be written, and write nothing")
