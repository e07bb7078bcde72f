"""How each kind of hook is run. No timeout and no except here: the engine has the only ones."""

import asyncio
import contextlib
import contextvars
import inspect
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import replace
from typing import Any, assert_never

from turngate.core.events import Event
from turngate.core.hooks import AgentHook, CallbackHook, CommandHook, HttpHook, PromptHook, kind
from turngate.core.reports import Broke, Report, Returned
from turngate.core.settings import Rule, Settings
from turngate.core.wire import encode, environment
from turngate.ports import Live, World

STUBBORN = 0.5  # seconds that a callback gets to clean up after its cancellation


async def run_hook(rule: Rule, event: Event, settings: Settings, world: World, live: Live) -> Report:
    match rule.hook:
        case CommandHook() as hook:
            return await world.shell.run(
                hook if settings.dialect.honours_shell else replace(hook, shell=None),
                cwd=world.project,
                env=clean({**world.environ, **settings.env, **hook.env, **environment(event, world.project)}),
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
        return await _driven(callback(event))
    result = await _in_thread(callback, event)
    return await _driven(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@types.coroutine
def _driven(work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Awaits a coroutine by driving it step by step, in our own task.

    One that catches its cancellation and goes on gets half a second to clean up. Then it is driven no more:
    nothing that it does can hold us, and no second task is needed for that.
    """
    impatience: asyncio.TimerHandle | None = None
    step: Callable[[Any], Any] = work.send
    argument: Any = None
    try:
        while True:
            try:
                waits_for = step(argument)
            except StopIteration as end:
                return end.value
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
