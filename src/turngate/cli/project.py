"""Where a command works."""

import os
import sys

from turngate.errors import UsageError


def project_folder(given: str) -> str:
    """The project's absolute folder; this one may have been removed under our feet."""
    try:
        project = os.path.abspath(given)
    except FileNotFoundError:
        raise UsageError(
            "the current folder does not exist any more; go to another one, or give --project an absolute path"
        ) from None
    if not os.path.isdir(project):
        raise UsageError(f"there is no folder {given}; give the project's folder with --project")
    return project


def read_prompt_from_stdin() -> str:
    try:
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        return sys.stdin.read()
    except (AttributeError, OSError):  # there is none, or none to read from
        raise UsageError(
            "- reads the prompt from stdin, which is closed; give the prompt as an argument"
        ) from None
