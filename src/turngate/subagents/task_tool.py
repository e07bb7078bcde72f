"""The Task tool: starts a subagent, waits for its result, or resumes an earlier one."""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import finish_despite_cancel
from turngate.core.conversation.messages import ToolSpec
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.conversation.tools import DEFAULT_AGENT_TYPE, ToolFailed, ToolOutput, tool_spec
from turngate.core.events.stream_events import SubagentFinished
from turngate.errors import TurngateError
from turngate.settings.agent_types import AgentType, describe_types
from turngate.subagents.host import subagent_transcript_path
from turngate.subagents.notifications import WAITS, finished_event, waiting_agent
from turngate.subagents.supervisor import Supervisor
from turngate.transcript.reader import read_records

TASK = tool_spec(
    "Task",
    "Starts a subagent that works on a task of its own and returns its result. It knows nothing of this conversation, "
    "so the prompt must say everything. Several calls in one answer work at the same time. With "
    "run_in_background the call returns at once and the result arrives later as a message. The agent types are:\n",
    {
        "description": {"type": "string", "description": "The task in three to five words."},
        "prompt": {"type": "string", "description": "The whole task."},
        "subagent_type": {"type": "string", "description": "The agent type."},
        "run_in_background": {"type": "boolean"},
        "resume": {"type": "string", "description": "The id of an earlier subagent, to continue with it."},
    },
    required=("prompt",),
)


def task_spec(agent_types: Mapping[str, AgentType]) -> ToolSpec:
    return ToolSpec(TASK.name, TASK.description + describe_types(agent_types), TASK.schema)


@frozen(kw_only=True)
class TaskTool:
    """The Task tool of one agent."""

    supervisor: Supervisor
    session_id: str
    agent_id: str  # "" for the main agent
    depth: int  # of the agent, not of its subagents
    in_background: bool  # unless the call says otherwise
    launch: Callable[[AgentType], Mapping[str, Any]]  # what a session for the subagent is made from
    on_result: Callable[[SubagentFinished], None]  # called before the result is in the conversation
    count_approvals: Callable[[str], int]  # how many checkpoints of a subagent the user has approved

    async def start(self, args: Mapping[str, Any]) -> ToolOutput:
        """Start a subagent. Return its result, or at once if it works in the background."""
        resume = args.get("resume") or ""
        agent_type = self._agent_type(resume, args.get("subagent_type"))
        background = args.get("run_in_background", self.in_background)
        try:
            run = await self.supervisor.spawn(
                agent_type.name,
                args["prompt"],
                label=args.get("description", ""),
                background=background,
                parent=self.session_id,
                parent_agent=self.agent_id,
                depth=self.depth + 1,
                resume=resume,
                launch={**self.launch(agent_type), **self._approvals(agent_type, resume)},
            )
        except (TurngateError, OSError) as error:
            raise ToolFailed(f"the subagent was not started: {error}") from None
        if background:
            return ToolOutput(
                f"The subagent {run.agent_id} works in the background; its result arrives as a message.",
                {"status": "async_launched", "agentId": run.agent_id},
            )
        return await self._wait(run)

    def _approvals(self, agent_type: AgentType, resumed: str) -> dict[str, int]:
        if not agent_type.stages:
            return {}
        if self.agent_id:
            raise ToolFailed(f"{agent_type.name} has a checkpoint, so only the main agent can start it")
        return {"approvals": self.count_approvals(resumed) if resumed else 0}

    def _agent_type(self, resumed: str, requested: str | None) -> AgentType:
        """Return the type that the call names; a subagent that is resumed keeps its own."""
        name = self._resumed_type(resumed, requested) if resumed else requested
        name = name or DEFAULT_AGENT_TYPE
        types = self.supervisor.agent_types
        if name not in types:
            raise ToolFailed(f"unknown agent type {name!r}, expected one of {', '.join(types)}")
        return types[name]

    def _resumed_type(self, agent_id: str, requested: str | None) -> str | None:
        path = subagent_transcript_path(self.supervisor.state, self.session_id, agent_id)
        if os.path.basename(agent_id) != agent_id or not os.path.isfile(path):
            raise ToolFailed(f"there is no subagent {agent_id} of this session to resume")
        names = (str(record["agentType"]) for record in read_records(path) if record.get("agentType"))
        name = next(names, "")
        if name and requested and requested != name:
            raise ToolFailed(f"subagent {agent_id} has the agent type {name}, not {requested}")
        return name or requested

    async def _wait(self, run: SubagentRun) -> ToolOutput:
        try:
            ended = await self.supervisor.result(run.chain)
        except asyncio.CancelledError:
            await finish_despite_cancel(self.supervisor.kill(run.id, "interrupted"))
            raise
        except TurngateError as error:
            raise ToolFailed(str(error)) from None
        if ended.outcome == "killed":
            return ToolOutput(f"The subagent was killed: {ended.reason}.", is_error=True)
        self.on_result(finished_event(ended))
        if ended.outcome != "ok":
            answer = f"\n\nIts last answer was:\n{ended.result}" if ended.result else ""
            text = f"The subagent failed ({ended.outcome}): {ended.error}{answer}"
            return ToolOutput(text, key=run.chain, is_error=True)
        text = ended.result or "(the subagent gave no answer)"
        if ended.reason == "halted":
            text = ended.result or "(a hook halted the subagent before it gave an answer)"
        content = [{"type": "text", "text": ended.result}]
        response = {"status": "completed", "agentId": run.agent_id, "content": content}
        if ended.reason == "checkpoint":
            text = f"{text}\n\n{WAITS.format(agent_id=run.agent_id)}"
        return ToolOutput(text, response, key=run.chain, waiting=waiting_agent(ended))
