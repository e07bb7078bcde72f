"""The loop guard: a value. Rule 1: everything about counting continuations lives in this file.

A turn is everything between a user's message and the moment when control returns to the user. It may be
continued by its hooks a bounded number of times, and every way in which it can end has a name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from turngate.core.dialect import Dialect
from turngate.core.hooks import label
from turngate.core.settings import Settings
from turngate.core.verdict import Continue, Stop, Verdict, block_signature, is_blocking

EndedBy = Literal[
    "allowed",  # nobody objects
    "capped",  # a gate still refuses, and the limit is reached
    "stalled",  # a gate still refuses, and nothing changes between its refusals
    "halted",  # a hook said `continue: false`
    "checkpoint",  # it waits for the user's approval
    "question",  # it asked the user something
    "interrupt",  # the user
    "max_turns",
    "error",  # the model or its provider
]


@dataclass(frozen=True)
class ContinueTurn:
    """The turn continues with this prompt, under this guard."""

    prompt: str
    guard: "LoopGuard"


@dataclass(frozen=True)
class EndTurn:
    """The turn is over."""

    ended_by: EndedBy
    notice: str | None = None  # for the user
    stop_reason: str | None = None


# Deprecated aliases, removed in 0.2.
GoOn = ContinueTurn
GoHome = EndTurn


@dataclass(frozen=True, kw_only=True)
class LoopGuard:
    """How often this turn has been continued by hooks, and how often it may be."""

    dialect: Dialect
    limit: int | None  # None: no limit
    hard_limit: int | None = None
    count: int = 0  # what is held against the limit
    continuations: int = 0  # all of this turn
    advised: bool = False
    last_refusal: tuple[tuple[str, str], ...] = ()
    repeats: int = 0  # continuations in a row that answered the last refusal without a tool call

    @property
    def active(self) -> bool:
        """`stop_hook_active`: this run was itself started by a stop hook (C-16)."""
        return self.continuations > 0

    @property
    def open(self) -> bool:
        """May a hook still send the agent on?"""
        return self.limit is None or self.count < self.limit

    def after(self, verdict: Verdict) -> ContinueTurn | EndTurn:
        match verdict:
            case Stop(halted=True, stop_reason=reason):
                return EndTurn("halted", stop_reason=reason)
            case Stop():
                return EndTurn("allowed")
            case Continue(prompt=prompt, advice_only=True):
                if self.advised and self.dialect.advice == "once":
                    return EndTurn("allowed")
                # Advice is no refusal: at the limit the agent goes home as allowed.
                return (
                    ContinueTurn(prompt, self._continued((), advised=True))
                    if self.open
                    else EndTurn("allowed")
                )
            case Continue(prompt=prompt):
                again = block_signature(verdict, self.dialect)
                if not self.open:
                    return EndTurn("capped", notice=self._capped(verdict))
                if self._stalled(again):
                    return EndTurn("stalled", notice=self._stall_notice(verdict))
                return ContinueTurn(prompt, self._continued(again, advised=self.advised))
            case _:
                assert_never(verdict)

    def after_tool_call(self) -> "LoopGuard":
        """The agent did something: no stall; where consecutive refusals are counted, a new count."""
        return replace(
            self, repeats=0, last_refusal=(), count=0 if self.dialect.tool_call_resets else self.count
        )

    def redirected(self) -> "LoopGuard":
        """A plugin sends the agent on: that is one more, and no refusal that could repeat itself."""
        return self._continued((), advised=self.advised)

    def extended(self, limit: int) -> "LoopGuard":
        """A hook may ask for more, never for less, never above the hard limit."""
        if self.limit is None:
            return self
        wanted = limit if self.hard_limit is None else min(limit, self.hard_limit)
        return replace(self, limit=max(self.limit, wanted))

    def _continued(self, again: tuple[tuple[str, str], ...], *, advised: bool) -> "LoopGuard":
        return replace(
            self,
            count=self.count + 1,
            continuations=self.continuations + 1,
            advised=advised,
            repeats=self.repeats + 1 if again == self.last_refusal else 1,
            last_refusal=again,
        )

    def _stalled(self, again: tuple[tuple[str, str], ...]) -> bool:
        """X-08: the same refusal, answered by three continuations in a row with no tool call between."""
        after = self.dialect.stall_after
        return after is not None and again == self.last_refusal and self.repeats >= after

    def _capped(self, verdict: Continue) -> str:
        who = _who_refuses(verdict, self.dialect)
        return (
            f"The turn ends at its limit of {self.limit} continuations although it is still refused by {who}."
        )

    def _stall_notice(self, verdict: Continue) -> str:
        who = _who_refuses(verdict, self.dialect)
        return f"The turn ends because nothing changed in {self.repeats} continuations; it is still refused by {who}."


def _who_refuses(verdict: Continue, dialect: Dialect) -> str:
    return ", ".join(
        label(run.rule.hook) for run in verdict.runs if run.mode == "gate" and is_blocking(run, dialect)
    )


def new_guard(
    settings: Settings, environ: Mapping[str, str], *, child: bool = False, limit: int | None = None
) -> LoopGuard:
    """The guard of a new turn; `limit` is the caller's own word and may raise the hard limit."""
    dialect = settings.dialect
    hard = settings.hard_limit if settings.hard_limit is not None else dialect.hard_limit
    if limit is not None:
        hard = None if hard is None else max(hard, limit)
        return LoopGuard(dialect=dialect, limit=max(0, limit), hard_limit=hard)
    said = settings.child_limit if child and settings.child_limit is not None else settings.limit
    if dialect.limit_variable:
        known = {**environ, **settings.env}.get(dialect.limit_variable)
        if known is not None:
            return LoopGuard(dialect=dialect, limit=_limit_from_variable(known, dialect.limit))
    wanted = dialect.limit if said is None else said
    return LoopGuard(dialect=dialect, limit=wanted if hard is None else min(wanted, hard), hard_limit=hard)


def _limit_from_variable(text: str, default: int) -> int | None:
    """Claude Code: a float is cut, 0 and less means no limit, not a number means the default."""
    try:
        number = int(float(text))
    except (ValueError, OverflowError):
        return default
    return number if number > 0 else None
