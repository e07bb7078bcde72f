"""The session of `turngate run`: in a project on this machine, or with `--ssh` on another one."""

import argparse
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from turngate.agent.agent_session import AgentSession
from turngate.agent.session import Session
from turngate.agent.session_store import SessionSummary, list_sessions
from turngate.cli.console.progress import show_if_slow
from turngate.cli.project import check_one_project, project_folder, search_note
from turngate.cli.recorded_sessions import find_session
from turngate.cli.workspace import connect, load_given_settings, settings_options
from turngate.core.conversation.tools import TOOL_ALIASES, TOOL_NAMES
from turngate.core.dialect import ALL_DIALECTS
from turngate.core.settings import Settings
from turngate.errors import UsageError
from turngate.models import resolve
from turngate.plugins.handlers import load_plugins
from turngate.ports import Model, World
from turngate.project.files import LOCAL, Files
from turngate.settings.load import load_extra, report_unreachable
from turngate.shells.local import LocalShell
from turngate.state.paths import main_transcript_path, state_folder
from turngate.subagents.limits import SubagentOptions
from turngate.subagents.registry.registry import registry_url
from turngate.transcript.reader import title_and_project
from turngate.trust.review import Review, review_project


class OpenedSession(NamedTuple):
    session: Session
    review: Callable[[], Review]  # of all hooks; it is called in a thread
    world: World  # where the project is


# Takes the event handlers of a session. What it opens is closed by its caller, except for a connection.
OpenSession = Callable[..., AbstractAsyncContextManager[OpenedSession]]


def session_opener(options: argparse.Namespace) -> OpenSession:
    """Return what opens the session that the options of `turngate run` name. Raises UsageError."""
    tools = (*TOOL_NAMES, *TOOL_ALIASES)
    if unknown := next((name for name in options.allow if name not in tools), None):
        raise UsageError(f"--allow {unknown}: there is no such tool; the tools are {', '.join(tools)}")
    if options.ssh is not None:
        check_one_project(options.project, options.ssh)
        return _open_over_ssh(options)
    project = project_folder(options.project, options.dialect)
    if options.output_format == "text" and (note := search_note(project, options.project)):
        print(note, file=sys.stderr)
    return _open_here(options, project)


def _open_here(options: argparse.Namespace, project: str) -> OpenSession:
    """Return what opens the session of a project on this machine. What is wrong with the options is raised now."""
    world = World(LocalShell(), project)
    folders = _find_folders(options.add_dir, os.getcwd(), LOCAL)
    new_session = _session_factory(options, world, load_given_settings(options, world), folders)

    @asynccontextmanager
    async def open_session(**handlers: object) -> AsyncIterator[OpenedSession]:
        yield OpenedSession(new_session(**handlers), partial(_review, options, world), world)

    return open_session


def _open_over_ssh(options: argparse.Namespace) -> OpenSession:
    """Return what connects to the machine of `--ssh`, and opens the session there."""
    from turngate.shells.ssh.workspace import parse_ssh_location  # noqa: PLC0415  # lazy: few projects need it

    reading = f"reading the settings on {parse_ssh_location(options.ssh).name}"
    _check_options(options)

    @asynccontextmanager
    async def open_session(**handlers: object) -> AsyncIterator[OpenedSession]:
        async with await connect(options.ssh) as world:
            with show_if_slow(reading):
                settings = await world.call(load_given_settings, options, world)
                folders = await world.call(_find_folders, options.add_dir, world.project, world.files)
            new_session = _session_factory(options, world, settings, folders)
            with show_if_slow(reading):
                create = report_unreachable(world.files)(partial(new_session, **handlers))
                session = await world.call(create)
            yield OpenedSession(session, partial(_review, options, world), world)

    return open_session


def _review(options: argparse.Namespace, world: World) -> Review:
    return review_project(world.project, **settings_options(options, world))


def _session_factory(
    options: argparse.Namespace, world: World, settings: Settings, folders: list[str]
) -> Callable[..., Session]:
    """Return a function that makes the session of the command line; its caller adds the event handlers."""
    if options.subagents != "here":
        registry_url(settings.registry, needed_by=f"--subagents {options.subagents}")
    with show_if_slow("loading the model"):
        model = find_model(options.model or settings.model, settings)
    return partial(
        Session,
        world,
        model,
        settings,
        session_id=_session_id(options, world),
        permission_mode=options.permission_mode,
        allow=options.allow,
        extra_paths=folders,
        limit=options.limit,
        max_turns=options.max_turns,
        hooks=not options.no_hooks,
        strict=options.strict,
        trust=options.trust,
        plugins=load_plugins(settings.plugins),
        models=lambda name: find_model(name, settings),
        children=SubagentOptions(runs=options.subagents),
    )


