"""Finish bounded work despite cancellation, and tell whose cancellation it was."""

import asyncio
from collections.abc import Awaitable

from turngate.aio.threads import T


async def finish_despite_cancel(work: Awaitable[T]) -> T:
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


async def raise_if_cancelled(work: Awaitable[T]) -> T:
    """Foreign code that swallows our cancellation has no answer either."""
    ours = asyncio.current_task()
    before = ours.cancelling() if ours else 0
    answer = await work
    if ours and ours.cancelling() > before:
        raise asyncio.CancelledError
    return answer


def current_task_cancelled() -> bool:
    """Is it our own task that was cancelled, and not something that foreign code cancelled itself?"""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
