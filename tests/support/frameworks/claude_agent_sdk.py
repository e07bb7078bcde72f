"""Claude's Agent SDK, with a program that stands in for Claude Code."""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, TextBlock, query

from tests.support.frameworks import QUESTION, Ran, Script
from tests.support.paths import ROOT
from turngate.claude_agent_sdk import StopGates

__all__ = ("StopGates",)

_OF_PROGRAM = "is Claude Code's own, and the program that stands in for it does not have it"
ABSENT = {
    "sync": "the SDK has only asynchronous functions",
    "structured": f"structured output {_OF_PROGRAM}",
    "limit": f"`max_turns` {_OF_PROGRAM}",
    "beside": "Claude Code asks all hooks of a stop at once, and one block is enough",
    "history": f"the conversation {_OF_PROGRAM}",
    "conversation": "Claude Code writes the transcript itself",
}
LIMIT_ERROR: type[Exception] | None = None


async def _run(gates: Any, script: Script, child: Script | None = None) -> Ran:
    with tempfile.TemporaryDirectory() as folder:
        program, file = Path(folder, "claude"), Path(folder, "script.json")
        source = (ROOT / "tests" / "support" / "fake_claude_agent.py").read_text()
        program.write_text(f"#!{sys.executable}\n{source}")
        program.chmod(0o755)
        replies = {"main": script.replies, "child": child.replies if child else []}
        content = {name: [asdict(each) for each in said] for name, said in replies.items()}
        file.write_text(json.dumps({**content, "asked": {"main": [], "child": []}}, default=str))
        answer, streamed, used = "", "", 0
        options = ClaudeAgentOptions(cli_path=program, cwd=folder, hooks=gates)
        try:
            async for message in query(prompt=QUESTION, options=options):
                if isinstance(message, AssistantMessage):
                    streamed += "".join(each.text for each in message.content if isinstance(each, TextBlock))
                elif isinstance(message, ResultMessage):
                    answer, used = message.result or "", (message.usage or {})["output_tokens"]
        finally:
            asked = json.loads(file.read_text())["asked"]
            script.asked += asked["main"]
            if child:
                child.asked += asked["child"]
        return Ran(answer, [], used, streamed)


async def run(gates: Any, script: Script, **_: Any) -> Ran:
    return await _run(gates, script)


stream = run


async def run_parent(gates: Any, child_gates: Any, script: Script, child_script: Script) -> Ran:
    """Both are of one dictionary of hooks: the child's gates are asked about the subagent `helper`."""
    hooks = {name: [*gates.get(name, []), *child_gates.get(name, [])] for name in {**gates, **child_gates}}
    script.replies = script.replies[1:]  # here the subagent has answered before
    return await _run(hooks, script, child_script)
