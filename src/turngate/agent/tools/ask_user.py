"""The AskUser tool: a question to the user."""

from collections.abc import Mapping
from typing import Any

from turngate.agent.tools.tool import ToolContext, UserQuestion
from turngate.core.conversation.tools import ToolOutput, tool_spec

ASK_USER = tool_spec(
    "AskUser",
    "Asks the user a question and waits for the answer. Only for what you cannot find out yourself.",
    {
        "question": {"type": "string"},
        "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
    },
    required=("question",),
)


async def ask_user(args: Mapping[str, Any], _: ToolContext) -> ToolOutput:
    raise UserQuestion(args["question"], tuple(args.get("options", ())))
