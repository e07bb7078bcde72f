"""What the adapters of Python frameworks share: the gates of a project at the stops of agents, and what gates read of their conversation."""

import asyncio
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from turngate.aio.threads import T, run_in_thread
from turngate.core.constants import STOP_EVENTS
from turngate.core.conversation.messages import Message, Reply, ToolResult, ToolUse, Usage, UserMessage
from turngate.core.dialect import TURNGATE
from turngate.core.settings import Settings
from turngate.core.text import describe_exception
from turngate.engine import IN_HOOK_REASON
from turngate.errors import UsageError
from turngate.hosts.all_hosts import PORTABLE
from turngate.hosts.host import HostAnswer, with_halt_as_notice
from turngate.hosts.stop import answer_host_event
from turngate.hosts.stop_count import count_path
from turngate.state.paths import session_folder, state_folder
from turngate.stop_hooks import open_world, trouble_of
from turngate.transcript.host_records import TOOL_NAMES
from turngate.transcript.writer import Transcript
from turngate.trust.load import load_reviewed, refreshed, with_running_gates_held

LOG = logging.getLogger("turngate")
OnNotice = Callable[[str], None]


class GatedAgent:
    """What `StopGates` of every framework takes.

    `agent`: the name of a subagent, whose stops are SubagentStop. `limit`: continuations per run, instead of that of the
    settings. `on_notice` gets what the user has to know, such as a gate that was not enforced; by default, it is logged.
    Raises UsageError.
    """

    def __init__(
        self,
        project: str = ".",
        agent: str | None = None,
        limit: int | None = None,
        on_notice: OnNotice | None = None,
    ) -> None:
        super().__init__()
        self._gates = ProjectGates(project, agent, limit, on_notice)


class ProjectGates:
    """The gates of one project for the runs of one agent, or of several.

    A gate that was approved when the first run began holds for all of them, whatever the agent writes into settings.
    """

    dialect, host = TURNGATE.name, PORTABLE

    def __init__(
        self, project: str, agent: str | None, limit: int | None, on_notice: OnNotice | None
    ) -> None:
        self._project, self._agent = os.path.abspath(project), agent
        if not os.path.isdir(self._project):
            raise UsageError(f"there is no folder {self._project}; give the project's folder as `project`")
        if limit is not None and limit < 0:
            raise UsageError(f"`limit` is {limit}, expected 0 or more")
        self._limit, self._on_notice = limit, on_notice
        self._settings: Settings | None = None
        self._unknown = frozenset[str]()  # tools that the user was told about
        self._session = f"python-{uuid.uuid4()}"  # where the framework has no id for a conversation

    async def begin(self, session: str | None, run: str) -> None:
        """An agent begins to work: hold the gates as they are now, and let them record what is there."""
        event = "SubagentStart" if self._agent else "SessionStart"
        await self.fire({"hook_event_name": event, **self._names(session, run)}, run)

    async def ask(
        self, session: str | None, run: str, messages: Iterable[Message], answer: str
    ) -> str | None:
        """An agent is about to stop: return the prompt with which it continues, or None if it may stop."""
        session, began = session or self._session, int(run.partition("-")[0]) / 1000
        said, path = list[Message](), ""
        try:
            path = os.path.join(session_folder(state_folder(), session), f"run-{run}.jsonl")
            said += messages
            await run_in_thread(write_transcript, path, session, self._project, said, began)
        except Exception as error:  # noqa: BLE001 - of the disk, or a message of another form
            self.notify(f"gates cannot read the conversation: {describe_exception(error)}")
        self._report_tools(said)
        replies = [message for message in since_prompt(said) if isinstance(message, Reply)]
        usage = sum((reply.usage for reply in replies), Usage())
        known = {
            "hook_event_name": "SubagentStop" if self._agent else "Stop",
            **self._names(session, run),
            "agent_transcript_path" if self._agent else "transcript_path": path,
            "prompt_id": run,
            "stop_hook_active": True,  # whether it is, the count of the run says
            "last_assistant_message": answer,
            "usage": {"input_tokens": usage.total_input, "output_tokens": usage.output_tokens},
            "duration_ms": int((time.time() - began) * 1000),
            "tool_calls": sum(len(reply.tool_uses) for reply in replies),
        }
        try:
            step = await self.fire(known, run)
        finally:
            with suppress(OSError):  # the framework keeps the conversation
                os.unlink(path)
        return step.reason if step.decision == "block" else None

    async def fire(self, known: Mapping[str, Any], run: str) -> HostAnswer:
        """Ask the hooks about an event. A failure of our own lets the agent stop, and the user is told."""
        notices: list[str] = []
        try:
            answer = await self._fire(known, run, notices)
        except Exception as error:  # the agent's program must not fail with us
            LOG.debug("the stop hooks failed", exc_info=error)
            notices.append(f"the gates of {self._project} were NOT enforced: {describe_exception(error)}")
            answer = HostAnswer(decision="allow")
        for text in (*with_halt_as_notice(answer).notices, *notices):
            self.notify(text)
        return answer

    async def _fire(self, known: Mapping[str, Any], run: str, notices: list[str]) -> HostAnswer:
        name = known["hook_event_name"]
        if name not in STOP_EVENTS or self._settings is None:
            self._settings = await run_in_thread(self._load, notices)
        settings = self._settings
        count = count_path(state_folder(), name, {"session_id": known["session_id"], "agent_id": run})
        async with open_world(self._project, settings) as world:
            world.logs, world.records_trees = False, True
            stop = await answer_host_event(self.host, known, known, settings, world, count)
        notices += [*trouble_of(world), *([IN_HOOK_REASON] if world.in_hook else [])]
        return stop.answer if stop else HostAnswer(decision="allow")

    def _load(self, notices: list[str]) -> Settings:
        """Return the settings for the next run. At the first one, add to `notices` if there is nothing to check."""
        settings = load_reviewed(self._project, dialect=self.dialect)
        event = "SubagentStop" if self._agent else "Stop"
        if self._settings is not None:
            settings = refreshed(self._settings, settings)
        elif not settings.not_loaded and not any(rule.event == event for rule in settings.rules):
            nothing = f"no hook for {event} is configured in {self._project}, so nothing is checked"
            notices.append(f"{nothing}; `turngate init` writes gates")
        if (limit := self._limit) is not None:
            hard = settings.dialect.hard_limit if settings.hard_limit is None else settings.hard_limit
            hard = None if hard is None else max(hard, limit)
            settings = replace(settings, limit=limit, child_limit=limit, hard_limit=hard)
        dialect = replace(settings.dialect, subagent_prefix=settings.dialect.prefix)
        return with_running_gates_held(replace(settings, dialect=dialect))

    def _report_tools(self, messages: Iterable[Message]) -> None:
        """Say once which tools the gate `evidence` cannot judge: it would pass whatever they change."""
        rules = self._settings.rules if self._settings else ()
        names = unknown_tools(messages) - self._unknown
        if names and any(getattr(rule.hook, "gate", "") == "evidence" for rule in rules):
            self._unknown |= names
            self.notify(f'gate "evidence" does not know what these tools change: {", ".join(sorted(names))}')

    def _names(self, session: str | None, run: str) -> dict[str, str]:
        names = {"session_id": session or self._session, "cwd": self._project}
        return {**names, "agent_id": run, "agent_type": self._agent} if self._agent else names

    def notify(self, text: str) -> None:
        try:
            (self._on_notice or LOG.warning)(text)
        except Exception:
            LOG.exception("`on_notice` failed: %s", text)


