"""The files of a project that belong to it: without git's own and without dependencies."""

import os
from collections.abc import Iterator


def walk_files(project: str) -> Iterator[str]:
    """Yield the regular files, relative to the project, in the order of their names."""
    for folder, folders, names in os.walk(project):
        folders[:] = sorted(name for name in folders if name not in (".git", "node_modules", ".venv", "venv"))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, project)
