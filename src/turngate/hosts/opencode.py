"""OpenCode: a plugin asks `turngate hook` when its agent is idle, and prompts the agent again with the reason."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from turngate.hosts.host import FileFormat, Host, with_halt_as_notice, write_claude_answer

_COMMAND = "const COMMAND = "  # the beginning of the line with the words that start Turngate
_EVENTS = {"Stop": "session.idle", "SessionStart": "chat.message"}


def _read(text: str) -> Mapping[str, Any]:
    found = (line for line in text.splitlines() if line.startswith(_COMMAND))
    words = json.loads(next(found, _COMMAND + "[]").removeprefix(_COMMAND))
    entry = {"command": shlex.join(map(str, words))}
    return {"hooks": {event: [entry] for event in _EVENTS.values()} if words else {}}


def _add(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the whole plugin."""
    if text.strip() and not _read(text)["hooks"]:
        raise ValueError("it is another plugin with the name of this one; rename it")
    from importlib.resources import files  # noqa: PLC0415 # lazy: it takes longer to load than all hosts, and only `install` needs it

    words = shlex.split(next(iter(entries.values()))["command"])
    plugin = files("turngate.hosts").joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    return plugin.replace(f"{_COMMAND}[]", _COMMAND + json.dumps(words))


OPENCODE = Host(
    name="opencode",
    title="OpenCode",
    version="1.18.33",
    events=_EVENTS,
    files={
        "user": "~/.config/opencode/plugins/turngate.js",
        "project": ".opencode/plugins/turngate.js",
    },
    file_format=FileFormat(read=_read, add=_add, remove=lambda _text: ""),
    entry=lambda command: {"command": command},
    adds_heading=False,
    folder_variable=("XDG_CONFIG_HOME", "~/.config"),
    agent_variable="OPENCODE",
    limitations=(
        "It has no stop hook: the plugin waits until the agent is idle, and then prompts it with the reason, as a message of the user.",
        "`opencode run` has printed its answer and is about to exit by then. It waits for the plugin, which prints the further answers; versions that do not wait lose the block.",
        "In `opencode acp`, the plugin does nothing, because the turn of the editor has ended by then: `turngate acp -- opencode acp` asks the gates there.",
        "The stop of a subagent cannot be blocked, so subagents are not checked.",
        "It has no answer that ends a turn: a hook that halts allows the stop.",
        "It does not give a hook a transcript.",
        "`opencode --pure` runs no plugins.",
    ),
    documentation="https://opencode.ai/docs/plugins",
    write_answer=lambda answer: write_claude_answer(with_halt_as_notice(answer)),
)
