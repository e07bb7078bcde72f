"""How each kind of hook is run. No timeout and no except here: the engine has the only ones."""

import asyncio
import contextlib
import contextvars
import inspect
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, assert_never

from turngate.core.events import Event
from turngate.core.hooks import AgentHook, CallbackHook, CommandHook, HttpHook, PromptHook, kind
from turngate.core.reports import Broke, Report, Returned
from turngate.core.settings import Rule, Settings
from turngate.core.wire import encode, environment
from turngate.ports import Live, World

STUBBORN = 0.5  # seconds that a callback gets to obey its cancellation


async def run_hook(rule: Rule, event: Event, settings: Settings, world: World, live: Live) -> Report:
    match rule.hook:
        case CommandHook() as hook:
            return await world.shell.run(
                hook if settings.dialect.honours_shell else replace(hook, shell=None),
                cwd=world.project,
                env=clean({**os.environ, **settings.env, **hook.env, **environment(event, world.project)}),
                stdin=encode(event, settings.dialect, settings.payload),
                live=live,
            )
        case CallbackHook(callback):
            return Returned(await call(callback, event))
        case PromptHook() | AgentHook() | HttpHook() as hook:
            return Broke(f"{kind(hook)} hooks are not available yet")
        case _:
            assert_never(rule.hook)


LONGEST = 100_000  # bytes of one variable; the kernel takes 128 KiB


def clean(env: dict[str, str]) -> dict[str, str]:
    """Without what no process could be given: it would take the whole hook down (X-33)."""
    return {
        name: value
        for name, value in env.items()
        if len(value) < LONGEST and "\0" not in value and name and "=" not in name
    }


async def call(callback: Callable[[Any], Any], event: Event) -> Any:
    """Calls a function of the user's: a coroutine function in the loop, any other in a thread."""
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
        return await _obedient(callback(event))
    result = await _in_thread(callback, event)
    return await _obedient(result) if inspect.isawaitable(result) else result


async def _obedient(awaitable: Awaitable[Any]) -> Any:
    """Awaits; when it is cancelled and does not obey, leaves it behind."""
    task = asyncio.ensure_future(awaitable)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(_: object) -> None:
        if not done.done():
            done.set_result(None)

    task.add_done_callback(wake)
    try:
        await done
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=STUBBORN)
        raise
    return task.result()


async def _in_thread(function: Callable[[Any], Any], argument: object) -> Any:
    """A thread of its own that nobody waits for: a function that never returns holds up no exit."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result, error = context.run(function, argument), None
        except BaseException as raised:  # noqa: BLE001 - foreign code; the engine turns it into a fault
            result, error = None, raised if isinstance(raised, Exception) else RuntimeError(repr(raised))
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(deliver, result, error)

    def deliver(result: object, error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        elif isinstance(error, StopIteration):  # a future can not hold one
            done.set_exception(RuntimeError(repr(error)))
        else:
            done.set_exception(error)

    threading.Thread(target=work, daemon=True, name="turngate-callback").start()
    return await done
