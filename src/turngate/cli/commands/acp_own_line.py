"""Whether an agent behind `turngate acp` asks the gates itself: its program has the line of `turngate install`."""

import os
import re
from collections.abc import Callable, Sequence

from turngate.cli.project import find_project
from turngate.core.constants import FAMILIES
from turngate.core.settings import Settings
from turngate.doctor.hosts.diagnosis import diagnose_files
from turngate.hosts.all_hosts import HOSTS

_PACKAGE = r"node_modules/(?:@[^/]+/)?([^/]+)"  # in the path of a program from npm


def own_line_of(command: Sequence[str]) -> Callable[[str], str | None]:
    """Return the function that says for a folder why the agent's own line holds there, or None."""
    names = {os.path.basename(word).partition("@")[0] for word in command}
    names |= {name for word in command for name in re.findall(_PACKAGE, word)}
    host = next((host for host in HOSTS.values() if names & {*host.acp_programs}), None)

    def own_line(folder: str) -> str | None:
        if host is None:
            return None
        project = find_project(folder, FAMILIES["host"])
        holds = diagnose_files(host, Settings(), project, os.environ).runs_turngate
        return f"{host.title} runs `turngate hook` itself in {folder}" if holds else None

    return own_line
