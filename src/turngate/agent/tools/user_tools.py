"""The tools for the user: the list of tasks, and questions."""

from collections.abc import Mapping
from typing import Any

from turngate.agent.tools.base import ToolContext, UserQuestion
from turngate.core.tools import tool_spec

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}

TODO_WRITE = tool_spec(
    "TodoWrite",
    "Replaces the list of tasks that the user sees. For work of several steps: one task in progress, and each "
    "completed as soon as it is.",
    {
        "todos": {
            "type": "array",
            "description": "The whole list.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "description": "What is to be done: `Run the tests`."},
                    "status": {"type": "string", "enum": list(_MARKS)},
                    "activeForm": {
                        "type": "string",
                        "description": "The same while it is done: `Running the tests`.",
                    },
                },
                "required": ["content", "status"],
            },
        }
    },
    required=("todos",),
)
ASK_USER = tool_spec(
    "AskUser",
    "Asks the user a question and waits for the answer. Only for what you cannot find out yourself.",
    {
        "question": {"type": "string"},
        "options": {"type": "array", "items": {"type": "string"}, "description": "Answers to choose from."},
    },
    required=("question",),
)


async def write_todos(args: Mapping[str, Any], context: ToolContext) -> str:
    context.todos = [dict(todo) for todo in args["todos"]]
    lines = [f"{_MARKS[todo['status']]} {todo['content']}" for todo in context.todos]
    return "\n".join(lines) or "(the list is empty)"


async def ask_user(args: Mapping[str, Any], _: ToolContext) -> str:
    raise UserQuestion(args["question"], tuple(args.get("options", ())))
