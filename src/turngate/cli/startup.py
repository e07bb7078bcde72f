"""Ctrl-C while the program loads its modules."""

import os
import signal

EXIT_INTERRUPTED = 130  # 128 + SIGINT


def exit_on_interrupt() -> None:
    """End the program at once when Ctrl-C is pressed: a traceback of the imports would tell the user nothing.

    A handler of the caller, and an ignored signal as of `nohup`, stay.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def raise_on_interrupt() -> None:
    """Raise KeyboardInterrupt again: from now on, a command has something to clean up."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C while Python ends: the exit code is known, and everything is printed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _exit(_number: int, _frame: object) -> None:
    os._exit(EXIT_INTERRUPTED)
