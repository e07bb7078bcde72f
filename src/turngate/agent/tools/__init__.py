"""The tools of the coding agent, with the names and inputs of Claude Code's tools."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from turngate.agent.tools import ask_and_todo, bash, files, search_tools
from turngate.agent.tools.tool import Tool, ToolContext, check_arguments
from turngate.core.conversation.tools import ToolFailed, ToolOutput, resolve_tool
from turngate.settings.agent_types import AgentType, is_disallowed
from turngate.subagents.task_tool import TASK, task_spec

WITH_BASH = ("BashOutput", "KillShell")  # an agent that has Bash has these as well
MAIN_AGENT_ONLY = ("AskUser",)  # a subagent has no user


async def start_subagent(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    if context.start_subagent is None:
        raise ToolFailed("no subagent can be started here")
    return await context.start_subagent(args)


TOOLS: Mapping[str, Tool] = {
    tool.spec.name: tool
    for tool in (
        Tool(bash.BASH, bash.run, changes=True),
        Tool(bash.BASH_OUTPUT, bash.read_output),
        Tool(bash.KILL_SHELL, bash.kill_shell),
        Tool(files.READ, files.read, paths=("file_path",)),
        Tool(files.WRITE, files.write, changes=True, edits=True, paths=("file_path",)),
        Tool(files.EDIT, files.edit, changes=True, edits=True, paths=("file_path",)),
        Tool(search_tools.GLOB, search_tools.glob, paths=("path",)),
        Tool(search_tools.GREP, search_tools.grep, paths=("path",)),
        Tool(ask_and_todo.TODO_WRITE, ask_and_todo.write_todos),
        Tool(ask_and_todo.ASK_USER, ask_and_todo.ask_user),
        Tool(TASK, start_subagent, parallel=True),
    )
}


def with_task(tools: Mapping[str, Tool], agent_types: Mapping[str, AgentType] | None) -> dict[str, Tool]:
    """Return the tools with the agent types in the description of Task, or without Task if there are none."""
    if agent_types is None:
        return {name: tool for name, tool in tools.items() if name != TASK.name}
    return {
        name: replace(tool, spec=task_spec(agent_types)) if name == TASK.name else tool
        for name, tool in tools.items()
    }


def tools_of_subagent(agent_type: AgentType, limit: Collection[str] | None) -> dict[str, Tool]:
    """Return the tools that its agent type and the limit allow: the tools of its parent, or of its start."""
    tools = {name: tool for name, tool in TOOLS.items() if name not in MAIN_AGENT_ONLY}
    for names in (agent_type.tools, limit):
        if names is not None:
            allowed = {resolve_tool(name) for name in names}
            allowed |= set(WITH_BASH) if "Bash" in allowed else set()
            tools = {name: tool for name, tool in tools.items() if name in allowed}
    disallowed = {name for name in tools if is_disallowed(name, agent_type.disallowed_tools)}
    disallowed |= set(WITH_BASH) if "Bash" in disallowed else set()
    return {name: tool for name, tool in tools.items() if name not in disallowed}


__all__ = ["TOOLS", "ToolContext", "ToolFailed", "check_arguments", "tools_of_subagent", "with_task"]
