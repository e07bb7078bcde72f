"""What asyncio lacks: work that finishes although it is cancelled, threads that nobody waits for, calls that must end."""

import asyncio
import contextlib
import contextvars
import inspect
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
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


STUBBORN = 0.5  # seconds that foreign code gets to clean up after its cancellation


async def call(callback: Callable[[Any], Any], event: Any) -> Any:
    """Calls a function of the user's: a coroutine function in the loop, any other in a thread."""
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
        return await _driven(callback(event))
    result = await in_thread(callback, event)
    return await _driven(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@types.coroutine
def _driven(work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Awaits a coroutine by driving it step by step, in our own task.

    One that catches its cancellation and goes on gets half a second to clean up. Then it is driven no more:
    nothing that it does can hold us, and no second task is needed for that.
    """
    ours = asyncio.current_task()
    before = ours.cancelling() if ours else 0
    impatience: asyncio.TimerHandle | None = None
    step: Callable[[Any], Any] = work.send
    argument: Any = None
    try:
        while True:
            try:
                waits_for = step(argument)
            except StopIteration as end:
                return end.value
            if impatience is not None and ours is not None and ours.cancelling() <= before:
                impatience.cancel()  # it was a time limit of its own, and it has dealt with it
                impatience = None
            try:
                argument = yield waits_for
                step = work.send
            except BaseException as raised:
                if impatience is not None:
                    _abandon(work, impatience)
                    raise
                if isinstance(raised, asyncio.CancelledError):
                    task = asyncio.current_task()
                    assert task is not None  # noqa: S101 - a coroutine that waits is in a task
                    impatience = task.get_loop().call_later(STUBBORN, task.cancel)
                step, argument = work.throw, raised
    finally:
        if impatience is not None:
            impatience.cancel()


def _abandon(work: Coroutine[Any, Any, Any], impatience: asyncio.TimerHandle) -> None:
    task = asyncio.current_task()
    if task is not None and impatience.when() <= task.get_loop().time():
        task.uncancel()  # the second cancellation was ours
    with contextlib.suppress(RuntimeError):  # it ignores even its end
        work.close()


def is_cancelled() -> bool:
    """Is it our own task that was cancelled, and not something that foreign code cancelled itself?"""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
