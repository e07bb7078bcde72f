"""SessionHost: a session as the host of its subagents: what their supervisor asks for, and the sessions it makes."""

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import replace

from turngate.agent.agent_config import PermissionMode, stricter_mode
from turngate.agent.agent_session import AgentSession
from turngate.agent.event_sink import EventSink
from turngate.agent.session_hooks import hook_output_records
from turngate.agent.session_resources import SessionResources
from turngate.agent.tools import TOOLS
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events.events import Event
from turngate.core.events.stream_events import SessionEvent, SubagentFinished
from turngate.core.settings import Settings
from turngate.core.text import quote_name
from turngate.core.verdict.loop_guard import LoopGuard
from turngate.core.verdict.verdict import Verdict
from turngate.errors import UsageError
from turngate.plugins.handlers import Plugins
from turngate.settings.agent_types import AgentType
from turngate.state.paths import main_transcript_path
from turngate.subagents.host import SubagentRole, SubagentSession, subagent_transcript_path
from turngate.transcript.writer import Transcript


class SessionHost:
    """Implements `SubagentHost`. Runs of another session, which this process recovered, are hosted as well."""

    main: AgentSession  # set once it exists: it needs its subagents, and they need their host

    def __init__(self, resources: SessionResources, agent_types: Mapping[str, AgentType]) -> None:
        self._resources, self._agent_types, self.world = resources, agent_types, resources.world

    @property
    def settings(self) -> Settings:
        return self._resources.settings

    @property
    def plugins(self) -> Plugins:
        return self.main.plugins

    @property
    def hooks_run(self) -> bool:
        return self.main.hooks.enabled and not self.world.in_hook

    def permission_mode(self, run: SubagentRun) -> PermissionMode:
        return stricter_mode(self.main.permissions.mode, run.launch.get("permission_mode"))

    def new_session(self, run: SubagentRun) -> SubagentSession:
        tools = run.launch.get("tools")
        role = SubagentRole(
            agent_id=run.agent_id,
            agent_type=self._agent_type(run),
            depth=run.depth,
            transcript=self.transcript_path(run),
            parent_transcript=self.parent_transcript_path(run),
            tools=tuple(map(str, tools)) if isinstance(tools, list) else None,
        )
        main = self.main
        name, models = str(run.launch.get("model", "")), self._resources.models
        model = main.model if models is None or name in ("", main.model.name) else models(name)
        environ, enabled = main.tool_context.environ, main.hooks.enabled
        config = replace(main.config, model=main.model, environ=environ, hooks_enabled=enabled)
        config = config.from_launch(run.launch, role, model=model)
        events = EventSink(main.events.forward_from_subagent)
        return AgentSession(run.parent, self._resources, config, events, main.subagents, Plugins())

    def _agent_type(self, run: SubagentRun) -> AgentType:
        """Return the agent type of a run; if it is missing, the row still has the tools."""
        name = str(run.launch.get("kind") or run.agent_type)
        if name and name not in self._agent_types:
            lost = f"the instructions of its agent type {name}, which is not known here"
            self.notice(f"subagent {run.name} continues without {lost}")
        approvals = run.launch.get("approvals")
        agent_type = self._agent_types.get(name) or AgentType(run.agent_type)
        return agent_type.at_stage(approvals if type(approvals) is int else 0)

    def transcript_path(self, run: SubagentRun) -> str:
        return subagent_transcript_path(self._resources.state, run.parent, run.agent_id)

    def parent_transcript_path(self, run: SubagentRun) -> str:
        return main_transcript_path(self._resources.state, run.parent, self.settings.dialect.name)

    def changing_tools(self) -> Collection[str]:
        return [name for name, tool in TOOLS.items() if tool.changes]

    async def ask_hooks(self, event: Event, run: SubagentRun, guard: LoopGuard | None = None) -> Verdict:
        verdict = await self.main.hooks.ask_hooks(event, guard=guard, counts=False)
        printed, path, world = hook_output_records(verdict.runs), self.transcript_path(run), self.world
        try:
            if printed:  # another process may have opened the session of the subagent
                place = path, run.parent, world.project
                with closing(Transcript(*place, machine=world.machine)) as transcript:
                    self.main.hooks.keep_output(printed, transcript)
        except UsageError as error:
            names = ", ".join(quote_name(record["hook"]) for record in printed)
            self.notice(f"the output of hook {names} could not be written to the transcript: {error}")
        return verdict

    def emit(self, event: SessionEvent, run: SubagentRun) -> None:
        if isinstance(event, SubagentFinished) and run.parent == self.main.id:
            self.main.events.add_subagent(event)  # another session counts it when it gets the report
        self.main.events.emit(event)

    def notice(self, text: str) -> None:
        self.main.events.notice(text)

    def warn(self, run: SubagentRun, text: str, hint: str | None = None) -> None:
        entry = {"kind": "notice", "event": "SubagentStop", "agent_id": run.agent_id, "run_id": run.id}
        self._resources.journal.record(run.parent, {**entry, "text": text})
        self.main.events.notice(text, hint)
