"""The program: `turngate` and `python -m turngate`."""

import sys

from turngate.cli.startup import EXIT_INTERRUPTED, end_process, exit_on_interrupt, ignore_interrupts


def main() -> int:
    """Run the command line; Ctrl-C at any moment ends it without a traceback."""
    exit_on_interrupt()
    from turngate.cli.main import main as run  # noqa: PLC0415 # lazy: loading it takes most of the start

    try:
        code = run()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    finally:
        ignore_interrupts()
    return end_process(code)


if __name__ == "__main__":
    sys.exit(main())
