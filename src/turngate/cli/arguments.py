"""The parser of the command line, and the arguments that several commands have."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from turngate.core.constants import DIALECT_NAMES, DOCUMENTATION, EVENTS
from turngate.errors import UsageError

MAX_LISTED = 7  # choices, where one of them is close
HELP_WIDTH = 100  # fixed, because argparse loads shutil to ask the terminal

EXIT_USAGE = "64  wrong usage"
EXIT_INTERNAL = "70  internal error"
EXIT_OUTPUT = (
    "74  the output could not be written to stdout; 141 if the reader closed the pipe, as `head` does"
)
EXIT_SIGNALS = "128 + N  ended by signal N: 130 interrupted, 143 terminated"
EXIT_ALL_SIGNALS = "128 + N  ended by signal N: 129 hung up, 130 interrupted, 131 quit, 143 terminated"
EXIT_ERRORS = f"{EXIT_INTERNAL}\n  {EXIT_OUTPUT}"
EXIT_ERRORS_AND_SIGNALS = f"{EXIT_ERRORS}\n  {EXIT_SIGNALS}"
EXIT_CODES_OF_OUTPUT = f"""\
Exit codes:
  0   printed
  {EXIT_USAGE}
  {EXIT_ERRORS}"""
EXIT_CODES_OF_TURN = """\
0   the agent stopped, and no hook blocks
  10  a hook still blocks: the limit is reached, or nothing changed (capped, stalled)
  11  halted by a hook
  12  the agent waits for the user"""
FIRST_STEPS = f"""\
First steps:
  turngate demo        watch it work, without a model and without settings
  turngate init        find this project's checks and write a gate for each
  turngate install     add Turngate to Claude Code, Codex, Gemini CLI …
  turngate status      what is set up here, and what is next?
  turngate gates run   do the checks pass now? also for CI
  turngate doctor      will every hook run? --prove: does every gate block?

`turngate COMMAND --help` explains a command, with examples and exit codes. With --ssh, `run`, `fire`, `gates` and
`hooks` work on a project on another machine.

