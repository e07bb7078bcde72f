"""A parent, as the supervisor of its children sees it: its settings and its world, and how a child of it is made."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from turngate.agent.tools import TOOLS
from turngate.core import events
from turngate.core.session_events import Notice, SessionEvent
from turngate.core.settings import Settings
from turngate.core.subagent_run import SubagentRun
from turngate.core.verdict import Verdict
from turngate.plugins.handlers import Plugins
from turngate.ports import Model, World
from turngate.state.paths import main_transcript_path, session_folder
from turngate.subagents.agent_types import AgentType

if TYPE_CHECKING:
    from turngate.agent.session import Session
    from turngate.agent.session_base import SessionBase
    from turngate.subagents.manager import SubagentManager


@dataclass(frozen=True)
class SubagentRole:
    """Who a child is; the main agent has none."""

    agent_id: str
    parent: str  # the session of the main agent
    kind: AgentType
    depth: int
    transcript: str
    parent_transcript: str
    tools: tuple[str, ...] | None = None  # those of its parent; None: all


def child_transcript(state: str, parent: str, agent: str) -> str:
    return os.path.join(session_folder(state, parent), "subagents", f"{agent}.jsonl")


class Parent:
    def __init__(self, session: "SessionBase", family: "SubagentManager") -> None:
        self._session, self._family = session, family

    @property
    def project(self) -> str:
        return self._session.project

    @property
    def settings(self) -> Settings:
        return self._session.settings

    @property
    def world(self) -> World:
        return self._session.world

    @property
    def plugins(self) -> Plugins:
        return self._session.plugins

    def new_session(self, run: SubagentRun) -> "Session":
        """The session of a child; what the user allows for a session counts for its children."""
        launch, parent = run.launch, self._session
        kind = self._family.kinds.get(str(launch.get("kind") or run.agent_type)) or AgentType(run.agent_type)
        tools = launch.get("tools")
        role = SubagentRole(
            run.agent_id,
            run.parent,
            kind,
            run.depth,
            self.transcript_path(run),
            self.parent_transcript_path(run),
            tuple(map(str, tools)) if isinstance(tools, list) else None,
        )
        child = cast("type[Session]", type(parent))(
            parent.project,
            self._model_for(str(launch.get("model", ""))),
            parent.settings,
            session_id=run.parent,
            state=parent.state,
            role=role,
            parent=parent,
            permission_mode=launch.get("permission_mode", "default"),
            allow=launch.get("allow", ()),
            extra_paths=launch.get("extra_paths", ()),
            permit=parent.permit,
            max_turns=parent.max_turns,
            hooks=parent.hooks,
            retries=parent.retries,
            on_event=self._hear_child,
        )
        if run.parent == parent.id:
            child.allowed = parent.allowed
        return child

    def _hear_child(self, event: SessionEvent) -> None:
        """What a child is told is its own affair; a word to the user is for the user."""
        if isinstance(event, Notice):
            self._session.notice(event.text)

    def transcript_path(self, run: SubagentRun) -> str:
        return child_transcript(self._session.state, run.parent, run.agent_id)

    def parent_transcript_path(self, run: SubagentRun) -> str:
        if run.parent == self._session.id:
            return self._session.transcript_path
        return main_transcript_path(self._session.state, run.parent, self._session.settings.dialect.name)

    def changing_tools(self) -> Collection[str]:
        return [name for name, tool in TOOLS.items() if tool.changes]

    async def ask_hooks(self, event: events.Event) -> Verdict:
        return await self._session.ask(event)

    def emit(self, event: SessionEvent) -> None:
        self._session.child_event(event)

    def notice(self, text: str) -> None:
        self._session.notice(text)

    def on_subagent_change(self, run: SubagentRun) -> None:
        self._family.families.get(run.parent_agent, self._family).expect()

    def has_subagents(self, agent_id: str) -> bool:
        """Has this child started children of its own, as far as we know?"""
        family = self._family.families.get(agent_id)
        return family is None or family.has_spawned

    def on_subagent_gone(self, run: SubagentRun) -> None:
        self._family.families.pop(run.agent_id, None)

    def _model_for(self, name: str) -> Model:
        if name in ("", self._session.model.name) or self._family.models is None:
            return self._session.model
        return self._family.models(name)
