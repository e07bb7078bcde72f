"""A private, temporary copy of a project, in which a hook can be tried without changing the project.

- A link to a file outside of the project becomes a copy of that file. One to a folder outside is left out: to write
  through it would change what it leads to. Caches (folders with a CACHEDIR.TAG) and what is not a file are left out too.
- Dependency folders (`node_modules`, Python environments) are too large to copy. They are folders whose entries are
  links to the original entries, so a program in them works. This is the one place where a write can leave the copy.
- `.git` cannot push, runs no git hooks and starts no process in the background. A `.git` file of a worktree or a submodule
  becomes a folder: otherwise a commit in the copy would be one in the original repository. Git reads the objects where
  they are (`objects/info/alternates`).

The copy is not a sandbox: a hook that names another path, such as its home folder, changes it.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from turngate._frozen_dataclass import frozen
from turngate.core.events.events import SessionStart, StopEvent, Subagent, SubagentOutcome, team_event
from turngate.core.hooks.kinds import CommandHook, GateHook
from turngate.core.settings import Rule, Settings
from turngate.project.checkouts import up_to_top
from turngate.project.files import LOCAL
from turngate.project.git import run_git
from turngate.project.safe_paths import is_inside, real_path
from turngate.settings.paths import read_text
from turngate.trust.fingerprint import scripts_of

MAX_FILES = 50_000  # folders and links included; without dependency folders and git's own
MAX_BYTES = 1024**3
PREFIX = "turngate-copy-"
CACHE_TAG = "CACHEDIR.TAG"
_NAMED_ENTRIES = 3


class ProjectTooLarge(OSError):
    """Raised for a project with too many files or bytes."""

    def __init__(self, project: str, what: str, largest: str) -> None:
        text = f"it has more than {what}, most of them in {largest}"
        super().__init__(errno.EFBIG, f"too large to be copied: {text}", project)


@frozen
class ProjectCopy:
    """A copy of a project, and in what it differs from the project. Paths are relative to what was copied."""

    project: str  # the folder of the project in the copy
    original: str  # what was copied: the project, or the git repository that it is a folder of
    folder: str  # the copy of it
    linked: tuple[str, ...]  # dependency folders
    left_out: Mapping[str, str]  # path → why
    without_repository: str | None = None  # the repository above the project, if it is not in the copy

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences, as texts for the user."""
        repository = self.without_repository
        linked = [f"without the git repository in {repository}, which is too large"] if repository else []
        linked += [f"linked, not copied: {_list(self.linked)}"] if self.linked else []
        reasons = dict.fromkeys(self.left_out.values())
        by_reason = ((why, [path for path in self.left_out if self.left_out[path] == why]) for why in reasons)
        return (*linked, *(f"left out: {_list(paths)} ({why})" for why, paths in by_reason))


def _list(paths: tuple[str, ...] | list[str]) -> str:
    more = len(paths) - _NAMED_ENTRIES
    return ", ".join(paths[:_NAMED_ENTRIES]) + (f" and {more} more" if more > 0 else "")


