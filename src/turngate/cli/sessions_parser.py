"""The arguments of `turngate sessions` and `turngate log`."""

import argparse

from turngate.cli.arguments import EXIT_INTERNAL, EXIT_OUTPUT, EXIT_SIGNALS, Parser, add_command

SSH_HINT = "name a project on another machine as `turngate sessions` lists it: --project ssh://…"


def add_sessions(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "sessions",
        summary="list, show or remove earlier conversations",
        description="List, show or remove earlier conversations, also those with -p. Each is a folder below ~/.local/state/turngate\n"
        "(or TURNGATE_STATE) with the transcript and the journal of its hooks. `turngate run --resume --session ID`\n"
        "continues one, `turngate log ID` shows what its hooks did.",
        examples=(
            "turngate sessions                   all of them, the newest first",
            "turngate sessions --project .       those of this project",
            "turngate sessions show 3fa9         one conversation; the beginning of its id is enough",
            "turngate sessions prune --days 7    remove those older than a week",
        ),
        exit_codes=(
            "0   done",
            "64  wrong usage, also an id that is unknown or ambiguous",
            EXIT_INTERNAL,
            EXIT_OUTPUT,
        ),
    )
    parser.ssh_hint = SSH_HINT
    add = parser.add_argument
    actions = ["list", "show", "prune"]
    add("action", nargs="?", choices=actions, default="list", metavar="ACTION", help="list, show or prune")
    add("session", nargs="?", metavar="ID", help="the session or subagent to show: the beginning of its id")
    add(
        "--project",
        metavar="DIR",
        help="list only the sessions of this project: a folder, or ssh://… as it is listed",
    )
    add("--days", type=float, help="prune sessions older than this (default: the setting, or 30)")
    add("--json", action="store_true", help="print one JSON list")


def add_log(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "log",
        summary="show what the hooks did",
        description="Show what the hooks of a session did: every hook run, every verdict, every turn that did not end as\n"
        "allowed (capped, stalled, halted, interrupt …), and every warning about plugins and subagents. A heading\n"
        "names the date, the project and the session of the lines below it.",
        examples=(
            "turngate log                     this project's session whose hooks ran last",
            "turngate log 3fa9                another session; the beginning of its id is enough",
            "turngate log --project ../api    another project",
            "turngate log --follow            print new lines, also of sessions that begin later, until Ctrl-C",
            "turngate log -v                  with every line of every reason",
            "turngate log --json              one JSON object per line, with all that is known of a run",
        ),
        exit_codes=(
            "0   printed",
            "64  wrong usage, also if no hook has run yet, and an id that is unknown or ambiguous",
            EXIT_INTERNAL,
            EXIT_OUTPUT,
            EXIT_SIGNALS,
        ),
    )
    parser.ssh_hint = SSH_HINT
    add = parser.add_argument
    add(
        "id",
        nargs="?",
        metavar="ID",
        help="the beginning of the id of a session, or of a subagent in it (default: the session whose hooks ran last,\n"
        "in this project or, if none ran in it, in any)",
    )
    add("--session", metavar="ID", help="the same as ID")
    add(
        "--project",
        metavar="DIR",
        help="show only what the hooks of this project did: a folder, or ssh://… as `turngate sessions` lists it",
    )
    add("--follow", action="store_true", help="wait for new lines; without ID also those of other sessions")
    add(
        "-v",
        "--verbose",
        action="store_true",
        help="show every line of every reason, not only the first ones",
    )
    add("--json", action="store_true", help="print one JSON object per line")
