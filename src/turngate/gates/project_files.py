"""The files of a gate's project, listed and read through the Shell port."""

import contextlib
import os
import re
from collections.abc import Collection, Mapping, Sequence

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.globs import matches_glob
from turngate.core.text import one_line
from turngate.gates.git.scripts import IN_REPOSITORY
from turngate.gates.local_tree_state import find_names
from turngate.gates.run_commands import FilesUnreadable, ProjectCommands
from turngate.project.files import LOCAL

MAX_ERROR_CHARS = 300
# Folders that hold what others wrote, for a project without git; git leaves out what is ignored.
FOREIGN_FOLDERS = r"\( -name .git -o -name node_modules -o -name .venv -o -name __pycache__ \)"
LIST_SCRIPT = f"""\
{IN_REPOSITORY}
list() {{
    if in_repository 2> /dev/null; then
        git ls-files --cached --others --exclude-standard --deduplicate
    else
        find . {FOREIGN_FOLDERS} -prune -o -type f -print0 | tr '\\n\\0' '\\0\\n'
    fi
}}
if test -z "$1"; then list; else list | grep -aiE "$1" | head -n "$2"; fi
"""
LIST_IGNORED = "git ls-files --others --ignored --exclude-standard --directory | grep -v '/$'"
PROBLEM = "the project's files cannot be listed"
NO_SUCH_FILE = 3
MAX_FILE_BYTES = 64 * 1024 * 1024
# A pipe or a device may never end.
READ_SCRIPT = f"""\
test -e "$1" || exit {NO_SUCH_FILE}
test -f "$1" || {{ echo 'it is not a regular file' >&2; exit 1; }}
test "$(head -c {MAX_FILE_BYTES + 1} < "$1" | wc -c)" -le {MAX_FILE_BYTES} || {{ echo 'it is too large' >&2; exit 1; }}
exec head -c {MAX_FILE_BYTES} < "$1"
"""
# Begins a script that writes to $1: `~/` becomes the home folder. Links outside of the project are those of the user; one inside of it
# comes with the repository, and could lead to any file of the user.
SAFE_TARGET = """\
umask 077
case $1 in "~/"*) target=$HOME/${1#"~/"};; -*) target=./$1;; *) target=$1;; esac
root=$(pwd -P) place=$target
while :; do
    case $place in */*) parent=${place%/*};; *) parent=.;; esac
    if test -L "$place"; then
        case $(cd "${parent:-/}" && pwd -P)/ in "$root"/*) echo "$place is a link, and links are not followed" >&2; exit 1;; esac
    fi
    if test -z "$parent" || test "$parent" = .; then break; fi
    place=$parent
done
"""
_GLOB = re.compile(r"[*?]")


async def list_files(commands: ProjectCommands, pattern: str = "", limit: int = 0) -> tuple[str, ...]:
    """Return the paths of all files that git does not ignore, or of `limit` files that match a pattern, as with `grep -iE`."""
    report = await commands.run_script(LIST_SCRIPT, pattern, str(limit))
    text = stdout_of(report, PROBLEM)
    from turngate.gates.git.output import unquote_path  # noqa: PLC0415 # lazy: it compiles patterns, and few answers need it

    names = (unquote_path(line).replace("\0", "\n").removeprefix("./") for line in text.split("\n") if line)
    return tuple(sorted(names))


class NoSuchFiles(FilesUnreadable):
    """A glob names no file."""


