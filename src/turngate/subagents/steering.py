"""A child is steered by hand: what is allowed, and how it is asked for."""

from turngate.core.subagent_run import SubagentRun
from turngate.errors import UsageError
from turngate.subagents.registry import Registry

EVERY = 2.0  # seconds between two steers of one child
LONGEST = 4000  # characters
STEERABLE = ("running", "ended")


def check_steer(run: SubagentRun, prompt: str, *, by: str, since: float = float("inf")) -> None:
    """The guard rails of a steer by hand; raises UsageError with what is wrong."""
    if by == run.agent_id:
        raise UsageError("a child can not steer itself")
    if by not in ("user", run.parent, run.parent_agent) or not by:
        raise UsageError(f"only whoever started the run {run.id} may steer it")
    if not prompt.strip():
        raise UsageError("a steer needs a prompt")
    if len(prompt) > LONGEST:
        raise UsageError(f"a steer may have {LONGEST} characters, not {len(prompt)}")
    if run.state == "waiting":
        raise UsageError(f"the run {run.id} waits and has not begun; kill it, or steer it when it works")
    if run.state not in STEERABLE:
        raise UsageError(f"the run {run.id} is already finished ({run.outcome or run.state})")
    if since < EVERY:
        raise UsageError(f"this child was steered {since:.1f} s ago; wait {EVERY:g} s between two steers")


def mark_for_steer(registry: Registry, run: SubagentRun, prompt: str) -> SubagentRun:
    """Marks a run for a steer-restart by hand, which counts against no limit."""
    marked = registry.request_redirect(
        run.id, prompt, why="steered by hand", counts=False, max_steers=run.max_steers, states=STEERABLE
    )
    if marked is None:
        raise UsageError(f"the run {run.id} is already finished, or is being steered already")
    return marked
