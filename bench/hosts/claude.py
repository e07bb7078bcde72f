"""Claude Code."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from bench.hosts.models import is_subagent, serve_anthropic
from bench.hosts.program import SUBAGENT_PROMPT, Json, Model, Program, Script
from bench.hosts.room import Room

KEY = "sk-ant-nothing"
MODEL = "claude-sonnet-4-5"


def serve(script: Script) -> AbstractContextManager[Model]:
    return serve_anthropic(script, who)


def who(body: Json) -> str:
    if not body.get("tools"):
        return "other"
    return "sub" if is_subagent(heard(body)) else "main"


def heard(body: Json) -> list[str]:
    """Return what users and hooks said: not the results of tools, and not what the program adds."""
    return [
        text
        for message in body["messages"]
        if message["role"] != "assistant"
        for text in texts(message["content"])
        if not text.startswith("<system-reminder>")
    ]


def texts(content: str | list[Json]) -> list[str]:
    if isinstance(content, str):
        return [content]
    refused = (str(block["content"]) for block in content if block["type"] == "tool_result")
    return [
        *(block["text"] for block in content if block["type"] == "text"),
        *(text for text in refused if "hook feedback:" in text),  # of TaskCompleted
    ]


def write_settings(room: Room, model: Model) -> None:
    """Answer what it asks in a terminal before the first prompt."""
    folder = {"hasTrustDialogAccepted": True}
    keys = {"approved": [KEY[-20:]]}
    answers = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": keys}
    room.write(".claude.json", {**answers, "projects": {str(room.project): folder}})


def environment(room: Room, model: Model) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": MODEL,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def arguments(prompt: str) -> list[str]:
    shape = ["--output-format", "stream-json", "--verbose"]
    return ["-p", prompt, *shape, "--allowedTools", "Bash,Agent,Task,TaskCreate,TaskUpdate"]


def transcript(room: Room) -> str | None:
    files = sorted((room.home / ".claude" / "projects").glob("*/*.jsonl"))
    return files[0].read_text() if files else None


def keeps(line: Json) -> bool:
    return line["type"] in ("user", "assistant", "system")


SUBAGENT: dict[str, Any] = {
    "description": "count",
    "prompt": SUBAGENT_PROMPT,
    "subagent_type": "general-purpose",
    "run_in_background": False,
}

CLAUDE = Program(
    name="claude",
    title="Claude Code",
    package="@anthropic-ai/claude-code",
    version="2.1.325",
    command="claude",
    serve=serve,
    write_settings=write_settings,
    environment=environment,
    arguments=arguments,
    resume=lambda prompt: ["--continue", *arguments(prompt)],
    terminal=lambda prompt: [prompt],
    shell=lambda command: {"name": "Bash", "input": {"command": command, "description": "work"}},
    subagent=[{"tools": [{"name": "Agent", "input": SUBAGENT}]}],
    heard=heard,
    notice="stdout",
    expected={  # only in a terminal
        "a hook that halts": {"notice": "nowhere"},
        "the feature workflow": {"notice": "nowhere"},
    },
    transcript=transcript,
    keeps=keeps,
)
