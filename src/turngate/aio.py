"""What asyncio lacks: work that finishes although it is cancelled, threads that nobody waits for, calls that must end."""

import asyncio
import contextlib
import contextvars
import inspect
import queue
import threading
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


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


async def run_in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Calls a function in a thread of its own: a pool can be busy, and one that never returns holds up no exit.

    Raises RuntimeError when no thread can be started.
    """
    return await _started(function, *arguments)


class SerialThread:
    """One thread that does what it is given, one after the other: to start a thread costs as much as a small write.

    Like `in_thread` it holds up no exit.
    """

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., T], *arguments: object) -> T:
        if self._thread is None:
            thread = threading.Thread(target=self._work, daemon=True, name="turngate")
            thread.start()
            self._thread = thread
        work, done = _prepared(function, *arguments)
        self._given.put(work)
        return await done

    def close(self) -> None:
        self._given.put(None)

    def _work(self) -> None:
        while work := self._given.get():
            work()


async def run_in_thread_or_inline(function: Callable[..., T], *arguments: object) -> T:
    """Calls a function of our own, whose work is bounded, in a thread; where none can be had, it is called here."""
    try:
        done = _started(function, *arguments)
    except RuntimeError:
        return function(*arguments)
    return await done


def _started(function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
    work, done = _prepared(function, *arguments)
    threading.Thread(target=work, daemon=True, name="turngate").start()
    return done


def _prepared(
    function: Callable[..., T], *arguments: object
) -> "tuple[Callable[[], None], asyncio.Future[T]]":
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

    return work, done


def _succeed(done: "asyncio.Future[T]", result: T) -> None:
    if not done.done():
        done.set_result(result)


def _fail(done: "asyncio.Future[Any]", raised: BaseException) -> None:
    """A future holds no StopIteration, and a thread's SystemExit must not end the program."""
    if not done.done():
        fits = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
        done.set_exception(raised if fits else RuntimeError(told(raised)))


def told(raised: BaseException) -> str:
    """An exception in words, not too many; its own text is foreign code too."""
    try:
        said = str(raised)[:LONGEST_ERROR]
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - foreign code
        said = ""
    return f"{type(raised).__name__}: {said}" if said else type(raised).__name__


LONGEST_ERROR = 1000  # characters
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


async def raise_if_cancelled(work: Awaitable[T]) -> T:
    """Foreign code that swallows our cancellation has no answer either."""
    ours = asyncio.current_task()
    before = ours.cancelling() if ours else 0
    answer = await work
    if ours and ours.cancelling() > before:
        raise asyncio.CancelledError
    return answer


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
        raise RuntimeError(told(raised))  # to us it would mean our own end
    return task.result()


async def _without_exit(work: Awaitable[T]) -> T:
    """Foreign code may fail, and may not end the program: out of a task these would go through everything."""
    try:
        return await work
    except SystemExit as raised:
        raise RuntimeError(told(raised)) from raised


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
        return RuntimeError(told(ended))  # to a coroutine it would mean its own end
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


def current_task_cancelled() -> bool:
    """Is it our own task that was cancelled, and not something that foreign code cancelled itself?"""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
