"""Steering: a person, or the agent that started it, gives a subagent a new prompt."""

from turngate.core.conversation.subagent_run import SubagentRun
from turngate.errors import UsageError
from turngate.subagents.registry import Registry
from turngate.subagents.registry.statements import STEERABLE_STATES

STEER_INTERVAL_S = 2.0
MAX_STEER_PROMPT_CHARS = 4000


def check_steer(run: SubagentRun, prompt: str, *, by: str, since: float = float("inf")) -> None:
    """Raise UsageError unless `by` may steer the run now.

    `since`: seconds since the last steer; negative if the clock was set back meanwhile, so that they are not known.
    """
    if by == run.agent_id:
        raise UsageError("a subagent cannot steer itself")
    if by not in ("user", run.parent, run.parent_agent) or not by:
        raise UsageError(f"run {run.id} can be steered only by the user or by the agent that started it")
    if not prompt.strip():
        raise UsageError("a steer needs a prompt")
    if len(prompt) > MAX_STEER_PROMPT_CHARS:
        size = len(prompt)
        raise UsageError(f"the prompt has {size} characters; a steer may have {MAX_STEER_PROMPT_CHARS}")
    if run.state == "waiting":
        raise UsageError(f"run {run.id} has not started yet; kill it, or steer it once it runs")
    if run.state == "steering":
        raise UsageError(f"run {run.id} is being restarted with another prompt; steer it again once it runs")
    if run.state not in STEERABLE_STATES:
        raise UsageError(f"run {run.id} is already finished ({run.outcome or run.state})")
    if 0 <= since < STEER_INTERVAL_S:
        pause = f"wait {STEER_INTERVAL_S:g} s between two steers"
        raise UsageError(f"this subagent was steered {since:.1f} s ago; {pause}")


def request_steer(registry: Registry, run: SubagentRun, prompt: str) -> SubagentRun:
    """Request a restart with a new prompt."""
    steering = registry.steer(run, prompt)
    if steering is None:
        raise UsageError(f"run {run.id} is already finished, or another steer is under way")
    return steering
