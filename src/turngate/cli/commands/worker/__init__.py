"""`turngate worker`: run subagents that sessions on other machines have started."""

import argparse
import os
import re

from turngate.cli.arguments import EXIT_ALL_SIGNALS, EXIT_INTERNAL, Parser, add_project_options
from turngate.cli.commands.run import PERMISSION_MODES
from turngate.state.paths import REGISTRY_URL

DRAIN_S = 25.0  # Kubernetes kills a process 30 s after it has asked it to end


def declare(parser: Parser) -> None:
    parser.description = """\
Claim the subagents that the registry in PostgreSQL holds for workers, and run them in this project, each in a session of its
own. The project can also be ssh://[user@]host[:port]/path, or the URL of a git repository: one that ends with .git or begins
with https:// or user@host:. Gates, approvals, models and keys are those of this machine. A subagent whose gates are not all
asked here is left to other workers. On SIGTERM, claim no more, give running subagents time to finish (--drain), and give
back those that do not."""
    parser.epilog = f"""\
Examples:
  turngate worker --slots 4                                  in this project's folder
  turngate worker --label gpu --project ssh://me@build/srv/app
  turngate worker --slots 4 --project git@host:app.git       each subagent in a work tree of a clone
  turngate run --subagents workers -p '…'                    a session whose subagents run on workers; `git`: on a clone

Exit codes:
  0   drained: after SIGTERM every subagent has ended
  64  wrong usage, or the registry cannot be used
  {EXIT_INTERNAL}
  {EXIT_ALL_SIGNALS};
           unfinished subagents were given back"""
    add = parser.add_argument
    add("--slots", type=_slots, default=1, metavar="N", help="subagents at once (default: %(default)s)")
    add(
        "--label",
        action="append",
        default=[],
        type=_label,
        metavar="L",
        help="also claim subagents whose agent type asks for this label; may be repeated",
    )
    add("--model", metavar="M", help="PROVIDER:NAME or scripted:FILE (default: the model each subagent had)")
    add_project_options(parser)
    add("--trust", action="store_true", help="also run hooks that are not approved, as they are now")
    add(
        "--permission-mode",
        choices=PERMISSION_MODES,
        default="bypassPermissions",
        metavar="MODE",
        help="the most that subagents may do; a stricter mode of their session still applies (default: %(default)s)",
    )
    add(
        "--drain",
        type=float,
        default=DRAIN_S,
        metavar="S",
        help="seconds that running subagents have to finish after SIGTERM (default: %(default)g)",
    )
    add(
        "--local-postgres",
        action="store_true",
        help="start a PostgreSQL server for this worker, to try it out; it ends with the worker",
    )


def _slots(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)


def _label(text: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,64}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a label: letters, digits, `.`, `_` and `-`")
    return text


def run(options: argparse.Namespace) -> int:
    # lazy: `--help` needs no agent
    from turngate.cli.commands.runs.summary import registry_setting  # noqa: PLC0415
    from turngate.cli.commands.worker.work import run_worker  # noqa: PLC0415
    from turngate.subagents.registry.registry import registry_url  # noqa: PLC0415

    if options.local_postgres:
        from turngate.cli.commands.worker.local_postgres import local_postgres  # noqa: PLC0415 # as above

        with local_postgres() as url:
            print(f"in other terminals: export TURNGATE_REGISTRY='{url}'", flush=True)
            os.environ[REGISTRY_URL] = url
            return run_worker(options)
    registry_url(registry_setting(), needed_by="a worker")
    return run_worker(options)
