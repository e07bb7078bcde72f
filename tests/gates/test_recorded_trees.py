"""The files of stops, recorded in repositories of every kind: nothing of the project runs or changes, and a failure is one sentence."""

import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.git_projects import git, make_repository, removed, write
from turngate.gates import recorded_trees
from turngate.gates.local_tree_state import local_tree_state
from turngate.gates.recorded_trees import MAX_NEW_BYTES, REFS, NoTree, check_out, record_tree

PROGRAM = 'touch "$RAN"; cat'
CONFIGURATION = {
    "filter.evil.clean": PROGRAM,
    "filter.evil.smudge": PROGRAM,
    "filter.evil.process": PROGRAM,
    "filter.evil.required": "true",
    "core.fsmonitor": "touch $RAN; false",
    "core.sshCommand": PROGRAM,
    "core.pager": PROGRAM,
    "gpg.program": PROGRAM,
    "commit.gpgSign": "true",
    "gc.auto": "1",
    "core.autocrlf": "true",
    "core.splitIndex": "true",
    "core.logAllRefUpdates": "always",
    "extensions.partialClone": "origin",
    "remote.origin.url": 'ext::sh -c touch% "$RAN"',
    "remote.origin.promisor": "true",
}
HOOKS = (
    "reference-transaction",
    "post-index-change",
    "post-checkout",
    "pre-auto-gc",
    "update",
    "fsmonitor-watchman",
)


@pytest.fixture
def repository(project: Path) -> Path:
    make_repository(project, {"a.txt": "a\r\n", "sub/b": "b", ".gitignore": "*.log\n"})
    return project


def content(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return kind and content of each file, except git's own."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name, mode = str(path.relative_to(folder)), path.lstat().st_mode
        if name.split("/", maxsplit=1)[0] == ".git" or stat.S_ISDIR(mode):
            continue
        if stat.S_ISLNK(mode):
            found[name] = ("link", os.fsencode(path.readlink()))
        else:
            found[name] = ("program" if mode & 0o100 else "file", path.read_bytes())
    return found


def record(project: Path, state: Path, session: str = "s", *, is_start: bool = False) -> str:
    return record_tree(str(project), str(state), session, is_start=is_start)


def copy(project: Path) -> Path:
    target = project.with_name("copy")
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(project, target, symlinks=True)
    return target


def test_the_files_come_back_byte_for_byte(repository: Path, state: Path) -> None:
    write(repository, {"a.txt": b"\0\r\n\xff", 'new\n"\\ \t': "x", "sub/c": "", "x.log": "ignored"})
    (repository / "sub" / "c").chmod(0o755)
    (repository / "link").symlink_to("sub/b")
    (repository / "broken").symlink_to("no such")
    (repository / ".gitattributes").write_text("* text=auto eol=crlf ident\n")
    removed(".gitignore")(repository)
    removed("x.log")(repository)
    then = content(repository)
    ref = record(repository, state)
    assert ref == f"{REFS}/s/1"
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "later")
    removed("link")(repository)
    shutil.rmtree(repository / "sub")
    write(repository, {"sub": "a file", "later": "x"})
    target = copy(repository)
    assert check_out(ref, str(target), str(repository)) == ()
    assert content(target) == then
    assert git(target, "log", "--format=%s") == "change\n"


