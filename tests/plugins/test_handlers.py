"""Plugin handlers: called once, at the end of a turn, one after another; they change nothing."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from tests.support.sessions import (
    BLOCK_COMMAND,
    ScriptedSession,
    block_first,
    hang,
    lines,
    on_first,
    say,
    scripted_session,
    wait_for_file,
)
from tests.support.subagents import parent
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S, POLL_INTERVAL_S
from turngate.agent.session import Session
from turngate.core.conversation.messages import Message, ModelRequest, Reply, Usage, UserMessage
from turngate.core.events.plugin_events import (
    StopPayload,
    SubagentStoppingContext,
    SubagentStoppingEvent,
)
from turngate.core.events.stream_events import (
    Continuation,
    HookFinished,
    Notice,
    StreamEnd,
    TurnEnd,
    TurnResult,
)
from turngate.errors import UsageError
from turngate.models.scripted import ScriptedModel
from turngate.plugins.handlers import ALIASES, HANDLER_NAMES, PluginContext, PluginHook, Plugins


class Diary:
    """Record the calls of its handlers."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def conversation(self, messages: tuple[Any, ...]) -> None:
        self.told.append(("conversation", messages))

    def stop(self, payload: StopPayload) -> None:
        self.told.append(("stop", payload))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.told]

    @property
    def payload(self) -> StopPayload:
        [payload] = [payload for name, payload in self.told if name == "stop"]
        assert isinstance(payload, StopPayload)
        return payload


def watched(
    project: Path, *replies: Any, limit: float = 30.0, **options: Any
) -> tuple[ScriptedSession, Diary, Plugins]:
    diary, plugins = Diary(), Plugins(limit=limit)
    plugins.add(diary)
    return scripted_session(project, *replies, plugins=plugins, **options), diary, plugins


# When


@pytest.mark.req("S1-01")
def test_a_plugin_handles_what_it_has_a_method_for() -> None:
    class Counter:
        turns = 0

        def stop(self, _payload: object) -> None:
            self.turns += 1

    counter, plugins = Counter(), Plugins()
    plugins.add(counter)
    plugins.add(object())
    for _ in range(2):
        asyncio.run(plugins.notify("stop", None))
    asyncio.run(plugins.notify("conversation", ()))
    assert (counter.turns, plugins.complaints) == (2, [])


@pytest.mark.req("S1-01")
def test_both_spellings_of_subagent_stop_are_accepted() -> None:
    plugins, told = Plugins(), list[str]()
    plugins.on("subagentStop", lambda _: told.append("camel"))
    plugins.on("subagent_stop", lambda _: told.append("snake"))
    asyncio.run(plugins.notify("subagent_stop", None))
    assert told == ["camel", "snake"]


EXPECTED = "expected one of conversation, stop, subagent_stop, subagent_stopping, subagent_ended"


@pytest.mark.req("S4-17")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("halt", f": {EXPECTED}"),
        ("Stop", ": did you mean 'stop'?"),
        ("SubagentStop", ": did you mean 'subagent_stop'?"),
        ("subagent_stoping", ": did you mean 'subagent_stopping'?"),
        ("subagentEnded", ": did you mean 'subagent_ended'?"),
        ("conversations", ": did you mean 'conversation'?"),
        (7, f": {EXPECTED}"),
    ],
)
def test_an_unknown_plugin_hook_is_rejected_with_the_name_that_was_meant(name: Any, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        Plugins().on(name, print)
    assert str(raised.value) == f"unknown plugin hook {name!r}{hint}"


@pytest.mark.req("S4-17")
@pytest.mark.parametrize(("handler", "what"), [(None, "None"), ("f", "'f'"), ([print], "a list")])
def test_a_handler_that_cannot_be_called_is_rejected(handler: Any, what: str) -> None:
    plugins = Plugins()
    with pytest.raises(UsageError) as raised:
        plugins.on("stop", handler)
    said = f"the handler of the plugin hook 'stop' is {what}; expected a function that takes the payload"
    assert (str(raised.value), plugins.has_handlers("stop")) == (said, False)


@pytest.mark.req("S4-17")
@pytest.mark.parametrize(
    ("name", "handler", "takes", "expected"),
    [
        ("subagent_stopping", lambda event: event, "(event)", "the event and the context"),
        ("subagent_ended", lambda: None, "()", "the event and the context"),
        ("subagentStop", lambda payload, context: (payload, context), "(payload, context)", "the payload"),
        ("stop", lambda payload, *, mode: (payload, mode), "(payload, *, mode)", "the payload"),
    ],
)
def test_a_handler_that_cannot_take_its_arguments_is_rejected(
    name: Any, handler: Any, takes: str, expected: str
) -> None:
    plugins = Plugins()
    with pytest.raises(UsageError) as raised:
        plugins.on(name, handler)
    said = f"the handler of the plugin hook {name!r} takes {takes}; expected a function that takes {expected}"
    assert (str(raised.value), plugins.has_handlers(ALIASES.get(name, name))) == (said, False)


class WithoutSignature:
    __signature__ = "unknown"

    def __call__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "handler",
    [
        WithoutSignature(),
        lambda *_: None,
        lambda event, context, ctx: (event, context, ctx),
        lambda event, context, more=1: (event, context, more),
    ],
    ids=["no signature", "any", "with ctx", "with a default"],
)
def test_a_handler_that_may_take_its_arguments_is_registered(handler: Any) -> None:
    plugins = Plugins()
    plugins.on("subagent_stopping", handler)
    assert plugins.has_handlers("subagent_stopping")


