"""Checkpoints and questions: what a message of the user means while the agent waits for an answer.

Only the user answers, with the first message of the next turn; everything else waits behind the answer. The hooks are
asked again at the next stop; only in the `claude` dialect a question asks them at once, and a block takes it back. At a
checkpoint yes begins the next stage of a workflow, no ends it, and anything else is a message within the stage.
"""

from collections.abc import Mapping
from typing import Any

from turngate.agent.conversation import Conversation
from turngate.agent.turn.state import CheckpointRefused
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.workflow import APPROVED, REFUSED, Answer, Workflow, parse_answer
from turngate.core.verdict.loop_guard import EndTurn


def append_prompt(conversation: Conversation, entry: InboxEntry, meta: Mapping[str, Any]) -> None:
    """Append what a message of the user asks the agent to do. Raises CheckpointRefused."""
    answer, running = _checkpoint_answer(entry, conversation), conversation.workflow
    if answer == "yes" and conversation.waiting:  # the workflow of the main agent stays where it is
        ids = ", ".join(each.agent_id for each in conversation.waiting)
        text = f"{APPROVED} Continue the subagent with Task and resume: {ids}"
        conversation.append_prompt(text, running, key=conversation.approval_key(), **meta)
        return
    prompt, workflow = _next_stage(entry, running, answer)
    conversation.append_prompt(prompt, workflow, **meta)
    if answer == "no":
        over = f"{running.name} is over" if running else "the agent does not continue"
        raise CheckpointRefused(f"{over}: you answered no at the checkpoint")


def _checkpoint_answer(entry: InboxEntry, conversation: Conversation) -> Answer | None:
    """Return the user's answer at an open checkpoint. Neither a hook nor a message that was typed before it answers."""
    is_open = conversation.checkpoint is not None and conversation.question is None
    is_answer = is_open and not (entry.by_hook or entry.waited or entry.workflow)
    return parse_answer(entry.text) if is_answer else None


def _next_stage(
    entry: InboxEntry, workflow: Workflow | None, answer: Answer | None
) -> tuple[str, Workflow | None]:
    """Return the prompt for a message of the user, and the workflow of which it begins or continues a stage."""
    if entry.workflow is not None:
        return entry.workflow.stages[0].prompt(is_first=True), entry.workflow
    match answer:
        case "yes" if workflow is not None:
            following = workflow.after_approval()
            return following.stages[0].prompt(is_first=False), following
        case "yes":
            return APPROVED, None
        case "no":
            return f"{entry.text}\n\n{REFUSED}", None
        case _:
            return entry.text, workflow


def end_at_checkpoint(conversation: Conversation) -> EndTurn:
    """End the turn because subagents wait for the user's approval."""
    return EndTurn("checkpoint", stop_reason="\n\n".join(each.text for each in conversation.waiting))
