"""The programs from npm: their pinned versions in a folder that git ignores."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from bench.hosts.program import Program


class CannotInstall(Exception):
    pass


def require_npm() -> None:
    for name in ("node", "npm"):
        if not shutil.which(name):
            raise CannotInstall(f"{name} is not on PATH: install Node.js 22 or later, which includes npm")


def installed_version(program: Program, folder: Path) -> str | None:
    manifest = folder / program.folder / "node_modules" / program.package / "package.json"
    return str(json.loads(manifest.read_text())["version"]) if manifest.exists() else None


def find(program: Program, folder: Path) -> Path:
    """Return the path of the command of any version in a folder of the user."""
    if not installed_version(program, folder):
        place = folder / program.folder / "node_modules"
        raise CannotInstall(f"{program.title} is not in {place}: install it there, or leave out --dir")
    own_node = path_of(program, folder).with_name("node")
    if newer_node(program) and not own_node.exists():
        raise CannotInstall(
            f"{program.title} needs Node.js {program.node} or later, and `node` on PATH is older: "
            "put a newer one on PATH, or leave out --dir"
        )
    return path_of(program, folder)


def install(program: Program, folder: Path) -> Path:
    """Return the path of the command, after installing the pinned version if there is another one or none."""
    if installed_version(program, folder) != program.version:
        print(f"{program.title}: npm install {program.package}@{program.version} …", flush=True)
        place = folder / program.folder
        place.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place)]
        wanted = f"{program.package}@{program.version}"
        done = subprocess.run(
            [*words, wanted, *newer_node(program)], check=False, capture_output=True, text=True
        )
        if done.returncode:
            sys.stderr.write(done.stderr)
            raise CannotInstall(f"npm could not install {wanted}: see above")
    return path_of(program, folder)


def path_of(program: Program, folder: Path) -> Path:
    return folder / program.folder / "node_modules" / ".bin" / program.command


def newer_node(program: Program) -> list[str]:
    """Return the package with a Node.js for the program, if that on PATH is too old for it."""
    version = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout
    if program.node is None or int(version.strip().removeprefix("v").partition(".")[0]) >= program.node:
        return []
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), "arm64")
    return [f"node-{sys.platform}-{machine}@{program.node}"]
