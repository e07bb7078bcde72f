"""Builds parents whose subagents replay a script; a test names only what matters to it."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from tests.support.machines import Machine, ThisMachine
from tests.support.sessions import make_session, message_text, records
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.session import Session
from turngate.core.conversation.messages import ModelRequest, Reply, ToolUse
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.events.plugin_events import (
    StopPayload,
    SubagentEndedEvent,
    SubagentStopPayload,
    SubagentStoppingContext,
    SubagentStoppingEvent,
)
from turngate.core.events.stream_events import (
    Notice,
    SessionEvent,
    SubagentStarted,
    TurnEnd,
    TurnResult,
)
from turngate.core.settings import Rule, Settings
from turngate.models.scripted import ScriptedModel
from turngate.plugins.handlers import Plugins
from turngate.subagents.limits import SubagentLimits, SubagentOptions
from turngate.subagents.registry import Registry
from turngate.subagents.steering import steer
from turngate.subagents.supervisor import Supervisor

T = TypeVar("T")
PROMPT = "count the lines"


def task(prompt: str = PROMPT, **given: Any) -> dict[str, Any]:
    """Return a reply in which the main agent starts a subagent."""
    return {"tool": "Task", "input": {"prompt": prompt, **given}}


def tasks(*given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply in which it starts several at once."""
    return {"tools": [{"name": "Task", "input": {"prompt": PROMPT, **each}} for each in given]}


def bash(command: str) -> dict[str, Any]:
    return {"tool": "Bash", "input": {"command": command}}


def write(name: str) -> dict[str, Any]:
    return {"tool": "Write", "input": {"file_path": name, "content": "x"}}


def redirect(prompt: str, **fields: Any) -> dict[str, Any]:
    """Return the answer of a handler that redirects."""
    return {"allow": False, "prompt": prompt, **fields}


class Gate:
    """A handler of `subagent_stopping` that gives these answers in order and repeats the last one."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers or (None,)
        self.events: list[SubagentStoppingEvent] = []
        self.contexts: list[SubagentStoppingContext] = []

    async def __call__(self, event: SubagentStoppingEvent, context: SubagentStoppingContext) -> Any:
        self.events.append(event)
        self.contexts.append(context)
        answer = self.answers[min(len(self.events), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def counts(self) -> list[int]:
        return [event.steer_count for event in self.events]


class ResumingModel(ScriptedModel):
    """Replaces AGENT in a tool's input by the id of the first subagent."""

    agent = ""

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        reply = await super().ask(request, tell)
        text = json.dumps([dict(use.input) for use in reply.tool_uses])
        while "AGENT" in text and not self.agent:
            await asyncio.sleep(0.005)
        given = iter(json.loads(text.replace("AGENT", self.agent)))
        blocks = tuple(
            replace(block, input=next(given)) if isinstance(block, ToolUse) else block
            for block in reply.blocks
        )
        return replace(reply, blocks=blocks)


