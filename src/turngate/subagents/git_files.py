"""The files of a project in git: a commit on a ref of the remote takes them from a session to a worker, and back.

The remote gets `refs/turngate/CHAIN` when a subagent is registered, and again at each end of its work. No branch, index or
work tree of a session changes; to take over what a subagent has changed is left to its parent or the user.
"""

import asyncio
import os
import re
from contextlib import AbstractContextManager, suppress

from turngate.core.conversation.subagent_run import SubagentRun
from turngate.gates.local_tree_state import repository_top
from turngate.gates.recorded_trees import NoTree, Repository, open_repository
from turngate.project.safe_paths import real_path

REMOTE = "origin"
TRANSFER_TIMEOUT_S = 120.0


def git_label(url: str) -> str:
    """Return the label of a project in git, by the URL of its remote without a password."""
    return "git:" + re.sub(r"://[^/@]*@", "://", url).rstrip("/").removesuffix(".git")


def is_git_url(place: str) -> bool:
    """Return whether the project of a worker is a repository, and not a folder or a location over SSH."""
    return place.endswith(".git") or bool(re.match(r"(https?|git|file)://|[^/:]+@[^/:]+:", place))


def send_files(project: str, state: str, chain: str) -> tuple[str, str]:
    """Push the files of a session's project as they are now; return the label of the project, and the commit. Raises NoTree."""
    top = repository_top(project)
    if top is None or real_path(project) != real_path(top):
        raise NoTree("the project is not the top folder of a git repository")
    with open_repository(top, TRANSFER_TIMEOUT_S) as repository:
        url = os.fsdecode(repository.git("remote", "get-url", REMOTE, may_fail=True)).strip()
        if not url:
            raise NoTree(f"its git repository has no remote {REMOTE}")
        commit = repository.store(state, f"Subagent {chain}: the files at its start")
        repository.remote("push", "--quiet", url, f"{commit}:{_ref(chain)}")
        return git_label(url), commit


def _ref(chain: str) -> str:
    return f"refs/turngate/{chain}"


class SlotFolder:
    """The folder of a slot, which has the files of one subagent at a time. Its methods block."""

    def __init__(self, folder: str, url: str, state: str) -> None:
        self.folder, self.label, self.lock = folder, git_label(url), asyncio.Lock()
        self._url, self._state = url, state
        self._commit = ""  # of the subagent's files, as they are on the remote

    def fetch(self, run: SubagentRun) -> None:
        """Let the folder have the files of a subagent, as they were at its start or its last end. Raises NoTree.

        After a takeover another commit replaces the one of the earlier worker, whose late push is then refused.
        """
        with self._open() as repository:
            head = repository.find("HEAD")
            repository.plain("update-ref", "refs/heads/known", head)  # less is sent
            fetched = f"+{_ref(run.chain)}:refs/heads/fetched"
            repository.remote("fetch", "--quiet", "--no-tags", self._url, fetched)
            self._commit = repository.plain("rev-parse", "refs/heads/fetched").decode().strip()
            repository.git("update-ref", "--no-deref", "HEAD", head)  # no branch of an earlier subagent
            repository.check_out(self._commit)
            if run.recoveries:
                self._replace(repository, run, "--force")

    def push(self, run: SubagentRun) -> str:
        """Push the files as the subagent has left them. Return what is wrong, or ""."""
        try:
            with self._open() as repository:
                self._replace(repository, run, f"--force-with-lease={_ref(run.chain)}:{self._commit}")
        except NoTree as error:
            return f"the files that it has changed could not be sent, and are still in {self.folder}: {error}"
        return ""

    def changes(self, run: SubagentRun) -> str:
        """Return the text that tells the parent where the changes are, or "" if there are none."""
        start, ref = run.launch.get("git"), _ref(run.chain)
        with suppress(NoTree), self._open() as repository:
            one, other = (repository.plain("rev-parse", f"{each}^{{tree}}") for each in (start, self._commit))
            if one == other:
                return ""
        return (
            f"\n\n[The subagent worked on a copy of the project's files. What it has changed is not in this folder, but in the commit "
            f"{ref} of the git remote {REMOTE}: `git fetch {REMOTE} {ref}`, then `git diff {start} FETCH_HEAD`.]"
        )

    def remove(self, run: SubagentRun) -> None:
        """Remove the ref of a subagent that has changed nothing."""
        with suppress(NoTree), self._open() as repository:
            repository.remote("push", "--quiet", self._url, f":{_ref(run.chain)}")

    def _open(self) -> AbstractContextManager[Repository]:
        return open_repository(self.folder, TRANSFER_TIMEOUT_S, index=f"{self.folder}.index")

    def _replace(self, repository: Repository, run: SubagentRun, how: str) -> None:
        commit = repository.store(self._state, f"Subagent {run.chain}, by {run.owner}")
        repository.remote("push", "--quiet", how, self._url, f"{commit}:{_ref(run.chain)}")
        self._commit = commit
