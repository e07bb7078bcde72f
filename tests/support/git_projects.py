"""Projects with a git repository, for the tests of gates."""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

# No settings of the machine, and the same commits each time. The date is before that of all transcripts.
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "test",
    "GIT_AUTHOR_EMAIL": "test@example.org",
    "GIT_COMMITTER_NAME": "test",
    "GIT_COMMITTER_EMAIL": "test@example.org",
}
BEFORE, START, LATER = "2026-01-01T10:00:00+00:00", "2026-01-02T10:00:00+00:00", "2036-01-03T10:00:00+00:00"

Step = Callable[[Path], object]  # changes a project


def steps(*each: Step, **fields: Any) -> Callable[[Path], Mapping[str, Any]]:
    """Return the setup of a case: the steps, one after the other, and the fields of the hook's input."""

    def setup(project: Path) -> Mapping[str, Any]:
        for step in each:
            step(project)
        return fields

    return setup


def repository(files: Mapping[str, str | bytes], date: str = BEFORE) -> Step:
    return lambda project: make_repository(project, files, date)


def files(contents: Mapping[str, str | bytes]) -> Step:
    return lambda project: write(project, contents)


def removed(name: str) -> Step:
    return lambda project: (project / name).unlink()


def runs_git(*words: str) -> Step:
    return lambda project: git(project, *words)


def fails(*words: str) -> Step:
    """Return a step that runs a command of git that must fail, such as a merge with conflicts."""

    def step(project: Path) -> None:
        with pytest.raises(subprocess.CalledProcessError):
            git(project, *words)

    return step


def with_submodule(project: Path) -> None:
    """Add a submodule `lib` with one file, in a commit of its own."""
    library = project.parent / "library"
    library.mkdir()
    make_repository(library, {"m.py": "x = 1\n"})
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    commit(project)


def git(project: Path, *words: str, date: str = BEFORE) -> str:
    env = {**os.environ, **ENVIRONMENT, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    done = subprocess.run(["git", *words], cwd=project, env=env, capture_output=True, check=True)
    return done.stdout.decode()


def write(project: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_repository(project: Path, files: Mapping[str, str | bytes], date: str = BEFORE) -> None:
    """Make a repository with one commit, of the files."""
    git(project, "init", "--quiet", "--initial-branch=main")
    write(project, files)
    commit(project, date)


def commit(project: Path, date: str = LATER) -> None:
    git(project, "add", "--all")
    git(project, "commit", "--quiet", "--allow-empty", "--message=change", date=date)


def write_transcript(project: Path, moment: str = START) -> None:
    """Write the transcript of a session that began at that moment."""
    record = {"type": "user", "timestamp": moment, "message": {"role": "user", "content": "Go on."}}
    (project.parent / "transcript.jsonl").write_text(json.dumps(record) + "\n")
