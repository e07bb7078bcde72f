"""The files of another machine are what `os` says of them there: the server is this machine."""

import asyncio
import errno
import math
import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.machines import Machine
from tests.support.remote_files import CommandCounter, connected_files
from tests.support.servers.ssh import READS_BASHRC, SSHD, SshServer, ssh_server
from tests.support.shells import start
from tests.support.timeouts import (
    HANG_TIMEOUT_S,
    NEVER_S,
    POLL_INTERVAL_S,
    TIMEOUT_SCALES,
    wait_for_slow_machine,
)
from turngate.aio.threads import event_loop_in_thread, run_in_thread
from turngate.core.answers.reports import Exited
from turngate.filesystem import files as current
from turngate.filesystem.descent import PathChanged
from turngate.filesystem.files import MachineUnreachable
from turngate.filesystem.real_path import resolve
from turngate.filesystem.snapshot import MAX_LOOK_UPS, Snapshot, look_up, take_snapshot
from turngate.ports import HookRunContext, call_with_files
from turngate.settings.snapshot import settings_places
from turngate.shells.local import LocalShell
from turngate.shells.remote_files import files as remote_files
from turngate.shells.remote_files import script_runner
from turngate.shells.remote_files.files import RemoteFiles
from turngate.shells.remote_files.script_runner import Limit
from turngate.shells.remote_files.scripts import NO_STAT, FileChanged, parse_stat
from turngate.shells.ssh.shell import MAX_COMMANDS

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
def files(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteFiles]:
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
    except OSError as error:
        return type(error), error.errno, error.strerror
    if isinstance(found, os.stat_result):
        times = (found.st_mtime, found.st_mtime_ns, found.st_ctime, found.st_ctime_ns)
        return (*found[:7], found[8], found[9], *times)
    return sorted(found) if isinstance(found, list) else found


def read_here(path: str) -> bytes:
    if not os.path.isdir(path) and os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return Path(path).read_bytes()


def compare(files: current.Files, path: str) -> None:
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
def test_every_method_finds_of_every_kind_of_file_what_os_finds(files: RemoteFiles, place: Path) -> None:
    for path in PATHS:
        compare(files, f"{place}/{path}".removesuffix("/") if not path else f"{place}/{path}")
    for path in ("/", "/dev/null", "/etc/passwd"):
        compare(files, path)


