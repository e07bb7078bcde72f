"""The entry point: parse the arguments, run the command, return its exit code."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from turngate.cli.parser import USAGE, _parser
from turngate.cli.streams import SafeStream
from turngate.errors import UsageError

OWN_FAULT = 70


LOST = 74  # sysexits calls it EX_IOERR


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code. Called without words it is the whole program, called with words it leaves no trace."""
    if argv is None:
        return _called(sys.argv[1:])
    try:
        return _called(argv)
    finally:
        if "turngate.cli.signals" in sys.modules:
            sys.modules["turngate.cli.signals"].put_back()


def _called(words: Sequence[str]) -> int:
    sys.stdout = SafeStream(sys.stdout)
    sys.stderr = SafeStream(sys.stderr)
    try:
        return _main(words)
    finally:
        sys.stdout.flush()
        sys.stdout, sys.stderr = sys.stdout.stream, sys.stderr.stream


def _main(words: Sequence[str]) -> int:
    try:
        if not words:
            _parser(words).print_help(sys.stderr)
            return USAGE
        options = _parser(words).parse_args(words)
        # A command's module is loaded only when that command runs: start-up is felt at every stop.
        code: int = import_module(f"turngate.cli.commands.{options.command}").run(options)
    except UsageError as error:
        print(f"turngate: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if os.environ.get("TURNGATE_DEBUG"):
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"turngate: this is our own fault ({said}); TURNGATE_DEBUG=1 shows where", file=sys.stderr)
        return OWN_FAULT
    return code
