"""The tools of our coding agent, with the names and inputs that people's scripts know."""

from collections.abc import Mapping

from turngate.agent.tools import bash, files, task
from turngate.agent.tools import search_tools as looking
from turngate.agent.tools import user_tools as talking
from turngate.agent.tools.arguments import absolute
from turngate.agent.tools.base import Tool, ToolContext, ToolFailed, ToolOutput, UserQuestion
from turngate.agent.tools.task import ALIASES

TOOLS: Mapping[str, Tool] = {
    tool.spec.name: tool
    for tool in (
        Tool(bash.BASH, bash.run, changes=True),
        Tool(files.READ, files.read, paths=("file_path",)),
        Tool(files.WRITE, files.write, changes=True, edits=True, paths=("file_path",)),
        Tool(files.EDIT, files.edit, changes=True, edits=True, paths=("file_path",)),
        Tool(looking.GLOB, looking.glob, paths=("path",)),
        Tool(looking.GREP, looking.grep, paths=("path",)),
        Tool(talking.TODO_WRITE, talking.write_todos),
        Tool(talking.ASK_USER, talking.ask_user),
        Tool(task.TASK, task.start, parallel=True),
    )
}

__all__ = ["ALIASES", "TOOLS", "Tool", "ToolContext", "ToolFailed", "ToolOutput", "UserQuestion", "absolute"]
