"""Foreign coroutines: whatever a callback does to its task or returns, the engine keeps its verdict."""

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.builders import settings, stop_event, world
from turngate.agent.session import Session
from turngate.aio.foreign_code import call_callback
from turngate.aio.threads import CallbackCancelledItself
from turngate.core.answers.report_types import HookFailed, Returned, TimedOut
from turngate.core.conversation.messages import ToolUse
from turngate.core.events.events import PostToolUse, StopEvent
from turngate.core.hooks.kinds import CallbackHook
from turngate.core.verdict.decisions import Advise, Allow, Block, Fault, Halt
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.verdict import Continue, Stop, Verdict
from turngate.engine import ask_hooks
from turngate.models.scripted import ScriptedModel
from turngate.options.options import Options


async def verdict_of(*functions: Any, **fields: Any) -> Verdict:
    hooks = (CallbackHook(function, **fields) for function in functions)
    return await ask_hooks(stop_event(), settings(*hooks), world(Path("/")))


def run_of(function: Any, **fields: Any) -> HookRun:
    return asyncio.run(verdict_of(function, **fields)).runs[0]


async def cancels_its_task(_: StopEvent) -> Block:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return Block("no")


async def cancels_its_task_and_waits(_: StopEvent) -> Block:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0.01)
    return Block("no")


async def cancels_its_task_and_swallows_it(event: StopEvent) -> Block:
    with contextlib.suppress(asyncio.CancelledError):
        await cancels_its_task_and_waits(event)
    return Block("no")


async def cancels_its_task_and_raises(event: StopEvent) -> None:
    await cancels_its_task(event)
    raise KeyError("x")


@pytest.mark.parametrize(
    ("function", "report"),
    [
        (cancels_its_task, HookFailed("it cancelled itself")),
        (cancels_its_task_and_waits, HookFailed("it cancelled itself")),
        (cancels_its_task_and_swallows_it, Returned(Block("no"))),
        (cancels_its_task_and_raises, HookFailed("KeyError: 'x'")),
    ],
)
def test_a_callback_that_cancels_its_own_task_does_not_cancel_its_caller(function: Any, report: Any) -> None:
    async def caller() -> tuple[Any, int]:
        verdict = await verdict_of(function)
        await asyncio.sleep(0.01)
        task = asyncio.current_task()
        assert task is not None
        return verdict.runs[0].report, task.cancelling()

    assert asyncio.run(caller()) == (report, 0)


def test_a_cancellation_that_a_callback_made_itself_has_a_name_of_its_own() -> None:
    with pytest.raises(CallbackCancelledItself):
        asyncio.run(call_callback(cancels_its_task, None))


def test_a_callback_runs_in_a_task_of_its_own() -> None:
    async def caller() -> bool:
        tasks: list[Any] = []

        async def callback(_: StopEvent) -> None:
            tasks.append(asyncio.current_task())

        await verdict_of(callback)
        return tasks[0] is not asyncio.current_task()

    assert asyncio.run(caller())


async def swallows(_: StopEvent) -> Block:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(3600)
    return Block("late")


def test_a_late_answer_after_the_time_limit_does_not_count() -> None:
    run = run_of(swallows, timeout=0.05)
    assert (run.report, run.decision) == (TimedOut(0.05), Fault("timed out after 0.05 s", "timeout"))


@pytest.mark.parametrize("functions", [(swallows,), (swallows, swallows)])
def test_a_callback_that_swallows_its_callers_cancellation_gives_no_verdict(functions: Any) -> None:
    async def caller() -> bool:
        task = asyncio.create_task(verdict_of(*functions))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(caller())


def test_a_caller_that_is_cleaning_up_after_its_own_cancellation_may_ask() -> None:
    async def caller() -> Any:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return (await verdict_of(cancels_its_task)).runs[0].report

    async def main() -> Any:
        task = asyncio.create_task(caller())
        await asyncio.sleep(0.01)
        task.cancel()
        return await task

    assert asyncio.run(main()) == HookFailed("it cancelled itself")


VARIABLE = contextvars.ContextVar("VARIABLE", default="the caller's")