def _check_options(options: argparse.Namespace) -> None:
    """Raise UsageError for what is wrong whatever the other machine has: to connect to it takes time."""
    if options.settings is not None:
        load_extra(options.settings, ALL_DIALECTS[options.dialect])
    if options.model and (options.model.startswith("scripted:") or ":" not in options.model):
        resolve.open_model(options.model)


def _find_folders(given: list[str], base: str, files: Files) -> list[str]:
    """Return the absolute paths of the folders of `--add-dir`, on the machine of the project."""
    folders = [os.path.normpath(os.path.join(base, files.expand_home(folder))) for folder in given]
    with report_unreachable(files):
        for name, folder in zip(given, folders, strict=True):
            if not files.isdir(folder):
                where = f" on {files.machine}" if files.machine else ""
                raise UsageError(f"--add-dir {name}: there is no such folder{where}; give one that exists")
    return folders


def find_model(name: str | None, settings: Settings) -> Model:
    """Open a model; without a name, one of the provider whose key is in the environment or the user's settings."""
    environ = settings.environ_of_models(os.environ)
    return resolve.open_model(name or resolve.default_model(environ), environ)


def new_subagent_host(
    options: argparse.Namespace, project: World | str, settings: Settings, names: Sequence[str], **more: Any
) -> AgentSession:
    """Return a session that is never opened: it only has the settings, models and plugins of subagents.

    `names`: of models that they are known to have. Raises UsageError if one is missing.
    """
    for problem in settings.not_loaded:
        print(f"! {problem}" + (f"\n  → {problem.hint}" if problem.hint else ""), file=sys.stderr, flush=True)
    names = [options.model] if options.model else names
    try:
        models = [find_model(name or settings.model, settings) for name in dict.fromkeys(names)]
    except UsageError as error:
        raise UsageError(f"{error}; choose another model with --model") from None
    more |= {"trust": options.trust, "plugins": load_plugins(settings.plugins)}
    find = None if options.model else lambda name: find_model(name or settings.model, settings)
    return Session(project, models[0], settings, models=find, **more)._agent  # noqa: SLF001 - only its parts are used


def _session_id(options: argparse.Namespace, world: World) -> str | None:
    """Return the session to continue or the name of a new one; None lets the session choose its id."""
    session_id = _chosen_session(options, world.location)
    if session_id is not None:
        path = main_transcript_path(state_folder(), session_id, options.dialect)
        _check_machine(session_id, title_and_project(path)[1], world.machine)
    return session_id


def _check_machine(session_id: str, location: str, machine: str) -> None:
    """Raise UsageError for a session whose project is on another machine; `location` is empty if it is not known."""
    is_remote = location.startswith("ssh://")
    if is_remote and location.partition("://")[2].partition("/")[0] != machine.removeprefix("ssh://"):
        raise UsageError(
            f"session {session_id} belongs to {location}; continue it with --ssh {shlex.quote(location)}"
        )
    if location and not is_remote and machine:
        raise UsageError(
            f"session {session_id} belongs to {location} on this machine; continue it without --ssh"
        )


def _chosen_session(options: argparse.Namespace, location: str) -> str | None:
    session_id: str | None = options.session or None
    if not options.resume:
        return session_id
    if session_id is None:
        newest = next((each for each in _sessions(options.dialect) if each.project == location), None)
        if newest is None:
            raise UsageError(
                f"there is no session of {location} to resume; `turngate sessions` lists all of them"
            )
        return newest.session_id
    if os.path.lexists(main_transcript_path(state_folder(), session_id, options.dialect)):
        return session_id
    found = find_session(session_id, (each.session_id for each in _sessions(options.dialect)))
    if found is None:
        raise UsageError(f"there is no session {session_id} to resume; `turngate sessions` lists them")
    return found


def _sessions(dialect: str) -> list[SessionSummary]:
    state = state_folder()
    found = list_sessions(state)
    return [each for each in found if each.path == main_transcript_path(state, each.session_id, dialect)]
