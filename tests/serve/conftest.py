"""A running `turngate serve`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import start_turngate
from tests.support.page_server import PageServer
from tests.support.scripted_run import next_line


@pytest.fixture
def server(state: Path) -> Iterator[PageServer]:
    with start_turngate("serve", "--all") as process:
        yield PageServer(next_line(process).decode().split()[1], process.pid)