async def sets_a_variable(_: StopEvent) -> Block:
    VARIABLE.set("the hook's")
    await asyncio.sleep(0)
    return Block(VARIABLE.get())


def test_what_a_callback_sets_in_its_context_stays_there() -> None:
    async def caller() -> tuple[Any, str]:
        verdict = await verdict_of(sets_a_variable)
        return verdict.runs[0].decision, VARIABLE.get()

    assert asyncio.run(caller()) == (Block("the hook's"), "the caller's")


class HostileError(Exception):
    def __str__(self) -> str:
        raise ValueError("hands off")

    __repr__ = __str__


def raising(error: BaseException) -> Any:
    async def function(_: StopEvent) -> None:
        raise error

    return function


RETURNED: list[tuple[Any, Any]] = [
    (object(), Fault("it returned object; expected a decision, a dict or None")),
    (Block("no", warnings=["a"]), Block("no", warnings=("a",))),  # type: ignore[arg-type]
    ({"decision": "block", "reason": "no"}, Block("no")),
    (
        {"decision": object()},
        Fault('`decision` is of the type object, expected "block" or "approve"'),
    ),
    (
        {"decision": list(range(2_000_000))},
        Fault('`decision` is a list, expected "block" or "approve"'),
    ),
]


@pytest.mark.parametrize(("value", "decision"), RETURNED)
def test_no_value_that_a_callback_returns_affects_another_hook(value: Any, decision: Any) -> None:
    async def gives(_: StopEvent) -> Any:
        return value

    async def refuses(_: StopEvent) -> Block:
        return Block("not yet")

    verdict = asyncio.run(verdict_of(gives, refuses))
    assert isinstance(verdict, Continue)
    assert [run.decision for run in verdict.runs] == [decision, Block("not yet")]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (HostileError(), "HostileError"),
        (GeneratorExit("odd"), "RuntimeError: GeneratorExit: odd"),
        (StopAsyncIteration("odd"), "StopAsyncIteration: odd"),
    ],
)
def test_an_error_without_a_usable_message_is_described_by_its_type(error: BaseException, said: str) -> None:
    assert run_of(raising(error)).report == HookFailed(said)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Block(5), "TypeError: Block.reason must be a string, not int"),  # type: ignore[arg-type]
        (lambda: Block("no", advice=5), "TypeError: Block.advice must be a string, not int"),  # type: ignore[arg-type]
        (lambda: Block("no", warnings="a"), "TypeError: Block.warnings must be a tuple of strings"),  # type: ignore[arg-type]
        (lambda: Block("no", quiet=1), "TypeError: Block.quiet must be True or False, not int"),  # type: ignore[arg-type]
        (lambda: Allow(5), "TypeError: Allow.reason must be a string, not int"),  # type: ignore[arg-type]
        (lambda: Allow(notice=5), "TypeError: Allow.notice must be a string, not int"),  # type: ignore[arg-type]
        (lambda: Advise(None), "TypeError: Advise.advice must be a string, not NoneType"),  # type: ignore[arg-type]
        (lambda: Halt(5), "TypeError: Halt.reason must be a string, not int"),  # type: ignore[arg-type]
        (
            lambda: Fault("x", "odd"),  # type: ignore[arg-type]
            "ValueError: Fault.kind must be one of failed, timeout, skipped, waiting, not 'odd'",
        ),
        (
            lambda: Fault("x", may_block=None),  # type: ignore[arg-type]
            "TypeError: Fault.may_block must be True or False, not NoneType",
        ),
    ],
)
def test_a_decision_checks_its_fields_and_a_mistake_is_its_own_hooks_fault(
    make: Callable[[], Any], error: str
) -> None:
    async def gives(_: StopEvent) -> Any:
        return make()

    async def blocks(_: StopEvent) -> Block:
        return Block("not yet")

    verdict = asyncio.run(verdict_of(gives, blocks))
    assert [run.decision for run in verdict.runs] == [Fault(error), Block("not yet")]


