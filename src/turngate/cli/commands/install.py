"""`turngate install` and `turngate uninstall`: write or remove the line `turngate hook` in the settings of another agent program."""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.cli.arguments import EXIT_INTERNAL, EXIT_USAGE, Parser
from turngate.cli.console.questions import may_write
from turngate.cli.console.streams import paint
from turngate.cli.main import EXIT_IO_ERROR, EXIT_PROBLEMS
from turngate.cli.project import describe_path, find_project, with_program
from turngate.cli.review import check_person
from turngate.cli.review.details import format_file_diff
from turngate.cli.review.entries import PENDING
from turngate.core.constants import SCRIPT_FAMILIES, STOP_EVENTS
from turngate.doctor.hosts.diagnosis import why_rejected
from turngate.doctor.hosts.files import (
    full_path,
    hooks_in,
    read_host_files,
    why_ignored,
)
from turngate.errors import UsageError
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host, Level
from turngate.hosts.install import settings_file
from turngate.hosts.install.hook_command import (
    EDITORS,
    INSTALL_COMMANDS,
    agent_entry,
    entries_for,
    how_to_find,
    is_short_lived,
    this_program,
)
from turngate.hosts.install.settings_file import UnsuitableSettings, hook_lines
from turngate.project.checkouts import find_top
from turngate.project.files import LOCAL
from turngate.project.safe_paths import real_path
from turngate.state.paths import state_folder
from turngate.trust.review import review_project

_NAMES = f"{', '.join(HOSTS)}; an editor: {', '.join(EDITORS)}"
_EXIT_CODES = f"""1   not written: the answer was no
  {EXIT_USAGE}, settings that cannot hold hooks, or no answer and no --yes
  {EXIT_INTERNAL}
  74  the settings could not be written"""


def declare(parser: Parser) -> None:
    parser.ssh_hint = "it writes the settings of agent programs here: run it there"
    _declare_uninstall(parser) if parser.prog.endswith(" uninstall") else _declare_install(parser)


def _declare_install(parser: Parser) -> None:
    parser.description = """\
Add a line with `turngate hook` to the settings of an agent program, the host. From then on, the host runs
the hooks of .turngate and .mux at every stop. Everything else in its settings stays, comments and order
included. You see the difference first, and confirm it with one key. Without HOST, list the hosts and the
files that have this line."""
    parser.epilog = f"""\
Examples:
  turngate install claude               for you, in every project, subfolder and worktree
  turngate install codex --project      for everyone who works on the project in this folder
  turngate install gemini --dry-run     print the difference only
  turngate install claude --uninstall   remove the line, and restore the file
  turngate install                      which hosts have the line, and in which file?
  turngate install zed --agent 'opencode acp'
                                        let an editor start an agent behind `turngate acp`

Exit codes:
  0   written, or there is nothing to write
  {_EXIT_CODES}"""
    _add_options(parser, required=False)
    parser.add_argument("--agent", metavar="CMD", help="for an editor: the command that starts the agent")
    parser.add_argument("--uninstall", action="store_true", help="the same as `turngate uninstall`")


def _declare_uninstall(parser: Parser) -> None:
    parser.description = """\
Remove what `turngate install` wrote. A file that has not changed since is restored byte for byte, or removed
if `install` created it. You see the difference first, and confirm it with one key. Only a person can
uninstall: in a process that a hook or an agent has started, the exit code is 64, except with --dry-run."""
    parser.epilog = f"""\
Examples:
  turngate uninstall claude            from your own settings, or those of this project
  turngate uninstall codex --project   from the settings of this project

Exit codes:
  0   removed, or there is nothing to remove
  {_EXIT_CODES}"""
    _add_options(parser, required=True)
    parser.set_defaults(uninstall=True, agent=None)


