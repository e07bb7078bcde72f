"""OpenCode."""

from collections.abc import Mapping

from bench.hosts import chat
from bench.hosts.program import SUBAGENT_PROMPT, Model, Program
from bench.hosts.room import Room

PROVIDER = "scripted"


def write_settings(room: Room, model: Model) -> None:
    models = {"model": {"name": "Scripted", "limit": {"context": 200_000, "output": 8000}}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": model.url, "apiKey": "nothing"},
        "models": models,
    }
    settings = {
        "provider": {PROVIDER: provider},
        "model": f"{PROVIDER}/model",
        "small_model": f"{PROVIDER}/model",
        "share": "disabled",
        "autoupdate": False,
        "permission": {"*": "allow"},
    }
    room.write(".config/opencode/opencode.json", settings)


def environment(room: Room, model: Model) -> Mapping[str, str]:
    names = ("MODELS_FETCH", "AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "SHARE", "TERMINAL_TITLE")
    return {f"OPENCODE_DISABLE_{name}": "1" for name in names}


OPENCODE = Program(
    name="opencode",
    title="OpenCode",
    package="opencode-ai",
    version="1.18.33",
    command="opencode",
    serve=chat.serve,
    write_settings=write_settings,
    environment=environment,
    arguments=lambda prompt: ["run", prompt],
    resume=lambda prompt: ["run", "--continue", prompt],
    terminal=lambda prompt: ["--prompt", prompt],
    shell=lambda command: {"name": "bash", "input": {"command": command, "description": "work"}},
    subagent=[
        {
            "tools": [
                {
                    "name": "task",
                    "input": {
                        "description": "count",
                        "prompt": SUBAGENT_PROMPT,
                        "subagent_type": "general",
                    },
                }
            ]
        }
    ],
    heard=chat.heard,
    notice="stderr",
    tries=("registry.npmjs.org:443",),  # types for plugins
)