def test_the_names_of_plugin_hooks_are_known_to_the_type_checker() -> None:
    assert {*get_args(PluginHook)} == {*HANDLER_NAMES, *ALIASES}
    assert get_type_hints(Plugins.on)["name"] == PluginHook


@pytest.mark.req("S1-04", "S1-05", "S1-06", "C-04", "C-30")
def test_conversation_comes_before_stop_and_stop_before_the_end_of_the_turn(project: Path) -> None:
    order: list[str] = []
    plugins = Plugins()
    plugins.on("stop", lambda _: order.append("stop"))
    plugins.on("conversation", lambda _: order.append("conversation"))
    agent = scripted_session(
        project,
        "done",
        stop="true",
        plugins=plugins,
        listen=lambda event, _: order.append(type(event).__name__),
    )
    agent.play()
    kept = [name for name in order if name != "TextDelta"]
    assert kept == ["StreamEnd", "HookStarted", "HookFinished", "conversation", "stop", "TurnEnd"]


@pytest.mark.req("S1-26", "C-04")
def test_after_two_blocked_stops_the_handler_runs_once_with_the_sums_of_the_turn(project: Path) -> None:
    call = {"tool": "Bash", "input": {"command": "true"}}
    agent, diary, _ = watched(project, call, "one", call, "two", "three", stop=block_first(2), allow=["Bash"])
    result = agent.play()
    assert diary.names == ["conversation", "stop"]
    told = diary.payload
    assert (told.turns_count, told.tool_calls_count, told.continuations, told.ended_by) == (
        5,
        2,
        2,
        "allowed",
    )
    replies = [message for message in agent.session.messages if isinstance(message, Reply)]
    assert told.usage == sum((reply.usage for reply in replies), Usage()) == result.usage


@pytest.mark.req("S1-26", "C-18")
def test_a_capped_turn_is_reported_once_with_its_end(project: Path) -> None:
    agent, diary, _ = watched(project, "answer {n}", stop=BLOCK_COMMAND)
    agent.play()
    assert (diary.names, diary.payload.ended_by, diary.payload.continuations) == (
        ["conversation", "stop"],
        "capped",
        3,
    )


@pytest.mark.req("S1-07", "S1-26")
def test_each_turn_is_reported_separately(project: Path) -> None:
    agent, diary, _ = watched(project, "answer {n}")
    agent.play("one", "two")
    assert diary.names == ["conversation", "stop"] * 2
    assert [len(messages) for name, messages in diary.told if name == "conversation"] == [2, 4]


def test_a_conversation_handler_gets_the_messages(project: Path) -> None:
    agent, diary, _ = watched(project, "done")
    agent.play("go")
    assert diary.told[0] == ("conversation", tuple(agent.session.messages))
    assert diary.told[0][1][0] == UserMessage("go")


# What


@pytest.mark.req("S1-12", "S1-14")
def test_the_payload_has_its_seven_fields_and_ours(project: Path) -> None:
    twice = {"tools": [{"name": "Bash", "input": {"command": "true"}}] * 2}
    replies = (twice, "done", "checked")
    agent, diary, _ = watched(project, *replies, session_id="s-1", stop=block_first(1), allow=["Bash"])
    result = agent.play()
    told = diary.payload
    assert [field.name for field in fields(told)] == [
        "session_id",
        "result",
        "usage",
        "turns_count",
        "tool_calls_count",
        "duration",
        "model",
        "continuations",
        "ended_by",
        "partial_usage",
        "elapsed",
    ]
    assert told == StopPayload(
        session_id="s-1",
        result=result,
        usage=result.usage,
        turns_count=3,
        tool_calls_count=2,
        duration=told.duration,
        model="scripted/script",
        continuations=1,
        ended_by="allowed",
        partial_usage=result.usage,
        elapsed=told.duration,
    )
    assert (result.result, result.usage.input_tokens > 0, told.duration > 0) == ("checked", True, True)


