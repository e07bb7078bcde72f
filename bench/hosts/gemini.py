"""Gemini CLI."""

from collections.abc import Mapping
from contextlib import AbstractContextManager

from bench.hosts.models import serve_gemini
from bench.hosts.program import Json, Model, Program, Script
from bench.hosts.room import Room

MODEL = "gemini-2.5-flash"
SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


def serve(script: Script) -> AbstractContextManager[Model]:
    return serve_gemini(script, lambda body: "main" if "tools" in body else "other")


def heard(body: Json) -> list[str]:
    return [
        part["text"]
        for content in body["contents"]
        if content["role"] == "user"
        for part in content["parts"]
        if "text" in part
    ]


def write_settings(room: Room, model: Model) -> None:
    room.write(".gemini/settings.json", SETTINGS)


def environment(room: Room, model: Model) -> Mapping[str, str]:
    return {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "nothing"}


def arguments(prompt: str) -> list[str]:
    return ["--model", MODEL, "--yolo", "--prompt", prompt]


def terminal(prompt: str) -> list[str]:
    return ["--model", MODEL, "--yolo", "--prompt-interactive", prompt]


def transcript(room: Room) -> str | None:
    files = sorted((room.home / ".gemini" / "tmp").glob("*/chats/*.jsonl"))
    return files[0].read_text() if files else None


def keeps(line: Json) -> bool:
    return "$set" not in line


GEMINI = Program(
    name="gemini",
    title="Gemini CLI",
    package="@google/gemini-cli",
    version="0.61.0",
    command="gemini",
    serve=serve,
    write_settings=write_settings,
    environment=environment,
    arguments=arguments,
    resume=lambda prompt: ["--resume", "latest", *arguments(prompt)],
    terminal=terminal,
    shell=lambda command: {"name": "run_shell_command", "input": {"command": command, "description": "work"}},
    subagent=(),
    heard=heard,
    stop_event="AfterAgent",
    notice="stderr",
    transcript=transcript,
    keeps=keeps,
)
