"""`turngate run`: run an agent on a task under the project's stop hooks."""

import argparse
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from turngate.agent.session import Session
from turngate.agent.session_store import list_sessions
from turngate.agent.tools import TOOLS
from turngate.cli.commands.run_print import run_print
from turngate.cli.progress import show_if_slow
from turngate.cli.project import plugin_folders, project_folder, search_note
from turngate.cli.session_ids import find_session
from turngate.cli.stdin import read_prompt_from_stdin
from turngate.core.checkpoints import parse_answer
from turngate.core.constants import AGENT_MARKERS
from turngate.core.settings import Settings
from turngate.core.tools import TOOL_ALIASES
from turngate.errors import UsageError
from turngate.models import resolve
from turngate.plugins.entry_points import load_plugins
from turngate.ports import Model
from turngate.state.paths import main_transcript_path, state_folder
from turngate.trust.load import load_settings


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project, options.dialect)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is inherited as ignored, exit codes are lost
    prompt = read_prompt_from_stdin() if options.prompt == "-" else options.prompt
    if options.print and not (prompt or "").strip():
        raise UsageError("-p needs a prompt; give it as an argument, or - to read it from stdin")
    if options.resume or options.session:
        _check_answer(prompt or "")
    plugins = plugin_folders(options.plugin_dir)
    settings = load_settings(
        project,
        dialect=options.dialect,
        plugin_dirs=plugins,
        extra=options.settings,
        trust=options.trust,
    )
    start_session = _session_factory(options, project, settings)
    if options.output_format == "text" and (note := search_note(project, options.project)):
        print(note, file=sys.stderr)
    if options.print:
        return run_print(start_session, prompt, options.output_format)
    from turngate.cli.commands.run_interactive import run_interactive  # noqa: PLC0415 # lazy: not for -p
    from turngate.cli.hook_review.review import review_hooks  # noqa: PLC0415 # lazy: not for -p

    review = partial(
        review_hooks, project, dialect=options.dialect, plugin_dirs=plugins, extra=options.settings
    )
    return run_interactive(start_session, review, prompt, options.output_format)


def _check_answer(prompt: str) -> None:
    """Raise UsageError for a yes from a process that a hook or an agent's tool has started: it could be at a checkpoint."""
    marker = next((name for name in AGENT_MARKERS if name in os.environ), None)
    if marker is not None and parse_answer(prompt) == "yes":
        raise UsageError(
            "a person answers yes at a checkpoint, in a terminal of their own, and this was started by a hook or an agent "
            f"({marker} is set)"
        )


def _session_factory(options: argparse.Namespace, project: str, settings: Settings) -> Callable[..., Session]:
    """Return a function that makes the session of the command line; its caller adds the event handlers."""
    _check_tools(options.allow)
    with show_if_slow("loading the model"):
        model = find_model(options.model or settings.model, settings)
    return partial(
        Session,
        project,
        model,
        settings,
        session_id=_session_id(options, project),
        permission_mode=options.permission_mode,
        allow=options.allow,
        extra_paths=_absolute_folders(options.add_dir),
        limit=options.limit,
        max_turns=options.max_turns,
        hooks=not options.no_hooks,
        strict=options.strict,
        trust=options.trust,
        plugins=load_plugins(settings.plugins),
        models=lambda name: find_model(name, settings),
    )


def _check_tools(names: list[str]) -> None:
    tools = dict.fromkeys((*TOOLS, *TOOL_ALIASES))
    for name in names:
        if name not in tools:
            raise UsageError(f"--allow {name}: there is no such tool; the tools are {', '.join(tools)}")


def _absolute_folders(folders: list[str]) -> list[str]:
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"--add-dir {folder}: there is no such folder; give one that exists")
    return [os.path.abspath(folder) for folder in folders]


def find_model(name: str | None, settings: Settings) -> Model:
    """Open a model; without a name, one of the provider whose key is in the environment or the user's settings."""
    environ = settings.environ_of_models(os.environ)
    return resolve.open_model(name or resolve.default_model(environ), environ)


def _session_id(options: argparse.Namespace, project: str) -> str | None:
    """Return the session to continue or the name of a new one; None lets the session choose its id."""
    session_id: str | None = options.session or None
    if not options.resume:
        return session_id
    if session_id is None:
        return _newest_session(project, options.dialect)
    if os.path.lexists(main_transcript_path(state_folder(), session_id, options.dialect)):
        return session_id
    found = find_session(session_id, _session_ids(options.dialect))
    if found is None:
        raise UsageError(f"there is no session {session_id} to resume; `turngate sessions` lists them")
    return found


def _session_ids(dialect: str) -> list[str]:
    state = state_folder()
    sessions = list_sessions(state)
    return [
        each.session_id
        for each in sessions
        if each.path == main_transcript_path(state, each.session_id, dialect)
    ]


def _newest_session(project: str, dialect: str) -> str:
    state = state_folder()
    for session in list_sessions(state):
        path = main_transcript_path(state, session.session_id, dialect)
        if session.project == project and session.path == path:
            return session.session_id
    raise UsageError(f"there is no session of {project} to resume; `turngate sessions` lists all of them")
