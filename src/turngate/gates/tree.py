"""The fingerprint of a project's content: equal fingerprints, equal files. Ignored files are left out."""

from turngate.core.reports import Exited
from turngate.gates.project_commands import ProjectCommands

# git hashes only what differs from its index. The copy of the index is a temporary one, and no object is written.
# A commit of the same content gives the same fingerprint.
GIT_TREE_SCRIPT = """\
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
cd "$(git rev-parse --show-toplevel)"
index=$(git rev-parse --git-path index)
test ! -f "$index" || cp -p "$index" "$folder/index"
GIT_INDEX_FILE=$folder/index
export GIT_INDEX_FILE
git -c core.fsmonitor=false ls-files -z --modified --others --exclude-standard > "$folder/changed"
git -c core.fsmonitor=false update-index -z --info-only --add --remove --stdin < "$folder/changed"
git ls-files -z --stage > "$folder/tree"
git hash-object --no-filters "$folder/tree"
"""


async def tree_fingerprint(commands: ProjectCommands) -> str | None:
    """Return the fingerprint, or None if it cannot be found out; then nothing is cached."""
    report = await commands.run_script(GIT_TREE_SCRIPT)
    match report:
        case Exited(code=0, stdout=text) if text.strip():
            return text.strip()
        case _:
            return None
