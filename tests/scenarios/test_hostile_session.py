"""A session whose model, disk, listener, observers and callers do everything that they should not do."""

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.builders import rule
from tests.support.machines import Machine
from tests.support.paths import ROOT
from tests.support.sessions import (
    BLOCK_COMMAND,
    SAVE_INPUT,
    ScriptedSession,
    hang,
    kill_leftovers,
    message_text,
    on_first,
    records,
    saved_inputs,
    scripted_session,
    scripted_session_on,
    survives,
    wait_for_file,
)
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.agent_session import INSTRUCTIONS
from turngate.agent.compaction import MIN_MESSAGES_BETWEEN
from turngate.agent.session import Session
from turngate.core.conversation.messages import (
    ModelRequest,
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolUse,
    Usage,
)
from turngate.core.events.stream_events import (
    Continuation,
    HookStarted,
    Notice,
    SessionEvent,
    StreamEnd,
    TextDelta,
    ToolStarted,
    TurnEnd,
    TurnResult,
)
from turngate.core.settings import Rule
from turngate.errors import ModelError
from turngate.transcript.resume import read_conversation

FULL = "[Errno 27] File too large"  # what a disk says whose room is a limit of ours
ENDED = "no result: the turn ended ({}) before this call finished"


@pytest.fixture(autouse=True)
def _nothing_is_left(project: Path) -> Iterator[None]:
    yield
    kill_leftovers(project)


class Own:
    """A custom model: functions decide what it replies and how it closes."""

    name, context = "own:model", 200_000

    def __init__(self, say: Callable[["Own", ModelRequest], Awaitable[Any]]) -> None:
        self.say = say
        self.asked = 0
        self.begun = asyncio.Event()

    async def ask(self, request: ModelRequest, tell: Any) -> Reply:  # noqa: ARG002
        self.asked += 1
        return cast("Reply", await self.say(self, request))

    async def close(self) -> None:
        pass


def owned(
    project: Path, say: Callable[[Own, ModelRequest], Awaitable[Any]], **options: Any
) -> tuple[ScriptedSession, Own]:
    agent, model = scripted_session(project, **options), Own(say)
    agent.session._agent.model = model
    return agent, model


def bash(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}}


def said(session: Session) -> list[str]:
    return [message_text(message) for message in session.messages]


def kinds(session: Session) -> list[str]:
    return [record["type"] for record in records(session.transcript_path)]


async def interrupted(session: Session, begun: asyncio.Event, prompt: str = "go") -> TurnResult:
    """One turn, interrupted as soon as what is to be interrupted has begun."""
    async with asyncio.timeout(HANG_TIMEOUT_S):
        turn = asyncio.create_task(session.send(prompt))
        await begun.wait()
        session.interrupt()
        return await turn


async def for_ever() -> None:
    await asyncio.Event().wait()


# An interrupt that foreign code hides


def late() -> Reply:
    return Reply((ToolUse("t", "Bash", {"command": "touch ran"}),), "tool_use")


def overloaded() -> Reply:
    raise ModelError("overloaded", "the connection was lost")


def broken() -> Reply:
    raise RuntimeError("the connection was lost")


@pytest.mark.parametrize("instead", [late, overloaded, broken])
def test_an_interrupt_counts_although_the_model_makes_something_else_of_it(
    project: Path, instead: Callable[[], Reply]
) -> None:
    async def say(model: Own, _: ModelRequest) -> Reply:
        if model.asked > 1:
            return Reply((Text("again"),))
        model.begun.set()
        try:
            await for_ever()
        except asyncio.CancelledError:
            return instead()
        raise AssertionError

    watching = [rule("touch failed", "StopFailure"), rule("touch asked", "Stop")]
    agent, model = owned(project, say, rules=watching, allow=["Bash"], retries=(0.0,))

    async def play() -> tuple[TurnResult, int, list[str], TurnResult]:
        async with agent.session:
            first = await interrupted(agent.session, model.begun)
            return first, model.asked, os.listdir(project), await agent.session.send("more")

    first, asked, made, second = asyncio.run(play())
    assert (first.outcome, first.stop_reason, first.notices, asked, made) == ("interrupted", None, (), 1, [])
    assert (second.outcome, second.result) == ("completed", "again")
    assert said(agent.session) == ["go", "more", "agent: again"]


