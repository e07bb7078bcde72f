"""The files that an approval covers, as a mapping of names to ids that can be stored and compared.

A name is relative to the project, or absolute. One that ends with a slash is a folder, whose id says which of its files
count: also one that is added later.
"""

import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from turngate.project.files import Files
from turngate.project.safe_paths import is_inside
from turngate.trust.file_kinds import (
    BUILT,
    HOOK_FOLDERS,
    INSTALLED,
    MODULES,
    NOT_HOOKS,
    NOT_READ,
    OF_NODE,
    OF_PYTHON,
    has_suffix,
    is_backup,
    is_record,
    is_written,
)

MAX_FILES = 2_000  # of one folder
MAX_BYTES = 64 * 1024 * 1024  # of one folder, or of one file
MAX_SECONDS = 10.0  # for all files of a review
RACY_NS = 2_000_000_000  # a file that was changed this shortly before could change again without a new time
ALL = "all"  # the id of a folder: all of its files count
MENTIONED = "mentioned"  # those count whose names occur in others that count
UNREADABLE = "unreadable"  # it may be run nevertheless

# A script that may run any file of its folder.
_RUNS_ANY = (
    r"\)\"?/\"?[*$]|\$\w+\"?/\"?[*$]|[*?\]][^\s\"';/]*\.(?:ba)?sh\b|run-parts|importlib|__import__"
    r"|(?:require|import)\s*\(\s*[^\"'\s]"
)
# One that lists a folder may run any file of its own, if it names that.
_LISTS = r"listdir|scandir|iterdir|\bi?glob\b|readdir"
_OWN_FOLDER = r"__file__|__dirname|import\.meta|argv\[0\]"
# What loads a file whose name may have no suffix, up to the end of the command.
_LOADS = (
    r"(?m)import\s*\([^)]*|(?:\b(?:import|from|require|source|fork|Worker|run_module|python3?|node|exec)\b"
    r"|(?<![.\w-])(?:ba|z)?sh[ \t]|(?:^|[;&|])[ \t]*\.\s)[^\n;|&]*"
)

_WORD, _PATH = r"(?<![\w-]){}(?![\w-])", r"(?<![\w-]){0}/|/{0}(?![\w-])"
_COMMENT = r"(?m)^\s*(?:#\s|//).*"  # a whole line

FileIds = Mapping[str, str | None]  # by name; None: there is no such file
NO_FILES: FileIds = MappingProxyType({})
# By path: size, times and inode of a file when it was read, and its id.
_READ: dict[str, tuple[tuple[int, ...], str]] = {}


class TooLarge(Exception):
    """Raised for what cannot be compared within the limits; the text says what to do."""


