"""What a hook may use that sends requests from this machine for a project on another one."""

from collections.abc import Mapping

from turngate.core.constants import COMMAND_LINE
from turngate.ports import World

_GIVEN_HERE = ("python", COMMAND_LINE)  # levels of hooks that are never those of another machine


def environ_and_level(source: str, world: World) -> tuple[Mapping[str, str], str]:
    """Return the variables that a hook of this level may send, and the level that decides where it may send them.

    A hook that is configured on another machine gets nothing of the environment here, which may hold keys, and is
    trusted no more than one of a project.
    """
    if world.machine and source not in _GIVEN_HERE:
        return world.environ, "project"
    return world.own_environ, source
