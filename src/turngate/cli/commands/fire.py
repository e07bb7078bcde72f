"""`turngate fire`: asks the hooks of one event once and prints the verdict."""

import argparse
import json
import os
import sys
from importlib import import_module

from turngate.cli.project import project_folder
from turngate.core.constants import IN_HOOK
from turngate.core.event_fields import checked
from turngate.errors import UsageError
from turngate.settings.quick_check import has_no_hooks


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project)
    told = _told(options.input)
    try:
        checked(options.event, told)
    except ValueError as error:
        raise UsageError(f"{_shown(options.input)}: {error}") from None
    if IN_HOOK in os.environ:
        _print_nested(options)
        return 0
    if has_no_hooks(project, options.event, options.dialect):
        _print_nothing(options)
        return 0
    # The engine is loaded only now: most stops of most projects have no hook.
    code: int = import_module("turngate.cli.commands.fire_engine").fire(options, project, told)
    return code


def _told(path: str | None) -> object:
    if path is None:
        return {}
    try:
        if path == "-" and sys.stdin is None:
            raise UsageError("--input - reads the event from stdin, which is closed; give a file instead")
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
        return json.loads(data, parse_constant=_no_constant)
    except OSError as error:
        raise UsageError(f"{path} can not be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{_shown(path)} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{_shown(path)} is not JSON: {error}") from None


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")


def _shown(path: str | None) -> str:
    return "the event on stdin" if path == "-" else str(path)


def _print_nothing(options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps({**NOTHING, "event": options.event}))
    else:
        print(
            f"{options.event}: no hook is configured in {os.path.abspath(options.project)}, the agent may stop"
        )


def _print_nested(options: argparse.Namespace) -> None:
    why = "this was started from a hook, so no hook is asked"
    if options.json:
        print(json.dumps({**NOTHING, "event": options.event, "warnings": [why]}))
    else:
        print(f"{options.event}: {why}")


# What the engine says when nobody is asked; a test holds it against the real thing.
NOTHING: dict[str, object] = {
    "event": "",
    "verdict": "stop",
    "ended_by": "allowed",
    "prompt": None,
    "stop_reason": None,
    "runs": [],
    "unenforced": [],
    "warnings": [],
}
