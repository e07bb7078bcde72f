"""Paths without links, of a project or of this machine."""

from turngate.filesystem.files import LOCAL, current_files, is_inside

__all__ = ["is_inside", "locate", "real_local_path", "real_path", "resolve"]


def resolve(path: str) -> str:
    return current_files.get().resolve(path)


def real_path(path: str) -> str:
    return current_files.get().realpath(path)


def real_local_path(path: str) -> str:
    return LOCAL.realpath(path)


def locate(path: str) -> str:
    return current_files.get().locate(path)
