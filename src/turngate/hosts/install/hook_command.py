"""What is installed: the command line that a host runs, and in an editor (ACP) an agent behind `turngate acp`."""

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate.core.constants import STOP_EVENTS
from turngate.hosts.all_hosts import ACP
from turngate.hosts.host import FileFormat, Host, HostAnswer, Level
from turngate.hosts.install.json_text import Node, read_json_text, rewrite
from turngate.project.safe_paths import is_inside

# Gemini CLI shows the whole line while it runs, so this must not read as if it had happened.
NOT_CHECKED = "to check this stop, install Turngate"
# Turngate is not published: a name for pip could fetch another package.
INSTALL_COMMANDS = "`pipx install .` or `uv tool install .` in a clone of Turngate"


def entries_for(host: Host, level: Level, program: str) -> dict[str, Mapping[str, Any]]:
    """Return what is added to the list of each event, by the name of the event in the host.

    `program` is how the line of the user runs Turngate; that of a project finds it by PATH, as it is for everyone.
    """
    lines = ((name, hook_command(host, level, event, program)) for event, name in host.events.items())
    return {name: host.entry(line) for name, line in lines}


def hook_command(host: Host, level: Level, event: str, program: str) -> str:
    program = program if level == "user" else "turngate"
    # Where there is no Turngate, most hosts report an error, and the agent stops.
    if not host.failed_hook_blocks:
        return f"{program} hook"
    [word, *_] = shlex.split(program)
    # A program that is there but cannot be started (its Python is gone) takes the same way as one that is not there.
    otherwise = "true"
    if event in STOP_EVENTS:  # tells the user, in the way of the host, and lets the agent stop
        shown = host.write_answer(HostAnswer(decision="allow", notices=(NOT_CHECKED,))).stdout.rstrip("\n")
        otherwise = f"echo {shlex.quote(shown)}" if shown else f"echo {shlex.quote(NOT_CHECKED)} >&2"
    return f"command -v {shlex.quote(word)} >/dev/null 2>&1 && {program} hook || {otherwise}"


def how_to_find(host: Host) -> str:
    """Return what helps where a line does not find `turngate` on PATH."""
    return f"put it there ({INSTALL_COMMANDS}), or use `turngate install {host.name} --user`"


def this_program(called_as: str, executable: str) -> str:
    """Return the words that start this program from any folder, quoted for a shell.

    A link such as `~/.local/bin/turngate` is kept: it stays when the program behind it is replaced by a newer one.
    """
    beside = os.path.join(os.path.dirname(executable), "turngate")
    for path in (called_as, beside):
        if os.path.basename(path) == "turngate" and os.access(path, os.X_OK) and os.path.isfile(path):
            return shlex.quote(os.path.abspath(path))
    return f"{shlex.quote(executable)} -m turngate"


def is_short_lived(program: str, temporary: str) -> bool:
    """Return whether a program is in a cache or in the folder for temporary files, as with `uvx` and `pipx run`."""
    [path, *_] = shlex.split(program)
    in_cache = any(name in path.split("/") for name in (".cache", "Caches", "archive-v0"))
    return in_cache or is_inside(path, temporary)


# Editors that start agents (ACP), as hosts

SERVERS = "agent_servers"
_SUFFIX = ", checked by Turngate"  # of the names of our agents


def agent_entry(editor: Host, program: str, agent: str) -> dict[str, Mapping[str, Any]]:
    """Return the entry that starts an agent, under a name. Raises ValueError for quotes without an end."""
    command, *arguments = shlex.split(f"{program} acp -- {agent}")
    return {agent + _SUFFIX: {**editor.entry(command), "args": arguments, "env": {}}}


def _agents(text: str) -> tuple[Node | None, dict[str, Any], dict[str, Any], list[str]]:
    """Return the root of a text, its value, the agents in it, and the names of ours."""
    root = read_json_text(text)
    value = root.value if root else {}
    agents = value.setdefault(SERVERS, {}) if isinstance(value, dict) else None
    if not isinstance(agents, dict):
        raise ValueError(f'it is not an object with an object as "{SERVERS}"')
    return root, value, agents, [name for name in agents if name.endswith(_SUFFIX)]


def _read(text: str) -> Mapping[str, Any]:
    """Return what runs at the stops of our agents."""
    return {"hooks": {name: [{"command": "turngate hook"}] for name in _agents(text)[3]}}


def _add(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    root, value, agents, _ = _agents(text)
    agents.update(entries)
    return rewrite(text, root, value)


def _remove(text: str) -> str:
    root, value, agents, ours = _agents(text)
    for name in ours:
        del agents[name]
    if not agents:
        del value[SERVERS]
    return rewrite(text, root, value)


JETBRAINS = replace(
    ACP,
    name="jetbrains",
    title="JetBrains IDEs",
    files={"user": "~/.jetbrains/acp.json"},
    entry=lambda program: {"command": program},
    file_format=FileFormat(read=_read, add=_add, remove=_remove),
)
ZED = replace(
    JETBRAINS,
    name="zed",
    title="Zed",
    files={"user": "~/.config/zed/settings.json"},
    folder_variable=("XDG_CONFIG_HOME", "~/.config"),
    entry=lambda program: {"type": "custom", "command": program},
)
EDITORS = {editor.name: editor for editor in (ZED, JETBRAINS)}
