"""What the adapters of Python frameworks share: the gates of a project at the stops of agents in this process."""

import json
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncio

from turngate.aio.threads import T, event_loop_in_thread, run_in_thread
from turngate.core.constants import STOP_EVENTS
from turngate.core.conversation.messages import Message, Reply, ToolResult, ToolUse, Usage, UserMessage
from turngate.core.settings import Settings
from turngate.core.text import describe_exception
from turngate.engine import IN_HOOK_REASON
from turngate.errors import UsageError
from turngate.hosts.all_hosts import PORTABLE
from turngate.hosts.host import HEADING, Host, HostAnswer, with_halt_as_notice
from turngate.hosts.stop import answer_host_event
from turngate.hosts.stop_count import count_path
from turngate.state.paths import session_folder, state_folder
from turngate.stop_hooks import open_world, trouble_of
from turngate.transcript.host_records import TOOL_NAMES
from turngate.transcript.writer import Transcript
from turngate.trust.load import load_reviewed, refreshed, with_running_gates_held

LOG = logging.getLogger("turngate")
OnNotice = Callable[[str], None]


class ProjectGates:
    """The gates of one project for the runs of one agent; `agent` is the name of a subagent, whose stops are SubagentStop.

    A gate that was approved when the first run began holds for all of them, whatever the agent writes into settings.
    """

    def __init__(
        self,
        project: str,
        agent: str | None,
        limit: int | None,
        on_notice: OnNotice | None,
        *,
        dialect: str = "turngate",
        host: Host | None = None,
    ) -> None:
        """Raises UsageError."""
        self._project, self._agent, self._limit = os.path.abspath(project), agent, limit
        if not os.path.isdir(self._project):
            raise UsageError(f"there is no folder {self._project}; give the project's folder as `project`")
        if limit is not None and limit < 0:
            raise UsageError(f"`limit` is {limit}, expected 0 or more")
        self._on_notice, self._dialect = on_notice, dialect
        # The dialect has a heading for the main agent only.
        self._host = host or replace(PORTABLE, adds_heading=agent is None)
        self._settings: Settings | None = None
        self.session = f"python-{uuid.uuid4()}"  # where the framework has no id for a conversation

    async def begin(self, session: str | None, run: str) -> None:
        """An agent begins to work: hold the gates as they are now, and let them record what is there."""
        event = "SubagentStart" if self._agent else "SessionStart"
        await self.fire({"hook_event_name": event, **self._names(session, run)}, run)

    async def ask(
        self, session: str | None, run: str, messages: Iterable[Message], answer: str
    ) -> str | None:
        """An agent is about to stop: return the prompt with which it continues, or None if it may stop."""
        said, began = [*messages], _time_of(run)
        path = os.path.join(session_folder(state_folder(), session or self.session), f"run-{run}.jsonl")
        replies = [message for message in _since_prompt(said) if isinstance(message, Reply)]
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
            await run_in_thread(_write_transcript, path, session or self.session, self._project, said, began)
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
        except Exception as error:  # noqa: BLE001 - the agent's program must not fail with us
            LOG.debug("the stop hooks failed", exc_info=error)
            notices.append(f"the gates of {self._project} were NOT enforced: {describe_exception(error)}")
            answer = HostAnswer(decision="allow")
        for text in (*with_halt_as_notice(answer).notices, *notices):
            self._notify(text)
        return answer

    async def _fire(self, known: Mapping[str, Any], run: str, notices: list[str]) -> HostAnswer:
        name = known["hook_event_name"]
        if name not in STOP_EVENTS or self._settings is None:
            notices += await run_in_thread(self._load)
        settings = self._settings
        assert settings is not None
        count = count_path(state_folder(), name, {"session_id": known["session_id"], "agent_id": run})
        async with open_world(self._project, settings) as world:
            world.logs, world.records_trees = False, True
            stop = await answer_host_event(self._host, known, known, settings, world, count)
        notices += [*trouble_of(world), *([IN_HOOK_REASON] if world.in_hook else [])]
        return stop.answer if stop else HostAnswer(decision="allow")

    def _load(self) -> list[str]:
        """Read the settings for the next run. Return what the user has to know about them, if this is the first one."""
        reviewed = load_reviewed(self._project, dialect=self._dialect)
        is_first = self._settings is None
        settings = reviewed if self._settings is None else refreshed(self._settings, reviewed)
        if (limit := self._limit) is not None:
            hard = settings.dialect.hard_limit if settings.hard_limit is None else settings.hard_limit
            hard = None if hard is None else max(hard, limit)
            settings = replace(settings, limit=limit, child_limit=limit, hard_limit=hard)
        self._settings = with_running_gates_held(settings)
        event = "SubagentStop" if self._agent else "Stop"
        if not is_first or settings.not_loaded or any(rule.event == event for rule in settings.rules):
            return []
        nothing = f"no hook for {event} is configured in {self._project}, so nothing is checked"
        return [f"{nothing}; `turngate init` writes gates"]

    def _names(self, session: str | None, run: str) -> dict[str, str]:
        names = {"session_id": session or self.session, "cwd": self._project}
        return {**names, "agent_id": run, "agent_type": self._agent} if self._agent else names

    def _notify(self, text: str) -> None:
        if self._on_notice is None:
            LOG.warning("%s", text)
            return
        try:
            self._on_notice(text)
        except Exception:
            LOG.exception("`on_notice` failed: %s", text)


def new_run() -> str:
    """Return an id for one run of an agent, from the user's prompt to its end; it begins with the time."""
    return f"{time.time_ns() // 1_000_000}-{uuid.uuid4().hex}"


def _time_of(run: str) -> float:
    return int(run.partition("-")[0]) / 1000


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine for code without `async`, also inside of a running event loop. An interrupt cancels it."""
    with event_loop_in_thread() as loop:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


# The conversation, as gates read it

_NAMES = {**TOOL_NAMES, "execute": "Bash", "shell": "Bash", "edit_file": "Edit", "file_write": "Write"}
_FAILED = r"(?i)\bexit[ _](?:code|status)\W{0,3}[1-9]"
_TAIL = 200  # characters at the end of a result, where tools for commands write the exit code


def user_message(text: str) -> UserMessage:
    by_hook = text.startswith((HEADING, "[Stop hook requested continuation]"))
    return UserMessage(text, "stop_hook" if by_hook else "user")


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


def _since_prompt(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of the turn, which began with the last message that the user wrote."""
    prompts = [
        place
        for place, each in enumerate(messages)
        if isinstance(each, UserMessage) and each.origin == "user"
    ]
    return messages[prompts[-1] :] if prompts else messages


def _write_transcript(
    path: str, session: str, project: str, messages: Iterable[Message], began: float
) -> None:
    """Write the conversation for the hooks. Most frameworks do not say when a message was written, so it is the run's start."""
    transcript = Transcript(path, session, project)
    try:
        for message in messages:
            transcript.write_message(message, timestamp=datetime.fromtimestamp(began, UTC).isoformat())
    finally:
        transcript.close()
