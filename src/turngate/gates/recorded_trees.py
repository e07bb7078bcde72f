"""The files of a project at a stop, as a commit in its git repository that only a ref of ours names.

Git is given bytes and gives bytes: no filter, hook or other program that a repository names is run. Neither the index nor the work tree of the
project changes. Submodules and other repositories inside, and what is staged, are not recorded.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType

from turngate.core.text import describe_exception, one_line
from turngate.gates.git.scripts import GIT_ENVIRONMENT, GIT_OPTIONS
from turngate.gates.local_tree_state import local_listing, repository_top
from turngate.project.git import run_git
from turngate.project.safe_paths import is_inside, real_path
from turngate.state.files import open_regular_file
from turngate.state.paths import session_folder

REFS = "refs/turngate/stops"
KEPT_DAYS = 30
RECORD_TIMEOUT_S = 10.0
CHECK_OUT_TIMEOUT_S = 120.0
MAX_NEW_BYTES = 64 * 1024 * 1024  # of one stop
REMOTE_OPTIONS = tuple(
    word
    for name in ("file", "git", "http", "https", "ssh")
    for word in ("-c", f"protocol.{name}.allow=always")
)
REMOTE_VARIABLES = {"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}
_ATTEMPTS = 5  # to get a number that no other process has just taken


class NoTree(Exception):
    """Raised with the reason why the files of a stop cannot be recorded, or checked out."""


def record_tree(project: str, state: str, session: str, *, is_start: bool = False) -> str:
    """Keep the files as they are now, and return the name of the ref. The start of a session has the number 0. Raises NoTree."""
    with open_repository(repository_top(project), RECORD_TIMEOUT_S) as repository:
        names = f"{REFS}/{os.path.basename(session_folder(state, session)).replace('.', '_')}"
        return _name(repository, names, repository.store(state), is_start=is_start)


def _read(path: bytes, limit: int, *, is_link: bool) -> bytes:
    if is_link:
        return os.readlink(path)
    with open(open_regular_file(os.fsdecode(path), os.O_RDONLY), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise NoTree(f"more than {MAX_NEW_BYTES >> 20} MiB are new; `.gitignore` can leave files out")
    return data


def _name(repository: "Repository", names: str, commit: str, *, is_start: bool) -> str:
    """Give the commit the next number of the session; in a new session, first remove what is too old."""
    problem = NoTree()
    for _ in range(_ATTEMPTS):
        listed = repository.git("for-each-ref", "--format=%(refname)", names).decode().split()
        numbers = [int(name.rpartition("/")[2]) for name in listed]
        ref = f"{names}/{0 if is_start else max(numbers, default=0) + 1}"
        if ref in listed:  # the session was resumed
            return ref
        commands = [f"create {ref} {commit}\n"]
        if not numbers:
            every = repository.git("for-each-ref", "--format=%(committerdate:unix) %(refname)", REFS).decode()
            oldest = time.time() - KEPT_DAYS * 86_400
            dated = (line.partition(" ") for line in every.splitlines())
            commands += [f"delete {name}\n" for when, _, name in dated if int(when) < oldest]
        try:
            repository.git("update-ref", "--stdin", stdin="".join(commands).encode())
        except NoTree as error:  # another process has just done the same
            problem = error
        else:
            return ref
    raise problem


def check_out(ref: str, folder: str, original: str) -> tuple[str, ...]:
    """Let the copy of a repository have the files and the commit of a stop; what is ignored stays as it is. Raises NoTree.

    Return the links that are left out, because they lead out of the copy. `original`: the repository that was copied.
    """
    with open_repository(folder, CHECK_OUT_TIMEOUT_S, original) as repository:
        commit = repository.find(ref)
        if not commit:
            raise NoTree(f"they are no longer in the repository, which keeps them for {KEPT_DAYS} days")
        repository.check_out(commit)
        entries = repository.plain("ls-files", "-z", "--stage").split(b"\0")
    links = [os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(b"120000")]
    return tuple(link for link in links if not _keep_inside(os.path.join(folder, link), folder, original))


def _keep_inside(path: str, folder: str, original: str) -> bool:
    """Let a link into the original lead into the copy; remove one that leads elsewhere. Return whether it is there."""
    target = os.readlink(path)
    if os.path.isabs(target) and is_inside(target, original):
        os.unlink(path)
        os.symlink(os.path.join(folder, os.path.relpath(target, original)), path)
    if is_inside(real_path(path), real_path(folder)):
        return True
    os.unlink(path)
    return False


@contextmanager
def open_repository(
    top: str | None, seconds: float, project: str = "", index: str = ""
) -> "Iterator[Repository]":
    """Open a repository for some git commands. Raises NoTree, also for what fails inside of the block.

    `project`: what `top` is a copy of. `index`: what `check_out` keeps in mind, so that it writes only what differs.
    """
    if top is None:
        raise NoTree("the project is not in a git repository")
    try:
        with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
            yield Repository(top, folder, seconds, project, index)
    except subprocess.TimeoutExpired as error:
        raise NoTree("git took too long") from error
    except OSError as error:
        raise NoTree(describe_exception(error)) from error


class Repository:
    """A repository; and an empty one with the same objects, where neither configuration nor attributes of the project count."""

    def __init__(self, top: str, folder: str, seconds: float, project: str, index: str) -> None:
        """`project`: what `top` is a copy of; a `git` in it is not run."""
        self._project, self._top, self._deadline = project or top, top, time.monotonic() + seconds
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environ |= {**GIT_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": os.path.dirname(top)}
        found = os.fsdecode(self.git("rev-parse", "--show-object-format", "--git-path", "objects"))
        form, objects = found.rstrip("\n").split("\n", 1)
        if form == "sha256":
            raise NoTree("the repository uses SHA-256")
        for name in ("objects", "refs", "info"):
            os.mkdir(os.path.join(folder, name))
        attributes = "* -text -filter -ident -working-tree-encoding"
        for name, text in (("HEAD", "ref: refs/heads/none"), ("info/attributes", attributes)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
        self.index = index or os.path.join(folder, "index")
        self._plain = {
            "GIT_DIR": folder,
            "GIT_WORK_TREE": top,
            "GIT_INDEX_FILE": self.index,
            "GIT_OBJECT_DIRECTORY": os.path.join(top, objects),
        }

    def git(
        self,
        *words: str,
        stdin: bytes = b"",
        may_fail: bool = False,
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> bytes:
        """Return what git prints. Raises NoTree if it fails, OSError or TimeoutExpired."""
        left = max(self._deadline - time.monotonic(), 0.01)
        own = "-c core.logAllRefUpdates=false -c core.splitIndex=false".split()
        options = ("-C", self._top, *GIT_OPTIONS, *own)
        done = run_git(
            self._project, *options, *words, timeout=left, environ={**self._environ, **environ}, stdin=stdin
        )
        if done.returncode and not may_fail:
            raise NoTree(one_line(done.stderr.decode("utf-8", "replace"), 200) or f"git {words[0]} failed")
        return done.stdout if done.returncode == 0 else b""

    def plain(
        self, *words: str, stdin: bytes = b"", environ: Mapping[str, str] = MappingProxyType({})
    ) -> bytes:
        """Return what git prints in the empty repository."""
        return self.git(*words, stdin=stdin, environ={**self._plain, **environ})

    def remote(self, *words: str) -> bytes:
        """Like `plain`, for a repository elsewhere: with the settings and variables of the user, not of the project."""
        given = {name: value for name, value in os.environ.items() if name in REMOTE_VARIABLES}
        return self.plain(*REMOTE_OPTIONS, *words, environ=given)

    def find(self, name: str) -> str:
        """Return the id of a commit, or "" if there is none."""
        found = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", may_fail=True)
        return found.decode().strip()

    def store(self, state: str, message: str = "") -> str:
        """Write the files as they are now as a commit on HEAD, and return its id."""
        listing = local_listing(self._top, state)
        if listing is None:
            raise NoTree("its files cannot be listed")
        head, text = self.find("HEAD"), message.encode()
        ids = {entry[7:47] for entry in listing.entries}
        found = self.plain("cat-file", "--batch-check=%(objectname)", stdin=b"\n".join([*ids, b""]))
        missing = {line[:40] for line in found.split(b"\n") if line.endswith(b" missing")}
        stream = [
            b"commit refs/heads/stop\ncommitter turngate <turngate@localhost> %d +0000\n" % time.time(),
            b"data %d\n%s\n%sdeleteall\n" % (len(text), text, f"from {head}\n".encode() if head else b""),
        ]
        left = MAX_NEW_BYTES
        for entry in listing.entries:
            mode, identity, name = entry[:6], entry[7:47], entry[48:]
            quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
            if identity not in missing:
                stream.append(b'M %s %s "%s"\n' % (mode, identity, quoted))
                continue
            data = _read(os.path.join(os.fsencode(self._top), name), left, is_link=mode == b"120000")
            left -= len(data)
            stream.append(b'M %s inline "%s"\ndata %d\n%s\n' % (mode, quoted, len(data), data))
        self.plain("fast-import", "--quiet", stdin=b"".join(stream))
        return self.plain("rev-parse", "refs/heads/stop").decode().strip()

    def check_out(self, commit: str) -> None:
        """Let the folder have the files that `store` wrote, and the HEAD of that time; what is ignored stays as it is."""
        head = self.find(f"{commit}^")
        self.plain("read-tree", "-m", "-i", commit)
        self.plain("checkout-index", "--all", "--force", "--quiet", "--index")
        self.git(*(("update-ref", "HEAD", head) if head else ("symbolic-ref", "HEAD", "refs/heads/none")))
        self.git("read-tree", head or "--empty")
        others = ("ls-files", "-z", "--others", "--exclude-standard")
        for name in self.git(*others, environ={"GIT_INDEX_FILE": self.index}).split(b"\0")[:-1]:
            if not name.endswith(b"/"):  # another repository
                os.unlink(path := os.path.join(self._top, os.fsdecode(name)))
                with suppress(OSError):  # other files are there
                    os.removedirs(os.path.dirname(path))
