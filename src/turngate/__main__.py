"""The program: `turngate` and `python -m turngate`."""

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress


def main() -> int:
    """Run the command line; Ctrl-C at any moment ends it without a traceback."""
    # While modules load, a traceback of the imports would tell the user nothing. A handler of the caller, and an
    # ignored signal as of `nohup`, stay.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)
    if not os.environ.get("HOME", "/").startswith("/"):  # without it, the home folder is that of the account
        del os.environ["HOME"]
    _leave_out_project()
    gc.set_threshold(50_000)  # while modules load, the garbage collector would find nothing again and again
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is inherited as ignored, exit codes are lost
    from turngate.cli.main import EXIT_INTERRUPTED  # noqa: PLC0415 # lazy: loading it takes most of the start
    from turngate.cli.main import main as run  # noqa: PLC0415 # lazy: as above

    try:
        code = run(before_command=_raise_on_interrupt)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the exit code is known, and everything is printed
    return end_process(code)


def _leave_out_project() -> None:
    """Remove what PYTHONPATH and `-m` add of the current folder: a module there would replace one that is imported here."""
    added = {*os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    with suppress(OSError):  # the folder is gone
        here = os.getcwd()
        added |= {path for path in sys.path[:1] if path in ("", here)}
        inside = {path for path in added if f"{os.path.abspath(path)}/".startswith(f"{here}/")}
        sys.path[:] = [path for path in sys.path if path not in inside]


def _exit(number: int, _frame: object) -> None:
    os._exit(128 + number)


def _raise_on_interrupt() -> None:
    """Raise KeyboardInterrupt again: from now on, a command has something to clean up."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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


if __name__ == "__main__":
    sys.exit(main())
