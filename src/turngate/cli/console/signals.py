"""Run a coroutine until it ends, until a signal asks the process to end, or until nothing waits for the process."""

import asyncio
import os
import select
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from turngate.cli.main import EndedBySignal

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

WAITED_FOR_POLL_S = 1.0  # how often it is tested whether something waits for this process

_replaced: dict[signal.Signals, Any] = {}  # handlers of the caller, until restore_handlers()


def run_loop(
    work: Coroutine[Any, Any, T], on_signal: Callable[[signal.Signals], None], *, for_host: bool = False
) -> T:
    """Run `work` to its end and pass every signal to `on_signal`.

    If nothing waits for the process any more, that counts as SIGHUP: with `for_host`, if the parent process is gone or
    stdout has no reader; otherwise if both is so, because a person may have left it in the background.

    Signals are blocked while the event loop starts, so none is lost. A signal that the caller ignores, as nohup does,
    stays ignored. After the loop every signal is ignored: only output is left to print, and a second Ctrl-C must not
    prevent that.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]
    _replaced.update((number, handlers[number]) for number in handled)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    parent, has_stdout = os.getppid(), not _stdout_events() & select.POLLNVAL

    def test_waited_for() -> None:
        gone = (os.getppid() != parent, has_stdout and bool(_stdout_events()))
        if any(gone) if for_host else all(gone):
            on_signal(signal.SIGHUP)
        else:
            asyncio.get_running_loop().call_later(WAITED_FOR_POLL_S, test_waited_for)

    async def run_with_handlers() -> T:
        for number in handled:
            asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        asyncio.get_running_loop().call_soon(test_waited_for)
        try:
            return await work
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            for number in handled:
                _ignore(number, asyncio.get_running_loop())

    try:
        return asyncio.run(run_with_handlers())
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _stdout_events() -> int:
    """Return the errors of stdout, such as POLLERR for a pipe without a reader, or 0."""
    stdout = select.poll()
    stdout.register(1, 0)
    return sum(events for _, events in stdout.poll(0))


def _ignore(number: signal.Signals, loop: asyncio.AbstractEventLoop) -> None:
    """Ignore a signal before the loop closes, which would restore Python's own handler, and KeyboardInterrupt.

    That the main thread blocks the signal is not enough: another thread may receive it.
    """
    while signal.getsignal(number) is not signal.SIG_IGN:
        try:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        except KeyboardInterrupt:
            continue


def restore_handlers() -> None:
    """Restore the signal handlers of a caller that runs a command from Python."""
    while _replaced:
        signal.signal(*_replaced.popitem())


def run_until_signal(
    work: Coroutine[Any, Any, T], *, for_host: bool = False, drain: asyncio.Event | None = None
) -> T | signal.Signals:
    """Return the result of `work`, or the first signal, which cancels `work`. `for_host`: see `run_loop`.

    `drain`: what the first SIGTERM sets instead.
    """
    caught: list[signal.Signals] = []
    tasks: list[asyncio.Task[T]] = []

    def cancel(number: signal.Signals) -> None:
        if number == signal.SIGTERM and drain and not drain.is_set():
            drain.set()
            return
        caught.append(number)
        for task in tasks:
            task.cancel()

    async def supervise() -> T | signal.Signals:
        tasks.append(asyncio.create_task(work))
        try:
            return await tasks[0]
        except asyncio.CancelledError:
            if not caught:
                raise
            return caught[0]

    return run_loop(supervise(), cancel, for_host=for_host)


def run_to_end(work: Coroutine[Any, Any, T], then: str, *, for_host: bool = False) -> T:
    """Return the result of `work`. Raises EndedBySignal, whose message ends with `then`."""
    ended = run_until_signal(work, for_host=for_host)
    if isinstance(ended, signal.Signals):
        raise EndedBySignal(ended.name, ended, then)
    return ended