@dataclass
class Parent:
    """A session with subagents, its model, and all events and handler calls in order."""

    session: Session
    model: ScriptedModel
    plugins: Plugins
    events: list[SessionEvent] = field(default_factory=list)
    steps: list[tuple[str, SubagentRun]] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    stops: list[SubagentStopPayload] = field(default_factory=list)
    endings: list[tuple[SubagentEndedEvent, SubagentStoppingContext]] = field(default_factory=list)
    turns: list[StopPayload] = field(default_factory=list)
    machine: Machine = field(default_factory=ThisMachine)

    def play(self, *prompts: str) -> TurnResult:
        async def turns() -> TurnResult:
            async with self.session:
                results = [await self.session.send(prompt) for prompt in prompts or ("go",)]
            return results[-1]

        return self.machine.run(turns())

    def during(self, scene: Callable[["Parent"], Awaitable[None]], prompt: str = "go") -> TurnResult:
        """Take one turn and run the scene at the same time."""

        async def both() -> TurnResult:
            async with asyncio.timeout(HANG_TIMEOUT_S), self.session:
                turn = asyncio.create_task(self.session.send(prompt))
                await scene(self)
                return await turn

        return self.machine.run(both())

    async def supervisor(self) -> Supervisor:
        await self.session._agent.subagents.connect()
        return self.session._agent.subagents

    async def steer(self, prompt: str, run: str = "") -> SubagentRun:
        """Steer the subagent as `turngate runs steer` does, which is another process."""

        def from_outside() -> SubagentRun:
            with contextlib.closing(Registry(self.session._agent.state)) as registry:
                found = registry.find("run", run or self.runs()[-1].id)
                assert found is not None
                return steer(registry, found, prompt)

        return await asyncio.to_thread(from_outside)

    async def kill(self, reason: str = "killed", number: int = 0) -> list[SubagentRun]:
        return await (await self.supervisor()).kill(self.registered[number].id, reason)

    async def until(self, step: str, times: int = 1) -> SubagentRun:
        """Wait until a subagent reaches a step for the n-th time."""
        while True:
            found = [run for name, run in self.steps if name == step]
            if len(found) >= times:
                return found[times - 1]
            await asyncio.sleep(0.005)

    def runs(self) -> list[SubagentRun]:
        """Return the last state of every run that reached a step, in the order of their starts."""
        return list({run.id: run for _, run in self.steps}.values())

    @property
    def registered(self) -> list[SubagentRun]:
        return [run for name, run in self.steps if name == "registered"]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.steps]

    @property
    def notices(self) -> list[str]:
        return [notice.text for notice in self.of(Notice)]

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def ended(self) -> list[SubagentEndedEvent]:
        return [event for event, _ in self.endings]

    def heard(self, agent: str, number: int = -1) -> list[str]:
        """Return the conversation in one request of the main agent or of a subagent."""
        asked = [request for request in self.model.requests if request.agent == agent]
        return [message_text(message) for message in asked[number].messages]

    def spoken(self) -> list[dict[str, Any]]:
        """Return the messages in the main agent's transcript."""
        return [each for each in records(self.session.transcript_path) if "message" in each]

    @property
    def transcript(self) -> str:
        return Path(self.session.transcript_path).read_text()


def parent(project: Path, *sub: Any, **options: Any) -> Parent:
    """Build a session on this machine with these hooks and handlers; `files`: with the project's settings."""
    return parent_on(ThisMachine(), project, *sub, **options)


def parent_on(
    machine: Machine,
    project: Path,
    *sub: Any,
    main: Iterable[Any] = (),
    gate: Callable[..., Any] | None = None,
    rules: Iterable[Rule] = (),
    dialect: Dialect = TURNGATE,
    said: Mapping[str, Any] | None = None,
    plugins: Plugins | None = None,
    listen: Callable[[SessionEvent, "Parent"], None] | None = None,
    on_step: Callable[[str, SubagentRun], None] | None = None,
    announcer: Callable[[SubagentRun], Awaitable[None]] | None = None,
    children: SubagentLimits | None = None,
    files: bool = False,
    **options: Any,
) -> Parent:
    """Build a session for a project on a machine."""
    script = {"main": list(main) or [task(), "home"], "sub": list(sub) or ["done"]}
    model = ResumingModel(script)
    plugins = plugins or Plugins()
    if gate:
        plugins.on("subagent_stopping", gate, plugin="gate")
    settings = None if files else Settings(rules=tuple(rules), dialect=dialect, **(said or {}))

    def on_event(event: SessionEvent) -> None:
        scene.events.append(event)
        if isinstance(event, SubagentStarted):
            model.agent = model.agent or event.agent_id
        if isinstance(event, TurnEnd):
            scene.trace.append("on_end")
        if listen:
            listen(event, scene)

    def step(name: str, run: SubagentRun) -> None:
        scene.steps.append((name, run))
        scene.trace.append(name)
        if on_step:
            on_step(name, run)

    seams = SubagentOptions(limits=children, announcer=announcer, on_step=step)
    session = make_session(
        machine, project, model, settings, plugins=plugins, on_event=on_event, children=seams, **options
    )
    scene = Parent(session, model, plugins, machine=machine)
    _record_handler_calls(plugins, scene)
    return scene


def _record_handler_calls(plugins: Plugins, scene: Parent) -> None:
    def stopped(payload: SubagentStopPayload) -> None:
        scene.trace.append("subagent_stop")
        scene.stops.append(payload)

    def ended(event: SubagentEndedEvent, context: SubagentStoppingContext) -> None:
        scene.trace.append("subagent_ended")
        scene.endings.append((event, context))

    def stop(payload: StopPayload) -> None:
        scene.trace.append("stop")
        scene.turns.append(payload)

    plugins.on("subagent_stop", stopped)
    plugins.on("subagent_ended", ended)
    plugins.on("stop", stop)