@pytest.mark.req("S1-12")
def test_the_payload_and_its_result_have_the_names_of_the_document(project: Path) -> None:
    agent, diary, _ = watched(project, "done", session_id="s-1")
    agent.play()
    told = diary.payload
    assert (told.sessionId, told.turnsCount, told.toolCallsCount, told.usage.inputTokens > 0) == (
        "s-1",
        1,
        0,
        True,
    )
    result = told.result
    assert (result.success, result.data.usage) == (True, told.usage)
    assert (result.metadata.turnsCount, result.metadata.toolCallsCount) == (1, 0)
    assert result.metadata.duration == result.duration_ms / 1000


class TimedModel(ScriptedModel):
    """Notes when it was asked first."""

    asked = 0.0

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        self.asked = self.asked or time.monotonic()
        return await super().ask(request, tell)


@pytest.mark.req("S1-12", "S1-28")
@pytest.mark.parametrize("delay", [0.05, 0.6])
def test_the_duration_is_the_time_of_the_turn_in_seconds(project: Path, delay: float) -> None:
    """At least from the first request to the end of the last hook, at most from `send` to the plugins."""
    plugins, answered, notified = Plugins(), list[float](), list[float]()
    plugins.on("conversation", lambda _: notified.append(time.monotonic()))
    told: list[StopPayload] = []
    plugins.on("stop", told.append)
    listen = on_first(HookFinished, lambda _: answered.append(time.monotonic()))
    agent = scripted_session(project, stop="true", plugins=plugins, listen=listen)
    model = agent.session._agent.model = TimedModel({"main": [{"text": "done", "delay": delay}]})
    sent = time.monotonic()
    result = agent.play()
    [payload], [ended], [last] = told, answered, notified
    assert delay <= ended - model.asked <= payload.duration <= last - sent
    assert int((ended - model.asked) * 1000) <= result.duration_ms <= (last - sent) * 1000
    assert payload.elapsed == payload.duration


@pytest.mark.req("S1-28")
def test_one_line_of_telemetry_has_everything(project: Path) -> None:
    plugins = Plugins()

    def telemetry(told: StopPayload) -> None:
        line = {
            "session": told.session_id,
            "result": told.result.result,
            "success": told.result.success,
            **asdict(told.usage),
            "seconds": told.duration,
            "tools": told.tool_calls_count,
            "model": told.model,
        }
        (project / "telemetry.jsonl").write_text(json.dumps(line) + "\n")

    plugins.on("stop", telemetry)
    scripted_session(project, "done", plugins=plugins, session_id="s-1").play()
    [line] = lines(project / "telemetry.jsonl")
    told = json.loads(line)
    assert (told["session"], told["result"], told["success"], told["tools"], told["model"]) == (
        "s-1",
        "done",
        True,
        0,
        "scripted/script",
    )
    assert told["seconds"] > 0


@pytest.mark.req("S1-13", "S1-27", "C-27", "X-04")
def test_a_failed_turn_has_zeros_and_its_partial_usage(project: Path) -> None:
    call = {"tool": "Bash", "input": {"command": "true"}}
    agent, diary, _ = watched(project, call, {"error": "auth"}, allow=["Bash"])
    result = agent.play()
    told = diary.payload
    assert diary.names == ["conversation", "stop"]
    assert (told.result.success, told.ended_by) == (False, "error")
    assert (told.usage, told.turns_count, told.tool_calls_count, told.duration) == (Usage(), 0, 0, 0)
    assert told.partial_usage == result.usage != Usage()
    assert told.elapsed > 0


@pytest.mark.req("S1-13", "C-27")
@pytest.mark.parametrize(
    ("stop", "ended_by"),
    [(BLOCK_COMMAND, "capped"), (say({"continue": False, "stopReason": "enough"}), "halted")],
)
def test_a_turn_without_success_has_zeros_however_it_ended(project: Path, stop: str, ended_by: str) -> None:
    agent, diary, _ = watched(project, "answer {n}", stop=stop)
    result = agent.play()
    told = diary.payload
    assert (told.result.success, told.ended_by) == (False, ended_by)
    assert (told.usage, told.turns_count, told.tool_calls_count, told.duration) == (Usage(), 0, 0, 0)
    assert (told.partial_usage, told.elapsed > 0) == (result.usage, True)


