"""`turngate runs`: its arguments and those of its actions."""

import argparse

from turngate.cli.arguments import (
    EXIT_INTERNAL,
    EXIT_OUTPUT,
    EXIT_SIGNALS,
    PROJECT_HELP,
    Parser,
    add_actions,
    add_command,
)

EXIT_CODES = f"""\
Exit codes:
  0   done
  64  wrong usage, also an unknown or finished run
  {EXIT_INTERNAL}
  {EXIT_OUTPUT}
  {EXIT_SIGNALS}"""


def declare(parser: Parser) -> None:
    parser.description = """\
Show running and finished subagents, give them new prompts, end them, and recover them after a crash.
`turngate runs ACTION --help` explains an action."""
    parser.epilog = f"""\
Examples:
  turngate runs                           a table: state, duration, redirects and their reason
  turngate runs show 3fa9                 one subagent; the beginning of its id is enough
  turngate runs steer 3fa9 'only src/'    interrupt it and continue with this prompt
  turngate runs kill 3fa9                 end it and every subagent below it
  turngate runs recover                   continue the subagents of processes that died

{EXIT_CODES}"""
    _add_list_options(parser, default=False)
    actions = add_actions(parser)
    _add_list(actions)
    _add_show(actions)
    _add_steer(actions)
    _add_kill(actions)
    _add_recover(actions)


def _add_list(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "list",
        summary="print a table of all subagents (the default)",
        description="""\
Print one line per subagent, the newest last; * marks those that are not finished. BACK is the number
of redirects by hooks, and their limit. A finished subagent is removed from the list after five minutes,
but not before its parent has its result.""",
        epilog=EXIT_CODES,
    )
    _add_list_options(parser, default=argparse.SUPPRESS)


def _add_show(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "show",
        summary="print everything about one subagent",
        description="""\
Print the task, each run with its prompt, outcome, reason, seconds and tokens, the result, and the path
of the transcript.""",
        epilog=EXIT_CODES,
    )
    _add_run_id(parser)
    parser.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON object"
    )


def _add_steer(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "steer",
        summary="give a subagent a new prompt",
        description="""\
Interrupt a subagent; it continues its conversation with your prompt. A steer does not count against
the limit of redirects. A prompt has at most 4000 characters; steers are at least two seconds apart.""",
        epilog=EXIT_CODES,
    )
    _add_run_id(parser)
    parser.add_argument("prompt", metavar="PROMPT", help="the new prompt; - reads stdin")


def _add_kill(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "kill",
        summary="end a subagent and every subagent below it",
        description="End a subagent and every subagent below it. No hook runs; the parent learns that it was killed.",
        epilog=EXIT_CODES,
    )
    _add_run_id(parser, nargs="?")
    parser.add_argument(
        "--all",
        action="store_true",
        dest="every",
        help="kill every running subagent; with an ID: those of the session whose id begins so",
    )


def _add_recover(actions: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        actions,
        "recover",
        summary="continue the subagents of processes that died",
        description="""\
Take over the project's subagents whose process died, each where it was, and run them to their end.
Their results wait for the session that started them; `turngate run --resume` delivers them.
A subagent continues only where its gates are asked; if the settings have changed, it is left alone.
Ctrl-C stops the work; what is not finished can be recovered later.""",
        epilog=f"""\
Exit codes:
  0   every subagent has ended, in whatever way
  20  a subagent could not be finished
  64  wrong usage
  {EXIT_INTERNAL}
  128 + N  ended by signal N: 129 hung up, 130 interrupted, 131 quit, 143 terminated""",
    )
    add = parser.add_argument
    add("--project", metavar="DIR", help=PROJECT_HELP)
    add("--model", metavar="M", help="PROVIDER:NAME or scripted:FILE (default: the model each subagent had)")
    add("--settings", metavar="S", help="further settings, as given to `turngate run`: a file, or JSON")
    add("--trust", action="store_true", help="also run hooks that are not approved, as they are now")
    add(
        "--current-gates",
        action="store_true",
        help="also continue subagents whose gates have changed, under the gates of now",
    )


def _add_list_options(parser: Parser, *, default: object) -> None:
    add = parser.add_argument
    add("--json", action="store_true", default=default, help="print one JSON list")
    add("--all", action="store_true", default=default, help="also list the runs that a redirect replaced")


def _add_run_id(parser: Parser, **kwargs: str) -> None:
    parser.add_argument("id", metavar="ID", help="the beginning of its id", **kwargs)  # type: ignore[arg-type]


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.runs.actions import run_action  # noqa: PLC0415 # lazy: --help needs none of it

    return run_action(options)
