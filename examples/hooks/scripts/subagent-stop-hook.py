#!/usr/bin/env python3
"""SubagentStop: a subagent has used a tool before it says that it is done. Document 000 names this file."""

import json
from pathlib import Path

from hook_support import approve, block, fail, read_input

data = read_input()
path = data.get("agent_transcript_path") or data.get("transcript_path")
try:
    lines = Path(str(path)).read_text("utf-8", "replace").splitlines()
except OSError as error:
    fail(f"the transcript cannot be read: {error}")


def is_tool_call(line: str) -> bool:
    try:
        return bool(json.loads(line).get("type") == "tool_call")
    except (ValueError, AttributeError):
        return False


if not any(map(is_tool_call, lines)):
    block("Subagent should use tools to complete the task")
approve()
