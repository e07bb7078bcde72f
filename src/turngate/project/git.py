"""Runs the git of the user in a folder of this machine."""

import subprocess
from collections.abc import Mapping


def run_git(
    folder: str, *words: str, timeout: float, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git, without the program that a repository may configure to be started when git reads its index.

    Raises OSError, ValueError or TimeoutExpired.
    """
    command, stdin = ["git", "-C", folder, "-c", "core.fsmonitor=false", *words], subprocess.DEVNULL
    return subprocess.run(  # noqa: S603 - git, with arguments of ours
        command, env=environ, stdin=stdin, capture_output=True, check=False, timeout=timeout
    )
