"""Where sessions and the registry are stored: the state folder and the paths below it. Imports little: each start needs it."""

import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module

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


_SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def session_folder(state: str, session: str) -> str:
    """Return the folder of a session. An id that is not a plain file name is replaced by its hash."""
    session = str(session)  # an embedder may pass a number
    if not _SAFE_NAME.fullmatch(session):
        session = "id-" + _sha256(session.encode("utf-8", "replace"))[:24]
    return os.path.join(state, "sessions", session)


def plugin_data_folder(state: str, name: str, root: str) -> str:
    """Return the folder for the data of a Claude Code plugin; another folder with the same name has its own."""
    digest = _sha256(root.encode("utf-8", "surrogateescape"))[:12]
    return os.path.join(state, "plugins", f"{name}-{digest}" if _SAFE_NAME.fullmatch(name) else digest)


def approvals_path(state: str, project: str) -> str:
    """Return the file of the approved hooks of a project: its path has no links, or it is a URL of another machine."""
    return os.path.join(state, "trust", "projects", _file_name(project))


def user_approvals_path(state: str, machine: str) -> str:
    """Return the file of the approved hooks of the user on a machine; "" is this one."""
    return os.path.join(state, "trust", f"users/{_file_name(machine)}" if machine else "user.json")


def _file_name(place: str) -> str:
    return _sha256(place.encode("utf-8", "surrogatepass"))[:32] + ".json"


def _sha256(data: bytes) -> str:
    """Hash as hashlib does, if possible without OpenSSL, which takes a tenth of a start without hooks to load."""
    name = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
    try:
        module = import_module(name)
    except ImportError:
        module = import_module("hashlib")
    return str(module.sha256(data).hexdigest())


TRANSCRIPT_FILE = "chat.jsonl"
REGISTRY_FILE = "registry.db"  # of the runs of subagents, in the state folder
REGISTRY_URL = "TURNGATE_REGISTRY"  # the variable with the URL of a registry that several machines share
OTHER_STATE_FOLDER = "or set TURNGATE_STATE to another folder"  # the end of an advice


def main_transcript_path(state: str, session: str, dialect: str = "turngate") -> str:
    """Return the path of the main agent's transcript; the mux dialect fixes `~/.mux/sessions`."""
    home = os.path.join(os.path.expanduser("~"), ".mux")
    return os.path.join(session_folder(home if dialect == "mux" else state, session), TRANSCRIPT_FILE)
