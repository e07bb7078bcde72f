"""Finds a project in other checkouts of its git repository, which `git worktree add` has made. Imports little."""

import os

from turngate.project.files import LOCAL, Files

_MAX_BYTES = 8192  # of a file that holds a path


def in_main_checkout(project: str, files: Files) -> str:
    """Return the folder of the project in the main checkout of its repository; the project itself, if it is there.

    `project` has no links. The `.git` of another checkout is a file that names an entry of the repository, and a file there
    names the checkout. A copy of the checkout, or a folder that claims to be one, has only the first of them.
    """
    top = find_top(project, files)
    git = os.path.join(top, ".git")
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


def in_checkout_of(folder: str, project: str) -> str:
    """Return the project in the checkout of its repository that has this folder; the project itself if there is none."""
    real = os.path.realpath(project)
    top, own = find_top(os.path.realpath(folder), LOCAL), find_top(real, LOCAL)
    found = top + real[len(own) :]
    is_same = in_main_checkout(top, LOCAL) == in_main_checkout(own, LOCAL)
    return found if is_same and found != real and os.path.isdir(found) else project


def find_top(folder: str, files: Files) -> str:
    """Return the folder of the repository that has this one; that of the system if there is none."""
    return up_to_top(folder, files)[-1]


def up_to_top(folder: str, files: Files = LOCAL) -> list[str]:
    """Return a folder and those above it, up to that of its repository, or that of the system."""
    folders = [folder]
    while not files.lexists(os.path.join(folder, ".git")) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def _read(path: str, files: Files) -> str:
    """Return what a file of git holds, or an empty text."""
    try:
        return files.read(path, _MAX_BYTES).decode("utf-8", "surrogateescape").strip()
    except (OSError, ValueError):
        return ""
