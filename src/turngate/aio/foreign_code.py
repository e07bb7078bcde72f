"""Run callbacks, models and plugins: foreign code, in a separate task or thread."""

import asyncio
import contextlib
import inspect
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from turngate.aio.threads import CallbackCancelledItself, T, finish_despite_cancel, run_in_thread
from turngate.core.text import describe_exception

CANCEL_GRACE_S = 0.5  # time to clean up between the cancellation of foreign code and its end


async def call_callback(callback: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call a user's function: a coroutine function in the loop, any other in a thread. Raises what it raises, or CallbackCancelledItself."""
    if _is_async(callback):
        work = callback(*args, **keywords)
    else:
        work = await run_in_thread(partial(callback, *args, **keywords))
        if not inspect.isawaitable(work):
            return work
    try:
        return await run_isolated(work)
    except RuntimeError as error:
        cause = error.__cause__
        if isinstance(cause, SystemExit) and str(error) == describe_exception(cause):  # of run_isolated
            raise cause from None  # the caller reports it under its own name
        raise


def _is_async(callback: Callable[..., Any]) -> bool:
    if type(callback) is types.FunctionType and callback.__code__.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__)


async def run_isolated(work: Awaitable[T]) -> T:
    """Await foreign code in a task of its own, so that nothing it does to its task reaches the caller's.

    When the caller is cancelled, the work is cancelled too, gets CANCEL_GRACE_S to clean up and is then closed;
    whatever it returns by then is discarded. SystemExit and GeneratorExit become a RuntimeError.
    Raises CallbackCancelledItself.
    """
    ended = asyncio.get_running_loop().create_future()
    inner = _without_exit(work, ended)
    task = _start_task(inner)
    if not task.done():
        try:
            await ended
        except asyncio.CancelledError:
            await _end(task, inner)
            raise
    if task.cancelled():
        raise CallbackCancelledItself
    if isinstance(raised := task.exception(), GeneratorExit):
        # GeneratorExit raised from here would mean that this coroutine itself is being closed.
        raise RuntimeError(describe_exception(raised))
    return task.result()


def _start_task(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """Start a task; from Python 3.12 on its first step runs at once, which saves a turn of the loop."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True)
    return asyncio.create_task(work)


async def _end(task: "asyncio.Task[Any]", inner: Coroutine[Any, Any, Any]) -> None:
    """Cancel the task, wait for its cleanup up to the grace time, then close its coroutine."""
    task.add_done_callback(_retrieve_exception)
    task.cancel()
    try:
        await finish_despite_cancel(asyncio.wait({task}, timeout=CANCEL_GRACE_S))
    finally:  # also when we are cancelled again meanwhile
        if not task.done():
            with contextlib.suppress(BaseException):  # it may raise on GeneratorExit, or ignore it
                inner.close()
            task.cancel()  # otherwise asyncio.run would wait for it at the end of the program


async def _without_exit(work: Awaitable[T], ended: "asyncio.Future[None]") -> T:
    """Await the work without SystemExit, which would end the event loop. Setting `ended` wakes the caller sooner than a callback of the task."""
    try:
        return await work
    except SystemExit as raised:
        raise RuntimeError(describe_exception(raised)) from raised
    finally:
        if not ended.done():
            ended.set_result(None)


def _retrieve_exception(task: "asyncio.Future[Any]") -> None:
    """Mark the exception as seen, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
