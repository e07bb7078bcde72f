"""Paths without links, and paths whose names come from data, such as a session id or the answer of a model.

It imports nothing of Turngate: `examples/hooks/scripts` has a copy, for hooks that run where Turngate is not installed.
"""

import errno
import os
from collections.abc import Callable

MAX_LINKS = 40  # as many as Linux follows
_NOT_A_LINK = (errno.EINVAL, errno.ENOENT, errno.ENOTDIR)
_SENSITIVE_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"})
_SENSITIVE_FILES = (
    *(".env", ".env[.~_-]*", "*.env", ".envrc"),
    *("id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk"),
    *("*.jks", "*.keystore", "*.kdbx", "*.tfstate", "*.tfstate.backup"),
    *("credentials", "credentials.*", "secrets", "secrets.*", "service-account*.json", "client_secret*.json"),
    *(".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".vault-token"),
    *(".docker/config.json", "gcloud/application_default_credentials.json"),
)
_HARMLESS_FILES = ("*.pub", "*.example", "*.sample", "*.template", "*.dist")


def resolve_links(path: str, readlink: Callable[[str], str] = os.readlink) -> str:
    """Return the absolute path without links; its end need not exist. Raises only OSError.

    Unlike `os.path.realpath`, it neither calls itself for each link nor follows more links than the system. It raises
    an error for a link that cannot be read, such as /proc/1/exe, and for a path that no file can have.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    absolute = path if path.startswith("/") else f"{os.getcwd()}/{path}"
    links, names, resolved = 0, absolute.split("/")[::-1], ""
    while names:
        name = names.pop()
        if name == "..":
            resolved = resolved.rpartition("/")[0]
        elif name not in ("", "."):
            target = _link_target(f"{resolved}/{name}", readlink)
            if target is None:
                resolved = f"{resolved}/{name}"
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            resolved = "" if target.startswith("/") else resolved
            names += target.split("/")[::-1]
    return resolved or "/"


def _link_target(path: str, readlink: Callable[[str], str]) -> str | None:
    """Return what a link holds, or None if the path is not a link."""
    try:
        return readlink(path)
    except ValueError:  # a lone surrogate; a link of another machine may lead to a null character
        raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ), path) from None
    except OSError as error:
        if error.errno in _NOT_A_LINK:
            return None
        raise


def real_path(path: str) -> str:
    """Return the absolute path without links, of this machine. A path that cannot be resolved stays as it is."""
    try:
        return resolve_links(path)
    except OSError:
        return path


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is a resolved folder or below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def path_outside(path: str, folder: str) -> str:
    """Return the folders of `$PATH` that are outside of a folder; all of them if none is."""
    real = real_path(folder)
    places = [each for each in path.split(os.pathsep) if os.path.isabs(each)]
    return os.pathsep.join(each for each in places if not is_inside(real_path(each), real)) or path


class UnsafePath(ValueError):
    """Raised by `safe_path` for a name that leads out of its folder."""


def safe_path(root: str | os.PathLike[str], name: str) -> str:
    """Return the absolute path of a name below a folder, without links. The file need not exist.

    Raises UnsafePath for an empty or absolute name, for one with `..` or a NUL character in it, and for one that leads
    out of the folder through a link. What is changed on the disk after the check is not seen.
    """
    if not name or name.startswith(("/", "~")) or "\0" in name or ".." in name.split("/"):
        raise UnsafePath(f"{name!r} is not a relative path below {os.fspath(root)}")
    try:
        folder = resolve_links(os.fspath(root))
        path = resolve_links(os.path.join(folder, name))
    except OSError as error:
        raise UnsafePath(f"{name!r} cannot be used as a path: {error.strerror}") from None
    if path == folder or not is_inside(path, folder):
        raise UnsafePath(f"{name!r} does not lead to a place below {folder}")
    return path


def is_sensitive(path: str | os.PathLike[str]) -> bool:
    """Return whether a file usually holds secrets or belongs to git, by its name and its folders.

    Examples are `.env`, private keys, credential files, and everything in `.git`. Pass the result of `safe_path`: a link
    with a harmless name can lead to such a file.
    """
    from fnmatch import fnmatchcase  # noqa: PLC0415  # lazy: the fast exit needs no patterns

    names = [name for name in os.fspath(path).lower().split("/") if name not in ("", ".")]
    if not _SENSITIVE_FOLDERS.isdisjoint(names):
        return True
    ends = (names[-1], "/".join(names[-2:])) if names else ()
    if any(fnmatchcase(end, pattern) for end in ends[:1] for pattern in _HARMLESS_FILES):
        return False
    return any(fnmatchcase(end, pattern) for end in ends for pattern in _SENSITIVE_FILES)
