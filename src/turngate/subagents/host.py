"""What subagents need from sessions: the session they belong to, and the session each of them runs in.

Sessions start subagents, so `subagents` cannot import them. These protocols break that cycle.
"""

import os
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.inbox import Inbox, InboxEntry
from turngate.core.conversation.messages import Message
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events import events
from turngate.core.events.stream_events import SessionEvent, TurnResult
from turngate.core.settings import Settings
from turngate.core.verdict.loop_guard import LoopGuard
from turngate.core.verdict.verdict import Verdict
from turngate.plugins.handlers import Plugins
from turngate.ports import World
from turngate.settings.agent_types import AgentType
from turngate.state.paths import session_folder


@frozen
class SubagentRole:
    """Identity of a subagent; None for the main agent."""

    agent_id: str
    agent_type: AgentType
    depth: int
    transcript: str
    parent_transcript: str
    tools: tuple[str, ...] | None = None  # the tools that it was started with; None: all


def subagent_transcript_path(state: str, session_id: str, agent_id: str) -> str:
    name = os.path.basename(agent_id)  # in a shared registry, another login has chosen the id
    return os.path.join(session_folder(state, session_id), "subagents", f"{name}.jsonl")


class SubagentConversation(Protocol):
    """The conversation of one subagent."""

    @property
    def messages(self) -> Sequence[Message]: ...
    def append(self, message: Message, **meta: Any) -> None: ...
    def append_once(self, entry: InboxEntry) -> None: ...
    def has_delivered(self, key: str) -> bool: ...
    def sync(self) -> None: ...
    async def sync_in_thread(self) -> None: ...


class SubagentSession(Protocol):
    """The session that one subagent runs in."""

    last_result: TurnResult | None

    @property
    def conversation(self) -> SubagentConversation: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def checkpoint(self) -> str | None:
        """What the user is asked at the end of the instructions that the subagent has; None: they are complete."""
        ...

    @property
    def requests_exhausted(self) -> bool: ...
    async def open(self) -> None: ...
    async def run_turn(self, entry: InboxEntry) -> TurnResult: ...
    async def close(self) -> None: ...


class SubagentHost(Protocol):
    """The session that subagents belong to: its settings and hooks, and the sessions it makes for them."""

    world: World

    @property
    def settings(self) -> Settings: ...
    @property
    def plugins(self) -> Plugins: ...
    @property
    def hooks_run(self) -> bool: ...
    def permission_mode(self, run: SubagentRun) -> str:
        """Return the mode that a run has here: of its own and the session's the stricter one."""
        ...

    def transcript_path(self, run: SubagentRun) -> str: ...
    def parent_transcript_path(self, run: SubagentRun) -> str: ...
    def changing_tools(self) -> Collection[str]: ...
    async def ask_hooks(
        self, event: events.Event, run: SubagentRun, guard: LoopGuard | None = None
    ) -> Verdict: ...
    def notice(self, text: str) -> None: ...
    def warn(self, run: SubagentRun, text: str, hint: str | None = None) -> None:
        """Give the user a notice about a run, and record it in the journal of its session."""
        ...

    def emit(self, event: SessionEvent, run: SubagentRun) -> None:
        """Emit an event about a run; only its own session counts it for a turn."""
        ...

    def new_session(self, run: SubagentRun) -> SubagentSession: ...
