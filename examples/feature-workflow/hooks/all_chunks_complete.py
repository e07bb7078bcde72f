#!/usr/bin/env python3
"""Stop: every chunk of the plan is complete, and its task is marked as done. Holds only after `/implement`.

A chunk that validate_chunk.py has passed in this session is complete while its files are there. One of an earlier session
is checked here. The plan keeps the chunks that it had when the user started the implementation.
"""

import json

from hook_support import (
    Chunk,
    approve,
    block,
    check_chunk,
    chunks,
    fail,
    missing_files,
    open_tasks,
    project_of,
    read_input,
    read_plans,
    state_folder,
)

data = read_input()
project, state = project_of(data), state_folder(data)
if not (state / "implementing").exists():
    approve()
try:
    started = [
        Chunk(name, tuple(files), tuple(tests))
        for name, files, tests in json.loads((state / "implementing").read_text("utf-8"))
    ]
except (OSError, ValueError) as error:
    fail(f"the state of the implementation cannot be read: {error}")
texts = read_plans(project).values()
planned = [chunk for text in texts for chunk in chunks(text)]
names = {chunk.name for chunk in planned}
left = [f"{chunk.name} is no longer in the plan: restore it" for chunk in started if chunk.name not in names]
for chunk in dict.fromkeys([*planned, *(each for each in started if each.name in names)]):
    check = missing_files if (state / f"chunk-{chunk.name}").exists() else check_chunk
    if problem := check(chunk, project):
        left.append(problem)
left += [f"the task is not marked as done: {task}" for text in texts for task in open_tasks(text)]
if left:
    block("\n".join(["The plan is not complete:", *(f"- {each}" for each in left)]))
approve()