@pytest.mark.req("S1-12")
def test_the_payload_has_the_names_of_the_document_too(project: Path) -> None:
    agent, diary, _ = watched(project, "done", session_id="s-1")
    result = agent.play()
    told = diary.payload
    assert (told.sessionId, told.turnsCount, told.toolCallsCount, told.endedBy, told.partialUsage) == (
        "s-1",
        1,
        0,
        "allowed",
        result.usage,
    )
    assert (told.usage.inputTokens, told.usage.outputTokens) == (
        result.usage.input_tokens,
        result.usage.output_tokens,
    )
    with pytest.raises(AttributeError, match="StopPayload has no 'session_key'"):
        _ = told.sessionKey


def interrupting(agent: ScriptedSession, project: Path) -> TurnResult:
    async def all_of_it() -> TurnResult:
        async with agent.session:
            turn = asyncio.create_task(agent.session.send("go"))
            await wait_for_file(project / "pid")
            agent.session.interrupt()
            return await turn

    return asyncio.run(all_of_it())


@pytest.mark.req("C-26", "X-04")
def test_an_interrupted_turn_is_reported_too(project: Path) -> None:
    agent, diary, _ = watched(project, {"tool": "Bash", "input": {"command": hang()}}, allow=["Bash"])
    result = interrupting(agent, project)
    told = diary.payload
    assert diary.names == ["conversation", "stop"]
    assert (told.result.success, told.ended_by, told.turns_count) == (False, "interrupt", 0)
    assert told.partial_usage == result.usage != Usage()


@pytest.mark.req("S1-27")
def test_a_turn_whose_caller_is_cancelled_is_reported_too(project: Path) -> None:
    agent, diary, _ = watched(project, "done", stop=hang())

    async def cancel() -> None:
        async with agent.session:
            turn = asyncio.create_task(agent.session.send("go"))
            await wait_for_file(project / "pid")
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn

    asyncio.run(cancel())
    assert (diary.names, diary.payload.ended_by) == (["conversation", "stop"], "interrupt")


@pytest.mark.req("S1-21")
def test_the_stop_handlers_may_be_skipped(project: Path) -> None:
    agent, diary, _ = watched(project, "done", skip_stop_hook=True)
    agent.play()
    assert diary.names == ["conversation"]


@pytest.mark.req("S1-21", "S1-22")
def test_a_single_send_may_skip_them_and_does_not_by_default(project: Path) -> None:
    diary, plugins = Diary(), Plugins()
    plugins.add(diary)
    agent = scripted_session(project, "done", plugins=plugins)

    async def both() -> None:
        async with agent.session:
            await agent.session.send("one", skip_stop_hook=True)
            await agent.session.send("two")

    asyncio.run(both())
    assert diary.names == ["conversation", "conversation", "stop"]


# How


@pytest.mark.req("S1-03", "C-03")
@pytest.mark.parametrize("answer", [{"decision": "block", "reason": "go on"}, False, "block"])
def test_the_return_value_of_a_stop_handler_continues_nothing(project: Path, answer: object) -> None:
    plugins = Plugins()
    plugins.on("stop", lambda _: answer)
    plugins.on("conversation", lambda _: answer)
    agent = scripted_session(project, "answer {n}", plugins=plugins)
    result = agent.play()
    assert (result.outcome, len(agent.model.requests), agent.of(Notice)) == ("completed", 1, [])


@pytest.mark.req("S1-11", "S1-19")
def test_handlers_run_by_priority_one_after_another_sync_or_async(project: Path) -> None:
    plugins, order = Plugins(), list[str]()

    async def slow(_told: object) -> None:
        order.append("slow starts")
        await asyncio.sleep(0.05)
        order.append("slow ends")

    def plain(_told: object) -> None:
        order.append("plain starts")
        time.sleep(0.05)
        order.append("plain ends")

    class Called:
        async def __call__(self, _told: object) -> None:
            order.append("object starts")
            await asyncio.sleep(0.05)
            order.append("object ends")

    plugins.on("stop", plain)
    plugins.on("stop", lambda _: order.append("last"), priority=-1)
    plugins.on("stop", Called())
    plugins.on("stop", slow, priority=10)
    scripted_session(project, "done", plugins=plugins).play()
    parts = [f"{who} {what}" for who in ("slow", "plain", "object") for what in ("starts", "ends")]
    assert (order, plugins.complaints) == ([*parts, "last"], [])


