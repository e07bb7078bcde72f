"""May a subagent stop? Ask the SubagentStop hooks, then the plugins."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events import events
from turngate.core.events.plugin_events import stopping_context, stopping_event
from turngate.core.verdict.hook_run import HookOutput
from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, LoopGuard, describe_last_reason, new_guard
from turngate.core.verdict.verdict import Continue, Verdict, blocking_hooks, halting_hooks
from turngate.subagents.host import SubagentHost
from turngate.subagents.notifications import event_fields, report_plugin_errors
from turngate.transcript.reader import read_last_texts


@frozen(kw_only=True)
class StopCheckResult:
    """`prompt` redirects the subagent; without one it stops, although the hooks `blocked_by` block, if there are any."""

    max_steers: int | None
    reason: str
    prompt: str | None = None
    why: str = ""
    guard: Mapping[str, Any] | None = None
    blocked_by: tuple[str, ...] = ()
    unenforced: tuple[HookOutput, ...] = ()


def has_stop_checks(host: SubagentHost) -> bool:
    """Return whether any hook or plugin could redirect a subagent."""
    return host.plugins.has_handlers("subagent_stopping") or any(
        rule.event == "SubagentStop" for rule in host.settings.rules
    )


async def check_stop(host: SubagentHost, run: SubagentRun, *, exhausted: bool = False) -> StopCheckResult:
    """Return whether the subagent stops; without model requests left (`exhausted`) it does, as at the limit."""
    texts = await run_in_thread(read_last_texts, host.transcript_path(run))
    guard = _restore_guard(host, run)
    if exhausted:
        guard = replace(guard, hard_limit=guard.continuations)
    verdict = await host.ask_hooks(_stop_event(host, run, texts), run, guard)
    result = await _after_verdict(host, run, guard, verdict, "\n".join(texts) if texts else None)
    if exhausted and run.by_hook and not result.blocked_by and (hooks := hooks_of_redirect(run)):
        result = replace(result, reason="capped", blocked_by=hooks)  # they were not asked about a failed run
    return replace(result, unenforced=verdict.unenforced)


def hooks_of_redirect(run: SubagentRun) -> tuple[str, ...]:
    """Return the hooks that blocked when the chain was last redirected."""
    return tuple(str(hook) for hook, _ in run.guard.get("last_refusal", ()))


async def _after_verdict(
    host: SubagentHost, run: SubagentRun, guard: LoopGuard, verdict: Verdict, answer: str | None
) -> StopCheckResult:
    blocked_by = (*blocking_hooks(verdict, host.settings.dialect), *halting_hooks(verdict))
    if isinstance(verdict, Continue) and _redirect_is_too_late(host, run, verdict.prompt):
        return StopCheckResult(max_steers=run.max_steers, reason="capped", blocked_by=blocked_by)
    match guard.after(verdict):
        case ContinueTurn(prompt, next_guard, notice=notice):
            if notice:
                host.warn(run, f"subagent {run.name}: {notice}")
            why = verdict.prompt if isinstance(verdict, Continue) else ""
            return _redirect(next_guard, prompt, why)
        case EndTurn(ended_by, notice, stop_reason) as end:
            if text := notice or stop_reason:
                host.warn(run, f"subagent {run.name}: {text}", describe_last_reason(end))
            if ended_by == "capped":
                _warn_plugins_skipped(host, run, guard)
            if ended_by != "allowed":
                return StopCheckResult(max_steers=guard.limit, reason=ended_by, blocked_by=blocked_by)
    return await _ask_plugins(host, run, guard, answer)


async def _ask_plugins(
    host: SubagentHost, run: SubagentRun, guard: LoopGuard, answer: str | None
) -> StopCheckResult:
    allowed = StopCheckResult(max_steers=guard.limit, reason=run.reason)
    if not host.plugins.has_handlers("subagent_stopping"):
        return allowed
    if not guard.below_limit:
        _warn_plugins_skipped(host, run, guard)
        return allowed
    result = await host.plugins.ask_stopping(stopping_event(run, answer), stopping_context(run))
    report_plugin_errors(host, run)
    if result.extend_max_steers is not None:
        guard = guard.extended(result.extend_max_steers)
    if result.allow or result.prompt is None or _redirect_is_too_late(host, run, result.prompt):
        return replace(allowed, max_steers=guard.limit)
    return _redirect(guard.redirected(), result.prompt, result.reason or result.prompt)


def _warn_plugins_skipped(host: SubagentHost, run: SubagentRun, guard: LoopGuard) -> None:
    """C-18: at the limit no handler is asked, and a warning names the run."""
    if host.plugins.has_handlers("subagent_stopping"):
        host.warn(
            run,
            f"subagent_stopping hook skipped: steerCount={run.steer_count} >= maxSteers={guard.limit} "
            f"runId={run.id} childKey={run.agent_id}",
        )


def _redirect(guard: LoopGuard, prompt: str, why: str) -> StopCheckResult:
    return StopCheckResult(
        max_steers=guard.limit, reason="redirected", prompt=prompt, why=why, guard=guard.to_json()
    )


def _restore_guard(host: SubagentHost, run: SubagentRun) -> LoopGuard:
    """Return the chain's loop guard as its last run left it, possibly in another process."""
    fresh = replace(new_guard(host.settings, host.world.own_environ, child=True), limit=run.max_steers)
    guard = LoopGuard.from_json({**run.guard, "continuations": run.steer_count}, fresh)
    return guard.after_tool_call() if run.tools else guard


def _redirect_is_too_late(host: SubagentHost, run: SubagentRun, prompt: str) -> bool:
    """X-30: with `noReviseAfterSideEffects` a subagent that has changed something is not redirected."""
    changed = {*run.tools, *run.earlier_tools}.intersection(host.changing_tools())
    if not changed or not host.settings.no_revise_after_side_effects:
        return False
    host.warn(run, f"subagent {run.name} has already changed something, so it is not redirected: {prompt}")
    return True


def _stop_event(host: SubagentHost, run: SubagentRun, answer: tuple[str, ...]) -> events.StopEvent:
    # Document 000 has "default"; Claude Code sends the mode of the subagent.
    in_claude = host.settings.dialect.subagent_identity == "claude"
    outcome: events.SubagentOutcome = run.outcome if run.outcome in ("error", "timeout") else "ok"
    fields = event_fields(host, run)
    return events.StopEvent(
        **(fields if in_claude else {**fields, "permission_mode": "default"}),
        stop_hook_active=run.by_hook,
        last_assistant_message=answer or None,
        continuation_count=run.steer_count,
        limit=run.max_steers,
        subagent=events.Subagent(
            id=run.agent_id, type=run.agent_type, transcript_path=host.transcript_path(run), outcome=outcome
        ),
        usage={"input_tokens": run.usage.input_tokens, "output_tokens": run.usage.output_tokens},
        duration_ms=None if run.seconds is None else int(run.seconds * 1000),
        tool_calls=run.tool_calls,
    )
