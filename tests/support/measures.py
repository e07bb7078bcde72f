"""Measure work in ways that do not depend on the speed of the machine, or only very little."""

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


def count_calls(function: Callable[[], object]) -> int:
    """Return how many functions were called, those of Python and those of C. One search by `re` is one call."""
    count = 0

    def note(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    function()  # what is compiled or imported at the first call does not count
    gc.disable()  # nor do finalizers of what earlier tests have left
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Fail if the block takes more processor time of this thread: many times what it takes on any machine."""
    started = time.thread_time()
    yield
    assert time.thread_time() - started < seconds


def peak_memory(function: Callable[[], object]) -> int:
    """Return the bytes that were allocated at the same time."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
