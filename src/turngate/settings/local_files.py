"""The files of a project on this machine that name its checks, for the presets of gates."""

import contextlib
import os
import shutil

from turngate.gates.presets import LISTED_FOLDERS, MAX_FILE_BYTES, READ_FILES, ProjectFiles
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes


def read_project_files(project: str) -> ProjectFiles:
    names: set[str] = set()
    for folder in LISTED_FOLDERS:
        with contextlib.suppress(OSError):
            names.update(
                os.path.normpath(os.path.join(folder, name))
                for name in os.listdir(os.path.join(project, folder))
            )
    texts = {}
    for name in names.intersection(READ_FILES):
        with contextlib.suppress(OSError, NotARegularFile, FileTooLarge):
            data = read_bytes(os.path.join(project, name), MAX_FILE_BYTES)
            texts[name] = data.decode("utf-8-sig", "replace")
    return ProjectFiles(frozenset(names), texts)


def has_program(project: str, program: str) -> bool:
    """Return whether a program is there: a name in the PATH, or a path from the project's folder."""
    path = os.path.join(project, program) if "/" in program else program
    return shutil.which(path) is not None
