"""Qwen Code."""

from collections.abc import Mapping

from bench.hosts import chat
from bench.hosts.program import SUBAGENT_PROMPT, Json, Model, Program
from bench.hosts.room import Room

SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False},
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False, "enableAutoSkill": False},
}


def write_settings(room: Room, model: Model) -> None:
    room.write(".qwen/settings.json", SETTINGS)


def environment(room: Room, model: Model) -> Mapping[str, str]:
    return {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "nothing", "OPENAI_MODEL": "scripted"}


def arguments(prompt: str) -> list[str]:
    return ["--yolo", "--prompt", prompt]


def terminal(prompt: str) -> list[str]:
    return ["--yolo", "--prompt-interactive", prompt]


def transcript(room: Room) -> str | None:
    files = sorted((room.home / ".qwen" / "projects").glob("*/chats/*.jsonl"))
    return files[0].read_text() if files else None


def keeps(line: Json) -> bool:
    return line["type"] in ("user", "assistant", "tool_result")


SUBAGENT = {
    "name": "agent",
    "input": {
        "description": "count",
        "prompt": SUBAGENT_PROMPT,
        "subagent_type": "general-purpose",
        "run_in_background": False,
    },
}

QWEN = Program(
    name="qwen",
    title="Qwen Code",
    package="@qwen-code/qwen-code",
    version="0.24.4",
    command="qwen",
    node=22,
    serve=chat.serve,
    write_settings=write_settings,
    environment=environment,
    arguments=arguments,
    resume=lambda prompt: ["--continue", *arguments(prompt)],
    terminal=terminal,
    shell=lambda command: {
        "name": "run_shell_command",
        "input": {"command": command, "description": "work", "is_background": False},
    },
    subagent=[{"tools": [SUBAGENT]}],
    heard=chat.heard,
    notice="stderr",
    transcript=transcript,
    keeps=keeps,
)
