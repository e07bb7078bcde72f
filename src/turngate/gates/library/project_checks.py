"""The gates `tests`, `lint`, `types`, `format` and `build`: hold the stop until the project's own check passes.

Which command that is, the project's files say: see `find_checks.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.check_changes import block_once, find_definition, note_changes, program_of
from turngate.gates.find_checks import chosen_commands, find_check_commands, unreadable_files
from turngate.gates.gate import Gate, GateContext
from turngate.gates.library.command import (
    OPTIONS,
    RELATED,
    hold_until_passed,
    is_unchanged,
    nothing_to_check,
    record_command,
    show_command,
    with_note,
)
from turngate.gates.project_files import ProjectFiles, read_project

# Where a command of each check can be named, for a project without one.
LOOKED_FOR = {
    "tests": "a target `test` in a Makefile, a script `test` in package.json, pytest, unittest, cargo, go and others",
    "lint": "a target `lint` in a Makefile, a script `lint` in package.json, ruff, flake8, clippy, go vet and others",
    "types": "a target `types` in a Makefile, a script `typecheck` in package.json, mypy, pyright, tsc, cargo and others",
    "format": "a target `format-check` in a Makefile, a script `format:check` in package.json, ruff format, black, prettier, biome, cargo fmt, gofmt and others",
    "build": "a target `build` in a Makefile, a script `build` in package.json, cargo, go, maven, gradle and others",
}


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
    def counted_as(context: GateContext, commands: Sequence[CommandHook]) -> list[str]:
        """Return the names of numbers of tests. That of a single command is the same if another one is found for the project later."""
        if context.command:
            return [show_command(context.command)]
        return [
            f"{program_of(each.command)} of {name}" if len(commands) > 1 else f"command 0 of {name}"
            for each in commands
        ]

    async def check(context: GateContext) -> Decision:
        if (unchanged := is_unchanged(context)) is not None:
            return unchanged
        files = await read_project(context.commands)
        commands = _find_commands(context, name, files)
        definition = await _definition(context, commands, files)
        if block := block_once(context, name, definition):
            return block
        if isinstance(commands, Fault):
            return commands
        changes = note_changes(context, definition)
        if (nothing := await nothing_to_check(context, name, definition)) is not None:
            return with_note(nothing, changes)
        problems, notes = list[str](), list[str | None]()
        for command, counted in zip(commands, counted_as(context, commands), strict=True):
            result = await hold_until_passed(context, command, name, definition, counted)
            if isinstance(result, Block):
                return result
            if isinstance(result, Fault):
                problems.append(f"`{show_command(command)}`: {result.error}")
            elif isinstance(result, Allow):
                notes.append(result.reason)
        if problems:
            return Fault("; ".join(problems))
        return Allow("; ".join(filter(None, (*notes, changes))) or None)

    async def record(context: GateContext) -> Mapping[str, Any]:
        files = await read_project(context.commands)
        commands = _find_commands(context, name, files)
        definition = {"definition": await _definition(context, commands, files)}
        names = [] if isinstance(commands, Fault) else counted_as(context, commands)
        return {**definition, **await record_command(context, names)}

    return Gate(
        name=name,
        summary=summary,
        check=check,
        options=(*OPTIONS, RELATED) if name == "tests" else OPTIONS,
        command="optional",
        is_cached=True,
        record=record,
    )


async def _definition(
    context: GateContext, commands: Sequence[CommandHook] | Fault, files: ProjectFiles
) -> dict[str, str]:
    found = [] if isinstance(commands, Fault) else commands
    texts = [" ".join((each.command, *(each.args or ()))) for each in found]
    return await find_definition(context, texts, files)


TESTS = _project_check("tests", "the project's tests pass")
LINT = _project_check("lint", "the project's linter reports no problems")
TYPES = _project_check("types", "the project's type checker reports no problems")
FORMAT = _project_check("format", "the project's files are formatted")
BUILD = _project_check("build", "the project builds")
