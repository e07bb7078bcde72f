"""A temporary copy of a project: what it holds, and that nothing leads from it back to the project."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.doctor.proof import project_copy
from turngate.doctor.proof.project_copy import (
    PREFIX,
    ProjectTooLarge,
    copy_project,
    environment_in_copy,
    remove_stale_copies,
)

pytestmark = pytest.mark.req("S3-51")
OUT = "a link that leads out of the project"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files that belongs to this test alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def write(path: Path, text: str = "", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def contents(folder: Path) -> dict[str, str | None]:
    """Return what is below a folder: texts of files, `→ …` for links, None for folders."""
    found: dict[str, str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"→ {os.readlink(path)}"
        else:
            found[name] = None if path.is_dir() else path.read_text()
    return found


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    command = ["git", *identity, *arguments]
    return subprocess.check_output(command, cwd=cwd, text=True, timeout=HANG_TIMEOUT_S)


@pytest.fixture
def repository(project: Path) -> Path:
    """A project with one commit and a remote that can be pushed to."""
    git("init", "-q", "-b", "main", cwd=project)
    write(project / "a.txt", "one\n")
    git("add", ".", cwd=project)
    git("commit", "-q", "-m", "first", cwd=project)
    git("init", "-q", "--bare", "../remote.git", cwd=project)
    git("remote", "add", "origin", str(project.parent / "remote.git"), cwd=project)
    git("push", "-q", "-u", "origin", "main", cwd=project)
    return project


# Files and folders


def test_files_are_copied_with_their_modes_and_times(project: Path) -> None:
    script = write(project / "hooks" / "gate.sh", "exit 2\n", 0o755)
    os.utime(script, (1000, 1000))
    with copy_project(str(project)) as copy:
        copied = Path(copy.project) / "hooks" / "gate.sh"
        assert (copied.read_text(), copied.stat().st_mode & 0o7777, copied.stat().st_mtime) == (
            "exit 2\n",
            0o755,
            1000,
        )
        assert (Path(copy.project).name, copy.linked, copy.left_out, copy.notes) == (project.name, (), {}, ())


def test_a_write_in_the_copy_does_not_reach_the_project(project: Path) -> None:
    write(project / "a.txt", "one")
    with copy_project(str(project)) as copy:
        (Path(copy.project) / "a.txt").write_text("two")
        (Path(copy.project) / "new.txt").write_text("three")
    assert contents(project) == {"a.txt": "one"}


def test_only_its_owner_can_enter_the_copy_and_it_is_removed_at_the_end(
    project: Path, temporary: Path
) -> None:
    write(project / "locked" / "a.txt", "one", 0o400)
    (project / "locked").chmod(0o500)
    try:
        with copy_project(str(project)) as copy:
            assert Path(copy.project).parent.stat().st_mode & 0o777 == 0o700
            assert (Path(copy.project) / "locked").stat().st_mode & 0o777 == 0o500
        assert list(temporary.iterdir()) == []
    finally:
        (project / "locked").chmod(0o700)


def test_the_bits_setuid_and_setgid_are_not_copied(project: Path) -> None:
    write(project / "program", "", 0o6755)
    with copy_project(str(project)) as copy:
        assert (Path(copy.project) / "program").stat().st_mode & 0o7777 == 0o755


def test_pipes_and_sockets_are_left_out(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(project / "pipe")
    monkeypatch.chdir(project)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        with copy_project(str(project)) as copy:
            assert contents(Path(copy.project)) == {}
            assert copy.notes == ("left out: pipe, socket (it is not a regular file)",)


def test_a_cache_is_left_out(project: Path) -> None:
    write(project / "target" / "CACHEDIR.TAG")
    write(project / "target" / "debug" / "large")
    with copy_project(str(project)) as copy:
        assert (contents(Path(copy.project)), copy.notes) == ({}, ("left out: target (a cache)",))


@pytest.mark.skipif(os.getuid() == 0, reason="root can read every file")
def test_a_file_that_cannot_be_read_is_left_out(project: Path) -> None:
    write(project / "secret", "one", 0)
    with copy_project(str(project)) as copy:
        assert copy.left_out == {"secret": "permission denied"}


def test_a_copy_in_a_folder_of_the_project_does_not_copy_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "tmp" / "a.txt", "one")
    monkeypatch.setattr(tempfile, "tempdir", str(project / "tmp"))
    with copy_project(str(project)) as copy:
        assert contents(Path(copy.project)) == {"tmp": None, "tmp/a.txt": "one"}


# Links


LINKS = {
    "inside/plain": ("../a.txt", "→ ../a.txt"),
    "inside/missing": ("nothing", "→ nothing"),
    "inside/absolute": ("{project}/a.txt", "→ ../a.txt"),
    "inside/round-about": ("../../{name}/a.txt", "→ ../a.txt"),
    "inside/through": ("deep/../../a.txt", "→ ../a.txt"),
    "to-file": ("{outside}/secret", "outside"),
    "to-folder": ("{outside}", None),
    "to-nothing": ("{outside}/missing", None),
    "to-parent": ("..", None),
    "to-itself": ("to-itself", None),
}


@pytest.mark.parametrize("name", LINKS)
def test_no_link_leads_a_write_out_of_the_copy(name: str, project: Path, tmp_path: Path) -> None:
    target, expected = LINKS[name]
    write(project / "a.txt", "one")
    (project / "inside" / "deep").mkdir(parents=True)
    outside = write(tmp_path / "outside" / "secret", "outside").parent
    (project / name).symlink_to(target.format(project=project, name=project.name, outside=outside))
    with copy_project(str(project)) as copy:
        assert contents(Path(copy.project)).get(name) == expected
        if expected is not None:
            (Path(copy.project) / name).write_text("changed")
    assert (project / "a.txt").read_text() == "one"
    assert contents(outside) == {"secret": "outside"}


def test_what_was_left_out_is_named(project: Path, tmp_path: Path) -> None:
    for name in "abcd":
        (project / name).symlink_to(tmp_path)
    with copy_project(str(project)) as copy:
        assert copy.left_out == dict.fromkeys("abcd", OUT)
        assert copy.notes == (f"left out: a, b, c and 1 more ({OUT})",)


def test_dependency_folders_are_folders_of_links(project: Path, tmp_path: Path) -> None:
    write(project / "node_modules" / "pkg" / "index.js", "js")
    write(project / "env" / "pyvenv.cfg", "home = /usr")
    shared = write(tmp_path / "shared" / "pkg2" / "index.js", "js").parent.parent
    (project / "sub").mkdir()
    (project / "sub" / "node_modules").symlink_to(shared)
    with copy_project(str(project)) as copy:
        assert contents(Path(copy.project)) == {
            "env": None,
            "env/pyvenv.cfg": f"→ {project}/env/pyvenv.cfg",
            "node_modules": None,
            "node_modules/pkg": f"→ {project}/node_modules/pkg",
            "sub": None,
            "sub/node_modules": None,
            "sub/node_modules/pkg2": f"→ {shared}/pkg2",
        }
        assert copy.notes == ("linked, not copied: env, node_modules, sub/node_modules",)


# Limits


def test_too_many_files_are_an_error_that_names_the_largest_folder(
    project: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_copy, "MAX_FILES", 4)
    for number in range(5):
        write(project / "build" / str(number))
    write(project / "a.txt")
    with pytest.raises(ProjectTooLarge) as raised, copy_project(str(project)):
        pass
    assert raised.value.strerror == "too large to be copied: it has more than 4 files, most of them in build"
    assert list(temporary.iterdir()) == []


def test_too_many_bytes_are_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_copy, "MAX_BYTES", 1024**2)
    write(project / "data" / "large", "x" * (2 * 1024**2))
    with pytest.raises(ProjectTooLarge) as raised, copy_project(str(project)):
        pass
    assert raised.value.strerror == "too large to be copied: it has more than 1 MiB, most of them in data"


def test_a_project_that_does_not_exist_is_an_error(project: Path, temporary: Path) -> None:
    with pytest.raises(FileNotFoundError), copy_project(str(project / "missing")):
        pass
    assert list(temporary.iterdir()) == []


# git


def test_git_works_in_the_copy(repository: Path) -> None:
    write(repository / "b.txt", "new\n")
    with copy_project(str(repository)) as copy:
        folder = Path(copy.project)
        assert git("status", "--porcelain", "--branch", cwd=folder) == "## main...origin/main\n?? b.txt\n"
        assert git("log", "--format=%s", cwd=folder) == "first\n"
        git("add", ".", cwd=folder)
        git("commit", "-q", "-m", "second", cwd=folder)
        assert git("log", "--format=%s", cwd=folder) == "second\nfirst\n"
    assert git("log", "--format=%s", cwd=repository) == "first\n"
    assert git("status", "--porcelain", cwd=repository) == "?? b.txt\n"


@pytest.mark.parametrize("pushurl", [None, "{remote}"])
@pytest.mark.parametrize("target", ["origin", "{remote}"])
def test_a_commit_in_the_copy_cannot_be_pushed(repository: Path, pushurl: str | None, target: str) -> None:
    remote = str(repository.parent / "remote.git")
    if pushurl:
        git("config", "remote.origin.pushurl", pushurl.format(remote=remote), cwd=repository)
    with copy_project(str(repository)) as copy:
        git("commit", "-q", "--allow-empty", "-m", "second", cwd=Path(copy.project))
        push = subprocess.run(
            ["git", "push", target.format(remote=remote), "main"],
            cwd=copy.project,
            check=False,
            capture_output=True,
            text=True,
            timeout=HANG_TIMEOUT_S,
        )
    assert "no-push-from-a-copy" in push.stderr
    assert git("log", "--format=%s", "main", cwd=Path(remote)) == "first\n"


def test_git_hooks_do_not_run_in_the_copy(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    write(repository / ".git" / "hooks" / "post-commit", f"#!/bin/sh\ntouch {ran}\n", 0o755)
    write(tmp_path / "shared-hooks" / "post-commit", f"#!/bin/sh\ntouch {ran}\n", 0o755)
    git("config", "core.hooksPath", str(tmp_path / "shared-hooks"), cwd=repository)
    with copy_project(str(repository)) as copy:
        git("commit", "-q", "--allow-empty", "-m", "second", cwd=Path(copy.project))
    assert not ran.exists()


def test_a_commit_in_the_copy_of_a_worktree_stays_in_the_copy(repository: Path, tmp_path: Path) -> None:
    git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"), cwd=repository)
    write(tmp_path / "side" / "b.txt", "new\n")
    with copy_project(str(tmp_path / "side")) as copy:
        folder = Path(copy.project)
        assert git("status", "--porcelain", "--branch", cwd=folder) == "## side\n?? b.txt\n"
        git("add", ".", cwd=folder)
        git("commit", "-q", "-m", "second", cwd=folder)
        assert git("log", "--format=%s", cwd=folder) == "second\nfirst\n"
    assert git("log", "--format=%s", "side", cwd=repository) == "first\n"
    assert git("status", "--porcelain", cwd=tmp_path / "side") == "?? b.txt\n"


def test_a_folder_of_a_repository_is_copied_with_the_repository(repository: Path) -> None:
    write(repository / "shop" / "gate.sh", "exit 0\n")
    with copy_project(str(repository / "shop")) as copy:
        folder = Path(copy.project)
        (folder.parent / "a.txt").write_text("two\n")
        assert (folder.name, copy.original, copy.notes) == ("shop", str(repository), ())
        assert copy.folder == str(folder.parent)
        assert git("status", "--porcelain", cwd=folder) == " M a.txt\n?? shop/\n"
    assert git("status", "--porcelain", cwd=repository) == "?? shop/\n"


def test_a_folder_of_a_repository_that_is_too_large_is_copied_without_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_copy, "MAX_FILES", 40)
    write(repository / "shop" / "gate.sh", "exit 0\n")
    for number in range(50):
        write(repository / "large" / str(number))
    with copy_project(str(repository / "shop")) as copy:
        assert contents(Path(copy.project).parent) == {
            "shop": None,
            "shop/gate.sh": "exit 0\n",
        }
        assert copy.notes == (f"without the git repository in {repository}, which is too large",)


def test_the_home_folder_is_not_copied_as_a_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(repository))
    write(repository / "shop" / "gate.sh", "exit 0\n")
    with copy_project(str(repository / "shop")) as copy:
        assert (copy.original, copy.notes) == (str(repository / "shop"), ())


def test_a_lock_of_git_is_not_copied(repository: Path) -> None:
    write(repository / ".git" / "index.lock")
    with copy_project(str(repository)) as copy:
        git("add", ".", cwd=Path(copy.project))


def test_variables_that_lead_git_to_the_original_are_dropped() -> None:
    environ = {"GIT_DIR": "/p/.git", "GIT_INDEX_FILE": "x", "GIT_AUTHOR_NAME": "a", "HOME": "/h"}
    assert environment_in_copy(environ) == {"GIT_AUTHOR_NAME": "a", "HOME": "/h"}


# Copies that were not removed


def test_the_copy_of_a_killed_process_is_removed_by_the_next_run(project: Path, temporary: Path) -> None:
    code = (
        "import os, sys, tempfile; from turngate.doctor.proof.project_copy import copy_project\n"
        "tempfile.tempdir = sys.argv[2]\n"
        "with copy_project(sys.argv[1]) as copy:\n"
        "    print(copy.project, flush=True); sys.stdin.read()\n"
    )
    arguments = [sys.executable, "-c", code, str(project), str(temporary)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        copy = Path(process.stdout.readline().strip())
        remove_stale_copies()
        assert copy.is_dir(), "the copy of a living process stays"
        process.kill()
    remove_stale_copies()
    assert list(temporary.iterdir()) == []


def test_only_folders_that_are_copies_are_removed(temporary: Path, tmp_path: Path) -> None:
    write(temporary / f"{PREFIX}file")
    (temporary / "other").mkdir()
    (temporary / f"{PREFIX}link").symlink_to(write(tmp_path / "precious" / "a.txt").parent)
    (temporary / f"{PREFIX}old").mkdir()
    remove_stale_copies()
    names = {path.name.removeprefix(PREFIX) for path in temporary.iterdir()}
    assert names == {"file", "other", "link"}
    assert contents(tmp_path / "precious") == {"a.txt": ""}
