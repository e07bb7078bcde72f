"""`turngate install` and `turngate uninstall`: the line `turngate hook` in the settings of another agent program.

The arguments of `turngate install` and `turngate uninstall`.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterable

from turngate.cli.arguments import EXIT_INTERNAL, EXIT_USAGE, Parser
from turngate.cli.commands.install.advice import next_steps, warnings_before
from turngate.cli.commands.install.diff import format_file_diff
from turngate.cli.commands.install.places import (
    Place,
    all_places,
    enclosing_project,
    find_place,
    has_line,
)
from turngate.cli.console.questions import can_ask, confirm
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_IO_ERROR, EXIT_PROBLEMS
from turngate.cli.review import check_person
from turngate.doctor.hosts.files import why_ignored
from turngate.errors import UsageError
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.install.hook_command import (
    INSTALL_COMMANDS,
    entries_for,
    is_short_lived,
    this_program,
)
from turngate.hosts.install.settings_file import (
    UNCHANGED,
    Change,
    ChangedMeanwhile,
    InstallRecord,
    check_owner,
    make_folders,
    plan_install,
    plan_uninstall,
    read_record,
    record_path,
    remove_folders,
    remove_record,
    replace_settings_text,
    write_record,
)
from turngate.hosts.install.settings_text import UnsuitableSettings
from turngate.state.paths import state_folder

MAX_ATTEMPTS = 20  # with --yes, if other processes change the file again and again


def run(options: argparse.Namespace) -> int:
    if options.host is None:
        if options.uninstall or options.level:
            raise UsageError("which host? `turngate install` lists them")
        return _list()
    place = find_place(HOSTS[options.host], options.level)
    for attempt in range(MAX_ATTEMPTS):
        try:
            return _uninstall(place, options) if options.uninstall else _install(place, options)
        except ChangedMeanwhile:
            if not options.yes or attempt == MAX_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


# List


def _list() -> int:
    project = enclosing_project()
    width = max(len(name) for name in HOSTS)
    for host in HOSTS.values():
        places = [place.shown for place in all_places(host, project) if has_line(place)]
        print(f"{host.name.ljust(width)}  {', '.join(places) or '-'}")
    print("→ `turngate install HOST` lets a host run Turngate, `turngate uninstall HOST` removes it")
    return 0


# Install


def _install(place: Place, options: argparse.Namespace) -> int:
    _check_is_read(place)
    program = this_program(sys.argv[0], sys.executable)
    record_file = record_path(state_folder(), place.path)
    try:
        entries = entries_for(place.host, place.level, program)
        change = plan_install(place.text(), entries, place.host.new_file, read_record(record_file))
    except UnsuitableSettings as error:
        raise _unsuitable(place, error) from None
    if not change.is_needed:
        print(f"already installed in {place.shown}")
        _print_lines(next_steps(place))
        return 0
    check_owner(place.path)
    is_temporary = place.level == "user" and is_short_lived(program, tempfile.gettempdir())
    _warn([*warnings_before(place), *([_short_lived(program)] if is_temporary else [])])
    if not _show_and_ask(place, change, options, f"write it to {place.shown}?"):
        return 0 if options.dry_run else EXIT_PROBLEMS
    if not _write(place, change, record_file):
        return EXIT_IO_ERROR
    print(f"installed in {place.shown}")
    _print_lines(next_steps(place))
    return 0


def _check_is_read(place: Place) -> None:
    """Raise UsageError if the host would not read the line."""
    if why := why_ignored(place.host, place.path, place.shown):
        raise UsageError(f"{why}; {place.host.how_to_be_read}; {UNCHANGED}")


def _short_lived(program: str) -> str:
    hint = f"install Turngate for good ({INSTALL_COMMANDS}) and run this again"
    return f"{program} is in a cache or a temporary folder and may disappear; {hint}"


def _unsuitable(place: Place, error: UnsuitableSettings) -> UsageError:
    return UsageError(f"{place.shown}: {error}; {UNCHANGED}")


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"! {warning}", file=sys.stderr)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _show_and_ask(place: Place, change: Change, options: argparse.Namespace, question: str) -> bool:
    """Print the difference, and return whether to write it."""
    if os.path.islink(place.path):
        print(f"{place.shown} is a link to {os.path.realpath(place.path)}")
    for text, style in format_file_diff(place.shown, change.before, change.after):
        print(paint(text, "bold" if style == "user" else style))
    if options.dry_run:
        print("nothing was written (--dry-run)")
        return False
    if options.yes:
        return True
    if not can_ask():
        raise UsageError("there is no terminal to ask at; add --yes to write what is printed above")
    if confirm(question):
        return True
    print("nothing was written")
    return False


def _write(place: Place, change: Change, record_file: str) -> bool:
    """Write the settings, and before them what is needed to undo it. Report an error, and leave nothing behind."""
    folders: list[str] = []

    def keep_record() -> None:
        if record := change.record:
            made = (*record.folders, *folders)
            kept = InstallRecord(record.before, record.after, record.created, made)
            write_record(record_file, kept, place.path)

    try:
        folders += make_folders(place.path)
        replace_settings_text(place.path, change.before, change.after, prepare=keep_record)
    except (OSError, UsageError) as error:
        remove_folders(folders)
        if not isinstance(error, OSError):
            raise
        _report(record_file if error.filename == record_file else place.shown, error)
        return False
    return True


def _report(path: str, error: OSError) -> None:
    print(f"turngate: {path} cannot be written: {error.strerror}; {UNCHANGED}", file=sys.stderr)


# Uninstall


def _uninstall(place: Place, options: argparse.Namespace) -> int:
    record_file = record_path(state_folder(), place.path)
    record = read_record(record_file)
    try:
        change = plan_uninstall(place.text(), place.host.new_file, record)
    except UnsuitableSettings as error:
        raise _unsuitable(place, error) from None
    if not change.is_needed:
        print(f"not installed in {place.shown}")
        _print_lines(_elsewhere(place))
        return 0
    if not options.dry_run:
        check_person(os.environ, does="removes Turngate")
    check_owner(place.path)
    if not _show_and_ask(place, change, options, f"remove it from {place.shown}?"):
        return 0 if options.dry_run else EXIT_PROBLEMS
    try:
        replace_settings_text(place.path, change.before, change.after)
    except OSError as error:
        _report(place.shown, error)
        return EXIT_IO_ERROR
    remove_record(record_file)
    if change.after is None and record:
        remove_folders(list(record.folders))
    print(f"removed from {place.shown}" if change.after is not None else f"removed {place.shown}")
    _print_lines(_elsewhere(place))
    return 0


def _elsewhere(place: Place) -> list[str]:
    others = [other for other in all_places(place.host, place.project) if other.level != place.level]
    hint = f"`turngate uninstall {place.host.name}"
    return [
        f"→ the line is also in {other.shown}: {hint} --{other.level}`" for other in others if has_line(other)
    ]


_NAMES = ", ".join(HOSTS)
_EXIT_CODES = f"""1   not written: the answer was no
  {EXIT_USAGE}, settings that cannot hold hooks, or no terminal to ask at and no --yes
  {EXIT_INTERNAL}
  74  the settings could not be written"""


def declare(parser: Parser) -> None:
    _declare_uninstall(parser) if parser.prog.endswith(" uninstall") else _declare_install(parser)


def _declare_install(parser: Parser) -> None:
    parser.description = """\
Write the line `turngate hook` into the settings of another agent program, the host. At every stop, the host
then runs the hooks of .turngate and .mux. Everything else in its settings stays, comments and order included.
It prints the difference, and asks. Without HOST, it lists the hosts and where they have the line."""
    parser.epilog = f"""\
Examples:
  turngate install claude               in a project: for everyone who works on it
  turngate install codex --user         for you, in every project
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
  turngate uninstall claude           from the settings of this project
  turngate uninstall codex --user     from your own settings

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
    "user": "your own settings (default outside of a project)",
    "project": "the settings of the project that the current folder is in (default in a project)",
}
_LEVELS_AND_LINES = {
    "user": "your own settings, with the path of this program (default outside of a project)",
    "project": "the settings of the project that the current folder is in, with a line that finds Turngate on PATH, and\n"
    "lets the agent stop where it is not installed (default in a project)",
}
