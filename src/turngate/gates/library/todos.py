"""The gate `todos`: holds the stop until the agent's own task list is done."""

import re
from collections.abc import Mapping, Sequence

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.conversation import ToolCall, read_calls_of
from turngate.gates.gate import Gate, GateContext

MAX_LISTED = 20
MAX_TASK_CHARS = 200
CLOSED = ("completed", "deleted", "cancelled", "canceled")
_CREATED = re.compile(r"Task #(\d{1,9})\b")
_NAMES = ("TodoWrite", "TaskCreate", "TaskUpdate")


@frozen
class OpenTask:
    text: str
    in_progress: bool = False


async def check_todos(context: GateContext) -> Decision:
    found = await run_in_thread(read_calls_of, context.event, _NAMES)
    calls = [call for call in found if not call.is_error]
    if not calls:
        return Allow()
    if calls[-1].name == "TodoWrite":
        tasks: Sequence[Mapping[str, object]] = _written(calls[-1])
    else:
        tasks = _created(calls)
    still_open = [_open_task(task) for task in tasks if task.get("status") not in CLOSED]
    return Block(_describe(still_open, len(tasks))) if still_open else Allow()


def _written(call: ToolCall) -> list[Mapping[str, object]]:
    """Return the list of the last TodoWrite, which replaces all earlier ones."""
    todos = call.input.get("todos")
    return [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []


def _created(calls: Sequence[ToolCall]) -> list[Mapping[str, object]]:
    """Return the tasks that TaskCreate has added since the last TodoWrite, as TaskUpdate has left them."""
    tasks: dict[str, dict[str, object]] = {}
    for call in calls:
        if call.name == "TodoWrite":
            tasks = {}
        elif call.name == "TaskCreate":
            number = _CREATED.search(call.result or "")
            tasks[number[1] if number else str(len(tasks) + 1)] = {"status": "pending", **call.input}
        elif (identity := _task_id(call)) in tasks:
            tasks[identity].update(call.input)
    return list(tasks.values())


def _task_id(call: ToolCall) -> str:
    value = call.input.get("taskId", call.input.get("task_id", call.input.get("id")))
    return str(value).removeprefix("#")


def _open_task(task: Mapping[str, object]) -> OpenTask:
    texts = (task.get(key) for key in ("content", "subject", "description"))
    text = next((text for text in texts if isinstance(text, str) and text.strip()), "(without a name)")
    return OpenTask(one_line(text, MAX_TASK_CHARS), task.get("status") == "in_progress")


def _describe(tasks: Sequence[OpenTask], total: int) -> str:
    one = len(tasks) == 1
    lines = [f"- {task.text}" + (" (in progress)" if task.in_progress else "") for task in tasks[:MAX_LISTED]]
    if len(tasks) > MAX_LISTED:
        lines.append(f"… and {len(tasks) - MAX_LISTED} more")
    return "\n".join(
        [
            f"{len(tasks)} of {total} tasks in your task list {'is' if one else 'are'} open:",
            *lines,
            f"Finish {'it' if one else 'them'} and update the list; remove what is no longer needed.",
        ]
    )


TODOS = Gate(
    name="todos", summary="the agent's own task list is done", check=check_todos, needs_conversation=True
)
