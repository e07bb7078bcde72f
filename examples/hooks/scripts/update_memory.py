#!/usr/bin/env python3
"""Stop: MEMORY.md beside each plan says where the work stands. It never blocks, and it can run any number of times.

The entry of a session is replaced and not repeated, the newest one is first, and only the last ten are kept.
"""

import re
from pathlib import Path

from hook_support import (
    fail,
    inside,
    last_answer,
    locked,
    open_tasks,
    project_of,
    read_input,
    read_plans,
    write,
)

MAX_ENTRIES = 10
ENTRY = re.compile(r"^## Session (?P<id>\S+)\n.*?(?=^## Session |\Z)", re.MULTILINE | re.DOTALL)


def entry(session: str, answer: str, plan: str) -> str:
    tasks = open_tasks(plan)
    state = "all tasks are done" if not tasks else f"{len(tasks)} open: {'; '.join(tasks[:5])}"
    # One line, so that an answer cannot look like another entry.
    return f"## Session {session}\n\n- tasks: {state}\n- last answer: {' '.join(answer.split())[:500]}\n"


def update(memory: Path, session: str, text: str) -> None:
    with locked(memory):
        old = memory.read_text("utf-8", "replace") if memory.exists() else "# Memory\n"
        head = old[: found.start()] if (found := ENTRY.search(old)) else old
        others = [each[0].strip() for each in ENTRY.finditer(old) if each["id"] != session]
        kept = [head.strip(), text.strip(), *others[: MAX_ENTRIES - 1]]
        write(memory, "\n\n".join(part for part in kept if part) + "\n")


data = read_input()
session = re.sub(r"[^\w.-]", "_", str(data.get("session_id")))[:100]
project = project_of(data)
for name, plan in read_plans(project, refuse=fail).items():
    try:
        memory = inside(project, str(Path(name).with_name("MEMORY.md")))
    except ValueError as error:
        fail(f"the memory is not written: {error}")
    update(memory, session, entry(session, last_answer(data), plan))