def agrees() -> bool:
    return True


def raises() -> bool:
    raise ValueError("the window is gone")


@pytest.mark.parametrize("instead", [agrees, raises])
def test_an_interrupt_counts_although_the_permission_callback_hides_it(
    project: Path, instead: Callable[[], bool]
) -> None:
    begun = asyncio.Event()

    async def permit(use: ToolUse, name: str) -> bool:
        begun.set()
        try:
            await for_ever()
        except asyncio.CancelledError:
            return instead()
        raise AssertionError

    agent = scripted_session(project, bash("touch ran"), "done", permit=permit)

    async def play() -> TurnResult:
        async with agent.session:
            return await interrupted(agent.session, begun)

    result = asyncio.run(play())
    assert (result.outcome, os.listdir(project)) == ("interrupted", [])
    assert (result.tool_calls, result.tools) == (0, ())
    assert said(agent.session) == [
        "go",
        "agent: Bash",
        "tool: not run: the user interrupted the question for permission",
    ]


class Deaf:
    """Foreign code that catches every cancellation and goes on, until it is released."""

    def __init__(self) -> None:
        self.begun, self.released = asyncio.Event(), asyncio.Event()

    async def __call__(self, *_: object) -> Any:
        self.begun.set()
        while not self.released.is_set():
            with suppress(asyncio.CancelledError):
                await self.released.wait()
        return True

    async def holds_up(self, work: Coroutine[Any, Any, Any], act: Callable[[], None] | None = None) -> bool:
        """Does it hold up this work, which is interrupted as soon as it has begun?"""
        task = asyncio.create_task(work)
        await self.begun.wait()
        if act:
            act()
        await asyncio.wait({task}, timeout=HANG_TIMEOUT_S)
        held = not task.done()
        self.released.set()
        await task
        return held


