"""The gates of a project as hooks of Claude's Agent SDK, called in this process."""

import json
from dataclasses import replace
from typing import Any

from claude_agent_sdk import HookMatcher

from turngate.adapters.project_gates import OnNotice, ProjectGates
from turngate.core.constants import STOP_EVENTS
from turngate.hosts.all_hosts import CLAUDE_CODE
from turngate.hosts.host import INSTALLED_TIMEOUT_S, HostAnswer
from turngate.hosts.input_fields import normalize


class _Gates(ProjectGates):
    dialect, host = "host", CLAUDE_CODE  # Claude Code runs the hooks of `.claude` itself


class StopGates(dict[Any, list[HookMatcher]]):
    """Hold Claude until the gates of a project pass: `ClaudeAgentOptions(hooks=StopGates())`.

    Other hooks can stand beside it: `{**StopGates(), "PreToolUse": […]}`. `agent`: hold only subagents of this type.
    """

    def __init__(
        self,
        project: str = ".",
        agent: str | None = None,
        limit: int | None = None,
        on_notice: OnNotice | None = None,
    ) -> None:
        self._gates = _Gates(project, agent, limit, on_notice)
        main = ("UserPromptSubmit",) if agent else ("UserPromptSubmit", "Stop")
        matcher = HookMatcher(hooks=[self._call], timeout=INSTALLED_TIMEOUT_S)
        of_subagents = replace(matcher, matcher=agent)
        subagents = {name: [of_subagents] for name in ("SubagentStart", "SubagentStop")}
        super().__init__({**{name: [matcher] for name in main}, **subagents})

    async def _call(self, payload: Any, tool_use_id: str | None, context: Any) -> Any:
        fields = dict(payload)
        if fields["hook_event_name"] == "UserPromptSubmit":  # the SDK does not call functions at SessionStart
            fields["hook_event_name"] = "SessionStart"
        known = normalize(fields)
        answer = await self._gates.fire(known, str(known.get("agent_id", "")))
        if known["hook_event_name"] not in STOP_EVENTS:
            return {}
        told = HostAnswer(decision=answer.decision, reason=answer.reason)  # notices went to `on_notice`
        return json.loads(CLAUDE_CODE.write_answer(told).stdout or "{}")
