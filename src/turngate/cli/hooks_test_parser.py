"""The arguments of `turngate hooks test`."""

import argparse

from turngate.cli.command_parser import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_command,
    add_project_options,
    event_name,
)
from turngate.core.constants import EVENTS


def add_test(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "test",
        summary="run hooks on a sample input and explain their answers",
        description="Run the hooks of an event, one after another, and explain each answer field by field: what was read, what it\n"
        "means, what was ignored and why, and what an agent would have done. The hooks run in a temporary copy of the\n"
        "project: git works there but cannot push, and dependency folders are links. The input is a sample that\n"
        "the hook's matcher matches. A hook that is pending does not run without --trust. Nothing is recorded.",
        examples=(
            "turngate hooks test Stop                   all hooks of Stop",
            "turngate hooks test PreToolUse --hook guard   one of them: its id, or its key in `turngate hooks`",
            """turngate hooks test PreToolUse --input '{"tool_name": "Bash", "tool_input": {"command": "rm -rf x"}}'""",
        ),
        exit_codes=(
            "0   every hook gave a decision, whatever it is",
            "13  a hook failed, timed out, did not run or could not be loaded",
            f"{EXIT_USAGE}, also an unknown hook, and an event without hooks",
            EXIT_INTERNAL,
            EXIT_OUTPUT,
            EXIT_SIGNALS,
        ),
    )
    add = parser.add_argument
    add("event", type=event_name, choices=list(EVENTS), metavar="EVENT", help=", ".join(EVENTS))
    add("--hook", metavar="KEY", help="only this hook: its id, or its key in `turngate hooks`")
    add_project_options(parser, of_action=True)
    add(
        "--input",
        metavar="FILE|JSON",
        help="fields of the event: a file with JSON, - for stdin, or a JSON object in braces; others get samples",
    )
    add("--in-place", action="store_true", help="run the hooks in the project itself, not in a copy")
    add("--trust", action="store_true", help="also run hooks that are pending, as they are now")
    add("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object")
