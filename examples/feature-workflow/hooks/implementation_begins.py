#!/usr/bin/env python3
"""UserPromptSubmit: remember that the user has started the implementation in this session, for all_chunks_complete.py.

Without it, the plan alone would hold every session of the project, also the one that only writes the plan.
"""

import re

from hook_support import read_input, state_folder, write

data = read_input()
if re.match(r"/(\w+:)?implement\b", str(data.get("prompt", ""))):
    write(state_folder(data) / "implementing", "")
