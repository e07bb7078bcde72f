"""The gate `todos`: holds the stop until the agent's own task list is done."""

import re
from collections.abc import Mapping, Sequence

from turngate.aio.threads import run_in_thread
from turngate.core.events.events import StopEvent
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.conversation import ToolCall, UserPrompt, find_prompt, read_calls, read_calls_of
from turngate.gates.gate import Gate, GateContext

MAX_LISTED = 20
MAX_TASK_CHARS = 200
CLOSED = ("completed", "deleted", "cancelled", "canceled")
_CREATED = re.compile(r"Task #(\d{1,9})\b")
# The user wants some of the tasks, or nothing else than before.
_ONLY = re.compile(
    r"\b(?:only|just|then stop|nothing else|nur|solo|seulement|только)\b|[只仅]", re.IGNORECASE
)
_GO_ON = re.compile(
    r"(?:(?:ok(?:ay)?|yes|please|and|then|weiter|ja|sí|oui|да)[,.! ]*)*(?:go on|go ahead|continue|proceed|keep going|next|do it|finish it|mach weiter)?[.! ]*",
    re.IGNORECASE,
)
_NAMES = ("TodoWrite", "TaskCreate", "TaskUpdate")


async def check_todos(context: GateContext) -> Decision:
    found = await run_in_thread(read_calls_of, context.event, _NAMES)
    calls = [call for call in found if not call.is_error]
    prompt = find_prompt(context.event)
    if not calls or (prompt and not await _is_current(context.event, prompt)):
        return Allow()
    tasks: Sequence[Mapping[str, object]] = _created(calls)
    if calls[-1].name == "TodoWrite":  # it replaces all earlier ones
        todos = calls[-1].input.get("todos")
        tasks = [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    if prompt and _ONLY.search(prompt.text):
        tasks = [task for task in tasks if _text(task).casefold() in prompt.text.casefold()] or tasks
    still_open = [task for task in tasks if task.get("status") not in CLOSED]
    return Block(_describe(still_open, len(tasks))) if still_open else Allow()


async def _is_current(event: StopEvent, prompt: UserPrompt) -> bool:
    """Return whether the list was changed since the user's last message, or the user only said to go on."""
    if _GO_ON.fullmatch(prompt.text.strip()):
        return True
    recent = await run_in_thread(read_calls, event, prompt.offset)
    return any(call.name in _NAMES for call in recent)


def _created(calls: Sequence[ToolCall]) -> list[Mapping[str, object]]:
    """Return the tasks that TaskCreate has added since the last TodoWrite, as TaskUpdate has left them."""
    tasks: dict[str, dict[str, object]] = {}
    for call in calls:
        if call.name == "TodoWrite":
            tasks = {}
        elif call.name == "TaskCreate":
            number = _CREATED.search(call.result or "")
            tasks[number[1] if number else str(len(tasks) + 1)] = {"status": "pending", **call.input}
        else:
            identity = call.input.get("taskId", call.input.get("task_id", call.input.get("id")))
            tasks.get(str(identity).removeprefix("#"), {}).update(call.input)
    return list(tasks.values())


def _text(task: Mapping[str, object]) -> str:
    texts = (task.get(key) for key in ("content", "subject", "description"))
    text = next((text for text in texts if isinstance(text, str) and text.strip()), "(without a name)")
    return one_line(text, MAX_TASK_CHARS)


def _describe(tasks: Sequence[Mapping[str, object]], total: int) -> str:
    one, now = len(tasks) == 1, {"in_progress": " (in progress)"}
    lines = [f"- {_text(task)}{now.get(str(task.get('status')), '')}" for task in tasks[:MAX_LISTED]]
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
