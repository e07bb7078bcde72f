"""The tool that starts a child: another agent that works on a part of the task and reports."""

from collections.abc import Mapping
from typing import Any

from turngate.agent.tools.base import ToolContext, ToolFailed, spec

ABOUT = (
    "Starts a subagent that works on a task of its own and gives its report back. It knows nothing of this conversation, "
    "so the prompt must say everything. Several that are asked for together work at the same time. With "
    "run_in_background the call returns at once and the report comes later as a message. The kinds are:\n"
)

TASK = spec(
    "Task",
    ABOUT,
    {
        "description": {"type": "string", "description": "The task in three to five words."},
        "prompt": {"type": "string", "description": "The whole task."},
        "subagent_type": {"type": "string", "description": "Which kind of subagent."},
        "run_in_background": {"type": "boolean"},
        "resume": {"type": "string", "description": "The id of an earlier subagent, to go on with it."},
    },
    needs=("prompt",),
)
ALIASES = {"Agent": "Task"}


async def start(given: Mapping[str, Any], workplace: ToolContext) -> Any:
    if workplace.start_child is None:
        raise ToolFailed("no subagent can be started here")
    return await workplace.start_child(given)
