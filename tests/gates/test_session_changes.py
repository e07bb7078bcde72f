"""What has changed since the session's start, by git or by checksums, in repositories of all kinds."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from tests.support.gates import ELSEWHERE, OtherShell
from tests.support.git_projects import BEFORE, LATER, commit, git, make_repository, write, write_transcript
from turngate.core.events.events import StopEvent
from turngate.gates.gate import GateContext
from turngate.gates.git.output import Change, FilePatch, Line
from turngate.gates.library import GATES
from turngate.gates.project_files import list_files, read_file
from turngate.gates.run_commands import FilesUnreadable
from turngate.gates.run_gate import make_context
from turngate.gates.session_changes import find_changes, find_patches, record_files
from turngate.shells.local import LocalShell

IS_LOCAL = [False]  # whether the files are listed in this process, or by a script


@pytest.fixture(params=["this machine", "another machine"], autouse=True)
def _machine(request: pytest.FixtureRequest) -> None:
    IS_LOCAL[0] = request.param == "this machine"


def context_of(project: Path, start: object = None) -> GateContext:
    event = StopEvent(session_id="s", transcript_path=str(project.parent / "transcript.jsonl"))
    shell, folder = (LocalShell(), str(project)) if IS_LOCAL[0] else (OtherShell(project), ELSEWHERE)
    state = os.environ["TURNGATE_STATE"]
    context = make_context(
        GATES["touched"], event, shell, folder, options={}, timeout=100, state_folder=state
    )
    context.state.start = start if isinstance(start, dict) else None
    return context


def changes(project: Path, start: object = None) -> set[tuple[str, str]]:
    """Return kind and path of each change."""

    async def find() -> tuple[Change, ...]:
        return await find_changes(context_of(project, start))

    return {(change.kind, change.path) for change in asyncio.run(find())}


def record(project: Path) -> object:
    async def find() -> object:
        return dict(await record_files(context_of(project)))

    return asyncio.run(find())


def patches(project: Path, *, is_source: bool = False, start: object = None) -> tuple[FilePatch, ...]:
    async def find() -> tuple[FilePatch, ...]:
        found = await find_patches(context_of(project, start), is_source=is_source)
        assert found is not None
        return found.files

    return asyncio.run(find())


def test_commits_since_the_first_time_of_the_transcript_count(project: Path) -> None:
    make_repository(project, {"a": "1", "b": "1"})
    write_transcript(project)
    write(project, {"a": "2"})
    commit(project)
    git(project, "rm", "-q", "b")
    assert changes(project) == {("modified", "a"), ("deleted", "b")}


def test_without_a_transcript_only_what_is_not_committed_counts(project: Path) -> None:
    make_repository(project, {"a": "1", "b": "1"})
    write(project, {"a": "2"})
    commit(project)
    write(project, {"b": "2", "c": "1"})
    assert changes(project) == {("modified", "b"), ("added", "c")}


def test_a_repository_that_began_in_the_session_is_new_as_a_whole(project: Path) -> None:
    write_transcript(project)
    make_repository(project, {"a": "1"}, date=LATER)
    assert changes(project) == {("added", "a")}


def test_commits_that_were_rewritten_are_compared_with_what_head_was(project: Path) -> None:
    make_repository(project, {"a": "1", "b": "1"})
    write_transcript(project)
    write(project, {"a": "2"})
    git(project, "commit", "-q", "--all", "--amend", "--message=all of it", date=LATER)
    assert changes(project) == {("modified", "a")}


def test_a_shallow_repository_does_not_begin_with_its_first_commit(project: Path, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    make_repository(origin, {"a": "1"})
    commit(origin, date=LATER)
    project.rmdir()
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "project")
    write_transcript(project)
    write(project, {"b": "1"})
    assert changes(project) == {("added", "b")}


def test_a_record_whose_objects_are_gone_falls_back_to_its_commit(project: Path) -> None:
    make_repository(project, {"a": "1", "b": "1"})
    write(project, {"a": "2"})
    start = record(project)
    git(project, "gc", "-q", "--prune=now")
    write(project, {"b": "2"})
    commit(project)
    assert changes(project, start) == {("modified", "a"), ("modified", "b")}


@pytest.mark.parametrize("how", [("merge", "--no-edit"), ("rebase",)], ids=" ".join)
def test_what_others_have_committed_before_the_session_is_left_out(
    project: Path, how: tuple[str, ...]
) -> None:
    make_repository(project, {"a": "1", "b": "1\n2\n3\n4\n", "c": "1"})
    git(project, "checkout", "-q", "-b", "theirs")
    (project / "c").unlink()
    write(project, {"a": "2", "b": "1\n2\n3\ntheirs\n", "new": ""})
    commit(project, BEFORE)
    git(project, "checkout", "-q", "main")
    start = record(project)
    write(project, {"b": "mine\n2\n3\n4\n"})
    commit(project)
    git(project, *how, "theirs", date=LATER)
    assert (project / "b").read_text() == "mine\n2\n3\ntheirs\n"
    assert changes(project, start) == {("modified", "b")}
    [patch] = patches(project, start=start)
    assert [line.text for line in patch.lines] == ["1", "mine"]


def test_a_project_that_cannot_be_recorded_has_no_record(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(project, {"a": "1"})
    monkeypatch.setenv("TMPDIR", "/nowhere")
    assert record(project) == {}


def test_hidden_changes_count(project: Path) -> None:
    make_repository(project, {"a": "1", "b": "1", "c": "1"})
    git(project, "update-index", "--assume-unchanged", "a")
    git(project, "update-index", "--skip-worktree", "b")
    write(project, {"a": "20", "b": "20"})  # git itself may miss a change of the same size in the same second
    assert git(project, "status", "--porcelain") == ""
    assert changes(project) == {("modified", "a"), ("modified", "b")}


def test_a_sparse_checkout_has_not_deleted_what_it_leaves_out(project: Path) -> None:
    make_repository(project, {"a/x": "1", "b/x": "1"})
    git(project, "sparse-checkout", "set", "a")
    write(project, {"a/x": "2", "b/new": "1"})
    assert changes(project) == {("modified", "a/x"), ("added", "b/new")}


def test_renames_modes_links_and_empty_files(project: Path) -> None:
    make_repository(project, {"a": "1\n2\n3\n", "run": "#!/bin/sh\n", "gone": "x", "folder/in": "y"})
    git(project, "mv", "a", "moved to")
    (project / "run").chmod(0o755)
    (project / "link").symlink_to("/etc/passwd")
    write(project, {"empty": ""})
    (project / "folder/in").unlink()
    (project / "folder").rmdir()
    write(project, {"folder": "now a file\n"})
    assert changes(project) == {
        ("renamed", "moved to"),
        ("modified", "run"),
        ("added", "link"),
        ("added", "empty"),
        ("deleted", "folder/in"),
        ("added", "folder"),
    }


def test_the_project_is_a_subfolder_of_the_repository(tmp_path: Path) -> None:
    make_repository(tmp_path, {"project/a": "1", "other/a": "1", "project/.gitignore": "ignored\n"})
    write(
        tmp_path,
        {"project/a": "2", "project/new": "", "other/a": "2", "other/new": "", "project/ignored": ""},
    )
    project = tmp_path / "project"
    assert changes(project) == {("modified", "a"), ("added", "new")}
    start = record(project)
    write(tmp_path, {"project/new": "2"})
    assert changes(project, start) == {("modified", "new")}


def test_a_repository_above_that_ignores_the_project_is_not_its_own(tmp_path: Path) -> None:
    make_repository(tmp_path, {".gitignore": "*\n"})
    project = tmp_path / "project"
    write(project, {"a": "1"})
    start = record(project)
    write(project, {"a": "2"})
    assert changes(project, start) == {("modified", "a")}
    assert why_not(project).startswith("the project has no git repository, and the project's state")


def test_a_submodule_counts_if_its_tracked_files_have_changed(project: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    make_repository(library, {"a": "1"})
    make_repository(project, {"a": "1"})
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    commit(project)
    assert changes(project) == set()
    write(project, {"lib/a": "2"})
    assert changes(project) == {("modified", "lib")}


def add_submodule(project: Path, tmp_path: Path) -> None:
    """Make a project with a submodule `lib`."""
    (tmp_path / "library").mkdir()
    make_repository(tmp_path / "library", {"a": "1", "b": "1"})
    make_repository(project, {"a": "1"})
    words = (
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(tmp_path / "library"),
        "lib",
    )
    git(project, *words)
    commit(project)


def test_what_counts_in_a_submodule(project: Path, tmp_path: Path) -> None:
    add_submodule(project, tmp_path)
    write(project, {"lib/new": ""})
    assert changes(project) == set()
    write(project, {"lib/a": "2"})
    start = record(project)
    assert (changes(project), changes(project, start)) == ({("modified", "lib")}, set())
    write(project, {"lib/a": "3"})
    assert changes(project, start) == {("modified", "lib")}
    write(project, {"lib/a": "1"})
    (project / "lib/b").unlink()
    assert changes(project) == {("modified", "lib")}
    git(project / "lib", "checkout", "-q", "b")
    commit(project / "lib")
    assert changes(project) == {("modified", "lib")}


def test_a_submodule_that_is_not_checked_out_is_not_a_change_and_one_that_is_gone_is(
    project: Path, tmp_path: Path
) -> None:
    add_submodule(project, tmp_path)
    git(project, "submodule", "--quiet", "deinit", "--force", "lib")
    assert changes(project) == set()
    (project / "lib").rmdir()
    assert changes(project) == {("deleted", "lib")}


def test_a_repository_in_the_project_that_is_no_submodule_is_left_alone(project: Path) -> None:
    make_repository(project, {"a": "1"})
    (project / "inner").mkdir()
    git(project / "inner", "init", "-q")
    assert changes(project) == set()
    assert changes(project, record(project)) == set()


def test_a_large_file_that_is_not_tracked_counts_if_it_has_changed(project: Path) -> None:
    make_repository(project, {"a": "1"})
    write(project, {"data": "x" * 2_000_000})
    start = record(project)
    assert changes(project, start) == set()
    write(project, {"data": "y" * 2_000_000})
    assert changes(project, start) == {("modified", "data")}
    (project / "data").unlink()
    write(project, {"new": "1"})
    assert changes(project, start) == {("deleted", "data"), ("added", "new")}


@pytest.mark.parametrize("setting", ["core.fileMode", "core.symlinks"])
def test_a_file_system_without_modes_or_links(project: Path, setting: str) -> None:
    make_repository(project, {"run": "true"})
    (project / "link").symlink_to("run")
    commit(project)
    (project / "run").chmod(0o755)
    (project / "link").unlink()
    write(project, {"link": "run"})
    assert changes(project) == {("modified", "run"), ("modified", "link")}
    git(project, "config", setting, "false")
    assert changes(project) == set()


def test_unmerged_files_are_changes(project: Path) -> None:
    make_repository(project, {"a": "1\n"})
    git(project, "checkout", "-q", "-b", "other")
    write(project, {"a": "2\n"})
    commit(project)
    git(project, "checkout", "-q", "main")
    write(project, {"a": "3\n"})
    commit(project)
    with pytest.raises(Exception, match="exit status 1"):
        git(project, "merge", "other")
    assert changes(project) == {("modified", "a")}
    assert changes(project, record(project)) == set()


HOSTILE_CONFIG = """\
[core]
    fsmonitor = touch ran-fsmonitor; false
    hooksPath = hooks
    pager = touch ran-pager