@pytest.mark.parametrize("place", ["model", "permission", "goodbye"])
def test_foreign_code_that_is_deaf_to_its_cancellation_is_left(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("turngate.aio.foreign_code.CANCEL_GRACE_S", 0.05)
    monkeypatch.setattr("turngate.agent.session_resources.MODEL_CLOSE_TIMEOUT_S", 0.05)
    deaf = Deaf()
    agent = scripted_session(project, bash("true"), "done", permit=deaf)
    session = agent.session
    if place != "permission":
        session._agent.permissions.allowed.add("Bash")
        monkeypatch.setattr(agent.model, "ask" if place == "model" else "close", deaf)

    async def play() -> bool:
        if place == "goodbye":
            await session.send("go")
            return await deaf.holds_up(session.close())
        async with session:
            return await deaf.holds_up(session.send("go"), session.interrupt)

    assert asyncio.run(play()) is False


def test_an_interrupt_ends_the_time_of_observers(project: Path) -> None:
    agent = scripted_session(project, "done")
    begun = asyncio.Event()

    async def watch(_: object) -> None:
        begun.set()
        await for_ever()

    agent.session._agent.plugins.on("stop", watch)

    async def play() -> TurnResult:
        async with agent.session:
            return await interrupted(agent.session, begun)

    result = asyncio.run(play())
    assert (result.outcome, result.result) == ("completed", "done")
    assert agent.events[-2:] == [
        Notice("the plugins were interrupted while they were notified of the turn's end"),
        TurnEnd(result),
    ]


# The end of a turn that is cut off


@pytest.mark.parametrize(
    "last", [(), (rule('cp "$TURNGATE_TRANSCRIPT_PATH" at_end', "SessionEnd"),)], ids=["", "hook"]
)
def test_a_session_that_is_closed_in_the_middle_of_a_turn_writes_its_end_first(
    project: Path, last: tuple[Rule, ...], machine: Machine
) -> None:
    agent = scripted_session_on(
        machine, project, bash(hang()), "never", rules=last, allow=["Bash"], session_id="s"
    )
    session = agent.session

    async def play() -> tuple[bool, TurnResult]:
        turn = asyncio.create_task(session.send("go"))
        await wait_for_file(project / "pid")
        await session.close()
        return turn.done(), await turn

    done, result = machine.run(play())
    assert (done, result.outcome, session.is_running) == (True, "interrupted", False)
    assert said(session) == ["go", "agent: Bash", f"tool: {ENDED.format('interrupt')}"]
    assert kinds(session) == ["user", "tool_call", "assistant", "user", "turn_end"]
    assert not last or (project / "at_end").read_text() == Path(session.transcript_path).read_text()
    assert not survives((project / "pid").read_text().strip())


def test_the_continuations_of_a_turn_that_was_closed_are_not_counted_in_the_next_one(project: Path) -> None:
    first = scripted_session(
        project, "one", "two", {"text": "never", "delay": 3600}, stop=BLOCK_COMMAND, limit=2
    )
    second = scripted_session(project, "three", stop=BLOCK_COMMAND, limit=2, session_id=first.session.id)

    async def play() -> tuple[TurnResult, TurnResult]:
        turn = asyncio.create_task(first.session.send("go"))
        while len(first.of(Continuation)) < 2 or len(first.model.requests) < 3:
            await asyncio.sleep(0.01)
        await first.session.close()
        async with second.session:
            return await turn, await second.session.send("a new task")

    closed, new = asyncio.run(play())
    assert (closed.outcome, closed.continuations) == ("interrupted", 2)
    assert (new.outcome, new.continuations, new.model_requests) == ("capped", 2, 3)


def test_a_stream_that_is_closed_early_ends_its_turn_and_leaves_the_session_usable(project: Path) -> None:
    agent = scripted_session(project, {"text": "long " * 200, "word_delay": 3600}, "two")
    session = agent.session

    async def play() -> tuple[object, list[str], TurnResult]:
        async with session:
            happening = cast("AsyncGenerator[SessionEvent]", session.stream("go"))
            async for event in happening:
                if isinstance(event, TextDelta):
                    break
            await happening.aclose()
            return session.is_running, kinds(session), await session.send("more")

    running, written, result = asyncio.run(play())
    assert (running, written) == (False, ["user", "turn_end"])
    assert (result.outcome, said(session)) == ("completed", ["go", "more", "agent: two"])


@pytest.mark.parametrize("kind", [HookStarted, StreamEnd, ToolStarted, TurnEnd])
def test_a_listener_that_raises_gets_its_error_and_locks_nothing(
    project: Path, kind: type[SessionEvent]
) -> None:
    agent = scripted_session(
        project, bash("true"), "done", stop="true", allow=["Bash"], listen=on_first(kind, stumble)
    )

    assert asyncio.run(goes_on_after_the_error(agent)) == (False, "completed")
    assert (kinds(agent.session).count("turn_end"), gaps(agent.session)) == (2, [])


def test_a_listener_that_raises_at_the_notice_of_a_plugins_error_locks_nothing(project: Path) -> None:
    agent = scripted_session(project, "done", listen=on_first(Notice, stumble))
    agent.session._agent.plugins.on("stop", lambda _: 1 / 0, plugin="mine")

    assert asyncio.run(goes_on_after_the_error(agent)) == (False, "completed")
    complaint = Notice("plugin mine failed at stop: ZeroDivisionError: division by zero")
    assert agent.of(Notice) == [complaint, complaint]


def test_a_listener_that_raises_in_the_middle_of_an_answer_ends_the_turn_and_locks_nothing(
    project: Path,
) -> None:
    """The model's library carries its error, so it is told as the model's."""
    agent = scripted_session(project, "done", listen=on_first(TextDelta, stumble))

    async def play() -> tuple[TurnResult, TurnResult]:
        async with agent.session as session:
            return await session.send("go"), await session.send("more")

    first, second = asyncio.run(play())
    assert (first.outcome, first.stop_reason) == ("error", "the model failed (invalid): ZeroDivisionError: ")
    assert (second.outcome, said(agent.session)) == ("completed", ["go", "more", "agent: done"])


async def goes_on_after_the_error(agent: ScriptedSession) -> tuple[object, str]:
    """What still runs when the error has come out, and how the next turn ends."""
    async with agent.session as session:
        with pytest.raises(ZeroDivisionError):
            await session.send("go")
        return session.is_running, (await session.send("more")).outcome


def stumble(_: Session) -> None:
    raise ZeroDivisionError


def gaps(session: Session) -> list[str]:
    """Answers with calls that no results follow."""
    pairs = zip(session.messages, [*session.messages[1:], None], strict=True)
    return [
        message_text(one)
        for one, two in pairs
        if isinstance(one, Reply) and one.tool_uses and not isinstance(two, ToolResults)
    ]


# Closing and opening


def test_a_model_that_does_not_close_delays_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.agent.session_resources.MODEL_CLOSE_TIMEOUT_S", 0.05)
    agent = scripted_session(project, "done")
    monkeypatch.setattr(agent.model, "close", for_ever)
    assert agent.play().outcome == "completed"
    assert agent.events[-1] == Notice("the model's connection could not be closed: TimeoutError: ")
    assert not agent.session._agent.conversation.is_open


def test_a_session_that_is_opened_twice_at_once_starts_once(project: Path) -> None:
    agent = scripted_session(project, "done", rules=[rule(SAVE_INPUT, "SessionStart")])

    async def play() -> TurnResult:
        async with agent.session as session:
            _, _, result = await asyncio.gather(session.open(), session.open(), session.send("go"))
            return result

    assert (asyncio.run(play()).outcome, saved_inputs(project, "source")) == ("completed", ["startup"])


# Messages that wait


def test_a_message_that_waits_is_kept_when_the_interrupt_comes_while_a_hook_looks_at_it(
    project: Path,
) -> None:
    look = f"if grep -q second && [ ! -e pid ]; then {hang()}; fi"
    queue = on_first(StreamEnd, lambda session: session.queue("second"))
    agent = scripted_session(
        project, "one", "two", "three", rules=[rule(look, "UserPromptSubmit")], stop="true", listen=queue
    )
    session = agent.session

    async def play() -> tuple[str, list[str], str]:
        async with session:
            turn = asyncio.create_task(session.send("first"))
            await wait_for_file(project / "pid")
            session.interrupt()
            return (await turn).outcome, said(session), (await session.send("third")).outcome

    assert asyncio.run(play()) == ("interrupted", ["first", "agent: one"], "completed")
    assert said(session) == ["first", "agent: one", "second", "agent: two", "third", "agent: three"]
    assert not survives((project / "pid").read_text().strip())


def test_a_message_is_answered_although_one_that_waited_before_it_is_blocked(project: Path) -> None:
    look = "if grep -q secret; then echo no >&2; exit 2; fi"

    def leave(session: Session) -> None:
        session.queue("a secret")
        session.interrupt()

    agent = scripted_session(
        project, "one", "two", rules=[rule(look, "UserPromptSubmit")], listen=on_first(TextDelta, leave)
    )

    async def play() -> tuple[str, TurnResult]:
        async with agent.session as session:
            return (await session.send("first")).outcome, await session.send("second")

    first, second = asyncio.run(play())
    assert (first, second.outcome, second.result, second.notices) == (
        "interrupted",
        "completed",
        "two",
        ("a hook blocked the prompt: no",),
    )
    assert said(agent.session) == ["first", "second", "agent: two"]


# What a model gives


@pytest.mark.parametrize("returned", [None, "done"])
def test_a_model_that_returns_no_reply_fails_the_turn(project: Path, returned: object) -> None:
    reason = f"the model failed (invalid): the model's reply is {returned!r}, expected a Reply"
    assert ended(project, returned) == ("error", reason)


def odd(name: str, given: Reply) -> Any:
    return pytest.param(given, id=name)


INSIDE = [
    odd("no input", Reply((ToolUse("t", "Bash", cast("Any", None)),), "tool_use")),
    odd("input that is no JSON", Reply((ToolUse("t", "Bash", {"command": {1, 2}}),), "tool_use")),
    odd("an unknown reason", Reply((Text("x"),), cast("Any", ["tired"]))),
    odd("half a letter", Reply((Text("x\ud800"),))),
    odd("no names", Reply((Text("x"),), model=cast("str", None), id=cast("str", {1}))),
]


@pytest.mark.parametrize("given", INSIDE)
def test_a_reply_that_is_odd_inside_leaves_a_session_that_can_be_used(project: Path, given: Reply) -> None:
    async def say(model: Own, _: ModelRequest) -> object:
        return given if model.asked == 1 else Reply((Text("fine"),))

    agent, _ = owned(project, say, allow=["Bash"], retries=())

    async def play() -> str:
        async with agent.session as session:
            await session.send("go")
            return (await session.send("more")).result

    assert (asyncio.run(play()), gaps(agent.session)) == ("fine", [])
    assert len(read_conversation(agent.session.transcript_path).messages) == len(agent.session.messages)


def ended(project: Path, given: object) -> tuple[str, str]:
    """How a turn ends whose model gives this; afterwards the session goes on."""

    async def say(model: Own, _: ModelRequest) -> object:
        return given if model.asked == 1 else Reply((Text("fine"),))

    agent, _ = owned(project, say, allow=["Bash"], retries=())

    async def play() -> tuple[TurnResult, TurnResult]:
        async with agent.session as session:
            return await session.send("go"), await session.send("more")

    first, second = asyncio.run(play())
    assert (second.outcome, said(agent.session)) == ("completed", ["go", "more", "agent: fine"])
    return first.outcome, first.stop_reason or ""


def test_calls_with_one_id_are_all_run_and_each_has_its_result(project: Path) -> None:
    twice = tuple(ToolUse("t", "Bash", {"command": f"echo {number}"}) for number in (1, 2))

    async def say(model: Own, _: ModelRequest) -> Reply:
        return Reply(twice, "tool_use") if model.asked == 1 else Reply((Text("done"),))

    agent, _ = owned(project, say, allow=["Bash"])
    agent.play()
    _, reply, results, _ = agent.session.messages
    assert isinstance(reply, Reply)
    assert isinstance(results, ToolResults)
    one, two = reply.tool_uses
    assert (one, two) == (twice[0], ToolUse(two.id, "Bash", {"command": "echo 2"}))
    assert two.id not in ("", "t")
    assert results == ToolResults((ToolResult("t", "1"), ToolResult(two.id, "2")))
    assert read_conversation(agent.session.transcript_path).messages == tuple(agent.session.messages)


def test_a_compaction_that_does_not_help_is_not_made_at_every_step(project: Path) -> None:
    summed: list[int] = []  # how much had been said each time

    async def say(model: Own, request: ModelRequest) -> Reply:
        if not request.system:  # only who sums up is told nothing
            summed.append(len(request.messages) - 1)
            return Reply((Text("short"),))
        if model.asked > 30:
            return Reply((Text("done"),))
        full = Usage(input_tokens=900, output_tokens=1)
        return Reply((ToolUse(f"t{model.asked}", "Bash", {"command": "true"}),), "tool_use", full)

    agent, model = owned(project, say, allow=["Bash"])
    model.context = 1000
    result = agent.play()
    assert (result.outcome, result.result) == ("completed", "done")
    assert summed == [3, *[MIN_MESSAGES_BETWEEN + 2] * 4]


# A disk that is full


@contextmanager
def room(session: Session, size: int) -> Iterator[None]:
    """So many bytes more fit into the transcript; it is for a process of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = session.transcript_path
    filled = os.path.getsize(path) if os.path.exists(path) else 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (filled + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def in_its_own_process(play: Callable[[Path], Awaitable[Any]], project: Path) -> Any:
    """A limit counts for a whole process, so the story is played in another one; gives what it tells, as JSON."""
    code = (
        "import asyncio, json, pathlib, sys; import tests.scenarios.test_hostile_session as tests\n"
        f"print(json.dumps(asyncio.run(tests.{play.__name__}(pathlib.Path(sys.argv[1])))))"
    )
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code, str(project)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


async def half_a_line(project: Path) -> Any:
    session = scripted_session(project, "one", "x" * 3000, "three").session
    async with session:
        await session.send("a")
        with room(session, 1500):
            full = await session.send("b")
        after = await session.send("c")
    past = read_conversation(session.transcript_path).messages
    return [
        full.outcome,
        full.stop_reason,
        after.outcome,
        said(session),
        [message_text(each) for each in past],
    ]


def test_what_follows_half_a_line_is_not_glued_to_it(project: Path) -> None:
    conversation = ["a", "agent: one", "b", "c", "agent: three"]
    why = f"the transcript cannot be written: {FULL}"
    assert in_its_own_process(half_a_line, project) == [
        "error",
        why,
        "completed",
        conversation,
        conversation,
    ]


async def no_room_for_a_result(project: Path) -> Any:
    agent = scripted_session(project, "one", bash("printf '%2000d' 1"), "three", allow=["Bash"])
    async with agent.session as session:
        await session.send("a")
        with room(session, 1700):
            full = await session.send("b")
        after = await session.send("c")
    past = read_conversation(session.transcript_path).messages
    return [full.outcome, after.outcome, agent.heard(), [message_text(each) for each in past]]


def test_a_result_that_cannot_be_written_leaves_no_gap(project: Path) -> None:
    before = ["a", "agent: one", "b", "agent: Bash"]
    heard = [*before, f"tool: {ENDED.format('error')}", "c"]
    past = [*before, "tool: the session ended before this tool did", "c", "agent: three"]
    assert in_its_own_process(no_room_for_a_result, project) == ["error", "completed", heard, past]


async def no_room_for_words(project: Path) -> Any:
    loud = [rule("printf '%3000d' 1", event) for event in ("SessionStart", "SessionEnd")]
    agent = scripted_session(project, "one", rules=loud)
    session = agent.session
    with room(session, 1000):
        await session.open()
    result = await session.send("a")
    with room(session, 1000):
        await session.close()
    past = read_conversation(session.transcript_path).messages
    return [
        result.outcome,
        [notice.text for notice in agent.of(Notice)],
        [message_text(each) for each in past],
    ]


def test_words_of_a_hook_that_cannot_be_written_are_a_notice(project: Path, state: Path) -> None:
    lost = f"the output of hook \"printf '%3000d' 1\" could not be written to the transcript: {FULL}"
    journal = (
        f"the journal could not be written ({state}: File too large); set TURNGATE_STATE to another folder"
    )
    notices = [lost, lost, journal]
    assert in_its_own_process(no_room_for_words, project) == ["completed", notices, ["a", "agent: one"]]


async def no_room_for_a_summary(project: Path) -> Any:
    session = scripted_session(project, "one", "a summary " * 300, "three").session
    async with session:
        await session.send("a")
        told = ""
        with room(session, 1000):
            try:
                await session.compact()
            except OSError as error:
                told = str(error)
        kept = said(session)
        after = await session.send("b")
    past = read_conversation(session.transcript_path).messages
    return [told, kept, after.outcome, said(session), [message_text(each) for each in past]]


def test_a_compaction_that_cannot_be_written_keeps_the_conversation(project: Path) -> None:
    whole = ["a", "agent: one", "b", "agent: three"]
    assert in_its_own_process(no_room_for_a_summary, project) == [FULL, whole[:2], "completed", whole, whole]


async def no_room_to_forget(project: Path) -> Any:
    session = scripted_session(project, "one", "two").session
    async with session:
        await session.send("a")
        told = ""
        with room(session, 0):
            try:
                await session.reset()
            except OSError as error:
                told = str(error)
        after = await session.send("b")
    past = read_conversation(session.transcript_path).messages
    return [told, after.outcome, said(session) == [message_text(each) for each in past]]


def test_a_session_that_cannot_forget_on_disk_does_not_forget_in_memory_alone(project: Path) -> None:
    assert in_its_own_process(no_room_to_forget, project) == [FULL, "completed", True]


# Guides of the project


def guided(project: Path) -> str:
    agent = scripted_session(project, "done")
    agent.play()
    return agent.model.requests[-1].system


def test_a_guide_that_lies_outside_of_the_project_is_not_sent(project: Path) -> None:
    (project.parent / "secret").write_text("the key")
    (project / "AGENTS.md").symlink_to(project.parent / "secret")
    (project / "CLAUDE.md").symlink_to("../secret")
    assert guided(project) == INSTRUCTIONS.format(project=project)


def test_a_guide_that_is_a_link_inside_of_the_project_is_sent(project: Path) -> None:
    (project / "guide").write_text("be brief")
    (project / "AGENTS.md").symlink_to("guide")
    said = "The project's AGENTS.md:\nbe brief"
    assert guided(project) == f"{INSTRUCTIONS.format(project=project)}\n\n{said}"


async def a_pipe_as_guide(project: Path) -> Any:
    return await asyncio.to_thread(guided, project)


def test_a_guide_that_is_a_pipe_freezes_nothing(project: Path) -> None:
    os.mkfifo(project / "AGENTS.md")
    assert in_its_own_process(a_pipe_as_guide, project) == INSTRUCTIONS.format(project=project)
