"""The `.git` of a copied project: usable on its own, and without a way back to the original repository.

- The objects are not copied: git reads them where they are (`objects/info/alternates`) and writes new ones to the copy.
- The `.git` file of a worktree or a submodule becomes a folder; otherwise a commit in the copy would be one in the
  original repository.
- Pushing fails, git hooks do not run, and no background process is started. A program that names the URL itself and
  reads a user's configuration with a rule for it can still push.
"""

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

# Those of `git rev-parse --local-env-vars` that hold a path.
GIT_LOCATION_VARIABLES = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
_LEFT_OUT = ("objects", "hooks", "worktrees", "modules", "lfs", "commondir", "gitdir")
_SHARED = ("config", "info", "logs", "packed-refs", "refs", "reftable", "shallow")  # by all worktrees
_MAX_GITFILE_BYTES = 8192
_NO_PUSH = (
    "no-push-from-a-copy:"  # git looks for a program that can use this protocol, and names it in its error
)
_NO_WAY_BACK = f"""
[core]
\thooksPath = /dev/null
\tfsmonitor = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[url "{_NO_PUSH}"]
\tpushInsteadOf = ""
"""
_REMOTE_HEADER = re.compile(r'(?im)^([ \t]*\[remote[ \t]+"(?:[^"\\\n]|\\.)*"\])')
_WAY_BACK_KEY = re.compile(r"(?im)(^|\])([ \t]*)(pushurl|worktree)(?=[ \t]*=)")


class GitFolders(NamedTuple):
    own: str  # HEAD and index
    common: str  # branches, configuration and objects


def find_git_folders(path: str) -> GitFolders | None:
    """Return the folders behind a `.git`, which is a folder or a file; None: it is not that of a repository."""
    own = os.path.realpath(path)
    if os.path.isfile(own):
        own = os.path.realpath(
            os.path.join(os.path.dirname(path), _read_line(own).removeprefix("gitdir:").strip())
        )
    common = os.path.realpath(os.path.join(own, _read_line(os.path.join(own, "commondir"))))
    is_repository = os.path.isfile(os.path.join(own, "HEAD")) and os.path.isdir(
        os.path.join(common, "objects")
    )
    return GitFolders(own, common) if is_repository else None


def _read_line(path: str) -> str:
    """Return the text of a file that holds a path, or an empty text."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return os.fsdecode(file.read(_MAX_GITFILE_BYTES)).strip()
    return ""


def copy_git_folder(folders: GitFolders, target: str, copy_file: Callable[[str, str], None]) -> None:
    """Make the folder `.git` of a copy. `copy_file` takes the path of a file and of its copy."""
    for name in ("objects/info", "objects/pack", "refs"):
        os.makedirs(os.path.join(target, name), 0o700)
    files = dict(_files(folders.common, None if folders.own == folders.common else _SHARED))
    if folders.own != folders.common:
        files |= _files(folders.own, None)
    for relative, source in files.items():
        copy = os.path.join(target, relative)
        os.makedirs(os.path.dirname(copy), 0o700, exist_ok=True)
        copy_file(source, copy)
    _write(os.path.join(target, "objects/info/alternates"), f"{os.path.join(folders.common, 'objects')}\n")
    for name in ("config", "config.worktree"):
        _close_way_back(os.path.join(target, name))


def _files(folder: str, names: tuple[str, ...] | None) -> Iterator[tuple[str, str]]:
    """Yield the relative and the absolute path of the files below a git folder that a copy needs."""
    for name in names or os.listdir(folder):
        path = os.path.join(folder, name)
        if name in _LEFT_OUT or name.endswith(".lock"):
            continue
        if os.path.isfile(path):
            yield name, os.path.realpath(path)
        for inner, _, files in os.walk(path):
            for file in files:
                source = os.path.join(inner, file)
                if os.path.isfile(source) and not file.endswith(".lock"):
                    yield os.path.relpath(source, folder), os.path.realpath(source)


def _close_way_back(path: str) -> None:
    """Let a configuration neither push, run hooks nor name the original's working tree."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        text = file.read()
    text = _WAY_BACK_KEY.sub(r"\1\2original\3", text)
    text = _REMOTE_HEADER.sub(rf"\1\n\tpushurl = {_NO_PUSH}\n", text)
    os.remove(path)
    _write(path, text.rstrip("\n") + _NO_WAY_BACK)


def _write(path: str, text: str) -> None:
    with open(path, "x", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
