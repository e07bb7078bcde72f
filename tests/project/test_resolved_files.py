"""Files below a folder, while another process replaces folders by links."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.agent_session import read_guides
from turngate.agent.tools import TOOLS, ToolContext, ToolFailed, check_arguments, files, search_process
from turngate.project.files import LOCAL
from turngate.project.link_safe_files import PathChanged, open_folder, open_parent, open_regular

linux = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc and renameat2")
CHANGED = "a part of the path has just been replaced by a link; try again"


@pytest.fixture
def outside(tmp_path: Path, project: Path) -> Path:
    """A folder with a secret, and a link to it in the project."""
    folder = tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_text("secret\n")
    (project / "link").symlink_to(folder)
    return folder


def contents(folder: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_text()
        for path in sorted(folder.rglob("*"))
    }


SECRET = {"a": "secret\n", "deep": None}

# Links that appeared after the path was resolved


@pytest.mark.parametrize("path", ["link/a", "link/deep/new", "link/new/folder/file"])
@pytest.mark.parametrize("create", [True, False])
def test_a_link_in_the_place_of_a_folder_is_an_error(
    path: str, create: bool, project: Path, outside: Path
) -> None:
    with (
        pytest.raises(PathChanged, match="replaced by a link"),
        open_parent(f"{project}/{path}", create=create),
    ):
        pass
    assert contents(outside) == SECRET


def test_a_link_in_the_place_of_a_file_is_an_error(project: Path, outside: Path) -> None:
    (project / "file").symlink_to(outside / "a")
    with open_parent(f"{project}/file") as (folder, name), pytest.raises(PathChanged):
        open_regular(name, folder)


@linux
def test_no_descriptor_is_left_open(project: Path, outside: Path) -> None:
    before = os.listdir("/proc/self/fd")
    (project / "a" / "b").mkdir(parents=True)
    for path in ("a/b/c", "a/gone/c", "link/a"):
        with fails(), open_parent(f"{project}/{path}") as (folder, name):
            open_regular(name, folder)
    assert (os.listdir("/proc/self/fd"), contents(outside)) == (before, SECRET)


@contextmanager
def fails() -> Iterator[None]:
    with pytest.raises(OSError):  # noqa: PT011 - any
        yield


def test_read_write_and_edit_never_use_a_link_that_appeared_after_the_check(
    project: Path, outside: Path
) -> None:
    path, context = f"{project}/link/a", ToolContext(str(project), {})
    context.read_files[path] = (outside / "a").stat().st_mtime
    uses: tuple[Callable[[], object], ...] = (
        lambda: files._read(path, context, 1, 10),
        lambda: files._write(path, context, b"x"),
        lambda: files._write(f"{project}/link/new", context, b"x"),
        lambda: files._edit(path, context, "secret", "x", False),
    )
    for run in uses:
        with pytest.raises(PathChanged):
            run()
    assert contents(outside) == SECRET


def test_write_and_edit_never_replace_a_link_that_appeared_after_the_check(
    project: Path, outside: Path
) -> None:
    (project / "file").symlink_to(outside / "a")
    path, context = f"{project}/file", ToolContext(str(project), {})
    context.read_files[path] = (outside / "a").stat().st_mtime
    uses: tuple[Callable[[], object], ...] = (
        lambda: files._write(path, context, b"x"),
        lambda: files._edit(path, context, "secret", "x", False),
    )
    for run in uses:
        with pytest.raises(PathChanged):
            run()
    assert (os.readlink(project / "file"), contents(outside)) == (str(outside / "a"), SECRET)


@pytest.mark.parametrize("tool", ["Glob", "Grep"])
@pytest.mark.parametrize("path", ["link", "link/deep"])
def test_a_search_never_follows_a_link_that_appeared_after_the_check(
    tool: str, path: str, project: Path, outside: Path
) -> None:
    (outside / "deep" / "b").write_text("secret")
    query = {"tool": tool, "pattern": "*" if tool == "Glob" else "secret", "path": "shown"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", search_process.__file__],
        input=json.dumps({**query, "resolved": f"{project}/{path}"}),
        capture_output=True,
        text=True,
        check=False,
    )
    allowed = [(1, "", f"shown cannot be used: {CHANGED}"), (1, "", "shown is not a folder"), (0, "", "")]
    assert (done.returncode, done.stdout, done.stderr.rstrip()) in allowed


def test_a_project_that_was_replaced_by_a_link_since_the_session_began_is_not_read(
    project: Path, outside: Path
) -> None:
    context = ToolContext(str(project), {})
    project.rename(project.parent / "aside")
    project.symlink_to(outside)
    assert asyncio.run(use(context, "Read", file_path="a")) == (
        f"FAILED: {project}/a is not allowed: it is outside of the project {project}"
    )


# Links that were there before


def test_links_within_the_allowed_folders_are_followed(project: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "b").write_text("b")
    (project / "src" / "deep").mkdir(parents=True)
    (project / "src" / "a").write_text("a")
    (project / "folder").symlink_to("src")
    (project / "again").symlink_to(project / "folder" / "deep" / ".." / "a")
    (project / "more").symlink_to(more)
    context = ToolContext(str(project), dict(os.environ), extra_paths=("../more",))

    async def answers() -> dict[str, str]:
        return {
            "folder": await use(context, "Read", file_path="folder/a"),
            "file": await use(context, "Read", file_path="again"),
            "extra": await use(context, "Read", file_path="more/b"),
            "write": await use(context, "Write", file_path="more/new/c", content="c"),
            "edit": await use(context, "Edit", file_path="folder/a", old_string="a", new_string="A"),
            "glob": await use(context, "Glob", pattern="**/*", path="more"),
            "grep": await use(context, "Grep", pattern="b", path="more", output_mode="content"),
        }

    assert asyncio.run(answers()) == {
        "folder": "     1\ta",
        "file": "     1\ta",
        "extra": "     1\tb",
        "write": f"Created {more}/new/c",
        "edit": f"Changed {project}/src/a in 1 place",
        "glob": f"{project}/more/new/c\n{project}/more/b",
        "grep": f"{project}/more/b:1:b",
    }


def test_an_extra_path_is_relative_to_the_project_as_it_is_given(project: Path, tmp_path: Path) -> None:
    for name in ("links/more/a", "more/a"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "links" / "project").symlink_to(project)
    context = ToolContext(str(tmp_path / "links" / "project"), {}, extra_paths=("../more",))
    assert asyncio.run(use(context, "Read", file_path="../more/a")) == "     1\tlinks/more/a"


def test_a_folder_that_may_only_be_passed_through_is_passed_through(project: Path) -> None:
    (project / "closed" / "open").mkdir(parents=True)
    (project / "closed" / "open" / "a").write_text("a")
    (project / "closed").chmod(0o311)
    try:
        with open_parent(f"{project}/closed/open/a") as (folder, name), open_regular(name, folder) as file:
            assert file.read() == b"a"
    finally:
        (project / "closed").chmod(0o755)


def test_folders_are_opened_relative_to_a_folder(project: Path) -> None:
    (project / "a" / "b").mkdir(parents=True)
    start = open_folder(str(project).strip("/").split("/"))
    inner = open_folder(("a", "b"), start)
    try:
        assert os.path.samestat(os.fstat(inner), os.stat(project / "a" / "b"))
    finally:
        os.close(start)
        os.close(inner)


# A race

SWAP = """
import ctypes, os, sys
folder, link = map(os.fsencode, sys.argv[1:])
exchange = ctypes.CDLL(None, use_errno=True).renameat2
AT_FDCWD, RENAME_EXCHANGE = -100, 2
print("swapping", flush=True)
while exchange(AT_FDCWD, folder, AT_FDCWD, link, RENAME_EXCHANGE) == 0:
    pass
