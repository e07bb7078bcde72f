"""A mount namespace for a server: files of this machine that are not there, and paths there that are not here."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MOUNT_POINT = "/mnt"
NO_NAMESPACE = "this system lets no user make a mount namespace"

# $1: the folder at the mount point, or ""; $2: how many folders to hide follow; then the command.
_SCRIPT = f"""
set -e
[ -z "$1" ] || mount --rbind "$1" {MOUNT_POINT}
count=$2
shift 2
while [ "$count" -gt 0 ]; do mount -t tmpfs tmpfs "$1"; shift; count=$((count - 1)); done
exec "$@"
"""


@dataclass(frozen=True)
class MountNamespace:
    """Where the folders in `hidden` are empty, and the files of `moved` are at MOUNT_POINT."""

    hidden: tuple[Path, ...]
    moved: Path | None = None

    def path(self, path: Path) -> str:
        """Return the path there for one of this machine."""
        if self.moved is None or not path.is_relative_to(self.moved):
            return str(path)
        return os.path.join(MOUNT_POINT, path.relative_to(self.moved))

    def command(self, *command: str) -> list[str]:
        """Return a command that runs another one there, with the same process and user IDs."""
        script = [
            "sh",
            "-c",
            _SCRIPT,
            "sh",
            str(self.moved or ""),
            str(len(self.hidden)),
            *map(str, self.hidden),
        ]
        if os.getuid() == 0:
            return ["unshare", "--mount", *script, *command]
        ids = [f"--map-user={os.getuid()}", f"--map-group={os.getgid()}"]
        return ["unshare", "--map-root-user", "--mount", *script, "unshare", "--user", *ids, *command]


@cache
def can_make_namespace() -> bool:
    if not shutil.which("unshare"):
        return False
    folder = Path(__file__).parent
    command = MountNamespace((folder,), folder).command("true")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
