"""What a gate reads of the conversation of the agent that stops."""

from turngate.core.events import StopEvent
from turngate.transcript.reader import read_records


def describe_wait(event: StopEvent) -> str | None:
    """Return what the agent waits for, or None: work in the background, an open question (X-17)."""
    running = [task for task in event.background_tasks if task.get("status", "running") == "running"]
    if running:
        return (
            f"{len(running)} tasks run in the background"
            if len(running) > 1
            else "a task runs in the background"
        )
    return None


def measure_activity(event: StopEvent) -> int:
    """Return how many commands the agent has run so far."""
    return sum(
        1 for record in read_records(event.stopping_transcript) if _runs_command(record.get("message"))
    )


def _runs_command(message: object) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") == "Bash"
        for block in content
    )
