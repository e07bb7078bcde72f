"""Finds the main checkout of a git repository from another one, which `git worktree add` has made. Imports little."""

import os

from turngate.project.files import Files

_MAX_BYTES = 8192  # of a file that holds a path


def in_main_checkout(project: str, files: Files) -> str:
    """Return the folder of the project in the main checkout of its repository; the project itself, if it is there.

    `project` has no links. The `.git` of another checkout is a file that names an entry of the repository, and a file there
    names the checkout. A copy of the checkout, or a folder that claims to be one, has only the first of them.
    """
    top = project
    while not files.lexists(git := os.path.join(top, ".git")):
        if top == os.path.dirname(top):
            return project
        top = os.path.dirname(top)
    text = "" if files.islink(git) else _read(git, files)
    if not text.startswith("gitdir:"):
        return project
    entry = files.realpath(os.path.join(top, text.removeprefix("gitdir:").strip()))
    common = files.realpath(os.path.join(entry, _read(os.path.join(entry, "commondir"), files) or "."))
    named = os.path.dirname(os.path.join(entry, _read(os.path.join(entry, "gitdir"), files)))
    if os.path.dirname(entry) != os.path.join(common, "worktrees") or files.realpath(named) != top:
        return project
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else common
    return main + project[len(top) :]


def _read(path: str, files: Files) -> str:
    """Return what a file of git holds, or an empty text."""
    try:
        return files.read(path, _MAX_BYTES).decode("utf-8", "surrogateescape").strip()
    except (OSError, ValueError):
        return ""
