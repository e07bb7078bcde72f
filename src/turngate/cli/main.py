"""Entry point of the command line: find the command, run it, return its exit code."""

import os
import sys
from collections.abc import Callable, Sequence

from turngate.cli.console.streams import SafeStream
from turngate.errors import RegistryError, UsageError

EXIT_ALLOWED = 0
EXIT_PROBLEMS = 1  # `check` found problems, or the demo did not end as it should
EXIT_BLOCKED = 10
EXIT_HALTED = 11
EXIT_WAITING = 12
EXIT_NOT_ENFORCED = 13
EXIT_FAILED = 20
EXIT_USAGE = 64  # EX_USAGE of sysexits.h
EXIT_INTERNAL_ERROR = 70  # EX_SOFTWARE
EXIT_IO_ERROR = 74  # EX_IOERR
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_READER_GONE = 141  # 128 + SIGPIPE, as of other programs in a pipe
EXIT_CODES = {  # by the outcome of a turn
    "completed": EXIT_ALLOWED,
    "capped": EXIT_BLOCKED,
    "halted": EXIT_HALTED,
    "waiting": EXIT_WAITING,
    "error": EXIT_FAILED,
    "interrupted": EXIT_INTERRUPTED,
}


class EndedBySignal(Exception):
    """Raised after a signal has ended the work of a command; the message names it, and what has become of the work."""

    def __init__(self, name: str, number: int, then: str) -> None:
        super().__init__(f"ended by {name}{then}")
        self.code = 128 + number


# A command: its module in `commands`, and its line in `turngate --help`. A module has `declare(parser)`, which adds the
# arguments, and `run(options)`. `gate` and `hook` read their words themselves: agent programs run them at every stop.
COMMANDS = {
    "demo": ("demo", "watch one blocked stop, offline, in a few seconds"),
    "init": ("init", "find this project's checks and write a gate for each"),
    "install": ("install", "add Turngate to Claude Code, Codex, Gemini CLI …"),
    "uninstall": ("install", "remove it from that program's settings"),
    "status": ("status", "show agent programs, gates, approvals and what to do next"),
    "hooks": ("hooks", "list hooks, see what changed, approve or reject them"),
    "goal": ("goal", "hold one session until a goal is met"),
    "check": ("check", "report every problem in the settings"),
    "doctor": ("doctor", "explain why a hook will or won't run; --prove tests each gate"),
    "log": ("log", "show what the hooks did; mark a block as wrong"),
    "stats": ("stats", "show how often each gate ran, blocked and was wrong"),
    "serve": ("serve", "show gates, sessions and stops in a browser"),
    "top": ("top", "watch running sessions and gates in the terminal"),
    "backtest": ("backtest", "ask gates about earlier conversations: what would they block?"),
    "replay": ("replay", "check an earlier stop again, with the files as they were"),
    "fire": ("fire", "run the hooks of one event once and print the verdict"),
    "gates": ("gates", "run a project's gates without an agent, as CI does"),
    "gate": ("gate", "check one ready-made gate: tests, lint, a clean tree …"),
    "hook": ("hook", "run as a stop hook inside Claude Code, Codex, Gemini CLI …"),
    "acp": ("acp", "check the stops of any agent of an editor (ACP)"),
    "run": ("run", "run the built-in agent on a task under its stop hooks"),
    "sessions": ("sessions", "list, show or remove earlier conversations"),
    "runs": ("runs", "list, steer, kill and recover subagents"),
    "worker": ("worker", "run subagents that sessions on other machines have started"),
    "workers": ("workers", "list the workers that are running"),
    "registry": ("registry", "create the registry of subagents for several machines"),
    "schema": ("schema", "print the JSON Schemas of settings, hook input and hook output"),
    "completion": ("completion", "print the completion script for bash, zsh or fish"),
}


def main(argv: Sequence[str] | None = None, *, before_command: Callable[[], None] = lambda: None) -> int:
    """Run one command and return its exit code. `before_command` is called when its module is loaded.

    Without `argv` the process ends afterward. With `argv` the caller lives on, so its signal handlers are restored.
    """
    if argv is None:
        return _run_with_safe_streams(sys.argv[1:], before_command)
    try:
        return _run_with_safe_streams(argv, before_command)
    finally:
        if "turngate.cli.console.signals" in sys.modules:
            sys.modules["turngate.cli.console.signals"].restore_handlers()


def _run_with_safe_streams(argv: Sequence[str], before_command: Callable[[], None]) -> int:
    sys.stdout = SafeStream(sys.stdout)
    sys.stderr = SafeStream(sys.stderr, after=sys.stdout)
    try:
        return _with_stdout_error(_run_command(argv, before_command), sys.stdout)
    except SystemExit as ended:  # --help and --version
        raise SystemExit(_with_stdout_error(int(ended.code or 0), sys.stdout)) from None
    finally:
        sys.stdout.flush()
        sys.stdout, sys.stderr = sys.stdout.stream, sys.stderr.stream


def _with_stdout_error(code: int, stdout: SafeStream) -> int:
    """Report that the output was lost, and return a code that says so unless the command's own is an error.

    A reader that has left, such as `head`, has what it wants: that is not reported.
    """
    stdout.flush()
    if stdout.error is None or stdout.is_reported:
        return code
    if stdout.reader_is_gone:
        return code or EXIT_READER_GONE
    print(f"turngate: the output could not be written to stdout ({stdout.error})", file=sys.stderr)
    return code or EXIT_IO_ERROR


def _run_command(argv: Sequence[str], before_command: Callable[[], None]) -> int:
    try:
        return _parse_and_run(argv, before_command)
    except (UsageError, RegistryError) as error:
        print(f"turngate: {error}", file=sys.stderr)
        return EXIT_USAGE
    except EndedBySignal as ended:
        print(f"turngate: {ended}", file=sys.stderr)
        return ended.code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        if os.environ.get("TURNGATE_DEBUG"):
            raise
        print(f"turngate: {describe_internal_error(error)}", file=sys.stderr)
        return EXIT_INTERNAL_ERROR


def _parse_and_run(argv: Sequence[str], before_command: Callable[[], None]) -> int:
    """Load only what this command needs: every stop of an agent pays for the start-up time."""
    if argv and argv[0] in ("gate", "hook"):
        # lazy: see above
        from turngate.cli.commands import hook  # noqa: PLC0415
        from turngate.cli.hook_input import run_hook_command  # noqa: PLC0415
        from turngate.cli.stop_cache import run_gate  # noqa: PLC0415

        before_command()
        run = run_gate if argv[0] == "gate" else hook.run
        return run_hook_command(f"turngate {argv[0]}", run, [*argv[1:]])
    from importlib import import_module  # noqa: PLC0415 # lazy: see above

    from turngate.cli.arguments import build_parser  # noqa: PLC0415 # lazy: it loads argparse

    parser = build_parser(argv, COMMANDS)
    if not argv:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    options = parser.parse_args(argv)
    command = import_module(f"turngate.cli.commands.{COMMANDS[options.command][0]}")
    before_command()
    code: int = command.run(options)
    return code


def describe_internal_error(error: Exception) -> str:
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return f"internal error: {message}; set TURNGATE_DEBUG=1 for the traceback"
