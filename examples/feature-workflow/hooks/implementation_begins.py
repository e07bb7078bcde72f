#!/usr/bin/env python3
"""UserPromptSubmit: remember which chunks the user has started to implement in this session, for all_chunks_complete.py.

Without it, the plan alone would hold every session of the project, also the one that only writes the plan.
"""

import json
import re

from hook_support import chunks, fail, plans, project_of, read_input, state_folder, write

data = read_input()
if re.match(r"/(\w+:)?implement\b", str(data.get("prompt", ""))):
    try:
        texts = [path.read_text("utf-8", "replace") for path in plans(project_of(data))]
    except (OSError, ValueError) as error:
        fail(f"the plan cannot be read: {error}")
    write(
        state_folder(data) / "implementing", json.dumps([chunk for text in texts for chunk in chunks(text)])
    )
