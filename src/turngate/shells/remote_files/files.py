"""RemoteFiles: the files of the machine of a shell. Each method runs one short script there.

The methods block and are called in threads.
"""

import asyncio
import errno
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import NamedTuple

from turngate.filesystem.described import Content, Described, DescribedFiles
from turngate.ports import Shell
from turngate.shells.remote_files import scripts
from turngate.shells.remote_files.script_runner import MAX_ARGUMENT_BYTES, Limit, ScriptRunner
from turngate.shells.remote_files.scripts import parse_files, parse_stat

EXISTENCE_TIMEOUT_S = 2.0
READ_TIMEOUT_S = 10.0  # in which something must arrive
SEARCH_TIMEOUT_S = 20.0
WRITE_TIMEOUT_S = 10.0  # and one second more for each WRITE_BYTES_PER_S
WRITE_BYTES_PER_S = 1_000_000
MAX_ANSWER_BYTES = 64 * 1024
MAX_LIST_BYTES = 16 * 1024 * 1024


class Inspected(NamedTuple):
    """What a tool must know of a file before it replaces it."""

    stat: os.stat_result  # of the file itself
    version: str  # differs after the file was written; "" for what is not a regular file
    is_writable: bool


class RemoteFiles(DescribedFiles):
    """After the machine did not answer, all calls fail at once for some seconds."""

    def __init__(
        self,
        shell: Shell,
        loop: asyncio.AbstractEventLoop,
        *,
        home: str,
        environ: Mapping[str, str],
        machine: str = "",
    ) -> None:
        self.home, self.environ, self.machine = home, environ, machine
        self.scripts = ScriptRunner(shell, loop, environ)
        self._stat_kind = ""  # not known yet

    # As in `os`

    def stat(self, path: str) -> os.stat_result:
        return self._stat(path, "L")

    def lstat(self, path: str) -> os.stat_result:
        return self._stat(path, "")

    def _stat(self, path: str, follow: str) -> os.stat_result:
        stat_kind = self.stat_kind()
        output = self._run(scripts.STAT, stat_kind, follow, path, path=path)
        return self._parse(output.decode("utf-8", "surrogateescape"), stat_kind, path)

    def _parse(self, text: str, stat_kind: str, path: str) -> os.stat_result:
        with _parsing(path):
            return parse_stat(text, stat_kind)

    def _parse_all(self, output: bytes, stat_kind: str, token: str, path: str) -> list[Described | Content]:
        with _parsing(path):
            return list(parse_files(output, stat_kind, token))

    def readlink(self, path: str) -> str:
        return self._run(scripts.READLINK, path, path=path).decode("utf-8", "surrogateescape")

    def listdir(self, path: str) -> list[str]:
        output = self._run(scripts.LISTDIR, path, path=path, max_bytes=MAX_LIST_BYTES)
        names = output.decode("utf-8", "surrogateescape").split("\0")[:-1]
        found = [name.removeprefix("./") for name in names]
        return [name for name in found if "/" not in name and scripts.is_plain(name)]

    def is_executable(self, path: str) -> bool:
        try:
            self._run(scripts.IS_EXECUTABLE, path, path=path)
        except OSError:
            return False
        return True

    def read(self, path: str, max_bytes: int) -> bytes:
        count = -(-max_bytes // scripts.BLOCK_BYTES)
        return self._read(scripts.READ, path, path, 0, count)[0][:max_bytes]

    # For tools: a path has no links, unless one has been put there meanwhile, which raises PathChanged

    def read_blocks(self, path: str, first: int, count: int) -> tuple[bytes, str]:
        """Return some blocks of a regular file, and its version."""
        folder, name = _split(path)
        return self._read(scripts.READ_RESOLVED, path, name, first, count, folder)

    def _read(
        self, script: str, path: str, name: str, first: int, count: int, *folder: str
    ) -> tuple[bytes, str]:
        answer = self.scripts.run(
            script,
            (name, self.stat_kind(), str(first), str(count), *folder),
            path=path,
            max_bytes=count * scripts.BLOCK_BYTES,
            limit=Limit(READ_TIMEOUT_S, while_silent=True),
        )
        return answer.stdout.data(), scripts.version_in(answer.stderr.text())

    def inspect(self, path: str) -> Inspected:
        stat_kind = self.stat_kind()
        output = self._run(scripts.INSPECT, stat_kind, *_split(path), path=path)
        with _parsing(path):
            line, version, writable = output.decode("utf-8", "surrogateescape").split("\0")
            return Inspected(parse_stat(line, stat_kind), version.strip(), bool(writable))

    def replace(
        self, path: str, data: bytes, before: Inspected | None = None, *, make_folders: bool = False
    ) -> str:
        """Replace a file in one step, or make it if `before` is None. Return its version.

        The mode stays, and the owner where the user may set it. Raises FileChanged if there is
        another file now.
        """
        folder, name = _split(path)
        owner, mode = ("", "") if before is None else _owner_and_mode(before.stat)
        return (
            self._run(
                scripts.REPLACE,
                self.stat_kind(),
                folder,
                name,
                f".turngate-{secrets.token_hex(6)}",
                str(len(data)),
                "create" if make_folders else "",
                before.version if before else "",
                owner,
                mode,
                path=path,
                stdin=data,
                limit=Limit(WRITE_TIMEOUT_S + len(data) / WRITE_BYTES_PER_S),
            )
            .decode("utf-8", "replace")
            .strip()
        )

    def tree(
        self, folder: str, skipped: Sequence[str], names: Sequence[str], max_depth: int
    ) -> tuple[list[Described], bool]:
        """Return what is below a folder and not a folder itself, and whether there are folders below `max_depth`.

        `skipped` are the names of folders that are left out, `names` patterns that the names of files match; [] for
        all files. A `stat` is that of what a link leads to. Raises OSError with EFBIG if there is too much.
        """
        stat_kind = self.stat_kind()
        output = self._run(
            scripts.TREE,
            scripts.DESCRIBE_ALL,
            stat_kind,
            folder,
            str(max_depth),
            "\n".join(_any_name(names)),
            *_prune(skipped),
            path=folder,
            max_bytes=MAX_LIST_BYTES,
            limit=Limit(SEARCH_TIMEOUT_S),
        )
        found = self._parse_all(output.removeprefix(b"e"), stat_kind, "", folder)
        files = {
            file.path: file for file in found if isinstance(file, Described) and _is_below(file.path, folder)
        }
        return list(files.values()), output.startswith(b"e")

    def search(self, folder: str, skipped: Sequence[str], text: str) -> list[str]:
        """Return the files of such a tree that have a text. A name with a newline is more than one."""
        output = self._run(
            scripts.SEARCH,
            text,
            folder,
            *_prune(skipped),
            path=folder,
            max_bytes=MAX_LIST_BYTES,
            limit=Limit(SEARCH_TIMEOUT_S),
        )
        names = output.decode("utf-8", "surrogateescape").split("\n")[:-1]
        return [f"{folder.rstrip('/')}/{name.removeprefix('./')}" for name in names]

    def fetch(self, paths: Sequence[str], max_bytes: int) -> list[Content]:
        """Return the contents of files with one command. Those that cannot be read or have just been changed are left out."""
        stat_kind, token = self.stat_kind(), _new_token()
        output = self._run(
            scripts.FETCH_ALL,
            stat_kind,
            token,
            "",
            *paths,
            path=paths[0],
            max_bytes=max_bytes,
            limit=Limit(READ_TIMEOUT_S, while_silent=True),
        )
        found = self._parse_all(output, stat_kind, token, paths[0])
        return [file for file in found if isinstance(file, Content)]

    def describe(self, paths: Sequence[str], *, contents: bool = False) -> list[Described | Content]:
        stat_kind, token = self.stat_kind(), _new_token()
        if contents:
            words = [scripts.SNAPSHOT, scripts.DESCRIBE_ALL, scripts.FETCH_ALL, stat_kind, token]
            limit = Limit(READ_TIMEOUT_S, while_silent=True)
        else:
            words = [scripts.DESCRIBE_ALL, stat_kind, "links", ""]
            limit = Limit(EXISTENCE_TIMEOUT_S)
        words += _first(paths)
        output = self._run(*words, path=paths[0], max_bytes=MAX_LIST_BYTES, limit=limit)
        return self._parse_all(output, stat_kind, token, paths[0])

    def stat_kind(self) -> str:
        """Return which `stat` there is."""
        if not self._stat_kind:
            self._stat_kind = self._run(scripts.STAT_KIND, path="/").decode("utf-8", "replace").strip()
        return self._stat_kind

    def _run(
        self,
        script: str,
        *args: str,
        path: str,
        stdin: bytes = b"",
        max_bytes: int = MAX_ANSWER_BYTES,
        limit: Limit | None = None,
    ) -> bytes:
        """Return what a script prints; without a limit it is only a question."""
        limit = limit or Limit(EXISTENCE_TIMEOUT_S)
        answer = self.scripts.run(script, args, path=path, stdin=stdin, max_bytes=max_bytes, limit=limit)
        return answer.stdout.data()


@contextmanager
def _parsing(path: str) -> Iterator[None]:
    """Raise OSError for output that is not that of the scripts."""
    try:
        yield
    except ValueError:
        raise OSError(errno.EIO, "the machine sent an answer that cannot be read", path) from None


def _owner_and_mode(info: os.stat_result) -> tuple[str, str]:
    return f"{info.st_uid}:{info.st_gid}", f"{info.st_mode & 0o7777:04o}"


def _split(path: str) -> tuple[str, str]:
    """Return the folder of an absolute path, and its name as a path below it."""
    folder, _, name = path.rpartition("/")
    return folder or "/", f"./{name}"


def _is_below(path: str, folder: str) -> bool:
    start = f"{folder.rstrip('/')}/"
    return path.startswith(start) and scripts.is_plain(path.removeprefix(start))


def _prune(names: Sequence[str]) -> list[str]:
    """Return the beginning of an expression for `find`: without folders of these names. The first folder is named `.`."""
    return ["-type", "d", "!", "-name", ".", *_any_name(names), "-prune", "-o"]


def _any_name(names: Sequence[str]) -> list[str]:
    words = [word for name in names for word in ("-o", "-name", name)]
    return ["(", *words[1:], ")"] if names else []


def _first(paths: Sequence[str]) -> list[str]:
    """Return as many paths as fit into one command."""
    sizes = accumulate(len(path.encode("utf-8", "surrogateescape")) for path in paths)
    return [path for path, size in zip(paths, sizes, strict=True) if size <= MAX_ARGUMENT_BYTES]


def _new_token() -> str:
    return f"turngate-{secrets.token_hex(16)}"
