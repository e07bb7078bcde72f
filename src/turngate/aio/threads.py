"""Call blocking functions in threads that never delay the program's exit."""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from turngate.core.text import describe_exception

T = TypeVar("T")


async def run_in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Calls a function in a thread of its own: a pool can be busy, and one that never returns holds up no exit.

    Raises RuntimeError when no thread can be started.
    """
    return await _started(function, *arguments)


class SerialThread:
    """One thread that does what it is given, one after the other: to start a thread costs as much as a small write.

    Like `in_thread` it holds up no exit.
    """

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        if self._thread is None:
            thread = threading.Thread(target=self._work, daemon=True, name="turngate")
            thread.start()
            self._thread = thread
        work, done = _prepared(function, *arguments)
        self._given.put(work)
        return await done

    def close(self) -> None:
        self._given.put(None)

    def _work(self) -> None:
        while work := self._given.get():
            work()


async def run_in_thread_or_inline(function: Callable[..., T], *arguments: object) -> T:
    """Calls a function of our own, whose work is bounded, in a thread; where none can be had, it is called here."""
    try:
        done = _started(function, *arguments)
    except RuntimeError:
        return function(*arguments)
    return await done


def _started(function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
    work, done = _prepared(function, *arguments)
    threading.Thread(target=work, daemon=True, name="turngate").start()
    return done


def _prepared(
    function: Callable[..., T], *arguments: object
) -> "tuple[Callable[[], None], asyncio.Future[T]]":
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function, *arguments)
        except BaseException as raised:  # noqa: BLE001 - whoever waits for it gets it
            answer(_fail, raised)
        else:
            answer(_succeed, result)

    def answer(deliver: Callable[["asyncio.Future[T]", Any], None], what: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(deliver, done, what)

    return work, done


def _succeed(done: "asyncio.Future[T]", result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[Any]", raised: BaseException) -> None:
    """A future holds no StopIteration, and a thread's SystemExit must not end the program."""
    if not done.done():
        fits = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
        done.set_exception(raised if fits else RuntimeError(describe_exception(raised)))
