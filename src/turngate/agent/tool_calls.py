"""Runs the tools that an answer asks for: permission first, then the tool, then whoever wants to look at it."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngate.agent.loop_context import LoopContext, TurnHalted
from turngate.agent.tools import ALIASES, Tool, ToolFailed, ToolOutput, UserQuestion, absolute
from turngate.aio.foreign import run_isolated
from turngate.core.effects import added_context, block_reasons, permission_before_tool, permission_for_user
from turngate.core.events import PermissionRequest, PostToolUse, PreToolUse
from turngate.core.messages import ToolResult, ToolUse
from turngate.core.session_events import ToolFinished, ToolStarted
from turngate.core.verdict import Continue, Stop, Verdict


async def run_tools(desk: LoopContext, uses: Sequence[ToolUse]) -> None:
    """In the order asked for, and children that are asked for together at once; each result is kept when it is there."""
    desk.turn.results = []  # what has a result keeps it, however the turn ends
    for together in _groups(desk, uses):
        # An interrupt that came with the last tool's end counts before the next one begins.
        await asyncio.sleep(0)
        if len(together) == 1:
            await _run(desk, together[0])
        else:
            await _run_all(desk, together)
    desk.add_tool_results(uses)


def _groups(desk: LoopContext, uses: Sequence[ToolUse]) -> list[list[ToolUse]]:
    groups: list[list[ToolUse]] = []
    last = False
    for use in uses:
        tool = find_tool(desk, use.name)
        parallel = tool is not None and tool.parallel
        if parallel and last:
            groups[-1].append(use)
        else:
            groups.append([use])
        last = parallel
    return groups


def find_tool(desk: LoopContext, name: str) -> Tool | None:
    return desk.tools.get(ALIASES.get(name, name))


async def _run_all(desk: LoopContext, uses: Sequence[ToolUse]) -> None:
    """All of them are waited for; the first that halts the turn ends the others."""
    try:
        async with asyncio.TaskGroup() as group:
            for use in uses:
                group.create_task(_run(desk, use))
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None


async def _run(desk: LoopContext, use: ToolUse) -> None:
    if desk.turn.question is not None:
        desk.add_tool_result(ToolResult(use.id, "not run: the user was asked first", is_error=True))
        return
    desk.turn.tool_calls += 1
    desk.turn.tools_used[use.name] = None
    desk.emit(ToolStarted(use))
    started = time.monotonic()
    halted, key = None, ""
    try:
        output, halted = await _attempt(desk, use)
        result, key = ToolResult(use.id, output.text, output.is_error), output.key
    except ToolFailed as failed:
        result = ToolResult(use.id, str(failed), is_error=True)
    desk.add_tool_result(result, key)
    desk.emit(ToolFinished(use, result, time.monotonic() - started))
    if halted is not None:
        raise halted


async def _attempt(desk: LoopContext, use: ToolUse) -> tuple[ToolOutput, TurnHalted | None]:
    """What the tool gave; a hook that ends the turn after it has worked does not take its result away."""
    tool = find_tool(desk, use.name)
    if tool is None:
        raise ToolFailed(f"there is no tool {use.name!r}; there are {', '.join(desk.tools)}")
    given = absolute(tool, use.input, desk.workplace)
    verdict = await _ask(
        desk, PreToolUse(**desk.common(), tool_name=use.name, tool_input=given, tool_use_id=use.id)
    )
    said = permission_before_tool(verdict.runs)
    if isinstance(verdict, Continue):  # a block, a denial, or a guard that must work and is broken
        raise ToolFailed(f"a hook refused this: {verdict.prompt}")
    if desk.permission_mode == "plan" and tool.changes:
        raise ToolFailed(f"{use.name} is not allowed in plan mode: only look, and say what you would do")
    if said.updated_input is not None:
        given = absolute(tool, said.updated_input, desk.workplace)
    if said.behavior != "allow":
        given = await _permitted(desk, tool, use, given, ask=said.behavior == "ask")
    try:
        gave = await tool.run(given, desk.workplace)
    except UserQuestion as asked:
        choices = "".join(f"\n- {option}" for option in asked.options)
        desk.turn.question = asked.question + choices
        return ToolOutput("The user was asked; the answer comes with the next message."), None
    output = gave if isinstance(gave, ToolOutput) else ToolOutput(gave)
    if output.is_error:
        return output, None
    after = PostToolUse(
        **desk.common(), tool_name=use.name, tool_input=given, tool_use_id=use.id, tool_response=output.text
    )
    verdict = await desk.fire(after)
    feedback = [block_reasons(verdict.runs) or "", added_context(verdict.runs, plain=False), said.context]
    whole = "\n\n".join([output.text, *(f"A hook says: {text}" for text in feedback if text)])
    ended = isinstance(verdict, Stop) and verdict.halted
    return replace(output, text=whole), TurnHalted(verdict.stop_reason) if ended and isinstance(
        verdict, Stop
    ) else None


async def _permitted(
    desk: LoopContext, tool: Tool, use: ToolUse, given: dict[str, Any], *, ask: bool
) -> dict[str, Any]:
    """The input that may be run with; raises ToolFailed when it may not."""
    if not ask and not _needs_permission(desk, tool):
        return given
    verdict = await _ask(desk, PermissionRequest(**desk.common(), tool_name=use.name, tool_input=given))
    said = permission_for_user(verdict.runs)
    if said.behavior == "deny":
        if said.interrupt:
            raise TurnHalted(said.reason)
        raise ToolFailed(f"permission was refused: {said.reason}")
    if said.behavior == "allow":
        changed: Mapping[str, Any] | None = said.updated_input
        return given if changed is None else absolute(tool, changed, desk.workplace)
    if desk.permit is None:
        raise ToolFailed(
            f"{use.name} needs permission and nobody is here to give it; start with --allow {use.name}"
        )
    if not await run_isolated(desk.permit(ToolUse(use.id, use.name, given), use.name)):
        raise ToolFailed(f"the user did not permit {use.name}")
    return given


def _needs_permission(desk: LoopContext, tool: Tool) -> bool:
    if not tool.changes or tool.spec.name in desk.allowed or desk.permission_mode == "bypassPermissions":
        return False
    return not (tool.edits and desk.permission_mode == "acceptEdits")


async def _ask(desk: LoopContext, event: PreToolUse | PermissionRequest) -> Verdict:
    verdict = await desk.fire(event)
    if isinstance(verdict, Stop) and verdict.halted:
        raise TurnHalted(verdict.stop_reason)
    return verdict
