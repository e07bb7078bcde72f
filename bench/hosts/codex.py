"""Codex."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager

from bench.hosts.models import is_subagent, serve_responses
from bench.hosts.program import SUBAGENT_PROMPT, Json, Model, Program, Script
from bench.hosts.room import Room

BYPASS = ("--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox")
SETTINGS = """\
model = "gpt-5.4"
model_provider = "loopback"
check_for_update_on_startup = false

[model_providers.loopback]
name = "loopback"
base_url = "{url}"
wire_api = "responses"
requires_openai_auth = false

[features]
multi_agent = true
apps = false
plugins = false

[analytics]
enabled = false

[feedback]
enabled = false

[projects."{project}"]
trust_level = "trusted"
"""


def serve(script: Script) -> AbstractContextManager[Model]:
    return serve_responses(script, who)


def who(body: Json) -> str:
    if not body["tools"]:  # it asks for a title
        return "other"
    return "sub" if is_subagent(heard(body)) else "main"


def heard(body: Json) -> list[str]:
    return [
        part["text"]
        for item in body["input"]
        if item.get("type") == "message" and item["role"] == "user"
        for part in item["content"]
        if "text" in part
    ]


def write_settings(room: Room, model: Model) -> None:
    room.write(".codex/config.toml", SETTINGS.format(url=model.url, project=room.project))


def environment(room: Room, model: Model) -> Mapping[str, str]:
    return {"CODEX_HOME": str(room.home / ".codex")}


def arguments(prompt: str) -> list[str]:
    return ["exec", *BYPASS, prompt]


def transcript(room: Room) -> str | None:
    files = sorted((room.home / ".codex" / "sessions").glob("**/*.jsonl"))
    return files[0].read_text() if files else None


def keeps(line: Json) -> bool:
    return line["type"] == "response_item" and "developer" not in line["payload"].values()


def wait_for_subagent(body: Json) -> Json:
    """Call the tool that waits for the subagent which the last call has started."""
    started = json.loads(body["input"][-1]["output"])["agent_id"]
    return {
        "tools": [{**AGENTS, "name": "wait_agent", "input": {"targets": [started], "timeout_ms": 240_000}}]
    }


AGENTS = {"namespace": "multi_agent_v1"}
SPAWN = {**AGENTS, "name": "spawn_agent", "input": {"message": SUBAGENT_PROMPT}}

CODEX = Program(
    name="codex",
    title="Codex",
    package="@openai/codex",
    version="0.166.0",
    command="codex",
    serve=serve,
    write_settings=write_settings,
    environment=environment,
    arguments=arguments,
    resume=lambda prompt: ["exec", "resume", "--last", *BYPASS, prompt],
    terminal=lambda prompt: [*BYPASS, prompt],
    shell=lambda command: {"name": "exec_command", "input": {"cmd": command}},
    subagent=[{"tools": [SPAWN]}, wait_for_subagent],
    heard=heard,
    tries=("raw.githubusercontent.com:443",),  # tips, in a terminal
    expected={  # it waits for a subagent with a call of its own
        "a subagent that is blocked once": {"requests": 3},
        "the feature workflow": {"requests": 8},
        "a subagent that is always blocked, with work in between": {"requests": 3},
    },
    transcript=transcript,
    keeps=keeps,
)
