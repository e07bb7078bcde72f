"""Which version of the program of a host is installed, and which one Turngate was run with."""

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from turngate.doctor.environment import Fact
from turngate.hosts.host import Host
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

# The commands with which the program of a host is started.
_COMMANDS: Mapping[str, tuple[str, ...]] = {"cursor": ("cursor-agent", "cursor")}
MAX_PACKAGE_BYTES = 1024 * 1024
MAX_PARENTS = 4  # of a program, searched for the package.json of npm
VERSION_TIMEOUT_S = 10.0
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def inspect_program(host: Host, path: str | None) -> Fact:
    """Return what is known of the program; `path` is the variable PATH."""
    names = _COMMANDS.get(host.name, (host.name,))
    program = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    if program is None:
        return Fact(host.title, f"`{names[0]}` is not on PATH", hint="the rest holds once it is installed")
    version = _npm_version(program) or _asked_version(program)
    if version is None:
        return Fact(host.title, f"{program}, its version cannot be found out")
    if host.version is None:
        return Fact(host.title, f"{version}; Turngate knows it from its documentation only")
    if _numbers(version) == _numbers(host.version):
        return Fact(host.title, f"{version}, the version that Turngate was run with")
    if _numbers(version) < _numbers(host.version):
        text = f"{version} is older than {host.version}, which Turngate was run with"
        return Fact(host.title, text, hint="update it: older versions may treat hooks in another way")
    return Fact(host.title, f"{version}; Turngate was run with {host.version}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _npm_version(program: str) -> str | None:
    """Return the version of the npm package that a program is part of; it is not started."""
    folder = os.path.dirname(os.path.realpath(program))
    for _ in range(MAX_PARENTS):
        with contextlib.suppress(OSError, ValueError, NotARegularFile, FileTooLarge):
            package = json.loads(read_bytes(os.path.join(folder, "package.json"), MAX_PACKAGE_BYTES))
            if isinstance(package, dict) and isinstance(package.get("bin"), dict | str):
                found = _VERSION.match(str(package.get("version", "")))
                return found[0] if found else None
        folder = os.path.dirname(folder)
    return None


def _asked_version(program: str) -> str | None:
    try:
        ended = subprocess.run(  # noqa: S603 - the program that the user runs
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(ended.stdout.decode("utf-8", "replace"))
    return found[0] if found else None
