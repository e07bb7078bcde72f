"""The tools on a project of another machine: what tests/agent/test_tools.py cannot compare with this machine."""

import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from tests.support.machines import Machine, SshMachine
from tests.support.remote_files import remote_context, run_where
from tests.support.servers.ssh import SSHD, SshServer
from tests.support.timeouts import wait_for_slow_machine
from turngate.agent.tools import TOOLS, ToolContext, ToolFailed, check_arguments, files, remote_search
from turngate.agent.tools.remote_search import find_files, read_files
from turngate.aio.threads import run_in_thread
from turngate.core.conversation.tools import ToolOutput
from turngate.project.link_safe_files import PathChanged


@pytest.fixture
def place(ssh_machine: Machine, project: Path, monkeypatch: pytest.MonkeyPatch) -> ToolContext:
    wait_for_slow_machine(monkeypatch)
    return remote_context(ssh_machine, project)


def use(place: ToolContext, name: str, **given: Any) -> str:
    return output(place, name, **given).text


def output(place: ToolContext, name: str, **given: Any) -> ToolOutput:
    async def scenario() -> ToolOutput:
        tool = TOOLS[name]
        try:
            return await tool.run(await place.call(check_arguments, tool, given, place), place)
        except ToolFailed as failed:
            return ToolOutput(str(failed), is_error=True)

    return run_where(place, scenario())


# A machine whose files are not here


@pytest.mark.req("S0-105")
def test_a_project_that_is_not_on_this_machine_is_read_written_and_searched(other_machine: SshServer) -> None:
    folder, machine = other_machine.home / "app", SshMachine()
    folder.mkdir()
    machine.connect()
    path = other_machine.path_there(folder)
    place = remote_context(machine, path)
    said = [
        use(place, "Write", file_path="src/a.py", content="one = 1\n"),
        use(place, "Read", file_path=f"{path}/src/a.py"),
        use(place, "Edit", file_path="src/a.py", old_string="1", new_string="2"),
        use(place, "Grep", pattern="one", output_mode="content"),
        use(place, "Grep", pattern="on. = [0-9]", path="src/a.py", output_mode="count"),
        use(place, "Glob", pattern="**/*.py"),
        use(place, "Glob", pattern="*.py", path=f"{path}/src"),
        use(place, "Read", file_path="~/secret"),
        use(place, "Read", file_path="../../secret"),
    ]
    machine.close()
    written = (folder / "src" / "a.py").read_text()
    shutil.rmtree(folder)
    home = other_machine.path_there(other_machine.home)
    assert (written, said) == (
        "one = 2\n",
        [
            f"Created {path}/src/a.py",
            "     1\tone = 1",
            f"Changed {path}/src/a.py in 1 place",
            f"{path}/src/a.py:1:one = 2",
            f"{path}/src/a.py:1",
            f"{path}/src/a.py",
            f"{path}/src/a.py",
            f"{home}/secret is not allowed: it is outside of the project {path}",
            f"{os.path.dirname(home)}/secret is not allowed: it is outside of the project {path}",
        ],
    )


# The same as here


def test_whole_outputs_are_those_of_this_machine(place: ToolContext, project: Path) -> None:
    """Also what hooks get, and for hostile names."""
    here = ToolContext(str(project), dict(os.environ))
    for number, name in enumerate(("a b", "-e", "two\nlines", "*", "$(x)", "ü", "deep/er/x.py", "empty.py")):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("" if name == "empty.py" else f"needle {number}\nNEEDLE\n")
        os.utime(project / name, ns=(0, (1_700_000_000 + number) * 10**9))
    (project / "link.py").symlink_to("a b")
    (project / "broken.py").symlink_to("gone")
    uses: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Read", {"file_path": "two\nlines"}),
        ("Read", {"file_path": "gone"}),
        ("Glob", {"pattern": "**"}),
        ("Glob", {"pattern": "*"}),
        ("Glob", {"pattern": "**/*.{py,txt}"}),
        ("Glob", {"pattern": "**/?.py"}),
        ("Glob", {"pattern": "{" * 40 + "x"}),
        ("Glob", {"pattern": "**/{a,b}{c,d}{e,f}{g,h}{i,j}"}),
        ("Glob", {"pattern": "ü"}),
        ("Grep", {"pattern": "needle"}),
        ("Grep", {"pattern": "needle", "-i": True, "output_mode": "count"}),
        ("Grep", {"pattern": r"\bneedle\b", "output_mode": "content"}),
        ("Grep", {"pattern": "[0-9]$", "output_mode": "content", "glob": "*.py"}),
        ("Grep", {"pattern": "e 1", "path": "-e", "output_mode": "content"}),
        ("Grep", {"pattern": "-e"}),
        ("Grep", {"pattern": "needle", "glob": "[a-z]*"}),
    )
    for name, given in uses:
        assert (given, output(place, name, **given)) == (given, output(here, name, **given))


