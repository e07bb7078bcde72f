"""The state of a tree: it changes with the content of the files that git does not ignore, and with what git knows of them."""

import asyncio
import functools
import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.gates import ELSEWHERE, OtherShell
from turngate.core.events.events import StopEvent
from turngate.gates import local_tree_state
from turngate.gates import tree_state as tree_state_module
from turngate.gates.library import GATES
from turngate.gates.run_gate import make_context
from turngate.gates.tree_state import tree_state
from turngate.shells.local import LocalShell

CONFIG = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "user.name",
    "GIT_CONFIG_VALUE_0": "t",
    "GIT_CONFIG_KEY_1": "user.email",
    "GIT_CONFIG_VALUE_1": "t@example.org",
    "GIT_CONFIG_KEY_2": "protocol.file.allow",
    "GIT_CONFIG_VALUE_2": "always",
}


@pytest.fixture(autouse=True)
def _own_git_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CONFIG.items():
        monkeypatch.setenv(name, value)


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    make_repository(folder, {"a.txt": "one\n", "sub/b.txt": "two\n", ".gitignore": "*.log\n"})
    return folder


def make_repository(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    commit(folder)


def commit(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")


def tree_state_of(project: Path, *, is_local: bool = True) -> str | None:
    """Return the state of all files, as for a project on this machine, or on another one."""

    async def find() -> str | None:
        shell, folder = (LocalShell(), str(project)) if is_local else (OtherShell(project), ELSEWHERE)
        event = StopEvent(session_id="s", transcript_path="")
        state = os.environ["TURNGATE_STATE"]
        return await tree_state(
            make_context(GATES["command"], event, shell, folder, options={}, state_folder=state)
        )

    return asyncio.run(find())


Find = Callable[[Path], str | None]
Known = Callable[[Path], str]


@pytest.fixture(params=["this machine", "another machine"])
def find(request: pytest.FixtureRequest) -> Find:
    return functools.partial(tree_state_of, is_local=request.param == "this machine")


@pytest.fixture
def known(find: Find) -> Known:
    def known_state(project: Path) -> str:
        found = find(project)
        assert found is not None
        return found

    return known_state


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more\n")


def rewrite_unnoticed(path: Path) -> None:
    """Write other content of the same size, and set the old time."""
    before = path.stat()
    path.write_text("two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_folder(folder: Path) -> None:
    (folder / "b.txt").unlink()
    folder.rmdir()
    folder.write_text("a file now\n")


def replace_file(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("x")


def intend_to_add(folder: Path) -> None:
    (folder / "later").write_text("x")
    git(folder, "add", "--intent-to-add", "later")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a tracked file": lambda folder: append(folder / "a.txt"),
    "a file of the same size and time": lambda folder: rewrite_unnoticed(folder / "a.txt"),
    "a new file": lambda folder: (folder / "new").write_text(""),
    "a new file with a newline in its name": lambda folder: (folder / "new\nline").write_text(""),
    "a deleted file": lambda folder: (folder / "a.txt").unlink(),
    "a renamed file": lambda folder: (folder / "a.txt").rename(folder / "c.txt"),
    "a mode": lambda folder: (folder / "a.txt").chmod(0o755),
    "a symbolic link": lambda folder: (folder / "link").symlink_to("a.txt"),
    "a file in place of a folder": lambda folder: replace_folder(folder / "sub"),
    "a folder in place of a file": lambda folder: replace_file(folder / "a.txt"),
    "a link in place of a file": lambda folder: replace_by_link(folder / "a.txt"),
    "an ignore file": lambda folder: (folder / ".gitignore").write_text("*.tmp\n"),
    "a file to be added later": intend_to_add,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_gives_another_state(repository: Path, change: str, known: Known) -> None:
    before = known(repository)
    CHANGES[change](repository)
    after = known(repository)
    assert after != before
    assert known(repository) == after


GIT_CHANGES: dict[str, Callable[[Path], object]] = {
    "git add": lambda folder: git(folder, "add", "-A"),
    "git commit": lambda folder: git(folder, "commit", "-q", "--all", "--allow-empty", "-m", "x"),
    "git stash": lambda folder: git(folder, "stash", "store", git(folder, "stash", "create").strip()),
    "a branch": lambda folder: git(folder, "branch", "other"),
    "another branch": lambda folder: git(folder, "checkout", "-q", "-b", "other"),
    "a tag": lambda folder: git(folder, "tag", "v1"),
    "packed refs, and a tag": lambda folder: (git(folder, "pack-refs", "--all"), git(folder, "tag", "v1")),
    "a setting": lambda folder: git(folder, "config", "core.bare", "true"),
    "a flag": lambda folder: git(folder, "update-index", "--assume-unchanged", "sub/b.txt"),
    "a merge": lambda folder: (folder / ".git" / "MERGE_HEAD").write_text(git(folder, "rev-parse", "HEAD")),
}


@pytest.mark.parametrize("change", GIT_CHANGES)
def test_what_a_command_may_ask_git_gives_another_state(repository: Path, change: str, known: Known) -> None:
    append(repository / "a.txt")
    before = known(repository)
    GIT_CHANGES[change](repository)
    assert known(repository) != before


@pytest.mark.parametrize("change", [name for name in CHANGES if "ignore" not in name and "later" not in name])
def test_without_a_repository_the_content_of_all_files_counts(
    tmp_path: Path, change: str, known: Known
) -> None:
    project = tmp_path / "plain"
    (project / "sub").mkdir(parents=True)
    (project / "a.txt").write_text("one\n")
    (project / "sub" / "b.txt").write_text("two\n")
    before = known(project)
    CHANGES[change](project)
    after = known(project)
    assert (after != before, known(project)) == (True, after)


def test_what_tools_and_others_wrote_does_not_count_without_a_repository(
    tmp_path: Path, known: Known
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    before = known(tmp_path)
    for name in ("node_modules/x", "__pycache__/x", ".venv/lib/x"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    assert known(tmp_path) == before


def test_two_edits_within_one_tick_of_the_clock_differ(repository: Path, known: Known) -> None:
    """The file and the index have the same time, so that only a comparison of the content shows the second edit."""
    git(repository, "config", "core.trustctime", "false")
    tick = (10**9, 10**9)
    (repository / "a.txt").write_text("two\n")
    os.utime(repository / "a.txt", tick)
    git(repository, "add", "-A")
    os.utime(repository / ".git" / "index", tick)
    before = known(repository)
    (repository / "a.txt").write_text("six\n")
    os.utime(repository / "a.txt", tick)
    assert known(repository) != before


def commit_and_undo(folder: Path) -> None:
    commit(folder)
    git(folder, "reset", "-q", "HEAD^")


def unchanged_after(repository: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "an ignored file", lambda: (repository / "x.log").write_text("x")
    yield "a touched file", lambda: os.utime(repository / "a.txt", (1, 1))
    yield "git status", lambda: git(repository, "status")
    yield "a split index", lambda: git(repository, "update-index", "--split-index")
    yield "git commit, and back", lambda: commit_and_undo(repository)
    yield "git fetch", lambda: git(repository, "fetch", "-q", ".")


def test_the_same_content_has_the_same_state(repository: Path, known: Known) -> None:
    append(repository / "a.txt")
    (repository / "new").write_text("new\n")
    before = known(repository)
    for what, action in unchanged_after(repository):
        action()
        assert (what, known(repository)) == (what, before)


def test_a_repository_without_a_commit_has_a_state(tmp_path: Path, known: Known) -> None:
    git(tmp_path, "init", "-q")
    empty = known(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    added = known(tmp_path)
    commit(tmp_path)
    assert len({empty, added, known(tmp_path)}) == 3


def test_a_split_index_and_a_read_only_repository_are_read(repository: Path, known: Known) -> None:
    git(repository, "update-index", "--split-index")
    files = sorted(repository.joinpath(".git").rglob("*"))
    append(repository / "a.txt")
    first = known(repository)
    append(repository / "a.txt")
    assert known(repository) != first
    assert sorted(repository.joinpath(".git").rglob("*")) == files
    for path in [repository / ".git", *files]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    assert known(repository) is not None


def test_in_a_sparse_checkout_the_files_that_are_there_count(repository: Path, known: Known) -> None:
    git(repository, "sparse-checkout", "set", "sub")
    before = known(repository)
    append(repository / "sub" / "b.txt")
    changed = known(repository)
    git(repository, "update-index", "--skip-worktree", "sub/b.txt")
    append(repository / "sub" / "b.txt")
    assert len({before, changed, known(repository)}) == 3


@pytest.mark.parametrize("is_submodule", [True, False])
def test_the_content_of_a_repository_inside_of_another_counts(
    repository: Path, tmp_path: Path, is_submodule: bool, known: Known
) -> None:
    inner = repository / "inner"
    if is_submodule:
        make_repository(tmp_path / "library", {"code.c": "int x;\n"})
        git(repository, "submodule", "--quiet", "add", "../library", "inner")
        commit(repository)
    else:
        make_repository(inner, {"code.c": "int x;\n"})
    found = [known(repository)]
    for _ in range(2):
        append(inner / "code.c")
        found.append(known(repository))
    (inner / "new").write_text("")
    found.append(known(repository))
    assert len(set(found)) == 4


def test_the_whole_repository_counts_for_a_project_in_a_subfolder(repository: Path, known: Known) -> None:
    before = known(repository / "sub")
    append(repository / "a.txt")
    after = known(repository / "sub")
    assert (after != before, after) == (True, known(repository))


def test_a_project_that_the_repository_ignores_has_the_state_of_its_files(
    repository: Path, known: Known
) -> None:
    (repository / ".gitignore").write_text("build/\n")
    project = repository / "build" / "project"
    project.mkdir(parents=True)
    before = known(project)
    (project / "new").write_text("")
    assert known(project) != before


def test_a_file_that_git_cannot_read_gives_no_state(repository: Path, find: Find) -> None:
    (repository / "a.txt").unlink()
    os.mkfifo(repository / "a.txt")
    assert find(repository) is None


def test_variables_of_git_do_not_lead_to_another_repository(
    repository: Path, tmp_path: Path, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = known(repository)
    make_repository(tmp_path / "other", {"x": "x"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    assert known(repository) == before


def test_nothing_is_left_in_the_temporary_folder(
    repository: Path, tmp_path: Path, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    append(repository / "a.txt")
    assert (known(repository) != "", [*temporary.iterdir()]) == (True, [])


def test_without_git_the_content_of_all_files_counts(
    repository: Path, tmp_path: Path, known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "find", "xargs", "cksum", "sort", "mktemp", "rm", "readlink", "cat"):
        found = subprocess.run(["sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=True)
        (programs / name).symlink_to(found.stdout.strip())
    monkeypatch.setenv("PATH", str(programs))
    before = known(repository)
    append(repository / "a.txt")
    assert known(repository) != before


def test_a_file_is_read_again_only_if_its_stat_has_changed(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "turngate.gates.local_tree_state.RACY_NS", -1
    )  # also files that were written just now
    before = tree_state_of(repository)
    read: list[str] = []

    def read_content(path: str, mode: int, deadline: float) -> str:
        read.append(path)
        return f"{mode}"

    monkeypatch.setattr("turngate.gates.local_tree_state._read_content", read_content)
    assert (tree_state_of(repository), read) == (before, [])
    append(repository / "a.txt")
    (repository / "new").write_text("")
    assert tree_state_of(repository) != before
    assert read == [str(repository / "a.txt"), str(repository / "new")]


def test_a_look_that_takes_too_long_is_continued_by_the_next_one(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tree_state_of(repository)
    shutil.rmtree(os.environ["TURNGATE_STATE"], ignore_errors=True)
    monkeypatch.setattr("turngate.gates.local_tree_state.RACY_NS", -1)
    read_content = local_tree_state._read_content
    reads = 0

    def read_two(path: str, mode: int, deadline: float) -> str:
        nonlocal reads
        reads += 1
        return read_content(path, mode, deadline if reads <= 2 else 0.0)

    monkeypatch.setattr("turngate.gates.local_tree_state._read_content", read_two)
    assert tree_state_of(repository) is None
    reads = 0
    assert (tree_state_of(repository), reads) == (expected, 1)


def in_empty_folder(folder: Path) -> None:
    (folder / "empty" / "inner" / "new").write_text("")


def in_ignored_folder(folder: Path) -> None:
    (folder / "ignored" / "forced").write_text("again\n")


def by_rule(folder: Path) -> None:
    (folder / "sub" / ".gitignore").write_text("/other.txt\n")


def by_ignored_rule(folder: Path) -> None:
    (folder / "hidden" / ".gitignore").write_text("*\n!.gitignore\n")


def by_exclude(folder: Path) -> None:
    (folder / ".git" / "info" / "exclude").write_text("other.txt\n")


def by_index(folder: Path) -> None:
    git(folder, "update-index", "--assume-unchanged", "a.txt")


def by_repository_inside(folder: Path) -> None:
    make_repository(folder / "empty" / "inner", {"x": "1"})


def by_folder(folder: Path) -> None:
    shutil.move(folder / "sub", folder / "moved")


@pytest.mark.parametrize(
    "change",
    [
        in_empty_folder,
        in_ignored_folder,
        by_rule,
        by_ignored_rule,
        by_exclude,
        by_index,
        by_repository_inside,
        by_folder,
    ],
)
def test_names_of_the_last_look_hold_only_while_nothing_they_depend_on_has_changed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    monkeypatch.setattr("turngate.gates.local_tree_state.RACY_NS", -1)
    rules = {".gitignore": "*.log\n/ignored/\n", "hidden/.gitignore": ".gitignore\n"}
    for name, text in {
        **rules,
        "hidden/b.txt": "",
        "sub/other.txt": "",
        "ignored/forced": "",
        "a.log": "",
    }.items():
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text(text)
    git(repository, "add", "-f", "ignored/forced")
    (repository / "ignored" / "forced").unlink()
    (repository / "empty" / "inner").mkdir(parents=True)
    before = tree_state_of(repository)
    assert state_and_listings(tmp_path, monkeypatch, repository) == (before, 0)
    change(repository)
    after = tree_state_of(repository)
    monkeypatch.setenv("TURNGATE_STATE", str(tmp_path / "new"))
    assert (after, after != before) == (tree_state_of(repository), True)


def state_and_listings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> tuple[str | None, int]:
    """Return the state, and how often git was asked for the names of files."""
    real, log = shutil.which("git"), tmp_path / "calls"
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    (programs / "git").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        state = tree_state_of(repository)
    return state, log.read_text().count(" ls-files ")


def test_a_folder_that_was_changed_just_now_is_listed_again(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngate.gates.local_tree_state.RACY_NS", 3_600_000_000_000)
    before = tree_state_of(repository)
    times = [(folder, folder.stat().st_mtime_ns) for folder in (repository, repository / "sub")]
    (repository / "sub" / "new.txt").write_text("")
    for folder, time_ns in times:
        os.utime(folder, ns=(time_ns, time_ns))
    after = tree_state_of(repository)
    monkeypatch.setenv("TURNGATE_STATE", str(tmp_path / "other"))
    assert (after, after != before) == (tree_state_of(repository), True)


STEPS = (
    *(
        "echo x > {}",
        "echo x >> {}",
        "rm -rf {}",
        "mkdir -p {}",
        "ln -sfn a.txt {}",
        "chmod +x {}",
        "mv a.txt {}",
    ),
    *(
        "mv sub {}",
        "git add -A",
        "git add -f {}",
        "git rm -q --cached {}",
        "git commit -qm x",
        "git checkout -q .",
        "git stash -qu",
    ),
    *(
        "git stash pop -q",
        "git status",
        "echo {} >> .gitignore",
        "echo '*' > sub/.gitignore",
        "rm .gitignore",
        "git reset -q --hard",
    ),
    *(
        "echo {} >> .git/info/exclude",
        "git update-index --assume-unchanged {}",
        "echo x > t && mv t {}",
        "git init -q {}",
    ),
)
PATHS = (
    "a.txt",
    "new.txt",
    "x.log",
    "sub",
    "sub/b.txt",
    "sub/new.py",
    "sub/x.log",
    "other",
    "other/c.txt",
    "other/deep/d.txt",
    ".gitignore",
)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.sampled_from(PATHS), st.booleans()), min_size=2, max_size=8
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_look_after_any_changes_finds_what_a_first_look_finds(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    steps: list[tuple[str, str, bool]],
) -> None:
    monkeypatch.setattr("turngate.gates.local_tree_state.RACY_NS", 20_000_000)
    folder = tmp_path_factory.mktemp("looks")
    project, pattern = folder / "repository", r"\.(?:txt|py|log)$"
    make_repository(project, {"a.txt": "one\n", "sub/b.txt": "two\n", ".gitignore": "*.log\n"})

    def look(state: str) -> tuple[object, ...]:
        found = local_tree_state.find_names(str(project), state, pattern)
        there = [sorted(name for name in names if os.path.lexists(project / name)) for names in found or ()]
        return local_tree_state.local_tree_state(str(project), state), there

    look(str(folder / "state"))
    for number, (change, path, waits) in enumerate(steps):
        subprocess.run(change.format(path), check=False, shell=True, cwd=project, capture_output=True)
        if waits:
            time.sleep(0.03)  # otherwise the folder counts as changed just now
        assert look(str(folder / "state")) == look(str(folder / f"first {number}"))


def test_files_that_a_transcript_names_are_looked_at_first(tmp_path: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    patch = {"input": "*** Begin Patch\n*** Update File: src/b.py\n@@\n*** Add File: src/c.py\n+x\n"}
    calls = (
        {"file_path": "/p/src/a.py"},
        patch,
        {"path": "d.py"},
        {"absolute_path": "/p/e.py"},
        {"command": "ls"},
    )
    transcript.write_text("".join(json.dumps({"input": call}) + "\n" for call in calls))
    found = [*tree_state_module._edited_files(str(transcript))]
    assert found == ["/p/src/a.py", "src/b.py", "src/c.py", "d.py", "/p/e.py"]
    os.mkfifo(tmp_path / "pipe")
    assert [*tree_state_module._edited_files(str(tmp_path / "pipe"))] == []
