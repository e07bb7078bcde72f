"""Which tools an agent may use without asking the user."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from turngate.agent.tools import Tool
from turngate.core.conversation.messages import ToolUse

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
