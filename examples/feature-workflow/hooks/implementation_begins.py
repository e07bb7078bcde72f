#!/usr/bin/env python3
"""UserPromptSubmit: remember which chunks the user has started to implement in this session, for all_chunks_complete.py.

Without it, the plan alone would hold every session of the project, also the one that only writes the plan. A plan with
files that hooks do not open is not implemented.
"""

import json
import re

from hook_support import block, chunks, project_of, read_input, read_plans, refused_files, state_folder, write

data = read_input()
if re.match(r"/(\w+:)?implement\b", str(data.get("prompt", ""))):
    project = project_of(data)
    found = [chunk for plan in read_plans(project).values() for chunk in chunks(plan)]
    if problems := [problem for chunk in found for problem in refused_files(chunk, project)]:
        block("\n".join(["The plan cannot be implemented:", *(f"- {each}" for each in problems)]))
    write(state_folder(data) / "implementing", json.dumps(found))
