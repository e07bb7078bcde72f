"""Fixtures of every test. No test depends on the environment, the settings or the state of the user who runs it."""

import collections
import compileall
import contextlib
import gc
import locale
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

import turngate
from tests.support.machines import Machine, SshMachine, ThisMachine
from tests.support.remote_files import QuestionCounter
from tests.support.servers.mount_namespace import MountNamespace
from tests.support.servers.postgres import PostgresServer, find_postgres, postgres_server
from tests.support.servers.ssh import READS_BASHRC, SshServer, ssh_server
from tests.support.timeouts import wait_for_slow_machine
from tests.tiers import mark_slow
from tests.trace import marked
from turngate.settings import paths

# What tests inherit. Every other variable could change what Turngate, git, a shell or a test runner does in a test.
KEPT_VARIABLES = re.compile("PATH|HOME|TMPDIR|LD_LIBRARY_PATH|NODE_EXTRA_CA_CERTS|PYTEST_(XDIST|DEBUG).*")
SET_VARIABLES = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    # Only the test runner writes bytecode: tests that fill the disk would leave truncated files.
    "PYTHONDONTWRITEBYTECODE": "1",
}
sys.dont_write_bytecode = False


def _set_environment() -> None:
    """Make the environment of the tests the same for every user. The workers of xdist start with it."""
    for name in os.environ:
        if not KEPT_VARIABLES.fullmatch(name):
            del os.environ[name]
    os.environ.update(SET_VARIABLES)
    time.tzset()
    with contextlib.suppress(locale.Error):  # a system that does not have the locale
        locale.setlocale(locale.LC_ALL, "")


_set_environment()


# How long an example takes says something about the machine only.
ANY_SPEED = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("quick", ANY_SPEED, max_examples=25)
hypothesis.settings.register_profile("thorough", ANY_SPEED, max_examples=500)  # make properties
hypothesis.settings.load_profile("quick")


def pytest_configure() -> None:
    """Compile what the command loads once, since tests start it hundreds of times."""
    # Under nohup, or in the background of a script, processes inherit that these are ignored.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        for folder in (Path(turngate.__file__).parent, Path(__file__).parents[1] / "tests" / "support"):
            compileall.compile_dir(folder, quiet=2)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--req", metavar="ID", help="run only the tests with the marker of this requirement")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from all modules and tests, which stay to the end: half a million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_slow(items)
    wanted = config.getoption("--req")
    if wanted:
        others = [item for item in items if wanted not in marked(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if wanted in marked(item)]
    # The longest tests first: the last one would run alone.
    items.sort(key=lambda item: not item.nodeid.startswith(("tests/test_docs.py", "tests/tools/")))


_made = collections.Counter[str]()  # folders of tests, by name


def _make_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """Make a new folder as `mktemp` does, which reads the names of all the others first: minutes for all tests."""
    folder = factory.getbasetemp() / f"{name}{_made[name]}"
    _made[name] += 1
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _make_folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the home folders of the tests, with their state."""
    return tmp_path_factory.mktemp("homes", numbered=False)


@pytest.fixture(autouse=True)
def _own_home(homes: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = _make_folder(tmp_path_factory, f"{homes.name}/own_home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TURNGATE_STATE", str(home / "state"))
    monkeypatch.setenv("TURNGATE_TRUST", "1")  # the tests of trust remove it
    monkeypatch.setattr(paths, "MANAGED_FOLDER", str(home / "managed"))


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


@pytest.fixture
def state() -> Path:
    return Path(os.environ["TURNGATE_STATE"])


@pytest.fixture
def managed() -> Path:
    """Where an administrator's settings are, which the test may create."""
    return Path(paths.MANAGED_FOLDER)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def shared_server(homes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """The SSH server of all tests that do not stop or configure it, one for each worker.

    Where the system allows it, the home folder here and the state are not there; the other folders of tests are.
    """
    with ssh_server(tmp_path_factory.mktemp("sshd"), MountNamespace((homes,))) as server:
        yield server


@pytest.fixture(scope="session")
def _shared_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    folder = tmp_path_factory.mktemp("other_machine")
    with ssh_server(folder, MountNamespace((tmp_path_factory.getbasetemp(),), folder)) as server:
        yield server


@pytest.fixture
def server(shared_server: SshServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    """The shared server, known to the client as `box`."""
    _use(shared_server, home, monkeypatch)
    yield shared_server
    _remove_content(shared_server.home)


@pytest.fixture
def other_machine(
    _shared_machine: SshServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SshServer]:
    """A server with none of the folders of tests here, and whose folders are not here, where the system allows it."""
    _use(_shared_machine, home, monkeypatch)
    yield _shared_machine
    _remove_content(_shared_machine.home)


def _use(server: SshServer, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the server `box` to the client, whose temporary files are not there either."""
    wait_for_slow_machine(monkeypatch)
    temporary = home / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    server.configure_client(home)


def _remove_content(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.fixture
def own_server(tmp_path: Path, home: Path) -> Iterator[SshServer]:
    """A server that the test may stop."""
    with ssh_server(tmp_path / "sshd") as server:
        server.configure_client(home)
        yield server


@pytest.fixture
def full_disk(own_server: SshServer) -> Iterator[SshServer]:
    """A server with 64 KiB for temporary files: a tmpfs, or where none can be mounted, a limit for each file."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(own_server.temporary)]
    if os.getuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        yield own_server
        subprocess.run(["umount", "-l", str(own_server.temporary)], check=True)
    elif READS_BASHRC:
        (own_server.home / ".bashrc").write_text("ulimit -f 64\n")
        yield own_server
    else:
        pytest.skip("no disk of the server can be filled")


@pytest.fixture(scope="session")
def _kept_connection(shared_server: SshServer) -> Iterator[SshMachine]:
    machine = SshMachine()
    yield machine
    machine.close()


@pytest.fixture
def ssh_machine(server: SshServer, _kept_connection: SshMachine) -> Iterator[Machine]:
    _kept_connection.connect()
    yield _kept_connection
    _kept_connection.disconnect()


@pytest.fixture(params=["local", "ssh"])
def machine(request: pytest.FixtureRequest) -> Machine:
    """Each of the machines that hooks run on."""
    if request.param == "local":
        return ThisMachine()
    found: Machine = request.getfixturevalue("ssh_machine")
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the fixture `store` on both stores, unless it is about the SQLite file."""
    if "store" in metafunc.fixturenames:
        about_file = metafunc.definition.get_closest_marker("sqlite") is not None
        metafunc.parametrize("store", ["sqlite"] if about_file else ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(scope="session")
def _shared_postgres() -> Iterator[PostgresServer]:
    programs = find_postgres()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: `apt-get install postgresql`")
    with postgres_server(programs) as server:
        yield server


@pytest.fixture
def postgres(_shared_postgres: PostgresServer) -> PostgresServer:
    """A server with an empty registry, one for each worker."""
    _shared_postgres.clear()
    return _shared_postgres


@pytest.fixture
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the registry of this test and of the processes that it starts is."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    monkeypatch.setenv("TURNGATE_REGISTRY", server.url())
    monkeypatch.setattr("turngate.subagents.supervisor.ABANDONED_POLL_S", 0.2)
    with server.leases_of_dead_processes_lapse():
        yield "postgresql"


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> QuestionCounter:
    return QuestionCounter(monkeypatch)
