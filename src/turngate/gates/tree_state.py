"""The state of a project's files and of git, on this machine or on another one: equal states, equal content."""

import asyncio
import os
import re
import time
from collections.abc import Iterator

from turngate.aio.threads import run_in_thread
from turngate.core.answers.report_types import Exited
from turngate.gates.gate import GateContext
from turngate.gates.git.scripts import IN_REPOSITORY
from turngate.gates.local_tree_state import (
    COMMON_STATE,
    OWN_STATE,
    PRUNED,
    TIMEOUT_S,
    first_look,
    local_tree_state,
)
from turngate.gates.run_commands import GIT_FUNCTION
from turngate.state.files import open_regular_file

CLOCK_TICK_NS = 10_000_000  # the time of a file may be that much behind the clock
TAIL_BYTES = 256 * 1024  # of a transcript, in which edited files are looked for
MAX_EDITED = 100
# How tools of editing name their file.
_EDITED = rb'"(?:file_?|absolute_?)?path": ?"((?:[^"\\]|\\.){1,500})"|\*\*\* (?:Add|Delete|Update) File: ([^\\"\n]{1,500})'
# Prints what `local_tree_state` returns, for another machine. $1: this script, for repositories inside of this one.
SCRIPT = (
    IN_REPOSITORY
    + """\
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
sum=$(command -v sha256sum || command -v cksum)
script=$1
export script sum top
describe() {
    xargs -0 -n 200 sh -c '
        for name do
            shift
            if test -L "$name"; then
                case ${name##*/} in
                    OF_TOOLS) ;;
                    *) case $(readlink -f "$name")/ in "$top/.git/"*) exit 1 ;; "$top/"*) ;; *) exit 1 ;; esac ;;
                esac
                echo "$name -> $(readlink "$name")"
            elif test -d "$name"; then
                test ! -e "$name/.git" || (echo "$name" && cd "$name" && sh -c "$script" turngate "$script") || exit 1
            elif test -f "$name"; then
                set -- "$@" "$name"
                test ! -x "$name" || echo "$name x"
            elif test -e "$name"; then
                exit 1
            fi
        done
        test $# = 0 || exec "$sum" -- "$@"
    ' sh < "$folder/names"
}
if in_repository 2> "$folder/errors"; then
    cd "$top"
    git ls-files -z --cached --others --exclude-standard > "$folder/names"
    describe > "$folder/files"
    git ls-files -v --stage >> "$folder/files"
    git for-each-ref >> "$folder/files"
    git rev-parse GIT_STATE > "$folder/paths"
    command git config --type=path core.excludesFile >> "$folder/paths" || true
    while read -r path; do cat "$path" >> "$folder/files" 2> "$folder/errors" || true; done < "$folder/paths"
else
    top=$(pwd -P)
    find . \\( PRUNED \\) -prune -o \\( -type f -o -type l \\) -print0 > "$folder/names"
    describe > "$folder/files"
fi
sort "$folder/files" | "$sum"
""".replace("OF_TOOLS", " | ".join(PRUNED))
    .replace("PRUNED", " -o ".join(f"-name {name}" for name in PRUNED))
    .replace("GIT_STATE", " ".join(f"--git-path {name}" for name in (*OWN_STATE, *COMMON_STATE)))
)


async def tree_state(
    context: GateContext, since_ns: int | None = None, names: str | None = None
) -> str | None:
    """Return the state, or None if it cannot be found out or used later (on this machine: `local_tree_state`). Raises ProjectUnreachable."""
    if context.state_folder is None:
        return None
    if context.commands.is_local:
        return await run_in_thread(local_tree_state, context.project, context.state_folder, since_ns, names)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            report = await context.commands.run_script(SCRIPT, GIT_FUNCTION + SCRIPT)
    except TimeoutError:
        return None
    return report.stdout if isinstance(report, Exited) and report.code == 0 else None


async def look_first(context: GateContext, *, is_whole: bool) -> None:
    """Find the state before the check; if it need not be the whole one, one look after the check may be enough. Raises ProjectUnreachable."""
    context.unseen = None
    if is_whole or context.state_folder is None or not context.commands.is_local:
        context.tree = await tree_state(context)
        return
    moment, start = time.time_ns(), context.start_state
    edited = _edited_files(context.event.transcript_path) if start else ()
    context.tree, names = await run_in_thread(
        first_look, context.project, context.state_folder, start, edited
    )
    if names:
        context.unseen = names, moment
        # What the check changes gets a later time than what was changed before.
        await asyncio.sleep((moment + CLOCK_TICK_NS - time.time_ns()) / 1e9)


def _edited_files(transcript: str | None) -> Iterator[str]:
    """Yield the files that the agent has probably edited, which tells only where to look first."""
    if not transcript:
        return
    try:
        with open(open_regular_file(transcript, os.O_RDONLY), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            tail = file.read(TAIL_BYTES)
    except OSError:
        return
    found = [match[1] or match[2] for match in re.finditer(_EDITED, tail)]
    yield from dict.fromkeys(os.fsdecode(path) for path in found[-MAX_EDITED:])


async def tree_before(context: GateContext) -> str | None:
    """Return the state before the check. If it was not looked for then, it is that of now, unless something has changed since."""
    if context.unseen:
        names, moment = context.unseen
        context.unseen, context.commands_by_look = None, context.commands.count
        context.tree = await tree_state(context, moment, names)
    return context.tree
