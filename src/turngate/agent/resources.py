"""What a session shares with its subagents, and what each agent has of its own."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from turngate.agent.hook_agent import HookAgent
from turngate.agent.permissions import Permissions
from turngate.aio.foreign import run_isolated
from turngate.aio.threads import run_in_thread
from turngate.core.settings import Settings
from turngate.models.resolve import JudgeModels
from turngate.ports import Model, Shell, World
from turngate.state.journal import Journal
from turngate.state.paths import main_transcript_path, session_folder
from turngate.subagents.agent_types import AgentType
from turngate.subagents.host import SubagentRole

MODEL_CLOSE_TIMEOUT_S = 5.0


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """One agent of a session: the main agent, or a subagent (then it has a role)."""

    model: Model
    owns_model: bool = True  # False: a subagent uses the model of its session
    permissions: Permissions
    environ: Mapping[str, str]  # for Bash
    extra_paths: Sequence[str]
    hooks_enabled: bool
    max_requests: int
    retries: Sequence[float]
    limit: int | None = None  # of continuations; None: the limit of the settings
    skip_stop_hook: bool = False  # the plugins are not notified of a turn's end
    role: SubagentRole | None = None

    @property
    def agent_id(self) -> str:
        return self.role.agent_id if self.role else ""

    @property
    def depth(self) -> int:
        return self.role.depth if self.role else 0

    def launch(self, agent_type: AgentType, tools: Iterable[str], **fields: str) -> dict[str, Any]:
        """Return, as JSON, what `from_launch` makes a subagent from, also in another process."""
        return {
            "kind": agent_type.name,
            "permission_mode": self.permissions.mode,
            "allow": sorted(self.permissions.allowed),
            "extra_paths": list(self.extra_paths),
            "tools": list(tools),
            **fields,
        }

    def from_launch(
        self, launch: Mapping[str, Any], role: SubagentRole, *, same_session: bool, model: Model
    ) -> "AgentConfig":
        """Return the subagent of this agent. What the user allows a session, its subagents may do as well."""
        allowed = self.permissions.allowed if same_session else set(launch.get("allow", ()))
        mode = launch.get("permission_mode", "default")
        return replace(
            self,
            model=model,
            owns_model=model is not self.model,
            permissions=Permissions(mode, allowed, self.permissions.permit),
            extra_paths=launch.get("extra_paths", ()),
            limit=None,
            skip_stop_hook=False,
            role=role,
        )


@dataclass
class SessionResources:
    """Belongs to a main session, which closes it."""

    project: str
    settings: Settings
    state: str
    journal: Journal
    judges: JudgeModels
    world: World
    models: Callable[[str], Model] | None  # finds a model by its name

    @classmethod
    def create(
        cls,
        project: str,
        settings: Settings,
        state: str,
        *,
        session_id: str,
        model: Model,
        models: Callable[[str], Model] | None,
        shell: Shell,
        watch: Callable[..., None],
    ) -> Self:
        environ, journal = dict(os.environ), Journal(state)
        judges = JudgeModels(settings.judge, model, models, {**environ, **settings.env})
        file = env_file(state, session_id)
        world = World(
            shell,
            project,
            journal,
            {**environ, "CLAUDE_ENV_FILE": file, "TURNGATE_ENV_FILE": file},
            watch=watch,
            judge=judges,
            inspect=HookAgent(project, settings, state, judges, environ, journal),
        )
        return cls(project, settings, state, journal, judges, world, models)

    def transcript_path(self, session_id: str, role: SubagentRole | None) -> str:
        if role is not None:
            return role.transcript
        return main_transcript_path(self.state, session_id, self.settings.dialect.name)

    def model_named(self, name: str, default: Model) -> Model:
        if name in ("", default.name) or self.models is None:
            return default
        return self.models(name)

    async def close(self, model: Model, notice: Callable[[str], None]) -> None:
        await close_models(self.judges, model, notice=notice)
        await run_in_thread(self.journal.close)


def env_file(state: str, session_id: str) -> str:
    """Return the file to which SessionStart hooks append `export K=V` lines."""
    return os.path.join(session_folder(state, session_id), "env")


async def close_models(*models: Model | JudgeModels, notice: Callable[[str], None]) -> None:
    """Close connections, which is foreign code; a failure is only reported."""
    try:
        async with asyncio.timeout(MODEL_CLOSE_TIMEOUT_S):
            for model in models:
                await run_isolated(model.close())
    except Exception as error:  # noqa: BLE001 - foreign code, and the conversation is over
        notice(f"the model's connection could not be closed: {type(error).__name__}: {error}")
