"""DeathWatch: end a process group when this process dies without ending it, as after `kill -9`."""

import contextlib
import os
import subprocess
import threading

# It reads the number of the group, then waits for a second line; its stdin ends without one when this process dies.
_SCRIPT = 'read -r group && [ -n "$group" ] && { read -r _ || { kill -s TERM -- "-$group"; sleep 1; kill -s KILL -- "-$group"; }; } 2>/dev/null'


class DeathWatch:
    """A shell that waits for the end of this process. If it cannot be started, the command is not watched."""

    def __init__(self) -> None:
        self._popen: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):  # no process or descriptor is left
            self._popen = subprocess.Popen(  # noqa: S603 - our own script
                ("/bin/sh", "-c", _SCRIPT, "turngate-watch"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                bufsize=0,
                start_new_session=True,
            )

    def watch(self, group: int) -> None:
        self._send(str(group))

    def stop(self) -> None:
        """The command has ended, was ended, or could not be started."""
        if self._popen is None or self._popen.stdin is None:
            return
        self._send("")
        self._popen.stdin.close()
        name = f"turngate-reap-{self._popen.pid}"
        threading.Thread(target=self._popen.wait, daemon=True, name=name).start()

    def _send(self, line: str) -> None:
        if self._popen is not None and self._popen.stdin is not None:
            with contextlib.suppress(OSError):
                self._popen.stdin.write(f"{line}\n".encode())
