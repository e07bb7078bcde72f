#!/usr/bin/env python3
"""SubagentStop of feature-plan: the plan has chunks, each with its own files, its own tests and its task."""

import re

from hook_support import Chunk, approve, block, chunks, fail, inside, plans, project_of, read_input

data = read_input()
project = project_of(data)


def problems(plan: str) -> list[str]:
    found = chunks(plan)
    if not found:
        return ["it has no table | Chunk | Files | Tests | with a chunk in it"]
    owners: dict[str, str] = {}
    wrong = [problem for chunk in found for problem in _problems_of(chunk, owners)]
    tasks = [
        chunk.name
        for chunk in found
        if not re.search(rf"^\s*[-*] \[[ x]\].*\b{re.escape(chunk.name)}\b", plan, re.MULTILINE)
    ]
    return [*wrong, *(f"{name} has no task: - [ ] {name}: …" for name in tasks)]


def _problems_of(chunk: Chunk, owners: dict[str, str]) -> list[str]:
    wrong = [
        f"{chunk.name} has no {kind}"
        for kind, names in (("files", chunk.files), ("tests", chunk.tests))
        if not names
    ]
    for name in (*chunk.files, *chunk.tests):
        try:
            inside(project, name)
        except ValueError as error:
            wrong.append(f"{chunk.name}: {error}")
        if owners.setdefault(name, chunk.name) != chunk.name:
            wrong.append(
                f"{name} belongs to {owners[name]} and to {chunk.name}; they are implemented at the same time"
            )
    return wrong


try:
    texts = {str(path.relative_to(project)): path.read_text("utf-8", "replace") for path in plans(project)}
except (OSError, ValueError) as error:
    fail(f"the plan cannot be read: {error}")
if not texts:
    block("There is no plan. Write docs/plans/<feature>/PLAN.md.")
lines = [f"- {name}: {problem}" for name, text in texts.items() for problem in problems(text)]
if lines:
    block("\n".join(["The plan is not ready to be implemented:", *lines]))
approve()
