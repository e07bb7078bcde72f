#!/usr/bin/env python3
"""SubagentStop: the answer of a subagent says something, and the files that it says it wrote exist."""

import re

from hook_support import approve, block, inside, last_answer, project_of, read_input
from safe_paths import is_sensitive

CLAIM = re.compile(r"\b(?:wrote|written|created|added|saved|updated)\b[^.\n`]*`([^`\n]+)`", re.IGNORECASE)

data = read_input()
answer, project = last_answer(data), project_of(data)
if not answer.strip():
    block("Your answer is empty. Report what you did, which files you changed and what is left.")
missing = []
for name in CLAIM.findall(answer):
    if is_sensitive(name):
        continue  # not even looked for
    try:
        if not inside(project, name).exists():
            missing.append(name)
    except ValueError:
        missing.append(name)
if missing:
    block(
        f"You name files that do not exist in the project: {', '.join(missing)}. Write them, or correct your answer."
    )
approve()
