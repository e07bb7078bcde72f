"""The gate `plan`: holds the stop until every task of a plan is done, and can wait for the user after each phase."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os.path import basename
from typing import Any

from turngate.aio.threads import run_in_thread
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault, Halt
from turngate.gates.conversation import (
    TranscriptUnreadable,
    find_prompt,
    is_mentioned,
    read_calls,
    was_edited,
    was_touched,
)
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.git.output import show_path
from turngate.gates.markdown_tasks import Task, count_open, describe_open, in_scope, read_plan
from turngate.gates.project_files import NoSuchFiles, expand_globs, read_file
from turngate.gates.run_commands import FilesUnreadable

# Phases that the user names: `phase 1`, `phases 1 and 2`, `not phase 3`.
_ASKED = re.compile(
    r"(?P<no>\b(?:not|n['’]t|without|before|until|except|leave|skip)\b[^.,;\n]{0,30}?)?\b(?P<kind>phase|stage|milestone)s?\s+"
    r"(?P<numbers>\w{1,4}\b(?:\s*(?:,|and|&)\s*\d{1,3}\b)*)",
    re.IGNORECASE,
)
_PHASE = re.compile(r"(?:phase|stage|milestone)\s+\S", re.IGNORECASE)


async def check_plan(context: GateContext) -> Decision:
    try:
        names = await expand_globs(context.commands, context.options["files"])
    except NoSuchFiles:
        if (context.state.start or {}).get("files") == [] and not context.state.data.get("asked"):
            return Allow()  # there is no plan yet
        raise
    results = [await _check_file(context, name) for name in names]
    for kind in (Fault, Halt, Block):
        for result in results:
            if isinstance(result, kind):
                return result
    notes = [result.reason for result in results if isinstance(result, Allow) and result.reason]
    return Allow("; ".join(notes) or None)


async def _check_file(context: GateContext, name: str) -> Decision:
    is_held = was_touched if context.options["if-touched"] else _was_named
    if not await is_held(context, name):
        return Allow()
    text = await read_file(context.commands, name)
    if text is None:
        return Fault(f"there is no file {show_path(name)} in the project")
    every = read_plan(text)
    if not every:
        return Fault(f"{show_path(name)} has no tasks: neither checkboxes nor a status")
    prompt = find_prompt(context.event)
    tasks = _asked_tasks(in_scope(every), prompt.text if prompt else "")
    if prompt and "plan" in prompt.text.casefold() and await _is_only_written(context, name, tasks):
        return Allow(f"{show_path(name)} was written, and none of it was begun")
    phases = _phases(tasks)
    current = next((phase for phase, own in phases.items() if count_open(own)), None)
    if current is None:
        return Allow()
    if not context.options["pause-between-phases"] or len(phases) == 1:
        return Block(_describe(tasks, show_path(name)))
    done = list(phases)[: list(phases).index(current)]
    if done and await _is_unconfirmed(context, name, done[-1]):
        number = count_open(phases[current])
        verb = "task is" if number == 1 else "tasks are"
        question = "Check the result, then say whether to go on."
        return Halt(f"{done[-1]} is complete; {number} {verb} open in {current}. {question}", waits=True)
    return Block(_describe(phases[current], f"{current} in {show_path(name)}"))


async def _was_named(context: GateContext, name: str) -> bool:
    """Return whether a plan is part of the session: the user or the agent has named it, or that is not known."""
    if context.base is not None:
        return True
    try:
        return await run_in_thread(is_mentioned, context.event, basename(name))
    except TranscriptUnreadable:
        return True


async def _is_only_written(context: GateContext, name: str, tasks: Sequence[Task]) -> bool:
    """Return whether the agent has written the plan, no other file, and no task is done: the plan is what was asked for."""
    if any(task.is_done for task in tasks) or context.base is not None:
        return False
    edited = {call.edited_file for call in await run_in_thread(read_calls, context.event)} - {None}
    return {basename(path or "") for path in edited} == {basename(name)}


def _asked_tasks(tasks: Sequence[Task], prompt: str) -> Sequence[Task]:
    """Return the tasks of the phases that the user names, without those that are to wait; all of them if none is named."""
    phases = _phases(tasks)
    wanted: set[str] = set()
    unwanted: set[str] = set()
    for found in _ASKED.finditer(prompt):
        numbers = {f"{found['kind']} {number}".casefold() for number in re.findall(r"\w+", found["numbers"])}
        named = {
            phase
            for phase in phases
            if " ".join(phase.casefold().rstrip(":").split()[:2]).rstrip(":.") in numbers
        }
        (unwanted if found["no"] else wanted).update(named)
    kept = wanted - unwanted or (set(phases) - unwanted if unwanted else set())
    return [task for phase in phases if phase in kept for task in phases[phase]] if kept else tasks


def _phases(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    """Return the tasks of each phase, in the order of the plan; what is outside of phases belongs to the whole plan."""
    phases: dict[str, list[Task]] = {}
    for task in tasks:
        names = [heading for heading in task.headings if _PHASE.match(heading)]
        phases.setdefault(names[0] if names else "the plan", []).append(task)
    return phases


async def _is_unconfirmed(context: GateContext, name: str, phase: str) -> bool:
    """Return whether the user has not answered yet since this phase was completed, in this session."""
    prompt = find_prompt(context.event)
    here = prompt.offset if prompt else context.event.prompt_id
    asked, key = context.state.data.setdefault("asked", {}), f"{name}: {phase}"
    if not isinstance(asked, dict):
        return False
    if key in asked:
        return here is not None and asked[key] == here
    if not await _was_completed_here(context, name, key):
        return False
    asked[key] = here
    return True


async def _was_completed_here(context: GateContext, name: str, key: str) -> bool:
    """Return whether the phase was still open at the session's start, or if that is unknown, the plan was edited since."""
    start = context.state.start
    if start is not None:
        complete = start.get("complete")
        return not (isinstance(complete, list) and key in complete)
    try:
        return await was_edited(context, name)
    except TranscriptUnreadable:
        return True


async def record_phases(context: GateContext) -> Mapping[str, Any]:
    """Return which plans are there at the session's start, and which of their phases are complete."""
    complete: list[str] = []
    names: list[str] = []
    with suppress(FilesUnreadable):  # a plan that comes later has no phases yet
        names += await expand_globs(context.commands, context.options["files"])
        for name in names:
            phases = _phases(read_plan(await read_file(context.commands, name) or ""))
            complete += [f"{name}: {phase}" for phase, tasks in phases.items() if not count_open(tasks)]
    return {"files": names, "complete": complete}


def _describe(tasks: Sequence[Task], where: str) -> str:
    number = count_open(tasks)
    verb, them = ("is", "it") if number == 1 else ("are", "them")
    listed = describe_open(tasks, with_section=True)
    return f"{number} of {len(tasks)} tasks of {where} {verb} open:\n{listed}\nComplete {them} and update the plan."


PLAN = Gate(
    name="plan",
    summary="every task of a plan is done",
    check=check_plan,
    record=record_phases,
    operands=GateOption("files", "texts", "Markdown files in the project", "PLAN.md…", required=True),
    options=(
        GateOption(
            "pause-between-phases",
            "flag",
            "end the turn after each phase, and continue with the next one when the user has answered",
        ),
        GateOption("if-touched", "flag", "only if the agent has edited the file in this session"),
    ),
)