sys.exit(os.strerror(ctypes.get_errno()))
"""


@contextmanager
def swapping(folder: Path, outside: Path) -> Iterator[None]:
    """Exchange the folder and a link to the other one, again and again; each is always complete."""
    link = folder.parent / "swapped-link"
    link.symlink_to(outside)
    command = [sys.executable, "-c", SWAP, str(folder), str(link)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "swapping\n"
        try:
            yield
            assert process.poll() is None
        finally:
            process.kill()


async def use(context: ToolContext, name: str, **given: Any) -> str:
    """Return the tool's answer, or what it says when it fails."""
    tool = TOOLS[name]
    try:
        return (await tool.run(check_arguments(tool, given, context), context)).text
    except ToolFailed as failed:
        return f"FAILED: {failed}"


@linux
def test_while_a_folder_is_swapped_for_a_link_nothing_outside_is_read_or_written(
    project: Path, outside: Path
) -> None:
    (project / "link").unlink()
    folder = project / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_text("inside\n")
    for path in (folder, outside):  # the agent has read a file that looks like the one outside
        os.utime(path / "a", (1_700_000_000,) * 2)
    context = ToolContext(str(project), dict(os.environ))

    async def attack() -> list[str]:
        answers: list[str] = []
        async with asyncio.timeout(HANG_TIMEOUT_S):
            while len(answers) < 2000 or not seen_both(answers):
                context.read_files[str(folder / "a")] = 1_700_000_000
                number = len(answers)
                answers += [
                    await use(context, "Read", file_path="folder/a"),
                    await use(context, "Write", file_path=f"folder/deep/{number}", content="x"),
                    await use(context, "Write", file_path=f"folder/new-{number}/b", content="x"),
                    await use(context, "Edit", file_path="folder/a", old_string="secret", new_string="x"),
                ]
                if number % 400 == 0:
                    answers.append(await use(context, "Grep", pattern="secret", output_mode="content"))
                    answers.append(await use(context, "Glob", pattern="folder/**"))
        return answers

    def seen_both(answers: list[str]) -> bool:
        return "     1\tinside" in answers and any(" is not allowed: " in answer for answer in answers)

    with swapping(folder, outside):
        answers = asyncio.run(attack())
    assert [answer for answer in answers if "secret" in answer and "old_string" not in answer] == []
    assert contents(outside) == SECRET


@linux
def test_while_a_folder_is_swapped_for_a_link_no_guide_outside_is_read(project: Path, outside: Path) -> None:
    folder = project / "link"
    folder.unlink()
    folder.mkdir()
    (project / "AGENTS.md").symlink_to("link/a")
    with swapping(folder, outside):
        guides = {read_guides(str(project), LOCAL) for _ in range(2000)}
    assert guides == {("", "")}
