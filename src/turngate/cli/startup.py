"""The start and the end of the program: Ctrl-C while its modules load, and an end without delay."""

# What `signal` wraps. `signal` loads enum, functools and collections, which takes a third of Python's own start.
import _signal as signal  # type: ignore[import-not-found]
import atexit
import os
import sys

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


def end_process(code: int) -> int:
    """End the process now. Python would free every object first, which the kernel does in no time.

    Returns the code, for the usual end, if there is a thread to wait for or output that cannot be written.
    """
    threading = sys.modules.get("threading")
    if threading and any(not t.daemon and t is not threading.main_thread() for t in threading.enumerate()):
        return code
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for it
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return code
    os._exit(code)


def _exit(_number: int, _frame: object) -> None:
    os._exit(EXIT_INTERRUPTED)
