"""`turngate fire`: run the hooks of one event once and print the verdict.

This module answers without the engine where no hook can run, which is most stops of most projects.
"""

import os
import stat
import sys

from turngate.cli.console.streams import paint
from turngate.cli.fire_arguments import FireOptions
from turngate.cli.project import describe_path, project_folder, search_note
from turngate.core.constants import IN_HOOK
from turngate.errors import UsageError
from turngate.settings.paths import unread_files
from turngate.settings.quick_check import has_no_hooks, other_events

PROGRESS_AFTER_S = 1.0
MAX_INPUT_BYTES = 64 * 1024 * 1024  # of `--input`

# The JSON output of a verdict without hook runs. A test compares it with the engine's.
NO_RUNS_JSON: dict[str, object] = {
    "event": "",
    "verdict": "stop",
    "ended_by": "allowed",
    "prompt": None,
    "stop_reason": None,
    "permission": None,
    "context": "",
    "runs": [],
    "unenforced": [],
    "not_loaded": False,
    "warnings": [],
}


def run(options: FireOptions) -> int:
    project = project_folder(options.project, options.dialect)
    fields = {} if options.input is None else read_input(options.input, options.event)
    if not options.json and (note := search_note(project, options.project)):
        print(note)
    if IN_HOOK in os.environ:
        _print_nested(options, project)
        return 0
    further = options.plugin_dir or options.settings is not None
    if not further and has_no_hooks(project, options.event, options.dialect):
        _print_no_hooks(options, project)
        return 0
    from turngate.cli.commands.fire_engine import fire  # noqa: PLC0415 # lazy: the engine loads asyncio

    return fire(options, project, fields)


def read_input(path: str, event: str) -> dict[str, object]:
    """Read the fields of the event from the value of `--input`."""
    import json  # noqa: PLC0415 # lazy: it loads re

    from turngate.core.constants import check_fields  # noqa: PLC0415 # lazy: only for --input

    try:
        fields: dict[str, object] = json.loads(_read_input(path), parse_constant=_reject_constant)
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
        with open(path, "rb", opener=_open_without_waiting) as file:
            _wait_for_data(file.fileno(), path)
            os.set_blocking(file.fileno(), True)
            return _check_size(file.read(MAX_INPUT_BYTES + 1), path)
    if sys.stdin is None:
        raise UsageError("--input - reads the event from stdin, which is closed; give a file instead")
    _wait_for_data(sys.stdin.fileno(), path)
    return _check_size(sys.stdin.buffer.read(MAX_INPUT_BYTES + 1), path)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(
        path, flags | os.O_NONBLOCK
    )  # otherwise, to open a pipe waits until a process writes to it


def _wait_for_data(fd: int, path: str) -> None:
    """Wait until a pipe, a terminal or another device can be read; after a second, say so."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return
    import select  # noqa: PLC0415 # lazy: not needed for a file

    if not select.select([fd], [], [], PROGRESS_AFTER_S)[0]:
        print(f"waiting for {_input_name(path)} …", file=sys.stderr, flush=True)
        select.select([fd], [], [])


def _check_size(data: bytes, path: str) -> bytes:
    if len(data) > MAX_INPUT_BYTES:
        raise UsageError(f"{_input_name(path)} is larger than {MAX_INPUT_BYTES // 1024**2} MiB")
    return data


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


def _input_name(path: str | None) -> str:
    if path is not None and path.lstrip().startswith("{"):
        return "--input"
    return "the event on stdin" if path == "-" else str(path)


def _print_no_hooks(options: FireOptions, project: str) -> None:
    if options.json:
        _print_json(options, project, [])
    else:
        text = f"no hook for {options.event} is configured in {describe_path(project)}"
        events = other_events(project, options.event, options.dialect)
        elsewhere = f"there are hooks for {', '.join(events)}" if events else None
        elsewhere = elsewhere or unread_files(project, options.dialect)
        print(f"{_allowed(options)}\n  {text}{f'; {elsewhere}' if elsewhere else ''}")


def _print_nested(options: FireOptions, project: str) -> None:
    why = "turngate was started from a hook, so no hooks run"
    if options.json:
        _print_json(options, project, [why])
    else:
        print(f"{_allowed(options)}\n  {why}")


def _print_json(options: FireOptions, project: str, warnings: list[str]) -> None:
    import json  # noqa: PLC0415 # lazy: it loads re

    print(json.dumps({**NO_RUNS_JSON, "event": options.event, "warnings": warnings, "project": project}))


def _allowed(options: FireOptions) -> str:
    return paint(f"{options.event}: allowed", "good")
