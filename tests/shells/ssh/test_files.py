"""The files of another machine are what `os` says of them there: the server is this machine."""

import asyncio
import errno
import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.machines import Machine
from tests.support.remote_files import QuestionCounter, connected_files
from tests.support.servers.ssh import HOST, READS_BASHRC, SSHD, SshServer
from tests.support.shells import start
from tests.support.timeouts import (
    POLL_INTERVAL_S,
    wait_for_slow_machine,
)
from turngate.aio.threads import event_loop_in_thread
from turngate.core.answers.report_types import Exited
from turngate.project.files import Files, MachineUnreachable
from turngate.project.link_safe_files import PathChanged
from turngate.settings.paths import settings_places
from turngate.shells.ssh import files as ssh_files
from turngate.shells.ssh.files import FileChanged, SshFiles
from turngate.shells.ssh.shell import MAX_COMMANDS, SshShell

HOSTILE_NAMES = (
    "two words",
    "-rf",
    "--",
    "line\nbreak",
    "ends with a newline\n",
    "quotes'\"`",
    "$(touch hacked)",
    "back\\slash",
    "*",
    "[a-z]?",
    "ümläut",
    "not UTF-8 \udcff\udcfe",
    "\ttab ",
    "~",
    "#",
    " -> arrow",
)
as_root = os.geteuid() == 0


@pytest.fixture
def files(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshFiles]:
    wait_for_slow_machine(monkeypatch)
    before = set(server.home.iterdir())
    with connected_files() as made:
        yield made
    for path in set(server.home.iterdir()) - before:  # the server is shared
        shutil.rmtree(path)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every kind of file."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "file").write_text("text\n")
    (place / "empty").touch()
    (place / "program").write_text("#!/bin/sh\n")
    (place / "program").chmod(0o4755)
    (place / "sticky").mkdir()
    (place / "sticky").chmod(0o1777)
    (place / "folder" / "inner").mkdir(parents=True)
    (place / "to file").symlink_to("file")
    (place / "to folder").symlink_to("folder")
    (place / "to link").symlink_to("to file")
    (place / "broken").symlink_to("missing")
    (place / "loop").symlink_to("loop")
    (place / "ping").symlink_to("pong")
    (place / "pong").symlink_to("ping")
    os.mkfifo(place / "pipe")
    with socket.socket(socket.AF_UNIX) as listening, monkeypatch.context() as inside:
        inside.chdir(place)  # the path of a socket is short
        listening.bind("socket")
    os.utime(place / "file", ns=(1_500_000_000_123_456_789, 1_600_000_000_987_654_321))
    return place


PATHS = (
    "",
    "file",
    "empty",
    "program",
    "sticky",
    "folder",
    "folder/",
    "folder/inner",
    "folder/../file",
    "to file",
    "to folder",
    "to folder/",
    "to folder/inner",
    "to link",
    "broken",
    "loop",
    "loop/below",
    "ping",
    "pipe",
    "socket",
    "missing",
    "missing/below",
    "file/below",
    "n" * 300,
    "n/" * 3000,
)


def facts(function: Callable[[str], object], path: str) -> object:
    """Return what a function returns or raises, so that it can be compared."""
    try:
        found = function(path)
    except OSError as error:  # the protocol does not tell these apart
        number = errno.ENOENT if error.errno in (errno.ELOOP, errno.ENOTDIR) else error.errno
        return number, os.strerror(number or 0)
    if isinstance(found, os.stat_result):
        return (found.st_mode, found.st_uid, found.st_gid, found.st_size, int(found.st_mtime))
    return sorted(found) if isinstance(found, list) else found


def read_here(path: str) -> bytes:
    if not os.path.isdir(path) and os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return Path(path).read_bytes()


def compare(files: Files, path: str) -> None:
    pairs: tuple[tuple[Callable[[str], object], Callable[[str], object]], ...] = (
        (files.stat, os.stat),
        (files.lstat, os.lstat),
        (files.readlink, os.readlink),
        (files.listdir, os.listdir),
        (files.is_executable, lambda path: os.access(path, os.X_OK)),
        (lambda path: files.read(path, 1_000_000), read_here),
    )
    assert [facts(there, path) for there, _ in pairs] == [facts(here, path) for _, here in pairs]


