"""Runs the registry's blocking calls on one thread, so that they never block the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from turngate.aio.threads import SerialThread
from turngate.errors import RegistryError
from turngate.subagents.registry.registry import Registry

T = TypeVar("T")
RETRY_PAUSES_S = (0.05, 0.2, 0.5, 1.0, 2.0)


class RegistryWorker:
    """One thread for one registry; `lock` lets a caller decide and write without another write in between."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._thread = SerialThread()
        self.lock = asyncio.Lock()

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._thread.call(function, *arguments)

    async def transition(self, function: Callable[..., T], *arguments: object) -> T:
        """Call `function` alone, and retry it while the disk is full or another process holds the database."""
        for pause in RETRY_PAUSES_S:
            try:
                return await self._call_alone(function, *arguments)
            except RegistryError:
                await asyncio.sleep(pause)
        return await self._call_alone(function, *arguments)

    async def _call_alone(self, function: Callable[..., T], *arguments: object) -> T:
        async with self.lock:
            return await self.call(function, *arguments)

    async def close(self) -> None:
        """Close the registry after the calls that are already queued."""
        await self.call(self._registry.close)
        self._thread.close()
