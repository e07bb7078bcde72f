"""Async callbacks that use libraries with cancel scopes of their own, as most HTTP clients do."""

import asyncio
from pathlib import Path
from typing import Any

import anyio

from turngate import Block, CallbackHook, Continue, LocalShell, Rule, Settings, StopEvent, World, ask_hooks


def asked(project: Path, callback: Any) -> Any:
    async def ask() -> Any:
        settings = Settings(rules=(Rule("Stop", CallbackHook(callback)),))
        return await ask_hooks(StopEvent(session_id="s"), settings, World(LocalShell(), project=str(project)))

    return asyncio.run(ask())


def test_a_callback_may_use_a_library_that_races_connections(project: Path) -> None:
    async def callback(_: StopEvent) -> Block:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "localhost", 0)
        port = server.sockets[0].getsockname()[1]
        with anyio.fail_after(10):
            async with await anyio.connect_tcp("localhost", port):
                pass
        server.close()
        return Block("not yet")

    verdict = asked(project, callback)
    assert (type(verdict), verdict.runs[0].decision) == (Continue, Block("not yet"))


def test_a_callback_continues_after_its_own_cancel_scope_expired(project: Path) -> None:
    async def callback(_: StopEvent) -> Block:
        with anyio.move_on_after(0.01):
            await anyio.sleep(60)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anyio.sleep(60)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 60)
            group.cancel_scope.cancel()
        return Block("it took too long")

    assert asked(project, callback).runs[0].decision == Block("it took too long")
