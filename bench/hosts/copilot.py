"""Copilot CLI."""

from collections.abc import Mapping

from bench.hosts import chat
from bench.hosts.program import SUBAGENT_PROMPT, Json, Model, Program
from bench.hosts.room import Room
from turngate.hosts.all_hosts import COPILOT as HOST

CAMEL_CASE = ("agentStop", "sessionStart", "subagentStart", "subagentStop")
OPTIONS = ("--allow-all-tools", "--allow-all-paths", "--disable-client-telemetry")
KEPT = ("user.message", "assistant.message", "tool.execution_start", "tool.execution_complete")


def write_settings(room: Room, model: Model) -> None:
    room.write(".copilot/config.json", {"trusted_folders": [str(room.project)]})


def write_other_hooks(room: Room, command: str) -> None:
    """With these names of events the input is spelled in camel case, and does not name its event."""
    hooks = {event: [HOST.entry(f"{command} camelcase-{event}")] for event in CAMEL_CASE}
    room.write("project/.github/hooks/other.json", {"version": 1, "hooks": hooks})


def environment(room: Room, model: Model) -> Mapping[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": model.url,
        "COPILOT_MODEL": "gpt-4.1",
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }


def arguments(prompt: str) -> list[str]:
    return [*OPTIONS, "--prompt", prompt]


def terminal(prompt: str) -> list[str]:
    return [*OPTIONS, "--interactive", prompt]


def transcript(room: Room) -> str | None:
    files = sorted((room.home / ".copilot" / "session-state").glob("*/events.jsonl"))
    return files[0].read_text() if files else None


def keeps(line: Json) -> bool:
    return line["type"] in KEPT


SUBAGENT = {
    "name": "task",
    "input": {
        "description": "count",
        "prompt": SUBAGENT_PROMPT,
        "agent_type": "general-purpose",
        "name": "counter",
        "mode": "sync",
    },
}

COPILOT = Program(
    name="copilot",
    title="Copilot CLI",
    package="@github/copilot",
    version="1.0.102",
    command="copilot",
    serve=chat.serve,
    write_settings=write_settings,
    write_other_hooks=write_other_hooks,
    environment=environment,
    arguments=arguments,
    resume=lambda prompt: ["--continue", *arguments(prompt)],
    terminal=terminal,
    shell=lambda command: {"name": "bash", "input": {"command": command, "description": "work"}},
    subagent=[{"tools": [SUBAGENT]}],
    heard=chat.heard,
    notice="stdout",
    expected={"Turngate is missing": {"notice": "nowhere"}},
    transcript=transcript,
    keeps=keeps,
)
