"""An agent that writes the repository's configuration, flags and attributes hides no change from git, and starts nothing."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gates.test_session_changes import _machine, changes, patches, record, why_not  # noqa: F401 # a fixture
from tests.gates.test_tree_state import tree_state_of
from tests.support.builders import script
from tests.support.gates import answer_of_process, claude_input
from tests.support.git_projects import LATER, commit, git, make_repository, write, write_transcript
from turngate.gates.git.output import FilePatch, Line

BEFORE_S = time.time() - 1000


def assume_unchanged(project: Path) -> None:
    git(project, "update-index", "--assume-unchanged", "a.py")


def skip_worktree(project: Path) -> None:
    git(project, "config", "sparse.expectFilesOutsideOfPatterns", "true")
    git(project, "update-index", "--skip-worktree", "a.py")


def compare_less(project: Path) -> None:
    git(project, "config", "core.checkStat", "minimal")
    git(project, "config", "core.trustctime", "false")


def filter_content(project: Path) -> None:
    set_filter(project, f"touch {project.parent}/ran; cat {project.parent}/original")


def filter_like_git_lfs(project: Path) -> None:
    set_filter(project, f"git-lfs x; touch {project.parent}/ran; cat {project.parent}/original")


def set_filter(project: Path, command: str) -> None:
    (project.parent / "original").write_text("x = 1\n")
    git(project, "config", "filter.x.clean", command)
    write(project, {".git/info/attributes": "a.py filter=x\n"})


def hide_nothing(project: Path) -> None:
    """Show that the edit alone counts."""


HIDING: dict[str, Callable[[Path], None]] = {
    "nothing": hide_nothing,
    "assume-unchanged": assume_unchanged,
    "skip-worktree": skip_worktree,
    "core.checkStat": compare_less,
    "a filter": filter_content,
    "a filter that begins like that of Git LFS": filter_like_git_lfs,
}


def edit(project: Path) -> None:
    """Write other content of the same size, with the old time, in a later second: git may compare only those."""
    before = (project / "a.py").stat()
    while int(time.time()) == int(before.st_ctime):
        time.sleep(0.05)
    write(project, {"a.py": "x = 2\n"})
    os.utime(project / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def repository(project: Path) -> Path:
    make_repository(project, {"a.py": "x = 1\n", "b.py": "y = 1\n"})
    os.utime(project / "a.py", (BEFORE_S, BEFORE_S))
    git(project, "update-index", "--refresh")
    return project


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("is_local", [True, False])
def test_a_hidden_edit_gives_another_state(
    repository: Path, hiding: str, is_before: bool, is_local: bool
) -> None:
    if is_before:
        HIDING[hiding](repository)
    found = tree_state_of(repository, is_local=is_local)
    edit(repository)
    if not is_before:
        HIDING[hiding](repository)
    now = tree_state_of(repository, is_local=is_local)
    assert None not in (found, now)
    assert now != found
    assert not (repository.parent / "ran").exists()


@pytest.mark.parametrize("hiding", HIDING)
def test_a_hidden_edit_is_a_change_since_the_start(repository: Path, hiding: str) -> None:
    start = record(repository)
    HIDING[hiding](repository)
    edit(repository)
    assert changes(repository, start) == {("modified", "a.py")}
    assert not (repository.parent / "ran").exists()


def test_an_index_with_the_times_of_the_edit_and_the_old_content_hides_nothing(repository: Path) -> None:
    start, found = record(repository), tree_state_of(repository)
    edit(repository)
    set_filter(repository, "false")
    git(repository, "-c", f"filter.x.clean=cat {repository.parent}/original", "add", "a.py")
    git(repository, "config", "--remove-section", "filter.x")
    (repository / ".git/info/attributes").unlink()
    assert git(repository, "status", "--porcelain") == ""
    assert changes(repository, start) == {("modified", "a.py")}
    assert tree_state_of(repository) not in (None, found)


def test_git_lfs_is_not_started(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would start the programs that `lfs.extension` of the repository names."""
    script(tmp_path / "bin" / "git-lfs", f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    for name, value in {"clean": "git-lfs clean -- %f", "process": "git-lfs filter-process"}.items():
        git(repository, "config", f"filter.lfs.{name}", value)
    write(repository, {".git/info/attributes": "a.py filter=lfs\n"})
    start, found = record(repository), tree_state_of(repository)
    edit(repository)
    assert changes(repository, start) == {("modified", "a.py")}
    assert tree_state_of(repository) not in (None, found)
    assert not (tmp_path / "ran").exists()


def test_a_filter_of_a_submodule_is_not_started(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    make_repository(library, {"a": "1"})
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    commit(repository)
    start, found = record(repository), tree_state_of(repository)
    git(repository / "lib", "config", "filter.x.clean", f"touch {tmp_path}/ran; cat")
    write(repository, {".git/modules/lib/info/attributes": "* filter=x\n", "lib/a": "2"})
    assert changes(repository, start) == {("modified", "lib")}
    assert tree_state_of(repository) not in (None, found)
    assert not (tmp_path / "ran").exists()


@pytest.fixture(autouse=True)
def _files_that_were_changed_just_now_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.gates.local_tree_state.RACY_NS", -1)


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_hidden_deletion_is_a_change(repository: Path, flag: str) -> None:
    start, found = record(repository), tree_state_of(repository)
    git(repository, "update-index", flag, "a.py")
    (repository / "a.py").unlink()
    assert changes(repository, start) == {("deleted", "a.py")}
    assert tree_state_of(repository) != found


def test_a_work_tree_elsewhere_is_not_the_project(repository: Path, tmp_path: Path) -> None:
    start = record(repository)
    git(tmp_path, "clone", "-q", str(repository), "copy")
    git(repository, "config", "core.worktree", str(tmp_path / "copy"))
    found = tree_state_of(repository)
    edit(repository)
    assert tree_state_of(repository) != found
    assert why_not(repository, start) == (
        "the changes since the session's start cannot be read: core.worktree leads git to another folder"
    )


@pytest.mark.parametrize("is_local", [True, False])
def test_what_the_repository_ignores_is_part_of_the_state(repository: Path, is_local: bool) -> None:
    found = tree_state_of(repository, is_local=is_local)
    with (repository / ".git/info/exclude").open("a") as file:
        file.write("conftest.py\n")
    write(repository, {"conftest.py": "x = 1\n"})
    assert tree_state_of(repository, is_local=is_local) not in (None, found)


@pytest.mark.parametrize("target", ["../outside", ".git/inside"])
@pytest.mark.parametrize("is_local", [True, False])
def test_content_that_is_not_known_gives_no_state(repository: Path, target: str, is_local: bool) -> None:
    write(repository, {f"{target}/c.py": "1"})
    (repository / "inner").symlink_to("b.py")
    assert tree_state_of(repository, is_local=is_local) is not None
    (repository / "src").symlink_to(target)
    assert tree_state_of(repository, is_local=is_local) is None
    commit(repository)
    assert tree_state_of(repository, is_local=is_local) is None


def test_a_replaced_tree_is_compared_as_it_was(repository: Path) -> None:
    start = record(repository)
    old = git(repository, "rev-parse", "HEAD^{tree}").strip()
    edit(repository)
    git(repository, "add", "a.py")
    git(repository, "replace", old, git(repository, "write-tree").strip())
    assert git(repository, "status", "--porcelain") == ""
    assert changes(repository, start) == changes(repository) == {("modified", "a.py")}


def forget_by_amending(project: Path) -> None:
    git(project, "commit", "-q", "--all", "--amend", "--message=x", date="2001-01-01T00:00:00+00:00")
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "prune", "--expire=now")


def forget_by_beginning_again(project: Path) -> None:
    (project / ".git").rename(project.parent / "old")
    git(project, "init", "-q")
    commit(project, LATER)


@pytest.mark.parametrize("forget", [forget_by_amending, forget_by_beginning_again])
def test_a_record_that_is_gone_is_not_replaced_by_a_later_commit(
    repository: Path, forget: Callable[[Path], None]
) -> None:
    start = record(repository)
    write_transcript(repository)
    edit(repository)
    forget(repository)
    assert why_not(repository, start) == (
        "the changes since the session's start cannot be read:"
        " what was recorded at the session's start is no longer in the repository"
    )


@pytest.mark.parametrize("attribute", ["binary", "-diff", "diff=x"])
def test_a_source_file_that_is_called_binary_has_lines(repository: Path, attribute: str) -> None:
    write(repository, {".git/info/attributes": f"*.py {attribute}\n", "a.py": "x = 1\n\nz = 2\n"})
    git(repository, "config", "diff.x.binary", "true")
    git(repository, "config", "core.bigFileThreshold", "1")
    git(repository, "config", "diff.suppressBlankEmpty", "true")
    added = (Line(2, "", "added"), Line(3, "z = 2", "added"))
    assert patches(repository, is_source=True) == (FilePatch("a.py", added),)


def test_a_name_in_other_letters_is_another_file(repository: Path) -> None:
    if (repository / "A.PY").exists():
        pytest.skip("names differ by more than their letters here")
    found = tree_state_of(repository)
    git(repository, "config", "core.ignoreCase", "true")
    write(repository, {"A.py": "x = 1\n"})
    assert tree_state_of(repository) != found
    assert changes(repository) == {("added", "A.py")}


def hide_in_index(project: Path, *, keeps_attributes: bool = False) -> None:
    """Store the time and the size of the changed file in the index, beside the old content."""
    (project.parent / "original").write_text("x = 1\n")
    write(project, {".git/info/attributes": "a.py filter=x\n"})
    while int((project / "a.py").stat().st_mtime) >= int(time.time()):
        time.sleep(0.05)  # git compares the content of a file that is as new as the index
    git(project, "-c", f"filter.x.clean=cat {project.parent}/original", "add", "a.py")
    if not keeps_attributes:
        (project / ".git/info/attributes").unlink()


@pytest.mark.parametrize("keeps_attributes", [True, False])
def test_the_index_hides_no_change(repository: Path, keeps_attributes: bool) -> None:
    start = record(repository)
    write(repository, {"a.py": "x = 2\n"})
    hide_in_index(repository, keeps_attributes=keeps_attributes)
    if not keeps_attributes:
        assert git(repository, "status", "--porcelain") == ""
    assert changes(repository, start) == changes(repository) == {("modified", "a.py")}
    fields = claude_input(repository)
    assert answer_of_process(("clean",), fields)[1]["decision"] == "block"
    assert answer_of_process(("untouched", "*.py"), fields)[1]["decision"] == "block"


def test_a_sparse_checkout_that_begins_in_the_session_hides_no_deletion(repository: Path) -> None:
    start = record(repository)
    git(repository, "config", "core.sparseCheckout", "true")
    git(repository, "update-index", "--skip-worktree", "a.py")
    (repository / "a.py").unlink()
    assert changes(repository, start) == {("deleted", "a.py")}