Documentation: {DOCUMENTATION}"""
LISTED_PROJECT_HINT = "name a project on another machine as `turngate sessions` lists it: --project ssh://…"
PROJECT_HELP = "the project's folder (default: the nearest one with settings, from here upward)"


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=HELP_WIDTH)

    def _format_action(self, action: argparse.Action) -> str:
        """List commands as options are listed: argparse indents them more, and then the long ones leave their column."""
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - there is no public name
            return self._join_parts(map(self._format_action, action._get_subactions()))  # noqa: SLF001
        return super()._format_action(action)


class Parser(argparse.ArgumentParser):
    ssh_hint = "leave --ssh out"  # for a command without that option

    def parse_known_args(  # type: ignore[override] # typeshed has overloads for other kinds of namespaces
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Raise UsageError if `--ssh` is given to a command that has no such option; `turngate` itself leaves it to them."""
        is_command = " " in self.prog
        if is_command and "--ssh" not in self._option_string_actions and has_ssh(args or ()):
            raise not_over_ssh(self.prog, self.ssh_hint)
        if is_command:
            self._check_options(args or ())
        return super().parse_known_args(args, namespace)

    def _check_options(self, args: Sequence[str]) -> None:
        """Raise UsageError for an unknown option: argparse would take the word after it for an action."""
        known = [*self._option_string_actions]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - there is no public name
                for parser in action.choices.values():
                    known += parser._option_string_actions  # noqa: SLF001
        for word in args[: args.index("--")] if "--" in args else args:
            name = word.partition("=")[0]
            is_option = name.startswith("--") and " " not in name
            if is_option and not any(option.startswith(name) for option in known):
                self.error(f"unrecognized option {name}{_did_you_mean(name, known)}")

    def parse_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
        """Name the command in the message about an argument that it does not have."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            where = f"{self.prog} {options.command}"
            raise UsageError(f"unrecognized arguments: {' '.join(unknown)}; see `{where} --help`")
        return options

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Name the closest choice, instead of a long list."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            choices = [*map(str, action.choices or ())]
            if (close := _did_you_mean(str(value), choices)) and len(choices) > MAX_LISTED:
                error.message = f"{value} is unknown"
            error.message += close
            raise

    def error(self, message: str) -> None:  # type: ignore[override] # NoReturn needs typing, which loads slowly
        raise UsageError(f"{message}; see `{self.prog} --help`")


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 # lazy: only for a mistake

    return "".join(f"; did you mean {close}?" for close in get_close_matches(word, known, 1))


def has_ssh(args: Sequence[str]) -> bool:
    options = args[: args.index("--")] if "--" in args else args
    return any(word == "--ssh" or word.startswith("--ssh=") for word in options)


def not_over_ssh(command: str, hint: str) -> UsageError:
    return UsageError(f"`{command}` works on this machine only; {hint}")


def build_parser(argv: Sequence[str], commands: Mapping[str, tuple[str, str]]) -> argparse.ArgumentParser:
    """Return the parser for these arguments. Only the command that they name is loaded and has arguments.

    `commands`: the module and the summary of each.
    """
    parser = Parser(
        prog="turngate",
        description="Decide whether an AI agent may stop, by running the project's hooks.",
        epilog=FIRST_STEPS,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parsers = parser.add_subparsers(
        dest="command",
        required=True,
        metavar="COMMAND",
        parser_class=Parser,
        prog="turngate",
        title="commands",
    )
    named = next((word for word in argv if word in commands), None)
    for name in (named,) if named and named == argv[0] else commands:
        module, summary = commands[name]
        command = add_command(parsers, name, summary=summary)
        if name == named and name not in ("gate", "hook"):
            import_module(f"turngate.cli.commands.{module}").declare(command)
    return parser


class _Version(argparse.Action):
    def __call__(self, *_: object) -> None:
        # lazy: loads email and zipfile
        import platform  # noqa: PLC0415
        from importlib.metadata import version  # noqa: PLC0415

        from turngate.extra_install import installed_extras  # noqa: PLC0415

        extras = ", ".join(installed_extras()) or "none"
        print(f"turngate {version('turngate')} (Python {platform.python_version()}; extras: {extras})")
        raise SystemExit(0)


def add_command(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    *,
    summary: str,
    description: str = "",
    epilog: str = "",
    examples: Mapping[str, str] | None = None,
) -> Parser:
    """Add a command to `turngate`, or an action to a command. `examples`: commands, each with what it does."""
    if examples:
        width = max(map(len, examples))
        rows = "".join(f"  {command:<{width}}   {what}\n" for command, what in examples.items())
        epilog = f"Examples:\n{rows}\n{epilog}"
    return commands.add_parser(
        name, help=summary, description=description, epilog=epilog, formatter_class=HelpFormatter
    )


def add_actions(parser: Parser) -> "argparse._SubParsersAction[Parser]":
    return parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser, prog=parser.prog, title="actions"
    )


def default_of(parser: Parser, value: object) -> object:
    """Return the default of an option: that of an action is the value which its command has."""
    return argparse.SUPPRESS if parser.prog.count(" ") > 1 else value


def add_place_options(parser: Parser) -> None:
    """Add what decides which settings are read, here or on another machine."""
    add_project_options(parser)
    parser.add_argument(
        "--ssh",
        metavar="LOCATION",
        default=default_of(parser, None),
        help="the project is this folder on another machine: [user@]host:path or ssh://[user@]host[:port]/path; a relative "
        "path begins at the home folder there; requires the `ssh` extra",
    )


def add_project_options(parser: Parser) -> None:
    """Add what decides which settings are read. Those of an action override those of its command."""
    add = parser.add_argument
    add("--project", metavar="DIR", default=default_of(parser, None), help=PROJECT_HELP)
    add(
        "--settings",
        metavar="S",
        default=default_of(parser, None),
        help="extra settings: a file or inline JSON, such as '{\"disableAllHooks\": true}'",
    )
    add(
        "--dialect",
        choices=list(DIALECT_NAMES),
        default=default_of(parser, "turngate"),
        help="follow the rules of this program (default: turngate)",
    )
    add(
        "--plugin-dir",
        action="append",
        default=default_of(parser, []),
        metavar="DIR",
        help="also run the hooks of the Claude Code plugin in this folder; may be repeated",
    )


def add_json_option(parser: Parser, what: str = "one JSON object") -> None:
    default = default_of(parser, value=False)
    parser.add_argument("--json", action="store_true", default=default, help=f"print {what}")


def add_event_options(parser: Parser, *, others: str) -> None:
    """Add an event and its fields; `others`: what happens to fields that are not given."""
    add = parser.add_argument
    add("event", type=_event_name, choices=list(EVENTS), metavar="EVENT", help=", ".join(EVENTS))
    add(
        "--input",
        metavar="FILE|JSON",
        help=f"fields of the event: a file with JSON, - for stdin, or a JSON object in braces; {others}",
    )


def _event_name(text: str) -> str:
    """Return the event of this name in any case; argparse rejects a name that is not an event."""
    return next((name for name in EVENTS if name.lower() == text.lower()), text)


def find_project_here(options: argparse.Namespace) -> str | None:
    """Return the folder of the project, which is named if it is above the current one; None if `--ssh` names the project."""
    # lazy: --help needs none of it
    from turngate.cli.project import check_one_project, project_folder, search_note  # noqa: PLC0415

    if getattr(options, "ssh", None) is not None:
        check_one_project(options.project, options.ssh)
        return None
    project = project_folder(options.project, options.dialect)
    if not getattr(options, "json", False) and (note := search_note(project, options.project)):
        print(note)
    return project


def add_hook_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--trust", action="store_true", help="also run hooks that are not approved, as they are now")
    add(
        "--strict",
        action="store_true",
        help="exit with 13 if a hook was not enforced or could not be loaded, or if one still blocks a subagent",
    )
