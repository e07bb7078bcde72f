"""A running `turngate serve`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import start_turngate
from tests.support.journals import append_stop
from tests.support.page_server import PageServer


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """A server for tests that change nothing, with one session, s-1."""
    state = tmp_path_factory.mktemp("shared_state")
    append_stop(state, "s-1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNGATE_STATE", str(state))
        with start_turngate("serve", "--all") as process:
            yield PageServer(process.stdout.readline().split()[1], process.pid)


@pytest.fixture
def server(state: Path) -> Iterator[PageServer]:
    with start_turngate("serve", "--all") as process:
        yield PageServer(process.stdout.readline().split()[1], process.pid)
