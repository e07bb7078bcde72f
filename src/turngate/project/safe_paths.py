"""Paths without links, and paths whose names come from data, such as a session id or the answer of a model."""

import os

from turngate.project.files import LOCAL, is_inside

__all__ = ["UnsafePath", "is_inside", "is_sensitive", "real_path", "safe_path"]

_SENSITIVE_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".password-store"})
_SENSITIVE_FILES = (
    *(".env", ".env.*", "*.env", ".envrc"),
    *("id_rsa", "id_dsa", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk"),
    *("*.jks", "*.keystore", "*.kdbx", "*.tfstate", "*.tfstate.backup"),
    *("credentials", "credentials.*", "secrets", "secrets.*", "service-account*.json", "client_secret*.json"),
    *(".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".htpasswd", ".git-credentials", ".vault-token"),
    *(".docker/config.json", "gcloud/application_default_credentials.json"),
)
_HARMLESS_FILES = ("*.pub", "*.example", "*.sample", "*.template", "*.dist")


def real_path(path: str) -> str:
    """Return the absolute path without links, of this machine. A path that cannot be resolved stays as it is."""
    return LOCAL.realpath(path)


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
        folder = LOCAL.resolve(os.fspath(root))
        path = LOCAL.resolve(os.path.join(folder, name))
    except OSError as error:
        raise UnsafePath(f"{name!r} cannot be used as a path: {error.strerror}") from None
    if path == folder or not is_inside(path, folder):
        raise UnsafePath(f"{name!r} does not lead to a place below {folder}")
    return path


def is_sensitive(path: str | os.PathLike[str]) -> bool:
    """Return whether a file usually holds secrets or belongs to git, by its name and its folders.

    Such are `.env`, private keys, files of credentials, and everything in `.git`. Pass the result of `safe_path`: a link
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
