"""Run the tools that a reply calls: permission, the tool, then the hooks that check its result."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from turngate.agent.loop_context import LoopContext
from turngate.agent.tools import check_arguments
from turngate.agent.tools.tool import Tool
from turngate.agent.turn_state import TurnHalted, halt_of
from turngate.aio.foreign_code import run_isolated
from turngate.core.conversation.messages import ToolResult, ToolUse, UserMessage
from turngate.core.conversation.tools import ToolFailed, ToolOutput, resolve_tool, response_text
from turngate.core.events import events
from turngate.core.events.events import PostToolBatch, PostToolUse, PostToolUseFailure, PreToolUse
from turngate.core.events.stream_events import ToolFinished, ToolStarted
from turngate.core.text import one_line
from turngate.core.verdict import tool_effects
from turngate.core.verdict.tool_effects import Permission, added_context, block_reasons, updated_output
from turngate.core.verdict.verdict import Continue, Verdict
from turngate.project.files import MachineUnreachable

NOT_ANSWERED = "not run: the user interrupted the question for permission"
DEFERRED = "not run: a hook deferred this call; make it again when the user asks you to continue"


async def run_tools(context: LoopContext, uses: Sequence[ToolUse]) -> bool:
    """Run the calls in order, and neighboring calls of parallel tools at once; each result is kept at once. Return True if a tool ended the turn."""
    context.conversation.tool_results = []
    # Hooks get one name for a tool, so that a hook that compares it cannot be bypassed.
    task = context.dialect.task_tool
    uses = [replace(use, name=task) if resolve_tool(use.name) == "Task" else use for use in uses]
    for group in _groups(context, uses):
        await asyncio.sleep(0)  # let a pending interrupt take effect first
        ended = await _run(context, group[0]) if len(group) == 1 else await _run_all(context, group)
        if ended:
            return True
    context.conversation.finish_tool_results(uses)
    if context.conversation.question is None:
        await _finish_batch(context, uses)
    return False


async def _finish_batch(context: LoopContext, uses: Sequence[ToolUse]) -> None:
    """Fire PostToolBatch. Its block ends the turn before the next request; its context goes with that request."""
    texts = {result.tool_use_id: result.content for result in context.conversation.tool_results}
    calls = [
        {
            "tool_name": use.name,
            "tool_input": dict(use.input or {}),
            "tool_use_id": use.id,
            "tool_response": texts[use.id],
        }
        for use in uses
    ]
    verdict = await _fire(context, PostToolBatch(**context.event_fields(), tool_calls=calls))
    if isinstance(verdict, Continue):
        raise TurnHalted(verdict.prompt)
    if added := added_context(verdict.runs, plain=False):
        context.conversation.append(UserMessage(added, "context"))


def _groups(context: LoopContext, uses: Sequence[ToolUse]) -> Iterator[list[ToolUse]]:
    def is_parallel(use: ToolUse) -> bool:
        tool = _find_tool(context, use.name)
        return tool is not None and tool.parallel

    for parallel, group in groupby(uses, is_parallel):
        calls = list(group)
        yield from [calls] if parallel else ([use] for use in calls)


def _find_tool(context: LoopContext, name: str) -> Tool | None:
    return context.tools.get(resolve_tool(name))


async def _run_all(context: LoopContext, uses: Sequence[ToolUse]) -> bool:
    """Wait for all calls; the first one that halts the turn cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run(context, use)) for use in uses]
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return any(task.result() for task in tasks)


async def _run(context: LoopContext, use: ToolUse) -> bool:
    turn, conversation = context.turn, context.conversation
    if conversation.question is not None:
        conversation.add_tool_result(ToolResult(use.id, "not run: the user was asked first", is_error=True))
        return False
    turn.count_tool_call(use.name)
    context.emit(ToolStarted(use))
    started = time.monotonic()
    halted = None
    try:
        output, halted = await _attempt(context, use)
    except (ToolFailed, MachineUnreachable) as failed:
        output = ToolOutput(str(failed), is_error=True)
    except TurnHalted as deferring:
        if deferring.ended_by == "tool_deferred":
            turn.deferred = use
            conversation.add_tool_result(ToolResult(use.id, DEFERRED, is_error=True))
        raise
    if output.ends_turn:  # no model reads its result
        return True
    result = ToolResult(use.id, output.text, output.is_error)
    conversation.add_tool_result(result, output.key, question=output.question, waiting=output.waiting)
    turn.subagent_waits = turn.subagent_waits or bool(output.waiting and output.waiting.text)
    context.emit(ToolFinished(use, result, time.monotonic() - started, output.change))
    if halted is not None:
        raise halted
    return False


async def _attempt(context: LoopContext, use: ToolUse) -> tuple[ToolOutput, TurnHalted | None]:
    """Return the tool's output, and TurnHalted if a hook after the tool ends the turn: the result is kept first."""
    tool = _find_tool(context, use.name)
    if tool is None:
        raise ToolFailed(f"unknown tool {use.name!r}, expected one of {', '.join(context.tools)}")
    args, hook_context = await _allowed_args(context, tool, use)
    started = time.monotonic()
    try:
        output = await tool.run(args, context.tool_context)
    except ToolFailed as failed:
        output = ToolOutput(str(failed), is_error=True)
    if output.ends_turn or output.question is not None:
        return output, None
    event = _event_after(context, use, args, output, duration_ms=int((time.monotonic() - started) * 1000))
    return await _with_feedback(context, event, output, hook_context)


