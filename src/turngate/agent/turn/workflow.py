"""Checkpoints and questions: what a message of the user means while the agent waits for an answer.

Only the user answers, with the first message of the next turn; everything else waits behind the answer. The hooks are
asked again at the next stop; only in the `claude` dialect a question asks them at once, and a block takes it back. At a
checkpoint yes begins the next stage of a workflow or of a subagent, no ends it, and anything else is a message within
the stage: the checkpoint opens again after it.
"""

from collections.abc import Mapping
from typing import Any

from turngate.agent.conversation import Conversation
from turngate.agent.turn.state import CheckpointRefused
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.workflow import APPROVED, REFUSED, Answer, parse_answer
from turngate.core.verdict.loop_guard import EndTurn


def append_prompt(conversation: Conversation, entry: InboxEntry, meta: Mapping[str, Any]) -> None:
    """Append what a message of the user asks the agent to do. Raises CheckpointRefused."""
    running, waiting = conversation.workflow, conversation.waiting
    answer = _checkpoint_answer(entry, conversation)
    if entry.workflow is not None:
        conversation.append_prompt(entry.workflow.stages[0].prompt(is_first=True), entry.workflow, **meta)
    elif answer is None:
        conversation.append_prompt(entry.text, running, waiting, **meta)
    elif answer == "no":
        conversation.append_prompt(f"{entry.text}\n\n{REFUSED}", None, **meta)
        over = f"{running.name} is over" if running else "the agent does not continue"
        raise CheckpointRefused(f"{over}: you answered no at the checkpoint")
    elif waiting and not conversation.hook_waits:  # the workflow of the main agent stays where it is
        ids = ", ".join(each.agent_id for each in waiting)
        text = f"{APPROVED} Continue the subagent with Task and resume: {ids}"
        conversation.append_prompt(text, running, key=conversation.approval_key(), **meta)
    elif running and not conversation.hook_waits:
        following = running.after_approval()
        conversation.append_prompt(following.stages[0].prompt(is_first=False), following, **meta)
    else:  # a hook waited in the middle of a stage
        conversation.append_prompt(APPROVED, running, waiting, **meta)


def _checkpoint_answer(entry: InboxEntry, conversation: Conversation) -> Answer | None:
    """Return the user's answer at an open checkpoint. Neither a hook nor a message that was typed before it answers."""
    is_open = conversation.checkpoint is not None and conversation.question is None
    is_answer = is_open and not (entry.by_hook or entry.waited or entry.workflow)
    return parse_answer(entry.text) if is_answer else None


def end_at_checkpoint(conversation: Conversation) -> EndTurn:
    """End the turn because subagents wait for the user's approval, or else the workflow does."""
    texts = [each.text for each in conversation.waiting]
    if not texts and conversation.workflow is not None:
        texts = [conversation.workflow.describe_checkpoint()]
    return EndTurn("checkpoint", stop_reason="\n\n".join(texts))
