"""Runs the git of the user in a folder of this machine."""

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping

from turngate.project.safe_paths import is_inside, real_path


def run_git(
    folder: str, *words: str, timeout: float, environ: Mapping[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run git, without the program that a repository may configure to be started when git reads its index.

    A `git` inside of the folder is the project's, and is not run. Raises OSError, ValueError or TimeoutExpired.
    """
    places = (environ or os.environ).get("PATH", os.defpath).split(os.pathsep)
    project = real_path(folder)
    outside = [each for each in places if os.path.isabs(each) and not is_inside(real_path(each), project)]
    program = shutil.which("git", path=os.pathsep.join(outside))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "git")
    command = [program, "-C", folder, "-c", "core.fsmonitor=false", *words]
    return subprocess.run(  # noqa: S603 - git, with arguments of ours
        command, env=environ, input=stdin, capture_output=True, check=False, timeout=timeout
    )
