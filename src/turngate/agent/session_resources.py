"""SessionResources: what a session and its subagents share, and its end."""

import asyncio
import os
from collections.abc import Callable
from functools import partial

from turngate.agent.background import describe_lost_block
from turngate.agent.env_file import env_file
from turngate.agent.event_sink import EventSink
from turngate.agent.hook_agent import HookAgentRunner
from turngate.aio.foreign_code import run_isolated
from turngate.aio.threads import run_in_thread
from turngate.core.events.events import Event, StopEvent
from turngate.core.settings import Settings
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.tool_effects import late_context, wake_message
from turngate.models.resolve import JudgeModels
from turngate.ports import Model, World
from turngate.state.journal import Journal
from turngate.state.paths import main_transcript_path

MODEL_CLOSE_TIMEOUT_S = 5.0


class LateContext:
    """What hooks in the background add to the conversations, until the next request takes it. `on_rewake_end` gets the runs that may wake the main agent."""

    def __init__(self, settings: Settings, notice: Callable[[str], None]) -> None:
        self._settings, self._notice = settings, notice
        self._texts: dict[str, list[str]] = {}  # by agent id
        self.on_rewake_end: Callable[[HookRun], None] | None = None

    def add(self, event: Event, run: HookRun) -> None:
        if run.decision.notice:
            self._notice(run.decision.notice)
        if text := late_context(run, self._settings.dialect):
            agent_id = "" if isinstance(event, StopEvent) else event.agent_id
            self._texts.setdefault(agent_id, []).append(text)
        is_main = event.subagent is None if isinstance(event, StopEvent) else not event.agent_id
        if is_main and run.rule.hook.rewake and self.on_rewake_end:
            self.on_rewake_end(run)
        elif wake_message(run):
            self._notice(describe_lost_block(run, "blocked a subagent, which it does not wake"))

    def take(self, agent_id: str) -> list[str]:
        return self._texts.pop(agent_id, [])


class SessionResources:
    """Belongs to a main session, which closes it."""

    def __init__(
        self,
        workspace: World,
        settings: Settings,
        state: str,
        *,
        session_id: str,
        model: Model,
        models: Callable[[str], Model] | None,
        events: EventSink,
    ) -> None:
        """`workspace` is where the project is; the rest of the session's world is made here."""
        self.settings, self.state = settings, state  # a review replaces the settings
        self.models = models  # finds a model by its name
        self.journal = Journal(state, workspace.location)
        self.judges = JudgeModels(settings.judge, model, models, settings.environ_of_models(os.environ))
        self.late_context = LateContext(settings, events.notice)
        self.main_transcript = main_transcript_path(state, session_id, settings.dialect.name)
        file = env_file(state, session_id)
        self.world = World(
            workspace.shell,
            workspace.project,
            self.journal,
            {**workspace.environ, "CLAUDE_ENV_FILE": file, "TURNGATE_ENV_FILE": file},
            judge=self.judges,
            on_background_end=self.late_context.add,
            logs=events.listener is None,
            remote=workspace.remote,
        )
        self.world.records_trees = True
        self.world.watch = partial(events.watch_hook, settings, self.world)
        self.world.inspect = HookAgentRunner(self.world, settings, state, self.judges, workspace.environ)

    async def close(self, model: Model, notice: Callable[[str], None]) -> None:
        await close_models(self.judges, model, notice=notice)
        await run_in_thread(self.journal.close)


async def close_models(*models: Model | JudgeModels, notice: Callable[[str], None]) -> None:
    """Close connections, which is foreign code; a failure is only reported."""
    try:
        async with asyncio.timeout(MODEL_CLOSE_TIMEOUT_S):
            for model in models:
                await run_isolated(model.close())
    except Exception as error:  # noqa: BLE001 - foreign code, and the conversation is over
        notice(f"the model's connection could not be closed: {type(error).__name__}: {error}")
