"""The fingerprint of a project's content: equal fingerprints, equal files. Ignored files are left out.

A project in a repository of git has the fingerprint of the whole repository, with git's own hashes: it reads only files
that differ from its index, and the same content has the same fingerprint after a commit. Other projects have the
checksums of all files.
"""

import asyncio

from turngate.core.answers.reports import Exited
from turngate.gates.git.scripts import IN_REPOSITORY, NOTHING_HIDDEN
from turngate.gates.project_commands import ProjectCommands

TIMEOUT_S = 20.0  # then nothing is cached, and the gate has the rest of its time
GIT, FILES = "git", "files"  # a fingerprint begins with how it was made

# No git, no repository, or one that ignores the project.
NO_REPOSITORY = 3

# The index is changed only in a copy, whose time git needs, and no object is written: the repository may be read-only.
# Repositories inside of this one (submodules and others) are added with their own fingerprints. Files that are ignored
# do not count, but what is ignored does, and so does what a sparse checkout leaves out. Content behind a link that leads
# out of the repository is not known to git: then there is no fingerprint.
# `names` has a line for each name; a newline in it is \001 there, and a repository with such a name has no fingerprint.
GIT_SCRIPT = (
    IN_REPOSITORY
    + NOTHING_HIDDEN
    + """\
set -e
git rev-parse --show-toplevel > /dev/null || exit 3
own_top
if test "$top" != "$(pwd -P)" && git check-ignore --quiet .; then exit 3; fi
tracked=${1:-}  # not empty: without the files that are not tracked
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

run() { git -c core.splitIndex=false "$@"; }

copy_index() {
    test -z "${GIT_INDEX_FILE:-}" || return 0
    index=$(git rev-parse --git-path index)
    test ! -f "$index" || cp -p "$index" "$1/index"
    GIT_INDEX_FILE=$1/index
    export GIT_INDEX_FILE
}

tree_of() (  # $1: its folder; $2: a folder for temporary files
    cd "$1"
    own_top
    disable_filters "$2"
    if test -n "$tracked"; then : > "$2/others"; else run ls-files -z --others --exclude-standard > "$2/others"; fi &
    others=$!
    run ls-files -v > "$2/flags" &
    run diff-files -z --name-only --ignore-submodules=dirty > "$2/changed"
    wait $!
    if grep -q '^[a-z]' "$2/flags"; then
        copy_index "$2"
        remove_flags "$2"
        run diff-files -z --name-only --ignore-submodules=dirty > "$2/changed"
    fi
    wait "$others"
    cat "$2/others" >> "$2/changed"
    if test -s "$2/changed"; then
        copy_index "$2"
        run update-index -z --info-only --add --remove --replace --stdin < "$2/changed" 2> "$2/errors"
    fi
    run ls-files --stage > "$2/tree"
    : > "$2/entries"
    if grep -q '^1[26]0000' "$2/tree"; then
        run ls-files -z --stage | tr '\\0\\n' '\\n\\001' > "$2/entries"
    fi
    unset GIT_INDEX_FILE
    sed -n '/^120000/s/^[^\t]*\t//p' "$2/entries" > "$2/links"
    while IFS= read -r name; do
        case $(readlink -f "$name") in
            "$top/.git" | "$top/.git/"*) exit 1 ;;
            "$top" | "$top/"*) ;;
            *) test ! -L "$name" || exit 1 ;;
        esac
    done < "$2/links"
    {
        sed -n '/^160000/s/^[^\t]*\t//p' "$2/entries"
        tr '\\0\\n' '\\n\\001' < "$2/others" | sed -n 's,/$,,p'
    } | sort -u > "$2/names"
    if grep -q "$(printf '\\001')" "$2/names" "$2/links"; then exit 1; fi
    sed -n '/^[Ss] /p' "$2/flags" >> "$2/tree"
    cat "$(git rev-parse --git-path info/exclude)" "$(command git config --type=path core.excludesFile)" >> "$2/tree" 2> "$2/errors" || true
    while IFS= read -r name; do
        if test -e "$name/.git" && ! test -L "$name"; then
            mkdir "$2/inner"
            tree_of "$name" "$2/inner" >> "$2/tree"
            rm -r "$2/inner"
        fi
    done < "$2/names"
    git hash-object --no-filters "$2/tree"
)
tree_of "$top" "$folder"
"""
)

# Folders that hold what others wrote, or what tools have made of the rest.
PRUNED = (
    *(".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle"),
)
FILES_SCRIPT = """\
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
sum=$(command -v sha256sum || command -v cksum)
files() { find . \\( PRUNED \\) -prune -o "$@"; }
files -type f -exec "$sum" {} + > "$folder/tree"
files -type f -perm -100 -print >> "$folder/tree"
files -type l -exec sh -c 'for name do printf "%s -> %s\\n" "$name" "$(readlink "$name")"; done' sh {} + >> "$folder/tree"
sort "$folder/tree" > "$folder/sorted"
"$sum" < "$folder/sorted"
""".replace("PRUNED", " -o ".join(f"-name {name}" for name in PRUNED))


async def tree_fingerprint(commands: ProjectCommands) -> str | None:
    """Return the fingerprint, or None if it cannot be found out; then nothing is cached."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _fingerprint(commands)
    except TimeoutError:
        return None


async def tracked_fingerprint(commands: ProjectCommands) -> str | None:
    """Return the fingerprint of the files that git tracks, or None if it cannot be found out."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            report = await commands.run_script(GIT_SCRIPT, "tracked")
    except TimeoutError:
        return None
    return report.stdout.strip() or None if isinstance(report, Exited) and report.code == 0 else None


async def _fingerprint(commands: ProjectCommands) -> str | None:
    report = await commands.run_script(GIT_SCRIPT)
    how = GIT
    if isinstance(report, Exited) and report.code == NO_REPOSITORY:
        how, report = FILES, await commands.run_script(FILES_SCRIPT)
    match report:
        case Exited(code=0, stdout=text) if text.strip():
            return f"{how} {text.strip()}"
        case _:
            return None
