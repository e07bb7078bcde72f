#!/usr/bin/env python3
"""SubagentStop of feature-plan: the plan has chunks, each with its own files, its own tests and its task."""

import re

from hook_support import Chunk, approve, block, chunks, project_of, read_input, read_plans, refused_files

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
    wrong += refused_files(chunk, project)
    for name in (*chunk.files, *chunk.tests):
        if owners.setdefault(name, chunk.name) != chunk.name:
            wrong.append(
                f"{name} belongs to {owners[name]} and to {chunk.name}; they are implemented at the same time"
            )
    return wrong


plans = read_plans(project)
if not plans:
    block("There is no plan. Write docs/plans/<feature>/PLAN.md.")
lines = [f"- {name}: {problem}" for name, plan in plans.items() for problem in problems(plan)]
if lines:
    block("\n".join(["The plan is not ready to be implemented:", *lines]))
approve()