@pytest.mark.req("S1-19")
def test_a_sync_handler_does_not_block_the_loop(project: Path) -> None:
    """The handler returns only after the loop has ticked."""
    plugins, called, ticked = Plugins(), threading.Event(), threading.Event()
    in_time: list[bool] = []

    def plain(_payload: object) -> None:
        called.set()
        in_time.append(ticked.wait(HANG_TIMEOUT_S))

    plugins.on("stop", plain)
    agent = scripted_session(project, "done", plugins=plugins)

    async def tick() -> None:
        while not called.is_set():
            await asyncio.sleep(POLL_INTERVAL_S)
        ticked.set()

    async def both() -> None:
        await asyncio.gather(agent.turns("go"), tick())

    asyncio.run(both())
    assert in_time == [True]


@pytest.mark.req("S1-11")
def test_a_handler_cannot_change_the_result_or_the_conversation(project: Path) -> None:
    plugins = Plugins()

    def scribble(told: Any) -> None:
        for name in ("result", "ended_by"):
            with pytest.raises(AttributeError):
                setattr(told.result, name, "mine")
        with pytest.raises(AttributeError):
            told.usage = None

    def rewrite(messages: tuple[Any, ...]) -> None:
        [use] = messages[1].tool_uses
        use.input["command"] = "rm -rf /"

    plugins.on("stop", scribble)
    plugins.on("conversation", rewrite)
    call = {"tool": "Bash", "input": {"command": "true"}}
    agent = scripted_session(project, call, "done", plugins=plugins, allow=["Bash"])
    result = agent.play()
    asked = agent.session.messages[1]
    assert isinstance(asked, Reply)
    assert (result.result, result.ended_by, asked.tool_uses[0].input) == (
        "done",
        "allowed",
        {"command": "true"},
    )


def raiser(error: BaseException) -> Callable[[object], None]:
    def fail(_told: object) -> None:
        raise error

    return fail


def async_raiser(error: BaseException) -> Callable[[object], Any]:
    async def fail(_told: object) -> None:
        await asyncio.sleep(0)
        raise error

    return fail


ERRORS: list[BaseException] = [
    ValueError("broken"),
    TimeoutError("its own"),
    StopIteration("odd"),
    SystemExit(3),
    asyncio.CancelledError(),
]


@pytest.mark.req("X-01", "X-05")
@pytest.mark.parametrize("make", [raiser, async_raiser], ids=["plain", "async"])
@pytest.mark.parametrize("error", ERRORS, ids=[type(error).__name__ for error in ERRORS])
def test_a_handler_that_raises_is_named_and_the_next_one_runs(
    project: Path, make: Callable[[BaseException], Callable[[object], Any]], error: BaseException
) -> None:
    agent, diary, plugins = watched(project, "done")
    plugins.on("stop", make(error), priority=5, plugin="Broken")
    plugins.on("conversation", make(error), priority=5, plugin="Broken")
    try:
        result = agent.play()
    except BaseException as raised:  # noqa: BLE001 - that is what must not happen
        pytest.fail(f"it got through: {raised!r}")
    told = [event.text for event in agent.of(Notice)]
    assert (result.outcome, diary.names, agent.events[-1]) == (
        "completed",
        ["conversation", "stop"],
        TurnEnd(result),
    )
    assert [text.partition(":")[0] for text in told] == [
        "plugin Broken failed at conversation",
        "plugin Broken failed at stop",
    ]


@pytest.mark.req("C-02", "X-03")
def test_a_handler_has_thirty_seconds_unless_the_caller_says_otherwise(project: Path) -> None:
    agent = scripted_session(project, "done")
    assert (Plugins().limit, agent.session._agent.plugins.limit, Plugins(limit=5).limit) == (30.0, 30.0, 5)


@pytest.mark.req("X-03")
def test_a_handler_has_a_timeout_and_is_cancelled(project: Path) -> None:
    agent, diary, plugins = watched(project, "done", limit=0.5)
    cancelled: list[str] = []

    async def slow(_told: object) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("told")
            raise

    plugins.on("stop", slow, priority=5, plugin="Slow")
    result = agent.play()
    assert (result.outcome, cancelled, diary.names) == ("completed", ["told"], ["conversation", "stop"])
    assert agent.of(Notice) == [Notice("plugin Slow timed out after 0.5 s at stop")]


