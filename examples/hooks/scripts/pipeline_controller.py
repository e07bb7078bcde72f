#!/usr/bin/env python3
"""SubagentStop: a stage of the pipeline is done when the subagent of its type has written the stage's output.

.claude/pipeline.json: {"stages": [{"name": "plan", "agent": "feature-plan", "output": "PLAN.md"}, …]}
"""

import json

from hook_support import approve, block, fail, inside, project_of, read_input, state_folder, write

data = read_input()
project = project_of(data)
try:
    stages = json.loads(inside(project, ".claude/pipeline.json").read_text())["stages"]
    mine = [stage for stage in stages if stage["agent"] == data.get("agent_type")]
    for stage in mine:
        output = inside(project, stage["output"])
        if not output.is_file() or not output.stat().st_size:
            block(f"Stage {stage['name']} is not complete: write {stage['output']}.")
except (OSError, ValueError, LookupError, TypeError) as error:
    fail(f".claude/pipeline.json cannot be used: {error!r}")
for stage in mine:
    write(state_folder(data) / f"stage-{stage['agent']}", stage["name"])
approve()