@pytest.mark.req("C-11")
@pytest.mark.parametrize(
    "make",
    [
        lambda: Block(None),  # type: ignore[arg-type]
        lambda: {"decision": "block", "reason": None},
    ],
)
def test_a_block_whose_reason_is_none_does_not_block_even_where_the_hook_is_blocking(make: Any) -> None:
    verdict = asyncio.run(verdict_of(lambda _: make(), blocking=True))
    decisions = [run.decision for run in verdict.runs]
    no_reason = Fault("it blocked without a reason, so it does not block", may_block=False)
    assert (type(verdict), decisions) == (Stop, [no_reason])


@pytest.mark.req("S2-28")
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
@pytest.mark.parametrize("form", ["new", "old"])
def test_a_callback_changes_neither_the_tools_input_nor_other_callbacks_events(
    event: str, form: str, project: Path
) -> None:
    def meddles(told: Any) -> None:
        told.tool_input["command"] = "echo changed"

    def meddles_as_before(told: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        told["tool_input"]["command"] = "echo changed"
        return {}

    async def turn() -> Any:
        model = ScriptedModel({"main": [{"tool": "Bash", "input": {"command": "echo safe"}}, "done"]})
        meddler = CallbackHook(meddles if form == "new" else meddles_as_before, mode="observe")
        hooks = Options({event: [meddler, CallbackHook(lambda told: heard.append(told.tool_input))]})
        async with Session(str(project), model, hooks.settings(), permit=permit) as session:
            await session.send("go")
        return model.requests[-1].messages[-1]

    async def permit(use: ToolUse, _: str) -> bool:
        heard.append(use.input)
        return True

    heard: list[Any] = []
    results = asyncio.run(turn())
    assert ([result.content for result in results.results], heard) == (
        ["safe"],
        [{"command": "echo safe"}] * 2,
    )


def test_a_callback_does_not_change_the_stop_event_of_other_callbacks(project: Path) -> None:
    def meddles(event: StopEvent) -> None:
        assert event.usage is not None
        event.usage.clear()  # type: ignore[attr-defined]
        event.background_tasks[0].clear()  # type: ignore[attr-defined]

    event = stop_event(usage={"input_tokens": 1}, background_tasks=({"id": "a"},))
    heard: list[StopEvent] = []
    asked = settings(CallbackHook(meddles), CallbackHook(heard.append), order={"*": "sequential"})
    asyncio.run(ask_hooks(event, asked, world(project)))
    assert heard == [stop_event(usage={"input_tokens": 1}, background_tasks=({"id": "a"},))]


def test_an_answer_of_a_callback_that_blocked_the_loop_past_its_timeout_does_not_count(project: Path) -> None:
    async def sleeps(_: StopEvent) -> Block:
        time.sleep(0.2)  # noqa: ASYNC251 - that is the mistake
        return Block("late")

    hook = CallbackHook(sleeps, timeout=0.05)
    verdict = asyncio.run(ask_hooks(stop_event(), settings(hook), world(project)))
    assert [run.report for run in verdict.runs] == [TimedOut(0.05)]


class Pair(NamedTuple):
    out: str
    code: int


def test_values_other_than_plain_containers_reach_a_callback_unchanged(project: Path) -> None:
    heard: list[Any] = []
    event = PostToolUse(session_id="s", tool_name="Bash", tool_response=[Pair("x", 1), {"a": (1, [2])}])
    asked = settings(CallbackHook(heard.append), event="PostToolUse")
    asyncio.run(ask_hooks(event, asked, world(project)))
    assert heard == [event]


class LazyMapping(dict[str, Any]):
    def get(self, *_: Any) -> Any:
        raise ConnectionError("gone")


def test_an_answer_that_raises_when_it_is_read_is_its_own_hooks_fault() -> None:
    async def lazy(_: StopEvent) -> Any:
        return LazyMapping()

    async def blocks(_: StopEvent) -> Block:
        return Block("go on")

    decisions = [run.decision for run in asyncio.run(verdict_of(lazy, blocks)).runs]
    assert decisions == [Fault("its answer cannot be read: ConnectionError: gone"), Block("go on")]


def test_a_callbacks_own_error_after_an_exit_keeps_its_name() -> None:
    async def converts(_: StopEvent) -> None:
        raise RuntimeError("mine") from SystemExit(1)

    assert run_of(converts).report == HookFailed("RuntimeError: mine")