def test_no_program_of_the_project_runs(
    repository: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    monkeypatch.setenv("RAN", str(ran))
    git(repository, "config", "core.repositoryFormatVersion", "1")
    for name, value in CONFIGURATION.items():
        git(repository, "config", name, value)
    for name in HOOKS:
        hook = repository / ".git" / "hooks" / name
        hook.write_text('#!/bin/sh\ntouch "$RAN"\n')
        hook.chmod(0o755)
    write(
        repository,
        {
            ".gitattributes": "* filter=evil diff=evil merge=evil\n",
            "a.txt": "changed",
            "git": "#!/bin/sh\ntouch $RAN",
        },
    )
    (repository / "git").chmod(0o755)
    ran.unlink(missing_ok=True)
    inside = {str(path) for path in (repository / ".git").iterdir()}
    ref = record(repository, state)
    target = copy(repository)
    then = content(repository)
    monkeypatch.setenv("PATH", f"{repository}:{os.environ['PATH']}")
    check_out(ref, str(target), str(repository))
    assert content(target) == then
    assert not ran.exists()
    assert {str(path) for path in (repository / ".git").iterdir()} == inside
    assert not list((repository / ".git" / "logs").rglob("turngate"))


def test_the_environment_leads_git_nowhere_else(
    repository: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_repository(other, {"x": "x"})
    index = (repository / ".git" / "index").read_bytes()
    for name, value in {
        "DIR": ".git",
        "INDEX_FILE": ".git/index",
        "WORK_TREE": ".",
        "OBJECT_DIRECTORY": ".git/objects",
    }.items():
        monkeypatch.setenv(f"GIT_{name}", str(other / value))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.worktree=/'")
    write(repository, {"c": "c"})
    ref = record(repository, state)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert git(repository, "ls-tree", "-r", "--name-only", ref).split() == [
        ".gitignore",
        "a.txt",
        "c",
        "sub/b",
    ]
    assert git(other, "for-each-ref", REFS) == ""
    assert (repository / ".git" / "index").read_bytes() == index


def without_commits(project: Path) -> Path:
    shutil.rmtree(project / ".git")
    git(project, "init", "-q")
    return project


def worktree(project: Path) -> Path:
    git(project, "worktree", "add", "-q", "../tree")
    return project.with_name("tree")


def folder_of_it(project: Path) -> Path:
    return project / "sub"


def with_submodule(project: Path) -> Path:
    inner = project / "inner"
    inner.mkdir()
    make_repository(inner, {"i": "i"})
    git(project, "add", "inner")
    return project


@pytest.mark.parametrize("of", [without_commits, worktree, folder_of_it, with_submodule])
def test_a_repository_of_any_shape_is_recorded(
    repository: Path, state: Path, of: Callable[[Path], Path]
) -> None:
    project = of(repository)
    write(project, {"new": "x"})
    ref = record(project, state)
    names = git(project, "ls-tree", "-r", "--name-only", "--full-tree", ref).split()
    expected = {".gitignore", "a.txt", "sub/b", "sub/new" if project.name == "sub" else "new"}
    assert set(names) == expected
    parents = git(project, "log", "--format=%P", "-1", ref).split()
    assert len(parents) == (0 if of is without_commits else 1)


def test_a_repository_without_commits_comes_back(repository: Path, state: Path) -> None:
    without_commits(repository)
    then = content(repository)
    ref = record(repository, state)
    target = copy(repository)
    git(target, "add", "--all")
    git(target, "commit", "-qm", "first")
    check_out(ref, str(target), str(repository))
    assert content(target) == then
    assert git(target, "status", "--porcelain").startswith("?? ")


def bare(project: Path) -> None:
    shutil.rmtree(project)
    git(project.parent, "init", "-q", "--bare", project.name)


def sha256(project: Path) -> None:
    shutil.rmtree(project / ".git")
    git(project, "init", "-q", "--object-format=sha256")


def damaged(project: Path) -> None:
    (project / ".git" / "config").write_text("[core\n")


def full(project: Path) -> None:
    with (project / "large").open("wb") as file:
        file.truncate(MAX_NEW_BYTES + 1)


def unwritable(project: Path) -> None:
    shutil.rmtree(project / ".git" / "objects" / "pack")
    (project / ".git" / "objects" / "pack").write_text("no folder")
    (project / ".git" / "refs" / "turngate").write_text("no folder")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda project: shutil.rmtree(project / ".git"), "the project is not in a git repository"),
        (bare, "the project is not in a git repository"),
        (sha256, "the repository uses SHA-256"),
        (damaged, "fatal: bad config line 1 in file .git/config"),
        (full, "more than 64 MiB are new; `.gitignore` can leave files out"),
        (unwritable, "fatal: "),
    ],
)
def test_what_cannot_be_recorded_is_one_sentence(
    repository: Path, state: Path, damage: Callable[[Path], None], expected: str
) -> None:
    damage(repository)
    with pytest.raises(NoTree) as raised:
        record(repository, state)
    assert str(raised.value).startswith(expected)
    assert "\n" not in str(raised.value)


def test_without_git_nothing_is_recorded(
    repository: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(NoTree, match="No such file or directory"):
        record(repository, state)


def test_a_git_that_hangs_is_given_up(
    repository: Path, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(recorded_trees, "repository_top", lambda _: str(repository))
    monkeypatch.setattr(recorded_trees, "RECORD_TIMEOUT_S", 0.2)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(NoTree, match="git took too long"):
        record(repository, state)


def test_stops_at_once_get_numbers_of_their_own(repository: Path, state: Path) -> None:
    refs: list[str] = []
    threads = [threading.Thread(target=lambda: refs.append(record(repository, state))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(refs) == [f"{REFS}/s/{number}" for number in (1, 2, 3, 4)]


def test_a_start_is_recorded_once_and_a_new_session_removes_what_is_old(
    repository: Path, state: Path
) -> None:
    names = [record(repository, state, is_start=True) for _ in range(2)]
    assert names == [f"{REFS}/s/0"] * 2
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    days = {"old/1": 31, "old/2": 31, "recent/1": 29}
    for name, age in days.items():
        when = f"{time.time() - age * 86_400:.0f} +0000"
        commit = git(repository, "commit-tree", tree, "-m", "x", date=when).strip()
        git(repository, "update-ref", f"{REFS}/{name}", commit)
    record(repository, state, "a/../session.lock")
    left = git(repository, "for-each-ref", "--format=%(refname)", REFS).split()
    assert [name.removeprefix(f"{REFS}/") for name in left if "id-" not in name] == ["recent/1", "s/0"]
    assert len(left) == 3


def test_links_that_lead_out_of_the_copy_are_left_out(repository: Path, state: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    for name, target in {
        "a1": outside,
        "a2": Path("../../outside"),
        "a3": repository / "a.txt",
        "a4": Path("a1"),
    }.items():
        (repository / name).symlink_to(target)
    ref = record(repository, state)
    target = copy(repository)
    assert check_out(ref, str(target), str(repository)) == ("a1", "a2")
    assert (target / "a3").resolve() == target / "a.txt"
    assert not (target / "a4").exists()


def test_a_recorded_stop_does_not_run_the_gates_again(repository: Path, state: Path) -> None:
    before = local_tree_state(str(repository), str(state))
    record(repository, state)
    assert local_tree_state(str(repository), str(state)) == before is not None


def test_git_finds_nothing_wrong(repository: Path, state: Path) -> None:
    write(
        repository, {f"f{number}": str(number) for number in range(150)}
    )  # more than fit into loose objects
    record(repository, state)
    record(repository, state)
    done = subprocess.run(["git", "fsck", "--strict"], cwd=repository, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
