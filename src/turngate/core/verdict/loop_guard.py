"""The loop guard, a frozen value: every rule about counting continuations is in this file.

A turn lasts from a user's message until control returns to the user. Hooks may continue it a bounded number of
times, and every way in which it can end has a name.

Between two messages of the user there are never more continuations than the limits allow, whatever wakes the agent:
a block, the report of a subagent or of a command in the background, or a process that resumes the conversation.
Only a user's message makes a new guard; everything else hands on the one that there is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

from turngate._frozen_dataclass import frozen
from turngate.core.dialect import Dialect
from turngate.core.settings import Settings
from turngate.core.text import first_lines, quote_name
from turngate.core.verdict.verdict import (
    Continue,
    Stop,
    Verdict,
    block_signature,
    blocking_hooks,
    requested_continuations,
)

MAX_REASON_LINES = 10  # of the last reason, for the user

EndedBy = Literal[
    "allowed",  # no hook blocks
    "capped",  # a hook still blocks, and the limit is reached
    "stalled",  # a hook still blocks, and nothing changed between its blocks
    "halted",  # a hook answered `continue: false`
    "checkpoint",  # the agent waits for the user's approval
    "question",  # the agent asked the user something
    "tool_deferred",  # a hook deferred a tool call
    "interrupt",  # by the user
    "max_turns",
    "error",  # of the model or its provider
]


@frozen
class ContinueTurn:
    """The turn continues with this prompt, under this guard."""

    prompt: str
    guard: "LoopGuard"
    messages: tuple[str, ...] = ()  # the parts of the prompt that are sent one by one; empty: all at once
    notice: str | None = None  # for the user


@frozen
class EndTurn:
    """The turn is over."""

    ended_by: EndedBy
    notice: str | None = None  # for the user
    stop_reason: str | None = None
    last_reason: str | None = None  # the reason of the hooks that still block


# Deprecated aliases, removed in 0.2.
GoOn = ContinueTurn
GoHome = EndTurn


@frozen(kw_only=True)
class LoopGuard:
    """How often hooks have continued this turn, and how often they may."""

    dialect: Dialect
    limit: int | None  # None: no limit
    hard_limit: int | None = None
    count: int = 0  # continuations that count toward the limit
    continuations: int = 0  # all continuations of the turn
    resumed: int = 0  # continuations before the last message from the user or report from the background
    advised: bool = False
    last_refusal: tuple[tuple[str, str], ...] = ()
    repeats: int = 0  # continuations in a row with the last block and without a tool call
    requested: int = 0  # the most continuations that a gate has asked for in this turn

    @property
    def active(self) -> bool:
        """`stop_hook_active`: a stop hook has continued this turn since the user's last message, or a report (C-16)."""
        return self.continuations > self.resumed

    @property
    def below_limit(self) -> bool:
        """Return whether a hook may continue the turn; the hard limit counts even where tool calls reset the count."""
        return self._below(self.limit, self.count) and self._below(self.hard_limit, self.continuations)

    @staticmethod
    def _below(limit: int | None, count: int) -> bool:
        return limit is None or count < limit

    def after(self, verdict: Verdict) -> ContinueTurn | EndTurn:
        """Return the next step of the turn after this verdict."""
        match verdict:
            case Stop(stop_reason=reason):
                return EndTurn(verdict.ended_by, stop_reason=reason)
            case Continue(prompt=prompt, advice_only=True):
                if not self.below_limit or (self.advised and self.dialect.advice == "once"):
                    return EndTurn("allowed")  # advice does not block
                return ContinueTurn(prompt, self._count_continuation((), advised=True))
            case Continue(prompt=prompt):
                request = requested_continuations(verdict, self.dialect)
                if request is not None and request[0] > self.requested:
                    return self._grant(*request, verdict)
                blocks = block_signature(verdict, self.dialect)
                hooks = blocking_hooks(verdict, self.dialect)
                last = verdict.prompt.replace(self.dialect.prefix, "").strip()
                if not self.below_limit:
                    return self.capped(hooks, last)
                after = self.dialect.stall_after  # equal blocks in a row, without a tool call
                if after is not None and blocks == self.last_refusal and self.repeats >= after:
                    unchanged = f"nothing changed in {_continuations(self.repeats)}"
                    notice = f"Turn ended: {unchanged}. {_still_blocked_by(hooks)}"
                    return EndTurn("stalled", notice, last_reason=last)
                guard = self._count_continuation(blocks, advised=self.advised)
                return ContinueTurn(prompt, guard, verdict.messages)
            case _:
                assert_never(verdict)

    def _grant(self, requested: int, hook: str, verdict: Continue) -> ContinueTurn | EndTurn:
        """Raise the limit as far as a gate asks for it and the hard limit allows; say once if that is less."""
        raised = replace(self.extended(requested), requested=requested)
        step = raised.after(verdict)
        if isinstance(step, EndTurn) or raised.limit is None or raised.limit >= requested:
            return step
        asks = f"gate {quote_name(hook)} asks for {requested:,} continuations"
        gets = f"gets {raised.limit}, the hard limit: raise `hardLimit` in the user settings for more"
        return replace(step, notice=f"{asks} and {gets}")

    def after_tool_call(self) -> "LoopGuard":
        """A tool call ends a stall. Where the dialect counts blocks in a row, it also resets the count."""
        return replace(
            self, repeats=0, last_refusal=(), count=0 if self.dialect.tool_call_resets else self.count
        )

    def after_report(self) -> "LoopGuard":
        """Background work has ended and wakes the agent: this is not a continuation, and does not reset the count."""
        return replace(self, resumed=self.continuations, repeats=0, last_refusal=())

    def resume_continuation(self, waiting: "LoopGuard") -> "LoopGuard":
        """Return the guard for a continuation that waited in the inbox under its own; what was counted since stays."""
        continuations = max(self.continuations, waiting.continuations)
        return replace(waiting, count=max(self.count, waiting.count), continuations=continuations)

    def redirected(self) -> "LoopGuard":
        """Count a redirect by a plugin: one more continuation, without a block that could repeat."""
        return self._count_continuation((), advised=self.advised)

    def extended(self, limit: int) -> "LoopGuard":
        """Raise the limit, at most to the hard limit; a lower one changes nothing, and a limit of 0 stays."""
        if not self.limit:
            return self
        allowed = limit if self.hard_limit is None else min(limit, self.hard_limit)
        return replace(self, limit=max(self.limit, allowed))

    def to_json(self) -> dict[str, Any]:
        """Return what the guard must remember in another process; limits and dialect are those of its settings."""
        kept = {name: getattr(self, name) for name in _STORED}
        return {**kept, "last_refusal": [list(pair) for pair in self.last_refusal]}

    @staticmethod
    def from_json(stored: Mapping[str, Any], fresh: "LoopGuard") -> "LoopGuard":
        """Return a new guard with the counts of `to_json`, or of a transcript, which has only the continuations."""
        continuations = int(stored["continuations"])
        return replace(
            fresh,
            count=int(stored.get("count", continuations)),
            continuations=continuations,
            advised=bool(stored.get("advised")),
            repeats=int(stored.get("repeats", 0)),
            requested=int(stored.get("requested", 0)),
            last_refusal=tuple((str(hook), str(reason)) for hook, reason in stored.get("last_refusal", ())),
        )

    def _count_continuation(self, blocks: tuple[tuple[str, str], ...], *, advised: bool) -> "LoopGuard":
        return replace(
            self,
            count=self.count + 1,
            continuations=self.continuations + 1,
            advised=advised,
            repeats=self.repeats + 1 if blocks == self.last_refusal else 1,
            last_refusal=blocks,
        )

    def capped(self, hooks: Sequence[str], reason: str) -> EndTurn:
        """End the turn at the limit although these hooks still block."""
        limit = self.hard_limit if self._below(self.limit, self.count) else self.limit
        notice = f"Turn ended after {_continuations(limit)} (the limit). {_still_blocked_by(hooks)}"
        return EndTurn("capped", notice, last_reason=reason)


