"""The project folder of a command."""

import os

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