[diff]
    external = touch ran-external
    noprefix = true
    mnemonicPrefix = true
    renames = false
    context = 9
    relative = false
    submodule = log
    orderFile = .git/description
    ignoreSubmodules = all
[diff "driver"]
    command = touch ran-driver
    textconv = touch ran-textconv
[filter "plain"]
    clean = touch ran-clean
[filter "process"]
    process = touch ran-process
    required = true
[log]
    showSignature = true
[gpg]
    program = touch ran-gpg
[color]
    ui = always
[status]
    showUntrackedFiles = no
[alias]
    diff = !touch ran-alias
"""


def test_a_repository_starts_no_programs_and_changes_no_output(project: Path) -> None:
    attributes = "*.txt diff=driver\n*.flt filter=plain\n*.prc filter=process\n"
    make_repository(project, {"a.txt": "1\n", ".gitattributes": attributes, "b.flt": "1\n", "b.prc": "1\n"})
    write(project, {"hooks/post-index-change": "#!/bin/sh\ntouch ran-hook\n"})
    (project / "hooks/post-index-change").chmod(0o755)
    commit(project)
    with (project / ".git/config").open("a") as file:
        file.write(HOSTILE_CONFIG)
    write(project, {"a.txt": "2\n", "new.txt": "1\n", "b.flt": "2\n", "b.prc": "2\n", "c.prc": "1\n"})
    new = {("modified", "a.txt"), ("added", "new.txt"), ("added", "c.prc")}
    assert changes(project) == {*new, ("filtered", "b.flt"), ("filtered", "b.prc")}
    assert patches(project)[0] == FilePatch("a.txt", (Line(1, "1", "removed"), Line(1, "2", "added")))
    start = record(project)
    assert changes(project, start) == set()
    write(project, {"b.flt": "3\n", "b.prc": "1\n"})
    assert changes(project, start) == {("modified", "b.flt"), ("modified", "b.prc")}
    assert [path.name for path in project.rglob("ran-*")] == []


def test_the_index_and_the_files_stay_as_they_are(project: Path) -> None:
    make_repository(project, {"a": "1"})
    write(project, {"a": "2", "b": "1"})
    git(project, "add", "b")
    before = (project / ".git/index").read_bytes(), git(project, "status", "--porcelain")
    changes(project)
    record(project)
    assert ((project / ".git/index").read_bytes(), git(project, "status", "--porcelain")) == before


def why_not(project: Path, start: object = None) -> str:
    with pytest.raises(FilesUnreadable) as raised:
        changes(project, start)
    return str(raised.value)


def test_a_corrupt_index_is_an_error_with_the_words_of_git(project: Path) -> None:
    make_repository(project, {"a": "1"})
    (project / ".git/index").write_bytes(b"DIRC nonsense")
    assert why_not(project).startswith("the changes since the session's start cannot be read: ")


def test_a_commit_that_is_missing_is_an_error(project: Path) -> None:
    make_repository(project, {"a": "1"})
    (project / ".git/refs/heads/main").write_text("1" * 40 + "\n")
    assert "fatal" in why_not(project)


def test_a_repository_of_another_user_is_an_error_that_names_safe_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(project, {"a": "1"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert "safe.directory" in why_not(project)


def test_git_that_is_not_installed_is_named(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(project, {"a": "1"})
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "find", "cksum", "printf"):
        (programs / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(programs))
    assert why_not(project).startswith("git was not found, and the project's state")


def test_a_failing_git_is_an_error(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"programs/git": "#!/bin/sh\necho 'out of memory' >&2\nexit 9\n"})
    (tmp_path / "programs/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")
    assert why_not(project) == "the changes since the session's start cannot be read: out of memory"


def test_names_of_all_kinds_are_listed_and_read(project: Path) -> None:
    names = ["-n", "a b", "a\nb", 'q"', "b\\", "ü", os.fsdecode(b"\xff"), '"quoted"', "tab\t"]

    async def read() -> tuple[tuple[str, ...], list[str | None]]:
        commands = context_of(project).commands
        return await list_files(commands), [await read_file(commands, name) for name in names]

    make_repository(project, {name: f"in {number}" for number, name in enumerate(names)})
    assert asyncio.run(read()) == (tuple(sorted(names)), [f"in {number}" for number in range(len(names))])


def test_an_unreadable_file_without_git_does_not_hide_the_others(project: Path) -> None:
    write(project, {"a": "1", "secret": "1"})
    (project / "secret").chmod(0)
    start = record(project)
    write(project, {"a": "2"})
    (project / "secret").chmod(stat.S_IRUSR)
    assert ("modified", "a") in changes(project, start)


def test_patches_have_the_lines_that_look_like_headers(project: Path) -> None:
    make_repository(project, {"a": "-- a\n++ b\n@@ -1 +1 @@\nkept\n"})
    write(project, {"a": "++ c\nkept\nlast", "n w": "one\ntwo\n"})
    assert patches(project) == (
        FilePatch(
            "a",
            (
                Line(1, "-- a", "removed"),
                Line(1, "++ b", "removed"),
                Line(1, "@@ -1 +1 @@", "removed"),
                Line(1, "++ c", "added"),
                Line(3, "last", "added"),
            ),
        ),
        FilePatch("n w", (Line(1, "one", "added"), Line(2, "two", "added"))),
    )


def make_many_files(project: Path) -> None:
    make_repository(project, {"a": "1"})
    for folder in range(30):
        (project / str(folder)).mkdir()
        for number in range(100):
            (project / str(folder) / f"{number}.txt").touch()


def test_three_thousand_files_are_compared(project: Path) -> None:
    make_many_files(project)
    untracked = record(project)
    assert (len(changes(project)), changes(project, untracked)) == (3000, set())
    commit(project)
    start = record(project)
    write(project, {"7/7.txt": "changed", "8/new.txt": ""})
    assert changes(project, start) == {("modified", "7/7.txt"), ("added", "8/new.txt")}