_STORED = ("count", "continuations", "advised", "repeats", "requested")


def _continuations(count: int | None) -> str:
    return "1 continuation" if count == 1 else f"{count} continuations"


def _still_blocked_by(hooks: Sequence[str]) -> str:
    return f"Still blocked by: {', '.join(map(quote_name, hooks))}."


def describe_last_reason(end: EndTurn) -> str | None:
    """Return the last reason for the user, who saw only the earlier ones: no continuation shows it."""
    if not end.last_reason:
        return None
    first, *more = first_lines(end.last_reason, MAX_REASON_LINES, "`turngate log -v` shows all of it")
    return "the last reason: " + "\n".join([first, *(f"  {line}" for line in more)])


def new_guard(
    settings: Settings, environ: Mapping[str, str], *, child: bool = False, limit: int | None = None
) -> LoopGuard:
    """Return the guard of a new turn. The caller's `limit` overrides the settings and may raise the hard limit."""
    dialect = settings.dialect
    hard = settings.hard_limit if settings.hard_limit is not None else dialect.hard_limit
    if limit is not None:
        hard = None if hard is None else max(hard, limit)
        return LoopGuard(dialect=dialect, limit=max(0, limit), hard_limit=hard)
    variable = dialect.limit_variable
    if variable and (value := {**environ, **settings.env}.get(variable)) is not None:
        soft_limit = _limit_from_variable(value, dialect.limit)
        return LoopGuard(dialect=dialect, limit=soft_limit, hard_limit=hard)
    configured = settings.child_limit if child and settings.child_limit is not None else settings.limit
    soft = dialect.limit if configured is None else configured
    return LoopGuard(dialect=dialect, limit=soft if hard is None else min(soft, hard), hard_limit=hard)


def _limit_from_variable(text: str, default: int) -> int | None:
    """Claude Code: a float is truncated, 0 and less means no limit, not a number means the default."""
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        return default
    return number if number > 0 else None
