"""The tools that address the user: AskUser, a question, and TodoWrite, the agent's list of tasks."""

from collections.abc import Mapping
from typing import Any

from turngate.agent.tools.tool import ToolContext
from turngate.core.conversation.tools import ToolOutput, tool_spec

USER_ASKED = "The user was asked; the answer comes with the next message."
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
    options = "".join(f"\n- {option}" for option in args.get("options", ()))
    return ToolOutput(USER_ASKED, question=args["question"] + options)


_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}

TODO_WRITE = tool_spec(
    "TodoWrite",
    "Replaces the list of tasks that the user sees. Use it for work of several steps. Keep one task in "
    "progress, and mark each task as completed as soon as it is done.",
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
                        "description": "The task in the present continuous: `Running the tests`.",
                    },
                },
                "required": ["content", "status"],
            },
        }
    },
    required=("todos",),
)


async def write_todos(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    earlier, context.todos = context.todos, [dict(todo) for todo in args["todos"]]
    lines = [f"{_MARKS[todo['status']]} {todo['content']}" for todo in context.todos]
    text = "\n".join(lines) or "(the list is empty)"
    return ToolOutput(text, {"oldTodos": earlier, "newTodos": context.todos})
