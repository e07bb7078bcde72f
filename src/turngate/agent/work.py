"""Runs the tools that an answer asks for: permission first, then the tool, then whoever wants to look at it."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from turngate.agent.desk import Desk
from turngate.agent.tools import TOOLS, Asked, Tool, ToolFailed, absolute
from turngate.core.events import PermissionRequest, PostToolUse, PreToolUse
from turngate.core.messages import Results, ToolResult, ToolUse
from turngate.core.moments import context_of, permission_before_tool, permission_for_user, refusal_of
from turngate.core.turn import ToolFinished, ToolStarted
from turngate.core.verdict import Continue, Stop, Verdict


class TurnHalted(Exception):
    """A hook said `continue: false` in the middle of a turn."""

    def __init__(self, reason: str | None) -> None:
        super().__init__(reason or "")
        self.reason = reason


async def run_tools(desk: Desk, uses: Sequence[ToolUse]) -> Results:
    """One after another, in the order asked for; each has its result, also when it was refused."""
    finished = desk.turn.results = []  # what has a result keeps it, however the turn ends
    for use in uses:
        if desk.turn.question is not None:
            finished.append(ToolResult(use.id, "not run: the user was asked first", is_error=True))
            continue
        # An interrupt that came with the last tool's end counts before the next one begins.
        await asyncio.sleep(0)
        finished.append(await _run(desk, use))
    return Results(tuple(finished))


async def _run(desk: Desk, use: ToolUse) -> ToolResult:
    desk.turn.tool_calls += 1
    desk.emit(ToolStarted(use))
    started = time.monotonic()
    try:
        result = ToolResult(use.id, await _attempt(desk, use))
    except ToolFailed as failed:
        result = ToolResult(use.id, str(failed), is_error=True)
    desk.emit(ToolFinished(use, result, time.monotonic() - started))
    return result


async def _attempt(desk: Desk, use: ToolUse) -> str:
    tool = TOOLS.get(use.name)
    if tool is None:
        raise ToolFailed(f"there is no tool {use.name!r}; there are {', '.join(TOOLS)}")
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
        output = await tool.run(given, desk.workplace)
    except Asked as asked:
        choices = "".join(f"\n- {option}" for option in asked.options)
        desk.turn.question = asked.question + choices
        return "The user was asked; the answer comes with the next message."
    after = PostToolUse(
        **desk.common(), tool_name=use.name, tool_input=given, tool_use_id=use.id, tool_response=output
    )
    verdict = await _ask(desk, after)
    feedback = [refusal_of(verdict.runs) or "", context_of(verdict.runs, plain=False), said.context]
    return "\n\n".join([output, *(f"A hook says: {text}" for text in feedback if text)])


async def _permitted(
    desk: Desk, tool: Tool, use: ToolUse, given: dict[str, Any], *, ask: bool
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
    if not await desk.permit(ToolUse(use.id, use.name, given), use.name):
        raise ToolFailed(f"the user did not permit {use.name}")
    return given


def _needs_permission(desk: Desk, tool: Tool) -> bool:
    if not tool.changes or tool.spec.name in desk.allowed or desk.permission_mode == "bypassPermissions":
        return False
    return not (tool.edits and desk.permission_mode == "acceptEdits")


async def _ask(desk: Desk, event: PreToolUse | PermissionRequest | PostToolUse) -> Verdict:
    verdict = await desk.fire(event)
    if isinstance(verdict, Stop) and verdict.halted:
        raise TurnHalted(verdict.stop_reason)
    return verdict