@pytest.mark.req("X-03")
def test_a_sync_handler_that_never_returns_does_not_block_the_turn(project: Path) -> None:
    agent, diary, plugins = watched(project, "done", limit=0.5)
    order: list[str] = []

    def stuck(_told: object) -> None:
        time.sleep(NEVER_S)
        order.append("stuck ends")

    plugins.on("stop", stuck, priority=5, plugin="Stuck")
    agent.play()
    assert (order, diary.names) == ([], ["conversation", "stop"])


@pytest.mark.req("X-03")
def test_a_handler_that_ignores_its_cancellation_does_not_block_the_turn(project: Path) -> None:
    order: list[str] = []
    listen = on_first(TurnEnd, lambda _: order.append("the turn ends"))
    agent, diary, plugins = watched(project, "done", limit=0.5, listen=listen)

    async def stubborn(_told: object) -> None:
        while "the turn ends" not in order:
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                order.append("ignores it")
        order.append("the observer ends")

    plugins.on("stop", stubborn, priority=5, plugin="Stubborn")
    agent.play()
    assert "the observer ends" not in order[: order.index("the turn ends")]
    assert diary.names == ["conversation", "stop"]


@pytest.mark.req("S0-102")
def test_a_turn_that_waits_for_a_handler_takes_no_second_message(project: Path) -> None:
    agent, _, plugins = watched(project, "answer {n}", {"text": "answer {n}", "delay": 0.4})
    waiting = asyncio.Event()

    async def slow(_told: object) -> None:
        waiting.set()
        await asyncio.sleep(0.2)

    plugins.on("stop", slow)

    async def both() -> tuple[TurnResult | BaseException, TurnResult | BaseException]:
        async with agent.session:
            first = asyncio.create_task(agent.session.send("one"))
            await waiting.wait()
            second = asyncio.create_task(agent.session.send("two"))
            one, two = await asyncio.gather(first, second, return_exceptions=True)
            return one, two

    one, two = asyncio.run(both())
    assert isinstance(one, TurnResult)
    assert one.outcome == "completed"
    refused = isinstance(two, UsageError) and "in the middle of a turn" in str(two)
    assert refused or (isinstance(two, TurnResult) and two.result == "answer 2")


def test_handlers_without_errors_leave_no_notice(project: Path) -> None:
    agent, _, plugins = watched(project, "done", stop=block_first(1))
    agent.play()
    kinds = [type(event) for event in agent.events]
    assert plugins.complaints == []
    assert [kinds.count(kind) for kind in (StreamEnd, HookFinished, Continuation, TurnEnd, Notice)] == [
        2,
        2,
        1,
        1,
        0,
    ]


class Reader:
    """A plugin that reads its context."""

    ctx: PluginContext

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, float]] = []

    def stop(self, _: StopPayload) -> None:
        self.seen.append((self.ctx.project, self.ctx.session_id, self.ctx.settings.retention_days))


@pytest.mark.req("S1-20")
def test_a_plugin_knows_its_session_its_project_and_its_settings(project: Path, state: Path) -> None:
    plugin, plugins = Reader(), Plugins()
    plugins.add(plugin)

    async def turn() -> None:
        model = ScriptedModel({"main": ["done"]})
        async with Session(str(project), model, session_id="s", state=str(state), plugins=plugins) as session:
            await session.send("go")

    asyncio.run(turn())
    assert plugin.seen == [(str(project), "s", 30.0)]


@pytest.mark.req("S1-20")
def test_a_function_with_a_parameter_ctx_gets_the_context_of_its_session(project: Path) -> None:
    seen: list[tuple[object, ...]] = []
    plugins = Plugins()

    def stop(payload: StopPayload, ctx: PluginContext) -> None:
        seen.append((payload.session_id, ctx.session_id, ctx.project))

    async def conversation(messages: tuple[Message, ...], *, ctx: PluginContext) -> None:
        seen.append((len(messages), ctx.session_id, ctx.project))

    def stopping(event: SubagentStoppingEvent, ctx: SubagentStoppingContext) -> None:
        seen.append((event.run_id, ctx.run_id == event.run_id))

    plugins.on("stop", stop)
    plugins.on("conversation", conversation)
    plugins.on("subagent_stopping", stopping)
    scene = parent(project, "counted", plugins=plugins, session_id="s-1")
    scene.play()
    run = scene.runs()[-1]
    assert (scene.notices, seen) == (
        [],
        [(run.id, True), (4, "s-1", str(project)), ("s-1", "s-1", str(project))],
    )