def _add_options(parser: Parser, *, required: bool) -> None:
    add = parser.add_argument
    add("host", nargs=None if required else "?", choices=[*HOSTS, *EDITORS], metavar="HOST", help=_NAMES)
    level = parser.add_mutually_exclusive_group()
    for name, text in (_LEVELS if required else _LEVELS_AND_LINES).items():
        level.add_argument(f"--{name}", dest="level", action="store_const", const=name, help=text)
    add("--dry-run", action="store_true", help="print the difference, and write nothing")
    add("--yes", action="store_true", help="do not ask")


_LEVELS = {
    "user": "your own settings (default, if the line is there)",
    "project": "the settings of the current project",
}
_LEVELS_AND_LINES = {
    "user": "your own settings, for every folder, with the path of this program (default)",
    "project": "the settings of the current project, for a team; the line finds Turngate on PATH;\n"
    "agents that start in a subfolder or a new worktree may not read these settings",
}


@frozen
class Place:
    """One settings file of a host."""

    host: Host
    level: Level
    path: str
    shown: str  # the path for messages
    project: str | None  # the folder of the project that the current folder is in

    def text(self) -> str | None:
        return settings_file.read_settings_text(self.path)


MAX_RETRIES = 20  # with --yes, if other processes change the file again and again


def run(options: argparse.Namespace) -> int:
    if options.host is None:
        if options.uninstall or options.level:
            raise UsageError("which host? `turngate install` lists them")
        project, width = enclosing_project(), max(len(name) for name in HOSTS)
        for host in HOSTS.values():
            places = [place.shown for place in all_places(host, project) if has_line(place)]
            print(f"{host.name.ljust(width)}  {', '.join(places) or '-'}")
        print("→ `turngate install HOST` lets a host run Turngate, `turngate uninstall HOST` removes it")
        return 0
    if options.agent and options.host not in EDITORS:
        raise UsageError(f"--agent is for an editor: {', '.join(EDITORS)}")
    place = find_place({**HOSTS, **EDITORS}[options.host], options.level)
    if options.uninstall and options.level is None and not has_line(place):
        installed = (other for other in all_places(place.host, place.project) if has_line(other))
        place = next(installed, place)
    act = _uninstall if options.uninstall else _install
    for _ in range(MAX_RETRIES if options.yes else 0):
        with contextlib.suppress(settings_file.ChangedMeanwhile):
            return act(place, options)
    return act(place, options)


# Install


def _install(place: Place, options: argparse.Namespace) -> int:
    if why := why_ignored(place.host, place.path, place.shown):
        raise UsageError(f"{why}; {place.host.how_to_be_read}; {settings_file.UNCHANGED}")
    program = this_program(sys.argv[0], sys.executable)
    record_file = settings_file.record_path(state_folder(), place.path)
    try:
        entries = _entries(place, program, options.agent)
        record = settings_file.read_record(record_file)
        change = settings_file.plan_install(place.text(), entries, place.host, record)
    except UnsuitableSettings as error:
        raise UsageError(f"{place.shown}: {error}; {settings_file.UNCHANGED}") from None
    if not change.is_needed:
        return _print_installed(f"already installed in {place.shown}", place)
    settings_file.check_owner(place.path)
    is_new = "" if change.before is not None else ", which does not exist yet"
    what = "" if place.host.name in EDITORS else "`turngate hook` at "
    print(f"{place.host.title}: {what}{', '.join(entries)}, in {place.shown}{is_new}")
    warnings = [*warnings_before(place, program)]
    if not _show_and_ask(place, change, options, f"write it to {place.shown}?", warnings):
        return 0 if options.dry_run else EXIT_PROBLEMS
    if not _write(place, change, record_file):
        return EXIT_IO_ERROR
    return _print_installed(f"installed in {place.shown}", place)


def _print_installed(done: str, place: Place) -> int:
    print(done, *(with_program(step, anywhere=True) for step in next_steps(place)), sep="\n")
    return 0


def _entries(place: Place, program: str, agent: str | None) -> Mapping[str, Mapping[str, Any]]:
    if place.host.name not in EDITORS:
        return entries_for(place.host, place.level, program)
    with contextlib.suppress(ValueError):  # its quotes have no end
        if agent and agent.strip():
            return agent_entry(place.host, program, agent)
    example = f"`turngate install {place.host.name} --agent 'opencode acp'`"
    raise UsageError(f"which agent? For example: {example}")


