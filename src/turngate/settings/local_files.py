"""The files of a project on this machine that name its checks, for the gates tests, lint, types and build."""

import contextlib
import os
import shutil

from turngate.gates.check_commands import LISTED_FOLDERS, MAX_FILE_BYTES, READ_FILES, ProjectFiles
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_local_bytes


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
            data = read_local_bytes(os.path.join(project, name), MAX_FILE_BYTES)
            texts[name] = data.decode("utf-8-sig", "replace")
    return ProjectFiles(frozenset(names), texts)


def has_program(project: str, program: str) -> bool:
    """Return whether a program is there: a name in the PATH, or a path from the project's folder."""
    found = shutil.which(os.path.join(project, program) if "/" in program else program)
    return found is not None and not _is_empty_proxy(found)


def _is_empty_proxy(path: str) -> bool:
    """Whether a program is only rustup's stand-in for one of a toolchain, and no toolchain is installed."""
    rustup = os.path.join(os.path.dirname(path), "rustup")
    with contextlib.suppress(OSError):
        if os.path.basename(path) != "rustup" and os.path.samefile(path, rustup):
            home = os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup")
            toolchains = os.path.join(home, "toolchains")
            return not (os.path.isdir(toolchains) and os.listdir(toolchains))
    return False
