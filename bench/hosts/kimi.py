"""Kimi Code."""

from collections.abc import Mapping

from bench.hosts import chat
from bench.hosts.program import SUBAGENT_PROMPT, Model, Program
from bench.hosts.room import Room

SETTINGS = """\
default_model = "scripted"
telemetry = false

[providers.scripted]
type = "openai"
base_url = "{url}"
api_key = "nothing"

[models.scripted]
provider = "scripted"
model = "scripted"
max_context_size = 200000
"""


def write_settings(room: Room, model: Model) -> None:
    room.write(".kimi-code/config.toml", SETTINGS.format(url=model.url))


def environment(room: Room, model: Model) -> Mapping[str, str]:
    return {}


KIMI = Program(
    name="kimi",
    title="Kimi Code",
    package="@moonshot-ai/kimi-code",
    version="2.1.0",
    command="kimi",
    node=24,
    serve=chat.serve,
    write_settings=write_settings,
    environment=environment,
    arguments=lambda prompt: ["--prompt", prompt],
    resume=lambda prompt: ["--continue", "--prompt", prompt],
    shell=lambda command: {"name": "Bash", "input": {"command": command, "description": "work"}},
    subagent=[
        {
            "tools": [
                {"name": "Agent", "input": {"description": "count", "prompt": SUBAGENT_PROMPT}},
            ]
        }
    ],
    heard=chat.heard,
    tries=("code.kimi.com:443",),  # a newer version
    expected={  # it asks once in a turn
        "a gate that fails once": {"stops": 1},
        "a gate that always fails, with work in between": {"requests": 3, "stops": 1, "sent_back": 1},
        "a gate that always fails, nothing done in between": {"stops": 1},
        "the agent empties the settings": {"stops": 1},
        "the agent overwrites the script of the gate": {"stops": 1},
        "a greeting in a project whose tests fail, then a new failure in the same session": {"stops": 2},
        "a gate that takes 90 seconds": {"stops": 1},
    },
)