def _show_and_ask(
    place: Place,
    change: settings_file.Change,
    options: argparse.Namespace,
    question: str,
    warnings: Iterable[str] = (),
) -> bool:
    """Print the difference and the warnings, and return whether to write it."""
    if os.path.islink(place.path):
        print(f"{place.shown} is a link to {os.path.realpath(place.path)}")
    before, after = (
        text and text.replace("\r\n", "\n").removeprefix("\ufeff") for text in (change.before, change.after)
    )
    for text, style in format_file_diff(place.shown, before, place.shown, after):
        print(paint(text, style))
    for warning in warnings:
        print(paint(f"! {warning}", "alert", sys.stderr), file=sys.stderr)
    return may_write(question, options)


def _write(place: Place, change: settings_file.Change, record_file: str) -> bool:
    """Write the settings, and before them what is needed to undo it. Report an error."""

    def keep_record(folders: list[str]) -> None:
        if record := change.record:
            kept = replace(record, folders=(*record.folders, *folders))
            settings_file.write_record(record_file, kept, place.path)

    try:
        settings_file.replace_settings_text(place.path, change.before, change.after, prepare=keep_record)
    except OSError as error:
        path = record_file if error.filename == record_file else place.shown
        why = f"{path} cannot be written: {error.strerror}"
        print(f"turngate: {why}; {settings_file.UNCHANGED}", file=sys.stderr)
        return False
    return True


# Uninstall


def _uninstall(place: Place, options: argparse.Namespace) -> int:
    record_file = settings_file.record_path(state_folder(), place.path)
    record = settings_file.read_record(record_file)
    try:
        change = settings_file.plan_uninstall(place.text(), place.host, record)
    except UnsuitableSettings as error:
        raise UsageError(f"{place.shown}: {error}; {settings_file.UNCHANGED}") from None
    if not change.is_needed:
        print(f"not installed in {place.shown}", *_elsewhere(place), sep="\n")
        return 0
    if not options.dry_run:
        check_person(os.environ, does="removes Turngate")
    settings_file.check_owner(place.path)
    if not _show_and_ask(place, change, options, f"remove it from {place.shown}?"):
        return 0 if options.dry_run else EXIT_PROBLEMS
    if not _write(place, change, record_file):
        return EXIT_IO_ERROR
    with contextlib.suppress(OSError):
        os.unlink(record_file)
    if change.after is None and record:
        settings_file.remove_folders(list(record.folders))
    removed = f"removed from {place.shown}" if change.after is not None else f"removed {place.shown}"
    print(removed, *_elsewhere(place), sep="\n")
    return 0


def _elsewhere(place: Place) -> Iterator[str]:
    for other in all_places(place.host, place.project):
        if other.level != place.level and has_line(other):
            hint = f"`turngate uninstall {place.host.name} --{other.level}`"
            yield f"→ the line is also in {other.shown}: {hint}"


def find_place(host: Host, level: Level | None) -> Place:
    """Return the settings file of a level, by default the user's. Raises UsageError."""
    project = enclosing_project()
    level = level or "user"
    if level not in host.files:
        raise UsageError(f"{host.title} has no settings of a project; leave out --{level}")
    if level == "project" and project is None:
        project = _current_folder()
        if real_path(project) == _home():
            raise UsageError(
                f"this is your home folder, not a project; change to a project, or use --user for {host.title} everywhere"
            )
    return _place(host, level, project)


def _place(host: Host, level: Level, project: str | None) -> Place:
    file = host.files[level]
    if level == "project":
        return Place(host, level, os.path.join(project or _current_folder(), file), file, project)
    path = full_path(host, file, project or "", os.environ)
    shown = file if path == os.path.expanduser(file) else describe_path(path)
    return Place(host, level, path, shown, project)


