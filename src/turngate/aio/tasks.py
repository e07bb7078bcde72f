"""Tasks that run in the background."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class BackgroundTasks:
    """Keeps each task until it ends: the event loop has only weak references."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, limit: float) -> None:
        """Wait for all tasks, and cancel those that have not ended within `limit` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limit)
        for task in tuple(self._tasks):
            task.cancel()
            await asyncio.wait({task})