def test_a_pipe_is_never_opened(files: RemoteFiles, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.stat_kind()
    monkeypatch.setattr(remote_files, "READ_TIMEOUT_S", 30.0)
    with pytest.raises(OSError, match="it is not a regular file"):
        files.read(str(place / "pipe"), 100)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_name_is_only_a_name(files: RemoteFiles, place: Path, name: str) -> None:
    path = f"{place}/{name}"
    os.mkdir(path)
    os.symlink(name, f"{path}/{name}")
    Path(f"{path}/file of {name}").write_text(name, errors="surrogateescape")
    os.symlink(f"file of {name}", f"{path}/link to {name}")
    for made in (path, f"{path}/{name}", f"{path}/file of {name}", f"{path}/link to {name}"):
        compare(files, made)
    assert files.replace(f"{path}/new {name}", name.encode("utf-8", "surrogateescape"))
    assert Path(f"{path}/new {name}").read_bytes() == name.encode("utf-8", "surrogateescape")
    assert sorted(file.path for file in files.tree(path, (".git",), (), 9)[0]) == sorted(
        f"{path}/{found}" for found in os.listdir(path)
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
    files: RemoteFiles, tmp_path: Path, names: list[bytes], content: bytes
) -> None:
    folder = tmp_path / "any"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    paths = [f"{folder}/{os.fsdecode(name)}" for name in names]
    for path in paths:
        files.replace(path, content)
    assert sorted(files.listdir(str(folder))) == sorted(os.listdir(folder)) == sorted(map(os.fsdecode, names))
    assert [files.read(path, 1000) for path in paths] == [content for _ in paths]
    fetched = files.fetch(paths, 1_000_000)
    assert {found.path: found.data for found in fetched} == dict.fromkeys(paths, content)


def test_a_large_file_is_read_up_to_the_limit(files: RemoteFiles, tmp_path: Path) -> None:
    data = os.urandom(5_000_000)
    (tmp_path / "large").write_bytes(data)
    path = str(tmp_path / "large")
    assert files.read(path, 10_000_000) == data
    assert [len(files.read(path, size)) for size in (0, 1, 65_536, 65_537)] == [0, 1, 65_536, 65_537]
    assert files.read(path, 65_537) == data[:65_537]
    part, version = files.read_blocks(path, 2, 3)
    assert part == data[2 * 65_536 : 5 * 65_536]
    assert version == files.inspect(path).version


@pytest.mark.skipif(as_root, reason="root may read everything")
def test_what_may_not_be_read_is_a_permission_error(files: RemoteFiles, place: Path) -> None:
    (place / "file").chmod(0)
    (place / "folder").chmod(0)
    try:
        for path in ("file", "folder", "folder/inner", "to file", "to folder/inner"):
            compare(files, f"{place}/{path}")
        with pytest.raises(PermissionError):
            files.replace(f"{place}/folder/new", b"")
        compare(take_snapshot(files, [f"{place}/folder/inner"]), f"{place}/folder/inner")
    finally:
        (place / "folder").chmod(0o700)


def test_a_lone_surrogate_or_a_nul_is_not_a_path(files: RemoteFiles) -> None:
    for path in ("/\ud800", "/a\0b"):
        with pytest.raises(ValueError, match=r"surrogates not allowed|embedded null byte"):
            files.stat(path)
    with pytest.raises(OSError, match="File name too long"):
        files.stat("/" + "n" * 1_000_000)


def test_the_event_loop_does_not_wait_for_itself() -> None:
    async def scenario() -> None:
        files = RemoteFiles(LocalShell(), asyncio.get_running_loop(), home="/", environ={})
        with pytest.raises(RuntimeError, match="cannot be read on the event loop: use a thread"):
            files.stat("/")

    asyncio.run(scenario())


def test_files_of_a_session_that_has_ended_are_not_reachable() -> None:
    with event_loop_in_thread() as loop:
        files = RemoteFiles(LocalShell(), loop, home="/", environ={})
    with pytest.raises(MachineUnreachable, match="the session has ended"):
        files.stat("/")


# Machines with another `stat`, or none

BSD_STAT = r"""#!/bin/sh
# stat of FreeBSD: other letters, -L falls back on the link itself.
follow=
[ "$1" = -L ] && { follow=-L; shift; }
[ "$1" = -f ] || exit 1
shift
[ "$1" = "%p" ] && exec /usr/bin/stat -c %f "$2"
[ "$1" = "%z %Fm" ] && format='%s %.9Y' || format='%f %i %d %h %u %g %s %.9X %.9Y %.9Z %n'
shift 2
for name do
/usr/bin/stat $follow -c "$format" -- "$name" 2>/dev/null || /usr/bin/stat -c "$format" -- "$name"
done
"""
NO_PROGRAM = "#!/bin/sh\nexit 127\n"


@pytest.mark.skipif(not os.path.exists("/usr/bin/stat"), reason="needs the stat of GNU, to look like another")
def test_the_stat_of_bsd_finds_the_same(
    server: SshServer, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_slow_machine(monkeypatch)
    with connected_files(PATH=_with_program(tmp_path, "stat", BSD_STAT)) as files:
        assert files.stat_kind() == "bsd"
        for path in PATHS[:-2]:
            compare(files, f"{place}/{path}")


def _with_program(folder: Path, name: str, text: str) -> str:
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / name).write_text(text)
    (programs / name).chmod(0o755)
    return f"{programs}:/usr/bin:/bin"


def test_without_stat_all_but_the_times_and_the_device_is_known(
    server: SshServer, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_slow_machine(monkeypatch)
    with connected_files(PATH=_with_program(tmp_path, "stat", NO_PROGRAM)) as files:
        assert files.stat_kind() == NO_STAT
        for path in PATHS[:-2]:
            for there, here in ((files.stat, os.stat), (files.lstat, os.lstat)):
                assert _without_times(facts(there, f"{place}/{path}")) == _without_times(
                    facts(here, f"{place}/{path}")
                )
        assert stat.S_ISCHR(files.stat("/dev/null").st_mode)
        before = files.inspect(f"{place}/file")
        (place / "file").write_text("TEXT\n")  # of the same size
        with pytest.raises(FileChanged):
            files.replace(f"{place}/file", b"new", before)
        assert files.replace(f"{place}/file", b"new", files.inspect(f"{place}/file"))
        assert (place / "file").read_text() == "new"


def _without_times(found: object) -> object:
    return (*found[:2], *found[3:7]) if isinstance(found, tuple) and len(found) > 3 else found


def test_output_that_is_not_that_of_stat_is_an_error() -> None:
    for stat_kind in ("gnu", NO_STAT):
        with pytest.raises(ValueError, match="not the output of stat: 'nonsense'"):
            parse_stat("nonsense", stat_kind)


# Writing


def test_a_file_is_replaced_in_one_step_and_keeps_its_mode(files: RemoteFiles, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o6751)
    before = files.inspect(str(path))
    version = files.replace(str(path), b"new\0\xff\r\n", before)
    assert path.read_bytes() == b"new\0\xff\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o6751
    assert path.stat().st_ino != before.stat.st_ino
    assert version == files.inspect(str(path)).version
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_folders_are_made_only_when_asked(files: RemoteFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "b" / "file")
    with pytest.raises(FileNotFoundError):
        files.replace(path, b"new")
    files.replace(path, b"new", make_folders=True)
    assert Path(path).read_text() == "new"
    assert os.listdir(tmp_path / "a" / "b") == ["file"]


def test_another_file_than_was_inspected_is_not_replaced(files: RemoteFiles, place: Path) -> None:
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


def test_a_full_disk_leaves_the_old_file_and_no_other(
    server: SshServer, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/dev/full is what `cat` finds when the disk is full."""
    wait_for_slow_machine(monkeypatch)
    full = '#!/bin/sh\n[ $# -gt 0 ] || exec >/dev/full\nexec /bin/cat "$@"\n'
    with connected_files(PATH=_with_program(tmp_path, "cat", full)) as files:
        names = sorted(os.listdir(place))
        with pytest.raises(OSError, match="No space left on device"):
            files.replace(f"{place}/file", b"new", files.inspect(f"{place}/file"))
        with pytest.raises(OSError, match="No space left on device"):
            files.replace(f"{place}/new", b"new")
    assert (place / "file").read_text() == "text\n"
    assert sorted(os.listdir(place)) == names


@pytest.mark.skipif(as_root, reason="root may write everywhere")
def test_a_folder_without_write_access_keeps_its_files(files: RemoteFiles, place: Path) -> None:
    (place / "folder").chmod(0o500)
    with pytest.raises(PermissionError):
        files.replace(f"{place}/folder/new", b"new")
    assert os.listdir(place / "folder") == ["inner"]


# Many files


def test_a_tree_has_all_files_but_those_below_skipped_folders(files: RemoteFiles, place: Path) -> None:
    (place / "folder" / ".git" / "objects").mkdir(parents=True)
    (place / "folder" / ".git" / "config").touch()
    (place / "folder" / "inner" / "deep").write_text("deep")
    skipped = (".git", "other")
    tree, is_deeper = files.tree(str(place), skipped, (), 2)
    found = {file.path.removeprefix(f"{place}/"): file for file in tree}
    expected = {*os.listdir(place), "folder/inner/deep"} - {"folder", "sticky"}
    assert (set(found), is_deeper) == (expected, False)
    times = {name: file.stat.st_mtime_ns for name, file in found.items() if file.stat}
    assert times == {
        name: os.stat(place / name).st_mtime_ns for name in expected if os.path.exists(place / name)
    }
    kinds = {name: file.kind for name, file in found.items() if file.kind != "f"}
    links = {name: "l" for name in expected if os.path.islink(place / name)}
    assert kinds == {**links, "pipe": "o", "socket": "o"}
    named, is_deeper = files.tree(str(place), skipped, ("*ee*", "file"), 1)
    assert ([file.path for file in named], is_deeper) == (
        [path for path in (file.path for file in tree) if path.endswith(("/file", "/deep"))],
        True,
    )


def test_a_tree_begins_at_a_folder(files: RemoteFiles, place: Path) -> None:
    for name, error in (
        ("missing", FileNotFoundError),
        ("to folder", PathChanged),
        ("file", NotADirectoryError),
        ("pipe", NotADirectoryError),
    ):
        with pytest.raises(error):
            files.tree(f"{place}/{name}", (".git",), (), 9)


def test_files_with_a_text_are_found_there(files: RemoteFiles, place: Path) -> None:
    (place / "folder" / ".git").mkdir()
    for name in ("folder/.git/config", "folder/inner/-e", "binary"):
        (place / name).write_bytes(b"\0-n text \xff")
    found = files.search(str(place), (".git",), "-n text")
    assert sorted(found) == [f"{place}/binary", f"{place}/folder/inner/-e"]


def test_files_that_cannot_be_read_are_not_fetched(files: RemoteFiles, place: Path) -> None:
    names = ("file", "pipe", "missing", "empty", "folder", "to file")
    found = files.fetch([f"{place}/{name}" for name in names], 1_000_000)
    assert [(content.path.removeprefix(f"{place}/"), content.data) for content in found] == [
        ("file", b"text\n"),
        ("empty", b""),
        ("to file", b"text\n"),
    ]


# A snapshot


def test_a_snapshot_finds_the_same_with_one_command(
    counter: CommandCounter, files: RemoteFiles, place: Path, server: SshServer
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

    paths = [str(project), f"{project}/CLAUDE.md", f"{project}/AGENTS.md", "/etc/claude-code/x", str(place)]
    for folder in (project, home):
        for root in (".turngate", ".mux", ".claude"):
            inner = os.listdir(folder / root) if (folder / root).is_dir() else []
            paths += [f"{folder}/{root}", f"{folder}/{root}/missing/file"]
            paths += [f"{folder}/{root}/{name}" for name in (*inner, "missing", "settings.json")]
        paths += [f"{folder}/.turngate/gates/{name}" for name in ("check", "deep", "deep/deeper/deepest")]
    (project / "src" / "deep").mkdir(parents=True)
    paths += [f"{project}/{name}" for name in ("src", "src/deep", "src/missing", "other", "other/file")]
    files.stat_kind()
    calls = counter.count
    found = settings_snapshot_of(files, project)
    assert counter.count == calls + 1
    assert sorted(found.listdir(str(project))) == sorted(os.listdir(project))
    assert counter.count == calls + 1
    for path in paths:
        compare(found, path)
    # Six questions about each. Asked are large contents, what is deeper, links, and errors that only the system knows.
    assert counter.count - calls < 2 * len(paths)


def settings_snapshot_of(files: RemoteFiles, project: Path) -> Snapshot:
    places = call_with_files(files, settings_places, str(project))
    return take_snapshot(files, places)


def test_a_missing_place_costs_no_further_command(
    counter: CommandCounter, files: RemoteFiles, tmp_path: Path
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


def test_some_files_are_read_with_one_command(
    counter: CommandCounter, files: RemoteFiles, place: Path
) -> None:
    files.stat_kind()
    calls = counter.count
    found = take_snapshot(files, [f"{place}/file", f"{place}/missing", f"{place}/folder"])
    assert (found.read(f"{place}/file", 100), found.is_executable(f"{place}/missing")) == (b"text\n", False)
    assert stat.S_ISDIR(found.stat(f"{place}/folder").st_mode)
    assert counter.count == calls + 1
    many = take_snapshot(files, (f"{place}/{number:0200}" for number in range(1000)))
    with pytest.raises(FileNotFoundError):
        many.stat(f"{place}/{1:0200}")
    assert counter.count == calls + 2
    compare(many, f"{place}/{999:0200}")


def test_a_path_is_resolved_there_with_one_command(
    counter: CommandCounter, files: RemoteFiles, place: Path
) -> None:
    path = f"{place}/folder/inner"
    files.stat_kind()
    found = look_up(files, [path])
    calls = counter.count
    parts = path.split("/")
    for n in range(2, len(parts) + 1):
        with pytest.raises(OSError, match="Invalid argument"):
            found.readlink("/".join(parts[:n]))
    assert counter.count == calls


def test_paths_behind_links_are_resolved_with_one_more_command(
    counter: CommandCounter, files: RemoteFiles, place: Path
) -> None:
    (place / "far").symlink_to(place / "to folder")
    paths = [f"{place}/{name}" for name in ("far/inner/x", "to folder/../file", "broken/x", "loop/x")]
    files.stat_kind()
    calls = counter.count
    found = look_up(files, [*paths, f"{place}/to folder/inner"])
    assert counter.count <= calls + MAX_LOOK_UPS
    calls = counter.count
    assert [call_with_files(found, resolve, path) for path in paths[:3]] == [
        os.path.realpath(path) for path in paths[:3]
    ]
    assert counter.count == calls
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        call_with_files(found, resolve, paths[3])


def test_a_path_with_many_folders_costs_few_commands(
    counter: CommandCounter, files: RemoteFiles, place: Path
) -> None:
    found = look_up(files, [f"{place}/{'n/' * 1500}file"])
    calls = counter.count
    for name in ("n", "n/n", "n/" * 1500 + "file"):
        with pytest.raises(FileNotFoundError):
            found.readlink(f"{place}/{name}")
    assert counter.count == calls


# A connection that is dead


def _stop(processes: list[int], number: signal.Signals) -> None:
    for pid in processes:
        os.kill(pid, number)


@pytest.mark.skipif(SSHD is None, reason="the processes of asyncssh's server cannot be stopped one by one")
@pytest.mark.req("X-32")
def test_a_dead_link_is_waited_for_once(
    counter: CommandCounter, server: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected_files() as files:
        stopped = server.connections()
        assert stopped
        monkeypatch.setattr(script_runner, "PAUSE_S", 1000.0)
        files.is_executable("/bin/sh")
        monkeypatch.setattr(remote_files, "EXISTENCE_TIMEOUT_S", 2.0)
        _stop(stopped, signal.SIGSTOP)
        try:
            start = time.monotonic()
            with pytest.raises(MachineUnreachable, match="the machine did not answer within 2 s"):
                files.stat("/")
            waited = time.monotonic() - start
            assert waited >= remote_files.EXISTENCE_TIMEOUT_S
            for function in (files.stat, files.lstat, files.readlink, files.listdir, files.is_executable):
                with pytest.raises(MachineUnreachable, match="the machine did not answer within 2 s"):
                    function("/")
            with pytest.raises(MachineUnreachable):
                call_with_files(files, current.isfile, "/etc/passwd")
            assert counter.count == 2  # one that was answered, and one that was waited for
        finally:
            _stop(stopped, signal.SIGCONT)
        monkeypatch.setattr(remote_files, "EXISTENCE_TIMEOUT_S", 100.0)
        monkeypatch.setattr(script_runner, "PAUSE_S", 0.0)
        assert stat.S_ISDIR(files.stat("/").st_mode)
        assert server.connections() == stopped  # it did not wait until the connection was given up


class BusyShell(LocalShell):
    """A shell that has a channel after a while."""

    def __init__(self) -> None:
        self.free = asyncio.Event()

    async def run(self, *_: object, live: HookRunContext, **__: object) -> Exited:
        live.runs_since = math.inf
        await self.free.wait()
        live.runs_since = asyncio.get_running_loop().time()
        return Exited(0)


def test_the_time_that_a_question_waits_for_a_channel_is_not_part_of_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_files, "EXISTENCE_TIMEOUT_S", 0.05)

    async def scenario() -> bool:
        shell = BusyShell()
        files = RemoteFiles(shell, asyncio.get_running_loop(), home="/", environ={})
        asyncio.get_running_loop().call_later(0.5, shell.free.set)
        return await run_in_thread(files.is_executable, "/bin/sh")

    assert asyncio.run(scenario())


def test_a_command_without_a_channel_has_not_begun(ssh_machine: Machine, tmp_path: Path) -> None:
    async def scenario() -> tuple[float, bool]:
        commands = [start(ssh_machine.shell, HOLD, cwd=tmp_path) for _ in range(MAX_COMMANDS)]
        held = asyncio.gather(*commands)
        while len(os.listdir(tmp_path)) < MAX_COMMANDS:
            await asyncio.sleep(POLL_INTERVAL_S)
        live = HookRunContext()
        late = asyncio.ensure_future(start(ssh_machine.shell, "true", live=live))
        await asyncio.sleep(0)
        waiting = live.runs_since
        (tmp_path / "go").touch()
        await asyncio.gather(held, late)
        return waiting, live.runs_since < math.inf

    assert ssh_machine.run(scenario()) == (math.inf, True)


needs_bash = pytest.mark.skipif(not READS_BASHRC, reason="only bash reads .bashrc when sshd starts it")


@needs_bash
@pytest.mark.parametrize("is_lost", [False, True], ids=["connected", "connection lost"])
def test_the_time_of_the_login_shell_is_not_part_of_the_limit(
    is_lost: bool, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_found(server: SshServer, scale: int) -> bool:
        monkeypatch.setattr(remote_files, "EXISTENCE_TIMEOUT_S", float(scale))
        (server.home / ".bashrc").write_text("")
        with connected_files() as files:
            (server.home / ".bashrc").write_text(f"sleep {1.5 * scale}\n")
            if is_lost:
                server.cut_connections()
            try:
                return files.is_executable("/bin/sh")
            except MachineUnreachable:
                return False

    with ssh_server(tmp_path / "own") as server:
        server.configure_client(home)
        assert any(is_found(server, scale) for scale in TIMEOUT_SCALES[:2])


@needs_bash
def test_a_login_shell_that_hangs_has_a_limit_too(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ssh_server(tmp_path / "own") as server:
        server.configure_client(home)
        with connected_files() as files:
            (server.home / ".bashrc").write_text(f"sleep {NEVER_S}\n")
            monkeypatch.setattr(remote_files, "EXISTENCE_TIMEOUT_S", 0.5)
            monkeypatch.setattr(script_runner, "START_TIMEOUT_S", 1.0)
            with pytest.raises(MachineUnreachable, match="the machine did not answer within"):
                files.is_executable("/bin/sh")


HOLD = 'touch "ready-$$"; while [ ! -e go ]; do sleep 0.05; done'


@pytest.mark.skipif(SSHD is None, reason="the processes of asyncssh's server cannot be killed one by one")
def test_a_connection_that_was_lost_is_opened_again(files: RemoteFiles, server: SshServer) -> None:
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


def test_a_script_that_prints_for_ever_is_ended(files: RemoteFiles) -> None:
    with pytest.raises(OSError, match="there is more than 1,000 bytes of it"):
        files.scripts.run("yes", (), path="/", max_bytes=1000, limit=Limit(HANG_TIMEOUT_S, while_silent=True))
