"""An interrupt in every phase of a turn, with a model behind a real connection: from Python, and by a signal.

Afterwards nothing runs, nothing more is asked, what comes late revives nothing, and the session can be used again.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import live_models as live
from tests.support import warm_cli as warm
from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.live_models import MODEL, NEVER_REPLY, conversation, wait_until
from tests.support.servers.anthropic import AnthropicServer
from tests.support.servers.model import Json
from tests.support.sessions import BLOCK_COMMAND, SAVE_INPUT, kill_leftovers, survives
from tests.support.terminal import CTRL_C, Terminal
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.session import Session
from turngate.core.events.stream_events import (
    Continuation,
    HookStarted,
    SessionEvent,
    TextDelta,
    ToolStarted,
    TurnEnd,
    TurnResult,
)
from turngate.core.settings import Settings
from turngate.models.live import LiveModel

TOLD = "[Stop hook requested continuation]\nrun the tests"

# It ends for no polite signal, waits to be released, and would then leave a trace and refuse.
STUBBORN = """trap '' INT TERM HUP
echo $$ > pid.new; mv pid.new pid
while [ ! -e released ]; do sleep 0.05; done
echo late >> late; echo 'go on, late' >&2; exit 2"""

FOR_MINUTES: Json = {"text": "a word and  " * 2000, "chunk_delay": 0.1}


@dataclass(frozen=True)
class Phase:
    """What the model says and the stop hook does, what is told when it has come, and what the model knows later."""

    name: str
    replies: list[Any]
    stop: str
    sign: type[SessionEvent]
    requests: int  # that the model has got by then
    kept: list[tuple[str, str]]  # of the conversation
    continuations: int = 0
    runs: bool = False  # a process that is stubborn

    def __str__(self) -> str:
        return self.name


TOOL = {"text": "I look.", "tool": "Bash", "input": {"command": STUBBORN}}
LOST = "no result: the turn ended (interrupt) before this call finished"

PHASES = [
    Phase("the model streams", [FOR_MINUTES], SAVE_INPUT, TextDelta, 1, [("user", "first")]),
    Phase(
        "a tool runs",
        [TOOL],
        SAVE_INPUT,
        ToolStarted,
        1,
        [("user", "first"), ("assistant", "I look."), ("call", "Bash"), ("result", LOST)],
        runs=True,
    ),
    Phase(
        "a stop hook runs",
        ["done"],
        STUBBORN,
        HookStarted,
        1,
        [("user", "first"), ("assistant", "done")],
        runs=True,
    ),
    Phase(
        "a continuation is answered",
        ["done", NEVER_REPLY],
        BLOCK_COMMAND,
        Continuation,
        2,
        [("user", "first"), ("assistant", "done"), ("user", TOLD)],
        continuations=1,
    ),
]

QUEUED = Phase(
    "a continuation is queued",
    ["done"],
    BLOCK_COMMAND,
    Continuation,
    1,
    [("user", "first"), ("assistant", "done")],
    continuations=1,
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, project: Path) -> Iterator[None]:
    live.block_real_providers(monkeypatch)
    yield
    kill_leftovers(project)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Phase], AnthropicServer]]:
    """Starts a server whose model says what the phase wants, and afterwards always "used again"."""
    with ExitStack() as servers:
        yield lambda phase: servers.enter_context(live.serve_model(monkeypatch, *phase.replies, "used again"))


def has_come(project: Path, server: AnthropicServer, phase: Phase) -> bool:
    return len(server.requests) >= phase.requests and (not phase.runs or (project / "pid").exists())


def left(project: Path, phase: Phase) -> list[str]:
    """What an interrupt has not ended."""
    runs = phase.runs and survives((project / "pid").read_text().strip())
    return [*(["a process"] if runs else []), *(["a late trace"] if (project / "late").exists() else [])]


# From Python


class Scene:
    """A session in which the phase comes, and everything that it told."""

    def __init__(self, project: Path, server: AnthropicServer, phase: Phase) -> None:
        self.project, self.server, self.phase = project, server, phase
        self.events: list[SessionEvent] = []
        self._told = asyncio.Event()
        settings = Settings(rules=(rule(phase.stop),))
        self.session = Session(str(project), LiveModel(MODEL), settings, allow=["Bash"], on_event=self._hear)

    def _hear(self, event: SessionEvent) -> None:
        self.events.append(event)
        if isinstance(event, self.phase.sign):
            self._told.set()
            if self.phase is QUEUED:
                # In the middle of the event: nothing has been taken from the queue yet.
                self.session.interrupt()

    async def turn(self) -> asyncio.Task[TurnResult]:
        """The first turn, as soon as the phase has come."""
        turn = asyncio.create_task(self.session.send("first"))
        await self._told.wait()
        while not has_come(self.project, self.server, self.phase):
            await asyncio.sleep(0.01)
        return turn


@pytest.mark.req("S0-21", "S0-71", "S0-99", "S0-102", "C-33")
@pytest.mark.parametrize("phase", [*PHASES, QUEUED], ids=str)
def test_an_interrupt_from_python_leaves_a_session_that_can_be_used_again(
    project: Path, model: Callable[[Phase], AnthropicServer], phase: Phase
) -> None:
    server = model(phase)
    scene = Scene(project, server, phase)

    async def play() -> tuple[TurnResult, list[SessionEvent], TurnResult]:
        async with scene.session as session:
            turn = await scene.turn()
            session.interrupt()
            result = await turn
            told = len(scene.events)
            (project / "released").touch()  # a process that still ran would now write late
            await asyncio.sleep(0.3)
            late = scene.events[told:]
            session._agent.hooks.enabled = False
            return result, late, await session.send("second")

    result, late, again = asyncio.run(asyncio.wait_for(play(), HANG_TIMEOUT_S))
    assert (result.outcome, result.ended_by, result.continuations, late) == (
        "interrupted",
        "interrupt",
        phase.continuations,
        [],
    )
    assert left(project, phase) == []
    assert (again.outcome, again.result, again.continuations, again.model_requests) == (
        "completed",
        "used again",
        0,
        1,
    )
    assert (len(server.requests), conversation(server.requests[-1])) == (
        phase.requests + 1,
        [*phase.kept, ("user", "second")],
    )


@pytest.mark.req("S0-102")
def test_the_provider_is_hung_up_on_when_its_answer_is_interrupted(
    project: Path, model: Callable[[Phase], AnthropicServer]
) -> None:
    server = model(PHASES[0])
    session = Session(
        str(project),
        LiveModel(MODEL),
        Settings(),
        on_event=lambda event: session.interrupt() if isinstance(event, TextDelta) else None,
    )

    async def scene() -> TurnResult:
        async with session:
            result = await session.send("first")
            assert await asyncio.to_thread(
                server.broken.wait, HANG_TIMEOUT_S
            )  # while the session is still open
            return result

    assert asyncio.run(scene()).outcome == "interrupted"


@pytest.mark.req("S0-102")
@pytest.mark.parametrize("phase", PHASES, ids=str)
def test_many_interrupts_are_one(
    project: Path, model: Callable[[Phase], AnthropicServer], phase: Phase
) -> None:
    """The user presses the key again and again, also during the cleanup."""
    server = model(phase)
    scene = Scene(project, server, phase)

    async def play() -> TurnResult:
        async with scene.session as session:
            turn = await scene.turn()
            while not turn.done():
                session.interrupt()
                await asyncio.sleep(0)
            (project / "released").touch()
            return await turn

    result = asyncio.run(asyncio.wait_for(play(), HANG_TIMEOUT_S))
    ends = [event for event in scene.events if isinstance(event, TurnEnd)]
    assert (result.outcome, ends, len(server.requests)) == ("interrupted", [TurnEnd(result)], phase.requests)
    assert left(project, phase) == []


# By a signal


@contextmanager
def running(project: Path, form: str) -> Iterator[warm.Program]:
    """The command as a process of its own, as a shell would start it: in its own group."""
    with live.start_run(project, "first", "--output-format", form, own_group=True) as program:
        yield program


def comes(project: Path, server: AnthropicServer, phase: Phase) -> None:
    """Waits for the phase, from outside."""
    wait_until(lambda: has_come(project, server, phase), f"{phase} never came")


@pytest.mark.req("S0-99", "S0-102", "C-33")
@pytest.mark.parametrize("phase", PHASES, ids=str)
def test_a_signal_ends_the_command_and_the_session_continues_with_the_next_one(
    project: Path, model: Callable[[Phase], AnthropicServer], phase: Phase
) -> None:
    server = model(phase)
    write_settings(project, "turngate", stop_hooks(phase.stop))
    with running(project, "json") as process:
        comes(project, server, phase)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    (project / "released").touch()
    result = json.loads(out)
    assert (process.returncode, err, result["outcome"], result["ended_by"], result["continuations"]) == (
        130,
        "",
        "interrupted",
        "interrupt",
        phase.continuations,
    )
    assert (result["model_requests"], len(server.requests)) == (phase.requests, phase.requests)
    assert left(project, phase) == []
    again = warm.run(live.run_arguments(project, "second", "--no-hooks"), timeout=HANG_TIMEOUT_S)
    assert (again.returncode, again.stdout, again.stderr) == (0, "used again\n", "")
    assert (len(server.requests), conversation(server.requests[-1])) == (
        phase.requests + 1,
        [*phase.kept, ("user", "second")],
    )


@pytest.mark.req("S0-102", "C-33")
def test_a_signal_right_after_a_block_lets_nothing_continue(
    project: Path, model: Callable[[Phase], AnthropicServer]
) -> None:
    """As soon as the continuation is told: it is queued then, or just being asked about, and never answered."""
    server = model(PHASES[-1])
    write_settings(project, "turngate", stop_hooks(BLOCK_COMMAND))
    with running(project, "stream-json") as process:
        told = []
        for line in process.stdout:
            told.append(json.loads(line))
            if told[-1]["type"] == "continuation":
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    rest = [json.loads(line) for line in out.splitlines()]
    assert [event["type"] for event in rest if event["type"] != "turn_end"] == ["result"]  # nothing was begun
    assert (process.returncode, err, rest[-1]["outcome"], rest[-1]["continuations"]) == (
        130,
        "",
        "interrupted",
        1,
    )
    assert [event["type"] for event in told] == [
        "text_delta",
        "stream_end",
        "hook_started",
        "hook_finished",
        "continuation",
    ]
    assert len(server.requests) <= 2


def again_and_again(process: warm.Program) -> tuple[str, str]:
    """Press the key until the process has ended."""
    end = time.monotonic() + HANG_TIMEOUT_S
    while process.poll() is None and time.monotonic() < end:
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)
    return process.communicate(timeout=HANG_TIMEOUT_S)


@pytest.mark.req("S0-102")
@pytest.mark.parametrize("phase", PHASES, ids=str)
def test_an_impatient_user_leaves_nothing_behind_either(
    project: Path, model: Callable[[Phase], AnthropicServer], phase: Phase
) -> None:
    server = model(phase)
    write_settings(project, "turngate", stop_hooks(phase.stop))
    with running(project, "json") as process:
        comes(project, server, phase)
        again_and_again(process)
    (project / "released").touch()
    assert (process.returncode in (130, -signal.SIGINT), len(server.requests)) == (True, phase.requests)
    assert left(project, phase) == []


@pytest.mark.req("S0-102")
def test_an_impatient_user_gets_the_result_and_130_too(
    project: Path, model: Callable[[Phase], AnthropicServer]
) -> None:
    server = model(PHASES[0])
    with running(project, "json") as process:
        comes(project, server, PHASES[0])
        out, err = again_and_again(process)
    assert (process.returncode, err, json.loads(out or "{}").get("outcome")) == (130, "", "interrupted")


# By a key in a terminal, where the whole group gets the signal


@pytest.mark.req("S0-99", "S0-102")
@pytest.mark.parametrize("phase", PHASES, ids=str)
def test_ctrl_c_in_a_terminal_ends_one_prompt_in_every_phase(
    project: Path, model: Callable[[Phase], AnthropicServer], phase: Phase
) -> None:
    server = model(phase)
    write_settings(project, "turngate", stop_hooks(phase.stop))
    with Terminal(
        *live.run_arguments(project, "first", "--output-format", "json"), cwd=project, env=dict(os.environ)
    ) as terminal:
        comes(project, server, phase)
        terminal.type(CTRL_C)
        code = terminal.end()
        terminal.expect('"outcome": "interrupted"')
    (project / "released").touch()
    assert (code, len(server.requests)) == (130, phase.requests)
    assert left(project, phase) == []
