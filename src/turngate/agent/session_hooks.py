"""SessionHooks: fire the events of a session, keep the output of hooks, report notices."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from turngate.agent.agent_config import AgentConfig
from turngate.agent.conversation import Conversation
from turngate.agent.event_sink import EventSink
from turngate.agent.session_resources import SessionResources
from turngate.agent.turn_state import TurnHalted, halt_of
from turngate.core.answers.report_types import Exited
from turngate.core.constants import SUBAGENT_EVENTS
from turngate.core.events.events import Event, SessionStart
from turngate.core.events.hook_input import effort_level
from turngate.core.events.stream_events import MissedGates
from turngate.core.hooks.kinds import label
from turngate.core.settings import Settings
from turngate.core.text import quote_name
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.loop_guard import LoopGuard
from turngate.core.verdict.tool_effects import added_context, first_messages
from turngate.core.verdict.verdict import Stop, Verdict, notices, warnings_with_hints
from turngate.engine import ask_hooks
from turngate.gates.goal_rule import clear_met, with_goal
from turngate.gates.session_goal import goal_at
from turngate.state.paths import state_folder
from turngate.transcript.writer import Transcript

Source = Literal["startup", "resume", "clear", "compact"]
MAX_KEPT_OUTPUT_CHARS = 10_000  # of what one hook printed, in the transcript


class SessionHooks:
    def __init__(
        self, resources: SessionResources, config: AgentConfig, conversation: Conversation, events: EventSink
    ) -> None:
        self.enabled = config.hooks_enabled
        self.start_context: list[str] = []  # what SessionStart hooks add to the system prompt
        self._resources, self._world = resources, resources.world
        self._permissions, self._role = config.permissions, config.role
        self._conversation, self._events = conversation, events
        self._halted: TurnHalted | None = None  # by a SessionStart hook
        self._first_messages: list[str] = []  # of SessionStart hooks, not yet in the conversation
        self._prompt_id = config.prompt_id
        self._effort = effort_level(resources.settings, resources.world.own_environ)

    @property
    def _settings(self) -> Settings:
        return self._resources.settings  # a review replaces them

    def event_fields(self) -> dict[str, Any]:
        role, turn = self._role, self._events.turn
        if turn is not None and role is None:  # SessionEnd belongs to the last prompt
            self._prompt_id = turn.prompt_id
        return {
            "session_id": self._conversation.session_id,
            "transcript_path": role.parent_transcript if role else self._conversation.path,
            "cwd": self._world.project,
            "permission_mode": self._permissions.mode,
            "prompt_id": self._prompt_id,
            "effort": self._effort,
            **({"agent_id": role.agent_id, "agent_type": role.agent_type.name} if role else {}),
        }

    async def fire(self, event: Event, guard: LoopGuard | None = None) -> Verdict:
        """Run the hooks of one event and keep what they print in the transcript."""
        verdict = await self.ask_hooks(event, guard=guard)
        if printed := hook_output_records(verdict.runs):
            self.keep_output(printed, self._conversation.transcript)
        return verdict

    async def ask_hooks(
        self, event: Event, *, guard: LoopGuard | None = None, counts: bool = True
    ) -> Verdict:
        """Run the hooks of one event; the user reads their notices. `counts`: a gate that is not enforced counts for the turn of this session."""
        if not self.enabled or (self._role and event.name not in SUBAGENT_EVENTS):
            return Stop()
        place = state_folder(self._world.own_environ), self._conversation.session_id, (self._world.location,)
        goal = goal_at(*place, event.name)
        verdict = await ask_hooks(event, with_goal(self._settings, goal), self._world, guard)
        turn = self._events.turn
        if turn is not None:
            turn.hook_runs += verdict.runs
            turn.forget_waiting(event.name)
            if verdict.unenforced and counts:
                self._events.add_missed(MissedGates(unenforced=verdict.unenforced))
        for text in notices(verdict.runs):
            self._events.notice(text)
        for text, hint in warnings_with_hints(verdict.runs, self._settings.dialect):
            if turn is None or text not in turn.notices:  # once per turn, however often the hook runs
                self._events.notice(text, hint)
        return verdict

    def clear_met_goal(self, verdict: Verdict) -> None:
        for text in clear_met(verdict.runs, state_folder(self._world.own_environ)):
            self._events.notice(text)

    def keep_output(self, printed: Iterable[Mapping[str, str]], transcript: Transcript) -> None:
        for record in printed:
            try:
                transcript.write_record(record)
            except OSError as error:
                output = f"the output of hook {quote_name(record['hook'])}"
                self._events.notice(f"{output} could not be written to the transcript: {error}")

    async def fire_session_start(self, source: Source, model: str) -> None:
        fields = {**self.event_fields(), "prompt_id": ""}  # it belongs to no prompt
        verdict = await self.fire(SessionStart(**fields, source=source, model=model))
        if source != "compact":  # then the conversation has begun
            self._first_messages = first_messages(verdict.runs)
        added = added_context(verdict.runs, plain=True)
        earlier = self.start_context if source == "compact" else []  # a compaction keeps the earlier context
        self.start_context = [*earlier, added] if added and added not in earlier else list(earlier)
        self._halted = halt_of(verdict) or self._halted

    def take_first_message(self) -> str | None:
        return self._first_messages.pop(0) if self._first_messages else None

    def raise_if_halted(self) -> None:
        """End the turn if a SessionStart hook answered `continue: false`."""
        halted, self._halted = self._halted, None
        if halted is not None:
            raise halted


def hook_output_records(runs: Iterable[HookRun]) -> list[dict[str, str]]:
    """Return the stdout of hooks as records of a transcript, except where the hook asks to suppress it."""
    return [
        {
            "type": "hook_output",
            "event": run.rule.event,
            "hook": label(run.rule.hook),
            "stdout": run.report.stdout[:MAX_KEPT_OUTPUT_CHARS],
        }
        for run in runs
        if isinstance(run.report, Exited) and run.report.stdout.strip() and not run.decision.quiet
    ]
