"""A plugin that logs every stop of a subagent and redirects a test-runner that does not report its results.

Needs no network. Run it: python examples/plugins/test_runner_gate.py
"""

import asyncio
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from turngate import (
    Plugins,
    ScriptedModel,
    Session,
    SubagentStoppingContext,
    SubagentStoppingEvent,
    SubagentStoppingResult,
)


def register(plugins: Plugins, log: Path) -> None:
    """Register the handler. It may be sync, and then runs in a thread, or async; higher priorities run first."""

    def stopping(event: SubagentStoppingEvent, _: SubagentStoppingContext) -> SubagentStoppingResult:
        append_to_telemetry_log(log, {"kind": "subagent.stop", "data": asdict(event)})
        if event.label == "test-runner" and event.outcome == "ok":
            response = event.last_assistant_message or ""
            if "All tests passed" not in response and "✓" not in response:
                return SubagentStoppingResult(
                    allow=False,
                    prompt="You indicated completion but the test results are not confirmed. "
                    "Please run the test suite and report the results.",
                    reason="Test results not confirmed in output",
                )
        return SubagentStoppingResult(allow=True)

    plugins.on("subagent_stopping", stopping, priority=100)


def append_to_telemetry_log(log: Path, entry: dict[str, Any]) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


SCRIPT = {
    "main": [
        {"tool": "Task", "input": {"description": "test-runner", "prompt": "Run the tests."}},
        "The tests are run.",
    ],
    "sub": ["I am done.", "All tests passed: 12 of 12."],
}


async def main(project: Path) -> None:
    log = project / "telemetry.jsonl"
    plugins = Plugins()
    register(plugins, log)
    async with Session(
        str(project), ScriptedModel(SCRIPT), plugins=plugins, state=str(project / "state")
    ) as session:
        result = await session.send("Are the tests green?")
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)["data"]
        print(
            f"{event['label']} wants to stop, redirects: {event['steer_count']}: {event['last_assistant_message']}"
        )
    outcomes = [(subagent.label, subagent.outcome) for subagent in result.subagents]
    print(f"{result.result} Subagents: {outcomes}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
