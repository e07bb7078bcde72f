"""A running `turngate serve`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import start_turngate
from tests.support.page_server import PageServer


@pytest.fixture
def server(state: Path) -> Iterator[PageServer]:
    with start_turngate("serve", "--all") as process:
        yield PageServer(process.stdout.readline().split()[1], process.pid)
