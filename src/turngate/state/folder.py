"""Where the state folder is. Imports little: the fast path of `turngate fire` needs it."""

import os
from _collections_abc import Mapping  # `collections.abc` loads all of `collections`

from turngate.errors import UsageError


def state_folder(environ: Mapping[str, str] = os.environ, home: str | None = None) -> str:
    """Return `$TURNGATE_STATE`, or else `turngate` in the XDG state folder of this machine, or of the one with `home`."""
    if given := environ.get("TURNGATE_STATE"):
        return _absolute(given)
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # the XDG rule: a relative path is ignored
        base = os.path.join(home or os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "turngate")


def _absolute(given: str) -> str:
    try:
        return os.path.abspath(given)
    except OSError:
        raise UsageError(
            f"TURNGATE_STATE is the relative path {given}, but the current folder no longer exists; "
            "change to another folder, or set TURNGATE_STATE to an absolute path"
        ) from None
