#!/usr/bin/env python3
"""Stop: every task of the plan is marked complete. Open tasks are listed; those in code blocks do not count."""

from hook_support import approve, block, fail, open_tasks, plans, project_of, read_input

MAX_LISTED = 10

data = read_input()
project = project_of(data)
try:
    found = plans(project)
    tasks = [
        (path.relative_to(project), task)
        for path in found
        for task in open_tasks(path.read_text("utf-8", "replace"))
    ]
except (OSError, ValueError) as error:
    fail(f"the plan cannot be read: {error}")
if tasks:
    count, are = ("1 task", "is") if len(tasks) == 1 else (f"{len(tasks)} tasks", "are")
    lines = [f"- {path}: {task}" for path, task in tasks[:MAX_LISTED]]
    more = [f"- and {len(tasks) - MAX_LISTED} more"] if len(tasks) > MAX_LISTED else []
    block("\n".join([f"{count} of the plan {are} not complete:", *lines, *more]))
approve()