def new_run() -> str:
    """Return an id for one run of an agent, from the user's prompt to its end; it begins with the time."""
    return f"{time.time_ns() // 1_000_000}-{uuid.uuid4().hex}"


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine for code without `async`, also inside of a running event loop. An interrupt cancels it."""
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def run() -> T:
        started.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    with ThreadPoolExecutor(1) as pool:  # a thread has no running loop
        future = pool.submit(asyncio.run, run())
        try:
            return future.result()
        except BaseException:
            for loop, task in started:
                if task and not future.done():
                    loop.call_soon_threadsafe(task.cancel)
            raise


# The conversation

_NAMES = {**TOOL_NAMES, "execute": "Bash", "shell": "Bash", "edit_file": "Edit", "file_write": "Write"}
_READ_ONLY = ("ls", "read_file", "glob", "grep")
_FAILED = r"(?i)\bexit[ _](?:code|status)\W{0,3}[1-9]"
_TAIL = 200  # characters at the end of a result, where tools for commands write the exit code


def user_message(text: str) -> UserMessage:
    return UserMessage(text, "stop_hook" if text.startswith(TURNGATE.prefix) else "user")


def tool_use(identity: object, name: str, arguments: object) -> ToolUse:
    """Return a call of a tool; tools for commands, files and tasks get the names that gates know."""
    with suppress(ValueError, RecursionError):
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    args = dict(arguments) if isinstance(arguments, Mapping) else {}
    known = _NAMES.get(name, name)
    if known in ("Edit", "Write") and "path" in args:
        args.setdefault("file_path", args["path"])
    return ToolUse(str(identity), known, args)


def tool_result(identity: object, content: object, *, is_error: bool = False) -> ToolResult:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return ToolResult(str(identity), text, is_error or re.search(_FAILED, text[-_TAIL:]) is not None)


def since_prompt(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of the turn, which began with the last message that the user wrote."""
    is_prompt = (isinstance(each, UserMessage) and each.origin == "user" for each in messages)
    return messages[max((n for n, is_one in enumerate(is_prompt) if is_one), default=0) :]


def unknown_tools(messages: Iterable[Message]) -> frozenset[str]:
    calls = [call.name for each in messages if isinstance(each, Reply) for call in each.tool_uses]
    return frozenset(calls) - {*_NAMES.values(), *_READ_ONLY}


def write_transcript(
    path: str, session: str, project: str, messages: Iterable[Message], began: float
) -> None:
    """Write the conversation for the hooks. Most frameworks do not say when a message was written, so it is the run's start."""
    with closing(Transcript(path, session, project)) as transcript:
        for message in messages:
            transcript.write_message(message, timestamp=datetime.fromtimestamp(began, UTC).isoformat())
