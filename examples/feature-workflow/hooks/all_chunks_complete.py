#!/usr/bin/env python3
"""Stop: every chunk of the plan is complete, and its task is marked as done. Holds only after `/implement`.

A chunk that validate_chunk.py has passed in this session is complete. One of an earlier session is checked here.
"""

from hook_support import (
    approve,
    block,
    check_chunk,
    chunks,
    fail,
    open_tasks,
    plans,
    project_of,
    read_input,
    state_folder,
)

data = read_input()
project, state = project_of(data), state_folder(data)
if not (state / "implementing").exists():
    approve()
try:
    texts = [path.read_text("utf-8", "replace") for path in plans(project)]
except (OSError, ValueError) as error:
    fail(f"the plan cannot be read: {error}")
unchecked = [
    chunk for text in texts for chunk in chunks(text) if not (state / f"chunk-{chunk.name}").exists()
]
left = [problem for chunk in unchecked if (problem := check_chunk(chunk, project))]
left += [f"the task is not marked as done: {task}" for text in texts for task in open_tasks(text)]
if left:
    block("\n".join(["The plan is not complete:", *(f"- {each}" for each in left)]))
approve()
