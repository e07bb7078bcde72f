"""The gates `tests`, `lint`, `types` and `build`: hold the stop until the project's own check passes.

Which command that is, the project's files say: see `find_checks.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.check_definition import check_definition, describe_changes
from turngate.gates.find_checks import (
    LISTED_FOLDERS,
    MAX_FILE_BYTES,
    ProjectFiles,
    chosen_commands,
    files_to_read,
    find_check_commands,
    read_project_files,
    unreadable_files,
)
from turngate.gates.gate import Gate, GateContext
from turngate.gates.library.command import (
    OPTIONS,
    hold_until_passed,
    record_command,
    show_command,
)
from turngate.gates.project_files import stdout_of
from turngate.gates.run_commands import ProjectCommands
from turngate.gates.stored_state import digest

# Where a command of each check can be named, for a project without one.
LOOKED_FOR = {
    "tests": "a target `test` in a Makefile, a script `test` in package.json, pytest, unittest, cargo, go and others",
    "lint": "a target `lint` in a Makefile, a script `lint` in package.json, ruff, flake8, clippy, go vet and others",
    "types": "a target `types` in a Makefile, a script `typecheck` in package.json, mypy, pyright, tsc, cargo and others",
    "build": "a target `build` in a Makefile, a script `build` in package.json, cargo, go, maven, gradle and others",
}

# Prints the names in each folder, and then the texts of the files that exist, all separated by \0.
_LIST_SCRIPT = """\
for folder do
    for name in "$folder"/* "$folder"/.[!.]*; do
        if test -e "$name"; then printf '%s\\0' "${name#./}"; fi
    done
done
"""
_READ_SCRIPT = """\
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
    listed = stdout_of(await commands.run_script(_LIST_SCRIPT, *LISTED_FOLDERS), problem)
    names = frozenset(listed.split("\0")) - {""}
    wanted = files_to_read(names)
    printed = stdout_of(await commands.run_script(_READ_SCRIPT, str(MAX_FILE_BYTES + 1), *wanted), problem)
    parts = printed.split("\0")
    texts = dict(zip(parts[::2], parts[1::2], strict=False))
    return ProjectFiles(names, {name: text for name, text in texts.items() if len(text) <= MAX_FILE_BYTES})


def _find_commands(context: GateContext, check: str, files: ProjectFiles) -> list[CommandHook] | Fault:
    """Return the project's commands: the target of make alone, which is for all parts of it, or one for each part."""
    if context.command is not None:
        return [context.command]
    found = chosen_commands(find_check_commands(files), check)
    if not found:
        broken = "; ".join(f"{name} cannot be read: {why}" for name, why in unreadable_files(files).items())
        why = f"this project has none that is known; looked for {LOOKED_FOR[check]}"
        hint = f"name it: turngate gate {check} -- COMMAND"
        return Fault("; ".join(filter(None, (why, broken, hint))))
    return [CommandHook(command=each.command) for each in found]


def _project_check(name: str, summary: str) -> Gate:
    async def check(context: GateContext) -> Decision:
        files = await read_project(context.commands)
        commands = _find_commands(context, name, files)
        definition = _definition(name, commands, files)
        if changes := _new_changes(context, definition):
            return Block(f"{CHANGED.format(name)}\n{changes}\n{ONCE}")
        if isinstance(commands, Fault):
            return commands
        problems: list[str] = []
        note = None
        for command in commands:
            result = await hold_until_passed(context, command, name)
            if isinstance(result, Block):
                return result
            if isinstance(result, Fault):
                problems.append(f"`{show_command(command)}`: {result.error}")
            elif isinstance(result, Allow):
                note = result.reason or note
        if problems:
            return Fault("; ".join(problems))
        told = describe_changes(_definition_at_start(context) or definition, definition)
        return Allow("; ".join(filter(None, (note, *told))) or None)

    async def record(context: GateContext) -> Mapping[str, Any]:
        files = await read_project(context.commands)
        commands = _find_commands(context, name, files)
        found = [] if isinstance(commands, Fault) else commands
        definition = {"definition": _definition(name, commands, files)}
        return {**definition, **await record_command(context, *found, check=name)}

    return Gate(
        name=name,
        summary=summary,
        check=check,
        options=OPTIONS,
        command="optional",
        is_cached=True,
        record=record,
    )


CHANGED = "The check `{}` itself was changed in this session:"
ONCE = (
    "If the user has not asked for this, undo it. Otherwise stop again: the check then runs as it is now, "
    "and the user is told of the change."
)


def _definition(check: str, commands: Sequence[CommandHook] | Fault, files: ProjectFiles) -> dict[str, str]:
    texts = [] if isinstance(commands, Fault) else [show_command(each) for each in commands]
    return check_definition(check, texts, files)


def _definition_at_start(context: GateContext) -> dict[str, str] | None:
    """Return what defined the check at the session's start, or else at its first stop."""
    recorded = (context.state.start or {}).get("definition") or context.state.data.get("definition")
    return {str(name): str(text) for name, text in recorded.items()} if isinstance(recorded, dict) else None


def _new_changes(context: GateContext, definition: Mapping[str, str]) -> str | None:
    """Return how the session has changed the check, the first time that a change is seen."""
    data, before = context.state.data, _definition_at_start(context)
    if before is None:
        data["definition"] = dict(definition)
    seen = digest(repr(sorted(definition.items())))
    changes = describe_changes(before or definition, definition)
    if not changes or data.get("told") == seen:
        return None
    data["told"], context.keeps_result = seen, False
    return "\n".join(f"- {each}" for each in changes)


TESTS = _project_check("tests", "the project's tests pass")
LINT = _project_check("lint", "the project's linter has no complaints")
TYPES = _project_check("types", "the project's type checker has no complaints")
BUILD = _project_check("build", "the project builds")
