"""Run callbacks and models: code that is not ours, bounded in time and isolated from our task."""

import asyncio
import contextlib
import contextvars
import inspect
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.threads import T, run_in_thread
from turngate.core.text import describe_exception

STUBBORN = 0.5  # seconds that foreign code gets to clean up after its cancellation


class CancelledItself(RuntimeError):
    """Foreign code cancelled the task that it was called in, which is not its own."""


async def call(callback: Callable[[Any], Any], event: Any) -> Any:
    """Calls a function of the user's: a coroutine function in the loop, any other in a thread.

    It gets a context of its own, and what it does to our task is undone: raises CancelledItself.
    """
    if _is_async(callback):
        return await _driven(callback(event))
    result = await run_in_thread(callback, event)
    return await _driven(_awaited(result)) if inspect.isawaitable(result) else result


def _is_async(callback: Callable[[Any], Any]) -> bool:
    if type(callback) is types.FunctionType and callback.__code__.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__)


async def run_isolated(work: Awaitable[T]) -> T:
    """Foreign code in a task of its own: our cancellation is no answer, whatever it makes of it.

    It gets half a second to clean up, and then it is ended. Raises CancelledItself.
    """
    inner = _without_exit(work)
    task = asyncio.ensure_future(inner)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.add_done_callback(_looked_at)
        task.cancel()
        try:
            await finish_despite_cancel(asyncio.wait({task}, timeout=STUBBORN))
        finally:  # however often we are cancelled meanwhile
            if not task.done():  # or the loop would wait for it when the program ends
                _close(inner)
                task.cancel()
        raise
    if task.cancelled():
        raise CancelledItself
    if isinstance(raised := task.exception(), GeneratorExit):
        raise RuntimeError(describe_exception(raised))  # to us it would mean our own end
    return task.result()


async def _without_exit(work: Awaitable[T]) -> T:
    """Foreign code may fail, and may not end the program: out of a task these would go through everything."""
    try:
        return await work
    except SystemExit as raised:
        raise RuntimeError(describe_exception(raised)) from raised


def _looked_at(task: "asyncio.Future[Any]") -> None:
    if not task.cancelled():
        task.exception()  # nobody else asks for it


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@types.coroutine
def _driven(work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Awaits a coroutine by driving it step by step, in our own task.

    It may cancel that task and take it back, as code with cancel scopes of its own does; one that does not take it back
    has cancelled itself. One that catches its cancellation and goes on gets half a second to clean up. Then it is driven no more:
    nothing that it does can hold us, and no second task is needed for that.
    """
    ours = asyncio.current_task()
    assert ours is not None  # noqa: S101 - whoever awaits is in a task
    before = ours.cancelling()
    own = 0  # cancellations that it asked for and has not taken back
    in_its_context = contextvars.copy_context().run
    impatience: asyncio.TimerHandle | None = None
    step: Callable[[Any], Any] = work.send
    argument: Any = None
    try:
        while True:
            count = ours.cancelling()
            try:
                waits_for = in_its_context(step, argument)
            except StopIteration as end:
                if ours.cancelling() <= before:
                    return end.value
                ended: BaseException = end
            except BaseException as raised:  # noqa: BLE001 - it is raised again
                ended = raised
            else:
                ended = _GOES_ON
            own = max(0, own + ours.cancelling() - count)  # nobody else was there
            if ended is not _GOES_ON:
                if own:
                    yield from _uncancelled(ours, ours.cancelling() - own)
                    if ours.cancelling() <= before:
                        raise CancelledItself
                raise _meant(ended, argument, cancelled=ours.cancelling() > before)
            if impatience is not None and ours.cancelling() <= before:
                impatience.cancel()  # it was a time limit of its own, and it has dealt with it
                impatience = None
            try:
                argument = yield waits_for
                step = work.send
            except BaseException as raised:
                if impatience is not None and impatience.when() <= ours.get_loop().time():
                    ours.uncancel()  # this cancellation was ours
                    _close(work)
                    raise
                fresh = impatience is None and isinstance(raised, asyncio.CancelledError)
                if fresh and ours.cancelling() - own > before:
                    impatience = ours.get_loop().call_later(STUBBORN, ours.cancel)
                step, argument = work.throw, raised
    finally:
        if impatience is not None:
            impatience.cancel()


_GOES_ON = BaseException()


def _meant(ended: BaseException, thrown: object, *, cancelled: bool) -> BaseException:
    """What its end means to us: who was cancelled has no answer, and only we are cancelled by others."""
    if isinstance(ended, GeneratorExit) and ended is thrown:
        return ended
    if cancelled:
        return asyncio.CancelledError()
    if isinstance(ended, asyncio.CancelledError):
        return CancelledItself()
    if isinstance(ended, GeneratorExit):
        return RuntimeError(describe_exception(ended))  # to a coroutine it would mean its own end
    return ended


def _uncancelled(task: "asyncio.Task[Any]", count: int) -> Generator[Any, Any, None]:
    """Takes a cancellation back: before Python 3.13 it comes all the same, at the next step, and is met here."""
    while task.cancelling() > count:
        task.uncancel()
    try:
        yield
    except asyncio.CancelledError:
        if task.cancelling() > count:
            raise


def _close(work: Coroutine[Any, Any, Any]) -> None:
    with contextlib.suppress(BaseException):  # it ignores even its end
        work.close()
