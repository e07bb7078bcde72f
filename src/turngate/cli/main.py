"""Entry point of the command line: parse the arguments, run the command, return its exit code."""

import os
import sys

from turngate.cli.console.streams import SafeStream
from turngate.cli.fire_arguments import read_fire_arguments
from turngate.cli.startup import EXIT_INTERRUPTED, raise_on_interrupt
from turngate.errors import UsageError

Arguments = list[str] | tuple[str, ...]

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
EXIT_READER_GONE = 141  # 128 + SIGPIPE, as of other programs in a pipe


def main(argv: Arguments | None = None) -> int:
    """Run one command and return its exit code.

    Without `argv` the process ends afterwards. With `argv` the caller lives on, so its signal handlers are restored.
    """
    if argv is None:
        return _run_with_safe_streams(sys.argv[1:])
    try:
        return _run_with_safe_streams(argv)
    finally:
        if "turngate.cli.console.signals" in sys.modules:
            sys.modules["turngate.cli.console.signals"].restore_handlers()


def _run_with_safe_streams(argv: Arguments) -> int:
    sys.stdout = SafeStream(sys.stdout)
    sys.stderr = SafeStream(sys.stderr, after=sys.stdout)
    try:
        return _with_stdout_error(_run_command(argv), sys.stdout)
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


def _run_command(argv: Arguments) -> int:
    try:
        return _parse_and_run(argv)
    except UsageError as error:
        print(f"turngate: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:
        if os.environ.get("TURNGATE_DEBUG"):
            raise
        _print_internal_error(error)
        return EXIT_INTERNAL_ERROR


def _parse_and_run(argv: Arguments) -> int:
    """Load only what this command needs: every stop of an agent pays for the start-up time."""
    if fire_options := read_fire_arguments(argv):
        from turngate.cli.commands import fire  # noqa: PLC0415 # lazy: see above

        raise_on_interrupt()
        return fire.run(fire_options)
    if argv and argv[0] == "gate":
        from turngate.cli.commands import gate  # noqa: PLC0415 # lazy: see above

        raise_on_interrupt()
        return gate.run([*argv[1:]])
    if argv and argv[0] == "hook":
        from turngate.cli.commands import hook  # noqa: PLC0415 # lazy: see above

        raise_on_interrupt()
        return hook.run([*argv[1:]])
    from importlib import import_module  # noqa: PLC0415 # lazy: see above

    from turngate.cli.parser import build_parser  # noqa: PLC0415 # lazy: it loads argparse

    parser = build_parser(argv)
    if not argv:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    options = parser.parse_args(argv)
    command = import_module(f"turngate.cli.commands.{options.command}")
    raise_on_interrupt()
    code: int = command.run(options)
    return code


def _print_internal_error(error: Exception) -> None:
    message = " ".join(f"{type(error).__name__}: {error}".split())
    print(f"turngate: internal error: {message}; set TURNGATE_DEBUG=1 for the traceback", file=sys.stderr)