async def _allowed_args(context: LoopContext, tool: Tool, use: ToolUse) -> tuple[dict[str, Any], str]:
    """Return the arguments to run with, and what PreToolUse hooks add. Raises ToolFailed if it may not run."""
    args = await _checked(context, tool, use.input)
    event = PreToolUse(**context.event_fields(), tool_name=use.name, tool_input=args, tool_use_id=use.id)
    verdict = await _fire(context, event)
    answer = tool_effects.permission_before_tool(verdict.runs)
    if isinstance(verdict, Continue):  # a block, a denial, or a hook with `blocking: true` that failed
        raise ToolFailed(f"a hook blocked this: {verdict.prompt}")
    if answer.behavior == "defer" and context.permissions.permit is None:
        _defer(context, use, answer.reason)
    if context.permissions.mode == "plan" and tool.changes:
        _report_denial(context, use, " in plan mode; start without --permission-mode plan")
        raise ToolFailed(f"{use.name} is not allowed in plan mode: read only, and describe the change")
    if answer.updated_input is not None:
        args = await _checked(context, tool, answer.updated_input)
    needed = answer.behavior != "allow" and context.permissions.is_needed_for(tool)
    if needed or answer.behavior in ("ask", "defer"):
        args = await _permitted_args(context, tool, use, args, asked=answer)
    return args, answer.context


async def _checked(context: LoopContext, tool: Tool, args: Mapping[str, Any]) -> dict[str, Any]:
    await context.tool_context.prepare()  # if its machine did not answer at the start of the session
    return await context.tool_context.call(check_arguments, tool, args, context.tool_context)


def _defer(context: LoopContext, use: ToolUse, reason: str) -> None:
    """End the turn before the tool runs; a subagent cannot wait for a user, so there the call only fails."""
    why = f"a hook deferred {use.name}" + (f": {reason}" if reason else "")
    if context.agent == "sub":
        raise ToolFailed(f"not run: {why}, and a subagent cannot wait for the user")
    raise TurnHalted(why, "tool_deferred")


async def _permitted_args(
    context: LoopContext, tool: Tool, use: ToolUse, args: dict[str, Any], asked: Permission
) -> dict[str, Any]:
    """Ask the PermissionRequest hooks, then the user. Raises ToolFailed without permission.

    `asked` is the answer of the PreToolUse hooks. Where one of them was not understood, it may have been a denial:
    a PermissionRequest hook can deny the call then, and only the user can permit it.
    """
    event = events.PermissionRequest(**context.event_fields(), tool_name=use.name, tool_input=args)
    verdict = await _fire(context, event)
    answer = tool_effects.permission_for_user(verdict.runs)
    if answer.behavior == "deny":
        if answer.interrupt:
            raise TurnHalted(answer.reason)
        _report_denial(context, use, f" by a hook: {answer.reason}")
        raise ToolFailed(f"permission was denied: {answer.reason}")
    if isinstance(verdict, Continue):  # a hook whose failure blocks has failed
        raise ToolFailed(f"a hook blocked this: {verdict.prompt}")
    if answer.behavior == "allow" and not asked.user_only:
        changed = answer.updated_input
        return args if changed is None else await _checked(context, tool, changed)
    if context.permissions.permit is None:
        why = _advice_without_user(use, asked)
        _report_denial(context, use, why)
        raise ToolFailed(f"{use.name} needs permission, and there is no user to ask{why}")
    try:
        permitted = await run_isolated(context.permissions.permit(ToolUse(use.id, use.name, args), use.name))
    except asyncio.CancelledError:
        context.turn.count_tool_call(use.name, -1)
        with contextlib.suppress(OSError):  # a full disk must not replace the interrupt
            context.conversation.add_tool_result(ToolResult(use.id, NOT_ANSWERED, is_error=True))
        raise
    if not permitted:
        raise ToolFailed(f"the user did not permit {use.name}")
    return args


def _advice_without_user(use: ToolUse, asked: Permission) -> str:
    """Name the hook that wants the user to be asked: then no option permits the tool."""
    if asked.behavior != "ask":
        return f"; start with --allow {use.name}"
    return ": a hook wants the user to be asked" + (f": {one_line(asked.reason)}" if asked.reason else "")


def _report_denial(context: LoopContext, use: ToolUse, why: str) -> None:
    """Tell the user once per turn. A user who can be asked sees every failed call."""
    text = f"{use.name} was not permitted{why}"
    if context.permissions.permit is None and text not in context.turn.notices:
        context.notice(text)


def _event_after(
    context: LoopContext, use: ToolUse, args: dict[str, Any], output: ToolOutput, *, duration_ms: int
) -> PostToolUse | PostToolUseFailure:
    call = {"tool_name": use.name, "tool_input": args, "tool_use_id": use.id, "duration_ms": duration_ms}
    fields: dict[str, Any] = {**context.event_fields(), **call}
    if output.is_error:
        return PostToolUseFailure(**fields, error=output.text)
    return PostToolUse(**fields, tool_response=output.text if output.response is None else output.response)


async def _with_feedback(
    context: LoopContext, event: PostToolUse | PostToolUseFailure, output: ToolOutput, hook_context: str
) -> tuple[ToolOutput, TurnHalted | None]:
    verdict = await context.fire(event)
    replaced = updated_output(verdict.runs)
    text = output.text if replaced is None else response_text(replaced)
    blocked = verdict.prompt if isinstance(verdict, Continue) else block_reasons(verdict.runs) or ""
    feedback = [blocked, added_context(verdict.runs, plain=False), hook_context]
    text = "\n\n".join([text, *(f"Hook feedback: {part}" for part in feedback if part)])
    return replace(output, text=text), halt_of(verdict)


async def _fire(
    context: LoopContext, event: PreToolUse | events.PermissionRequest | PostToolBatch
) -> Verdict:
    verdict = await context.fire(event)
    if halted := halt_of(verdict):
        raise halted
    return verdict
