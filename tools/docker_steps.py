"""Runs the steps of the Dockerfile without Docker: in an empty folder in place of `/`, with an environment of its own.

Only apt-get is not run. This is part of `make release`.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SETTINGS = '{"hooks": {"Stop": [{"hooks": [{"type": "gate", "id": "done", "command": "test -e done"}]}]}}'


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, each with its text in one line."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def inside(root: Path, text: str) -> str:
    """Return the text with every absolute path moved below `root`."""
    return re.sub(r"(?<![\w./])/(?=\w)", f"{root}/", text)


class Image:
    """What the steps have made so far: a folder in place of `/`, the working directory and the command."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.command = root, root, dict[str, list[str]]()
        venv.create(root / "venv", with_pip=True)
        (root / "stubs").mkdir()
        (root / "etc").mkdir()
        stub = root / "stubs" / "apt-get"
        stub.write_text('#!/bin/sh\necho "not run   apt-get $*"\n')
        stub.chmod(0o755)
        self.environ = {
            **os.environ,
            "PATH": f"{root}/stubs:{root}/venv/bin:{os.environ['PATH']}",
            "HOME": str(root),
            "GIT_CONFIG_SYSTEM": f"{root}/etc/gitconfig",
        }

    def apply(self, name: str, text: str) -> None:
        match name:
            case "FROM":
                pass
            case "COPY":
                *sources, target = inside(self.root, text).split()
                for source in sources:
                    self.copy(PROJECT / source, Path(target), into=len(sources) > 1)
            case "RUN":
                subprocess.run(["sh", "-c", inside(self.root, text)], env=self.environ, check=True)
            case "WORKDIR":
                self.folder = Path(inside(self.root, text))
                self.folder.mkdir(parents=True, exist_ok=True)
            case "ENTRYPOINT" | "CMD":
                self.command[name] = json.loads(text)
            case _:
                sys.exit(f"Dockerfile: {name} is an instruction that tools/docker_steps.py does not know")

    def copy(self, source: Path, target: Path, *, into: bool) -> None:
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            target = target / source.name if into else target
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def run(self, *arguments: str) -> int:
        """Do what `docker run IMAGE ARGUMENTS` does, and return its exit code."""
        words = [*self.command["ENTRYPOINT"], *(arguments or self.command["CMD"])]
        code = subprocess.run(words, cwd=self.folder, env=self.environ, check=False).returncode
        print(f"exit code {code}: {shlex.join(words)}")
        return code


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        image = Image(Path(folder))
        for name, text in instructions((PROJECT / "Dockerfile").read_text()):
            print(f"{name} {text}", flush=True)
            image.apply(name, text)
        settings = image.folder / ".turngate" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(SETTINGS)
        codes = [image.run(), image.run("gates", "run", "--trust")]
        (image.folder / "done").touch()
        codes.append(image.run("gates", "run", "--trust"))
    return 0 if codes == [0, 1, 0] else 1


if __name__ == "__main__":
    sys.exit(main())
