#!/usr/bin/env python3
"""Stop: every task of the plan is marked complete. Open tasks are listed; those in code blocks do not count."""

from hook_support import approve, block, open_tasks, project_of, read_input, read_plans

MAX_LISTED = 10

plans = read_plans(project_of(read_input()))
tasks = [(name, task) for name, plan in plans.items() for task in open_tasks(plan)]
if tasks:
    count, are = ("1 task", "is") if len(tasks) == 1 else (f"{len(tasks)} tasks", "are")
    lines = [f"- {name}: {task}" for name, task in tasks[:MAX_LISTED]]
    more = [f"- and {len(tasks) - MAX_LISTED} more"] if len(tasks) > MAX_LISTED else []
    block("\n".join([f"{count} of the plan {are} not complete:", *lines, *more]))
approve()
