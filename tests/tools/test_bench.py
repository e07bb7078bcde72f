"""`make bench` prints its rows and nothing else."""

import asyncio

import pytest
from bench import hooks

from turngate import CommandHook


def test_a_hook_that_fails_in_a_benchmark_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    verdict = asyncio.run(hooks._ask(hooks._settings(CommandHook("exit 1"))))
    assert (len(verdict.unenforced), caplog.records) == (1, [])
