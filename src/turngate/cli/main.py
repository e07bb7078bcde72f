"""The command `turngate`: parses, calls one command, and turns what happened into an exit code.

Exit code 2 means "block" to the programs that call hooks, so nothing here ever exits with 2.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from turngate.core.names import EVENTS, FAMILIES
from turngate.errors import UsageError

USAGE = 64
OWN_FAULT = 70


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        if not words:
            _parser().print_help(sys.stderr)
            return USAGE
        options = _parser().parse_args(words)
        # A command's module is loaded only when that command runs: start-up is felt at every stop.
        code: int = import_module(f"turngate.cli.{options.command}").run(options)
        sys.stdout.flush()
    except UsageError as error:
        print(f"turngate: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:  # whoever read us has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("TURNGATE_DEBUG"):
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"turngate: this is our own fault ({said}); TURNGATE_DEBUG=1 shows where", file=sys.stderr)
        return OWN_FAULT
    return code


class _Help(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=100)  # a fixed width: asking the terminal is slow


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override] # NoReturn, but typing is slow to load
        raise UsageError(f"{message}; `{self.prog} --help` shows how to call it")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="turngate",
        description="Decides whether an AI agent may stop: asks the project's hooks.",
        epilog="Each command explains itself: turngate fire --help",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser, prog="turngate"
    )
    _check(commands)
    _fire(commands)
    _schema(commands)
    return parser


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        print(f"turngate {import_module('importlib.metadata').version('turngate')}")
        raise SystemExit(0)


def _check(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "check",
        help="every problem of the settings at once",
        description="Shows every problem of the project's settings: file, event, position, field, what was expected.",
        epilog="Exit codes: 0 clean, 1 problems, 64 wrong usage, 70 our own fault.",
        formatter_class=_Help,
    )
    _project_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _fire(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "fire",
        help="ask the hooks of one event once and print the verdict",
        description=(
            "Asks the hooks of one event, as if an agent had just said that it is done, and prints the verdict.\n\n"
            "  turngate fire Stop                     the hooks of the project in this folder\n"
            "  turngate fire Stop --input event.json  with an event of your own; - reads stdin\n"
            "  turngate fire SubagentStop --json      one JSON object for programs"
        ),
        epilog=(
            "Exit codes: 0 the agent may stop, 10 it goes on (a hook refuses), 11 halted by a hook, 13 with --strict:\n"
            "it may stop, but a gate failed, timed out or was skipped, 64 wrong usage, 70 our own fault,\n"
            "130 interrupted, 143 terminated."
        ),
        formatter_class=_Help,
    )
    parser.add_argument("event", choices=list(EVENTS), metavar="EVENT", help=", ".join(EVENTS))
    _project_options(parser)
    parser.add_argument(
        "--input", metavar="FILE", help="the event as JSON; - reads stdin; what it leaves out is filled in"
    )
    parser.add_argument(
        "--trust", action="store_true", help="run the project's hooks without having approved them"
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 13 when a gate failed, timed out or was skipped"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _schema(commands: "argparse._SubParsersAction[_Parser]") -> None:
    parser = commands.add_parser(
        "schema",
        help="the JSON Schemas of settings, hook input and hook output",
        description="Prints a JSON Schema, for editors and validators; without a name all of them in one object.",
        formatter_class=_Help,
    )
    parser.add_argument(
        "name",
        nargs="?",
        choices=["settings", "input", "output"],
        metavar="NAME",
        help="settings, input or output",
    )


def _project_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--project", metavar="DIR", default=".", help="the project's folder (default: this one)"
    )
    parser.add_argument(
        "--dialect",
        choices=list(FAMILIES),
        default="turngate",
        help="whose manners count (default: turngate)",
    )
