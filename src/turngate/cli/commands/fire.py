"""`turngate fire`: run the hooks of one event once and print the verdict."""

import argparse
import os
import select
import stat
import sys
from collections.abc import Container

from turngate.cli.arguments import (
    EXIT_ERRORS_AND_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_event_options,
    add_hook_options,
    add_json_option,
    add_place_options,
    find_project_here,
)
from turngate.cli.console.streams import paint
from turngate.cli.hook_input import refuse_command
from turngate.cli.project import describe_path, nothing_is_configured
from turngate.core.constants import EVENTS, IN_HOOK, reject_constant
from turngate.errors import UsageError
from turngate.hosts.input_fields import recognize, variable_of_command
from turngate.project.files import LOCAL, Files
from turngate.settings.paths import unread_files

PROGRESS_AFTER_S = 1.0
MAX_INPUT_BYTES = 64 * 1024 * 1024  # of `--input`


def declare(parser: Parser) -> None:
    parser.description = """\
Run the hooks of one event, as if an agent had just said that it is done, and print the verdict.
Prompt and agent hooks use their own `model`, the `judge` of the settings, or a small model of the
provider whose key is in the environment."""
    parser.epilog = f"""\
Examples:
  turngate fire Stop                      the hooks of this project
  turngate fire Stop --input event.json   with your own event: a file, - for stdin, or JSON
  turngate fire SubagentStop --json       one JSON object for programs
  turngate fire Stop --ssh build:src/app  the hooks of a project on another machine

Exit codes:
  0   allowed
  10  blocked
  11  halted by a hook
  12  a PreToolUse hook leaves the decision to the user
  13  with --strict: allowed, but a hook was not enforced or could not be loaded
  {EXIT_USAGE}
  {EXIT_ERRORS_AND_SIGNALS}"""
    add_event_options(parser, others="other fields get defaults")
    add_place_options(parser)
    add_hook_options(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    project = find_project_here(options)
    fields = {} if options.input is None else read_input(options.input, options.event)
    session = fields.get("session_id")
    if session and (by := variable_of_command(recognize(fields), session)):
        return refuse_command("turngate fire", by)
    further = options.json or options.plugin_dir or options.settings is not None or IN_HOOK in os.environ
    if project is not None and not further and nothing_is_configured(project, options.dialect):
        why = _not_configured(options, project, (), LOCAL)
        print(f"{paint(f'{options.event}: allowed', 'good')}\n  {why}")
        return 0
    return _fire(options, project, fields)


def _fire(options: argparse.Namespace, project: str | None, fields: dict[str, object]) -> int:
    # lazy: the engine, and all that it needs
    import json  # noqa: PLC0415

    from turngate.cli.console.progress import show_if_slow  # noqa: PLC0415
    from turngate.cli.console.verdict import (  # noqa: PLC0415
        ask_with_progress,
        print_verdict,
        problems_for,
        verdict_exit_code,
    )
    from turngate.cli.workspace import load_given_settings, open_workspace  # noqa: PLC0415
    from turngate.core.events.hook_input import read_event  # noqa: PLC0415
    from turngate.core.verdict.json_output import verdict_json  # noqa: PLC0415
    from turngate.core.verdict.verdict import Verdict  # noqa: PLC0415
    from turngate.engine import IN_HOOK_REASON  # noqa: PLC0415
    from turngate.ports import World, on_machine  # noqa: PLC0415
    from turngate.settings.load import has_unloaded_hooks  # noqa: PLC0415
    from turngate.stop_hooks import open_world, trouble_of  # noqa: PLC0415

    async def ask() -> tuple[Verdict, World]:
        async with open_world(place, settings) as world:
            return await ask_with_progress(event, settings, world), world

    with open_workspace(options, project) as workspace:
        place = workspace.world
        with show_if_slow(f"reading the settings{on_machine(place)}"):
            settings = load_given_settings(options, place)
        event = read_event(options.event, fields, cwd=place.project)
        events = {rule.event for rule in settings.rules}
        not_loaded = has_unloaded_hooks(settings, event.name)
        is_configured = not_loaded or event.name in events
        why = "no hook ran" if is_configured else _not_configured(options, place.project, events, place.files)
        verdict, world = workspace.run(ask(), " before a verdict; no hook is left running")
    is_nested = [IN_HOOK_REASON] if world.in_hook else []
    if options.json:
        lines = [*map(str, problems_for(event.name, settings)), *trouble_of(world), *is_nested]
        shown = verdict_json(verdict, event.name, settings, lines, not_loaded=not_loaded)
        print(json.dumps({**shown, "project": world.location}, ensure_ascii=True))
    else:
        why = IN_HOOK_REASON if is_nested else why
        print_verdict(
            verdict, event, fields, settings, trouble_of(world), why_none=why, location=world.location
        )
    return verdict_exit_code(verdict, event.name, strict=options.strict, not_loaded=not_loaded)


def _not_configured(options: argparse.Namespace, project: str, events: Container[str], files: Files) -> str:
    """Return that the event has no hooks, and where there are some; `events` have hooks."""
    others = ", ".join(name for name in EVENTS if name in events)
    elsewhere = f"there are hooks for {others}" if others else unread_files(project, options.dialect, files)
    text = f"no hook for {options.event} is configured in {describe_path(files.machine + project)}"
    return f"{text}; {elsewhere}" if elsewhere else text


# The value of `--input`


def read_input(path: str, event: str) -> dict[str, object]:
    """Read the fields of the event from the value of `--input`."""
    # lazy: a fire without hooks does not need them
    import json  # noqa: PLC0415

    from turngate.core.events.hook_input import check_fields  # noqa: PLC0415

    try:
        fields: dict[str, object] = json.loads(_read_input(path), parse_constant=reject_constant)
    except OSError as error:
        forms = "--input takes a file, - for stdin, or a JSON object in braces"
        raise UsageError(f"{path} cannot be read: {error.strerror}; {forms}") from None
    except json.JSONDecodeError as error:
        from turngate.core.text import describe_syntax_error  # noqa: PLC0415 # lazy: only for an error

        raise UsageError(f"{_input_name(path)} is {describe_syntax_error(error.doc, error)}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{_input_name(path)} is not JSON: {error}") from None
    try:
        check_fields(event, fields)
    except ValueError as error:
        raise UsageError(f"{_input_name(path)}: {error}") from None
    return fields


def _read_input(path: str) -> bytes:
    if path.lstrip().startswith("{"):
        return path.encode("utf-8", "surrogateescape")
    if path != "-":
        # Without O_NONBLOCK, to open a pipe waits until a process writes to it.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            _wait_for_data(file.fileno(), path)
            os.set_blocking(file.fileno(), True)
            data = file.read(MAX_INPUT_BYTES + 1)
    elif sys.stdin is None:
        raise UsageError("--input - reads the event from stdin, which is closed; give a file instead")
    else:
        _wait_for_data(sys.stdin.fileno(), path)
        data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise UsageError(f"{_input_name(path)} is larger than {MAX_INPUT_BYTES // 1024**2} MiB")
    return data


def _wait_for_data(fd: int, path: str) -> None:
    """Wait until a pipe, a terminal or another device can be read; after a second, say so."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return
    if not select.select([fd], [], [], PROGRESS_AFTER_S)[0]:
        print(f"waiting for {_input_name(path)} …", file=sys.stderr, flush=True)
        select.select([fd], [], [])


def _input_name(path: str) -> str:
    if path.lstrip().startswith("{"):
        return "--input"
    return "the event on stdin" if path == "-" else path
