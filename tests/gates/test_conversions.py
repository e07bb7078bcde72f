"""Files that git converts between a commit and the work tree: a healthy checkout is unchanged, and no program is started for that."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gates.test_session_changes import _machine, changes, record  # noqa: F401 # a fixture
from tests.support.gates import answer_of_process, claude_input
from tests.support.git_projects import commit, git, make_repository, write

CRLF = "one\r\ntwo\r\n"


def decision(project: Path, *words: str, event: str = "Stop") -> str:
    """Return what a gate answers, in one word."""
    _, answer, _ = answer_of_process(words, claude_input(project, hook_event_name=event))
    return "block" if "decision" in answer else "not enforced" if "NOT enforced" in str(answer) else "pass"


def gates(project: Path) -> tuple[str, str]:
    return decision(project, "clean"), decision(project, "untouched", "**")


# Ends of lines


def by_configuration(project: Path) -> None:
    git(project, "config", "core.autocrlf", "true")


def by_attributes(project: Path) -> None:
    write(project, {".gitattributes": "*.txt text eol=crlf\n"})


def by_automatic_attributes(project: Path) -> None:
    write(project, {".gitattributes": "* text=auto\n"})


Prepare = Callable[[Path], None]


@pytest.mark.parametrize("prepare", [by_configuration, by_attributes, by_automatic_attributes])
@pytest.mark.parametrize("name", ["a.txt", "ü b.txt"])
def test_a_checkout_with_other_ends_of_lines_is_unchanged(project: Path, prepare: Prepare, name: str) -> None:
    git(project, "init", "-q")
    prepare(project)
    write(project, {name: CRLF})
    commit(project)
    assert git(project, "cat-file", "blob", f"HEAD:{name}") == "one\ntwo\n"
    assert (changes(project), gates(project)) == (set(), ("pass", "pass"))
    write(project, {name: CRLF + "three\r\n"})
    assert (changes(project), gates(project)) == ({("modified", name)}, ("block", "block"))
    commit(project)
    assert gates(project) == ("pass", "pass")


def test_several_files_with_other_ends_of_lines_are_unchanged(project: Path) -> None:
    git(project, "init", "-q")
    by_attributes(project)
    write(project, {f"{name}.txt": f"{name}\r\n" for name in "abcdefgh"})
    commit(project)
    assert (changes(project), gates(project)) == (set(), ("pass", "pass"))


def test_other_ends_of_lines_are_a_change_where_git_does_not_convert_them(project: Path) -> None:
    make_repository(project, {"a.txt": "one\ntwo\n"})
    write(project, {"a.txt": CRLF})
    assert (changes(project), gates(project)) == ({("modified", "a.txt")}, ("block", "block"))


@pytest.mark.parametrize("prepare", [by_configuration, by_attributes])
def test_other_ends_of_lines_than_at_the_start_are_a_change(project: Path, prepare: Prepare) -> None:
    git(project, "init", "-q")
    prepare(project)
    write(project, {"a.txt": CRLF})
    commit(project)
    start = record(project)
    assert changes(project, start) == set()
    write(project, {"a.txt": "one\ntwo\n"})
    assert changes(project, start) == {("modified", "a.txt")}


def test_attributes_that_are_not_committed_do_not_count(project: Path) -> None:
    make_repository(project, {"a.txt": "one\ntwo\n"})
    write(
        project,
        {".git/info/attributes": "* text eol=crlf\n", ".gitattributes": "* text eol=crlf\n", "a.txt": CRLF},
    )
    assert changes(project) == {("modified", "a.txt"), ("added", ".gitattributes")}


# Git LFS

ATTRIBUTES = "*.bin filter=lfs diff=lfs merge=lfs -text\n"


def pointer(content: str) -> str:
    oid = hashlib.sha256(content.encode()).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


@pytest.fixture
def with_objects(project: Path) -> Path:
    """Return a project whose large files are as after a checkout with Git LFS, on a machine without its program."""
    names = ["a.bin", "b.bin", "d/ü.bin"]
    make_repository(project, {".gitattributes": ATTRIBUTES, **dict.fromkeys(names, pointer("large"))})
    write(project, dict.fromkeys(names, "large"))
    return project


def test_a_checkout_of_git_lfs_is_unchanged(with_objects: Path) -> None:
    assert (changes(with_objects), gates(with_objects)) == (set(), ("pass", "pass"))
    write(with_objects, {"b.bin": "other"})
    assert (changes(with_objects), gates(with_objects)) == ({("modified", "b.bin")}, ("block", "block"))


def test_an_object_that_is_fetched_in_the_session_is_not_a_change(with_objects: Path) -> None:
    write(with_objects, {"a.bin": pointer("large")})
    start = record(with_objects)
    write(with_objects, {"a.bin": "large"})
    assert changes(with_objects, start) == set()
    write(with_objects, {"a.bin": "small", "b.bin": "small"})
    assert changes(with_objects, start) == {("modified", "a.bin"), ("modified", "b.bin")}


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="there is no Git LFS")
def test_git_lfs_itself_is_not_run(project: Path, tmp_path: Path) -> None:
    """It would run extensions that the configuration of the repository names."""
    git(project, "init", "-q")
    git(project, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    git(project, "config", "filter.lfs.required", "true")
    write(project, {".gitattributes": ATTRIBUTES, "a.bin": "large"})
    commit(project)
    assert git(project, "cat-file", "blob", "HEAD:a.bin") == pointer("large")
    write(tmp_path, {"extension": f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n"})
    (tmp_path / "extension").chmod(0o755)
    for setting in ("clean", "smudge"):
        git(project, "config", f"lfs.extension.e.{setting}", f"{tmp_path}/extension %f")
    git(project, "config", "lfs.extension.e.priority", "0")
    assert (changes(project), gates(project), decision(project, "--", "true")) == (
        set(),
        ("pass", "pass"),
        "pass",
    )
    write(project, {"a.bin": "other"})
    assert (changes(project), gates(project)) == ({("modified", "a.bin")}, ("block", "block"))
    assert not (tmp_path / "ran").exists()


# Other filters


@pytest.fixture
def encrypted(project: Path, tmp_path: Path) -> Path:
    """Return a project with a filter, as git-crypt has one, that marks its runs."""
    git(project, "init", "-q")
    git(project, "config", "filter.crypt.clean", f"touch {tmp_path}/ran; tr a-z b-za")
    write(project, {".gitattributes": "*.key filter=crypt\n", "a.key": "secret\n", "b.txt": "1\n"})
    commit(project)
    (tmp_path / "ran").unlink()
    return project


def test_a_filter_is_not_run_and_what_it_would_make_is_not_known(encrypted: Path, tmp_path: Path) -> None:
    assert changes(encrypted) == {("filtered", "a.key")}
    assert gates(encrypted) == ("not enforced", "not enforced")
    assert decision(encrypted, "untouched", "*.txt") == "pass"
    write(encrypted, {"b.txt": "2\n"})
    assert gates(encrypted) == ("block", "block")
    assert not (tmp_path / "ran").exists()


def test_with_a_record_of_the_start_a_filter_does_not_matter(encrypted: Path, tmp_path: Path) -> None:
    for words in (("clean",), ("untouched", "**")):
        assert decision(encrypted, *words, event="SessionStart") == "pass"
    assert gates(encrypted) == ("pass", "pass")
    write(encrypted, {"a.key": "other\n"})
    assert gates(encrypted) == ("not enforced", "block")
    assert not (tmp_path / "ran").exists()


def test_an_attribute_that_names_no_filter_means_nothing(project: Path) -> None:
    make_repository(project, {".gitattributes": "*.txt filter=none\n", "a.txt": "1\n"})
    write(project, {"a.txt": "2\n"})
    assert changes(project) == {("modified", "a.txt")}
