"""Local settings that git would commit."""

import os
import shutil
import subprocess
from collections.abc import Iterator

from turngate.core.settings import Problem
from turngate.settings.paths import settings_files

GIT_TIMEOUT_S = 10.0
NOT_IGNORED = 1  # exit code of `git check-ignore`; 128 outside of a repository


def unignored_local_settings(project: str, dialect: str) -> Iterator[Problem]:
    """Report each `settings.local.json` of a git repository that is tracked or not ignored."""
    files = [file for file in settings_files(project, dialect) if file.level == "local"]
    git = shutil.which("git")
    for file in files:
        if git and os.path.lexists(file.path) and check_ignore(git, project, file.path) == NOT_IGNORED:
            yield Problem(
                file=file.display_name,
                message="is for this machine only, but git does not ignore it",
                hint=f"echo {file.display_name} >> .gitignore",
                severity="note",
            )


def check_ignore(git: str, project: str, path: str) -> int | None:
    """Return the exit code of `git check-ignore`; None if git cannot answer."""
    try:
        done = subprocess.run(  # noqa: S603 - git, with a path of ours
            # A repository may configure a program that git starts when it reads its index.
            [git, "-C", project, "-c", "core.fsmonitor=false", "check-ignore", "--quiet", "--", path],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode
