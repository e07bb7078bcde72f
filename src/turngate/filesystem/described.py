"""Many files of another machine, described and read with one question."""

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turngate.filesystem.files import Files

DEPTH = 3  # of what is described below a folder


class Described(NamedTuple):
    path: str
    kind: str  # l: link, f: file, d: folder, o: other, -: missing
    is_readable: bool
    is_executable: bool
    target: str  # of a link
    stat: os.stat_result | None  # of the file itself or, in a tree, of what a link leads to
    followed: os.stat_result | None  # of what a link leads to; None if it is not known

    @property
    def is_folder(self) -> bool:
        """Whether names below it can be looked up."""
        info = self.followed if self.kind == "l" else self.stat
        return info is not None and self.is_executable and (info.st_mode & 0o170000) == 0o040000

    @property
    def is_listable(self) -> bool:
        return self.kind == "d" and self.is_readable and self.is_executable


class Content(NamedTuple):
    path: str
    stat: os.stat_result
    data: bytes


class DescribedFiles(Files):
    """The files of a machine that can be asked about many of them at once."""

    def describe(self, paths: Sequence[str], *, contents: bool = False) -> Iterable[Described | Content]:
        """Return what is known of some paths, and with `contents` what small files hold.

        With `contents`, a path may end with `/.`, for all that is below a folder down to DEPTH, or with `/./.` for the
        names in it. What does not fit into one question is left out.
        """
        raise NotImplementedError
