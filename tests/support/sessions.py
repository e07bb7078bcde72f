"""Builds sessions whose model replays a script; a test names only what matters to it."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support.builders import rule
from tests.support.machines import Machine, SshMachine, ThisMachine
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from turngate.agent.session import Session
from turngate.core.conversation.messages import Message, Reply, ToolResults, UserMessage
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.events.stream_events import SessionEvent, TurnResult
from turngate.core.hooks.kinds import Hook
from turngate.core.settings import Rule, Settings
from turngate.models.scripted import ScriptedModel
from turngate.ports import Model

T = TypeVar("T")

BLOCK_COMMAND = "echo 'run the tests' >&2; exit 2"
SAVE_INPUT = "cat >> seen"  # saves the hook input, one line for each run


def block_first(times: int, why: str = "run the tests") -> str:
    """Return a hook command that blocks so many times and then passes."""
    count = "n=$(cat asked 2>/dev/null || echo 0); echo $((n+1)) > asked"
    return f"{count}; [ $n -ge {times} ] || {{ echo '{why}' >&2; exit 2; }}"


def hang(name: str = "pid") -> str:
    """Return a command that writes its pid to a file and does not end."""
    return f"echo $$ > {name}.new; mv {name}.new {name}; sleep 3600"


def say(answer: Any) -> str:
    """Return a hook command that prints JSON."""
    return f"cat > /dev/null; echo '{json.dumps(answer)}'"


def specific(event: str, **fields: Any) -> str:
    return say({"hookSpecificOutput": {"hookEventName": event, **fields}})


@dataclass
class ScriptedSession:
    """A session, its model, and the events that it emitted."""

    session: Session
    model: ScriptedModel
    events: list[SessionEvent]
    machine: Machine = field(default_factory=ThisMachine)

    def play(self, *prompts: str) -> TurnResult:
        """Take one turn for each prompt and return the last result."""
        return self.machine.run(self.turns(*prompts or ("go",)))

    async def turns(self, *prompts: str) -> TurnResult:
        async with self.session:
            results = [await self.session.send(prompt) for prompt in prompts]
        return results[-1]

    def path_for_hooks(self, transcript: str) -> str:
        """Return the path that hooks get for a transcript: on another machine, that of its copy."""
        copies = self.session._agent.resources.world.copies
        return transcript if copies is None else self.machine.run(copies.copy(transcript))

    def heard(self, number: int = -1) -> list[str]:
        """Return the conversation in one request to the model."""
        return [message_text(message) for message in self.model.requests[number].messages]

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


def scripted_session(project: Path, *replies: Any, **options: Any) -> ScriptedSession:
    """Build a session on this machine with these hooks only; the project's settings are ignored."""
    return scripted_session_on(ThisMachine(), project, *replies, **options)


def scripted_session_on(
    machine: Machine,
    project: Path,
    *replies: Any,
    stop: Hook | str | None = None,
    rules: Iterable[Rule] = (),
    dialect: Dialect = TURNGATE,
    listen: Callable[[SessionEvent, Session], None] | None = None,
    context: int = 200_000,
    env: dict[str, str] | None = None,
    **options: Any,
) -> ScriptedSession:
    """Build a session with these hooks only, for a project on a machine."""
    asked = (*((rule(stop),) if stop is not None else ()), *rules)
    settings = Settings(rules=asked, dialect=dialect, env=env or {})
    return _acting(machine, project, replies, settings, listen=listen, context=context, **options)


def configured_session(project: Path, *replies: Any, **options: Any) -> ScriptedSession:
    """Build a session on this machine with the hooks of the project's settings."""
    return configured_session_on(ThisMachine(), project, *replies, **options)


def configured_session_on(
    machine: Machine, project: Path, *replies: Any, dialect: str = "mux", **options: Any
) -> ScriptedSession:
    """Build a session with the hooks of the project's settings, which are on a machine."""
    return _acting(machine, project, replies, None, dialect=dialect, **options)


def _acting(
    machine: Machine,
    project: Path,
    replies: Iterable[Any],
    settings: Settings | None,
    *,
    listen: Callable[[SessionEvent, Session], None] | None = None,
    context: int = 200_000,
    judge: Iterable[Any] = (),
    sub: Iterable[Any] = (),
    **options: Any,
) -> ScriptedSession:
    roles = {"main": list(replies) or ["done"], "sub": list(sub), "judge": list(judge)}
    model = ScriptedModel({**roles, "context": context})
    events: list[SessionEvent] = []

    def on_event(event: SessionEvent) -> None:
        events.append(event)
        if listen:
            listen(event, session)

    session = make_session(machine, project, model, settings, on_event=on_event, **options)
    return ScriptedSession(session, model, events, machine)


def make_session(
    machine: Machine, project: Path, model: Model, settings: Settings | None, **options: Any
) -> Session:
    """Make a session for a project on a machine."""
    if not isinstance(machine, SshMachine):
        return Session(str(project), model, settings, **options)
    workspace = machine.workspace(project)
    return machine.run(Session.in_workspace(workspace, model, settings, **options))


def on_first(kind: type, act: Callable[[Session], None]) -> Callable[[SessionEvent, Session], None]:
    """Return a listener that acts on the session at its first event of a type."""
    done: list[SessionEvent] = []

    def listen(event: SessionEvent, session: Session) -> None:
        if isinstance(event, kind) and not done:
            done.append(event)
            act(session)

    return listen


def message_text(message: Message) -> str:
    match message:
        case UserMessage(text):
            return text
        case Reply():
            return "agent: " + " + ".join([*message.texts, *(use.name for use in message.tool_uses)])
        case ToolResults(results):
            return "tool: " + " + ".join(result.content for result in results)


def saved_inputs(project: Path, *fields: str) -> list[Any]:
    """Return the inputs that `KEEP` saved: objects, one field of each, or tuples of fields."""
    told = [json.loads(line) for line in lines(project / "seen")]
    if not fields:
        return told
    return [each[fields[0]] if len(fields) == 1 else tuple(each[f] for f in fields) for each in told]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def records(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def without_starts(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the records of starts, which only hooks that take long have, and on a slow machine any."""
    return [record for record in records if record["kind"] != "start"]


async def wait_for_file(path: Path) -> str:
    """Wait until a process has written the file, and return its content."""
    async with asyncio.timeout(HANG_TIMEOUT_S):
        while not lines(path):
            await asyncio.sleep(POLL_INTERVAL_S)
    return "\n".join(lines(path))


def wait_for_file_sync(path: Path) -> str:
    """Do the same outside of an event loop."""
    end = time.monotonic() + HANG_TIMEOUT_S
    while not lines(path):
        assert time.monotonic() < end, f"{path} was not written"
        time.sleep(POLL_INTERVAL_S)
    return "\n".join(lines(path))


def is_running(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def survives(pid: str) -> bool:
    """Wait for the end of a process that was told to end. Return True if it does not come."""
    end = time.monotonic() + HANG_TIMEOUT_S
    while is_running(pid):
        if time.monotonic() > end:
            return True
        time.sleep(POLL_INTERVAL_S)
    return False


def kill_leftovers(project: Path, name: str = "pid") -> None:
    """Kill the hook or tool of a killed process, which runs on."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        group = os.getpgid(int((project / name).read_text()))
        if group != os.getpgid(0):
            os.killpg(group, signal.SIGKILL)