def environment_in_copy(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that lead git back to the original repository."""
    return {name: value for name, value in environ.items() if not _GIT_LOCATION.fullmatch(name)}


# Those of `git rev-parse --local-env-vars` that hold a path.
_GIT_LOCATION = re.compile(
    r"GIT_(?:ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|CONFIG|DIR|GRAFT_FILE|INDEX_FILE|OBJECT_DIRECTORY|PREFIX|SHALLOW_FILE|WORK_TREE)"
)


@contextlib.contextmanager
def copy_project(project: str) -> Iterator[ProjectCopy]:
    """Copy a project to a private folder below `$TMPDIR`, and remove the copy at the end.

    A project that is a folder of a git repository is copied with the whole repository, if that is not too large:
    otherwise git would not work. Copies of processes that were killed are removed first. Raises ProjectTooLarge, or
    another OSError.
    """
    remove_stale_copies()
    project = LOCAL.resolve(project)
    repository = _repository_above(project)
    private, lock = _make_folder()
    try:
        copier = _copy_first(dict.fromkeys((repository or project, project)), private)
        inner = os.path.normpath(os.path.join(copier.target, os.path.relpath(project, copier.root)))
        linked, left_out = tuple(sorted(copier.linked)), dict(sorted(copier.left_out.items()))
        missing = repository if repository != copier.root else None
        yield ProjectCopy(inner, copier.root, copier.target, linked, left_out, missing)
    finally:
        _remove(private)
        os.close(lock)


def _repository_above(project: str) -> str | None:
    """Return the folder of the git repository that the project is a folder of; not the home folder."""
    folders = up_to_top(project)
    has_repository = os.path.lexists(os.path.join(folders[-1], ".git"))
    is_below = len(folders) > 1 and LOCAL.resolve(os.path.expanduser("~")) not in folders
    return folders[-1] if has_repository and is_below else None


def _copy_first(roots: Iterable[str], private: str) -> "_Copier":
    """Copy the first of these folders that is not too large."""
    *larger, smallest = (
        _Copier(root, os.path.join(LOCAL.resolve(private), os.path.basename(root) or "root"))
        for root in roots
    )
    for copier in larger:
        with contextlib.suppress(ProjectTooLarge):
            copier.copy()
            return copier
        _remove(copier.target)
    smallest.copy()
    return smallest


# The folder of the copy


def remove_stale_copies() -> None:
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(tempfile.gettempdir())):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _remove_if_stale(entry.path)


def _remove_if_stale(folder: str) -> None:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(lock).st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder)
    finally:
        os.close(lock)


def _make_folder() -> tuple[str, int]:
    """Return a new folder, and its lock, which this process holds while it lives."""
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        with contextlib.suppress(FileNotFoundError):  # another process has just taken it for a stale one
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.path.exists(folder):
                return folder, lock
            os.close(lock)


def _remove(folder: str) -> None:
    """Remove a folder, also where its folders are read-only. What a process still writes, the next run removes."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                with contextlib.suppress(OSError):
                    os.chmod(inner, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


# Its content


class _Copier:
    """Copies the folder `root` to `target`. Paths in the attributes are relative to both."""

    def __init__(self, root: str, target: str) -> None:
        self.root, self.target = root, target
        self.linked: list[str] = []
        self.left_out: dict[str, str] = {}
        self._files: Counter[str] = Counter()  # by the first part of the path
        self._bytes: Counter[str] = Counter()

    def copy(self) -> None:
        made: list[tuple[str, os.stat_result]] = []
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            target = os.path.join(self.target, folder)
            try:
                info, names = os.stat(self._source(folder)), sorted(os.listdir(self._source(folder)))
            except OSError as error:
                if not folder:
                    raise
                self.left_out[folder] = _reason(error)
                continue
            os.mkdir(target, 0o700)
            made.append((target, info))
            entries = (os.path.join(folder, name) for name in names)
            waiting += [entry for entry in entries if self._copy_entry(entry)]
        for target, info in reversed(made):  # at the end: nothing can be added to a read-only folder
            _set_mode_and_times(target, info)

    def _source(self, relative: str) -> str:
        return os.path.join(self.root, relative)

    def _copy_entry(self, relative: str) -> bool:
        """Copy an entry. Return True for a folder whose entries are still to be copied."""
        try:
            mode = os.lstat(self._source(relative)).st_mode
            if os.path.basename(relative) == ".git" and (folders := _git_folders(self._source(relative))):
                _copy_git(*folders, os.path.join(self.target, relative))
                return False
            if stat.S_ISDIR(mode):
                return self._is_to_be_copied(relative)
            if stat.S_ISLNK(mode):
                self._copy_link(relative)
            elif stat.S_ISREG(mode):
                self._copy_file(self._source(relative), relative)
            else:
                self.left_out[relative] = "it is not a regular file"
        except FileNotFoundError:  # it was removed meanwhile
            pass
        except PermissionError as error:
            self.left_out[relative] = _reason(error)
        return False

    def _is_to_be_copied(self, folder: str) -> bool:
        source = self._source(folder)
        if source == os.path.dirname(self.target):  # $TMPDIR is inside the project
            return False
        if _is_dependency_folder(source):
            self._link_entries(source, folder)
            return False
        if os.path.isfile(os.path.join(source, CACHE_TAG)):
            self.left_out[folder] = "a cache"
            return False
        self._count(folder)
        return True

    def _copy_link(self, relative: str) -> None:
        source = self._source(relative)
        try:
            real = LOCAL.resolve(source)
        except OSError as error:
            self.left_out[relative] = _reason(error)
            return
        if is_inside(real, self.root):
            self._count(relative)
            inside = os.path.relpath(real, LOCAL.resolve(os.path.dirname(source)))
            os.symlink(inside, os.path.join(self.target, relative))
        elif os.path.isfile(real):
            self._copy_file(real, relative)
        elif os.path.isdir(real) and _is_dependency_folder(source):
            self._link_entries(real, relative)
        else:
            self.left_out[relative] = "a link that leads out of the project"

    def _link_entries(self, source: str, relative: str) -> None:
        """Make a folder of links. One link to the folder would not match `node_modules/` in .gitignore."""
        target = os.path.join(self.target, relative)
        os.mkdir(target, 0o700)
        for name in os.listdir(source):
            self._count(relative)
            os.symlink(os.path.join(source, name), os.path.join(target, name))
        self.linked.append(relative)

    def _copy_file(self, source: str, relative: str) -> None:
        """Copy a regular file; something else that has just taken its place is left out."""
        target = os.path.join(self.target, relative)
        with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            info = os.fstat(file.fileno())
            if stat.S_ISREG(info.st_mode):
                self._count(relative, info.st_size)
                with open(target, "xb") as copy:
                    shutil.copyfileobj(file, copy)
                _set_mode_and_times(target, info)

    def _count(self, relative: str, size: int = 0) -> None:
        top = relative.partition("/")[0]
        self._files[top] += 1
        self._bytes[top] += size
        if self._files.total() > MAX_FILES:
            raise ProjectTooLarge(self.root, f"{MAX_FILES:,} files", self._files.most_common(1)[0][0])
        if self._bytes.total() > MAX_BYTES:
            limit = f"{MAX_BYTES // 1024**2:,} MiB"
            raise ProjectTooLarge(self.root, limit, self._bytes.most_common(1)[0][0])


def _is_dependency_folder(folder: str) -> bool:
    return os.path.basename(folder) == "node_modules" or os.path.isfile(os.path.join(folder, "pyvenv.cfg"))


def _set_mode_and_times(path: str, info: os.stat_result) -> None:
    os.chmod(path, stat.S_IMODE(info.st_mode) & 0o777)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# Its `.git`

_LEFT_OUT = ("objects", "hooks", "worktrees", "modules", "lfs", "commondir", "gitdir")
_SHARED = ("config", "info", "logs", "packed-refs", "refs", "reftable", "shallow")  # by all worktrees
_NO_PUSH = "no-push-from-a-copy:"  # git names it in its error: no program can use this protocol
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


def _git_folders(path: str) -> tuple[str, str] | None:
    """Return the folders behind a `.git`: that of HEAD and the index, and that of branches and objects; None for another file."""
    own = os.path.realpath(path)
    if os.path.isfile(own):
        target = read_text(own).removeprefix("gitdir:").strip()
        own = os.path.realpath(os.path.join(os.path.dirname(path), target))
    common = os.path.realpath(os.path.join(own, read_text(os.path.join(own, "commondir")).strip()))
    is_repository = os.path.isfile(f"{own}/HEAD") and os.path.isdir(f"{common}/objects")
    return (own, common) if is_repository else None


def _copy_git(own: str, common: str, target: str) -> None:

    def left_out(folder: str, names: list[str]) -> list[str]:
        is_foreign = folder == common != own
        top = [name for name in names if name in _LEFT_OUT or (is_foreign and name not in _SHARED)]
        locks = [name for name in names if name.endswith(".lock")]
        return [*locks, *(top if folder in (own, common) else ())]

    def copy_file(source: str, copy: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
            if os.path.isfile(source):  # and not a socket of fsmonitor
                shutil.copy2(source, copy)

    for source in dict.fromkeys((common, own)):
        shutil.copytree(source, target, ignore=left_out, copy_function=copy_file, dirs_exist_ok=True)
    for name in ("objects/info", "objects/pack", "refs"):
        os.makedirs(os.path.join(target, name), 0o700, exist_ok=True)
    _write(os.path.join(target, "objects/info/alternates"), f"{os.path.join(common, 'objects')}\n")
    for name in ("config", "config.worktree"):
        _close_way_back(os.path.join(target, name))


def _close_way_back(path: str) -> None:
    """Let a configuration neither push, run hooks nor name the original's working tree."""
    if os.path.exists(path):
        text = _WAY_BACK_KEY.sub(r"\1\2original\3", read_text(path))
        text = _REMOTE_HEADER.sub(rf"\1\n\tpushurl = {_NO_PUSH}\n", text)
        os.remove(path)  # it may be read-only
        _write(path, text.rstrip("\n") + _NO_WAY_BACK)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


GIT_TIMEOUT_S = 60.0


def git_output(project: str, *words: str) -> str:
    """Return what git prints in the copy; an empty text if it fails."""
    try:
        done = run_git(project, *words, timeout=GIT_TIMEOUT_S, environ=environment_in_copy(os.environ))
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return os.fsdecode(done.stdout) if done.returncode == 0 else ""


def commit_everything(project: str, message: str) -> None:
    identity = ("-c", "user.name=turngate", "-c", "user.email=turngate@localhost")
    git_output(project, "add", "--all")
    git_output(project, *identity, "commit", "--quiet", "--no-gpg-sign", "--no-verify", "--message", message)


# Hooks, settings and the environment in it


class Relocation:
    """Hooks, settings and the environment of a project in its copy: what names the folder of the project names the copy."""

    def __init__(self, project: str, copy: ProjectCopy) -> None:
        self.project, self.copy = project, copy.project
        self.private = os.path.dirname(copy.folder)  # the folder around the copy; nothing else is in it
        self._places = {project: copy.project, real_path(project): copy.project, copy.original: copy.folder}
        longest_first = sorted(self._places, key=len, reverse=True)
        self._pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, longest_first))})(?![\w.-])")

    def text(self, text: str) -> str:
        """Replace the folder of the project, and of its repository, by that of the copy."""
        return self._pattern.sub(lambda found: self._places[found[0]], text)

    def rule(self, rule: Rule) -> Rule:
        hook = rule.hook
        names = [name for name in ("command", "args", "env", "options") if hasattr(hook, name)]
        if not isinstance(hook, CommandHook | GateHook):
            return rule
        return replace(rule, hook=replace(hook, **{name: self._value(getattr(hook, name)) for name in names}))

    def settings(self, settings: Settings, rules: Iterable[Rule]) -> Settings:
        """Return the settings for these hooks. They have no common time limit: each is tried by itself."""
        guarded = {
            trust: {name: value for name, value in values.items() if name != "stop_budget"}
            for trust, values in settings.guarded.items()
        }
        env = self._value(settings.env)
        return replace(settings, rules=tuple(rules), env=env, stop_budget=None, guarded=guarded)

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        return {
            **self._value(environment_in_copy(environ)),
            "GIT_CEILING_DIRECTORIES": self.private,
            "PYTHONDONTWRITEBYTECODE": "1",  # dependency folders are links to the original ones
            "TURNGATE_STATE": os.path.join(self.private, "state"),
        }

    def scripts(self, rule: Rule) -> list[str]:
        """Return the scripts that the command of a hook names, in the copy."""
        return [self.text(path) for path in scripts_of(rule, self.project)]

    def script_of_project(self, rule: Rule) -> str | None:
        """Return a script that holds the path of the project, which in the copy would still lead to the project."""
        for path in self.scripts(rule):
            text = read_text(path)
            if self.text(text) != text:
                return os.path.relpath(path, self.copy) if path.startswith(f"{self.copy}/") else path
        return None

    def _value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: self._value(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(self._value, value))
        return self.text(value) if isinstance(value, str) else value


def events_in_copy(
    folder: str, transcript: str, event: str, answer: str, agent: tuple[str, SubagentOutcome] | None = None
) -> tuple[SessionStart, StopEvent]:
    """Return the start and a stop of a session of its own: a gate that blocks once per session blocks each time.

    `agent`: the type and the outcome of the subagent that stops.
    """
    session, subagent = f"copy-{uuid4()}", None
    if agent:
        subagent = Subagent(id=session, type=agent[0], transcript_path=transcript, outcome=agent[1])
    start = SessionStart(session_id=session, transcript_path=transcript, cwd=folder)
    stop = StopEvent(session_id=session, transcript_path=transcript, cwd=folder, subagent=subagent)
    return start, replace(stop, last_assistant_message=answer, team_event=team_event(event))
