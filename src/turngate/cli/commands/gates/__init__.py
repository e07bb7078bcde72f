"""`turngate gates`: its arguments and those of its actions."""

import argparse

from turngate.cli.arguments import (
    EXIT_CODES_OF_OUTPUT,
    EXIT_ERRORS,
    EXIT_ERRORS_AND_SIGNALS,
    EXIT_USAGE,
    Parser,
    add_actions,
    add_command,
    add_json_option,
    add_place_options,
)


def declare(parser: Parser) -> None:
    parser.description = """\
Run or list a project's gates: the hooks that block an agent's stop and can decide without an agent.
`turngate gates ACTION --help` explains an action."""
    parser.epilog = f"""\
Examples:
  turngate gates run                       all gates of this project, in order
  turngate gates run tests                 one of them: its id, or its key in `turngate hooks`
  turngate gates run --trust               in CI of your own repository: also run gates that are not approved
  turngate gates run --ssh build:src/app   the gates of a project on another machine, which run there
  turngate gates accept 3fa9 --why "…"     accept that a session ended with a gate still blocking
  turngate gates                           list the gates, and which of them need an agent

{EXIT_CODES_OF_OUTPUT}"""
    add_place_options(parser)
    add_json_option(parser)
    actions = add_actions(parser)
    action = add_command(
        actions,
        "run",
        summary="run the gates, and print one line for each",
        description="""\
Run the gates and the command hooks of all stops one after another, in the project itself, and print one line
for each, with the reason if it fails. Hooks that need a conversation, a model or an agent are listed as left
out. Results of earlier runs are not used, and nothing is recorded. Without a session, there is no starting
point to compare with: `ifChanged` and `ifTouched` skip nothing, and `touched`, `untouched` and `no-stubs`
need --base.""",
        epilog=f"""\
Examples:
  turngate gates run                              the same checks that the agent has to pass
  turngate gates run lint types                   only these
  turngate gates run --base origin/main --trust   in CI, for the changes of a pull request
  turngate gates run --json                       one JSON object for programs
  turngate gates run --format junit > gates.xml   a report for CI: junit, sarif, markdown, github

Exit codes:
  0   all passed
  1   a gate failed
  13  no gate failed, but one could not run, is not approved or could not be loaded, or there are no gates;
      0 with --lenient
  {EXIT_USAGE}, including an unknown gate
  {EXIT_ERRORS_AND_SIGNALS}""",
    )
    add = action.add_argument
    add("names", nargs="*", metavar="NAME", help="the gates (default: all)")
    add_place_options(action)
    add_json_option(action)
    add(
        "--format",
        choices=["text", "json", "markdown", "github", "junit", "sarif"],
        default="text",
        help="what is printed: text, or a report for other programs; `github` annotates files and lines in a workflow",
    )
    add("--lenient", action="store_true", help="exit with 0 even if a gate could not run")
    add(
        "--base",
        metavar="REV",
        help="compare with the last commit that HEAD has in common with REV, e.g. origin/main",
    )
    add("--trust", action="store_true", help="also run gates that are not approved, as they are now")
    action = add_command(
        actions,
        "accept",
        summary="accept that a session ended with a gate still blocking",
        description="""\
Record, in the journal and in the project's .turngate/accepted.jsonl, that you accept what still blocks at the end of a
session. `turngate gates run` reports what the file says; a gate that fails still fails. Only a person can accept.""",
        epilog=f"""\
Examples:
  turngate log --open                                   which sessions ended with a gate still blocking
  turngate gates accept 3fa9 --why "flaky, see #12"     the session, by the beginning of its id

Exit codes:
  0   recorded
  {EXIT_USAGE}, or started by a hook or an agent
  {EXIT_ERRORS}""",
    )
    action.add_argument("session", metavar="SESSION", help="the beginning of the id of the session")
    action.add_argument("--why", metavar="TEXT", required=True, help="the reason, which others will read")
    action = add_command(
        actions,
        "list",
        summary="print the gates, and why some need an agent (the default)",
        description="Print the hooks of all stops, each with what it runs and, if `gates run` leaves it out, why.",
        epilog=EXIT_CODES_OF_OUTPUT,
        examples={"turngate gates list": "all of them", "turngate gates list --json": "for programs"},
    )
    add_place_options(action)
    add_json_option(action)


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.gates.actions import run_action  # noqa: PLC0415 # lazy: --help needs none of it

    return run_action(options)
