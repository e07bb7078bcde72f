"""Approvals belong to a git repository: they count in all of its checkouts, and in no copy."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.builders import write_settings
from tests.support.git_projects import git, make_repository
from tests.trust.support import (
    EVIL,
    RUNS,
    approvals_file,
    approve_all,
    ask,
    command,
    said,
    stop_settings,
    write,
)

CHANGED = ["hooks/check.sh was changed after it was approved"]
NOT_APPROVED = ["it is not approved"]


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")


@pytest.fixture
def repository(project: Path) -> Path:
    """A repository whose hooks are approved: a command, and a script that is a hook by its name."""
    write(project, {"hooks/check.sh": RUNS, ".turngate/stop": f"#!/bin/sh\n{RUNS}"})
    write_settings(project, "turngate", stop_settings(command("sh hooks/check.sh")))
    make_repository(project, {"a.txt": ""})
    approve_all(project)
    return project


def add_checkout(repository: Path, place: Path) -> Path:
    git(repository, "worktree", "add", "--quiet", "-b", place.name, str(place))
    return place


@pytest.mark.req("X-13")
@pytest.mark.parametrize("name", ["../feature", ".claude/worktrees/feature"])
def test_the_same_hooks_are_approved_in_another_checkout(repository: Path, name: str) -> None:
    checkout = add_checkout(repository, (repository / name).resolve())
    assert (said(ask(checkout)), (checkout / "ran").read_text()) == ([], "ran\nran\n")
    write(checkout, {"hooks/check.sh": EVIL})
    assert (said(ask(checkout)), said(ask(repository))) == ([*CHANGED], [])
    assert not (checkout / "evil").exists()


def test_an_approval_in_another_checkout_counts_in_the_main_one(repository: Path, state: Path) -> None:
    checkout = add_checkout(repository, repository.parent / "feature")
    write(checkout, {"hooks/check.sh": EVIL})
    approve_all(checkout)
    assert (said(ask(checkout)), said(ask(repository))) == ([], [])
    write(repository, {"hooks/check.sh": EVIL})
    assert said(ask(repository)) == []
    write(repository, {"hooks/check.sh": f"{EVIL}# more"})
    assert said(ask(repository)) == [*CHANGED]
    assert approvals_file(state).is_file()  # one for both


def test_a_gate_that_is_missing_in_another_checkout_is_reported(repository: Path) -> None:
    checkout = add_checkout(repository, repository.parent / "feature")
    write_settings(checkout, "turngate", {})
    assert said(ask(checkout)) == ["it was approved, but is no longer configured"]


def test_a_project_that_is_a_folder_of_the_repository(repository: Path) -> None:
    inner = repository / "packages/a"
    write(inner, {"hooks/check.sh": RUNS})
    write_settings(inner, "turngate", stop_settings(command("sh hooks/check.sh")))
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=inner")
    approve_all(inner)
    checkout = add_checkout(repository, repository.parent / "feature")
    assert said(ask(checkout / "packages/a")) == []


def test_checkouts_of_a_bare_repository(repository: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), "bare.git")
    one, other = (add_checkout(tmp_path / "bare.git", tmp_path / name) for name in ("one", "other"))
    assert said(ask(one)) == [*NOT_APPROVED * 2]
    approve_all(one)
    assert (said(ask(one)), said(ask(other))) == ([], [])


def copy(checkout: Path, target: Path) -> None:
    shutil.copytree(checkout, target, symlinks=True)


def move(checkout: Path, target: Path) -> None:
    checkout.rename(target)


def link_git(checkout: Path, target: Path) -> None:
    """Claim to be the checkout by a link to its `.git`."""
    shutil.copytree(checkout, target)
    (target / ".git").unlink()
    (target / ".git").symlink_to(checkout / ".git")


def bring_entry(checkout: Path, target: Path) -> None:
    """Claim to be a checkout by an entry that the folder has itself."""
    shutil.copytree(checkout, target)
    common = checkout.parent / "project/.git"
    write(target, {"own/worktrees/x/gitdir": f"{target}/.git\n", "own/worktrees/x/commondir": f"{common}\n"})
    (target / ".git").write_text(f"gitdir: {target}/own/worktrees/x\n")


@pytest.mark.req("X-13")
@pytest.mark.parametrize("claim", [copy, move, link_git, bring_entry])
def test_a_folder_that_is_not_a_checkout_of_the_repository_has_no_approvals(
    repository: Path, claim: Callable[[Path, Path], None]
) -> None:
    checkout = add_checkout(repository, repository.parent / "feature")
    assert said(ask(checkout)) == []
    claim(checkout, repository.parent / "claimed")
    assert said(ask(repository.parent / "claimed")) == [*NOT_APPROVED * 2]


def test_a_copy_of_the_repository_and_one_that_takes_its_place_have_no_approvals(repository: Path) -> None:
    shutil.copytree(repository, repository.parent / "copied")
    assert said(ask(repository.parent / "copied")) == [*NOT_APPROVED * 2]
    shutil.rmtree(repository)  # its inode may be used again
    shutil.copytree(repository.parent / "copied", repository)
    assert said(ask(repository)) == [*NOT_APPROVED * 2]


def test_a_project_that_becomes_a_repository_keeps_its_approvals(project: Path) -> None:
    write(project, {"hooks/check.sh": RUNS})
    write_settings(project, "turngate", stop_settings(command("sh hooks/check.sh")))
    approve_all(project)
    make_repository(project, {"a.txt": ""})
    assert said(ask(project)) == []
