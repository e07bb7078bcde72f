"""The project folder and the prompt that a command line names."""

import os
import sys

from turngate.errors import UsageError


def project_folder(path: str) -> str:
    """Return the absolute path of the project folder."""
    try:
        project = os.path.abspath(path)
    except FileNotFoundError:
        raise UsageError(
            "the current folder no longer exists; change to another one, or give --project an absolute path"
        ) from None
    if not os.path.isdir(project):
        raise UsageError(f"there is no folder {path}; give the project's folder with --project")
    return project


def read_prompt_from_stdin() -> str:
    """Read the whole of stdin; bytes that are not valid text are replaced."""
    try:
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        return sys.stdin.read()
    except (AttributeError, OSError):  # stdin is closed or not readable
        raise UsageError(
            "- reads the prompt from stdin, which is closed; give the prompt as an argument"
        ) from None
