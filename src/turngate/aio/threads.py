"""Blocking functions in threads that never delay the program's exit, bounded work despite cancellation, and whose cancellation it was."""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeVar

from turngate.core.text import describe_exception

T = TypeVar("T")


async def run_in_thread(function: Callable[..., T], *args: object) -> T:
    """Call a function in a daemon thread of its own.

    A pool could be busy, and a pool's thread that never returns would delay the exit.
    Raises RuntimeError when no thread can be started.
    """
    call, result = _prepare(function, *args)
    _start_thread(call)
    return await result


@contextlib.contextmanager
def event_loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a daemon thread; at the end, cancel what still runs in it."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True, name="turngate")
        thread.start()
        try:
            yield loop
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


class SerialThread:
    """A daemon thread that makes one call after another: to start one for each small write would cost as much as the write."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = False

    async def call(self, function: Callable[..., T], *args: object) -> T:
        if not self._started:
            _start_thread(self._run)
            self._started = True
        call, result = _prepare(function, *args)
        self._calls.put(call)
        return await result

    def close(self) -> None:
        """End the thread after the calls that wait; a later call starts another one."""
        if self._started:
            self._started = False
            self._calls.put(None)

    def _run(self) -> None:
        while call := self._calls.get():
            call()


def _start_thread(target: Callable[[], None]) -> None:
    threading.Thread(target=target, daemon=True, name="turngate").start()


def _prepare(function: Callable[..., T], *args: object) -> "tuple[Callable[[], None], asyncio.Future[T]]":
    """Return the call to make in the thread, and the future that gets its result."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def call() -> None:
        try:
            set_future = partial(future.set_result, context.run(function, *args))
        except BaseException as raised:  # noqa: BLE001 - the waiting coroutine gets it
            set_future = partial(future.set_exception, _as_exception(raised))
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lambda: None if future.done() else set_future())

    return call, future


def _as_exception(raised: BaseException) -> Exception:
    """Return an Exception that a future accepts, and that neither ends the program (SystemExit) nor closes the waiting coroutine (GeneratorExit)."""
    if isinstance(raised, Exception) and not isinstance(raised, StopIteration):
        return raised
    return RuntimeError(describe_exception(raised))


# Cancellation


class CallbackCancelledItself(RuntimeError):
    """Foreign code ended with a cancellation that its caller did not request."""


async def finish_despite_cancel(work: Awaitable[T]) -> T:
    """Finish bounded work however often the task is cancelled meanwhile, then raise CancelledError."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = not task.cancelled()
    if cancelled:
        raise asyncio.CancelledError
    return task.result()


async def raise_if_cancelled(work: Awaitable[T]) -> T:
    """Await foreign code; discard its result when it swallowed our cancellation."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    result = await work
    if task and task.cancelling() > before:
        raise asyncio.CancelledError
    return result


def current_task_cancelled() -> bool:
    """Tell a cancellation of the current task from one that foreign code made itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
