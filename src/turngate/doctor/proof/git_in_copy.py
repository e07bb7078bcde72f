"""Git in the copy of a project."""

import os
import subprocess

from turngate.filesystem.project_copy import environment_in_copy

GIT_TIMEOUT_S = 60.0
MARK = "planted by turngate doctor"


def git(project: str, *arguments: str) -> str:
    """Return what git prints in the copy; an empty text if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - git, with our own arguments
            ["git", "-c", "core.fsmonitor=false", *arguments],  # noqa: S607 - that of the user
            cwd=project,
            env=environment_in_copy(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(done.stdout) if done.returncode == 0 else ""


def commit_everything(project: str) -> None:
    identity = (
        "-c",
        "user.name=turngate",
        "-c",
        "user.email=turngate@localhost",
        "-c",
        "commit.gpgsign=false",
    )
    git(project, "add", "--all")
    git(project, *identity, "commit", "--quiet", "--no-verify", "--message", MARK)