@pytest.mark.req("S0-105")
def test_every_method_finds_of_every_kind_of_file_what_os_finds(files: SshFiles, place: Path) -> None:
    for path in PATHS:
        compare(files, f"{place}/{path}".removesuffix("/") if not path else f"{place}/{path}")
    # The server of another user runs in a namespace without the owners of these.
    for path in ("/", "/dev/null", "/etc/passwd") if os.getuid() == 0 else ():
        compare(files, path)


def test_a_pipe_is_never_opened(files: SshFiles, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_files, "READ_TIMEOUT_S", 30.0)
    with pytest.raises(OSError, match="it is not a regular file"):
        files.read(str(place / "pipe"), 100)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_name_is_only_a_name(files: SshFiles, place: Path, name: str) -> None:
    path = f"{place}/{name}"
    os.mkdir(path)
    os.symlink(name, f"{path}/{name}")
    Path(f"{path}/file of {name}").write_text(name, errors="surrogateescape")
    os.symlink(f"file of {name}", f"{path}/link to {name}")
    for made in (path, f"{path}/{name}", f"{path}/file of {name}", f"{path}/link to {name}"):
        compare(files, made)
    assert files.replace(f"{path}/new {name}", name.encode("utf-8", "surrogateescape"))
    assert Path(f"{path}/new {name}").read_bytes() == name.encode("utf-8", "surrogateescape")
    assert sorted(file.path for file in files.tree(path, (".git",), 9)[0]) == sorted(
        f"{path}/{found}" for found in os.listdir(path) if os.path.isfile(f"{path}/{found}")
    )
    assert not os.path.exists("/hacked")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
@given(
    names=st.lists(
        st.binary(min_size=1, max_size=20).filter(
            lambda name: not {0, ord("/")} & set(name) and name not in (b".", b"..")
        ),
        unique=True,
        min_size=1,
        max_size=4,
    ),
    content=st.binary(max_size=1000),
)
def test_any_bytes_are_names_and_contents(
    files: SshFiles, tmp_path: Path, names: list[bytes], content: bytes
) -> None:
    folder = tmp_path / "any"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    paths = [f"{folder}/{os.fsdecode(name)}" for name in names]
    for path in paths:
        files.replace(path, content)
    assert sorted(files.listdir(str(folder))) == sorted(os.listdir(folder)) == sorted(map(os.fsdecode, names))
    assert [files.read(path, 1000) for path in paths] == [content for _ in paths]
    assert files.fetch(paths, 1_000_000) == dict.fromkeys(paths, content)


def test_a_large_file_is_read_up_to_the_limit(files: SshFiles, tmp_path: Path) -> None:
    data = os.urandom(5_000_000)
    (tmp_path / "large").write_bytes(data)
    path = str(tmp_path / "large")
    assert files.read(path, 10_000_000) == data
    assert [len(files.read(path, size)) for size in (0, 1, 65_536, 65_537)] == [0, 1, 65_536, 65_537]
    assert files.read(path, 65_537) == data[:65_537]
    file, version = files.open(path)
    with file:
        assert file.read() == data
    assert version == files.inspect(path).version


@pytest.mark.skipif(as_root, reason="root may read everything")
def test_what_may_not_be_read_is_a_permission_error(files: SshFiles, place: Path) -> None:
    (place / "file").chmod(0)
    (place / "folder").chmod(0)
    try:
        for path in ("file", "folder/inner", "to file", "to folder/inner"):
            compare(files, f"{place}/{path}")
        with pytest.raises(PermissionError):
            files.replace(f"{place}/folder/new", b"")
        compare(files.snapshot([f"{place}/folder/inner"]), f"{place}/folder/inner")
    finally:
        (place / "folder").chmod(0o700)


def test_a_lone_surrogate_or_a_nul_is_not_a_path(files: SshFiles) -> None:
    for path in ("/\ud800", "/a\0b"):
        with pytest.raises(ValueError, match=r"surrogates not allowed|embedded null byte"):
            files.stat(path)
    with pytest.raises(OSError, match="File name too long"):
        files.stat("/" + "n" * 1_000_000)


def test_the_event_loop_does_not_wait_for_itself() -> None:
    async def scenario() -> None:
        files = SshFiles(SshShell(HOST), asyncio.get_running_loop(), home="/", environ={})
        with pytest.raises(RuntimeError, match="cannot be read on the event loop: use a thread"):
            files.stat("/")

    asyncio.run(scenario())


def test_files_of_a_session_that_has_ended_are_not_reachable() -> None:
    with event_loop_in_thread() as loop:
        files = SshFiles(SshShell(HOST), loop, home="/", environ={})
    with pytest.raises(MachineUnreachable, match="the session has ended"):
        files.stat("/")