def enclosing_project() -> str | None:
    """Return the nearest folder upward with settings of Turngate, or else the git root, or None; never home."""
    folder = _current_folder()
    families = (*SCRIPT_FAMILIES,)
    found = find_project(folder, families)
    if (
        any(os.path.isdir(os.path.join(found, f".{family}")) for family in families)
        and real_path(found) != _home()
    ):
        return found
    top = find_top(folder, LOCAL)
    return None if f"{_home()}/".startswith(f"{real_path(top).rstrip('/')}/") else top


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current folder no longer exists; change to another one") from None


def _home() -> str:
    return real_path(os.path.expanduser("~"))


# Where the line is already


def all_places(host: Host, project: str | None) -> Iterator[Place]:
    yield from (_place(host, level, project) for level in host.files if level == "user" or project)


def has_line(place: Place) -> bool:
    """Return whether the line is there; a file that cannot be read runs no hooks either."""
    try:
        return bool(hook_lines(place.text() or "", place.host.file_format))
    except (UnsuitableSettings, UsageError):
        return False


def warnings_before(place: Place, program: str) -> Iterator[str]:
    """Yield where the line is already, so that a host would run it twice at a stop, and why it may not run at all."""
    folder = place.project or os.getcwd()
    for host in HOSTS.values():
        reads_it = host is place.host or place.level in host.reads_files_of.get(place.host.name, ())
        for file in read_host_files(host, folder, os.environ) if reads_it else ():
            # A file that hosts share is named for its own host.
            is_other = real_path(file.path) != real_path(place.path) and host in (place.host, file.owner)
            if is_other and any(hook.is_turngate for hook in hooks_in(file)):
                is_installed = host is file.owner and file.name == host.files[file.level]
                how = f"; `turngate uninstall {host.name} --{file.level}` removes that one"
                yield (
                    f"{host.title} already has the line in {file.name}: with one in {place.shown} too, "
                    f"it runs Turngate twice at a stop{how if is_installed else ''}"
                )
    for file in read_host_files(place.host, folder, os.environ):
        if real_path(file.path) == real_path(place.path) and (why := why_rejected(file, place.host)):
            yield f"{place.host.title} rejects {place.shown} as it is, and runs no hook in it: {why}"
    if place.level == "project" and shutil.which("turngate") is None:
        yield (
            "turngate is not on PATH here, where the line in a project's settings looks for it, so stops would not be checked; "
            + how_to_find(place.host)
        )
    if place.level == "user" and is_short_lived(program, tempfile.gettempdir()):
        hint = f"install Turngate for good ({INSTALL_COMMANDS}) and run this again"
        yield f"{program} is in a cache or a temporary folder and may disappear; {hint}"


def next_steps(place: Place) -> Iterator[str]:
    """Yield what remains to be done by hand: in the host, and in the project."""
    if place.level == "project":
        yield (
            f"→ {place.host.title} may not read this file in a subfolder or a new worktree; `turngate install "
            f"{place.host.name}` writes the line to your own settings, which apply everywhere"
        )
    if step := place.host.steps_by_hand.get(place.level):
        yield f"→ {step}"
    if place.project:
        yield from _project_steps(place.project)
    else:
        yield "→ in each project: `turngate init` writes gates for its checks"
    if place.host.name in EDITORS:
        yield f"→ in {place.host.title}: choose the agent that is checked by Turngate"
    else:
        yield f"→ `turngate doctor --host {place.host.name}` says whether the line will run, and block"


def _project_steps(project: str) -> Iterator[str]:
    review = review_project(project, dialect="turngate", files=LOCAL)
    own = [hook for hook in review.hooks if hook.rule.family != "claude"]  # the host itself runs those
    if not any(hook.rule.event in STOP_EVENTS for hook in own):
        yield "→ this project has no hooks for a stop yet: `turngate init` writes gates for its checks"
    if count := sum(hook.status in PENDING for hook in own):
        what = "1 hook is" if count == 1 else f"{count} hooks are"
        yield f"→ {what} pending, and skipped until a person approves: `turngate hooks approve --all`"
