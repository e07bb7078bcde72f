"""Signals that ask us to go."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


_before: dict[signal.Signals, Any] = {}  # the handlers that were there


def run_loop(work: Coroutine[Any, Any, T], stop: Callable[[signal.Signals], None]) -> T:
    """Runs to the end; a signal is given to `stop`, also one that comes while the loop is being made.

    What our caller ignores, as nohup does, we ignore too. Afterwards every one of them is ignored: all that is left
    is to print what came of it, and an impatient second Ctrl-C must not take that away. `main` puts them back.
    """
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    heard = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]
    _before.update((number, handlers[number]) for number in heard)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    async def listening() -> T:
        for number in heard:
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            return await work
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    try:
        return asyncio.run(listening())
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def put_back() -> None:
    """Whoever calls a command from Python has its own handlers again."""
    while _before:
        signal.signal(*_before.popitem())


def run_until_signal(work: Coroutine[Any, Any, T]) -> T | signal.Signals:
    """Runs to the end, or to a signal: then everything is cancelled in order."""
    caught: list[signal.Signals] = []
    tasks: list[asyncio.Task[T]] = []

    def stop(number: signal.Signals) -> None:
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

    return run_loop(supervise(), stop)
