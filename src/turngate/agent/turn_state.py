"""TurnState: the counters and the guard of one turn, and the result at its end."""

import time
import uuid
from dataclasses import dataclass, field

from turngate.agent.conversation import Conversation
from turngate.core.conversation.messages import Reply, ToolUse, Usage
from turngate.core.events.stream_events import MissedGates, SubagentFinished, TurnResult
from turngate.core.verdict.hook_run import HookOutput, HookRun
from turngate.core.verdict.loop_guard import EndedBy, EndTurn, LoopGuard
from turngate.core.verdict.verdict import Stop, Verdict


def new_prompt_id() -> str:
    return str(uuid.uuid4())


class TurnHalted(Exception):
    """A hook answered `continue: false` in the middle of a turn, or the user no at a checkpoint."""

    def __init__(self, reason: str | None, ended_by: EndedBy = "halted", *, hook_waits: bool = False) -> None:
        """`hook_waits`: the agent waits for the user's approval, because a hook said so."""
        super().__init__(reason or "")
        self.reason, self.ended_by, self.hook_waits = reason, ended_by, hook_waits


def halt_of(verdict: Verdict) -> TurnHalted | None:
    """Return the halt of a hook that ends the turn, if there is one."""
    if isinstance(verdict, Stop) and verdict.halted:
        return TurnHalted(verdict.stop_reason, verdict.ended_by, hook_waits=verdict.waits)
    return None


def end_at_checkpoint(conversation: Conversation) -> EndTurn:
    """End the turn because subagents wait for the user's approval, or else the workflow does."""
    texts = [each.text for each in conversation.waiting]
    if not texts and conversation.workflow is not None:
        texts = [f"{conversation.workflow.name} waits at a checkpoint: {conversation.workflow.checkpoint}"]
    return EndTurn("checkpoint", stop_reason="\n\n".join(texts))


@dataclass
class TurnState:
    guard: LoopGuard
    started: float = field(default_factory=time.monotonic)
    requests: int = 0
    replies: int = 0
    earlier_requests: int = 0  # of the turns that redirects of a subagent continue
    tool_calls: int = 0
    tools_used: dict[str, int] = field(default_factory=dict)  # how often, in the order of first use
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0  # US dollars; None if the price of a request is unknown
    hook_runs: list[HookRun] = field(default_factory=list)
    unenforced: list[HookOutput] = field(default_factory=list)
    strict: bool = False
    not_loaded: bool = False
    notices: list[str] = field(default_factory=list)
    answer: str = ""  # the last answer that was not blank
    was_refused: bool = False  # the model refused to answer, and was asked once more
    continuations: int = 0
    deferred: ToolUse | None = None  # the call that a hook deferred
    subagent_waits: bool = False  # a subagent has reached a checkpoint in this turn
    waited_too_long: bool = False  # the turn no longer waits for subagents in the background
    # The monotonic time until which the turn waits for commands in the background.
    waits_until: float | None = None
    subagents: list[SubagentFinished] = field(default_factory=list)
    prompt_id: str = field(default_factory=new_prompt_id)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def count_tool_call(self, name: str, change: int = 1) -> None:
        """Count a tool call, or take one back whose permission question was interrupted."""
        self.tool_calls += change
        self.tools_used[name] = self.tools_used.get(name, 0) + change

    def add_reply(self, reply: Reply) -> None:
        self.replies += 1
        self.usage += reply.usage
        self.cost = None if self.cost is None or reply.cost is None else self.cost + reply.cost

    def add_subagent(self, finished: SubagentFinished) -> None:
        """Add a subagent once, whether its end or its result comes first."""
        if all(each.run_id != finished.run_id for each in self.subagents):
            self.subagents.append(finished)

    def forget_waiting(self, event: str) -> None:
        """Gates that waited at an earlier stop are asked now."""
        self.unenforced = [
            hook for hook in self.unenforced if (hook.outcome, hook.event) != ("waiting", event)
        ]

    def add_missed(self, missed: MissedGates) -> None:
        self.unenforced += missed.unenforced
        for finished in missed.subagents:
            self.add_subagent(finished)

    def receive_report(self, *, counts: bool = False) -> None:
        """The result of work in the background has arrived: for hooks, a prompt of its own."""
        guard = self.guard.redirected() if counts else self.guard
        self.continuations += counts
        self.guard, self.prompt_id = guard.after_report(), new_prompt_id()

    def result(self, end: EndTurn, conversation: Conversation, model: str) -> TurnResult:
        # Each once: a subagent also has those of its own subagents.
        in_subagents = dict.fromkeys(hook for each in self.subagents for hook in each.unenforced)
        return TurnResult(
            ended_by=end.ended_by,
            session_id=conversation.session_id,
            transcript_path=conversation.path,
            result=self.answer,
            stop_reason=end.stop_reason or end.notice,
            question=conversation.question,
            checkpoint=conversation.checkpoint,
            deferred_tool_use=self.deferred,
            continuations=self.continuations,
            model_requests=self.requests,
            tool_calls=self.tool_calls,
            usage=self.usage,
            cost=self.cost if self.usage.total else None,
            duration_ms=int(self.elapsed * 1000),
            model=model,
            hook_runs=tuple(self.hook_runs),
            unenforced=(*self.unenforced, *in_subagents),
            strict=self.strict,
            not_loaded=self.not_loaded,
            tools=tuple(name for name, count in self.tools_used.items() if count),
            subagents=tuple(self.subagents),
            notices=tuple(self.notices),
        )