async def list_matching(
    commands: ProjectCommands, pattern: str, limit: int, state: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths of files that match a pattern in lower case, as with `grep -iE`, and of those that git ignores. Raises FilesUnreadable."""
    if commands.is_local and state:
        found = await run_in_thread(find_names, commands.project, state, pattern)
        if found is None:
            raise FilesUnreadable(PROBLEM)
        nearest = sorted(found[0], key=lambda name: (name.count("/"), name))
        return tuple(sorted(nearest[:limit])), tuple(found[1][:limit])
    ignored = (await commands.run_script(f"{LIST_IGNORED} | head -n {limit}")).stdout.split("\n")
    return await list_files(commands, pattern, limit), tuple(filter(None, ignored))


async def expand_globs(commands: ProjectCommands, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, and for each one with `*` or `?` the files that it names. Raises FilesUnreadable."""
    if not any(_GLOB.search(name) for name in names):
        return tuple(names)
    files = await list_files(commands)
    found: dict[str, None] = {}
    for name in names:
        matching = [file for file in files if matches_glob(name, file)] if _GLOB.search(name) else [name]
        if not matching:
            raise NoSuchFiles(f"{_show(name)} names no file of the project")
        found.update(dict.fromkeys(matching))
    return tuple(found)


async def read_file(commands: ProjectCommands, name: str) -> str | None:
    """Return the text of a file, or None if there is no such file."""
    report = await commands.run_script(READ_SCRIPT, name if name.startswith("/") else f"./{name}")
    if isinstance(report, Exited) and report.code == NO_SUCH_FILE:
        return None
    return stdout_of(report, f"{_show(name)} cannot be read")


def _show(name: str) -> str:
    from turngate.gates.git.output import show_path  # noqa: PLC0415 # lazy: it compiles patterns, and few answers need it

    return show_path(name)


def stdout_of(report: Exited | TimedOut, problem: str) -> str:
    """Return the whole output of a command that succeeded. Raises FilesUnreadable with the problem and its cause."""
    match report:
        case Exited(code=0, stdout=text, truncated=False):
            return text
        case Exited(code=0):
            raise FilesUnreadable(f"{problem}: the output is too long")
        case Exited(code=code, stderr=stderr):
            cause = one_line(stderr, MAX_ERROR_CHARS) or f"exit code {code}"
            raise FilesUnreadable(f"{problem}: {cause}")
        case TimedOut(seconds):
            raise FilesUnreadable(f"{problem} within {seconds:.3g} s")


# What the checks of a project are found from

WORKFLOWS = ".github/workflows"
# What `ProjectFiles` needs: the names in these folders, and the texts of these files.
LISTED_FOLDERS = (
    ".",
    "tests",
    "test",
    ".venv/bin",
    "venv/bin",
    "build",
    WORKFLOWS,
    "scripts",
    "script",
    "ci",
)
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # GNU make reads the first of them
_SETTINGS = """package.json deno.json deno.jsonc composer.json pyproject.toml setup.cfg tox.ini noxfile.py pytest.ini mypy.ini .mypy.ini requirements.txt
requirements-dev.txt Cargo.toml justfile Justfile .justfile Taskfile.yml Taskfile.yaml .pre-commit-config.yaml Rakefile"""
READ_FILES = (*MAKEFILES, *_SETTINGS.split(), "Pipfile", "Gemfile")
_ALSO_READ = rf"{re.escape(WORKFLOWS)}/[^/]+\.ya?ml|(?:scripts?|ci)/[\w.-]*(?:test|lint|check|format|types)[\w.-]*|[\w.-]*\.sh"
MAX_READ_BYTES = 1024 * 1024  # of a file in READ_FILES; a larger one is left out


@frozen
class ProjectFiles:
    """What is known of a project: names relative to its folder, and the texts of READ_FILES that exist."""

    names: frozenset[str]  # "Makefile", "tests/test_prices.py"
    texts: Mapping[str, str]


def read_project_files(project: str) -> ProjectFiles:
    names: set[str] = set()
    for folder in LISTED_FOLDERS:
        with contextlib.suppress(OSError):
            listed = os.listdir(os.path.join(project, folder))
            names.update(os.path.normpath(os.path.join(folder, name)) for name in listed)
    texts = {}
    for name in files_to_read(names):
        with contextlib.suppress(OSError):
            data = LOCAL.read(os.path.join(project, name), MAX_READ_BYTES + 1)
            if len(data) <= MAX_READ_BYTES:
                texts[name] = data.decode("utf-8-sig", "replace")
    return ProjectFiles(frozenset(names), texts)


def files_to_read(names: Collection[str]) -> list[str]:
    """Return which of these files say what the checks of a project are."""
    return sorted(name for name in names if name in READ_FILES or re.fullmatch(_ALSO_READ, name))


# Prints the names in each folder, and then the texts of the files that exist, all separated by \0.
_LIST_EACH_SCRIPT = """\
for folder do
    for name in "$folder"/* "$folder"/.[!.]*; do
        if test -e "$name"; then printf '%s\\0' "${name#./}"; fi
    done
done
"""
_READ_EACH_SCRIPT = """\
limit=$1
shift
for name do
    if test -f "$name" && test -r "$name"; then
        printf '%s\\0' "$name"
        head -c "$limit" "$name" | tr -d '\\0'
        printf '\\0'
    fi
done
"""


async def read_project(commands: ProjectCommands) -> ProjectFiles:
    """Return what the commands are found from. Raises FilesUnreadable."""
    if commands.is_local:
        return read_project_files(commands.project)
    problem = "the project's files cannot be read"
    listed = stdout_of(await commands.run_script(_LIST_EACH_SCRIPT, *LISTED_FOLDERS), problem)
    names = frozenset(listed.split("\0")) - {""}
    texts = await read_texts(commands, files_to_read(names), MAX_READ_BYTES + 1)
    return ProjectFiles(names, {name: text for name, text in texts.items() if len(text) <= MAX_READ_BYTES})


async def read_texts(commands: ProjectCommands, names: Sequence[str], limit: int) -> dict[str, str]:
    """Return the beginning of each of these files that exists. Raises FilesUnreadable."""
    if not commands.is_local:
        report = await commands.run_script(_READ_EACH_SCRIPT, str(limit), *names)
        parts = stdout_of(report, "the project's files cannot be read").split("\0")
        return dict(zip(parts[::2], parts[1::2], strict=False))
    texts = {}
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            data = LOCAL.read(os.path.join(commands.project, name), limit)
            texts[name] = data.decode("utf-8-sig", "replace")
    return texts
