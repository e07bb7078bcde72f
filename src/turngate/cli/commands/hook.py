"""`turngate hook`: the hooks and gates of `.turngate` and `.mux` for an agent of another agent program.

This module answers without the engine where no hook can run, and where every gate has passed for these files.
"""

import os
import sys

from turngate.cli.hook_command import EXIT_NOT_PASSED, run_hook_command
from turngate.cli.hook_stdin import read_object_from_stdin
from turngate.cli.project import find_project, project_folder
from turngate.core.constants import FAMILIES, IN_HOOK, STOP_EVENTS, STOP_OF_START
from turngate.errors import UsageError
from turngate.hosts.input_fields import PROJECT_VARIABLES, normalise, recognise
from turngate.hosts.stop_count import count_path, forget_count
from turngate.settings.quick_check import has_no_hooks
from turngate.state.paths import state_folder

EVENTS = (*STOP_EVENTS, *STOP_OF_START)  # that it answers


class HookOptions:
    """The options of `turngate hook`."""

    def __init__(self) -> None:
        self.host: str | None = None
        self.project: str | None = None
        self.timeout: str | None = None


def run(words: list[str]) -> int:
    """Answer the event on stdin."""
    return run_hook_command("turngate hook", _run, words)


def _run(words: list[str]) -> int:
    if "--help" in words or "-h" in words:
        from turngate.cli.hook_help import help_text  # noqa: PLC0415 # lazy: loads all hosts

        print(help_text())
        sys.exit()
    options = _read_options(words)
    fields, note = read_object_from_stdin()
    if fields is None:
        return _explain(note)
    known = normalise(fields)
    event = str(known["hook_event_name"])
    if event not in EVENTS or os.environ.get(IN_HOOK):
        return _ignore(event)
    project = _project(options.project, PROJECT_VARIABLES.get(options.host or recognise(fields) or ""), known)
    count = count_path(state_folder(), event, known)
    quick = None
    if has_no_hooks(project, event, "host") or (
        (quick := _quick_path(event, known, project)) and _all_gates_hold(quick, project)
    ):
        if event in STOP_EVENTS:
            forget_count(count)
        return 0
    from turngate.cli.commands.hook_engine import answer_event  # noqa: PLC0415 # lazy: loads asyncio

    return answer_event(options, fields, known, project, count, quick)


def _read_options(words: list[str]) -> HookOptions:
    options = HookOptions()
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name not in ("--host", "--project", "--timeout"):
            raise UsageError(f"unrecognized argument: {word}")
        value = value if equals else next(rest, "")
        if not value:
            raise UsageError(f"{name} needs a value")
        setattr(options, name[2:], value)
    if options.host is not None:
        from turngate.hosts.all_hosts import find_host  # noqa: PLC0415 # lazy: it loads all hosts

        find_host(options.host)
    return options


def _quick_path(event: str, known: dict[str, object], project: str) -> str | None:
    """Return the file that says that all gates hold, or None if they have to look at more than the files."""
    session, agent = str(known.get("session_id", "")), str(known.get("agent_id", ""))
    if event not in STOP_EVENTS or not session or known.get("background_tasks"):
        return None
    from turngate.hosts.quick_stop import quick_stop_path  # noqa: PLC0415 # lazy: only where there are hooks

    return quick_stop_path(state_folder(), session, agent, event, known, project)


def _all_gates_hold(path: str, project: str) -> bool:
    from turngate.hosts.quick_stop import holds  # noqa: PLC0415 # lazy: only where there are hooks

    return holds(path, project)


def _project(given: str | None, variable: str | None, known: dict[str, object]) -> str:
    """Return the project's folder: the given one, or from that of the host's variable or of the event upwards.

    A program that runs inside another one inherits its variables, so that of another host says nothing.
    """
    if given is not None:
        return project_folder(given, "host")
    for folder in (os.environ.get(variable) if variable else None, known.get("cwd")):
        if isinstance(folder, str) and os.path.isdir(folder):
            return find_project(os.path.abspath(folder), FAMILIES["host"])
    return project_folder(None, "host")


def _ignore(event: str) -> int:
    why = f"{IN_HOOK} is set, which is for processes of a hook" if event else "not an event that it answers"
    print(f"turngate hook: {why}, so nothing was checked", file=sys.stderr)
    return 0


def _explain(note: str | None) -> int:
    """Tell a person what this command is for: nothing was on stdin."""
    text = "an agent program runs this command as a hook, with the event as JSON on stdin"
    tell = "`turngate install` adds it to the settings of one; `turngate fire Stop` checks a stop now"
    print(f"turngate hook: {f'{note}; ' if note else ''}{text}: {tell}", file=sys.stderr)
    return EXIT_NOT_PASSED
