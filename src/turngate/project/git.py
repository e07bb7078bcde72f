"""Runs the git of the user in a folder of this machine."""

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping

from turngate.project.safe_paths import path_outside


def run_git(
    folder: str, *words: str, timeout: float, environ: Mapping[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run git, without the program that a repository may configure to be started when git reads its index.

    A `git` inside of the folder is the project's, and is not run. Raises OSError, ValueError or TimeoutExpired.
    """
    path = path_outside((environ or os.environ).get("PATH", os.defpath), folder)
    program = shutil.which("git", path=path)
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "git")
    command = [program, "-C", folder, "-c", "core.fsmonitor=false", *words]
    return subprocess.run(  # noqa: S603 - git, with arguments of ours
        command, env=environ, input=stdin, capture_output=True, check=False, timeout=timeout
    )
