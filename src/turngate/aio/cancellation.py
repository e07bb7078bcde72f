"""Finish bounded work despite cancellation, and tell whose cancellation it was."""

import asyncio
from collections.abc import Awaitable

from turngate.aio.threads import T


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
