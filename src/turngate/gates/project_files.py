"""The files of a gate's project, listed and read through the Shell port."""

import os

from turngate.core.reports import Exited, TimedOut
from turngate.gates.project_commands import ProjectCommands

# Folders that hold what others wrote, for a project without git; git leaves out what is ignored.
FIND_SCRIPT = """\
find . \\( -name .git -o -name node_modules -o -name .venv -o -name __pycache__ \\) -prune -o -type f -print0
"""


class FilesUnreadable(Exception):
    """The project's files cannot be listed or read; the text says why."""


async def list_files(commands: ProjectCommands) -> tuple[str, ...]:
    """Return the paths of all files that git does not ignore; without a repository, of all files."""
    report = await commands.run_git(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"
    )
    if not (isinstance(report, Exited) and report.code == 0):
        report = await commands.run_script(FIND_SCRIPT)
    text = _stdout(report, "the project's files cannot be listed")
    return tuple(sorted(name.removeprefix("./") for name in text.split("\0") if name))


async def read_file(commands: ProjectCommands, name: str) -> str | None:
    """Return the text of a file, or None if there is no such file."""
    path = name if os.path.isabs(name) else f"./{name}"  # the command runs in the project
    report = await commands.run_script('test -e "$1" || exit 3; exec cat -- "$1"', path)
    if isinstance(report, Exited) and report.code == 3:
        return None
    return _stdout(report, f"{name} cannot be read")


def _stdout(report: Exited | TimedOut, problem: str) -> str:
    match report:
        case Exited(code=0, stdout=text):
            return text
        case Exited(code=code, stderr=stderr):
            raise FilesUnreadable(f"{problem}: {stderr.strip() or f'exit code {code}'}")
        case TimedOut(seconds):
            raise FilesUnreadable(f"{problem} within {seconds:.3g} s")