# Writing


def test_a_file_is_replaced_in_one_step_and_keeps_its_mode(files: SshFiles, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o6751)
    before, inode = files.inspect(str(path)), path.stat().st_ino
    version = files.replace(str(path), b"new\0\xff\r\n", before)
    assert path.read_bytes() == b"new\0\xff\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o6751
    assert path.stat().st_ino != inode
    assert version == files.inspect(str(path)).version
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_folders_are_made_only_when_asked(files: SshFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b" / "file")
    with pytest.raises(FileNotFoundError):
        files.replace(path, b"new")
    files.replace(path, b"new", make_folders=True)
    assert Path(path).read_text() == "new"
    assert os.listdir(tmp_path / "a" / "b") == ["file"]


def test_another_file_than_was_inspected_is_not_replaced(files: SshFiles, place: Path) -> None:
    path = str(place / "file")
    before = files.inspect(path)
    with pytest.raises(FileChanged):
        files.replace(path, b"new")
    (place / "file").write_text("changed")
    with pytest.raises(FileChanged):
        files.replace(path, b"new", before)
    os.remove(path)
    with pytest.raises(FileChanged):
        files.replace(path, b"new", before)
    os.symlink("elsewhere", path)
    with pytest.raises(PathChanged):
        files.replace(path, b"new")
    with pytest.raises(PathChanged):
        files.replace(str(place / "to folder" / "new"), b"new")
    with pytest.raises(NotADirectoryError):
        files.replace(str(place / "empty" / "new"), b"new")
    assert os.listdir(place / "folder") == ["inner"]
    assert not [name for name in os.listdir(place) if name.startswith(".turngate")]


@pytest.mark.skipif(as_root, reason="root may write everywhere")
def test_a_folder_without_write_access_keeps_its_files(files: SshFiles, place: Path) -> None:
    (place / "folder").chmod(0o500)
    with pytest.raises(PermissionError):
        files.replace(f"{place}/folder/new", b"new")
    assert os.listdir(place / "folder") == ["inner"]


def test_a_full_disk_leaves_the_old_file_and_no_other(
    files: SshFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise asyncssh.SFTPFailure("Failure")

    async def statvfs(*_: object) -> asyncssh.SFTPVFSAttrs:
        return asyncssh.SFTPVFSAttrs(bavail=0)

    (tmp_path / "old").write_text("old")
    before = files.inspect(f"{tmp_path}/old")
    monkeypatch.setattr(asyncssh.SFTPClientFile, "write", fail)
    with pytest.raises(OSError, match="the machine reports: Failure"):
        files.replace(f"{tmp_path}/new", b"new")
    monkeypatch.setattr(asyncssh.SFTPClient, "statvfs", statvfs)
    for name, state in (("new", None), ("old", before)):
        with pytest.raises(OSError, match="No space left on device"):
            files.replace(f"{tmp_path}/{name}", b"new", state)
    assert (os.listdir(tmp_path), (tmp_path / "old").read_text()) == (["old"], "old")


@pytest.mark.skipif(SSHD is None, reason="the processes of asyncssh's server cannot be killed one by one")
def test_a_connection_that_is_lost_while_writing_leaves_no_temporary_file(
    files: SshFiles, server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, seen = asyncssh.SFTPClientFile.write, []

    async def write_and_lose(file: asyncssh.SFTPClientFile, data: bytes) -> int:
        await write(file, data)
        seen.extend(os.listdir(tmp_path))
        server.cut_connections()
        return await write(file, data)

    monkeypatch.setattr(asyncssh.SFTPClientFile, "write", write_and_lose)
    with pytest.raises(MachineUnreachable, match="the connection to box was lost"):
        files.replace(f"{tmp_path}/new", b"new")
    assert [name.startswith(".turngate-") for name in seen] == [True]
    assert os.listdir(tmp_path) == []


# Many files


def test_a_tree_has_all_files_but_those_below_skipped_folders(files: SshFiles, place: Path) -> None:
    (place / "folder" / ".git" / "objects").mkdir(parents=True)
    (place / "folder" / ".git" / "config").touch()
    (place / "folder" / "inner" / "deep").write_text("deep")
    tree, is_deeper = files.tree(str(place), (".git", "other"), 2)
    found = {file.path.removeprefix(f"{place}/"): (int(file.stat.st_mtime), file.is_link) for file in tree}
    names = [*os.listdir(place), "folder/inner/deep"]
    expected = {
        name: (int(os.stat(place / name).st_mtime), os.path.islink(place / name))
        for name in names
        if os.path.isfile(place / name)
    }
    assert (found, is_deeper) == (expected, False)
    tree, is_deeper = files.tree(str(place), (".git",), 1)
    assert ({file.path for file in tree} & {f"{place}/folder/inner/deep"}, is_deeper) == (set(), True)


def test_a_tree_begins_at_a_folder(files: SshFiles, place: Path) -> None:
    for name, error in (
        ("missing", FileNotFoundError),
        ("to folder", PathChanged),
        ("file", NotADirectoryError),
        ("pipe", NotADirectoryError),
    ):
        with pytest.raises(error):
            files.tree(f"{place}/{name}", (".git",), 9)


def test_a_tree_with_too_many_files_is_an_error(
    files: SshFiles, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_files, "MAX_ENTRIES", 5)
    with pytest.raises(OSError, match="there are more than 5 files"):
        files.tree(str(place), (), 9)


def test_files_that_cannot_be_read_are_not_fetched(files: SshFiles, place: Path) -> None:
    names = ("file", "pipe", "missing", "empty", "folder", "to file")
    found = files.fetch([f"{place}/{name}" for name in names], 1_000_000)
    assert found == {f"{place}/file": b"text\n", f"{place}/empty": b""}
    with pytest.raises(PathChanged):
        files.fetch([f"{place}/to folder/x"], 100)


# A snapshot


def test_a_snapshot_finds_the_same_with_one_question(
    counter: QuestionCounter, files: SshFiles, place: Path, server: SshServer
) -> None:
    project, home = place / "project", server.home
    for folder in (project, home):
        (folder / ".turngate" / "gates" / "deep" / "deeper" / "deepest").mkdir(parents=True, exist_ok=True)
        (folder / ".turngate" / "settings.json").write_text("{}")
        (folder / ".turngate" / "large").write_bytes(b"x" * 70_000)
        (folder / ".turngate" / "gates" / "check").write_text("#!/bin/sh\n")
        (folder / ".turngate" / "gates" / "check").chmod(0o755)
    (project / ".claude").symlink_to("../folder")
    (project / "CLAUDE.md").write_text("Be brief.")
    (place / "folder" / "settings.json").write_text('{"hooks": {}}')
    os.mkfifo(project / ".turngate" / "pipe")
    (project / ".turngate" / "link").symlink_to("settings.json")
    (project / ".turngate" / "broken").symlink_to("missing")
    (project / ".turngate" / "line\nbreak \udcff").write_text("hostile")
    (project / "src" / "deep").mkdir(parents=True)

    paths = [str(project), f"{project}/CLAUDE.md", f"{project}/AGENTS.md", "/etc/claude-code/x", str(place)]
    for folder in (project, home):
        for root in (".turngate", ".mux", ".claude"):
            inner = os.listdir(folder / root) if (folder / root).is_dir() else []
            paths += [f"{folder}/{root}", f"{folder}/{root}/missing/file"]
            paths += [f"{folder}/{root}/{name}" for name in (*inner, "missing", "settings.json")]
        paths += [f"{folder}/.turngate/gates/{name}" for name in ("check", "deep", "deep/deeper/deepest")]
    paths += [f"{project}/{name}" for name in ("src", "src/deep", "src/missing", "other", "other/file")]
    calls = counter.count
    found = settings_snapshot_of(files, project)
    assert counter.count == calls + 1
    assert sorted(found.listdir(str(project))) == sorted(os.listdir(project))
    assert counter.count == calls + 1
    for path in paths:
        compare(found, path)
    # Six questions about each. Asked are large contents, what is deeper, links, and errors that only the system knows.
    assert counter.count - calls < 2 * len(paths)


def settings_snapshot_of(files: SshFiles, project: Path) -> Files:
    return files.snapshot(settings_places(files, str(project)))


def test_a_missing_place_costs_no_further_question(
    counter: QuestionCounter, files: SshFiles, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / ".turngate").mkdir(parents=True)
    (project / ".turngate" / "settings.json").write_text("{}")
    found = settings_snapshot_of(files, project)
    calls = counter.count

    for name in (".mux", ".claude/settings.json", ".turngate/x/y", "AGENTS.md", ".turngate/gates"):
        with pytest.raises(FileNotFoundError):
            found.stat(f"{project}/{name}")
        assert not found.is_executable(f"{project}/{name}")
    assert found.listdir(f"{project}/.turngate") == ["settings.json"]
    assert found.read(f"{project}/.turngate/settings.json", 100) == b"{}"
    assert counter.count == calls


def test_a_path_is_resolved_there_with_one_question(
    counter: QuestionCounter, files: SshFiles, place: Path
) -> None:
    assert files.resolve(f"{place}/folder/inner/new") == f"{place}/folder/inner/new"
    assert counter.count == 1


def test_paths_behind_links_are_those_of_this_machine(files: SshFiles, place: Path) -> None:
    (place / "far").symlink_to(place / "to folder")
    paths = [f"{place}/{name}" for name in ("far/inner/x", "to folder/../file", "broken/x")]
    assert list(map(files.resolve, paths)) == list(map(os.path.realpath, paths))
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        files.resolve(f"{place}/loop/x")


# A connection that is dead


def _stop(processes: list[int], number: signal.Signals) -> None:
    for pid in processes:
        os.kill(pid, number)


@pytest.mark.skipif(SSHD is None, reason="the processes of asyncssh's server cannot be stopped one by one")
@pytest.mark.req("X-32")
def test_a_dead_link_is_waited_for_once(
    counter: QuestionCounter, server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected_files() as files:
        monkeypatch.setattr(ssh_files, "PAUSE_S", 1000.0)
        files.is_executable("/bin/sh")
        stopped = server.connections()
        assert stopped
        monkeypatch.setattr(ssh_files, "EXISTENCE_TIMEOUT_S", 2.0)
        _stop(stopped, signal.SIGSTOP)
        try:
            start = time.monotonic()
            with pytest.raises(MachineUnreachable, match="the machine did not answer within 2 s"):
                files.stat("/")
            waited = time.monotonic() - start
            assert waited >= ssh_files.EXISTENCE_TIMEOUT_S
            for function in (files.stat, files.lstat, files.readlink, files.listdir, files.is_executable):
                with pytest.raises(MachineUnreachable, match="the machine did not answer within 2 s"):
                    function("/")
            with pytest.raises(MachineUnreachable):
                files.isfile("/etc/passwd")
            assert counter.count == 2  # one that was answered, and one that was waited for
        finally:
            _stop(stopped, signal.SIGCONT)
        monkeypatch.setattr(ssh_files, "EXISTENCE_TIMEOUT_S", 100.0)
        monkeypatch.setattr(ssh_files, "PAUSE_S", 0.0)
        assert stat.S_ISDIR(files.stat("/").st_mode)
        assert stopped[0] in server.connections()  # it did not wait until the connection was given up


def test_a_command_without_a_channel_has_not_begun(ssh_machine: Machine, tmp_path: Path) -> None:
    """The others end when the file is there, so a command that begins after one of them finds it."""

    async def scenario() -> Exited:
        commands = [start(ssh_machine.shell, HOLD, cwd=tmp_path) for _ in range(MAX_COMMANDS)]
        held = asyncio.gather(*commands)
        while len(os.listdir(tmp_path)) < MAX_COMMANDS:
            await asyncio.sleep(POLL_INTERVAL_S)
        late = asyncio.ensure_future(start(ssh_machine.shell, "ls go", cwd=tmp_path))
        await asyncio.sleep(0)
        (tmp_path / "go").touch()
        await held
        return await late

    assert ssh_machine.run(scenario()) == Exited(0, "go\n")


needs_bash = pytest.mark.skipif(not READS_BASHRC, reason="only bash reads .bashrc when sshd starts it")


HOLD = 'touch "ready-$$"; while [ ! -e go ]; do sleep 0.05; done'


@pytest.mark.skipif(SSHD is None, reason="the processes of asyncssh's server cannot be killed one by one")
def test_a_connection_that_was_lost_is_opened_again(files: SshFiles, server: SshServer) -> None:
    assert files.is_executable("/bin/sh")
    server.cut_connections()
    assert files.is_executable("/bin/sh")


def test_a_server_that_is_gone_is_named(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_slow_machine(monkeypatch)
    server = SshServer(tmp_path / "own")
    server.configure_client(home)
    server.start()
    with connected_files() as files:
        assert files.is_executable("/bin/sh")
        server.kill()
        with pytest.raises(
            MachineUnreachable, match=r"no SSH server listens on box|the connection to box was lost"
        ):
            files.listdir("/")
