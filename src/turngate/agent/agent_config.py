"""AgentConfig: how one agent of a session is set up, also as the JSON that starts a subagent; its permissions."""

import os
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.agent.tools.tool import Tool
from turngate.core.conversation.messages import ToolUse
from turngate.ports import Model
from turngate.project.safe_paths import is_inside
from turngate.settings.agent_types import AgentType
from turngate.subagents.host import SubagentRole

PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions"]
_STRICTEST_FIRST: tuple[PermissionMode, ...] = ("plan", "default", "acceptEdits", "bypassPermissions")


def stricter_mode(mode: PermissionMode, other: object) -> PermissionMode:
    """Return the stricter of two modes; `other` comes from a row, and one that is unknown counts as "default"."""
    known: PermissionMode = next((each for each in _STRICTEST_FIRST if each == other), "default")
    return min(mode, known, key=_STRICTEST_FIRST.index)


@dataclass
class Permissions:
    """The permission mode, the tools that are always allowed, and the callback that asks the user."""

    mode: PermissionMode = "default"
    allowed: set[str] = field(default_factory=set)  # names of tools
    permit: Callable[[ToolUse, str], Awaitable[bool]] | None = None  # None: there is no user to ask

    def is_needed_for(self, tool: Tool) -> bool:
        if not tool.changes or tool.spec.name in self.allowed or self.mode == "bypassPermissions":
            return False
        return not (tool.edits and self.mode == "acceptEdits")


@frozen(kw_only=True)
class AgentConfig:
    """One agent of a session: the main agent, or a subagent (then it has a role)."""

    model: Model
    owns_model: bool = True  # False: a subagent uses the model of its session
    permissions: Permissions
    # Its subagents with the same value share the set of allowed tools; "" for one that was continued after a crash.
    grants: str = field(default_factory=lambda: uuid.uuid4().hex)
    environ: Mapping[str, str]  # for Bash
    extra_paths: Sequence[str]
    hooks_enabled: bool
    max_requests: int
    retries: Sequence[float]
    limit: int | None = None  # of continuations; None: the limit of the settings
    strict: bool = False  # a turn in which a gate was not enforced is not a success
    skip_stop_hook: bool = False  # the plugins are not notified of a turn's end
    role: SubagentRole | None = None
    prompt_id: str = ""  # of a subagent: the prompt of the main agent that it was started for

    @property
    def agent_id(self) -> str:
        return self.role.agent_id if self.role else ""

    @property
    def depth(self) -> int:
        return self.role.depth if self.role else 0

    def launch(self, agent_type: AgentType, tools: Iterable[str], **fields: Any) -> dict[str, Any]:
        """Return the JSON from which `from_launch` configures a subagent, also in another process."""
        return {
            "kind": agent_type.name,
            "permission_mode": self.permissions.mode,
            "allow": sorted(self.permissions.allowed),
            "grants": self.grants,
            "extra_paths": list(self.extra_paths),
            "tools": list(tools),
            **fields,
        }

    def from_launch(self, launch: Mapping[str, Any], role: SubagentRole, *, model: Model) -> "AgentConfig":
        """Return the configuration of a subagent of this agent. After a crash this session may allow other tools or folders: the stricter ones count."""
        shares, own = launch.get("grants") == self.grants, self.permissions
        allowed = own.allowed if shares else own.allowed & set(launch.get("allow", ()))
        mode = stricter_mode(own.mode, launch.get("permission_mode"))
        return replace(
            self,
            model=model,
            owns_model=model is not self.model,
            permissions=Permissions(mode, allowed, own.permit),
            grants=self.grants if shares else "",
            extra_paths=common_folders(launch.get("extra_paths", ()), self.extra_paths),
            limit=None,
            strict=False,
            skip_stop_hook=False,
            role=role,
            prompt_id=str(launch.get("prompt_id") or ""),
        )


def common_folders(folders: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the folders of each list that are, or are inside of, a folder of the other one."""
    first, second = ([os.path.normpath(each) for each in given] for given in (folders, others))
    inside = [each for each in first if any(is_inside(each, other) for other in second)]
    inside += [each for each in second if any(is_inside(each, other) for other in first)]
    return list(dict.fromkeys(inside))
