#!/usr/bin/env python3
"""Stop: every stage of .claude/pipeline.json was completed by its subagent in this session (pipeline_controller.py)."""

import json

from hook_support import approve, block, fail, inside, project_of, read_input, state_folder

data = read_input()
try:
    stages = json.loads(inside(project_of(data), ".claude/pipeline.json").read_text())["stages"]
    left = [stage for stage in stages if not (state_folder(data) / f"stage-{stage['agent']}").exists()]
    names = [f"{stage['name']} (subagent {stage['agent']})" for stage in left]
except (OSError, ValueError, LookupError, TypeError) as error:
    fail(f".claude/pipeline.json cannot be used: {error!r}")
if names:
    block(f"These stages of the pipeline are not complete: {', '.join(names)}.")
approve()
