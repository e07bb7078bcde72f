"""Calls a function for many values in several processes: for work that keeps a processor busy."""

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import starmap
from typing import Any, TypeVar

Made = TypeVar("Made")


def map_in_processes(
    function: Callable[..., Made], calls: Iterable[tuple[Any, ...]], *, is_much: bool
) -> Iterator[Made]:
    """Yield the result for each tuple of arguments, in order; unless `is_much`, from this process."""
    if not is_much:
        yield from starmap(function, calls)
        return
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(function, *zip(*calls, strict=True), chunksize=4)
