"""Steering: a person gives a subagent a new prompt."""

import time

from turngate.core.conversation.subagent_run import SubagentRun
from turngate.errors import UsageError
from turngate.subagents.registry import Registry

STEER_INTERVAL_S = 2.0
MAX_STEER_PROMPT_CHARS = 4000


def steer(registry: Registry, run: SubagentRun, prompt: str) -> SubagentRun:
    """Request a restart with a new prompt. Raises UsageError if that is not allowed now."""
    # A steer creates a run, whose age is the time since that steer; negative if the clock was set back meanwhile.
    since = time.time() - run.created if run.replaces and not run.by_hook else float("inf")
    if not prompt.strip():
        raise UsageError("a steer needs a prompt")
    if len(prompt) > MAX_STEER_PROMPT_CHARS:
        size = len(prompt)
        raise UsageError(f"the prompt has {size} characters; a steer may have {MAX_STEER_PROMPT_CHARS}")
    if run.state == "waiting":
        raise UsageError(f"run {run.id} has not started yet; kill it, or steer it once it runs")
    if run.state == "steering":
        raise UsageError(f"run {run.id} is already being restarted; wait until it runs again")
    if 0 <= since < STEER_INTERVAL_S:
        pause = f"wait {STEER_INTERVAL_S:g} s between two steers"
        raise UsageError(f"this subagent was steered {since:.1f} s ago; {pause}")
    steering = registry.steer(run, prompt)
    if steering is None:
        raise UsageError(f"run {run.id} is already finished, or another steer is under way")
    return steering
