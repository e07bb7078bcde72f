"""Builds sessions whose model replays a script; a test names only what matters to it."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.support.builders import rule
from turngate.agent.session import Session
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.hooks import Hook
from turngate.core.messages import Message, Reply, ToolResults, UserMessage
from turngate.core.session_events import SessionEvent, TurnResult
from turngate.core.settings import Rule, Settings
from turngate.models.scripted import ScriptedModel

T = TypeVar("T")

REFUSE = "echo 'run the tests' >&2; exit 2"
KEEP = "cat >> seen"  # what hooks are told, one line for each


def refuse(times: int, why: str = "run the tests") -> str:
    """A hook that refuses so often, and then agrees."""
    count = "n=$(cat asked 2>/dev/null || echo 0); echo $((n+1)) > asked"
    return f"{count}; [ $n -ge {times} ] || {{ echo '{why}' >&2; exit 2; }}"


def hang(name: str = "pid") -> str:
    """A command that says who it is and stays."""
    return f"echo $$ > {name}.new; mv {name}.new {name}; sleep 60"


def say(answer: Any) -> str:
    """A hook that answers in JSON."""
    return f"cat > /dev/null; echo '{json.dumps(answer)}'"


def specific(event: str, **fields: Any) -> str:
    return say({"hookSpecificOutput": {"hookEventName": event, **fields}})


@dataclass
class Actor:
    """A session, its model, and everything that it told."""

    session: Session
    model: ScriptedModel
    events: list[SessionEvent]

    def play(self, *prompts: str) -> TurnResult:
        """One turn for each prompt; what the last one came to."""
        return asyncio.run(self.turns(*prompts or ("go",)))

    async def turns(self, *prompts: str) -> TurnResult:
        async with self.session:
            results = [await self.session.send(prompt) for prompt in prompts]
        return results[-1]

    def heard(self, number: int = -1) -> list[str]:
        """The conversation that a request carried."""
        return [shown(message) for message in self.model.requests[number].messages]

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


def actor(
    project: Path,
    *replies: Any,
    stop: Hook | str | None = None,
    rules: Iterable[Rule] = (),
    dialect: Dialect = TURNGATE,
    listen: Callable[[SessionEvent, Session], None] | None = None,
    context: int = 200_000,
    env: dict[str, str] | None = None,
    **options: Any,
) -> Actor:
    """A session with these hooks alone; what is in the project's settings does not count."""
    asked = (*((rule(stop),) if stop is not None else ()), *rules)
    settings = Settings(rules=asked, dialect=dialect, env=env or {})
    return _acting(project, replies, settings, listen=listen, context=context, **options)


def configured(project: Path, *replies: Any, dialect: str = "mux", **options: Any) -> Actor:
    """A session with the hooks of the project's own settings."""
    return _acting(project, replies, None, dialect=dialect, **options)


def _acting(
    project: Path,
    replies: Iterable[Any],
    settings: Settings | None,
    *,
    listen: Callable[[SessionEvent, Session], None] | None = None,
    context: int = 200_000,
    **options: Any,
) -> Actor:
    model = ScriptedModel({"main": list(replies) or ["done"], "context": context})
    events: list[SessionEvent] = []

    def hear(event: SessionEvent) -> None:
        events.append(event)
        if listen:
            listen(event, session)

    session = Session(str(project), model, settings, on_event=hear, **options)
    return Actor(session, model, events)


def on_first(kind: type, act: Callable[[Session], None]) -> Callable[[SessionEvent, Session], None]:
    """Does something to the session at its first event of a kind."""
    done: list[SessionEvent] = []

    def listen(event: SessionEvent, session: Session) -> None:
        if isinstance(event, kind) and not done:
            done.append(event)
            act(session)

    return listen


def shown(message: Message) -> str:
    match message:
        case UserMessage(text):
            return text
        case Reply():
            return "agent: " + " + ".join([*message.texts, *(use.name for use in message.tool_uses)])
        case ToolResults(results):
            return "tool: " + " + ".join(result.content for result in results)


def seen(project: Path, *fields: str) -> list[Any]:
    """What the hooks with `KEEP` were told; with one field only that, with more a tuple."""
    told = [json.loads(line) for line in lines(project / "seen")]
    if not fields:
        return told
    return [each[fields[0]] if len(fields) == 1 else tuple(each[f] for f in fields) for each in told]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def records(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


async def appears(path: Path) -> str:
    """Waits for a file that some process writes; gives what is in it."""
    async with asyncio.timeout(20):
        while not lines(path):
            await asyncio.sleep(0.01)
    return "\n".join(lines(path))


def awaited(path: Path, seconds: float = 20.0) -> str:
    """The same outside of a loop."""
    end = time.monotonic() + seconds
    while not lines(path):
        assert time.monotonic() < end, f"{path} did not come"
        time.sleep(0.01)
    return "\n".join(lines(path))


def lives(pid: str) -> bool:
    """Does a process still run? One that is being ended gets a moment."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


def end_leftovers(project: Path, name: str = "pid") -> None:
    """A hook or tool of somebody who was killed runs on; nobody else would end it."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        group = os.getpgid(int((project / name).read_text()))
        if group != os.getpgid(0):
            os.killpg(group, signal.SIGKILL)
