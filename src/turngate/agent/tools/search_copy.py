"""SearchCopy: the files of another machine that a search needs, in a private folder here."""

import errno
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Collection, Mapping
from typing import Any

from turngate.agent.tools import search_process
from turngate.core.conversation.tools import ToolFailed
from turngate.core.globs import matches_names
from turngate.project.files import Files, FoundFile, MachineUnreachable

MAX_FILES = 20_000
MAX_DEPTH = 200  # of folders
MAX_BYTES = 64 * 1024 * 1024
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# An expression that is its own text: every file that it matches has this text.
_TEXT = re.compile(r"(?:\\b|\^)?([\w :/,;@%&=<>!\"'-]+)(?:\\b|\$)?", re.ASCII)
# `FOLDER TEXT NAME…`: the names of the files that have a text, one on each line, without those in folders of these names.
FIND_TEXT = """\
cd -P -- "$1" && text=$2 || exit 0; shift 2
for name do shift; set -- "$@" -o -name "$name"; done; shift
find . -type d ! -name . \\( "$@" \\) -prune -o -type f -exec grep -lF -e "$text" {} +
exit 0"""


class SearchCopy:
    """The methods block. `close` may be called while another thread still works."""

    def __init__(self, files: Files, query: Mapping[str, Any]) -> None:
        self._files, self._query, self._there = files, query, str(query["resolved"])
        self._folder = os.path.realpath(tempfile.mkdtemp(prefix="turngate-"))
        self.root = os.path.join(self._folder, "root")  # a folder, or a file if that is what is searched
        self.found: list[FoundFile] = []
        self._is_glob, self._is_file = query["tool"] == "Glob", False
        self._is_closed = False
        self._lock = threading.Lock()
        glob = query["pattern"] if self._is_glob else query.get("glob")
        self._pattern = glob if self._is_glob or not glob else search_process.any_folder(glob)

    def list_files(self) -> None:
        skipped = (".git",) if self._is_glob else search_process.NOT_SEARCHED
        try:
            found, _ = self._files.tree(self._there, skipped, MAX_DEPTH)
            self._make_folder(self.root)
            # Grep leaves links out.
            found = [file for file in found if self._is_glob or not file.is_link]
            self.found = [file for file in found if self._is_selected(file)]
        except ValueError as error:
            raise ToolFailed(str(error)) from None
        except NotADirectoryError:
            if self._is_glob:
                raise ToolFailed(f"{self._query['path']} is not a folder") from None
            self._is_file = True
        except FileNotFoundError:
            raise ToolFailed(f"{self._query['path']} does not exist") from None
        except (OSError, MachineUnreachable) as error:
            raise self._failed(error) from None

    def _is_selected(self, file: FoundFile) -> bool:
        return not self._pattern or matches_names(self._pattern, self._parts(file.path))

    @property
    def text(self) -> str:
        """A text that every file with a match has; "" if the expression is not only a text."""
        is_text = not self._is_glob and not self._is_file and not self._query.get("-i")
        text = _TEXT.fullmatch(self._query["pattern"]) if is_text else None
        return text[1] if text else ""

    def select_paths(self, names: Collection[str]) -> None:
        """Keep only the files with these names below the searched folder; one with a newline may be any of them."""
        kept = {f"{self._there.rstrip('/')}/{name.removeprefix('./')}" for name in names}
        self.found = [file for file in self.found if file.path in kept or "\n" in file.path]

    def fill(self) -> None:
        """Copy the names and times for Glob, and the contents for Grep. Raises ToolFailed."""
        if len(self.found) > MAX_FILES:
            raise self._too_much(f"{len(self.found):,} files")
        try:
            if self._is_file:
                self._copy_file()
            elif self._is_glob:
                for file in self.found:
                    self._put(self._here(file.path), b"", file.stat)
            else:
                self._copy_contents()
        except (OSError, MachineUnreachable) as error:
            raise self._failed(error) from None

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            shutil.rmtree(self._folder, ignore_errors=True)

    def _copy_file(self) -> None:
        data = self._files.fetch([self._there], MAX_BYTES + 1).get(self._there, b"")
        if len(data) > MAX_BYTES:
            raise self._too_much(f"more than {MAX_BYTES // 1024 // 1024} MiB")
        self._put(self.root, data)

    def _copy_contents(self) -> None:
        size = sum(file.stat.st_size for file in self.found)
        if size > MAX_BYTES:
            raise self._too_much(f"{size / 1024 / 1024:,.0f} MiB to search")
        paths = [file.path for file in self.found]
        for path, data in self._files.fetch(paths, MAX_BYTES).items() if paths else ():
            self._put(self._here(path), data)

    def _put(self, path: str, data: bytes, info: os.stat_result | None = None) -> None:
        """Write a file of the copy. One that is there stays: file systems that ignore the case have two names for it."""
        self._make_folder(os.path.dirname(path))
        with self._lock:
            if self._is_closed:
                raise ToolFailed("the search was ended")
            try:
                fd = os.open(path, _NEW_FILE, 0o600)
            except FileExistsError:
                return
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                if info is not None:
                    os.utime(fd, ns=(info.st_mtime_ns, info.st_mtime_ns))

    def _make_folder(self, path: str) -> None:
        with self._lock:
            if not self._is_closed:
                os.makedirs(path, exist_ok=True)

    def _parts(self, path: str) -> list[str]:
        return path[len(self._there.rstrip("/")) + 1 :].split("/")

    def _here(self, path: str) -> str:
        return os.path.join(self.root, *self._parts(path))

    def _failed(self, error: OSError | MachineUnreachable) -> ToolFailed:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            return self._too_much("too many files")
        why = getattr(error, "strerror", None) or error
        return ToolFailed(f"{self._query['path']} cannot be used: {why}")

    def _too_much(self, what: str) -> ToolFailed:
        program, narrower = ("find", "`path`") if self._is_glob else ("grep", "`path` or `glob`")
        return ToolFailed(
            f"{self._query['path']} has {what}, which is too much for {self._query['tool']} on another machine: "
            f"make it narrower with {narrower}, or use `{program}` in Bash"
        )
