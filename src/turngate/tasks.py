"""Two things that asyncio lacks: work that finishes although it is cancelled, and threads that nobody waits for."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(work: Awaitable[T]) -> T:
    """Finishes bounded work although the task is cancelled meanwhile, however often; then the cancellation passes."""
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


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Calls a function in a thread of its own: a pool can be busy, and one that never returns holds up no exit.

    Raises RuntimeError when no thread can be started.
    """
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

    threading.Thread(target=work, daemon=True, name="turngate").start()
    return await done


def _succeed(done: "asyncio.Future[T]", result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[Any]", raised: BaseException) -> None:
    """A future holds no StopIteration, and a thread's SystemExit must not end the program."""
    if not done.done():
        fits = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
        done.set_exception(raised if fits else RuntimeError(repr(raised)))