class CoveredFiles:
    """Reads the files of one review, each once."""

    def __init__(self, files: Files, project: str) -> None:
        """`project` has no links."""
        self.files, self.project = files, project
        self._deadline = time.monotonic() + MAX_SECONDS
        self._folders: dict[tuple[str, str], Mapping[str, os.stat_result | None]] = {}
        self._whole: dict[tuple[str, ...], FileIds] = {}
        self._modes: dict[str, int] = {}
        self._contents: dict[str, str] = {}  # of files on another machine, by path
        self._names: set[str] | None = None  # in the project's root folder

    def path_of(self, name: str) -> str:
        path = name if name.startswith("/") else f"{self.project}/{name}"
        return path.rstrip("/") if path.endswith("/") else path

    def mode(self, path: str) -> int:
        """Return the mode of a file, through links; 0 if there is none."""
        if path not in self._modes:
            try:
                self._modes[path] = self.files.stat(path).st_mode
            except (OSError, ValueError):
                self._modes[path] = 0
        return self._modes[path]

    def may_have(self, words: Iterable[str]) -> bool:
        """Return whether the project's root folder may have a file or folder of one of these names, or such a module."""
        if self._names is None:
            try:
                names = {name.lower() for name in self.files.listdir(self.project)}
            except (OSError, ValueError):
                return True
            self._names = names | {os.path.splitext(name)[0] for name in names}
        return any(word.lower() in self._names or word.startswith("-m") for word in words)

    def ids(self, covered: FileIds) -> FileIds:
        """Return the ids of these files, and of those that count in these folders. Raises TooLarge."""
        if self.files.machine:  # at once
            paths = (os.path.join(self.project, name) for name in covered)
            self.files = self.files.snapshot([f"{path}**" if path.endswith("/") else path for path in paths])
        folders = tuple(name for name, which in covered.items() if which == ALL)
        if folders not in self._whole:  # many hooks have the same
            self._whole[folders] = {
                **dict.fromkeys(folders, ALL),
                **{
                    name: self._content(name, info) for each in folders for name, info in self._files_in(each)
                },
            }
        whole, found = self._whole[folders], dict[str, str | None]()
        for name, which in covered.items():
            if which == MENTIONED:
                found |= self._mentioned(name, [each for each in covered if each.startswith(name)])
            elif name not in whole and (content := self.file_id(name)):
                found[name] = content
        return {**whole, **found} if found else whole

    def file_id(self, name: str) -> str | None:
        """Return the id of a file, through links; None if there is no regular file. Raises TooLarge."""
        try:
            info = self.files.stat(self.path_of(name))
        except (OSError, ValueError):
            return None
        return self._content(name, info) if stat.S_ISREG(info.st_mode) else None

    # Folders

    def _mentioned(self, folder: str, names: Iterable[str]) -> dict[str, str | None]:
        """Return the ids of files in a folder, and of those whose names occur in them."""
        others = dict(self._files_in(folder, MENTIONED))
        found = {name: others.pop(name) for name in names if name in others}
        for name in (waiting := list(found)):
            text = self._text(name)
            is_python = name.endswith(".py") or "python" in text[:100]
            modules = OF_PYTHON if is_python else OF_NODE if has_suffix(name, OF_NODE) else MODULES
            text = re.sub(_COMMENT, "", text)
            own_folder = rf"{_OWN_FOLDER}|\b{re.escape(os.path.basename(folder[:-1]))}\b"
            runs_any = re.search(_RUNS_ANY, text) or (re.search(_LISTS, text) and re.search(own_folder, text))
            loaded = "\n".join(re.findall(_LOADS, text))
            for other in list(others):
                if runs_any or _is_mentioned(other.removeprefix(folder), text, loaded, modules):
                    found[other] = others.pop(other)
                    waiting.append(other)
            self._check_size(folder, found.values())
        return {folder: MENTIONED, **{name: self._content(name, info) for name, info in found.items()}}

    def _text(self, name: str) -> str:
        try:
            return self.files.read(self.path_of(name), MAX_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def _files_in(self, folder: str, which: str = ALL) -> Iterable[tuple[str, os.stat_result | None]]:
        """Return the files below a folder by their names, without data. None: a folder that cannot be listed."""
        if (folder, which) not in self._folders:
            found, real = dict[str, os.stat_result | None](), self.files.realpath(self.path_of(folder))
            left_out = NOT_READ if which == ALL else NOT_READ | BUILT
            for name, info in self._walk(folder, real, frozenset(), left_out):
                self._check_time(folder)
                if info and is_written(name[len(folder) :]) and not self.can_run(name, info.st_mode):
                    continue
                found[name] = info
                if which == ALL and len(found) > MAX_FILES:
                    break
            if which == ALL:
                self._check_size(folder, found.values())
            self._folders[folder, which] = found
        return self._folders[folder, which].items()

    @staticmethod
    def _check_size(folder: str, files: Collection[os.stat_result | None]) -> None:
        size = sum(info.st_size for info in files if info)
        if len(files) > MAX_FILES or size > MAX_BYTES:
            what = f"{MAX_FILES:,} files" if len(files) > MAX_FILES else f"{MAX_BYTES // 1024**2} MiB"
            raise _too_large(folder, f"has more than {what}")

    def _check_time(self, folder: str) -> None:
        if time.monotonic() > self._deadline:
            raise _too_large(folder, f"could not be read within {MAX_SECONDS:g} s")

    def _walk(
        self, folder: str, real: str, above: frozenset[str], left_out: Collection[str]
    ) -> Iterator[tuple[str, os.stat_result | None]]:
        """Yield the files below a folder; of what was installed there, the folder."""
        try:
            entries = sorted(self.files.scan(self.path_of(folder)).items())
        except (FileNotFoundError, NotADirectoryError):  # most projects have no `.mux`
            return
        except (OSError, ValueError):
            yield f"{folder}.", None
            return
        is_of_settings, above = folder.endswith(HOOK_FOLDERS[:2]), above | {real}
        for entry, found in entries:
            is_no_hook = is_of_settings and entry.partition(".tmp.")[0] in NOT_HOOKS
            if is_no_hook or entry in left_out or is_backup(entry):
                continue
            name, inner, info = f"{folder}{entry}", f"{real}/{entry}", found
            if stat.S_ISLNK(found.st_mode):
                try:
                    info, inner = self.files.stat(self.path_of(name)), self.files.realpath(inner)
                except (OSError, ValueError):  # it leads nowhere
                    continue
                if inner in above or is_inside(self.project, inner):
                    continue  # what it leads to is covered already, or is the whole project
            if stat.S_ISREG(info.st_mode) or entry in INSTALLED:
                yield name, info
            elif stat.S_ISDIR(info.st_mode):
                yield from self._walk(f"{name}/", inner, above, left_out)

    def can_run(self, name: str, mode: int) -> bool:
        """Return whether a file is executable, or begins with `#!`. One of perhaps thousands of records is not opened."""
        if mode & 0o111 or is_record(name):
            return bool(mode & 0o111)
        try:
            return self.files.read(self.path_of(name), 2) == b"#!"
        except (OSError, ValueError):
            return False

    # Content

    def _content(self, name: str, info: os.stat_result | None) -> str:
        path, is_here = self.path_of(name), not self.files.machine  # whose times are exact
        times = (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino) if info else ()
        if is_here and path in _READ and _READ[path][0] == times:
            return _READ[path][1]
        if path in self._contents:
            return self._contents[path]
        self._check_time(os.path.dirname(name))
        try:
            if info is not None and stat.S_ISDIR(info.st_mode):
                return _id("names", os.fsencode("\0".join(sorted(self.files.listdir(path)))))
            now, data = time.time_ns(), self.files.read(path, MAX_BYTES + 1)
        except (OSError, ValueError):
            return UNREADABLE
        if len(data) > MAX_BYTES:
            raise _too_large(os.path.dirname(name), f"has a file of more than {MAX_BYTES // 1024**2} MiB")
        content = _id("sha256", data)
        if is_here and times and now - max(times[1:3]) > RACY_NS:
            _READ[path] = (times, content)
        if not is_here:
            self._contents[path] = content
        return content


def _id(kind: str, data: bytes) -> str:
    return f"{kind}:{hashlib.sha256(data).hexdigest()}"


def _is_mentioned(name: str, text: str, loaded: str, modules: Collection[str]) -> bool:
    """Return whether a text has the name of a file, or of a folder above it.

    A name without a dot has a slash beside it. In what is `loaded`, it may be any word, and a module has no suffix.
    """
    *folders, file = name.split("/")
    stem, suffix = os.path.splitext(file)
    names = [*folders, stem if suffix in modules else file]
    if modules is OF_PYTHON and names[0] in sys.stdlib_module_names:  # it would be imported instead
        return True
    pairs = [(each, loaded, _WORD) for each in names]
    pairs += [(each, text, _WORD if "." in each else _PATH) for each in (*folders, file)]
    return any(each in where and re.search(at.format(re.escape(each)), where) for each, where, at in pairs)


def _too_large(folder: str, what: str) -> TooLarge:
    return TooLarge(
        f"the folder {folder.rstrip('/') or '.'} {what}, too much to compare at each stop; "
        "move the scripts of hooks into a folder of their own"
    )


# Comparison


def find_change(recorded: FileIds, now: FileIds, named: Iterable[str] = ()) -> str | None:
    """Return what has changed, as the beginning of a sentence, or None. The files that are `named` come first."""
    for name in (*named, *recorded, *now) if recorded != now else ():
        before, after = recorded.get(name), now.get(name)
        if before != after and not (before is None and name.endswith("/")):
            return f"{name} was {'added' if before is None else 'removed' if after is None else 'changed'}"
    return None


def compare_files(recorded: FileIds, covered: CoveredFiles) -> str | None:
    """Return what has changed since the files were recorded, as the beginning of a sentence, or None."""
    try:
        return find_change(recorded, covered.ids(recorded))
    except TooLarge as error:
        return str(error)