def test_a_link_that_appeared_after_the_check_is_never_used(place: ToolContext, project: Path) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "a").write_text("secret")
    (project / "link").symlink_to(outside)
    (project / "file").symlink_to(outside / "a")
    there = place.files
    for path in (f"{project}/link/a", f"{project}/file"):
        place.read_files[path] = run_where(place, run_in_thread(there.inspect, f"{outside}/a")).version
        for call in (
            run_in_thread(files._read, path, place, 1, 10),
            run_in_thread(files._write, path, place, b"x"),
            run_in_thread(files._edit, path, place, "secret", "x", False),
        ):
            with pytest.raises(PathChanged):
                run_where(place, call)
    with pytest.raises(PathChanged):
        run_where(place, run_in_thread(files._write, f"{project}/link/new", place, b"x"))
    query = {"tool": "Grep", "path": "link", "resolved": f"{project}/link", "pattern": "secret"}
    with pytest.raises(ToolFailed, match="has just been replaced by a link"):
        run_where(place, run_in_thread(find_files, there, query))
    assert (os.listdir(outside), (outside / "a").read_text()) == (["a"], "secret")


def test_a_file_is_read_on_where_the_first_command_ended(place: ToolContext, project: Path) -> None:
    lines = [f"{number:06} " + "x" * 93 for number in range(30_000)]
    (project / "large").write_text("\n".join(lines))
    said = use(place, "Read", file_path="large", offset=29_990, limit=100)
    assert said == "\n".join(f"{n + 1:>6}\t{lines[n]}" for n in range(29_989, 30_000))


# Searches


def test_names_that_another_machine_reports_never_leave_the_folder(
    place: ToolContext, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scandir(sftp: asyncssh.SFTPClient, folder: str) -> AsyncIterator[asyncssh.SFTPName]:
        for name in ("../victim", f"{tmp_path}/victim", "..", ".", "", "a\0b", "sub/x", "good"):
            yield asyncssh.SFTPName(name, attrs=await sftp.stat(f"{folder}/good"))

    temporary = tmp_path / "temporary" / "inner"
    temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(asyncssh.SFTPClient, "scandir", scandir)
    for path in (project / "good", project / "sub" / "x", project.parent / "victim"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("a needle")
    found = [use(place, "Grep", pattern="[n]eedle"), use(place, "Glob", pattern="**")]
    assert found == [f"{project}/good"] * 2
    assert list((tmp_path / "temporary").rglob("*")) == [temporary]


def test_a_search_leaves_nothing_here(
    place: ToolContext, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (project / "a").write_text("needle")
    assert use(place, "Grep", pattern="needle") == f"{project}/a"
    assert use(place, "Grep", pattern="(") != ""
    assert use(place, "Glob", pattern="*", path="gone") == f"{project}/gone does not exist"
    assert os.listdir(temporary) == []


def test_a_file_that_changes_during_the_search_is_searched_as_it_is(
    place: ToolContext, project: Path
) -> None:
    for name in ("a", "b", "c", "d"):
        (project / name).write_text(f"old {name}")
    query = {"tool": "Grep", "path": str(project), "resolved": str(project), "pattern": "(old|new)"}

    def read_while_it_changes() -> list[tuple[str, bytes]]:
        found = find_files(place.files, query)
        (project / "b").write_text("new" * 100_000)
        (project / "c").unlink()
        return [(path, data[:5]) for path, data in read_files(place.files, found, query)]

    found = run_where(place, run_in_thread(read_while_it_changes))
    assert found == [
        (f"{project}/a", b"old a"),
        (f"{project}/b", b"newne"),
        (f"{project}/d", b"old d"),
    ]


def test_too_much_to_search_names_the_programs_there(
    place: ToolContext, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.py", "b.py", "c.txt"):
        (project / name).write_text("needle" * 1000)
    monkeypatch.setattr(remote_search, "MAX_FILES", 2)
    monkeypatch.setattr(remote_search, "MAX_BYTES", 10_000)
    narrower = "make it narrower with `path` or `glob`, or use `grep` in Bash"
    assert [
        sorted(use(place, "Glob", pattern="*").split("\n")),
        use(place, "Grep", pattern="[n]eedle"),
        use(place, "Grep", pattern="[n]eedle", glob="*.py"),
        use(place, "Grep", pattern="no such text", glob="*.py"),
    ] == [
        [f"{project}/{name}" for name in ("a.py", "b.py", "c.txt")],
        f"{project} has 3 files, which is too much for Grep on another machine: {narrower}",
        f"{project} has 0 MiB to search, which is too much for Grep on another machine: {narrower}",
        "No matches found",
    ]
    (project / "large").write_text("needle" * 2000)
    assert use(place, "Grep", pattern="needle", path="large") == (
        f"{project}/large has more than 0 MiB, which is too much for Grep on another machine: {narrower}"
    )


# A machine that does not answer


@pytest.mark.skipif(SSHD is None, reason="the processes of asyncssh's server cannot be stopped one by one")
@pytest.mark.req("X-32")
def test_tools_on_a_dead_link_fail_with_a_sentence(
    ssh_machine: Machine, server: SshServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = remote_context(ssh_machine, project)
    monkeypatch.setattr("turngate.shells.ssh.files.EXISTENCE_TIMEOUT_S", 2.0)
    stopped = server.connections()
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        said = [
            use(place, "Read", file_path="a"),
            use(place, "Write", file_path="a", content="x"),
            use(place, "Grep", pattern="x"),
        ]
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert said[0] == f"{project}/a cannot be used: the machine did not answer within 2 s"
    assert said[1:] == [said[0], f"{project} cannot be used: the machine did not answer within 2 s"]
